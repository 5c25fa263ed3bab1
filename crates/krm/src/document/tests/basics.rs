//! Reading and changing, on texts as people write them.

use crate::{Document, NodeId, Tag, Value};

const LIST: &str = "\
# head
apiVersion: config.kubernetes.io/v1
kind: ResourceList
items:
- apiVersion: apps/v1
  kind: Deployment # the kind
  metadata:
    name: web
    labels: {app: web}
  spec:
    replicas: 2
    # the text
    text: |
      one
      # two

    list:
      - \"a\"
      - b # second
- apiVersion: v1
  kind: Namespace
  metadata:
    name: shop
";

fn item(document: &Document<'_>, at: usize) -> NodeId {
    let items = document.get(document.root(), "items").unwrap();
    document.entries(items).nth(at).unwrap()
}

fn edit(text: &str, change: impl FnOnce(&mut Document<'_>)) -> String {
    let mut document = Document::parse(text).unwrap();
    change(&mut document);
    let out = document.to_text().unwrap();
    Document::parse(&out).unwrap_or_else(|error| panic!("{error}:\n{out}"));
    out
}

#[test]
fn reads() {
    let document = Document::parse(LIST).unwrap();
    let first = item(&document, 0);
    assert_eq!(document.string_at(first, &["metadata", "name"]).unwrap(), "web");
    assert_eq!(document.string_at(first, &["metadata", "labels", "app"]).unwrap(), "web");
    let replicas = document.at(first, &["spec", "replicas"]).unwrap();
    assert_eq!(document.tag(replicas), Some(Tag::Integer));
    assert_eq!(document.string(replicas), None);
    assert_eq!(document.text(replicas).unwrap(), "2");
    let text = document.at(first, &["spec", "text"]).unwrap();
    assert_eq!(document.text(text).unwrap(), "one\n# two\n");
    assert_eq!(document.head_comment(text).unwrap(), "# the text");
    let list = document.at(first, &["spec", "list"]).unwrap();
    assert_eq!(document.len(list), 2);
    assert_eq!(document.head_comment(list), None, "a line of the text before it");
    let second = document.entries(list).nth(1).unwrap();
    assert_eq!(document.line_comment(second).unwrap(), "# second");
    assert_eq!(document.line_comment(document.get(first, "kind").unwrap()).unwrap(), "# the kind");
    assert_eq!(document.line(second), 19);
}

#[test]
fn nothing_changes_without_edits() {
    assert_eq!(edit(LIST, |_| ()), LIST);
}

#[test]
fn changes_scalars() {
    let out = edit(LIST, |document| {
        let first = item(document, 0);
        for (path, text) in [
            (["spec", "text"], "three\nfour\n"),
            (["spec", "replicas"], "many"),
            (["metadata", "name"], "yes"),
        ] {
            let node = document.at(first, &path).unwrap();
            document.set(node, text).unwrap();
        }
        let list = document.at(first, &["spec", "list"]).unwrap();
        for (at, entry) in document.entries(list).collect::<Vec<_>>().into_iter().enumerate() {
            document.set(entry, format!("it's {at}")).unwrap();
        }
    });
    let expected = LIST
        .replace("      one\n      # two\n", "      three\n      four\n")
        .replace("replicas: 2", "replicas: many")
        .replace("name: web", "name: \"yes\"")
        .replace("- \"a\"", "- \"it's 0\"")
        .replace("- b #", "- it's 1 #");
    assert_eq!(out, expected);
}

#[test]
fn adds_fields() {
    let out = edit(LIST, |document| {
        let first = item(document, 0);
        let metadata = document.get(first, "metadata").unwrap();
        document.set_field(metadata, "annotations", Value::strings([("a", "1"), ("b", "x: y")])).unwrap();
        document.set_field(metadata, "namespace", "default").unwrap();
        let labels = document.get(metadata, "labels").unwrap();
        document.set_field(labels, "tier", "on").unwrap();
        let list = document.at(first, &["spec", "list"]).unwrap();
        document.push(list, Value::strings([("k", "v"), ("l", "w")])).unwrap();
        document.push(list, Value::Sequence(vec!["x".into(), 1.into()])).unwrap();
    });
    let expected = LIST
        .replace("    name: web\n", "    name: web\n    namespace: default\n")
        .replace(
            "{app: web}\n",
            "{app: web, tier: \"on\"}\n    annotations:\n      a: \"1\"\n      b: 'x: y'\n",
        )
        .replace("# second\n", "# second\n      - k: v\n        l: w\n      - - x\n        - 1\n");
    assert_eq!(out, expected);
}

#[test]
fn removes() {
    let out = edit(LIST, |document| {
        let first = item(document, 0);
        for path in [["spec", "text"], ["metadata", "labels"]] {
            let node = document.at(first, &path).unwrap();
            document.remove(node);
        }
        let list = document.at(first, &["spec", "list"]).unwrap();
        let entry = document.entries(list).next().unwrap();
        document.remove(entry);
        let api_version = document.get(first, "apiVersion").unwrap();
        document.remove(api_version);
        let second = item(document, 1);
        let name = document.at(second, &["metadata", "name"]).unwrap();
        document.remove(name);
    });
    let expected = LIST
        .replace("    # the text\n    text: |\n      one\n      # two\n", "")
        .replace("    labels: {app: web}\n", "")
        .replace("      - \"a\"\n", "")
        .replace("- apiVersion: apps/v1\n  kind", "- kind")
        .replace("metadata:\n    name: shop\n", "metadata: {}\n");
    assert_eq!(out, expected);
    let all = edit(LIST, |document| {
        let items: Vec<NodeId> = (0..2).map(|at| item(document, at)).collect();
        for item in items {
            document.remove(item);
        }
    });
    assert_eq!(all, "# head\napiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n");
}

#[test]
fn aliases_are_known_until_they_are_something_else() {
    let mut document = Document::parse("a: &x {b: c}\nd: *x\ne: [*x]\n").unwrap();
    let root = document.root();
    let [a, d, e] = ["a", "d", "e"].map(|key| document.get(root, key).unwrap());
    assert_eq!([a, d, e].map(|node| document.is_alias(node)), [false, true, false]);
    assert!(document.is_alias(document.entries(e).next().unwrap()));
    assert!(!document.is_alias(document.get(d, "b").unwrap()));
    document.set(d, "text").unwrap();
    assert!(!document.is_alias(d));
}

#[test]
fn the_text_of_a_scalar_is_as_it_is_written() {
    let text = "a: y\nb: 'it''s'   # c\nc: [\"\\x41\", 014]\nd: |\n    two\n    lines\ne: &x !!str 1\nf: *x\ng:\nh: old\n";
    let mut document = Document::parse(text).unwrap();
    let root = document.root();
    document.set_field(root, "h", "yes").unwrap();
    let written = |path: &str| document.text_of(document.get(root, path).unwrap());
    let found = ["a", "b", "d", "e", "f", "g", "h"].map(written);
    assert_eq!(
        found,
        ["y\n", "'it''s'\n", "|\n  two\n  lines\n", "\"1\"\n", "\"1\"\n", "null\n", "\"yes\"\n"]
    );
    let entries = document.entries(document.get(root, "c").unwrap());
    assert_eq!(entries.map(|entry| document.text_of(entry)).collect::<Vec<_>>(), ["\"\\x41\"\n", "014\n"]);
}
