//! Command-line flags the way Go programs take them, so that the manifests and habits made for Go
//! binaries keep working: `-x=v`, `-x v`, one dash or two, durations such as `1h30m`.
//!
//! A flag is a typed constant, a command is a table of flags, and settings are built by one function that
//! reads every flag and hands everything over, or all mistakes at once:
//!
//! ```
//! use flags::{Command, Flag, Flags, GoDuration, Group, Mistakes, Outcome};
//!
//! const PORT: Flag<u16> = Flag::integer("port", 9445, 1..=65535, "Port to listen on.").placeholder("PORT");
//! const POD_TTL: Flag<GoDuration> =
//!     Flag::duration("pod-ttl", GoDuration::from_minutes(30), "How long an idle pod is kept.");
//!
//! static COMMAND: Command = Command {
//!     name: "server",
//!     usage: "[flags]",
//!     summary: "Evaluates functions.",
//!     groups: &[Group { heading: "Serving", flags: &[PORT.spec(), POD_TTL.spec()] }],
//! };
//!
//! #[derive(Debug)]
//! struct Settings {
//!     port: u16,
//!     pod_ttl: GoDuration,
//! }
//!
//! fn settings(mut flags: Flags) -> Result<Settings, Mistakes> {
//!     let settings = Settings { port: flags.get(&PORT), pod_ttl: flags.get(&POD_TTL) };
//!     if settings.pod_ttl.is_negative() {
//!         flags.reject(&POD_TTL, "must not be negative");
//!     }
//!     flags.refuse_arguments();
//!     flags.finish(settings)
//! }
//!
//! let arguments = ["--port", "80", "-pod-ttl=-1s"].map(Into::into);
//! let Outcome::Flags(flags) = COMMAND.parse(arguments) else { unreachable!("no help was asked for") };
//! let mistakes = settings(flags).unwrap_err();
//! assert!(mistakes.to_string().contains(r#"-pod-ttl "-1s": must not be negative"#));
//! ```

mod command;
mod duration;
mod flag;
mod flags;
mod help;
mod mistake;
mod nearest;
mod number;
mod value;

pub use command::{Command, Group, Outcome};
pub use duration::{GoDuration, InvalidDuration};
pub use flag::{Flag, FlagType, Spec, Whole};
pub use flags::Flags;
pub use mistake::{Mistake, Mistakes};
