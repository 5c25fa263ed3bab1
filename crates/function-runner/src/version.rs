//! What is running.

/// The version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit it was built from.
pub const COMMIT: &str = env!("BUILD_COMMIT");
/// The compiler it was built with.
pub const TOOLCHAIN: &str = env!("BUILD_TOOLCHAIN");

/// All of it on a line.
pub fn line() -> String {
    format!("function-runner {VERSION} (commit {COMMIT}, {TOOLCHAIN})")
}
