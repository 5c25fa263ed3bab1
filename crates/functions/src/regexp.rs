//! Regular expressions as Go writes them.
//!
//! They mean nearly the same here. What differs is translated: Go's `\d`, `\s`, `\w` and `\b` know ASCII only,
//! a backslash before a sign always means the sign, `\Q…\E` is a literal, a brace that is no repetition is one,
//! and in a class there are no operators and no classes but those in `[:name:]`.

use std::cell::{OnceCell, RefCell};
use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::CharIndices;

use krm::Budget;
use regex::{Captures, Regex, RegexBuilder};
use regex_automata::Input;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;

/// How large compiled expressions may be, of which most are of the first sizes.
const SIZES: [usize; 7] = [1 << 13, 1 << 14, 1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 19];

/// How long their text may be, and how many classes of Unicode may be in it: each of these is a long list.
const LONGEST: usize = 1 << 12;
const MOST_CLASSES: usize = 32;

/// What a class of Unicode costs when an expression is read: steps and bytes of memory.
const CLASS: usize = 1 << 16;

/// What may be remembered of an expression while it is searched for, in bytes. Real ones on real texts need a small
/// part of it.
const REMEMBERED: usize = 1 << 18;

/// An expression for which more than that is needed is given up after the second time, unless what is remembered
/// is of use for so many bytes of text at least: so a byte takes little time, whatever the expression is.
const CLEARS: usize = 2;
const BYTES_PER_STATE: usize = 256;

/// A compiled expression, whose cost is counted.
#[derive(Debug)]
pub(crate) struct Expression {
    /// Says whether there is a match.
    search: DFA,
    cache: RefCell<Cache>,
    /// Says what its groups are, once that is asked for.
    groups: OnceCell<Option<Regex>>,
    text: String,
    size: usize,
    budget: Budget,
}

impl Expression {
    /// Compiles an expression in Go's syntax.
    pub(crate) fn in_go(expression: &str, budget: &Budget) -> Result<Self, String> {
        check_length(expression)
            .and_then(|()| Self::new(&translate(expression), budget))
            .map_err(|cause| format!("error parsing regexp: {cause}: `{}`", shown(expression)))
    }

    /// Compiles an expression in the syntax of the library.
    pub(crate) fn new(expression: &str, budget: &Budget) -> Result<Self, String> {
        // What is translated may be somewhat longer.
        if expression.len() > 8 * LONGEST {
            return Err(TOO_LARGE.to_owned());
        }
        let classes = expression.matches("\\p").count() + expression.matches("\\P").count();
        if classes > MOST_CLASSES {
            return Err(TOO_LARGE.to_owned());
        }
        // Reading it takes some memory, for a while.
        budget.memory(16 * expression.len() + classes * CLASS)?;
        // Its picture of what is wrong is the better one.
        if let Err(regex::Error::Syntax(picture)) = RegexBuilder::new(expression).size_limit(1).build() {
            let last = picture.lines().last().unwrap_or_default();
            return Err(last.trim_start_matches("error: ").to_owned());
        }
        let first = if classes > 0 { 4 } else { 0 };
        for &size in SIZES.iter().skip(first) {
            budget.work(size + 64 * expression.len() + classes * CLASS)?;
            let search = DFA::builder()
                .configure(
                    DFA::config()
                        .cache_capacity(REMEMBERED)
                        .skip_cache_capacity_check(true)
                        .minimum_cache_clear_count(Some(CLEARS))
                        .minimum_bytes_per_state(Some(BYTES_PER_STATE)),
                )
                .thompson(thompson::Config::new().nfa_size_limit(Some(size)))
                .build(expression);
            if let Ok(search) = search {
                budget.memory(2 * size + REMEMBERED / 4)?;
                let cache = RefCell::new(search.create_cache());
                let (groups, text) = (OnceCell::new(), expression.to_owned());
                return Ok(Self { search, cache, groups, text, size, budget: budget.clone() });
            }
        }
        Err(TOO_LARGE.to_owned())
    }

    /// Whether there is a match in a text.
    pub(crate) fn is_match(&self, text: &str) -> Result<bool, String> {
        self.budget.work(8 + text.len())?;
        let input = Input::new(text).earliest(true);
        match self.search.try_search_fwd(&mut self.cache.borrow_mut(), &input) {
            Ok(found) => Ok(found.is_some()),
            Err(_) => Err("the expression is too large to search such texts; use a simpler one".to_owned()),
        }
    }

    /// What the groups of the first match are.
    pub(crate) fn captures<'t>(&self, text: &'t str) -> Result<Option<Captures<'t>>, String> {
        // At worst, a byte takes as many steps as the expression has states.
        self.budget.work(8 + (self.size >> 9).saturating_mul(text.len()))?;
        if self.groups.get().is_none() {
            self.budget.memory(2 * self.size + REMEMBERED)?;
            self.budget.work(self.size)?;
        }
        let groups = self.groups.get_or_init(|| {
            let mut builder = RegexBuilder::new(&self.text);
            builder.size_limit(4 * self.size).dfa_size_limit(REMEMBERED).build().ok()
        });
        // Without its groups, what is put together from them would be wrong.
        groups.as_ref().map(|groups| groups.captures(text)).ok_or_else(|| TOO_LARGE.to_owned())
    }
}

const TOO_LARGE: &str = "expression is too large";

fn check_length(expression: &str) -> Result<(), String> {
    if expression.len() > LONGEST { Err(TOO_LARGE.to_owned()) } else { Ok(()) }
}

/// An expression as it is told.
fn shown(expression: &str) -> &str {
    expression.get(..expression.floor_char_boundary(LONGEST)).unwrap_or_default()
}

/// A character by its number, which has no other meaning anywhere.
pub(crate) fn literal(out: &mut String, character: char) {
    // Writing to a String cannot fail.
    let _ = write!(out, "\\x{{{:x}}}", u32::from(character));
}

struct Translator<'e> {
    expression: &'e str,
    rest: Peekable<CharIndices<'e>>,
    out: String,
}

/// The expression in the syntax of the library.
fn translate(expression: &str) -> String {
    let mut translator =
        Translator { expression, rest: expression.char_indices().peekable(), out: String::new() };
    translator.all();
    translator.out
}

impl Translator<'_> {
    fn all(&mut self) {
        while let Some((at, character)) = self.rest.next() {
            match character {
                '\\' => self.escape(false),
                '[' => self.class(),
                '{' if !self.is_repetition(at) => self.out.push_str("\\{"),
                other => self.out.push(other),
            }
        }
    }

    /// Whether a brace is the start of `{1}`, `{1,}` or `{1,2}`.
    fn is_repetition(&self, at: usize) -> bool {
        let inside =
            self.expression.get(at + 1..).and_then(|rest| rest.split_once('}')).map(|(inside, _)| inside);
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        inside.is_some_and(|inside| match inside.split_once(',') {
            Some((least, most)) => is_number(least) && (most.is_empty() || is_number(most)),
            None => is_number(inside),
        })
    }

    /// What follows a backslash.
    fn escape(&mut self, in_class: bool) {
        let Some((_, character)) = self.rest.next() else { return self.out.push('\\') };
        match character {
            'd' | 's' | 'w' | 'D' | 'S' | 'W' => {
                let ranges = match character.to_ascii_lowercase() {
                    'd' => "0-9",
                    's' => r"\t\n\x0C\r ",
                    _ => "0-9A-Za-z_",
                };
                let negation = if character.is_ascii_uppercase() { "^" } else { "" };
                if in_class && negation.is_empty() {
                    self.out.push_str(ranges);
                } else {
                    self.out.extend(["[", negation, ranges, "]"]);
                }
            }
            'b' if !in_class => self.out.push_str(r"(?-u:\b)"),
            'Q' if !in_class => self.quoted(),
            'p' | 'P' => {
                self.out.extend(['\\', character]);
                // The name of a class is in braces, unless it is one letter.
                if self.rest.peek().is_some_and(|&(_, next)| next == '{') {
                    for (_, part) in self.rest.by_ref() {
                        self.out.push(part);
                        if part == '}' {
                            break;
                        }
                    }
                }
            }
            sign if sign.is_ascii() && !sign.is_ascii_alphanumeric() => literal(&mut self.out, sign),
            other => self.out.extend(['\\', other]),
        }
    }

    /// What is between `\Q` and `\E`, or the end.
    fn quoted(&mut self) {
        while let Some((at, character)) = self.rest.next() {
            if self.expression.get(at..).is_some_and(|rest| rest.starts_with("\\E")) {
                self.rest.next();
                return;
            }
            literal(&mut self.out, character);
        }
    }

    /// What is between brackets.
    fn class(&mut self) {
        self.out.push('[');
        if self.rest.next_if(|&(_, character)| character == '^').is_some() {
            self.out.push('^');
        }
        let mut first = true;
        while let Some((at, character)) = self.rest.next() {
            match character {
                ']' if !first => return self.out.push(']'),
                '\\' => self.escape(true),
                '[' if self.expression.get(at..).is_some_and(|rest| rest.starts_with("[:")) => self.named(at),
                '[' | ']' | '&' | '~' | '^' => literal(&mut self.out, character),
                other => self.out.push(other),
            }
            first = false;
        }
    }

    /// `[:alpha:]` and the like; all else that starts so is not one.
    fn named(&mut self, at: usize) {
        let name = self.expression.get(at..).and_then(|rest| rest.split_once(":]")).map(|(name, _)| name);
        let Some(name) = name.filter(|name| {
            name.chars().skip(2).all(|character| character == '^' || character.is_ascii_lowercase())
        }) else {
            return literal(&mut self.out, '[');
        };
        self.out.extend([name, ":]"]);
        for _ in 0..=name.len() {
            self.rest.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'t>(expression: &str, text: &'t str) -> Option<&'t str> {
        let expression = Expression::in_go(expression, &Budget::default()).unwrap();
        let found = expression.captures(text).unwrap();
        assert_eq!(found.is_some(), expression.is_match(text).unwrap());
        found.and_then(|groups| groups.get(0)).map(|found| found.as_str())
    }

    #[test]
    fn what_both_syntaxes_have_stays() {
        for expression in [
            "nginx-(.*)",
            "^a|b$",
            "(?i)x+?",
            "[a-z0-9]{2,3}",
            "(?P<n>.)",
            r"\x41\t\pL",
            "[[:alpha:]_-]",
            ".{3}",
        ] {
            let translated = translate(expression);
            assert_eq!(translated, expression);
            Expression::in_go(expression, &Budget::default()).unwrap();
        }
    }

    #[test]
    fn classes_know_ascii_only() {
        assert_eq!(found(r"\w+", "äbcß"), Some("bc"));
        assert_eq!(found(r"\d+", "٣4"), Some("4"));
        assert_eq!(found(r"\W+", "aäb"), Some("ä"));
        assert_eq!(found(r"[\d.]+", "v1.2-٣"), Some("1.2"));
        assert_eq!(found(r"[^\s]+", " a\u{a0}b "), Some("a\u{a0}b"));
        assert_eq!(found(r"[\Wa]+", "b-a"), Some("-a"));
        assert_eq!(found(r"\bb", "äb"), Some("b"));
        assert_eq!(found("..", "äöü"), Some("äö"));
    }

    #[test]
    fn classes_of_unicode_have_names() {
        assert_eq!(found(r"\p{L}+", "1äb"), Some("äb"));
        assert_eq!(found(r"\p{Greek}+|\pN", "aβ"), Some("β"));
        assert_eq!(found(r"[\p{L}-]+", "1ä-"), Some("ä-"));
        assert_eq!(found(r"\P{L}+", "ä12"), Some("12"));
    }

    /// What people look for, in lists of any size.
    #[test]
    fn usual_expressions_are_searched_for_in_all_values() {
        for expression in [
            "^.{1,255}$",
            r"^\S{1,255}$",
            r"^.{1,253}\.example\.com$",
            "^[^:]+:.{1,128}$",
            r"^\w{1,255}$",
            r"^\pL+$",
            r"(?i)^\s*(\pL+[\w-]{0,60})\s*$",
            r"https?://(www\.)?[-a-zA-Z0-9@:%._+~#=]{1,256}\.[a-z]{2,6}\b([-a-zA-Z0-9@:%_+.~#?&/=]*)",
        ] {
            let budget = Budget::default();
            let values =
                ["web", "nginx:1.2.3", "https://www.example.com/path?a=b", "müller", "a.example.com"];
            budget.read(values.iter().map(|value| value.len()).sum::<usize>() * 1000);
            let expression = Expression::in_go(expression, &budget).unwrap();
            for value in values.iter().cycle().take(5_000) {
                expression.is_match(value).unwrap();
            }
        }
    }

    #[test]
    fn braces_that_repeat_nothing_are_braces() {
        assert_eq!(found("a{b}", "a{b}"), Some("a{b}"));
        assert_eq!(found("a{,2}", "aa{,2}"), Some("a{,2}"));
        assert_eq!(found(r"\${(.*)}", "x ${y}"), Some("${y}"));
        assert_eq!(found("a{2}", "aaa"), Some("aa"));
        assert_eq!(found("{", "{"), Some("{"));
    }

    #[test]
    fn a_backslash_before_a_sign_means_the_sign() {
        assert_eq!(found(r"\<a\>", "a <a>"), Some("<a>"));
        assert_eq!(found(r"\-\/\_\@", "-/_@"), Some("-/_@"));
        assert_eq!(found(r"\Qa.b\E.", "axb a.bc"), Some("a.bc"));
        assert_eq!(found(r"\Q(", "("), Some("("));
    }

    #[test]
    fn classes_have_no_operators_and_no_classes_in_them() {
        assert_eq!(found("[a[b]+", "x[ab"), Some("[ab"));
        assert_eq!(found("[a&&b]+", "x&a"), Some("&a"));
        assert_eq!(found("[]a]+", "x]a"), Some("]a"));
        assert_eq!(found("[^]a]+", "]ax"), Some("x"));
        assert_eq!(found("[[:digit:]x]+", "y1x"), Some("1x"));
        assert_eq!(found("[[:a]+", "x[:a"), Some("[:a"));
    }

    #[test]
    fn what_is_wrong_is_told_in_one_line() {
        for expression in
            ["(", "a)", "[a", "*", r"\", "(?P<n", r"\pX", r"\Z", "a{99999}", "(?:a{1000}){1000}"]
        {
            let error = Expression::in_go(expression, &Budget::default()).unwrap_err();
            assert!(
                error.starts_with("error parsing regexp: ") && error.ends_with(&format!(": `{expression}`")),
                "{error}"
            );
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn searching_ends() {
        let budget = Budget::default();
        let text = "ab".repeat(10_000);
        let simple = Expression::in_go("nginx-(.*)", &budget).unwrap();
        assert!((0..5).all(|_| simple.is_match(&text) == Ok(false)));
        // What it must remember is another thing for each byte of such a text.
        let hostile = Expression::in_go("(?:a|b)*a(?:a|b){1000}c", &budget).unwrap();
        let mut text = String::new();
        let mut number = 1_u32;
        for _ in 0..50_000 {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text.push(if number >> 31 == 0 { 'a' } else { 'b' });
        }
        let error = (0..30).find_map(|_| hostile.is_match(&text).err()).unwrap();
        assert!(error.contains("too large to search") || error.contains("steps of work"), "{error}");
        // Also where there is nothing to search.
        let budget = Budget::default();
        let simple = Expression::in_go("a+", &budget).unwrap();
        assert!((0..10_000_000).any(|_| simple.is_match("").is_err()));
    }

    #[test]
    fn what_is_too_large_to_be_compiled_is_refused_before_it_is_read() {
        for expression in
            ["a".repeat(1 << 20), "{".repeat(1 << 20), "[[:".repeat(1 << 18), r"(?i)\pL".repeat(500)]
        {
            let budget = Budget::default();
            let error = Expression::in_go(&expression, &budget).unwrap_err();
            assert!(error.contains("too large") && error.len() < 5_000, "{error}");
            assert!(budget.used().steps < 1 << 20, "{:?}", budget.used());
        }
    }
}
