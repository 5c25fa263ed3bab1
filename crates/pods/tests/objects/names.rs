//! Names of pods.

use pods::names::{LONGEST_ID, PodName, parse_id};
use proptest::prelude::*;
use registry::Reference;

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn name(image: &str, digest: &str) -> PodName {
    PodName::new(&Reference::parse(image).unwrap(), digest)
}

#[test]
fn an_id_is_name_tag_slot_and_hash() {
    for (image, id) in [
        ("ghcr.io/kptdev/krm-functions-catalog/set-namespace:v0.4.1", "set-namespace-v041-1-01234567"),
        ("example.com/my_function:v1", "my-function-v1-1-01234567"),
        ("example.com/a.b__c:V1.2_RC", "a-b--c-v12-rc-1-01234567"),
        ("example.com/set-labels", "set-labels-latest-1-01234567"),
        ("example.com:5000/3scale:1", "fn-3scale-1-1-01234567"),
        (&format!("example.com/set-labels@{DIGEST}"), "set-labels-1-01234567"),
        (&format!("example.com/set-labels:v1@{DIGEST}"), "set-labels-v1-1-01234567"),
    ] {
        assert_eq!(name(image, DIGEST).id(1), id, "{image}");
    }
    assert_eq!(name("example.com/f:v1", DIGEST).id(12), "f-v1-12-01234567");
    assert_eq!(name("example.com/f:v1", DIGEST).stem(), "f-v1-*-01234567");
}

#[test]
fn long_names_keep_their_beginning_and_differ() {
    let long = "a".repeat(60);
    let (one, other) =
        (name(&format!("example.com/{long}x:v1"), DIGEST), name(&format!("example.com/{long}y:v1"), DIGEST));
    assert_ne!(one.stem(), other.stem());
    assert!(one.id(1).starts_with(&"a".repeat(33)), "{}", one.id(1));
    assert_eq!(one.id(99_999).len(), LONGEST_ID);
    assert_eq!(one, name(&format!("example.com/{long}x:v1"), DIGEST), "the same every time");
    // More than any cluster has: the name stays a name.
    assert_eq!(one.id(usize::MAX), one.id(99_999));
}

#[test]
fn a_digest_that_is_none_makes_a_name_all_the_same() {
    for digest in ["", "sha256:", "sha256:ABCDEF0123", "sha256:012", "é:ééééééé", "garbage"] {
        let id = name("example.com/f:v1", digest).id(1);
        assert!(is_dns_label(&id), "{id}");
        assert_eq!(parse_id(&id), Some((name("example.com/f:v1", digest).stem(), 1)));
    }
    assert_ne!(name("example.com/f:v1", "").id(1), name("example.com/f:v1", "garbage").id(1));
}

#[test]
fn ids_of_older_releases_have_no_slot() {
    assert_eq!(parse_id("set-namespace-01234567"), Some(("set-namespace-01234567".to_owned(), 0)));
    assert_eq!(parse_id("f-v1-007-01234567"), Some(("f-v1-007-01234567".to_owned(), 0)));
    assert_eq!(parse_id("f-v1-0-01234567"), Some(("f-v1-0-01234567".to_owned(), 0)));
    assert_eq!(parse_id("f-99999999999999999999-01234567").unwrap().1, 0);
}

#[test]
fn what_is_no_id_is_not_taken_for_one() {
    for text in [
        "",
        "-",
        "f",
        "01234567",
        "-01234567",
        "f-0123456",
        "f-0123456g",
        "F-1-01234567",
        "f.g-1-01234567",
        "1f-1-01234567",
    ] {
        assert_eq!(parse_id(text), None, "{text}");
    }
    assert_eq!(parse_id(&format!("{}-1-01234567", "f".repeat(1000))), None);
}

fn is_dns_label(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase();
    let is_inner = |byte: u8| is_letter(byte) || byte.is_ascii_digit() || byte == b'-';
    text.bytes().next().is_some_and(is_letter) && text.bytes().all(is_inner) && !text.ends_with('-')
}

fn image_name() -> impl Strategy<Value = String> {
    "[a-z0-9]{1,20}([._-][a-z0-9]{1,30}){0,4}"
}

fn tag() -> impl Strategy<Value = Option<String>> {
    proptest::option::of("[A-Za-z0-9_][A-Za-z0-9._-]{0,126}")
}

fn image(name: &str, tag: Option<&str>) -> String {
    tag.map_or_else(|| format!("example.com/x/{name}"), |tag| format!("example.com/x/{name}:{tag}"))
}

/// What the contract makes of a name and a tag, without a limit.
fn written_out(name: &str, tag: Option<&str>) -> String {
    let tag = tag.unwrap_or("latest").replace('.', "").replace('_', "-").to_lowercase();
    format!("{}-{tag}", name.replace(['_', '.'], "-"))
}

proptest! {
    #[test]
    fn every_id_is_a_short_label_and_can_be_read_back(
        image_name in image_name(), tag in tag(), digits in "[0-9a-f]{64}", slot in 1_usize..=99_999,
    ) {
        let name = name(&image(&image_name, tag.as_deref()), &format!("sha256:{digits}"));
        let id = name.id(slot);
        prop_assert!(is_dns_label(&id), "{id}");
        prop_assert!(id.len() <= LONGEST_ID, "{id}");
        prop_assert_eq!(parse_id(&id), Some((name.stem(), slot)));
        let (start, end) = (name.stem(), id);
        let (title, hash) = start.split_once('*').unwrap();
        prop_assert!(end.starts_with(title) && end.ends_with(hash));
    }

    #[test]
    fn different_functions_have_different_names(
        one in (image_name(), tag(), "[0-9a-f]{8}"), other in (image_name(), tag(), "[0-9a-f]{8}"),
    ) {
        let stem = |(name_part, tag, hash): &(String, Option<String>, String)| {
            name(&image(name_part, tag.as_deref()), &format!("sha256:{hash}{}", "0".repeat(56))).stem()
        };
        let same = one.2 == other.2
            && written_out(&one.0, one.1.as_deref()) == written_out(&other.0, other.1.as_deref());
        prop_assert_eq!(stem(&one) == stem(&other), same);
    }

    /// Names that differ only where they are cut off.
    #[test]
    fn shortened_names_do_not_fall_together(
        start in "[a-z]{30,60}", one in "[a-z]{1,20}", other in "[a-z]{1,20}",
    ) {
        let stem = |end: &str| name(&image(&format!("{start}-{end}"), Some("v1")), DIGEST).stem();
        prop_assert_eq!(stem(&one) == stem(&other), one == other);
    }

    #[test]
    fn any_text_can_be_asked(text in ".{0,80}") {
        let _ = parse_id(&text);
    }
}
