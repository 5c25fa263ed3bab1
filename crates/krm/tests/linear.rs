//! Many edits of wide documents. Each test is over in seconds; with steps that grow with the square of the
//! number of fields or entries it would take minutes.
#![allow(clippy::unwrap_used, clippy::format_collect, reason = "helpers of tests")]

use krm::{Document, NodeId, Value};

const MANY: usize = 100_000;

fn mapping(value: &str) -> Value {
    Value::Mapping((0..MANY).map(|at| (format!("k{at}"), Value::string(format!("{value}{at}")))).collect())
}

fn fields(value: &str, indent: &str) -> String {
    (0..MANY).map(|at| format!("{indent}k{at}: {value}{at}\n")).collect()
}

/// The text that is written says what the nodes do.
#[track_caller]
fn written(document: &mut Document<'_>) -> String {
    let text = document.to_text().unwrap();
    let again = Document::parse(&text).unwrap();
    assert!(document.is_value(document.root(), &again.value(again.root())));
    text
}

fn child(document: &Document<'_>, key: &str) -> NodeId {
    document.get(document.root(), key).unwrap()
}

#[test]
fn entries_are_added_to_many() {
    let block = format!("a:\n{}b: c\n", "- x\n".repeat(MANY));
    let flow = format!("a: [{}x]\nb: c\n", "x, ".repeat(MANY - 1));
    for text in [&*block, &*flow, "a: []\n", "a:\n"] {
        let mut document = Document::parse(text).unwrap();
        let list = child(&document, "a");
        let before = document.len(list);
        for at in 0..MANY {
            let new = document.push(list, format!("new {at}")).unwrap();
            if at % 2 == 0 {
                document.remove(new);
            }
        }
        assert_eq!(document.len(list), before + MANY / 2);
        written(&mut document);
    }
}

#[test]
fn fields_are_added_to_many() {
    for text in [format!("a:\n{}b: c\n", fields("v", "  ")), "a: {}\n".to_owned()] {
        let mut document = Document::parse(&text).unwrap();
        let list = child(&document, "a");
        for at in 0..MANY {
            document.set_field(list, &format!("new{at}"), "v").unwrap();
            document.set_field(list, &format!("new{at}"), "w").unwrap();
        }
        assert!(document.get(list, "namespace").is_none());
        written(&mut document);
    }
}

#[test]
fn many_fields_become_others() {
    let text = format!("a:\n{}b: c\n", fields("v", "  "));
    let mut document = Document::parse(&text).unwrap();
    let node = child(&document, "a");
    document.set(node, mapping("w")).unwrap();
    assert_eq!(written(&mut document), text.replace(": v", ": w"));
    // Half of them go, and as many come.
    let other = (MANY / 2..MANY + MANY / 2).map(|at| (format!("k{at}"), Value::string("x"))).collect();
    document.set(node, Value::Mapping(other)).unwrap();
    assert_eq!(document.len(node), MANY);
    assert!(document.get(node, "k0").is_none() && document.get(node, &format!("k{MANY}")).is_some());
    written(&mut document);
}

#[test]
fn many_fields_are_compared_and_copied() {
    let text = format!("a:\n{}b:\n{}c: d\n", fields("v", "  "), fields("v", "  "));
    let mut document = Document::parse(&text).unwrap();
    let (one, other) = (child(&document, "a"), child(&document, "b"));
    assert!(document.same(one, other));
    assert!(document.is_value(one, &mapping("v")));
    document.set_field(other, "k7", "else").unwrap();
    assert!(!document.same(one, other));
    document.set_copy(one, other).unwrap();
    assert!(document.same(one, other));
    written(&mut document);
}

#[test]
fn many_fields_and_entries_are_removed() {
    let text = format!("a:\n{}b:\n{}", fields("v", "  "), "- x\n".repeat(MANY));
    let mut document = Document::parse(&text).unwrap();
    let (mapping, sequence) = (child(&document, "a"), child(&document, "b"));
    for at in (0..MANY).step_by(2) {
        let field = document.get(mapping, &format!("k{at}")).unwrap();
        document.remove(field);
        assert!(document.get(mapping, &format!("k{at}")).is_none());
    }
    for entry in document.entries(sequence).skip(1).collect::<Vec<_>>() {
        document.remove(entry);
    }
    assert_eq!((document.len(mapping), document.len(sequence)), (MANY / 2, 1));
    written(&mut document);
}

/// What is deep inside is looked at once, not once for each collection around it.
#[test]
fn a_wide_list_deep_inside_becomes_another() {
    let deep = |last: &str| format!("{}{}{last}{}\n", "[".repeat(400), "x, ".repeat(MANY), "]".repeat(400));
    let (before, after) = (deep("y"), deep("z"));
    let mut document = Document::parse(&before).unwrap();
    let wanted = Document::parse(&after).unwrap();
    document.set(document.root(), wanted.value(wanted.root())).unwrap();
    assert_eq!(written(&mut document), after);
}

/// Keys that are found by a table are those that a walk finds, whatever was done before.
#[test]
fn wide_mappings_are_read_as_narrow_ones_are() {
    let text: String = (0..60).map(|at| format!("k{at}: {at}\n")).collect();
    let mut document = Document::parse(&text).unwrap();
    let root = document.root();
    let walk = |document: &Document<'_>, key: &str| {
        document.fields(root).find(|(name, _)| name == key).map(|(_, node)| node)
    };
    let check = |document: &Document<'_>| {
        for key in ["k0", "k59", "k60", "new", "renamed", "none"] {
            assert_eq!(document.get(root, key), walk(document, key), "{key}");
        }
    };
    check(&document);
    document.set_field(root, "new", "v").unwrap();
    check(&document);
    document.rename(document.get(root, "k59").unwrap(), "renamed");
    check(&document);
    document.remove(document.get(root, "k0").unwrap());
    document.remove(document.get(root, "new").unwrap());
    check(&document);
    document.set_field(root, "k0", "back").unwrap();
    check(&document);
    document.set(root, "text").unwrap();
    check(&document);
    document.set(root, Value::strings([("k60", "v"), ("new", "w")])).unwrap();
    check(&document);
    assert_eq!(document.to_text().unwrap(), "k60: v\nnew: w\n");
}
