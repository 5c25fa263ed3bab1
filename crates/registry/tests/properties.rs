//! What holds for every text and every reference.

use proptest::prelude::*;
use registry::Reference;

/// The parts of a valid reference that needs no normalisation.
fn parts() -> impl Strategy<Value = (String, String, Option<String>, Option<String>)> {
    let registry = prop_oneof![
        "[a-zA-Z0-9]{1,6}(-{1,2}[a-z0-9]{1,3})?\\.[a-z]{1,5}(:[0-9]{1,5})?",
        "[a-z]{1,6}:[0-9]{1,5}",
        "\\[[0-9a-fA-F]{0,4}:[0-9a-fA-F:]{1,12}\\](:[0-9]{1,5})?",
        "[0-9]{1,3}(\\.[0-9]{1,3}){3}",
        "localhost",
        "[A-Z][a-z]{0,4}",
    ];
    let registry = registry.prop_filter("is not normalised", |name| !name.ends_with("docker.io"));
    let component = "[a-z0-9]{1,5}((\\.|_|__|-{1,4})[a-z0-9]{1,4}){0,3}";
    let repository = prop::collection::vec(component, 1..5).prop_map(|parts| parts.join("/"));
    let tag = prop::option::of("[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}");
    let digest = prop::option::of("sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}");
    (registry, repository, tag, digest)
}

fn join(name: &str, tag: Option<&str>, digest: Option<&str>) -> String {
    let tag = tag.map(|tag| format!(":{tag}")).unwrap_or_default();
    let digest = digest.map(|digest| format!("@{digest}")).unwrap_or_default();
    format!("{name}{tag}{digest}")
}

/// Texts of the characters references are made of, so that many are nearly right.
fn nearly() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-cA0._:/@-]{0,24}",
        2 => "(\\[|[a-z]{1,4}[.:/])?[a-z0-9:]{0,6}\\]?(:[0-9]{0,3})?(/[a-z._-]{0,4}){0,3}(:[a-z.]{0,4})?(@sha256:[0-9a-g]{63,65})?",
        1 => any::<String>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics(text in nearly(), prefix in nearly()) {
        for (given, result) in [
            (&text, Reference::parse(&text)),
            (&text, Reference::parse_with_prefix(&text, &prefix)),
        ] {
            match result {
                Ok(reference) => {
                    prop_assert!(reference.as_given().ends_with(given.as_str()));
                    // The normalised text and the key are references that are normalised already.
                    let again = Reference::parse(&reference.normalised()).unwrap();
                    prop_assert_eq!(again.normalised(), reference.normalised());
                    prop_assert_eq!(again.key(), reference.key());
                    let by_key = Reference::parse(reference.key().as_str()).unwrap();
                    prop_assert_eq!(by_key.key(), reference.key());
                    prop_assert_eq!(by_key.normalised(), by_key.as_given());
                }
                Err(error) => {
                    let message = error.to_string();
                    prop_assert!(!message.chars().any(char::is_control), "{:?}", message);
                }
            }
        }
    }

    #[test]
    fn every_valid_reference_is_taken_apart_and_prints_back((registry, repository, tag, digest) in parts()) {
        let text = join(&format!("{registry}/{repository}"), tag.as_deref(), digest.as_deref());
        let reference = Reference::parse(&text).unwrap();
        prop_assert_eq!(reference.registry(), registry);
        prop_assert_eq!(reference.repository(), &repository);
        prop_assert_eq!(Some(reference.name()), repository.rsplit('/').next());
        prop_assert_eq!(reference.tag(), tag.as_deref());
        prop_assert_eq!(reference.digest(), digest.as_deref());
        prop_assert_eq!(reference.normalised(), text.as_str());
        prop_assert_eq!(reference.as_given(), text);
    }

    #[test]
    fn a_changed_tag_changes_nothing_else((registry, repository, tag, digest) in parts(), other in "[a-z0-9]{1,9}") {
        let name = format!("{registry}/{repository}");
        let reference = Reference::parse(&join(&name, tag.as_deref(), digest.as_deref())).unwrap();
        let changed = reference.with_tag(&other).unwrap();
        prop_assert_eq!(changed.as_given(), join(&name, Some(&other), None));
        prop_assert_eq!(changed.full_name(), reference.full_name());
    }
}
