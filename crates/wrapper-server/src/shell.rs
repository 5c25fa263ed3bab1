//! `sh`, as far as customised templates of function pods need it: `sh -c "cp …"`. It knows plain and quoted words,
//! `DIR/*`, `&&`, `;` and line ends, and no command but `cp`. Whatever else a shell would understand is refused
//! before anything is done: half of a script is worse than none.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::Path,
    process::ExitCode,
};

use crate::{copy, log};

const USAGE: &str = "this sh knows nothing but cp, as in: sh -c \"cp -a /wrapper-server/. /wrapper-server-tools\"; \
                     use an image with a shell for more";
/// What shells answer to a script they do not understand, and to a command they do not find.
const MISUSE: u8 = 2;
const NOT_FOUND: u8 = 127;

pub(crate) fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let read = || {
        let (script, stops) = script(arguments)?;
        Ok((parse(script.as_bytes())?, stops))
    };
    let (commands, stops) = match read() {
        Ok(read) => read,
        Err(Refusal { cause, code }) => {
            log::say(&format!("sh: {cause}; {USAGE}"));
            return ExitCode::from(code);
        }
    };
    let mut succeeded = true;
    for Command { words, only_after_success } in commands {
        if succeeded || !(stops || only_after_success) {
            succeeded = copy::run(words.into_iter().skip(1).flat_map(Word::expand));
        }
    }
    if succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[derive(Debug, PartialEq, Eq)]
struct Refusal {
    cause: String,
    code: u8,
}

fn misuse(cause: impl Into<String>) -> Refusal {
    Refusal { cause: cause.into(), code: MISUSE }
}

/// The script of a command line, and whether it is to stop (`-e`) at the first failure. What comes after it are its
/// arguments, which nothing can refer to.
fn script(arguments: impl Iterator<Item = OsString>) -> Result<(OsString, bool), Refusal> {
    let (mut is_next, mut stops) = (false, false);
    for argument in arguments {
        match argument.as_bytes() {
            _ if is_next => return Ok((argument, stops)),
            [b'-', letters @ ..] if !letters.is_empty() && letters.iter().all(|it| b"ceux".contains(it)) => {
                is_next = letters.contains(&b'c');
                stops |= letters.contains(&b'e');
            }
            _ => return Err(misuse(format!("cannot run {}", argument.display()))),
        }
    }
    Err(misuse("there is no script"))
}

#[derive(Debug, PartialEq, Eq)]
struct Command {
    words: Vec<Word>,
    only_after_success: bool,
}

/// A word; `all_of` is for `DIR/*`: what is in the folder.
#[derive(Debug, Default, PartialEq, Eq)]
struct Word {
    text: Vec<u8>,
    all_of: bool,
}

impl Word {
    fn expand(self) -> Vec<OsString> {
        let Self { mut text, all_of } = self;
        if all_of {
            let folder = Path::new(OsStr::from_bytes(&text));
            let names = fs::read_dir(if text.is_empty() { Path::new(".") } else { folder });
            let names = names.into_iter().flatten().flatten().map(|entry| entry.file_name());
            let names = names.filter(|name| !name.as_bytes().starts_with(b"."));
            let mut paths: Vec<_> = names.map(|name| folder.join(name).into_os_string()).collect();
            paths.sort();
            if !paths.is_empty() {
                return paths;
            }
            // As it was written, where nothing is there.
            text.push(b'*');
        }
        vec![OsString::from_vec(text)]
    }
}

fn parse(script: &[u8]) -> Result<Vec<Command>, Refusal> {
    let mut reader = Reader { commands: Vec::new(), words: Vec::new(), word: None, after_success: false };
    let mut bytes = script.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b' ' | b'\t' => reader.end_word()?,
            b'\n' if reader.after_success && reader.is_empty() => {}
            b'\n' | b';' => reader.end_command(false)?,
            b'&' if bytes.next_if_eq(&b'&').is_some() => reader.end_command(true)?,
            b'\'' => reader.extend(quoted(&mut bytes, b'\'')?)?,
            b'"' => reader.extend(quoted(&mut bytes, b'"')?)?,
            b'\\' => {
                let next = bytes.next().ok_or_else(|| misuse("it ends with a backslash"))?;
                // A line end behind one is as if it were not there.
                if next != b'\n' {
                    reader.extend(vec![next])?;
                }
            }
            b'*' => reader.star()?,
            b'#' | b'~' if reader.word.is_some() => reader.extend(vec![byte])?,
            b'$' | b'`' | b'|' | b'&' | b'<' | b'>' | b'(' | b')' | b'?' | b'[' | b'{' | b'}' | b'!'
            | b'#' | b'~' | b'\0' => {
                return Err(misuse(format!("cannot understand {:?}", char::from(byte))));
            }
            byte => reader.extend(vec![byte])?,
        }
    }
    reader.finish()
}

/// What stands in quotes, whose first is read already.
fn quoted(bytes: &mut impl Iterator<Item = u8>, quote: u8) -> Result<Vec<u8>, Refusal> {
    let mut text = Vec::new();
    while let Some(byte) = bytes.next() {
        match byte {
            byte if byte == quote => return Ok(text),
            b'$' | b'`' if quote == b'"' => {
                return Err(misuse(format!("cannot understand {:?}", char::from(byte))));
            }
            b'\\' if quote == b'"' => match bytes.next() {
                Some(next @ (b'"' | b'\\' | b'$' | b'`')) => text.push(next),
                Some(b'\n') => {}
                Some(next) => text.extend([byte, next]),
                None => break,
            },
            byte => text.push(byte),
        }
    }
    Err(misuse("a quote is not closed"))
}

struct Reader {
    commands: Vec<Command>,
    words: Vec<Word>,
    word: Option<Word>,
    /// Whether the command that is being read follows an `&&`.
    after_success: bool,
}

impl Reader {
    fn is_empty(&self) -> bool {
        self.words.is_empty() && self.word.is_none()
    }

    fn extend(&mut self, text: Vec<u8>) -> Result<(), Refusal> {
        let word = self.word.get_or_insert_default();
        if word.all_of {
            return Err(misuse("cannot understand a * that is not the end of a path"));
        }
        word.text.extend(text);
        Ok(())
    }

    fn star(&mut self) -> Result<(), Refusal> {
        let word = self.word.get_or_insert_default();
        if word.all_of || word.text.last().is_some_and(|last| *last != b'/') {
            return Err(misuse("cannot understand a * that is not the whole of a name"));
        }
        word.all_of = true;
        Ok(())
    }

    fn end_word(&mut self) -> Result<(), Refusal> {
        let Some(word) = self.word.take() else { return Ok(()) };
        if self.words.is_empty() {
            let name = OsStr::from_bytes(&word.text);
            let is_copy = !word.all_of && Path::new(name).file_name() == Some(OsStr::new("cp"));
            if !is_copy {
                let cause = format!("{}: not found", name.display());
                return Err(Refusal { cause, code: NOT_FOUND });
            }
        }
        self.words.push(word);
        Ok(())
    }

    fn end_command(&mut self, next_after_success: bool) -> Result<(), Refusal> {
        self.end_word()?;
        let only_after_success = std::mem::replace(&mut self.after_success, next_after_success);
        let words = std::mem::take(&mut self.words);
        if !words.is_empty() {
            self.commands.push(Command { words, only_after_success });
        } else if only_after_success || next_after_success {
            return Err(misuse("there is nothing beside an &&"));
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<Command>, Refusal> {
        self.end_command(false)?;
        if self.commands.is_empty() { Err(misuse("the script is empty")) } else { Ok(self.commands) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands as their words, with what stands before each.
    fn parsed(script: &str) -> Result<Vec<String>, u8> {
        let word = |word: &Word| {
            let star = if word.all_of { "*" } else { "" };
            format!("[{}{star}]", String::from_utf8_lossy(&word.text))
        };
        let command = |command: &Command| {
            let mark = if command.only_after_success { "&& " } else { "" };
            mark.to_owned() + &command.words.iter().map(word).collect::<String>()
        };
        parse(script.as_bytes())
            .map(|commands| commands.iter().map(command).collect())
            .map_err(|refusal| refusal.code)
    }

    #[test]
    fn words_quotes_and_sequences_are_understood() {
        for (script, expected) in [
            ("cp -a /a/. /b", &["[cp][-a][/a/.][/b]"][..]),
            ("  /bin/cp\t-a 'x y' \"z \\\" \\a\" \\'w ", &["[/bin/cp][-a][x y][z \" \\a]['w]"]),
            ("cp a\\\nb c", &["[cp][ab][c]"]),
            ("cp '' \"\" é", &["[cp][][][é]"]),
            ("cp a b&&cp c d", &["[cp][a][b]", "&& [cp][c][d]"]),
            ("cp a b &&\n\n cp c d\n", &["[cp][a][b]", "&& [cp][c][d]"]),
            ("cp a b; cp c d;\ncp e f\n", &["[cp][a][b]", "[cp][c][d]", "[cp][e][f]"]),
            ("cp /a/* * /b", &["[cp][/a/*][*][/b]"]),
            ("cp '/a/'* '*' \\* b", &["[cp][/a/*][*][*][b]"]),
            ("cp a#b c~ d=e f", &["[cp][a#b][c~][d=e][f]"]),
            ("'c'p a b", &["[cp][a][b]"]),
        ] {
            assert_eq!(parsed(script), Ok(expected.iter().map(ToString::to_string).collect()), "{script:?}");
        }
    }

    #[test]
    fn everything_else_is_refused_as_a_whole() {
        for script in [
            "",
            " ",
            "\n;\n",
            "&& cp a b",
            "cp a b &&",
            "cp a b && && cp c d",
            "cp a b && ; cp c d",
            "cp a $B",
            "cp a \"$B\"",
            "cp a `b`",
            "cp a \"`b`\"",
            "cp a b | cp c d",
            "cp a b || cp c d",
            "cp a b & cp c d",
            "cp a > b",
            "cp < a b",
            "(cp a b)",
            "{ cp a b; }",
            "cp a? b",
            "cp [ab] c",
            "cp a* b",
            "cp a/*.so b",
            "cp */x y",
            "cp /a/** b",
            "cp ~/a b",
            "# cp a b",
            "cp a b # c",
            "! cp a b",
            "cp 'a b",
            "cp \"a b",
            "cp \"a\\",
            "cp a b\\",
            "cp a\0b c",
        ] {
            assert_eq!(parsed(script), Err(MISUSE), "{script:?}");
        }
        for script in
            ["ls", "chmod +x a", "cp a b && chmod +x b", "set -e; cp a b", "A=b cp c d", "* a", "''"]
        {
            assert_eq!(parsed(script), Err(NOT_FOUND), "{script:?}");
        }
    }

    #[test]
    fn no_script_makes_it_panic() {
        let alphabet = b"cp a'\"\\&;*\n/$.";
        let mut state = 1_u64;
        for _ in 0..20_000 {
            let script: Vec<u8> = (0..12)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    alphabet[usize::try_from(state >> 33).unwrap_or_default() % alphabet.len()]
                })
                .collect();
            for command in parse(&script).into_iter().flatten() {
                assert_eq!(command.words[0].text.rsplit(|it| *it == b'/').next(), Some(&b"cp"[..]));
            }
        }
    }
}
