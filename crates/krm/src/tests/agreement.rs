//! The quick scanners and the full parser agree on whatever the quick ones dare to answer.

use proptest::collection::vec;
use proptest::prelude::*;

use super::generate::{self, Choices, Invented};
use crate::{Summary, full, inspect, quick};

/// Bytes and pieces that change what YAML means.
pub(crate) const PIECES: &[&str] = &[
    " ",
    "  ",
    "\n",
    "\n\n",
    "\t",
    "\r",
    "\r\n",
    ":",
    ": ",
    ":\n",
    "-",
    "- ",
    "-\n",
    "---\n",
    "...\n",
    "#",
    " #",
    "'",
    "''",
    "\"",
    "\\",
    "\\\n",
    "|",
    "|2\n",
    ">-\n",
    ">+\n",
    "[",
    "]",
    "{",
    "}",
    ",",
    "&a ",
    "*a ",
    "!t ",
    "? ",
    "%",
    "@",
    "`",
    "~",
    "a",
    "0",
    "é",
    "\u{85}",
    "\u{9B}",
    "\u{FFFF}",
    "\u{FEFF}",
    "\0",
    "\u{7F}",
    "kind: ResourceList\n",
    "results:\n",
    "- message: a\n",
    "  ",
    "    ",
    "\"a\": ",
    "<<: ",
    "\u{A0}",
    "\\u",
    "\\ud83d",
    "[]",
    "{}",
    "null",
    "1",
    "-1",
    "e",
    ".",
    "+",
    "key: value\n",
    "  - x\n",
    "|\n",
    "  # c\n",
];

pub(crate) fn agree(text: &str) -> Result<bool, TestCaseError> {
    let full = full::read(text);
    let quick = quick::read(text);
    if let Some(summary) = &quick {
        prop_assert_eq!(Ok(summary), full.as_ref(), "on {:?}", text);
    }
    prop_assert_eq!(inspect(text.as_bytes()), full);
    Ok(quick.is_some())
}

pub(crate) fn mutate(text: &str, changes: &[(u16, u8, u8)]) -> String {
    let mut text = text.to_owned();
    for &(place, how, piece) in changes {
        let at = text.floor_char_boundary(usize::from(place) % (text.len() + 1));
        let piece = PIECES[usize::from(piece) % PIECES.len()];
        let next = text.ceil_char_boundary(at + 1);
        match how % 6 {
            0 => text.insert_str(at, piece),
            1 => text.replace_range(at..next, piece),
            2 => text.replace_range(at..next, ""),
            3 => {
                let end = text.ceil_char_boundary(at + usize::from(how));
                text.replace_range(at..end, "");
            }
            4 => {
                let end = text.ceil_char_boundary(at + usize::from(how));
                let copy = text[at..end].to_owned();
                text.insert_str(at, &copy);
            }
            _ => text.truncate(at.max(text.floor_char_boundary(text.len() / 2))),
        }
    }
    text
}

fn expected(invented: &Invented) -> Summary {
    Summary {
        api_version: invented.api_version.clone(),
        results: invented.results.clone(),
        ..Summary::default()
    }
}

pub(crate) const SAMPLES: &[&str] = &[
    "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n- apiVersion: v1\n  kind: Service\n  metadata:\n    name: a\n  spec:\n    ports:\n    - port: 80\n      name: 'x'\n    text: |\n      a\n       b\n\n      # c\n    other: >-\n      a\n\n      - b\nresults:\n- message: \"a\\n\"\n  severity: error\n",
    "kind: ResourceList\nitems: []\na: b\n  c\nd: \"e\n  f\"\ng: 'h\n\n  i'\nj: {k: l}\nm:\n- - n\n  - o: p\n    q: r\n-\n  s: t\n",
    "{\"kind\": \"ResourceList\", \"items\": [{\"a\": [1, true, null, \"b\\u00e9\"]}], \"results\": [{\"message\": \"c\"}]}\n",
    "kind: ResourceList\nx: |2\n   a\n  b\ny: |+\n\n  c\n\n\nz: >1-\n d\n",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn on_any_bytes(bytes in vec(any::<u8>(), 0..200)) {
        let _ = inspect(&bytes);
        agree(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn on_pieces(pieces in vec(0..PIECES.len(), 0..40)) {
        let text: String = pieces.into_iter().map(|piece| PIECES[piece]).collect();
        agree(&text)?;
        agree(&format!("kind: ResourceList\n{text}"))?;
        agree(&format!("kind: ResourceList\na:\n  - b: {text}"))?;
        agree(&format!("kind: ResourceList\na: {text}\nb: c\n"))?;
        agree(&format!("kind: ResourceList\nresults: {text}\nb: c\n"))?;
        agree(&format!("kind: ResourceList\na: [{text}]\n"))?;
        agree(&format!("{{\"kind\": \"ResourceList\", \"a\": {text}}}"))?;
    }

    #[test]
    fn on_mutated_samples(sample in 0..SAMPLES.len(), changes in vec(any::<(u16, u8, u8)>(), 1..6)) {
        agree(&mutate(SAMPLES[sample], &changes))?;
    }

    #[test]
    fn on_mutated_lists(choices in vec(any::<u8>(), 0..300), changes in vec(any::<(u16, u8, u8)>(), 1..4)) {
        agree(&mutate(&generate::block(&mut Choices::new(&choices)).text, &changes))?;
        agree(&mutate(&generate::json(&mut Choices::new(&choices)).text, &changes))?;
    }

    #[test]
    fn on_flipped_bytes(choices in vec(any::<u8>(), 0..300), flips in vec(any::<(u16, u8)>(), 1..4)) {
        let mut bytes = generate::block(&mut Choices::new(&choices)).text.into_bytes();
        for (place, flip) in flips {
            let place = usize::from(place) % bytes.len();
            bytes[place] ^= flip;
        }
        let _ = inspect(&bytes);
        if let Ok(text) = std::str::from_utf8(&bytes) {
            agree(text)?;
        }
    }

    #[test]
    fn facts_of_block_lists(choices in vec(any::<u8>(), 0..300)) {
        let invented = generate::block(&mut Choices::new(&choices));
        prop_assert_eq!(full::read(&invented.text), Ok(expected(&invented)), "on {}", invented.text);
        agree(&invented.text)?;
        let windows = invented.text.replace('\n', "\r\n");
        prop_assert_eq!(inspect(windows.as_bytes()), Ok(expected(&invented)), "on {:?}", windows);
    }

    #[test]
    fn facts_of_json_lists(choices in vec(any::<u8>(), 0..300)) {
        let invented = generate::json(&mut Choices::new(&choices));
        prop_assert_eq!(full::read(&invented.text), Ok(expected(&invented)), "on {}", invented.text);
        agree(&invented.text)?;
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
        "k: 'a",
        "k: 'a'",
        "k:",
        "k: {}",
        "k: [",
        "k:\n- a",
        "k:\n  - |",
        "k:\n- b:",
        "k:\n-",
        "results:\n- message: |+",
        "results:\n- message: >",
        "results:\n- message: a",
    ];
    let lines = [
        "", " ", "    ", "\t", "a", " a", "  a", "   a", "  \ta", "  a\"", "  a'", "# c", "   # c", "- a",
        "  - a", "a: b", "  a: b", "    a: b", "]", "---",
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

#[test]
fn the_usual_styles_are_read_quickly() {
    for sample in SAMPLES {
        assert!(agree(sample).unwrap(), "not read quickly: {sample}");
    }
    // Most invented lists are of usual style, too: the properties above would prove little otherwise.
    let mut quick = 0;
    for seed in 0..200_usize {
        let bytes: Vec<u8> =
            (0..200_usize).map(|at| (seed * 31 + at * (seed + 7) % 251).to_le_bytes()[0]).collect();
        quick += usize::from(agree(&generate::block(&mut Choices::new(&bytes)).text).unwrap());
        quick += usize::from(agree(&generate::json(&mut Choices::new(&bytes)).text).unwrap());
    }
    assert!(quick > 300, "only {quick} of 400 read quickly");
}
