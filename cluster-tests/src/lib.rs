//! What tests on a real Kubernetes need to steer it: a namespace for each of
//! them, manifests, images, pods, waiting with limits, and faults made on
//! purpose. The tests run inside the cluster's network, so that its names and
//! addresses are theirs too.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test ends where its set-up fails"
)]

mod audit;
mod cut;
mod definitions;
mod derived;
mod function;
mod images;
mod knocks;
mod kubectl;
mod manifests;
mod page;
mod pods;
mod relay;
mod report;
mod rights;
mod runner;
mod space;
mod wait;
mod witness;

pub use audit::{Request, refusals_of, requests_of};
pub use cut::Cut;
pub use definitions::our_definitions;
pub use function::{host_of, order};
pub use images::{REGISTRY_FOR_PODS, digest, digest_tag, has_image, push, push_as, push_to, push_with};
pub use knocks::Knocks;
pub use kubectl::{kubectl, kustomize};
pub use manifests::{Applied, containers_of, parse, replace_images};
pub use page::page;
pub use pods::{Finished, is_ready, processes_of, signal_pod};
pub use relay::Relay;
pub use rights::{ACCOUNT, Rights};
pub use runner::{HostRunner, RunnerDeployment, client, client_of};
pub use space::{Space, on_cluster};
pub use testing::Signal;
pub use wait::{deployment_ready, eventually, service_reachable, until};
pub use witness::{IMAGE_LABEL, Seen, Witness};

use std::path::PathBuf;

/// The address of the node, as pods reach it.
pub const NODE: &str = "10.199.0.1";

/// The root of the checkout.
pub fn checkout() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}
