//! Command lines.

use std::{ffi::OsString, num::NonZeroUsize, os::unix::ffi::OsStringExt, path::Path};

use flags::{GoDuration, Outcome};
use function_runner::{
    args,
    settings::{Settings, Surroundings},
};

/// A machine that has nothing.
struct Nowhere;

impl Surroundings for Nowhere {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn exists(&self, _: &Path) -> bool {
        false
    }

    fn memory(&self) -> Option<u64> {
        None
    }

    fn cores(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }
}

/// A command line of the service, an argument a line.
pub(crate) fn command_line(input: &[u8]) {
    let arguments = input.split(|byte| *byte == b'\n').map(|bytes| OsString::from_vec(bytes.to_vec()));
    match args::SERVER.parse(arguments.clone()) {
        Outcome::Flags(flags) => {
            if let Err(mistakes) = Settings::read(flags, &Nowhere) {
                assert!(!mistakes.list().is_empty(), "refused without a word");
                mistakes.list().iter().for_each(|mistake| crate::is_one_line(&mistake.to_string()));
            }
        }
        Outcome::Help => {}
    }
    for argument in arguments {
        let Some(Ok(duration)) = argument.to_str().map(str::parse::<GoDuration>) else { continue };
        assert_eq!(
            duration.to_string().parse(),
            Ok(duration),
            "{} prints as something else",
            argument.display()
        );
    }
}
