//! The template in objects of its own, which exist from some release of Porch on: a `PodTemplate` and a
//! `ServiceTemplate`. Where there are none we make them, for operators to edit.

use std::{fmt::Debug, time::Duration};

use api::{ServiceTemplate, ServiceTemplateBody};
use futures::{Stream, StreamExt};
use k8s_openapi::{api::core::v1::PodTemplate, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api, Client, Resource,
    api::PostParams,
    runtime::{
        WatchStreamExt,
        watcher::{self, watch_object},
    },
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{debug, info, warn};

use super::{Publisher, problem};
use crate::{
    render::FIELD_MANAGER,
    template::{Problem, Template, TemplateError},
    trouble::{Meaning, in_time, meaning, words},
};

/// The `PodTemplate` that is used.
pub const POD_TEMPLATE: &str = "base-pod-template";
/// The `ServiceTemplate` that is used.
pub const SERVICE_TEMPLATE: &str = "base-service-template";

/// How soon kinds are found that were installed, or allowed, later. Also the time an operator has to put
/// another object in the place of one he deleted.
const LOOK_INTERVAL: Duration = Duration::from_mins(1);
/// How soon we ask again when the API server is in trouble.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Keeps the template as the objects have it, for ever.
pub(super) async fn follow(
    client: Client,
    namespace: String,
    wrapper_image: String,
    inline: Template,
    publisher: Publisher,
) {
    let mut follower = Follower {
        pods: Api::namespaced(client.clone(), &namespace),
        services: Api::namespaced(client, &namespace),
        namespace,
        wrapper_image,
        inline,
        publisher,
        has_told_inline: false,
    };
    loop {
        let pause = match follower.find().await {
            Ok((pod, service)) => {
                follower.watch(pod, service).await;
                RETRY_INTERVAL
            }
            Err(Absent::Kinds(cause)) => {
                follower.use_inline(&cause);
                LOOK_INTERVAL
            }
            Err(Absent::Trouble(problem)) => {
                follower.complain(problem);
                RETRY_INTERVAL
            }
        };
        sleep(pause).await;
    }
}

/// Why the objects are not to be had.
enum Absent {
    /// This cluster has no such kinds, or not for us.
    Kinds(String),
    /// For now.
    Trouble(Problem),
}

struct Follower {
    pods: Api<PodTemplate>,
    services: Api<ServiceTemplate>,
    namespace: String,
    wrapper_image: String,
    /// What is used where there are no objects, and what they are made from.
    inline: Template,
    publisher: Publisher,
    has_told_inline: bool,
}

impl Follower {
    /// Both objects; those that are missing are made.
    async fn find(&self) -> Result<(PodTemplate, ServiceTemplate), Absent> {
        let body = ServiceTemplateBody { metadata: None, spec: Some(self.inline.service.clone()) };
        let service = ServiceTemplate::new(&self.namespace, SERVICE_TEMPLATE, body);
        let metadata = ObjectMeta {
            name: Some(POD_TEMPLATE.to_owned()),
            namespace: Some(self.namespace.clone()),
            ..ObjectMeta::default()
        };
        let pod = PodTemplate { metadata, template: Some(self.inline.to_pod_template()) };
        // The service first: where its kind is not known, no pod template is to be left behind.
        let service = get_or_create(&self.services, SERVICE_TEMPLATE, &service).await?;
        let pod = get_or_create(&self.pods, POD_TEMPLATE, &pod).await?;
        Ok((pod, service))
    }

    /// Puts every change in force. Ends a while after an object was deleted, or the watch was disturbed.
    async fn watch(&mut self, mut pod: PodTemplate, mut service: ServiceTemplate) {
        self.apply(&pod, &service);
        let mut pods = changes(&self.pods, POD_TEMPLATE);
        let mut services = changes(&self.services, SERVICE_TEMPLATE);
        let mut end = None;
        loop {
            let seen = tokio::select! {
                Some(change) = pods.next() => replace(&mut pod, change),
                Some(change) = services.next() => replace(&mut service, change),
                () = sleep_until(end.unwrap_or_else(Instant::now)), if end.is_some() => return,
                else => return,
            };
            match seen {
                Seen::Object => {
                    self.apply(&pod, &service);
                    continue;
                }
                Seen::Nothing(name) => warn!("{name} was deleted: what it said stays in force for now"),
                Seen::Trouble(error) => debug!(cause = %error, "cannot watch the templates of function pods"),
            }
            end.get_or_insert_with(|| Instant::now() + LOOK_INTERVAL);
        }
    }

    fn apply(&mut self, pod: &PodTemplate, service: &ServiceTemplate) {
        match Template::from_objects(pod, service, &self.wrapper_image) {
            Ok(template) => self.publisher.put_in_force(&self.origin(), template),
            Err(error) => self.publisher.complain(error),
        }
    }

    /// What was read before stays: pods are not to change because a right was taken away.
    fn use_inline(&mut self, cause: &str) {
        if !std::mem::replace(&mut self.has_told_inline, true) {
            info!("there is no template for function pods in {} ({cause})", self.origin());
        }
        if !self.publisher.is_ready() {
            self.publisher.put_in_force("the runner itself", self.inline.clone());
        }
    }

    fn complain(&mut self, problem: Problem) {
        self.publisher.complain(TemplateError { origin: self.origin(), problem });
    }

    fn origin(&self) -> String {
        let namespace = &self.namespace;
        format!("PodTemplate {namespace}/{POD_TEMPLATE} and ServiceTemplate {namespace}/{SERVICE_TEMPLATE}")
    }
}

/// What a watch tells of an object.
enum Seen {
    Object,
    Nothing(&'static str),
    Trouble(watcher::Error),
}

type Change<K> = (&'static str, watcher::Result<Option<K>>);

/// All changes of one object. Interrupted watches begin again, less and less often.
fn changes<K>(api: &Api<K>, name: &'static str) -> impl Stream<Item = Change<K>> + Send + Unpin + use<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    watch_object(api.clone(), name).default_backoff().map(move |change| (name, change)).boxed()
}

fn replace<K>(known: &mut K, (name, change): Change<K>) -> Seen {
    match change {
        Ok(Some(object)) => {
            *known = object;
            Seen::Object
        }
        Ok(None) => Seen::Nothing(name),
        Err(error) => Seen::Trouble(error),
    }
}

async fn get_or_create<K>(api: &Api<K>, name: &str, object: &K) -> Result<K, Absent>
where
    K: Resource + Clone + Serialize + DeserializeOwned + Debug,
{
    let missing = |error: &kube::Error| meaning(error) == Meaning::Missing;
    match in_time(api.get(name)).await {
        Err(error) if missing(&error) => {}
        outcome => return outcome.map_err(|error| absent(&error)),
    }
    let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    match in_time(api.create(&params, object)).await {
        Ok(created) => {
            info!("made {name}: edit it to change function pods");
            Ok(created)
        }
        // Another replica was faster.
        Err(error) if meaning(&error) == Meaning::Exists => {
            in_time(api.get(name)).await.map_err(|error| absent(&error))
        }
        Err(error) => Err(absent(&error)),
    }
}

fn absent(error: &kube::Error) -> Absent {
    match error {
        // A login that is not valid says nothing about the kinds; the others may be answered later.
        kube::Error::Api(status) if !matches!(status.code, 401 | 408 | 409 | 429 | 500..) => {
            Absent::Kinds(words(error))
        }
        _ => Absent::Trouble(problem(error)),
    }
}
