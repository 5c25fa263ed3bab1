//! The function `starlark` as a program: a `ResourceList` on stdin, the changed one on stdout.

use std::process::ExitCode;

fn main() -> ExitCode {
    starlark_function::main()
}
