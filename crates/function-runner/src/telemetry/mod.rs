//! What operators see: logs, metrics and traces.

mod exporters;
mod labels;
mod logs;
mod metrics;
mod openmetrics;
mod otlp;
mod pods;
mod process;
mod traces;

pub use exporters::Telemetry;
pub use logs::start as start_logs;
pub use metrics::{EndedCall, Metrics};
pub(crate) use pods::PodMetrics;
pub use traces::CallSpan;
