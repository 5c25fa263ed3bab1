//! References against tables checked with Go's `distribution/reference`, and hostile texts.
#![allow(clippy::panic, reason = "helpers of tests are not seen as tests")]

use std::collections::HashSet;

use registry::{InvalidReference, Problem, Reference};

const SHA256: &str = "sha256:ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff";

fn parse(text: &str) -> Reference {
    Reference::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn error(text: &str) -> InvalidReference {
    match Reference::parse(text) {
        Err(error) => error,
        Ok(reference) => panic!("{text:?} was taken for {reference:?}"),
    }
}

#[test]
fn parts_of_valid_references() {
    // text, registry, repository, tag
    for (text, registry, repository, tag) in [
        ("ubuntu", "docker.io", "library/ubuntu", None),
        ("ubuntu:22.04", "docker.io", "library/ubuntu", Some("22.04")),
        ("ubuntu:5000", "docker.io", "library/ubuntu", Some("5000")),
        ("library/ubuntu", "docker.io", "library/ubuntu", None),
        ("owner/app:V1", "docker.io", "owner/app", Some("V1")),
        ("docker.io/ubuntu", "docker.io", "library/ubuntu", None),
        ("docker.io/owner/app", "docker.io", "owner/app", None),
        ("index.docker.io/ubuntu", "docker.io", "library/ubuntu", None),
        ("index.docker.io/owner/app", "docker.io", "owner/app", None),
        ("registry-1.docker.io/ubuntu", "registry-1.docker.io", "ubuntu", None),
        ("docker.io", "docker.io", "library/docker.io", None),
        ("docker.io:443/ubuntu", "docker.io:443", "ubuntu", None),
        ("localhost", "docker.io", "library/localhost", None),
        ("localhost/app", "localhost", "app", None),
        ("localhost:5000/app:x", "localhost:5000", "app", Some("x")),
        ("registry/app", "docker.io", "registry/app", None),
        ("registry:80/app", "registry:80", "app", None),
        ("Registry/app", "Registry", "app", None),
        ("GHCR.io/app", "GHCR.io", "app", None),
        ("10.0.0.1/app", "10.0.0.1", "app", None),
        ("[::1]/app", "[::1]", "app", None),
        ("[fd00:1:2::3]:75050/a/b:t", "[fd00:1:2::3]:75050", "a/b", Some("t")),
        ("xn--n3h.com/app", "xn--n3h.com", "app", None),
        ("a-b.c/app", "a-b.c", "app", None),
        ("ghcr.io/a/b/c/d/e:v1", "ghcr.io", "a/b/c/d/e", Some("v1")),
        ("ghcr.io/a__b/c_d/e.f/g---h:v1", "ghcr.io", "a__b/c_d/e.f/g---h", Some("v1")),
        ("ghcr.io/a:_x.-", "ghcr.io", "a", Some("_x.-")),
        ("gcr.io/kpt-fn/set-labels:v0.1.5", "gcr.io", "kpt-fn/set-labels", Some("v0.1.5")),
    ] {
        for digest in [None, Some(SHA256), Some(&*format!("sha512:{}", "0a".repeat(64)))] {
            let text = digest.map_or_else(|| text.to_owned(), |digest| format!("{text}@{digest}"));
            let reference = parse(&text);
            assert_eq!(reference.registry(), registry, "{text}");
            assert_eq!(reference.repository(), repository, "{text}");
            assert_eq!(reference.name(), repository.rsplit('/').next().unwrap());
            assert_eq!(reference.full_name(), format!("{registry}/{repository}"));
            assert_eq!(reference.tag(), tag, "{text}");
            assert_eq!(reference.digest(), digest, "{text}");
            assert_eq!(reference.as_given(), text);
            assert_eq!(reference.to_string(), text);
            let expected = digest.map_or_else(
                || format!("{registry}/{repository}:{}", tag.unwrap_or("latest")),
                |digest| format!("{registry}/{repository}@{digest}"),
            );
            assert_eq!(reference.key().as_str(), expected);
        }
    }
}

#[test]
fn what_is_wrong_is_named() {
    let quoted = |text: &str| format!("{text:?}");
    let registry = |text| Problem::Registry(quoted(text));
    let component = |text| Problem::Component(quoted(text));
    let upper = |text| Problem::UpperCase(quoted(text));
    let tag = |text| Problem::Tag(quoted(text));
    let digest = |text| Problem::Digest(quoted(text));
    let character = |character, position| Problem::Character { character, position };
    for (text, problem) in [
        ("", Problem::Empty),
        (" ", character(' ', 0)),
        ("ubuntu ", character(' ', 6)),
        ("ubuntu\n", character('\n', 6)),
        ("a\tb", character('\t', 1)),
        ("a\0", character('\0', 1)),
        ("ghcr.io/ünï", character('ü', 8)),
        ("http://ghcr.io/a", Problem::Scheme(quoted("http://"))),
        ("docker://ubuntu", Problem::Scheme(quoted("docker://"))),
        ("HTTPS://ghcr.io/a:v1", Problem::Scheme(quoted("HTTPS://"))),
        ("-x.io/a", registry("-x.io")),
        ("x-.io/a", registry("x-.io")),
        ("x..io/a", registry("x..io")),
        (".io/a", registry(".io")),
        ("x.io./a", registry("x.io.")),
        ("x_y.io/a", registry("x_y.io")),
        ("x.io:/a", registry("x.io:")),
        ("x.io:8o/a", registry("x.io:8o")),
        ("x.io:80:80/a", registry("x.io:80:80")),
        ("user:secret/a", registry("user:secret")),
        ("[::1/a", registry("[::1")),
        ("[::1]5/a", registry("[::1]5")),
        ("[::g]/a", registry("[::g]")),
        ("::1/a", registry("::1")),
        ("/", Problem::EmptyComponent),
        ("/a", Problem::EmptyComponent),
        ("a/", Problem::EmptyComponent),
        ("x.io/", Problem::EmptyComponent),
        ("x.io//a", Problem::EmptyComponent),
        (":v1", Problem::EmptyComponent),
        ("@", Problem::EmptyComponent),
        ("Ubuntu", upper("Ubuntu")),
        ("ghcr.io/Owner/app", upper("Owner")),
        ("Owner/App", upper("App")),
        ("-a", component("-a")),
        ("a-", component("a-")),
        ("a..b", component("a..b")),
        ("a___b", component("a___b")),
        ("a._b", component("a._b")),
        ("a-_b", component("a-_b")),
        ("x.io/a/.", component(".")),
        ("x.io/../a", component("..")),
        ("[1]/a", component("[1]")),
        ("a+b", component("a+b")),
        ("x.io/a:80/b", component("a:80")),
        ("x.io/a?b", component("a?b")),
        ("a:", tag("")),
        ("a:.b", tag(".b")),
        ("a:-b", tag("-b")),
        ("a:b:c", tag("b:c")),
        ("a:v1+x", tag("v1+x")),
        ("a@", digest("")),
        ("a@sha256:", digest("sha256:")),
        ("a@sha256:abc", digest("sha256:abc")),
        ("a@md5:0123456789abcdef0123456789abcdef", digest("md5:0123456789abcdef0123456789abcdef")),
        ("a@b/c", digest("b/c")),
        ("a@b@c", digest("b@c")),
        ("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", Problem::ImageId),
    ] {
        assert_eq!(error(text).problem(), &problem, "{text:?}");
    }
    for wrong in [
        SHA256.to_uppercase(),
        SHA256.replace("ff", "FF"),
        format!("{SHA256}f"),
        SHA256.replace("256", "512"),
    ] {
        assert_eq!(error(&format!("a@{wrong}")).problem(), &Problem::Digest(quoted(&wrong)));
    }
}

#[test]
fn lengths() {
    let long = "a".repeat(255);
    assert_eq!(parse(&format!("ghcr.io/{long}")).repository(), long);
    assert_eq!(error(&format!("ghcr.io/{long}a")).problem(), &Problem::LongRepository(256));
    // What Docker Hub adds counts.
    assert_eq!(parse(&"a".repeat(247)).repository().len(), 255);
    assert_eq!(error(&"a".repeat(248)).problem(), &Problem::LongRepository(256));
    let tag = "t".repeat(128);
    assert_eq!(parse(&format!("a:{tag}")).tag(), Some(&*tag));
    assert!(matches!(error(&format!("a:{tag}t")).problem(), Problem::Tag(_)));
    // The longest parts fit together.
    let host = format!("{}.io:65535", "h".repeat(250));
    parse(&format!("{host}/{long}:{tag}@sha512:{}", "0".repeat(128)));
}

#[test]
fn huge_texts_fail_with_short_errors() {
    for unit in ["a", "a/", "A", "é", "a:", "@", " ", "://", "\u{1b}", "-"] {
        let text = unit.repeat(10_000_000 / unit.len());
        for error in [error(&text), Reference::parse_with_prefix(&text, "ghcr.io/x").unwrap_err()] {
            let message = error.to_string();
            assert_eq!(error.problem(), &Problem::TooLong(text.len()));
            assert!(message.len() < 1500 && !message.contains('\u{1b}'), "{message}");
        }
    }
    // Just below the bound, the wrong part is shortened as well.
    assert!(error(&"A".repeat(1024)).to_string().len() < 600);
}

#[test]
fn messages_are_for_people() {
    for (text, expected) in [
        (
            "ghcr.io/Owner/app",
            r#"invalid image reference "ghcr.io/Owner/app": the repository part "Owner" has capital letters; write it in lower case; a right one looks like ghcr.io/kptdev/krm-functions-catalog/set-labels:v0.2.0"#,
        ),
        (
            "https://ghcr.io/a",
            r#"invalid image reference "https://ghcr.io/a": it starts with a scheme; leave the "https://" out; a right one looks like ghcr.io/kptdev/krm-functions-catalog/set-labels:v0.2.0"#,
        ),
        (
            "a\nb",
            r#"invalid image reference "a\nb": it contains '\n' (byte 1); no spaces, control or non-ASCII characters are allowed; a right one looks like ghcr.io/kptdev/krm-functions-catalog/set-labels:v0.2.0"#,
        ),
    ] {
        assert_eq!(error(text).to_string(), expected);
    }
    let (_, example) =
        error("").to_string().rsplit_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    parse(&example);
}

#[test]
fn the_default_prefix() {
    let catalog = "ghcr.io/kptdev/krm-functions-catalog";
    let slashed = format!("{catalog}/");
    for prefix in [catalog, &slashed] {
        for text in ["set-labels", "set-labels:v1", &format!("set-labels@{SHA256}")] {
            let reference = Reference::parse_with_prefix(text, prefix).unwrap();
            assert_eq!(reference.as_given(), format!("{catalog}/{text}"));
            assert_eq!(reference.repository(), "kptdev/krm-functions-catalog/set-labels");
        }
        // A slash anywhere in the name means the reference is complete.
        for text in ["owner/app", "localhost:5000/app", "ghcr.io/a/b:v1"] {
            assert_eq!(Reference::parse_with_prefix(text, prefix).unwrap().as_given(), text);
        }
        assert_eq!(Reference::parse_with_prefix("", prefix).unwrap_err().problem(), &Problem::Empty);
    }
    assert_eq!(Reference::parse_with_prefix("ubuntu", "").unwrap().full_name(), "docker.io/library/ubuntu");
    assert_eq!(Reference::parse_with_prefix("app", "owner").unwrap().full_name(), "docker.io/owner/app");
    assert_eq!(Reference::parse_with_prefix("app", "[::1]:5000").unwrap().registry(), "[::1]:5000");
}

#[test]
fn prefixes_are_checked() {
    for prefix in ["", "ghcr.io", "ghcr.io/", "owner", "localhost:5000/a/b", "[::1]:80"] {
        assert_eq!(Reference::check_prefix(prefix), Ok(()), "{prefix}");
    }
    for prefix in
        ["/", "//", "ghcr.io//", "ghcr.io/a:v1", "https://ghcr.io/", "ghcr.io/A", " ", "ghcr.io/a@b"]
    {
        assert!(Reference::check_prefix(prefix).is_err(), "{prefix}");
    }
    assert!(Reference::check_prefix(&"a".repeat(10_000_000)).is_err());
}

#[test]
fn equality_is_of_the_text_and_keys_are_of_the_image() {
    let spellings =
        ["ubuntu", "ubuntu:latest", "library/ubuntu", "docker.io/ubuntu", "index.docker.io/library/ubuntu"];
    let references: HashSet<Reference> = spellings.into_iter().map(parse).collect();
    assert_eq!(references.len(), spellings.len());
    let keys: HashSet<_> = references.iter().map(Reference::key).collect();
    assert_eq!(keys.len(), 1);
    // With a digest the tag says nothing more.
    assert_eq!(parse(&format!("a:v1@{SHA256}")).key(), parse(&format!("a@{SHA256}")).key());
    assert_ne!(parse(&format!("a:v1@{SHA256}")).key(), parse("a:v1").key());
    assert_ne!(parse("a:v1").key(), parse("a:V1").key());
}

#[test]
fn other_tags_and_digests() {
    for text in ["app", "app:v1", &format!("app@{SHA256}"), &format!("app:v1@{SHA256}")] {
        let reference = parse(text);
        assert_eq!(reference.with_tag("v2").unwrap(), parse("app:v2"));
        assert_eq!(reference.with_digest(SHA256).unwrap(), parse(&format!("app@{SHA256}")));
    }
    assert_eq!(parse("localhost:5000/a").with_tag("v2").unwrap().as_given(), "localhost:5000/a:v2");
    for tag in ["", ".x", "a b", "a/b", &format!("v1@{SHA256}"), "a:b", "é"] {
        assert!(matches!(parse("app").with_tag(tag).unwrap_err().problem(), Problem::Tag(_)), "{tag}");
    }
    assert!(matches!(parse("app").with_digest("sha256:0").unwrap_err().problem(), Problem::Digest(_)));
}

#[test]
fn parts_can_be_checked_and_taken_away() {
    let digest = format!("sha256:{}", "a".repeat(64));
    for text in ["ubuntu:v1", "localhost:5000/a/b", "ghcr.io/a/b:v1", &format!("a/b:v1@{digest}")] {
        let (image, bare) = (parse(text), parse(text).without_version());
        assert_eq!((bare.tag(), bare.digest(), bare.full_name()), (None, None, image.full_name()), "{text}");
        assert_eq!(parse(bare.as_given()), bare, "{text}");
    }
    for (registry, is_right) in [
        ("registry.example", true),
        ("registry.example:5000", true),
        ("host", true),
        ("[::1]:5000", true),
        ("", false),
        ("http://registry.example", false),
        ("registry.example/path", false),
        ("*.example", false),
        ("2001:db8::1", false),
        ("registry.example:port", false),
    ] {
        assert_eq!(Reference::check_registry(registry).is_ok(), is_right, "{registry}");
    }
    for (tag, is_right) in
        [("v1", true), ("1.x", true), ("~1", false), ("", false), ("a b", false), (".a", false)]
    {
        assert_eq!(Reference::check_tag(tag).is_ok(), is_right, "{tag}");
    }
}
