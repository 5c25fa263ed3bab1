//! A command: its table of flags, and reading a command line by it.

use std::collections::{HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use crate::flag::Spec;
use crate::flags::Flags;
use crate::mistake::{Mistake, SHOWN_MISTAKES, quoted, shown};
use crate::nearest::nearest;

/// A command and its flags. Made to be a `static`.
#[derive(Debug, Clone, Copy)]
pub struct Command {
    /// What the user types to run it, such as `function-runner eval`.
    pub name: &'static str,
    /// What follows the name, such as `[flags] -- ENTRYPOINT [ARGUMENT…]`.
    pub usage: &'static str,
    /// What the command does, in a sentence or two.
    pub summary: &'static str,
    /// The flags under their headings, in the order of the help text.
    pub groups: &'static [Group],
}

/// Flags that belong together.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// The heading in the help text.
    pub heading: &'static str,
    /// The flags, each the [`spec`](crate::Flag::spec) of its constant.
    pub flags: &'static [Spec],
}

/// What a command line asks for.
#[derive(Debug)]
pub enum Outcome {
    /// `-h`, `-help` or `--help` was given: print [`Command::help`] and end with success.
    Help,
    /// Run, unless [`Flags::finish`] finds mistakes.
    Flags(Flags),
}

impl Command {
    pub(crate) fn specs(&self) -> impl Iterator<Item = &'static Spec> {
        self.groups.iter().flat_map(|group| group.flags)
    }

    /// Mistakes in the table itself: names used twice or not writable, defaults that would be rejected.
    /// Empty for a sound table; every command deserves a test that says so. Checked in debug builds.
    pub fn defects(&self) -> Vec<String> {
        let mut names = HashSet::new();
        let twice = self
            .specs()
            .filter(move |spec| !names.insert(spec.name))
            .map(|spec| format!("two flags are named --{}", spec.name));
        self.specs().filter_map(Spec::defect).chain(twice).collect()
    }

    /// Reads a command line, without the program's own name. Never fails: mistakes are kept in the
    /// [`Flags`], where the caller adds those it finds itself.
    ///
    /// Where Go stops at the first mistake this goes on, and guesses what was meant just to find the next.
    pub fn parse(&self, arguments: impl IntoIterator<Item = OsString>) -> Outcome {
        debug_assert!(self.defects().is_empty(), "{}: {:?}", self.name, self.defects());
        let mut flags = Flags::defaults(self);
        let mut rest: VecDeque<OsString> = arguments.into_iter().collect();
        let stop = self.read(&mut flags, &mut rest);
        if stop == Stop::Help {
            return Outcome::Help;
        }
        flags.set_arguments(rest.into(), stop == Stop::Positional);
        Outcome::Flags(flags)
    }

    /// Reads flags up to what is none.
    fn read(&self, flags: &mut Flags, rest: &mut VecDeque<OsString>) -> Stop {
        while let Some(argument) = rest.pop_front() {
            match Argument::of(&argument) {
                Argument::Positional => {
                    rest.push_front(argument);
                    return Stop::Positional;
                }
                Argument::End => return Stop::End,
                Argument::Malformed => flags.add(Mistake::Malformed { argument: shown(&argument) }),
                Argument::Flag { spelling, name, value } => match self.find(name) {
                    Some(spec) if spec.is_boolean() => switch(flags, spec, spelling, value, rest),
                    Some(spec) => self.valued(flags, spec, spelling, value, rest),
                    None if is_help(name) => return Stop::Help,
                    None => self.unknown(flags, spelling, name, value.is_some(), rest),
                },
            }
        }
        Stop::End
    }

    /// Makes arguments a mistake, and reads the flags between them for the sake of theirs.
    pub(crate) fn refuse(&self, flags: &mut Flags, mut rest: VecDeque<OsString>) {
        while let Some(argument) = rest.pop_front() {
            flags.add(Mistake::UnexpectedArgument { argument: quoted(&argument) });
            if self.read(flags, &mut rest) != Stop::Positional {
                return;
            }
        }
    }

    fn find(&self, name: &OsStr) -> Option<&'static Spec> {
        self.specs().find(|spec| spec.name == name)
    }

    /// A flag with a value: after `=`, or else the next argument, whatever it looks like.
    fn valued(
        &self,
        flags: &mut Flags,
        spec: &Spec,
        spelling: &OsStr,
        inline: Option<&OsStr>,
        rest: &mut VecDeque<OsString>,
    ) {
        if let Some(value) = inline {
            flags.set(spec, spelling, value);
            return;
        }
        // Go would take a following flag for the value. Where it cannot be one, it is read as a flag.
        match rest.pop_front() {
            Some(value) if spec.kind.read(&value).is_ok() || !self.ends_or_is_known(&value) => {
                flags.set(spec, spelling, &value);
            }
            next => {
                if let Some(next) = next {
                    rest.push_front(next);
                }
                flags.miss(spec, spelling);
            }
        }
    }

    fn ends_or_is_known(&self, argument: &OsStr) -> bool {
        match Argument::of(argument) {
            Argument::End => true,
            Argument::Flag { name, .. } => self.find(name).is_some() || is_help(name),
            Argument::Positional | Argument::Malformed => false,
        }
    }

    fn unknown(
        &self,
        flags: &mut Flags,
        spelling: &OsStr,
        name: &OsStr,
        has_value: bool,
        rest: &mut VecDeque<OsString>,
    ) {
        let known = || self.specs().filter(|spec| !spec.hidden).map(|spec| spec.name);
        // Suggestions cost time, and nobody reads the hundredth.
        let suggestion = name.to_str().filter(|_| flags.mistakes() < SHOWN_MISTAKES);
        let suggestion = suggestion.and_then(|name| nearest(name, known()));
        let meant = suggestion.and_then(|name| self.find(OsStr::new(name)));
        flags.add(Mistake::Unknown { flag: shown(spelling), suggestion });
        // What follows is taken for its value, or everything after it would go unread.
        let next_is_value =
            rest.front().is_some_and(|next| matches!(Argument::of(next), Argument::Positional));
        if !has_value && next_is_value && !meant.is_some_and(Spec::is_boolean) {
            rest.pop_front();
        }
    }
}

/// A boolean: bare or with `=`, never with the next argument.
fn switch(
    flags: &mut Flags,
    spec: &Spec,
    spelling: &OsStr,
    inline: Option<&OsStr>,
    rest: &mut VecDeque<OsString>,
) {
    flags.set(spec, spelling, inline.unwrap_or(OsStr::new("true")));
    let detached =
        |word: &mut OsString| ["true", "false"].iter().any(|known| word.eq_ignore_ascii_case(known));
    if inline.is_none()
        && let Some(word) = rest.pop_front_if(detached)
    {
        flags.detached(spec, spelling, &word);
    }
}

fn is_help(name: &OsStr) -> bool {
    name == "h" || name == "help"
}

/// Where reading flags came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// Before an argument that is no flag.
    Positional,
    /// After `--`, or after everything.
    End,
    /// At a flag that asks for help.
    Help,
}

/// One argument in the eyes of Go's flag package.
enum Argument<'a> {
    /// No flag: ends the flags and is handed over. `-` alone is one, the usual name of standard input.
    Positional,
    /// `--`: ends the flags.
    End,
    /// Dashes without a name.
    Malformed,
    /// A flag, with the value if it has one after `=`; the spelling is the name with its dashes.
    Flag { spelling: &'a OsStr, name: &'a OsStr, value: Option<&'a OsStr> },
}

impl<'a> Argument<'a> {
    fn of(argument: &'a OsStr) -> Self {
        let text = argument.as_bytes();
        let body = match text {
            b"--" => return Self::End,
            [b'-', b'-', body @ ..] | [b'-', body @ ..] if text != b"-" => body,
            _ => return Self::Positional,
        };
        if matches!(body, [b'-' | b'=', ..]) {
            return Self::Malformed;
        }
        let mut halves = body.splitn(2, |byte| *byte == b'=');
        let name = halves.next().unwrap_or_default();
        let dashes = text.len() - body.len();
        let spelling = text.get(..dashes + name.len()).unwrap_or(text);
        Self::Flag {
            spelling: OsStr::from_bytes(spelling),
            name: OsStr::from_bytes(name),
            value: halves.next().map(OsStr::from_bytes),
        }
    }
}
