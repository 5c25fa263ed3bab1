//! The pod runtime within the service: what it is told about functions, its
//! warm-up, and what it tells.

mod list;
mod start;
mod warm_up;
mod world;

pub(crate) use list::PodList;
pub(crate) use start::start;

use warm_up::{Warming, keep_warm};
use world::ServiceWorld;
