//! What is added goes where a careful person would put it; what is removed takes its own with it.

use crate::{Document, NodeId, Value};

fn edit(text: &str, change: impl FnOnce(&mut Document<'_>, NodeId)) -> String {
    let mut document = Document::parse(text).unwrap();
    let root = document.root();
    change(&mut document, root);
    let out = document.to_text().unwrap();
    let again = Document::parse(&out).unwrap_or_else(|error| panic!("{error}:\n{out}"));
    assert_eq!(again.len(again.root()), document.len(root), "{out}");
    out
}

#[test]
fn fields_go_behind_their_siblings() {
    let add = |text: &str| {
        edit(text, |document, root| {
            let metadata = document.get(root, "m").unwrap();
            document.set_field(metadata, "new", Value::strings([("k", "v")])).unwrap();
        })
    };
    for (before, after) in [
        ("m:\n  a: 1 # c\nb: 2\n", "m:\n  a: 1 # c\n  new:\n    k: v\nb: 2\n"),
        (
            "m:\n    a:\n        x: 1\n\n# about b\nb: 2\n",
            "m:\n    a:\n        x: 1\n    new:\n        k: v\n\n# about b\nb: 2\n",
        ),
        ("m:\n  a: 1\n  # foot of m\nb: 2\n", "m:\n  a: 1\n  new:\n    k: v\n  # foot of m\nb: 2\n"),
        (
            "m:\n  a:\n    - 1\n    # foot of a\nb: 2\n",
            "m:\n  a:\n    - 1\n    # foot of a\n  new:\n    k: v\nb: 2\n",
        ),
        ("m:\n  a: |\n    text\n\nb: 2\n", "m:\n  a: |\n    text\n  new:\n    k: v\n\nb: 2\n"),
        ("m:\n  a: |+\n    text\n\nb: 2\n", "m:\n  a: |+\n    text\n\n  new:\n    k: v\nb: 2\n"),
        ("m: {a: 1} # c\nb: 2\n", "m: {a: 1, new: {k: v}} # c\nb: 2\n"),
        ("m: {} # c\nb: 2\n", "m: # c\n  new:\n    k: v\nb: 2\n"),
        ("m: # c\nb: 2\n", "m: # c\n  new:\n    k: v\nb: 2\n"),
        ("m: ~\nb: 2\n", "m:\n  new:\n    k: v\nb: 2\n"),
        ("m:\n  a: 1", "m:\n  a: 1\n  new:\n    k: v"),
        ("m:\r\n  a: 1\r\nb: 2\r\n", "m:\r\n  a: 1\r\n  new:\r\n    k: v\r\nb: 2\r\n"),
        ("{\"m\": {\"a\": 1}, \"b\": 2}", "{\"m\": {\"a\": 1, \"new\": {\"k\": \"v\"}}, \"b\": 2}"),
        (
            "{\n  \"m\": {\n    \"a\": 1\n  }\n}\n",
            "{\n  \"m\": {\n    \"a\": 1,\n    \"new\": {\"k\": \"v\"}\n  }\n}\n",
        ),
        ("m: {\n  a: 1, # c\n  }\n", "m: {\n  a: 1, # c\n  new: {k: v},\n  }\n"),
        ("m: {\n  a: 1 # c\n  }\n", "m: {\n  a: 1, # c\n  new: {k: v}\n  }\n"),
    ] {
        assert_eq!(add(before), after);
    }
}

#[test]
fn a_namespace_goes_behind_the_name() {
    for (before, after) in [
        ("labels: {}\nname: a # c\nother: b\n", "labels: {}\nname: a # c\nnamespace: ns\nother: b\n"),
        ("{name: a, other: b}\n", "{name: a, namespace: ns, other: b}\n"),
        ("other: b\n", "other: b\nnamespace: ns\n"),
    ] {
        assert_eq!(edit(before, |document, root| drop(document.set_field(root, "namespace", "ns"))), after);
    }
}

#[test]
fn entries_are_as_deep_as_others() {
    let add = |text: &str| {
        edit(text, |document, root| {
            let spec = document.get(root, "spec").unwrap();
            document.set_field(spec, "new", Value::Sequence(vec!["x".into()])).unwrap();
        })
    };
    assert_eq!(add("spec:\n  a:\n  - 1\n"), "spec:\n  a:\n  - 1\n  new:\n  - x\n");
    assert_eq!(add("spec:\n  a:\n    - 1\n"), "spec:\n  a:\n    - 1\n  new:\n    - x\n");
    assert_eq!(add("items:\n- a\nspec:\n  a: 1\n"), "items:\n- a\nspec:\n  a: 1\n  new:\n  - x\n");
}

#[test]
fn what_is_removed_takes_its_comments() {
    let remove = |text: &str, path: &[&str]| {
        edit(text, |document, root| {
            let node = document.at(root, path).unwrap();
            document.remove(node);
        })
    };
    let text = "# top\n\n# about a\na: 1 # on a\n# about b\n# more about b\nb:\n  c: 2\n  # in b\n\n# about d\nd: 3\n";
    assert_eq!(
        remove(text, &["a"]),
        "# top\n\n# about b\n# more about b\nb:\n  c: 2\n  # in b\n\n# about d\nd: 3\n"
    );
    assert_eq!(remove(text, &["b"]), "# top\n\n# about a\na: 1 # on a\n\n# about d\nd: 3\n");
    assert_eq!(
        remove(text, &["d"]),
        "# top\n\n# about a\na: 1 # on a\n# about b\n# more about b\nb:\n  c: 2\n  # in b\n\n"
    );
    assert_eq!(
        remove(text, &["b", "c"]),
        "# top\n\n# about a\na: 1 # on a\n# about b\n# more about b\nb: {}\n  # in b\n\n# about d\nd: 3\n"
    );
    assert_eq!(remove("a: {b: 1, c: 2, d: 3}\n", &["a", "b"]), "a: {c: 2, d: 3}\n");
    assert_eq!(remove("a: {b: 1, c: 2, d: 3}\n", &["a", "c"]), "a: {b: 1, d: 3}\n");
    assert_eq!(remove("a: {b: 1, c: 2, d: 3}\n", &["a", "d"]), "a: {b: 1, c: 2}\n");
    assert_eq!(remove("a: {b: 1}\n", &["a", "b"]), "a: {}\n");
}

#[test]
fn the_first_field_of_an_entry_leaves_its_place() {
    let text = "- a: 1\n  # about b\n  b: 2\n- c: 3\n";
    let out = edit(text, |document, root| {
        let entries: Vec<NodeId> = document.entries(root).collect();
        let a = document.get(entries[0], "a").unwrap();
        document.remove(a);
        let c = document.get(entries[1], "c").unwrap();
        document.remove(c);
    });
    assert_eq!(out, "- # about b\n  b: 2\n- {}\n");
}

#[test]
fn comments_come_and_go() {
    let text = "a: 1 # one\nb:\n  - x\n  - y # two\nc: |\n  text\nd: {e: f}\n";
    let out = edit(text, |document, root| {
        let at = |document: &Document<'_>, path: &[&str]| document.at(root, path).unwrap();
        document.set_line_comment(at(document, &["a"]), None);
        let list = at(document, &["b"]);
        document.set_line_comment(list, Some("# kpt-set: ${list}"));
        document.set_head_comment(list, Some("above\n# more"));
        let first = document.entries(list).next().unwrap();
        document.set_line_comment(first, Some("new"));
        document.set_line_comment(at(document, &["c"]), Some("# header"));
        document.set_line_comment(at(document, &["d", "e"]), Some("# no place"));
        document.set_line_comment(at(document, &["d"]), Some("# flow"));
        let new = document.set_field(root, "new", Value::mapping()).unwrap();
        document.set_field(new, "k", "v").unwrap();
        document.set_line_comment(new, Some("# of a mapping"));
        document.set_head_comment(new, Some("# head"));
    });
    let expected = "a: 1\n# above\n# more\nb: # kpt-set: ${list}\n  - x # new\n  - y # two\nc: | # header\n  text\nd: {e: f} # flow\n# head\nnew: # of a mapping\n  k: v\n";
    assert_eq!(out, expected);
}

#[test]
fn copies_keep_comments_and_style() {
    let text = "source:\n    # head\n    a: 'x' # c\n    b: [1,  2]\n    t: |\n        text\nitems:\n- old\n";
    let out = edit(text, |document, root| {
        let (source, items) = (document.get(root, "source").unwrap(), document.get(root, "items").unwrap());
        let copy = document.push_copy(items, source).unwrap();
        let a = document.get(copy, "a").unwrap();
        document.set(a, "changed").unwrap();
        let b = document.get(source, "b").unwrap();
        document.remove(b);
    });
    let expected = "source:\n    # head\n    a: 'x' # c\n    t: |\n        text\nitems:\n- old\n-\n  # head\n  a: 'changed' # c\n  b: [1,  2]\n  t: |\n      text\n";
    assert_eq!(out, expected);
}

#[test]
fn aliases_are_values_of_their_own() {
    let text = "a: &x {k: v}\nb: *x\nc: &n old # c\nd: *n\ne: *n\n";
    let set = |changes: &[(&[&str], &str)]| {
        edit(text, |document, root| {
            for (path, value) in changes {
                let node = document.at(root, path).unwrap();
                document.set(node, *value).unwrap();
            }
        })
    };
    assert_eq!(set(&[(&["b", "k"], "w")]), text.replace("b: *x", "b: {k: w}"));
    assert_eq!(set(&[(&["a", "k"], "w")]), text.replace("{k: v}\nb: *x", "{k: w}\nb: {k: v}"));
    assert_eq!(set(&[(&["d"], "new")]), text.replace("d: *n", "d: new"));
    assert_eq!(set(&[(&["c"], "new")]), text.replace("old # c\nd: *n\ne: *n", "new # c\nd: old\ne: old"));
    // All the same again: they stay aliases.
    assert_eq!(set(&[(&["c"], "new"), (&["d"], "new"), (&["e"], "new")]), text.replace("old", "new"));
    let removed = edit(text, |document, root| {
        let anchor = document.get(root, "c").unwrap();
        document.remove(anchor);
    });
    assert_eq!(removed, "a: &x {k: v}\nb: *x\nd: old\ne: old\n");
}

#[test]
fn whole_values_are_set_piece_by_piece() {
    let text =
        "spec:\n  # the first\n  - name: a # a\n    image: x:1\n  - name: b\n    image: 'y:1' # pinned\n";
    let out = edit(text, |document, root| {
        let spec = document.get(root, "spec").unwrap();
        let mut value = document.value(spec);
        let Value::Sequence(entries) = &mut value else { panic!("{value:?}") };
        let Value::Mapping(fields) = &mut entries[1] else { panic!("{entries:?}") };
        fields[1].1 = "y:2".into();
        entries.push(Value::strings([("name", "c")]));
        document.set(spec, value).unwrap();
    });
    assert_eq!(out, text.replace("'y:1' # pinned\n", "'y:2' # pinned\n  - name: c\n"));
}
