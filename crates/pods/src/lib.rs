//! The pod runtime's Kubernetes side: templates, the objects made from them,
//! what the cluster shows of them, pull secrets, and the task that owns the pool.

mod address;
mod causes;
mod client;
mod cluster;
mod connect;
mod launch;
mod lease;
mod marks;
pub mod names;
pub mod observe;
pub mod pod_cache;
pub mod pull_secret;
pub mod render;
mod runtime;
pub mod settings;
mod stages;
pub mod template;
mod trouble;
mod view;
mod watch;
mod worker;
mod world;
mod yaml;

pub use address::AddressMode;
pub use client::{Access, AccessError, ApiRequest, own_namespace};
pub use cluster::RuntimeSettings;
pub use lease::{Lease, Lost};
pub use pool::Reason;
pub use runtime::Runtime;
pub use template::PodSecurity;
pub use trouble::{in_time, words};
pub use view::{PodView, PodsView};
pub use world::{ColdStart, World};
