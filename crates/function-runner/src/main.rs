//! The function runner's program; everything it does is in the library.

use std::process::ExitCode;

/// musl's own allocator is slow with several threads.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if process::run_as_watchdog() {
        return ExitCode::SUCCESS;
    }
    function_runner::cli::main(std::env::args_os())
}
