//! Whatever is done to whatever document: its text says what its nodes say, and nothing else has changed.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::document::node::{NodeId, Style, flag};
use crate::tests::agreement::mutate;
use crate::tests::generate::{self, Choices, WORDS};
use crate::{Document, Tag, Value};

/// Styles that emitters do not write, but people and other programs do.
const ODD: &[&str] = &[
    "a: &x 1 # one\nb: *x # two\nc: &y\n  d: e # three\n  f: [g, *x]\nh: *y\ni:\n- *y # four\n- *x\n",
    "? a\n: b\n? |\n  long\n  key\n: - c\n  - d\n? \"e\" # six\n: # seven\n  f: g\n",
    "# top\n\n---\n# head\na: !!str 12 # tag\nb: !!int \"3\"\nc: !t {d: !!bool true}\ne: &z !u\n- f\n",
    "a: {b: c,\n  d: [e, # e\n    f\n    ],\n  # g\n  g: h # h\n  } # a\ni: [ ]\nj: { }\nk: [l: m, n]\no: {p, q: }\n",
    "{\n  \"a\": {\n    \"b\": \"c\",\n    \"d\": [\n      1,\n      {\"e\": null}\n    ]\n  },\n  \"f\": [],\n  \"g\": {}\n}\n",
    "{\"a\":{\"b\":\"c\",\"d\":[1,{\"e\":null}]},\"f\":[],\"g\":{}}",
    "a:\r\n  b: c # d\r\n  e: |\r\n    f\r\n\r\n    g\r\n  h: i\r\n# j\r\nk:\r\n- l\r\n- m: n\r\n  o: p\r\n",
    "a:\n- - b\n  - c # c\n- # e\n  d: e\n  f: g\n-\n  - h\n-   i: j\n    k: l\n-\n# foot\n\nm:\n    n: o\n    p:\n        q: r\n",
    "a: |+\n  b\n\n\nc: >-\n  d\n   e\n\n  f\n# g\nh: |2-\n    i\n  j\nk: \"l\n  m\\\n  n\"\no: p\n  q # r\ns:\n  t\nu: 'v\n\n  w'\nx: |\n  last",
    "a: &a {n: m, s: [t]} # a\nb: &b\n  <<: *a # b\n  n: o\n  d: &d\n    e: |\n      f\n    g: 1 # g\nc:\n- {<<: *a, p: q}\n- <<: [*b, *a] # h\n- &i\n  j: k\n  <<: {l: [1], n: *d}\n- <<: *i\nr: *b\n",
    "<<: {a: b}\nc:\n  << : [{a: c, d: e}, {a: f, g: h}]\n  d: i\nm: {!!merge <<: {n: o}}\n",
    "\u{FEFF}# mark\na:\n    # b\n    b:   c   # c\n\n    # d\n\n    d:\n    -   e\n    -   f: g\n# end",
];

/// One thing done to a document, as numbers.
pub(crate) type Change = (u16, u8, u8, u8);

fn words(at: u8) -> &'static str {
    WORDS[usize::from(at) % WORDS.len()]
}

fn content(choice: u8) -> Value {
    match choice % 9 {
        0..=2 => Value::string(words(choice / 9)),
        3 => Value::plain(["80", "true", "~", "1.5", "2001-01-01", "0x1F"][usize::from(choice / 9) % 6]),
        4 => Value::mapping(),
        5 => Value::Sequence(Vec::new()),
        6 => Value::Mapping(vec![("n".into(), content(choice / 9)), ("yes".into(), content(choice / 27))]),
        7 => Value::Sequence(vec![content(choice / 9), content(choice / 18)]),
        _ => Value::Sequence(vec![Value::strings([("a", words(choice)), ("b", "c")]), Value::null()]),
    }
}

fn all_nodes(document: &Document<'_>) -> Vec<NodeId> {
    let mut nodes = vec![document.root()];
    let mut at = 0;
    while at < nodes.len() {
        nodes.extend(document.children(nodes[at]));
        at += 1;
    }
    nodes
}

/// Where in a value the node is: places in collections, from the outside in.
fn place(document: &Document<'_>, node: NodeId) -> Vec<usize> {
    let mut place = Vec::new();
    let mut node = node;
    while let Some(parent) = document.parent(node) {
        place.push(document.children(parent).position(|child| child == node).unwrap());
        node = parent;
    }
    place.reverse();
    place
}

fn value_at<'v>(mut value: &'v mut Value, place: &[usize]) -> &'v mut Value {
    for &at in place {
        value = match value {
            Value::Mapping(fields) => &mut fields[at].1,
            Value::Sequence(entries) => &mut entries[at],
            Value::Scalar(..) => unreachable!(),
        };
    }
    value
}

/// Does one thing to the document and to the model. Tells which node is the outermost that may change.
fn change(document: &mut Document<'_>, model: &mut Value, change: Change) -> NodeId {
    let (which, how, first, second) = change;
    let nodes = all_nodes(document);
    let node = nodes[usize::from(which) % nodes.len()];
    let place = place(document, node);
    let parent = document.parent(node).unwrap_or(node);
    match how % 10 {
        0 | 1 => {
            let value = if how % 10 == 0 { Value::string(words(first)) } else { content(first) };
            document.set(node, value.clone()).unwrap();
            *value_at(model, &place) = value;
            node
        }
        2 | 3 => {
            let (key, value) = (["namespace", "new", "on", "a"][usize::from(second) % 4], content(first));
            if document.set_field(node, key, value.clone()).is_ok() {
                let target = value_at(model, &place);
                if !matches!(target, Value::Mapping(_)) {
                    *target = Value::mapping();
                }
                if let Value::Mapping(fields) = target {
                    match fields.iter_mut().find(|(name, _)| name == key) {
                        Some((_, field)) => *field = value,
                        None => {
                            let name = fields
                                .iter()
                                .position(|(name, _)| name == "name")
                                .filter(|_| key == "namespace");
                            fields
                                .insert(name.map_or(fields.len(), |name| name + 1), (key.to_owned(), value));
                        }
                    }
                }
            }
            node
        }
        4 => {
            if document.push(node, content(first)).is_ok() {
                let target = value_at(model, &place);
                if !matches!(target, Value::Sequence(_)) {
                    *target = Value::Sequence(Vec::new());
                }
                if let Value::Sequence(entries) = target {
                    entries.push(content(first));
                }
            }
            node
        }
        5 | 6 => {
            document.remove(node);
            if let Some((&last, rest)) = place.split_last() {
                match value_at(model, rest) {
                    Value::Mapping(fields) => drop(fields.remove(last)),
                    Value::Sequence(entries) => drop(entries.remove(last)),
                    Value::Scalar(..) => unreachable!(),
                }
            }
            parent
        }
        7 => {
            let key = format!("key {first}");
            if document.key(node).is_some() && document.get(parent, &key).is_none() {
                document.rename(node, &key);
                if let Some((&last, rest)) = place.split_last()
                    && let Value::Mapping(fields) = value_at(model, rest)
                {
                    fields[last].0 = key;
                }
            }
            node
        }
        8 => {
            let comment = [Some("# set"), None, Some("no hash")][usize::from(second) % 3];
            if first % 2 == 0 {
                document.set_line_comment(node, comment);
            } else {
                document.set_head_comment(node, comment);
            }
            node
        }
        _ => {
            let from = nodes[usize::from(first) * 7 % nodes.len()];
            let inside = |node: NodeId, of: NodeId| {
                std::iter::successors(Some(node), |&node| document.parent(node)).any(|node| node == of)
            };
            if !inside(node, from) && !inside(from, node) {
                let value = document.value(from);
                document.set_copy(node, from).unwrap();
                *value_at(model, &place) = value;
            }
            node
        }
    }
}

/// Values are the same whatever the order of fields and the word for null.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Scalar(_, Tag::Null) => Value::null(),
        // The name of a type of its own is not part of a value.
        Value::Scalar(text, Tag::Other) => Value::string(text),
        Value::Scalar(..) => value.clone(),
        Value::Sequence(entries) => Value::Sequence(entries.iter().map(sorted).collect()),
        Value::Mapping(fields) => {
            let mut fields: Vec<_> = fields.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            fields.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Mapping(fields)
        }
    }
}

pub(crate) fn check(text: &str, changes: &[Change]) -> Result<(), TestCaseError> {
    let Ok(mut document) = Document::parse(text) else { return Ok(()) };
    let mut model = document.value(document.root());
    // What cannot be merged may become what can.
    let is_merge_key = |&node: &NodeId| document.key(node).is_some_and(|key| key == "<<");
    if all_nodes(&document).iter().any(is_merge_key) {
        return Ok(());
    }
    let mut may_change = None;
    for &one in changes {
        may_change = Some(change(&mut document, &mut model, one));
        let value = document.value(document.root());
        prop_assert_eq!(sorted(&value), sorted(&model), "on {:?} by {:?}", text, one);
        // The same, but for the order of fields, by which places are told.
        model = value;
    }
    let written = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| document.to_text().unwrap()));
    prop_assert!(written.is_ok(), "overlap on\n{}\nby {:?}", text, changes);
    let out = written.unwrap_or_default();
    let again = match Document::parse(&out) {
        Ok(again) => again,
        Err(error) => {
            prop_assert!(false, "{} in\n{}\nfrom\n{}\nby {:?}", error, out, text, changes);
            return Ok(());
        }
    };
    let read = sorted(&again.value(again.root()));
    prop_assert_eq!(&read, &sorted(&model), "in\n{}\nfrom\n{}\nby {:?}", out, text, changes);
    same_comments(&document, document.root(), &again, again.root(), &out, text, changes)?;
    if let (Some(node), [_], true) = (may_change, changes, text != out) {
        only_near(&document, node, text, &out)?;
    }
    Ok(())
}

/// What the document says about comments at the end of lines is what its text says.
fn same_comments(
    document: &Document<'_>,
    node: NodeId,
    again: &Document<'_>,
    other: NodeId,
    out: &str,
    text: &str,
    changes: &[Change],
) -> Result<(), TestCaseError> {
    // The comments of what a merge key stands for are those at its anchor.
    if document.node(node).unwrap().has(flag::MERGED) {
        return Ok(());
    }
    // In flow collections there is not always a place for a comment.
    let flow = |document: &Document<'_>, node| {
        let around = std::iter::successors(Some(node), |&node| document.parent(node));
        around.into_iter().any(|node| document.style(node) == Style::Flow)
    };
    let has_place = again.parent(other).is_some() && again.before_line_comment(other).is_some();
    if has_place && !flow(document, node) && !flow(again, other) {
        let (told, found) = (document.line_comment(node), again.line_comment(other));
        // A comment above the first field of an entry may stand behind its dash, or behind an explicit colon.
        let moved = told.is_none() && (again.key(other).is_none() || text.contains("? "));
        let told = if moved { found.clone() } else { told };
        prop_assert_eq!(
            told,
            found,
            "at {:?} in\n{}\nfrom\n{}\nby {:?}",
            again.key(other),
            out,
            text,
            changes
        );
    }
    // The comments in what an alias stands for are those at its anchor.
    if document.node(node).unwrap().is_alias() {
        return Ok(());
    }
    for (child, by_place) in document.children(node).zip(again.children(other)) {
        let by_key = document.key(child).and_then(|key| again.get(other, &key));
        same_comments(document, child, again, by_key.unwrap_or(by_place), out, text, changes)?;
    }
    Ok(())
}

/// All bytes before and behind the node that was changed are the same.
fn only_near(document: &Document<'_>, node: NodeId, text: &str, out: &str) -> Result<(), TestCaseError> {
    let mark = text.len() - document.text.len();
    let (old, new) = (text.as_bytes(), out.as_bytes());
    let before = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let behind = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    // Its lines, the comment above it, and the line break before that.
    let start =
        document.head_comment_span(node).map_or_else(|| document.entry_start(node), |span| span.start);
    let start = document.line_start(start).saturating_sub(2) + mark;
    let mut end = document.line_end(document.node(node).unwrap().end as usize);
    // What is deeper below it belongs to it.
    while let Some(line) = document.next_line(end) {
        let rest = &document.text[line..document.line_end(line)];
        if !rest.trim().is_empty() && !rest.trim_start().starts_with('#') {
            break;
        }
        end = line + rest.len();
    }
    let end = end + mark + 2;
    let aliased = document.text.contains('*') || document.text.contains("<<");
    prop_assert!(
        aliased || node == document.root() || (before >= start && old.len() - behind <= end),
        "something before {} or behind {} changed:\n{}\nbecame\n{}",
        start,
        end,
        text,
        out
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn of_invented_lists(
        choices in vec(any::<u8>(), 0..200),
        json in any::<bool>(),
        windows in any::<bool>(),
        changes in vec(any::<Change>(), 0..8),
    ) {
        let mut choices = Choices::new(&choices);
        let invented = if json { generate::json(&mut choices) } else { generate::block(&mut choices) };
        let text = if windows { invented.text.replace('\n', "\r\n") } else { invented.text };
        check(&text, &changes)?;
    }

    #[test]
    fn of_one_thing(choices in vec(any::<u8>(), 0..200), json in any::<bool>(), change in any::<Change>()) {
        let mut choices = Choices::new(&choices);
        let invented = if json { generate::json(&mut choices) } else { generate::block(&mut choices) };
        check(&invented.text, &[change])?;
    }

    #[test]
    fn of_odd_styles(
        sample in 0..ODD.len(),
        mutations in vec(any::<(u16, u8, u8)>(), 0..3),
        changes in vec(any::<Change>(), 0..6),
    ) {
        check(ODD[sample], &changes)?;
        check(&mutate(ODD[sample], &mutations), &changes)?;
    }
}

/// What fuzzing found.
#[test]
fn odd_places_of_tags_anchors_marks_and_comments() {
    let mut tag = Document::parse("a:\n- !u\n- f\n").unwrap();
    let entry = tag.children(tag.get(tag.root(), "a").unwrap()).next().unwrap();
    tag.set(entry, Value::strings([("a", "x"), ("b", "c")])).unwrap();
    assert_eq!(tag.to_text().unwrap(), "a:\n- a: x\n  b: c\n- f\n");
    let mut mapping = Document::parse("a: &m{b: c}\n").unwrap();
    mapping.set_field(mapping.get(mapping.root(), "a").unwrap(), "d", "e").unwrap();
    assert_eq!(mapping.to_text().unwrap(), "a: &m{b: c, d: e}\n");
    let mut list = Document::parse("a: &m[b]\n").unwrap();
    list.push(list.get(list.root(), "a").unwrap(), "c").unwrap();
    assert_eq!(list.to_text().unwrap(), "a: &m[b, c]\n");
    for text in ["\n\u{FEFF}-\n", "# c\n\u{FEFF}\n-\n", "\n\u{FEFF}- \t# c\n"] {
        let document = Document::parse(text).unwrap();
        assert!(document.is_null(document.children(document.root()).next().unwrap()), "{text:?}");
    }
    let mut comment = Document::parse("d: e # thre\u{85}\n").unwrap();
    comment.set_line_comment(comment.get(comment.root(), "d").unwrap(), None);
    assert_eq!(comment.to_text().unwrap(), "d: e\n");
}
