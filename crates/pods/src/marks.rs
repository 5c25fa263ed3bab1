//! What the runtime writes on its objects to know them again, beyond what the original writes.

use k8s_openapi::api::core::v1::Service;

use crate::render::IMAGE_LABEL;

/// On a pod: the image its callers ask for, which the container's image may differ from.
pub(crate) const FUNCTION: &str = "fn.kpt.dev/function";
/// On a pod: the digest of that image, all of which its name has no room for.
pub(crate) const DIGEST: &str = "fn.kpt.dev/digest";
/// On a pod: the launch that made it.
pub(crate) const LAUNCH: &str = "fn.kpt.dev/launch";
/// On a Service: the replica that claimed the slot.
pub(crate) const CLAIMED_BY: &str = "fn.kpt.dev/claimed-by";

/// Whether a Service leads to function pods: it is named as the pods it selects.
pub(crate) fn is_function_service(service: &Service) -> bool {
    let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let selected = selector.and_then(|selector| selector.get(IMAGE_LABEL));
    selected.is_some() && selected == service.metadata.name.as_ref()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::{api::core::v1::ServiceSpec, apimachinery::pkg::apis::meta::v1::ObjectMeta};

    use super::*;

    fn service(name: &str, selector: Option<(&str, &str)>) -> Service {
        let selector = selector.map(|(key, value)| BTreeMap::from([(key.to_owned(), value.to_owned())]));
        Service {
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            spec: Some(ServiceSpec { selector, ..ServiceSpec::default() }),
            status: None,
        }
    }

    #[test]
    fn others_services_are_not_ours() {
        assert!(is_function_service(&service("f-v1-1-00000000", Some((IMAGE_LABEL, "f-v1-1-00000000")))));
        assert!(!is_function_service(&service("front", Some((IMAGE_LABEL, "f-v1-1-00000000")))));
        assert!(!is_function_service(&service("front", Some(("app", "front")))));
        assert!(!is_function_service(&service("front", None)));
        assert!(!is_function_service(&Service::default()));
    }
}
