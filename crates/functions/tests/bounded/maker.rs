//! Writes YAML by chance: how many, how long, how it looks.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use crate::dice::Dice;

/// Keys and values that configurations and resources have in common, so that the ones find the others.
const WORDS: [&str; 12] =
    ["a", "b", "spec", "metadata", "name", "labels", "annotations", "l", "web", "nginx", "data", "kind"];

/// Texts that mean something somewhere.
const PIECES: [&str; 24] = [
    "a", "b", "x", "web", "nginx", "-", ".", "/", ":", "@", "${a}", "${1}", "${", "}", "[", "]", "{", "*",
    "\\", "ä", " ", "1", "=", "#",
];

/// A keyed line: longer keys must be explicit.
const LONGEST_KEY: usize = 1000;

pub(crate) struct Maker {
    dice: Dice,
    /// How many things a long list has; texts are some times as long.
    scale: usize,
    indentation: usize,
    pub(crate) out: String,
    pub(crate) limit: usize,
    /// What there is how many of, at most.
    notes: BTreeMap<String, usize>,
}

impl Maker {
    pub(crate) fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let scale = [8, 64, 512, 2048][dice.below(4)];
        let notes = BTreeMap::from([("scale".to_owned(), scale)]);
        Self { dice, scale, indentation: 0, out: String::new(), limit: usize::MAX, notes }
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.dice.below(limit)
    }

    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.dice.once_in(times)
    }

    pub(crate) fn pick(&mut self, of: &[&'static str]) -> &'static str {
        self.dice.pick(of)
    }

    /// Notes what there is so many of.
    pub(crate) fn note(&mut self, what: &str, count: usize) {
        let what: String = what.lines().next().unwrap_or_default().chars().take(30).collect();
        let most = self.notes.entry(what).or_default();
        *most = count.max(*most);
    }

    /// What was noted, in one line.
    pub(crate) fn notes(&self) -> String {
        let notes = self.notes.iter().filter(|(_, count)| **count > 3);
        notes.map(|(what, count)| format!("{what} ×{count}")).collect::<Vec<_>>().join(", ")
    }

    /// How many of something: none, one, few, or as many as can be.
    pub(crate) fn count(&mut self, what: &str) -> usize {
        let scale = self.scale;
        let count = match self.below(6) {
            0 => self.below(3),
            1 => 1 + self.below(12),
            2 => scale / 8,
            _ => scale,
        };
        self.note(what, count);
        count
    }

    /// Does something so many times, but no longer than there is room.
    pub(crate) fn times(&mut self, count: usize, mut each: impl FnMut(&mut Self, usize)) {
        for at in 0..count {
            if self.out.len() >= self.limit {
                break;
            }
            each(self, at);
        }
    }

    /// How long a text is, mostly short.
    fn length(&mut self) -> usize {
        match self.below(12) {
            0 => self.scale,
            1 => self.scale * 8,
            2 => 40,
            _ => 0,
        }
    }

    /// A word that may be found elsewhere.
    pub(crate) fn word(&mut self) -> String {
        self.pick(&WORDS).to_owned()
    }

    /// A text of any shape, which may be long: a word, a piece again and again, or pieces of all sorts.
    pub(crate) fn any(&mut self, what: &str) -> String {
        let length = self.length();
        if length == 0 {
            return if self.once_in(8) { String::new() } else { self.word() };
        }
        self.note(what, length);
        if self.once_in(3) {
            return (0..length / 2).map(|_| self.pick(&PIECES)).collect();
        }
        let piece = self.pick(&PIECES);
        piece.repeat(length / piece.len())
    }

    /// The same piece again and again, as often as there is something of.
    pub(crate) fn again(&mut self, what: &str, pieces: &[&'static str]) -> String {
        let piece = self.pick(pieces);
        let count = self.count(what);
        piece.repeat(count.min(self.limit / piece.len() / 2))
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// All lines that something writes stand two columns further in.
    pub(crate) fn within(&mut self, write: impl FnOnce(&mut Self)) {
        self.indentation += 2;
        write(self);
        self.indentation -= 2;
    }

    pub(crate) fn line(&mut self, text: impl Display) {
        let indentation = " ".repeat(self.indentation);
        // Writing to a String cannot fail.
        let _ = writeln!(self.out, "{indentation}{text}");
    }

    /// A field with a text, in one of the ways a text can be written.
    pub(crate) fn field(&mut self, key: &str, value: &str) {
        let value = self.written(value);
        let key = self.key(key);
        self.line(format_args!("{key}{value}"));
    }

    /// A key up to where its value starts.
    fn key(&mut self, key: &str) -> String {
        let plain = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let written = if plain { key.to_owned() } else { quoted(key) };
        if written.len() > LONGEST_KEY {
            return format!("? {written}\n{}: ", " ".repeat(self.indentation));
        }
        format!("{written}: ")
    }

    /// A text in one of the ways it can be written.
    pub(crate) fn written(&mut self, text: &str) -> String {
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        match self.below(4) {
            0 if text.is_ascii() => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
            1 if !text.is_empty() && !text.starts_with(' ') => {
                format!("|-\n{}{text}", " ".repeat(self.indentation + 4))
            }
            _ if plain => text.to_owned(),
            _ => quoted(text),
        }
    }

    /// A field with a collection in it.
    pub(crate) fn collection(&mut self, key: &str, write: impl FnOnce(&mut Self)) {
        let key = self.key(key);
        self.line(key.trim_end());
        self.within(write);
    }

    /// A mapping with a field for each of many keys, some of them long.
    pub(crate) fn many_fields(&mut self, key: &str) {
        let count = self.count(key);
        self.collection(key, |maker| {
            let first = maker.any("length of a key");
            let value = maker.any("length of a value");
            maker.field("a", &value);
            maker.times(count, |maker, at| maker.field(&format!("{at}-{first}"), &value));
        });
    }

    /// One field with a long text, and many that are aliases of it.
    pub(crate) fn aliases(&mut self) {
        let count = self.count("aliases");
        let text = self.any("length of an alias");
        match self.below(4) {
            0 => self.line(format_args!("anchored: &a {}", quoted(&text))),
            1 => self.line(format_args!("anchored: &a [{0}, {0}, {{a: {0}}}]", quoted(&text))),
            2 => self.line(format_args!("anchored: &a [!<tag:x{}> b]", "y".repeat(text.len()))),
            _ => {
                self.line("anchored: &a");
                let key = "k".repeat(text.len() / 64);
                self.within(|maker| {
                    maker.times(60, |maker, at| maker.field(&format!("{at}-{key}"), "v"));
                });
            }
        }
        self.collection("aliases", |maker| {
            maker.line("- *a");
            maker.times(count, |maker, _| maker.line("- *a"));
        });
    }
}

/// A text in single quotes.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
