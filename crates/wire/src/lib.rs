//! What travels between Porch, the function runner and the wrapper server:
//! the gRPC service with its limits, deadlines and health, the client, and
//! the one place where a failed call becomes a gRPC status.

pub mod client;
mod connection;
mod failure;
mod front;
mod health;
mod inbound;
mod listen;
mod memory;
mod message;
mod outbound;
mod peer;
mod propagation;
pub mod proto;
mod scrape;
mod serve;
mod shares;
mod socket;
mod trace;
mod verdict;

pub use failure::{DOMAIN, Failure, stderr_so_far};
pub use front::{CallMemory, FinishedRpc, Front, GrpcService, Observer};
pub use health::Health;
pub use inbound::Arrival;
pub use listen::{listen, listen_on};
pub use memory::{Full, Memory, Reservation};
pub use message::Room;
pub use propagation::Propagators;
pub use scrape::{PageFormat, serve_metrics};
pub use serve::{ServeOptions, serve};
pub use trace::TraceContext;
pub use verdict::{Answer, Note, judge, run_failure, verdict};

/// Bytes a response may need around its two fields.
pub const ENVELOPE: usize = 64;
