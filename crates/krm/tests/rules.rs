//! What is a `ResourceList`, what is not, and what is read from it.

use krm::{FunctionResult, Malformed, ResourceRef, Summary, inspect};

type Check = Box<dyn Fn(&Malformed) -> bool>;

fn read(text: &str) -> Result<Summary, Malformed> {
    inspect(text.as_bytes())
}

#[track_caller]
fn accepted(text: &str) -> Summary {
    let answer = read(text);
    assert!(answer.is_ok(), "{answer:?} of {text:?}");
    answer.unwrap_or_default()
}

#[track_caller]
fn messages(text: &str) -> Vec<String> {
    accepted(text).results.into_iter().map(|result| result.message).collect()
}

#[test]
fn lists_of_every_style_are_accepted() {
    for text in [
        "kind: ResourceList",
        "kind: ResourceList\n",
        "kind: ResourceList # the kind\n",
        "kind: \"ResourceList\"\n",
        "kind: 'ResourceList'\n",
        "\"kind\": ResourceList\n",
        "'kind': ResourceList\n",
        "kind: \"Resource\\x4cist\"\n",
        "\"k\\x69nd\": ResourceList\n",
        "kind:\n  ResourceList\n",
        "kind:   ResourceList   \n",
        "kind: |-\n  ResourceList\n",
        "kind: >-\n  ResourceList\n",
        "kind: !!str ResourceList\n",
        "kind: &kind ResourceList\n",
        "a: &a ResourceList\nkind: *a\n",
        "a: &a kind\n*a : ResourceList\n",
        "? kind\n: ResourceList\n",
        "items:\n- kind: Other\nkind: ResourceList\n",
        "items:\n  - kind: Other\n    items: [{kind: Other}]\nkind: ResourceList\n",
        "? [complex, key]\n: value\n? {a: b}\n: value\nkind: ResourceList\n",
        "  kind: ResourceList\n  items: []\n",
        "{kind: ResourceList, items: []}\n",
        "{\n  kind: ResourceList, # comment\n  items: [],\n}\n",
        "{\"items\":[{\"kind\":\"Other\"}],\"kind\":\"ResourceList\"}",
        "{\n\t\"kind\": \"ResourceList\",\n\t\"items\": [\n\t\t{}\n\t]\n}\n",
        " \n {\"kind\": \"ResourceList\"}\n\n",
        "---\nkind: ResourceList\n",
        "--- # start\nkind: ResourceList\n",
        "--- {kind: ResourceList}\n",
        "# comment\n\n---\nkind: ResourceList\n",
        "%YAML 1.2\n---\nkind: ResourceList\n",
        "%YAML 1.1\n%TAG ! tag:example.com,2000:\n---\nkind: ResourceList\n...\n",
        "kind: ResourceList\n...\n",
        "kind: ResourceList\n---\n",
        "kind: ResourceList\n---\n# nothing\n---\n...\n",
        "---\n---\nkind: ResourceList\n",
        "# only a comment\n---\n# another\n---\nkind: ResourceList\n",
        "\u{FEFF}kind: ResourceList\n",
        "\u{FEFF}{\"kind\": \"ResourceList\"}",
        "\u{FEFF}---\nkind: ResourceList\n",
        "kind: ResourceList\r\nitems:\r\n- kind: A\r\n",
        "kind: ResourceList\ritems: []\r",
        "kind: ResourceList\nitems:\n- a: one\n    two\n  b: \"three\n    four\"\n",
        "kind: ResourceList\nitems: *a\n".replace("*a", "[&b {c: d}, *b]").as_str(),
    ] {
        assert_eq!(accepted(text), Summary::default(), "{text:?}");
    }
}

#[test]
fn long_single_lines_of_json_are_accepted() {
    let item = "{\"kind\":\"ConfigMap\",\"data\":{\"a\":\"x y: z # \\\"'\"}},";
    let items = item.repeat(50_000);
    let text = format!(
        "{{\"items\":[{}],\"kind\":\"ResourceList\",\"results\":[{{\"message\":\"m\"}}]}}",
        items.trim_end_matches(',')
    );
    assert_eq!(messages(&text), ["m"]);
    // The same with a comment, which only the full parser reads.
    assert_eq!(messages(&format!("{text} # done")), ["m"]);
}

#[test]
fn what_is_no_list_is_told_apart() {
    let yaml = |line, column| move |error: &Malformed| matches!(error, Malformed::Yaml { line: l, column: c, .. } if (*l, *c) == (line, column));
    let is = |expected: Malformed| move |error: &Malformed| *error == expected;
    let wrong = |kind: &str| is(Malformed::WrongKind { kind: kind.into() });
    let twice = |key: &str, line| is(Malformed::DuplicateField { key: key.into(), line });
    let cases: Vec<(&str, Check)> = vec![
        ("", Box::new(is(Malformed::Empty))),
        (" \n\n", Box::new(is(Malformed::Empty))),
        ("# nothing\n---\n---\n...\n", Box::new(is(Malformed::Empty))),
        ("\u{FEFF}", Box::new(is(Malformed::Empty))),
        ("hello", Box::new(is(Malformed::NotAMapping { found: "a bare text" }))),
        ("null", Box::new(is(Malformed::Empty))),
        ("- kind: ResourceList\n", Box::new(is(Malformed::NotAMapping { found: "a list" }))),
        ("[{\"kind\": \"ResourceList\"}]", Box::new(is(Malformed::NotAMapping { found: "a list" }))),
        ("{}", Box::new(is(Malformed::KindMissing))),
        ("items: []\n", Box::new(is(Malformed::KindMissing))),
        ("kind:\nitems: []\n", Box::new(is(Malformed::KindMissing))),
        ("{\"kind\": null}", Box::new(is(Malformed::KindMissing))),
        ("kind: ~\n", Box::new(is(Malformed::KindMissing))),
        ("kind: \"\"\n", Box::new(wrong(""))),
        ("kind: \"null\"\n", Box::new(wrong("null"))),
        ("kind: Deployment\n", Box::new(wrong("Deployment"))),
        ("kind: resourcelist\n", Box::new(wrong("resourcelist"))),
        ("kind: ResourceList2\n", Box::new(wrong("ResourceList2"))),
        ("kind: ResourceList\n  more\n", Box::new(wrong("ResourceList more"))),
        ("{\"kind\": \"Deployment\"}", Box::new(wrong("Deployment"))),
        ("{\"kind\": 1}", Box::new(wrong("1"))),
        ("kind: [ResourceList]\n", Box::new(is(Malformed::KindNotText { found: "a list" }))),
        ("kind: {a: ResourceList}\n", Box::new(is(Malformed::KindNotText { found: "a mapping" }))),
        ("kind:\n  a: b\n", Box::new(is(Malformed::KindNotText { found: "a mapping" }))),
        ("a: &a [b]\nkind: *a\n", Box::new(is(Malformed::KindNotText { found: "an alias to a collection" }))),
        ("kind: ResourceList\nkind: ResourceList\n", Box::new(twice("kind", 2))),
        ("kind: ResourceList\nitems: []\n\"items\":\n- a\n", Box::new(twice("items", 3))),
        ("kind: ResourceList\nresults: []\nresults: []\n", Box::new(twice("results", 3))),
        ("{\"kind\": \"ResourceList\",\n\"a\": 1,\n\"\\u0061\": 1}", Box::new(twice("a", 3))),
        (
            "kind: ResourceList\n---\nkind: ResourceList\n",
            Box::new(is(Malformed::SeveralDocuments { line: 3 })),
        ),
        ("kind: Deployment\n---\nkind: Service\n", Box::new(is(Malformed::SeveralDocuments { line: 3 }))),
        ("kind: ResourceList\n...\nmore\n", Box::new(is(Malformed::SeveralDocuments { line: 3 }))),
        ("kind: ResourceList\nhello\n", Box::new(yaml(2, 1))),
        ("kind: ResourceList\nitems: [\n", Box::new(|error| matches!(error, Malformed::Yaml { .. }))),
        (
            "kind: ResourceList\nitems:\n- a: b\n c: d\n",
            Box::new(|error| matches!(error, Malformed::Yaml { line: 4, .. })),
        ),
        (
            "kind: ResourceList\nitems: a: b\n",
            Box::new(|error| matches!(error, Malformed::Yaml { line: 2, .. })),
        ),
        (
            "kind: ResourceList\nitems:\n\t- a\n",
            Box::new(|error| matches!(error, Malformed::Yaml { line: 3, .. })),
        ),
        (
            "kind: ResourceList\nitems: \"\\q\"\n",
            Box::new(|error| matches!(error, Malformed::Yaml { line: 2, .. })),
        ),
        (
            "kind: ResourceList\nitems: *nowhere\n",
            Box::new(|error| matches!(error, Malformed::Yaml { line: 2, .. })),
        ),
        (
            "kind: ResourceList\nitems: \0\n",
            Box::new(|error| matches!(error, Malformed::Yaml { line: 2, .. })),
        ),
        ("k\0i\0n\0d\0", Box::new(|error| matches!(error, Malformed::Yaml { line: 1, .. }))),
        (
            "{\"kind\": \"ResourceList\"} trailing",
            Box::new(|error| matches!(error, Malformed::TrailingGarbage { line: 1, .. })),
        ),
        (
            "{\"kind\": \"ResourceList\"}\ndone: yes\n",
            Box::new(|error| matches!(error, Malformed::TrailingGarbage { line: 2, .. })),
        ),
        ("{\"kind\": \"ResourceList\"}}", Box::new(|error| matches!(error, Malformed::Yaml { line: 1, .. }))),
        (
            "{\"kind\": \"ResourceList\"}\n{\"kind\": \"ResourceList\"}\n",
            Box::new(|error| matches!(error, Malformed::TrailingGarbage { line: 2, .. })),
        ),
    ];
    for (text, check) in cases {
        let error = read(text).expect_err(text);
        assert!(check(&error), "{text:?} gave {error:?}");
    }
}

#[test]
fn other_encodings_are_named() {
    let text = "kind: ResourceList\n";
    let little: Vec<u8> =
        [0xFEFF].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = [0xFEFF].into_iter().chain(text.encode_utf16()).flat_map(u16::to_be_bytes).collect();
    assert_eq!(inspect(&little), Err(Malformed::OtherEncoding { encoding: "UTF-16" }));
    assert_eq!(inspect(&big), Err(Malformed::OtherEncoding { encoding: "UTF-16" }));
    assert_eq!(inspect(b"\xFF\xFE\0\0k\0\0\0"), Err(Malformed::OtherEncoding { encoding: "UTF-32" }));
    assert_eq!(inspect(b"\0\0\xFE\xFF\0\0\0k"), Err(Malformed::OtherEncoding { encoding: "UTF-32" }));
    assert_eq!(inspect(b"kind: ResourceList\na: \xC3\x28\n"), Err(Malformed::NotUtf8 { byte: 22, line: 2 }));
    assert_eq!(inspect(b"kind: ResourceList\n\xE2\x82"), Err(Malformed::NotUtf8 { byte: 19, line: 2 }));
}

#[test]
fn errors_speak_to_people() {
    let text = |output: &str| read(output).unwrap_err().to_string();
    assert_eq!(text(""), "the output is empty: the function must write one ResourceList to its stdout");
    assert_eq!(text("kind: Pod"), "the output's kind is \"Pod\", not ResourceList");
    assert_eq!(text("kind: \"a\\nb\""), "the output's kind is \"a\\nb\", not ResourceList");
    assert!(text("kind: ResourceList\na b").starts_with("the output is not valid YAML at line 2 column 1: "));
    assert!(
        text("{\"kind\": \"ResourceList\"} x")
            .starts_with("the output goes on after its ResourceList at line 1 column 26: ")
    );
}

#[test]
fn api_versions_are_read() {
    for (text, version, known) in [
        ("apiVersion: config.kubernetes.io/v1\n", Some("config.kubernetes.io/v1"), true),
        ("apiVersion: 'config.kubernetes.io/v1beta1' # old\n", Some("config.kubernetes.io/v1beta1"), true),
        ("apiVersion: config.kubernetes.io/v1alpha1\n", Some("config.kubernetes.io/v1alpha1"), false),
        ("apiVersion: v1\n", Some("v1"), false),
        ("apiVersion: 1\n", Some("1"), false),
        ("apiVersion: \"\"\n", Some(""), false),
        ("apiVersion: \"null\"\n", Some("null"), false),
        ("a: &a config.kubernetes.io/v1\napiVersion: *a\n", Some("config.kubernetes.io/v1"), true),
        ("apiVersion: null\n", None, false),
        ("apiVersion:\n", None, false),
        ("apiVersion: [v1]\n", None, false),
        ("", None, false),
    ] {
        for text in [format!("{text}kind: ResourceList\n"), format!("kind: ResourceList\n{text}")] {
            let summary = accepted(&text);
            assert_eq!(summary.api_version.as_deref(), version, "{text:?}");
            assert_eq!(summary.has_known_api_version(), known, "{text:?}");
        }
    }
    let json = "{\"kind\":\"ResourceList\",\"apiVersion\":\"config.kubernetes.io\\/v1\"}";
    assert!(accepted(json).has_known_api_version());
}

#[test]
fn results_are_read_in_every_shape() {
    for results in [
        "results:\n- message: a\n- message: b\n",
        "results:\n  - message: a\n  - message: b\n",
        "results:\n-\n  message: a\n-\n  message: b\n",
        "results:\n  items:\n  - message: a\n  - message: b\n",
        "results:\n  metadata:\n    name: x\n  items:\n    - message: a\n    - message: b\n  exitCode: 1\n",
        "results: {items: [{message: a}, {message: b}]}\n",
        "results: [{message: a}, {message: b}]\n",
        "results: [{\"message\":\"a\"},\n  {\"message\":\"b\"}]\n",
        "results: # all\n# of them\n- message: a # first\n\n- message: b\n",
        "\"results\":\n- \"message\": a\n- 'message': 'b'\n",
        "x: &b b\nresults:\n- message: a\n- message: *b\n",
        "results: &all\n- message: a\n- &second\n  message: b\n",
        "results: !list\n- !result {message: a}\n- message: b\n",
    ] {
        for text in
            [format!("kind: ResourceList\n{results}"), format!("{results}kind: ResourceList\nitems: []\n")]
        {
            assert_eq!(messages(&text), ["a", "b"], "{text:?}");
        }
    }
    for results in [
        "",
        "results:\n",
        "results: []\n",
        "results: {}\n",
        "results: null\n",
        "results: text\n",
        "results: |\n  a\n",
    ] {
        let text = format!("kind: ResourceList\n{results}items: []\n");
        assert_eq!(accepted(&text), Summary::default(), "{text:?}");
    }
    assert_eq!(
        messages("{\"results\": {\"items\": [{\"message\": \"a\"}]}, \"kind\": \"ResourceList\"}"),
        ["a"]
    );
}

#[test]
fn messages_are_read_in_every_scalar_style() {
    for (message, expected) in [
        ("plain text", "plain text"),
        ("plain text\n    on two lines # comment", "plain text on two lines"),
        ("'it''s'", "it's"),
        ("\"tab\\t \\u00e9 \\x41\\\n    joined\"", "tab\t é Ajoined"),
        ("\"two\n\n    lines\"", "two\nlines"),
        ("|\n    one\n      two\n\n    three\n", "one\n  two\n\nthree\n"),
        ("|-\n    one\n    # two", "one\n# two"),
        ("|+\n    one\n", "one\n\n"),
        (">\n    folded\n    text\n\n    more", "folded text\nmore\n"),
        ("|2-\n      indented", "  indented"),
        ("12", "12"),
        ("null", ""),
        ("\"null\"", "null"),
        ("", ""),
        ("{a: b}", ""),
        ("*nothing", ""),
    ] {
        let text = format!(
            "x: &nothing [y]\nkind: ResourceList\nresults:\n- message: {message}\n  severity: info\n"
        );
        let summary = accepted(&text);
        assert_eq!(summary.results.len(), 1, "{text}");
        assert_eq!(summary.results[0].message, expected, "{text}");
        assert_eq!(summary.results[0].severity.as_deref(), Some("info"), "{text}");
    }
}

#[test]
fn whole_results_are_read() {
    let yaml = "\
apiVersion: config.kubernetes.io/v1
kind: ResourceList
items: []
results:
- message: too few replicas
  severity: error
  resourceRef:
    apiVersion: apps/v1
    kind: Deployment
    name: web
    namespace: shop
  field:
    path: spec.replicas
    currentValue: 1
    proposedValue: {a: [b]}
  file:
    path: web.yaml
    index: 0
  tags:
    a: b
  unknown: [1, {message: inner}]
- severity: warning
  resourceRef: {kind: Namespace, name: shop, metadata: {name: other}}
";
    let json = "{\"kind\":\"ResourceList\",\"apiVersion\":\"config.kubernetes.io/v1\",\"results\":[{\"field\":{\"path\":\"spec.replicas\"},\
        \"resourceRef\":{\"namespace\":\"shop\",\"name\":\"web\",\"kind\":\"Deployment\",\"apiVersion\":\"apps/v1\"},\"severity\":\"error\",\
        \"message\":\"too few replicas\"},{\"resourceRef\":{\"name\":\"shop\",\"kind\":\"Namespace\"},\"severity\":\"warning\"}]}";
    let first = FunctionResult {
        severity: Some("error".into()),
        message: "too few replicas".into(),
        resource: Some(ResourceRef {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            namespace: "shop".into(),
            name: "web".into(),
        }),
        field_path: Some("spec.replicas".into()),
    };
    let second = FunctionResult {
        severity: Some("warning".into()),
        resource: Some(ResourceRef {
            kind: "Namespace".into(),
            name: "shop".into(),
            ..ResourceRef::default()
        }),
        ..FunctionResult::default()
    };
    for text in [yaml, json] {
        let summary = accepted(text);
        assert_eq!(summary.results, [first.clone(), second.clone()]);
        assert!(summary.has_error_result());
        assert_eq!(
            summary.render_results(),
            "[error] apps/v1/Deployment/shop/web spec.replicas: too few replicas\n\n[warning] Namespace/shop: "
        );
    }
}

#[test]
fn malformed_results_give_what_is_there() {
    let text = "\
kind: ResourceList
results:
- just a text
- null
- [a, list]
- {}
- message: [not, a, text]
  severity: {not: text}
  resourceRef: not a mapping
  field: not a mapping
- ? [odd, key]
  : value
  message: still read
  severity: 7
  resourceRef: [a]
  field: {path: null}
- *none
"
    .replace("*none", "{message: last, severity: null}");
    let summary = accepted(&text);
    let shown: Vec<String> = summary.results.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["[info]: just a text", "[info]: ", "[info]: ", "[7]: still read", "[info]: last"]);
    assert!(!summary.has_error_result());
    assert_eq!(summary.omitted, 0);
}
