//! The template in a ConfigMap, which we may only be allowed to get.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use tokio::time::sleep;

use super::{Publisher, problem};
use crate::{
    template::{Template, TemplateError},
    trouble::in_time,
};

/// How soon a change is seen.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// Keeps the template as the ConfigMap has it, for ever.
pub(super) async fn follow(client: Client, namespace: String, name: String, mut publisher: Publisher) {
    let api = Api::namespaced(client, &namespace);
    let origin = format!("ConfigMap {namespace}/{name}");
    let mut seen = None;
    loop {
        look_now(&api, &name, &origin, &mut seen, &mut publisher).await;
        sleep(LOOK_INTERVAL).await;
    }
}

/// Reads the ConfigMap, and what is in it if that has changed.
async fn look_now(
    api: &Api<ConfigMap>,
    name: &str,
    origin: &str,
    seen: &mut Option<String>,
    publisher: &mut Publisher,
) {
    let map = match in_time(api.get(name)).await {
        Ok(map) => map,
        Err(error) => {
            *seen = None;
            publisher.complain(TemplateError { origin: origin.to_owned(), problem: problem(&error) });
            return;
        }
    };
    if seen.is_some() && *seen == map.metadata.resource_version {
        return;
    }
    seen.clone_from(&map.metadata.resource_version);
    match Template::from_config_map(&map) {
        Ok(template) => publisher.put_in_force(origin, template),
        Err(error) => publisher.complain(error),
    }
}
