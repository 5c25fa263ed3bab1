//! One flag: a typed constant that declares it and later reads it.

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use crate::duration::GoDuration;
use crate::value::{Kind, Value};

/// A flag whose value is a `T`. The same constant stands in the command's table and reads the value, so a
/// value cannot be asked for under a wrong name or as a wrong type.
#[derive(Debug, Clone, Copy)]
pub struct Flag<T> {
    spec: Spec,
    value: PhantomData<fn() -> T>,
}

/// What the table of a command holds of a flag: everything but the type.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) help: &'static str,
    pub(crate) placeholder: Option<&'static str>,
    pub(crate) hidden: bool,
}

impl<T> Flag<T> {
    const fn new(name: &'static str, kind: Kind, help: &'static str) -> Self {
        Self { spec: Spec { name, kind, help, placeholder: None, hidden: false }, value: PhantomData }
    }

    /// The word that stands for the value in the help text, such as `PORT`.
    #[must_use]
    pub const fn placeholder(mut self, word: &'static str) -> Self {
        self.spec.placeholder = Some(word);
        self
    }

    /// Keeps the flag out of the help text and of suggestions; it works all the same.
    #[must_use]
    pub const fn hidden(mut self) -> Self {
        self.spec.hidden = true;
        self
    }

    /// The entry for the table of a command.
    pub const fn spec(&self) -> Spec {
        self.spec
    }

    /// The name without dashes.
    pub const fn name(&self) -> &'static str {
        self.spec.name
    }
}

impl Flag<bool> {
    /// A switch: `--name`, `--name=true`, `--name=false`.
    pub const fn boolean(name: &'static str, default: bool, help: &'static str) -> Self {
        Self::new(name, Kind::Boolean { default }, help)
    }
}

impl<N: Whole> Flag<N> {
    /// A whole number within `range`, and within what the type can hold.
    pub const fn integer(
        name: &'static str,
        default: i64,
        range: RangeInclusive<i64>,
        help: &'static str,
    ) -> Self {
        let least = if *range.start() > N::LEAST { *range.start() } else { N::LEAST };
        let greatest = if *range.end() < N::GREATEST { *range.end() } else { N::GREATEST };
        Self::new(name, Kind::Integer { default, least, greatest }, help)
    }
}

impl Flag<String> {
    /// Any text.
    pub const fn text(name: &'static str, default: &'static str, help: &'static str) -> Self {
        Self::new(name, Kind::Text { default }, help)
    }
}

impl Flag<GoDuration> {
    /// A duration as Go writes it.
    pub const fn duration(name: &'static str, default: GoDuration, help: &'static str) -> Self {
        Self::new(name, Kind::Duration { default }, help)
    }
}

impl Flag<Vec<String>> {
    /// Words separated by commas. Blanks around them and empty ones are dropped; with a non-empty `words`
    /// only those are accepted.
    pub const fn list(
        name: &'static str,
        default: &'static [&'static str],
        words: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self::new(name, Kind::List { default, words }, help)
    }
}

impl Flag<&'static str> {
    /// Exactly one of `words`.
    pub const fn choice(
        name: &'static str,
        default: &'static str,
        words: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self::new(name, Kind::Choice { default, words }, help)
    }
}

impl Flag<PathBuf> {
    /// A file or folder; need not be UTF-8, need not exist.
    pub const fn path(name: &'static str, default: &'static str, help: &'static str) -> Self {
        Self::new(name, Kind::Path { default }, help)
    }
}

mod sealed {
    pub trait Sealed: Sized {
        /// The value as this type, when it is of its kind.
        fn from_value(value: &super::Value) -> Option<Self>;
    }
}

pub(crate) use sealed::Sealed;

/// The types a flag's value can have. Only this crate implements it.
pub trait FlagType: Sealed + Default + fmt::Debug {}

/// The whole numbers a flag's value can be. Only this crate implements it.
pub trait Whole: FlagType {
    /// The least value of the type that a flag can hold.
    const LEAST: i64;
    /// The greatest value of the type that a flag can hold.
    const GREATEST: i64;
}

macro_rules! flag_type {
    ($type:ty, $pattern:pat => $value:expr) => {
        impl Sealed for $type {
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    $pattern => $value,
                    _ => None,
                }
            }
        }
        impl FlagType for $type {}
    };
}

flag_type!(bool, Value::Boolean(value) => Some(*value));
flag_type!(String, Value::Text(value) => Some(value.clone()));
flag_type!(GoDuration, Value::Duration(value) => Some(*value));
flag_type!(Vec<String>, Value::List(value) => Some(value.clone()));
flag_type!(&'static str, Value::Choice(value) => Some(value));
flag_type!(PathBuf, Value::Path(value) => Some(value.clone()));

macro_rules! whole {
    ($($type:ty: $least:expr, $greatest:expr;)*) => {$(
        flag_type!($type, Value::Integer(value) => Self::try_from(*value).ok());
        impl Whole for $type {
            const LEAST: i64 = $least;
            const GREATEST: i64 = $greatest;
        }
    )*};
}

// The types up to 32 bits bound the value themselves, the wider ones only at zero. A usize of 32 bits would
// too, but no such machine is served.
whole! {
    u8: 0, 0xff;
    u16: 0, 0xffff;
    u32: 0, 0xffff_ffff;
    u64: 0, i64::MAX;
    usize: 0, i64::MAX;
    i64: i64::MIN, i64::MAX;
}
