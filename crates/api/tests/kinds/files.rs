//! Objects in files.

use api::File;
use proptest::prelude::*;

use super::DEFAULT_PREFIX;

fn parse(text: &str) -> File {
    File::parse(text.as_bytes(), DEFAULT_PREFIX)
}

fn problems(text: &str) -> Vec<String> {
    parse(text).problems.iter().map(ToString::to_string).collect()
}

const TWO: &str = "\
# A comment first.
apiVersion: config.porch.kpt.dev/v1alpha1
kind: FunctionConfig
metadata:
  name: one
  creationTimestamp: null
spec:
  image: one
  podExecutor:
    tags: [v1]
status: {}
---
---
apiVersion: config.porch.kpt.dev/v1alpha1
kind: FunctionConfig
metadata: { name: two, namespace: elsewhere }
spec:
  image: two
  binaryExecutor: { path: two, tags: ['1.0'] }
";

#[test]
fn a_file_has_any_number_of_objects() {
    let file = parse(TWO);
    assert_eq!((&file.problems, &file.remarks), (&vec![], &vec![]));
    let objects: Vec<_> = file.objects.iter().map(|object| (&*object.name, object.line)).collect();
    assert_eq!(objects, [("one", 2), ("two", 14)]);
    assert!(file.objects.iter().all(|object| object.rules.is_some()));
    for empty in ["", "\n", "# nothing\n", "---\n---\n", "\u{feff}"] {
        assert_eq!(parse(empty), File::default(), "{empty:?}");
    }
}

#[test]
fn lists_are_opened() {
    let list = "\
apiVersion: v1
kind: List
items:
- apiVersion: config.porch.kpt.dev/v1alpha1
  kind: FunctionConfig
  metadata:
    name: one
  spec:
    image: one
    podExecutor: {}
- apiVersion: v1
  kind: ConfigMap
";
    let file = parse(list);
    assert_eq!(
        file.objects.iter().map(|object| (&*object.name, object.line)).collect::<Vec<_>>(),
        [("one", 4)]
    );
    assert_eq!(
        file.remarks[0].to_string(),
        "line 11: an object of kind \"ConfigMap\" in \"v1\" is passed over"
    );
    let ours = list.replacen("v1\nkind: List", "config.porch.kpt.dev/v1alpha1\nkind: FunctionConfigList", 1);
    assert_eq!(parse(&ours).objects.len(), 1);
    assert_eq!(parse("apiVersion: v1\nkind: List\nitems: 1\n"), File::default());
}

#[test]
fn problems_have_lines() {
    let text = "\
apiVersion: config.porch.kpt.dev/v1alpha1
kind: FunctionConfig
metadata:
  name: one
spec:
  image: one
  prefixes:
    - ''
    - not a prefix
  colour: red
  podExecutor:
    tags:
      - v1
      - 1.5
    timeToLive: 1d
    templateOverrides:
      container:
        env:
          - name: A
          - value: B
  binaryExecutor:
    path: one
";
    let file = parse(text);
    let lines: Vec<_> =
        file.problems.iter().map(|problem| (problem.line.unwrap(), &*problem.cause)).collect();
    for (line, begin) in [
        (21, "FunctionConfig \"one\": spec.binaryExecutor.tags: is missing"),
        (14, "FunctionConfig \"one\": spec.podExecutor.tags[1]: must be text, not 1.5; put it in quotes"),
        (20, "FunctionConfig \"one\": spec.podExecutor.templateOverrides.container.env[1].name: is missing"),
        (9, "FunctionConfig \"one\": spec.prefixes[1]: "),
        (15, "FunctionConfig \"one\": spec.podExecutor.timeToLive: \"1d\": "),
    ] {
        assert!(
            lines.iter().any(|(at, cause)| *at == line && cause.starts_with(begin)),
            "{line} {begin}: {lines:#?}"
        );
    }
    assert_eq!(lines.len(), 5, "{lines:#?}");
    assert_eq!(
        file.unknown[0].to_string(),
        "line 10: FunctionConfig \"one\": spec.colour: is not known to this release"
    );
}

#[test]
fn what_is_no_object_is_told() {
    for (text, expected) in [
        ("just text\n", "line 1: this is no object of Kubernetes"),
        ("a: 1\n---\n- 2\n", "line 1: this is no object of Kubernetes"),
        ("\nkind: FunctionConfig\n", "line 2: this is no object of Kubernetes"),
        ("kind: [FunctionConfig]\napiVersion: v1\n", "line 1: this is no object"),
        (
            "kind: FunctionConfig\napiVersion: config.porch.kpt.dev/v1\n",
            "line 2: apiVersion is \"config.porch.kpt.dev/v1\", of which this release knows nothing; it reads \
             config.porch.kpt.dev/v1alpha1",
        ),
        (
            "kind: FunctionConfig\napiVersion: config.porch.kpt.dev/v1alpha1\nmetadata:\n  name: 1\nspec: {}\n",
            "line 4: metadata.name: is missing, or not text",
        ),
        (
            "kind: FunctionConfig\napiVersion: config.porch.kpt.dev/v1alpha1\n",
            "line 1: metadata.name: is missing",
        ),
        (
            "kind: FunctionConfig\napiVersion: config.porch.kpt.dev/v1alpha1\nmetadata: {name: f}\n",
            "line 1: FunctionConfig \"f\": spec: is missing",
        ),
        ("a: 1\n b: 2\n", "line 2: "),
        ("a: 1\nb: [1\n", "line "),
        ("a: 1\na: 2\n", "line 2: "),
        ("a: *nobody\n", "line 1: "),
        ("? [complex]\n: key\n", "line 1: "),
    ] {
        let problems = problems(text);
        assert!(problems[0].starts_with(expected), "{text:?}: {problems:?}");
    }
    let file = File::parse(b"a: 1\n# \xff\n", DEFAULT_PREFIX);
    assert_eq!(file.problems[0].to_string(), "line 2: it is not text in UTF-8");
    // As are those of other groups that are called alike.
    let other = parse("kind: FunctionConfig\napiVersion: example.com/v1\n");
    assert!(other.problems.is_empty() && other.remarks.len() == 1);
}

#[test]
fn hostile_files_are_survived() {
    let deep = "[".repeat(100_000);
    let circle = "apiVersion: v1\nkind: List\nitems: &a [*a]\n".to_owned();
    let bomb = format!(
        "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n{}",
        (1..12).fold(String::new(), |text, level| {
            let below = format!("*a{},", level - 1).repeat(10);
            format!("{text}a{level}: &a{level} [{below}]\n")
        })
    );
    let nested = (0..2000).fold(String::new(), |text, depth| {
        let indent = " ".repeat(depth);
        format!("{text}{indent}- apiVersion: v1\n{indent}  kind: List\n{indent}  items:\n")
    });
    for text in [deep, bomb, circle, "apiVersion: v1\nkind: List\nitems:\n".to_owned() + &nested] {
        let problems = problems(&text);
        assert!(problems.iter().all(|problem| problem.len() < 1000));
    }
}

proptest! {
    #[test]
    fn any_bytes_are_survived(content in prop::collection::vec(any::<u8>(), 0..200)) {
        File::parse(&content, DEFAULT_PREFIX);
    }

    #[test]
    fn a_damaged_file_is_told_or_read(at in 0..TWO.len(), with in "[ \\-:{}\\[\\]a1'\"#&*\n]{0,3}") {
        let damaged = format!("{}{with}{}", &TWO[..at], &TWO[(at + 1).min(TWO.len())..]);
        let file = parse(&damaged);
        for problem in file.problems.iter().chain(&file.unknown).chain(&file.remarks) {
            prop_assert!(problem.line.is_none_or(|line| line >= 1 && line <= damaged.lines().count() as u64 + 1));
        }
    }
}
