//! Whatever the order of changes, the index is that of what there is in the end.

use std::{fmt::Write as _, sync::Arc};

use function_runner::routing::{Built, Object, Routing, Sources};
use proptest::prelude::*;
use registry::Reference;
use serde_json::{Value, json};

use super::{object, terms};

#[derive(Debug, Clone)]
enum Change {
    Put { name: usize, created: i64, spec: Value },
    Delete { name: usize },
}

fn specs() -> impl Strategy<Value = Value> {
    let images = prop::sample::select(vec!["f", "g", "not/a name"]);
    let prefixes =
        prop::sample::subsequence(vec!["", "example.com/a", "example.com/a/b", "wrong prefix"], 0..=4);
    let tags = || prop::sample::subsequence(vec!["v1", "v2", "~1", ">=2", "*", "not a tag"], 0..=6);
    let path = prop::sample::select(vec!["x", "y", "missing"]);
    let time = prop::sample::select(vec!["1m", "2m", "wrong"]);
    (images, prefixes, tags(), tags(), path, time, 0..3_i64).prop_map(
        |(image, prefixes, pod_tags, binary_tags, path, time, replicas)| {
            json!({
                "image": image,
                "prefixes": prefixes,
                "podExecutor": { "tags": pod_tags, "timeToLive": time, "minReplicas": replicas },
                "binaryExecutor": { "path": path, "tags": binary_tags },
            })
        },
    )
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let put = (0..4_usize, 0..3_i64, specs());
    let put = put.prop_map(|(name, created, spec)| Change::Put { name, created, spec });
    let delete = (0..4_usize).prop_map(|name| Change::Delete { name });
    prop::collection::vec(prop_oneof![3 => put, 1 => delete], 0..20)
}

/// All that calls and people can see of it.
fn seen(built: &Built) -> String {
    let mut text = String::new();
    for name in ["f", "g", "object-0", "object-1", "object-2", "object-3"] {
        for place in ["example.com/a", "example.com/a/b", "ghcr.io/kptdev/krm-functions-catalog", "quay.io"] {
            for tag in ["v1", "v1.5", "v2", "v3.1", "main"] {
                let image = Reference::parse(&format!("{place}/{name}:{tag}")).unwrap();
                let found = built.index.executable(&image, None);
                let executable = found.map(|found| (found.value, found.entry, found.tag));
                writeln!(text, "{image} {executable:?} {:?}", built.index.pod(&image)).unwrap();
            }
        }
    }
    let mut verdicts: Vec<_> = built.verdicts.iter().collect();
    verdicts.sort_by_key(|(name, _)| *name);
    write!(text, "{verdicts:?} {:?} {:?}", built.warnings, built.index.warm_ups).unwrap();
    text
}

proptest! {
    #[test]
    fn any_order_of_changes_ends_as_a_fresh_list_does(changes in changes()) {
        let routing = Routing::new(terms());
        let mut objects: Vec<(Arc<str>, Arc<Object>)> = Vec::new();
        let mut last = routing.change(|_| ());
        for change in changes {
            match change {
                Change::Put { name, created, spec } => {
                    let name: Arc<str> = format!("object-{name}").into();
                    let object = object(created, &spec);
                    objects.retain(|(known, _)| *known != name);
                    objects.push((name.clone(), object.clone()));
                    last = routing.change(|sources| drop(sources.objects.insert(name, object)));
                }
                Change::Delete { name } => {
                    let name: Arc<str> = format!("object-{name}").into();
                    objects.retain(|(known, _)| *known != name);
                    last = routing.change(|sources| drop(sources.objects.remove(&name)));
                }
            }
        }
        let fresh = Sources { objects: objects.into_iter().collect(), ..Sources::default() }.build(&terms());
        prop_assert_eq!(seen(&last), seen(&fresh));
    }
}
