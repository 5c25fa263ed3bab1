//! Inputs made to do harm, for every function: the answer comes, it is a clear error or a list that can be
//! read, and nothing panics. Whatever would take more than memory or time in proportion does not end here.
#![allow(clippy::unwrap_used, clippy::format_collect, reason = "helpers of tests")]

use std::fmt::Write as _;

use functions::{Function, Outcome};
use krm::{Document, NodeId, Value};

const HEAD: &str = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n";

const RESOURCE: &str = "\
- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: web
  spec:
    replicas: 4 # kpt-set: ${nginx-replicas}
    template:
      spec:
        containers:
        - name: nginx
          image: nginx:1.16.1
";

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

/// A list with the function's own example as its configuration.
fn list(function: &Function, items: &str) -> String {
    format!("{HEAD}functionConfig:\n{}items:\n{items}", indented(function.example))
}

/// Runs a function. Whatever it is given, it says what is wrong or leaves a list of which a reader finds the
/// same number of resources or more, and makes no more of its input than some MiB.
#[track_caller]
fn run(function: &Function, what: &str, input: &[u8]) -> Outcome {
    let outcome = function.run(input, &krm::Budget::default());
    let name = function.name;
    let limit = 64 * input.len() + (1 << 20);
    assert!(outcome.output.len() <= limit, "{name}, {what}: {} bytes of output", outcome.output.len());
    assert!(outcome.stderr.len() <= limit, "{name}, {what}: {} bytes on stderr", outcome.stderr.len());
    if outcome.output.is_empty() {
        assert!(!outcome.succeeded, "{name}, {what}: succeeded without output");
    } else {
        let read = Document::parse_bytes(&outcome.output);
        assert!(read.is_ok(), "{name}, {what}: {:?}", read.err());
        krm::inspect(&outcome.output).unwrap();
    }
    if !outcome.succeeded {
        let says = !outcome.stderr.trim().is_empty()
            || outcome.results.iter().any(|result| !result.message.is_empty());
        assert!(says, "{name}, {what}: failed without a word");
    }
    outcome
}

#[test]
fn inputs_that_cannot_be_read() {
    let mut laughs = "- a0: &a0 [lol, lol]\n".to_owned();
    for level in 1..50 {
        let below = level - 1;
        let _ = writeln!(laughs, "  a{level}: &a{level} [*a{below}, *a{below}, *a{below}, *a{below}]");
    }
    let deep = format!("- a: {}{}\n", "[".repeat(10_000), "]".repeat(10_000));
    let deeper = (0..10_000).fold("- ".to_owned(), |mut text, at| {
        let _ = write!(text, "a:\n{}", " ".repeat(at % 900 + 3));
        text
    });
    let key = format!("- {}: v\n", "k".repeat(70_000));
    let quoted_key = format!("- \"{}\": v\n", "k".repeat(70_000));
    let cases: &[(&str, &[u8], &str)] = &[
        ("billion laughs", laughs.as_bytes(), "the aliases up to here stand for more than "),
        ("nested lists", deep.as_bytes(), "nested"),
        ("nested dashes", format!("- {}a\n", "- ".repeat(10_000)).leak().as_bytes(), "nested"),
        ("nested mappings", deeper.as_bytes(), "line "),
        ("open brackets", format!("- a: {}\n", "[".repeat(6 << 20)).leak().as_bytes(), "nested"),
        ("open braces", format!("- a: {}\n", "{".repeat(6 << 20)).leak().as_bytes(), "nested"),
        ("pairs of brackets", "[]".repeat(3 << 20).leak().as_bytes(), "line "),
        ("a field twice", b"- a: 1\n  a: 2\n", "the field \"a\" is there already"),
        ("a field twice, quoted", b"- a: 1\n  \"\\x61\": 2\n", "the field \"a\" is there already"),
        ("a field twice in brackets", b"- {a: 1, 'a': 2}\n", "the field \"a\" is there already"),
        ("a tab", b"- a: 1\n\tb: 2\n", "found a tab"),
        ("an alias in itself", b"- &a [*a]\n", "the alias stands for something that contains it"),
        ("an alias of nothing", b"- a: *b\n", "line "),
        ("a long key", key.as_bytes(), "line "),
        ("a long key in quotes", quoted_key.as_bytes(), "line "),
        ("bytes that are no text", b"- a: \xFF\xFE\n", "not valid UTF-8"),
        ("half a letter", b"- a: \xC3\n", "not valid UTF-8"),
        ("an open quote", b"- a: \"b\n", "line "),
        ("two documents", b"- a: 1\n---\nb: 2\n", "line "),
        ("items that are texts", b"- a\n- b\n", "expected a mapping, found a scalar"),
        ("items that are lists", b"- [a]\n", "expected a mapping, found a sequence"),
        ("items that are null", b"-\n", "expected a mapping, found a scalar"),
        ("items that are numbers", b"- a: b\n- 1\n", "expected a mapping, found a scalar"),
        ("items that are a mapping", b"  a: b\n", "expected a sequence, found a mapping"),
        ("items that are a text", b"  a\n", "expected a sequence, found a scalar"),
    ];
    for function in functions::all() {
        for (what, items, problem) in cases {
            let input = [list(function, "").as_bytes(), items].concat();
            let outcome = run(function, what, &input);
            let start = "failed to evaluate function: failed ";
            assert!(
                !outcome.succeeded
                    && outcome.output.is_empty()
                    && outcome.stderr.starts_with(start)
                    && outcome.stderr.contains(problem)
                    && outcome.stderr.len() < 1_000,
                "{}, {what}: {}",
                function.name,
                outcome.stderr
            );
        }
    }
}

#[test]
fn inputs_that_are_no_list() {
    for function in functions::all() {
        for (what, input) in [
            ("another kind", "kind: Pod\n"),
            ("no kind", "a: b\n"),
            ("a text", "hello\n"),
            ("a list", "- a\n"),
            ("a number for the kind", "kind: 5\n"),
        ] {
            let outcome = run(function, what, input.as_bytes());
            assert!(
                !outcome.succeeded && outcome.stderr.contains("expected ResourceList"),
                "{}",
                outcome.stderr
            );
        }
        // As little as a function can be given; what it says then is its own.
        for (what, input) in
            [("nothing", ""), ("blank", " \n\n"), ("a comment", "# hello\n"), ("null", "---\n")]
        {
            run(function, what, input.as_bytes());
        }
    }
}

/// What a value of a configuration may be by mistake or malice.
fn wrong_values() -> Vec<Value> {
    let deep = (0..300).fold(Value::string("x"), |value, _| Value::Sequence(vec![value]));
    vec![
        Value::null(),
        Value::plain("true"),
        Value::plain("-1"),
        Value::plain("99999999999999999999999"),
        Value::plain(".nan"),
        Value::string(""),
        Value::string("a\nb: c\n---\nd: [\n"),
        Value::string("\u{0}\u{7f}\u{85}\u{2028}\u{feff}"),
        Value::string("((((a{1000}){1000}){1000})"),
        Value::string("[a, b"),
        Value::string("${a}${b}$${}{}"),
        Value::string("x".repeat(100_000)),
        Value::Sequence(Vec::new()),
        Value::Sequence(vec![Value::null(), Value::string("a"), Value::mapping()]),
        Value::mapping(),
        Value::strings([("a", "b"), ("", ""), ("name", "x"), ("\n", "\n")]),
        Value::Mapping(vec![("a".to_owned(), Value::Sequence(vec![Value::mapping()]))]),
        deep,
    ]
}

/// Every value of each function's example is replaced by each of them.
#[test]
fn configurations_of_every_wrong_shape() {
    fn all(document: &Document<'_>, node: NodeId, nodes: &mut Vec<NodeId>) {
        nodes.push(node);
        for child in document.children(node) {
            all(document, child, nodes);
        }
    }
    for function in functions::all() {
        let text = list(function, RESOURCE);
        let original = Document::parse(&text).unwrap();
        let mut nodes = Vec::new();
        all(&original, original.get(original.root(), "functionConfig").unwrap(), &mut nodes);
        for node in nodes {
            for value in wrong_values() {
                let mut document = Document::parse(&text).unwrap();
                document.set(node, value.clone()).unwrap();
                let input = document.to_text().unwrap();
                let what =
                    format!("{:?} for {:?}", value.text().unwrap_or("a collection"), original.key(node));
                let what: String = what.chars().take(200).collect();
                run(function, &what, input.as_bytes());
            }
            let mut document = Document::parse(&text).unwrap();
            document.remove(node);
            run(function, "a value that is missing", document.to_text().unwrap().as_bytes());
        }
    }
}

/// The same of the resource that the functions work on.
#[test]
fn resources_of_every_wrong_shape() {
    let wrong = wrong_values();
    for function in functions::all() {
        let text = list(function, RESOURCE);
        let original = Document::parse(&text).unwrap();
        let items = original.get(original.root(), "items").unwrap();
        let item = original.entries(items).next().unwrap();
        let paths: &[&[&str]] = &[
            &["apiVersion"],
            &["kind"],
            &["metadata"],
            &["metadata", "name"],
            &["spec"],
            &["spec", "replicas"],
            &["spec", "template"],
            &["spec", "template", "spec", "containers"],
        ];
        for path in paths {
            for value in &wrong {
                let mut document = Document::parse(&text).unwrap();
                document.set(document.at(item, path).unwrap(), value.clone()).unwrap();
                run(function, &format!("an odd {path:?}"), document.to_text().unwrap().as_bytes());
            }
        }
        for field in ["namespace", "labels", "annotations"] {
            for value in &wrong {
                let mut document = Document::parse(&text).unwrap();
                let metadata = document.at(item, &["metadata"]).unwrap();
                document.set_field(metadata, field, value.clone()).unwrap();
                run(function, &format!("an odd {field}"), document.to_text().unwrap().as_bytes());
            }
        }
    }
}

/// A text with line breaks stays one text: it adds no field and no document.
#[test]
fn names_with_line_breaks() {
    let name = "\"a\\n  namespace: evil\\n---\\nkind: Secret\\n\"";
    for function in functions::all() {
        let items = RESOURCE.replace("name: web", &format!("name: {name}"));
        let outcome = run(function, "a name with line breaks", list(function, &items).as_bytes());
        let output = String::from_utf8(outcome.output).unwrap();
        let document = Document::parse(&output).unwrap();
        let items = document.get(document.root(), "items").unwrap();
        for item in document.entries(items) {
            assert_ne!(document.string_at(item, &["kind"]).as_deref(), Some("Secret"), "{output}");
            let namespace = document.string_at(item, &["metadata", "namespace"]);
            assert_ne!(namespace.as_deref(), Some("evil"), "{}: {output}", function.name);
        }
    }
}

/// Lists that can be read, with very much of something in them.
#[test]
fn large_lists() {
    let keys: String = (0..50_000).map(|at| format!("    k{at}: nginx\n")).collect();
    let comments = format!("- kind: A # {}\n{}", "x".repeat(1 << 20), "  # c\n".repeat(50_000));
    let cases = [
        (
            "a wide mapping",
            format!(
                "{RESOURCE}- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: a\n  data:\n{keys}"
            ),
        ),
        (
            "wide labels",
            format!("- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n   name: a\n   labels:\n{keys}"),
        ),
        ("long key", format!("{RESOURCE}  {}: v\n", "k".repeat(65_000))),
        ("long text", format!("{RESOURCE}  text: {}\n", "nginx ".repeat(1 << 19))),
        ("long comments", comments),
        ("nested to the limit", format!("{RESOURCE}  deep: {}{}\n", "[".repeat(490), "]".repeat(490))),
        ("many aliases", format!("{RESOURCE}  a: &a [nginx]\n  b: [{}]\n", "*a, ".repeat(20_000))),
        ("empty items", "- {}\n".repeat(50_000)),
        ("the same item", RESOURCE.repeat(2_000)),
    ];
    for function in functions::all() {
        for (what, items) in &cases {
            run(function, what, list(function, items).as_bytes());
        }
    }
}
