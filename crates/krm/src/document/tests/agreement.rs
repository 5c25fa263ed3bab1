//! The quick scanners and the full parser build the same nodes, and both read what the full parser reads.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::budget::Budget;
use crate::document::node::{Kind, NodeId};
use crate::document::{Document, Unreadable, parse};
use crate::nodes::{Node, Nodes};
use crate::tests::agreement::{PIECES, SAMPLES, mutate};
use crate::tests::generate::{self, Choices};

/// Whether the text was read quickly, and so compared with the full parser's reading.
pub(crate) fn agree(text: &str) -> Result<bool, TestCaseError> {
    if Document::parse(text).is_err_and(|error| matches!(error, Unreadable::CarriageReturn { .. })) {
        return Ok(false);
    }
    let full = parse::read(text, &Budget::default());
    let quick = Document::parse_quickly(text, &Budget::default());
    match (&quick, &full) {
        (Some(Ok(quick)), Ok((full, _))) => {
            let show = |nodes: &[_]| nodes.iter().map(|node| format!("{node:?}")).collect::<Vec<_>>();
            prop_assert_eq!(show(quick), show(full), "on {:?}", text);
        }
        // Where there are two mistakes, they may find different ones.
        (Some(Err(_)), Err(_)) | (None, _) => {}
        (Some(quick), full) => prop_assert!(false, "{:?} and {:?} on {:?}", quick, full, text),
    }
    if let Ok(mut document) = Document::parse(text) {
        prop_assert_eq!(document.to_text().unwrap(), text);
        same_values(text, &document)?;
    }
    Ok(quick.is_some())
}

/// Compares the texts of all keys and scalars with the full parser's.
fn same_values(text: &str, document: &Document<'_>) -> Result<(), TestCaseError> {
    fn flatten(document: &Document<'_>, node: NodeId, out: &mut Vec<String>) {
        match document.kind(node) {
            Kind::Scalar if document.is_null(node) => out.push("null".to_owned()),
            Kind::Scalar => out.push(format!("text {}", document.text(node).unwrap())),
            Kind::Mapping => {
                for (key, child) in document.fields(node) {
                    out.push(format!("key {key}"));
                    flatten(document, child, out);
                }
                out.push("end".to_owned());
            }
            Kind::Sequence => {
                document.entries(node).for_each(|child| flatten(document, child, out));
                out.push("end".to_owned());
            }
        }
    }
    // Aliases to collections are not expanded by the other reader, and tags are not known to it; a block
    // scalar that the text ends with has no last line break in Go.
    if text.contains(['*', '!']) || (text.contains(['|', '>']) && !text.ends_with('\n')) {
        return Ok(());
    }
    let mut found = Vec::new();
    flatten(document, document.root(), &mut found);
    let mut expected = Vec::new();
    let mut nodes = Nodes::new(text.strip_prefix('\u{FEFF}').unwrap_or(text));
    // Per open collection: whether it is a mapping, and whether a key is next.
    let mut open: Vec<(bool, bool)> = Vec::new();
    loop {
        let node = nodes.next().unwrap();
        let is_key = open.last_mut().is_some_and(|(mapping, key)| {
            let is_key = *mapping && *key && !matches!(node, Node::End);
            *key = !*key;
            is_key
        });
        match node {
            Node::Finished => break,
            Node::Mapping => open.push((true, true)),
            Node::Sequence => open.push((false, true)),
            Node::End => {
                open.pop();
                expected.push("end".to_owned());
            }
            Node::Scalar(scalar) if is_key => expected.push(format!(
                "key {}",
                if &*scalar.text == "~" { String::new() } else { scalar.text.to_string() }
            )),
            Node::Scalar(scalar) => match scalar.non_null() {
                Some(text) => expected.push(format!("text {text}")),
                None if open.is_empty() => {}
                None => expected.push("null".to_owned()),
            },
            Node::Alias => unreachable!(),
        }
    }
    let found: Vec<String> =
        found.into_iter().map(|fact| if fact == "key ~" { "key ".to_owned() } else { fact }).collect();
    // A whole document that is null.
    if expected.is_empty() {
        expected.push("null".to_owned());
    }
    // The other reader takes a merge key for a field; what it stands for is tested by itself.
    if !expected.iter().any(|fact| fact == "key <<") {
        prop_assert_eq!(found, expected, "on {:?}", text);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn on_any_bytes(bytes in vec(any::<u8>(), 0..200)) {
        let _ = Document::parse_bytes(&bytes);
        agree(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn on_pieces(pieces in vec(0..PIECES.len(), 0..40)) {
        let text: String = pieces.into_iter().map(|piece| PIECES[piece]).collect();
        agree(&text)?;
        agree(&format!("kind: ResourceList\n{text}"))?;
        agree(&format!("kind: ResourceList\na:\n  - b: {text}"))?;
        agree(&format!("kind: ResourceList\na: {text}\nb: c\n"))?;
        agree(&format!("kind: ResourceList\na: [{text}]\n"))?;
        agree(&format!("a: {{{text}}}\n"))?;
        agree(&format!("{{\"a\": {text}}}"))?;
    }

    #[test]
    fn on_changed_lists(
        choices in vec(any::<u8>(), 0..300),
        json in any::<bool>(),
        changes in vec(any::<(u16, u8, u8)>(), 0..5),
    ) {
        let mut choices = Choices::new(&choices);
        let invented = if json { generate::json(&mut choices) } else { generate::block(&mut choices) };
        agree(&mutate(&invented.text, &changes))?;
        agree(&mutate(&invented.text, &changes).replace('\n', "\r\n"))?;
    }

    #[test]
    fn on_changed_samples(sample in 0..SAMPLES.len(), changes in vec(any::<(u16, u8, u8)>(), 0..4)) {
        agree(&mutate(SAMPLES[sample], &changes))?;
    }
}

#[test]
fn the_usual_styles_are_read_quickly() {
    for sample in SAMPLES {
        assert!(agree(sample).unwrap(), "not read quickly: {sample}");
    }
}

/// Every way in which three of these lines can follow one of these beginnings.
#[test]
fn on_all_short_texts() {
    let beginnings = [
        "k: |",
        "k: >-",
        "k: |1",
        "k: |2+",
        "k: a",
        "k: a # c",
        "k: \"a",
        "k: 'a'",
        "k:",
        "k: {}",
        "k: [",
        "k:\n- a",
        "k:\n  - |",
        "k:\n- b:",
        "k:\n-",
        "? k",
        "k: &a b",
        "k: !t",
    ];
    let lines = [
        "", " ", "    ", "\t", "a", " a", "  a", "   a", "  \ta", "  a\"", "  a'", "# c", "   # c", "- a",
        "  - a", "a: b", "  a: b", "    a: b", "]", "---", ": c", "? d", "  *a",
    ];
    let mut quick = 0;
    for beginning in beginnings {
        for first in lines {
            for second in lines {
                for third in ["", "  a", "   # c", "- a", "a: b", "  a: b"] {
                    let text = format!("kind: ResourceList\n{beginning}\n{first}\n{second}\n{third}");
                    quick += usize::from(agree(&text).unwrap());
                }
            }
        }
    }
    assert!(quick > 5_000, "only {quick} read quickly");
}
