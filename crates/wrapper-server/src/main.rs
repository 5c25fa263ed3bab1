//! The wrapper server: runs inside a function's own image and evaluates the
//! function for the function runner. The same file is, by the name it is
//! called by, the health probe, the `cp` that its init container needs, and a
//! `sh` that knows that `cp`.

mod copy;
mod log;
mod metrics;
mod otlp;
mod probe;
mod serve;
mod shell;

use std::{ffi::OsString, io::Write, path::Path, process::ExitCode};

use flags::{Command, Flags, Mistakes, Outcome};

fn main() -> ExitCode {
    if process::run_as_watchdog() {
        return ExitCode::SUCCESS;
    }
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    match Path::new(&name).file_name().and_then(|name| name.to_str()) {
        Some("cp") => copy::main(arguments),
        Some("sh") => shell::main(arguments),
        Some("grpc-health-probe" | "grpc_health_probe") => run(&probe::COMMAND, arguments, 1, probe::main),
        _ => run(&serve::COMMAND, arguments, 2, serve::main),
    }
}

/// Reads the flags and runs the command; a wrong command line ends with `usage`.
fn run(
    command: &Command,
    arguments: impl IntoIterator<Item = OsString>,
    usage: u8,
    main: impl FnOnce(Flags) -> Result<ExitCode, Mistakes>,
) -> ExitCode {
    match command.parse(arguments) {
        Outcome::Help => {
            let _ = writeln!(std::io::stdout(), "{}", command.help().trim_end());
            ExitCode::SUCCESS
        }
        Outcome::Flags(flags) => main(flags).unwrap_or_else(|mistakes| {
            log::say(&mistakes.to_string());
            ExitCode::from(usage)
        }),
    }
}

/// The runtime: one thread is enough for a few calls, and takes least memory.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
