//! The functions that are part of this program: those of the `functions` crate, which run where they are
//! called, and `starlark`, which runs in a process of its own.

use std::{
    ffi::OsStr,
    fmt,
    io::{self, Read as _, Write as _},
    path::Path,
    process::ExitCode,
};

use functions::{Function, Outcome};
use krm::Budget;

/// The hidden first argument that makes this program the function of the second one.
pub(crate) const AS_FUNCTION: &str = "as-function";

/// A function that is part of this program.
#[derive(Debug, Clone, Copy)]
pub enum Builtin {
    /// Does nothing but compute.
    Pure(&'static Function),
    /// Runs programs of others, so that it needs a process whose time and memory are bounded.
    Starlark,
}

/// Which of them a service offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offered {
    /// None.
    Off,
    /// Those that the `goExecutor` of a FunctionConfig lists.
    Configured,
    /// Besides those, all under the names of the catalog.
    All,
}

impl fmt::Display for Offered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Off => "off",
            Self::Configured => "configured",
            Self::All => "all",
        })
    }
}

/// All of them, by name.
pub fn all() -> Vec<Builtin> {
    let mut all: Vec<_> = functions::all().iter().map(Builtin::Pure).chain([Builtin::Starlark]).collect();
    all.sort_by_key(Builtin::name);
    all
}

/// The one of this name.
pub fn find(name: &str) -> Option<Builtin> {
    if name == starlark_function::NAME {
        return Some(Builtin::Starlark);
    }
    functions::find(name).map(Builtin::Pure)
}

/// The one that a program is which was started as this file, if it is the name of one.
pub(crate) fn of_file(program: &OsStr) -> Option<Builtin> {
    find(Path::new(program).file_name()?.to_str()?)
}

impl Builtin {
    /// Its name in the catalog.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Pure(function) => function.name,
            Self::Starlark => starlark_function::NAME,
        }
    }

    /// All its names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let aliases = match self {
            Self::Pure(function) => function.aliases,
            Self::Starlark => &[],
        };
        std::iter::once(self.name()).chain(aliases.iter().copied())
    }

    /// What it does, in one sentence.
    pub fn summary(&self) -> &'static str {
        match self {
            Self::Pure(function) => function.summary,
            Self::Starlark => starlark_function::SUMMARY,
        }
    }

    /// All that its functionConfig may say.
    pub fn usage(&self) -> &'static str {
        match self {
            Self::Pure(function) => function.usage,
            Self::Starlark => starlark_function::USAGE,
        }
    }

    /// A functionConfig that works.
    pub fn example(&self) -> &'static str {
        match self {
            Self::Pure(function) => function.example,
            Self::Starlark => starlark_function::EXAMPLE,
        }
    }

    /// Is this function and nothing else: from standard input to standard output, until the process ends.
    pub(crate) fn main(self) -> ExitCode {
        let function = match self {
            Self::Pure(function) => function,
            Self::Starlark => return starlark_function::main(),
        };
        match filter(function) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(cause) => {
                // Where nobody reads, there is nobody to tell.
                let _ = writeln!(io::stderr(), "failed to evaluate function: {cause}");
                ExitCode::FAILURE
            }
        }
    }
}

/// Whether the function succeeded, if all could be read and written.
fn filter(function: &Function) -> Result<bool, String> {
    let mut input = Vec::new();
    io::stdin().lock().read_to_end(&mut input).map_err(|error| format!("cannot read stdin: {error}"))?;
    let Outcome { output, stderr, succeeded, .. } = function.run(&input, &Budget::default());
    let _ = io::stderr().write_all(stderr.as_bytes());
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(&output).and_then(|()| stdout.flush());
    written.map_err(|error| format!("cannot write stdout: {error}"))?;
    Ok(succeeded)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn a_program_is_a_function_by_the_last_part_of_its_name() {
        for (file, name) in [
            ("set-namespace", Some("set-namespace")),
            ("/home/nonroot/functions/starlark", Some("starlark")),
            ("./x/../set-labels", Some("set-labels")),
            ("function-runner", None),
            ("server", None),
            ("/set-namespace/server", None),
            ("set-namespace.bak", None),
            ("/proc/self/exe", None),
            ("", None),
            ("/", None),
            ("..", None),
        ] {
            assert_eq!(of_file(OsStr::new(file)).map(|function| function.name()), name, "{file}");
        }
        assert!(of_file(OsStr::from_bytes(b"set-\xff")).is_none());
    }

    #[test]
    fn every_name_finds_its_function() {
        let all = all();
        assert_eq!(all.len(), functions::all().len() + 1);
        assert!(all.windows(2).all(|pair| pair[0].name() < pair[1].name()), "{all:?}");
        for function in all {
            for name in function.names() {
                assert_eq!(find(name).map(|found| found.name()), Some(function.name()));
            }
            assert!(![function.summary(), function.usage(), function.example()].contains(&""));
        }
    }
}
