//! FunctionConfigs of the cluster: read into the index, and told what became of them.

mod keeper;
mod opinion;
mod seen;
mod write;

use std::{sync::Arc, time::Duration};

use api::FunctionConfig;
use futures::StreamExt;
use kube::{
    Api, Client, CustomResourceExt,
    api::{DynamicObject, ListParams},
    runtime::{WatchStreamExt, watcher},
};
use tokio::{
    sync::watch,
    time::{Instant, MissedTickBehavior, interval_at, sleep_until},
};
use tracing::{debug, info, warn};

use super::Routing;
use keeper::Keeper;
use opinion::Opinion;
use seen::{Seen, see};
use write::{Change, Written};

/// Keeps us known at an object until we have noticed that it goes.
pub const FINALIZER: &str = "config.porch.kpt.dev/functionconfig-function-runner";

/// How often what may have changed without a word is looked at again: kinds, rights and executables.
const LOOK_INTERVAL: Duration = Duration::from_mins(1);

/// Objects read at once: as they come they take much more memory than what we keep of them.
const PAGE: u32 = 100;

/// Follows the objects of a namespace.
#[derive(Debug)]
pub struct ObjectFollower {
    api: Api<DynamicObject>,
    namespace: String,
    routing: Routing,
    /// Whether we have looked at all.
    has_looked: watch::Sender<bool>,
}

impl ObjectFollower {
    /// A follower of the objects of `namespace`, which puts what they say in force in `routing`.
    pub fn new(client: Client, namespace: &str, routing: Routing) -> Self {
        // Not by their type: one object that does not fit it would hide all others.
        let api = Api::namespaced_with(client, namespace, &FunctionConfig::api_resource());
        Self { api, namespace: namespace.to_owned(), routing, has_looked: watch::Sender::default() }
    }

    /// Resolves when the objects are in force, or it has turned out that they cannot be read.
    pub fn first_look(&self) -> impl Future<Output = ()> + use<> {
        let mut has_looked = self.has_looked.subscribe();
        async move {
            // The follower may also be gone.
            let _ = has_looked.wait_for(|has_looked| *has_looked).await;
        }
    }

    /// Reads the objects once, writes nothing, and tells how many there are.
    pub async fn look(&self) -> kube::Result<usize> {
        let list = pods::in_time(self.api.list(&ListParams::default())).await?;
        let default_prefix = &self.routing.terms().default_prefix;
        let objects = list.items.iter().map(|object| see(object, default_prefix));
        let objects = objects.filter(|(_, seen, _)| !seen.is_going);
        let objects = objects.map(|(name, _, content)| (name, Arc::new(content))).collect();
        self.routing.change(|sources| sources.objects = objects);
        Ok(list.items.len())
    }

    /// Follows for ever. What was read stays in force while nothing can be read.
    pub async fn follow(self) {
        let Self { api, namespace, routing, has_looked } = self;
        let config = watcher::Config::default().page_size(PAGE);
        let watch = || watcher(api.clone(), config.clone()).default_backoff().boxed();
        let mut events = watch();
        // Where there is nothing to watch, we look now and then.
        let mut resume = None;
        let mut keeper = Keeper::new(api.clone(), routing);
        let mut trouble = None;
        let mut looks = interval_at(Instant::now() + LOOK_INTERVAL, LOOK_INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                event = events.next(), if resume.is_none() => match event {
                    Some(Ok(event)) => {
                        let is_listed = matches!(event, watcher::Event::InitDone);
                        if is_listed {
                            trouble = None;
                            info!(namespace, objects = keeper.listed(), "FunctionConfigs read");
                        }
                        keeper.see(event);
                        if is_listed {
                            has_looked.send_replace(true);
                        }
                    }
                    Some(Err(error)) => {
                        let is_absent = is_absent(&error);
                        tell(&mut trouble, &namespace, &error, is_absent);
                        if is_absent {
                            resume = Some(Instant::now() + LOOK_INTERVAL);
                        }
                        has_looked.send_replace(true);
                    }
                    None => return,
                },
                () = sleep_until(resume.unwrap_or_else(Instant::now)), if resume.is_some() => {
                    resume = None;
                    events = watch();
                }
                () = keeper.work() => {}
                _ = looks.tick() => keeper.look_again(),
            }
        }
    }
}

/// Whether the kind is not installed, or not for us.
fn is_absent(error: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) = error else {
        return false;
    };
    matches!(error, kube::Error::Api(status) if matches!(status.code, 403 | 404))
}

/// Tells why objects cannot be read, and everything only once.
fn tell(told: &mut Option<String>, namespace: &str, error: &watcher::Error, is_absent: bool) {
    let words = match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => pods::words(error),
        watcher::Error::WatchError(status) => status.message.clone(),
        watcher::Error::NoResourceVersion => error.to_string(),
    };
    if told.as_ref() == Some(&words) {
        debug!(namespace, cause = words, "still cannot read FunctionConfigs");
        return;
    }
    if is_absent {
        info!(
            namespace,
            cause = words,
            "there are no FunctionConfigs to read: files and flags say it all, until there are some"
        );
    } else {
        warn!(namespace, cause = words, "cannot watch FunctionConfigs; what is known stays in force");
    }
    *told = Some(words);
}
