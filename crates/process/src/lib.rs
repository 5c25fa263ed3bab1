//! Runs one KRM function process: feeds its standard input, collects both outputs within limits, keeps a
//! deadline, and sees to it that every process of the call is dead and reaped afterwards. Beside it, a fair
//! queue that bounds how many calls run at once. Knows nothing of gRPC nor of YAML. Linux only.
//!
//! A call's processes are found without privileges, cgroups or a supervisor process per call: see
//! [`Supervisor`] for the rules, and for what they mean for other child processes of the same program.

mod call;
mod calls;
mod cancellation;
mod descriptors;
mod fair;
mod folder;
mod instance;
mod kill;
mod log;
mod memory;
mod obstacle;
mod outcome;
mod procfs;
mod program;
mod removal;
mod run;
mod scratch;
mod streams;
mod supervisor;
mod sweeper;
mod watchdog;

pub use calls::COOKIE;
pub use descriptors::spare_descriptors;
pub use fair::{AcquireError, FairQueue, Permit};
pub use log::Log;
pub use memory::available_memory;
pub use obstacle::obstacle;
pub use outcome::{Exit, Finished, RunError};
pub use program::{Environment, Folder, Limits, Program};
pub use scratch::{NoScratch, Scratch};
pub use supervisor::{END_SIGNALS, Supervisor};
pub use watchdog::run_as_watchdog;
