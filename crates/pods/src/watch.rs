//! What the cluster shows: its pods and Services, by watch.

use std::{
    fmt::Debug,
    net::IpAddr,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::{
    Api, Resource, ResourceExt,
    runtime::{WatchStreamExt, watcher},
};
use serde::de::DeserializeOwned;
use tracing::{debug, info, warn};

use crate::{
    marks::is_function_service,
    observe::{self, Sighting},
    render::IMAGE_LABEL,
    trouble,
};

/// A change of what is watched.
#[derive(Debug)]
pub(crate) enum Change<T> {
    /// It is there now, or is different.
    Applied(T),
    /// It is gone.
    Deleted(T),
    /// What follows is everything there is; what is not told of is gone.
    Restarted,
    /// That was everything there is.
    Listed,
    /// Nothing is seen for now, and why.
    Failed(String),
}

/// A Service of a function pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServiceSighting {
    /// Its name, the pod's id.
    pub(crate) id: String,
    /// Its unique name.
    pub(crate) uid: Arc<str>,
    /// Its address in the cluster.
    pub(crate) address: Option<IpAddr>,
    /// When it was made.
    pub(crate) created: SystemTime,
}

impl ServiceSighting {
    /// A Service of ours; others are not looked at.
    fn of(service: &Service) -> Option<Self> {
        if !is_function_service(service) {
            return None;
        }
        Some(Self {
            id: service.name_any(),
            uid: service.uid()?.into(),
            address: service.spec.as_ref()?.cluster_ip.as_ref()?.parse().ok(),
            created: service.metadata.creation_timestamp.as_ref().map_or(UNIX_EPOCH, observe::moment),
        })
    }
}

/// Tells every change of function pods, for ever.
pub(crate) async fn pods(api: Api<Pod>, tell: impl Fn(Change<Box<Sighting>>)) {
    let config = watcher::Config::default().labels(IMAGE_LABEL);
    follow(api, config, "pods", |pod| observe::pod(pod).map(Box::new), tell).await;
}

/// Tells every change of their Services, for ever.
pub(crate) async fn services(api: Api<Service>, tell: impl Fn(Change<ServiceSighting>)) {
    follow(api, watcher::Config::default(), "Services", ServiceSighting::of, tell).await;
}

async fn follow<K, T>(
    api: Api<K>,
    config: watcher::Config,
    what: &str,
    look: impl Fn(&K) -> Option<T>,
    tell: impl Fn(Change<T>),
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut events = watcher(api, config).default_backoff().boxed();
    let (mut is_well, mut is_told) = (false, false);
    loop {
        match events.try_next().await {
            Ok(Some(event)) => {
                if !is_well && matches!(event, watcher::Event::InitDone | watcher::Event::Apply(_)) {
                    info!("watching {what}");
                    (is_well, is_told) = (true, false);
                }
                match event {
                    watcher::Event::Apply(object) | watcher::Event::InitApply(object) => {
                        look(&object).map(Change::Applied).into_iter().for_each(&tell);
                    }
                    watcher::Event::Delete(object) => {
                        look(&object).map(Change::Deleted).into_iter().for_each(&tell);
                    }
                    watcher::Event::Init => tell(Change::Restarted),
                    watcher::Event::InitDone => tell(Change::Listed),
                }
            }
            Ok(None) => return,
            // The watcher begins again by itself; the log is told once until it works again.
            Err(error) => {
                tell(Change::Failed(format!("cannot watch {what}: {}; trying again", words(&error))));
                if std::mem::replace(&mut is_told, true) {
                    debug!(cause = %error, "still cannot watch {what}");
                } else {
                    warn!(cause = %error, "cannot watch {what}; what is known stays in use until it works again");
                }
                is_well = false;
            }
        }
    }
}

/// What the API server says of a watch.
fn words(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => trouble::words(error),
        watcher::Error::WatchError(status) => trouble::words(&kube::Error::Api(status.clone())),
        watcher::Error::NoResourceVersion => error.to_string(),
    }
}
