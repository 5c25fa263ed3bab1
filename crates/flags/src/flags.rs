//! The flags of one command line: their values, and the mistakes found so far.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};

use crate::command::Command;
use crate::flag::{Flag, FlagType, Spec};
use crate::mistake::{Mistake, Mistakes, quoted, shown};
use crate::value::Value;

/// The values of a command's flags. A flag given with a mistake keeps its default, so that settings can
/// always be built and checked further; [`finish`](Self::finish) hands them over only if all is well.
#[derive(Debug)]
pub struct Flags {
    command: Command,
    slots: Vec<Slot>,
    arguments: Vec<OsString>,
    /// Whether flags may be among them, as no `--` comes before.
    mixed: bool,
    mistakes: Vec<Mistake>,
}

#[derive(Debug)]
struct Slot {
    spec: Spec,
    value: Value,
    /// The last flag and value as written, for messages; absent for a default.
    given: Option<(String, String)>,
    wrong: bool,
    read: Cell<bool>,
}

impl Flags {
    /// The value of a flag: the last one given, or the default.
    pub fn get<T: FlagType>(&self, flag: &Flag<T>) -> T {
        let stored = self.slot(flag.name()).and_then(|slot| {
            slot.read.set(true);
            T::from_value(&slot.value)
        });
        debug_assert!(stored.is_some(), "--{} is not in the table of {}", flag.name(), self.command.name);
        stored.or_else(|| T::from_value(&flag.spec().kind.default_value())).unwrap_or_default()
    }

    /// Whether the flag stands on the command line, even if its value is the default.
    pub fn given<T: FlagType>(&self, flag: &Flag<T>) -> bool {
        self.slot(flag.name()).is_some_and(|slot| slot.given.is_some())
    }

    /// What follows the flags: everything from the first argument that is none, or after `--`.
    pub fn arguments(&self) -> &[OsString] {
        &self.arguments
    }

    /// Adds a mistake about a flag's value, such as a missing file or a conflict with another flag.
    /// A flag that already has one keeps it alone: its value here is only the default.
    pub fn reject<T: FlagType>(&mut self, flag: &Flag<T>, reason: impl Into<String>) {
        let spec = flag.spec();
        let slot = self.slot(spec.name);
        if slot.is_some_and(|slot| slot.wrong) {
            return;
        }
        let (flag, value) = slot.and_then(|slot| slot.given.clone()).unwrap_or_else(|| {
            (
                format!("--{}", spec.name),
                format!("{} (the default)", quoted(spec.kind.default_text().as_ref())),
            )
        });
        self.mistakes.push(Mistake::WrongValue { flag, value, reason: reason.into() });
        if let Some(slot) = self.slot_mut(spec.name) {
            slot.wrong = true;
        }
    }

    /// Adds any mistake.
    pub fn add(&mut self, mistake: Mistake) {
        self.mistakes.push(mistake);
    }

    /// Makes arguments after the flags a mistake, for commands that take none. What is wrong with flags that come
    /// behind them is told as well.
    pub fn refuse_arguments(&mut self) {
        let refused = if self.mixed { self.arguments.len() } else { 1 };
        let refused = self.arguments.iter().take(refused).cloned().collect();
        let command = self.command;
        command.refuse(self, refused);
    }

    /// Hands the settings built from these flags over, or all mistakes if there is one.
    ///
    /// A debug build insists that every flag of the table was read: one that nobody reads does nothing, and
    /// whoever gives it should not be left to wonder.
    pub fn finish<S>(self, settings: S) -> Result<S, Mistakes> {
        if !self.mistakes.is_empty() {
            return Err(Mistakes { command: self.command.name, list: self.mistakes });
        }
        for slot in &self.slots {
            debug_assert!(slot.read.get(), "nobody reads --{} of {}", slot.spec.name, self.command.name);
        }
        Ok(settings)
    }

    pub(crate) fn defaults(command: &Command) -> Self {
        let slot = |spec: &Spec| Slot {
            spec: *spec,
            value: spec.kind.default_value(),
            given: None,
            wrong: false,
            read: Cell::new(false),
        };
        Self {
            command: *command,
            slots: command.specs().map(slot).collect(),
            arguments: Vec::new(),
            mixed: false,
            mistakes: Vec::new(),
        }
    }

    pub(crate) fn mistakes(&self) -> usize {
        self.mistakes.len()
    }

    pub(crate) fn set_arguments(&mut self, arguments: Vec<OsString>, mixed: bool) {
        self.arguments = arguments;
        self.mixed = mixed;
    }

    /// Takes a value from the command line.
    pub(crate) fn set(&mut self, spec: &Spec, spelling: &OsStr, given: &OsStr) {
        let result = spec.kind.read(given);
        let Some(slot) = self.slot_mut(spec.name) else { return };
        slot.given = Some((shown(spelling), quoted(given)));
        match result {
            Ok(value) => slot.value = value,
            Err(reason) => {
                slot.wrong = true;
                let (flag, value) = (shown(spelling), quoted(given));
                self.mistakes.push(Mistake::WrongValue { flag, value, reason });
            }
        }
    }

    /// Notes that a flag came without the value it needs.
    pub(crate) fn miss(&mut self, spec: &Spec, spelling: &OsStr) {
        self.spoil(spec);
        let accepted = spec.kind.accepted();
        self.mistakes.push(Mistake::MissingValue { flag: shown(spelling), accepted });
    }

    /// Notes that a switch is followed by a word meant as its value.
    pub(crate) fn detached(&mut self, spec: &Spec, spelling: &OsStr, word: &OsStr) {
        self.spoil(spec);
        self.mistakes.push(Mistake::DetachedBoolean { flag: shown(spelling), word: shown(word) });
    }

    fn spoil(&mut self, spec: &Spec) {
        if let Some(slot) = self.slot_mut(spec.name) {
            slot.wrong = true;
        }
    }

    fn slot(&self, name: &str) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.spec.name == name)
    }

    fn slot_mut(&mut self, name: &str) -> Option<&mut Slot> {
        self.slots.iter_mut().find(|slot| slot.spec.name == name)
    }
}
