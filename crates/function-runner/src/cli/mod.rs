//! The command line: the service itself, and commands for people.

mod doc;
mod eval;
mod explain;
mod functions;
mod pods;
mod table;
mod validate;

use std::{
    ffi::{OsStr, OsString},
    io::Write,
    path::Path,
    process::ExitCode,
};

use flags::{Command, Flags, Mistakes, Outcome};

use crate::{
    args, builtin, serve,
    settings::{Machine, Settings},
    version,
};

/// What a wrong command line ends with.
const USAGE: u8 = 2;

/// Runs the command the arguments ask for; the first of them is the program's own name. Linked under the name of
/// a built-in function, the program is that function and nothing else.
pub fn main(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let program = arguments.next().unwrap_or_default();
    if let Some(function) = builtin::of_file(&program) {
        return function.main();
    }
    let mut arguments = arguments.peekable();
    if arguments.peek().is_none()
        && let Some(name) = name_of_no_function(&program)
    {
        complain(&format!(
            "{name}: there is no built-in function of this name; function-runner functions lists those there are. To \
             serve, start it as function-runner, or with a flag such as --port=9445"
        ));
        return ExitCode::from(USAGE);
    }
    let first = arguments.peek().and_then(|argument| argument.to_str());
    match first {
        Some(builtin::AS_FUNCTION) => as_function(arguments.nth(1).as_deref()),
        Some("doc") => run(&args::DOC, arguments.skip(1), doc::main),
        Some("eval") => run(&args::EVAL, arguments.skip(1), eval::main),
        Some("explain") => explain::main(arguments.skip(1)),
        Some("functions") => run(&args::FUNCTIONS_COMMAND, arguments.skip(1), functions::main),
        Some("pods") => run(&args::PODS, arguments.skip(1), pods::main),
        Some("validate") => run(&args::VALIDATE, arguments.skip(1), validate::main),
        Some("version") => say(&version::line()),
        Some(word) if !word.starts_with('-') => {
            complain(&format!(
                "function-runner {word}: no such command; there are: doc, eval, explain, functions, pods, validate, version, or flags alone to serve"
            ));
            ExitCode::from(USAGE)
        }
        _ => run(&args::SERVER, arguments, |flags| {
            if flags.get(&args::VERSION) {
                return Ok(say(&version::line()));
            }
            Settings::read(flags, &Machine).map(|settings| in_runtime(serve::run(settings)))
        }),
    }
}

/// The name that the program was started under, if somebody takes it for a function: a service that runs it as an
/// executable, or whoever has made a link of another name to it.
fn name_of_no_function(program: &OsStr) -> Option<String> {
    let name = Path::new(program).file_name()?;
    let own = std::env::current_exe().ok();
    let is_own = own.is_none_or(|own| own.file_name() == Some(name))
        || ["function-runner", "server"].iter().any(|known| name == *known);
    let is_called = std::env::var_os(process::COOKIE).is_some();
    (is_called || !is_own).then(|| name.to_string_lossy().into_owned())
}

/// How a service starts its own program for a function that needs a process.
fn as_function(name: Option<&OsStr>) -> ExitCode {
    match name.and_then(builtin::of_file) {
        Some(function) => function.main(),
        None => {
            complain("function-runner: no such built-in function");
            ExitCode::from(USAGE)
        }
    }
}

fn run(
    command: &Command,
    arguments: impl IntoIterator<Item = OsString>,
    main: impl FnOnce(Flags) -> Result<ExitCode, Mistakes>,
) -> ExitCode {
    match command.parse(arguments) {
        Outcome::Help => say(command.help().trim_end()),
        Outcome::Flags(flags) => main(flags).unwrap_or_else(|mistakes| {
            complain(&mistakes.to_string());
            ExitCode::from(USAGE)
        }),
    }
}

/// Runs a command to its end in a runtime of its own, and not on this thread: what functions leave behind becomes
/// children of the first thread, so that must have no others.
fn in_runtime(command: impl Future<Output = anyhow::Result<ExitCode>> + Send + 'static) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&format!("function-runner: cannot start its threads: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let ended = runtime.block_on(runtime.spawn(command));
    let code = ended.unwrap_or_else(|panic| Err(panic.into())).unwrap_or_else(|error| {
        complain(&format!("function-runner: {error:#}"));
        ExitCode::FAILURE
    });
    runtime.shutdown_background();
    code
}

/// Prints to standard output. A reader that went away is no failure of ours.
fn say(text: &str) -> ExitCode {
    let _ = writeln!(std::io::stdout(), "{text}");
    ExitCode::SUCCESS
}

/// Prints to standard error.
fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
