//! The links of the documents lead somewhere, and the files they name are there.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where its set-up fails")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use documents::{blocks, quoted};
use testing::checkout;

/// The documents for people, wherever they are.
fn all() -> Vec<PathBuf> {
    let root = checkout();
    let mut found = Vec::new();
    let crates = fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path());
    for folder in crates.chain([root.clone(), root.join("docs"), root.join("cluster-tests")]) {
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        found.extend(files.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    assert!(found.len() > 15, "{found:?}");
    found
}

/// The text without blocks, which are no prose.
fn prose(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let fenced: BTreeSet<usize> =
        blocks(&text).iter().flat_map(|block| block.line..=block.line + block.lines.len() + 1).collect();
    let lines = text.lines().enumerate().filter(|(number, _)| !fenced.contains(&(number + 1)));
    lines.flat_map(|(_, line)| [line, "\n"]).collect()
}

/// What headings are called in addresses.
fn anchors(path: &Path) -> BTreeSet<String> {
    let headings =
        prose(path).lines().filter(|line| line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
    let anchor = |heading: &String| {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.iter().map(anchor).collect()
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut followed = 0;
    for document in all() {
        for link in prose(&document).split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.starts_with("https://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if file.is_empty() { document.clone() } else { document.parent().unwrap().join(file) };
            assert!(target.exists(), "{}: {link}", document.display());
            let is_heading = anchor.is_empty() || anchors(&target).contains(anchor);
            assert!(is_heading, "{}: {link} is no heading of {:?}", document.display(), anchors(&target));
            followed += 1;
        }
    }
    assert!(followed > 50, "{followed}");
}

#[test]
fn files_of_the_project_that_are_named_are_there() {
    let mut named = 0;
    for document in all() {
        for span in prose(&document).lines().flat_map(quoted) {
            let places = ["crates/", "deploy/", "docs/", "examples/", "scripts/", "cluster-tests/", "proto/"];
            let path = span.split([' ', ':']).next().unwrap_or_default();
            // Names in capitals stand for others.
            let is_pattern =
                path.contains(['*', '…', '$']) || path.contains("NAME") || path.contains("TARGET");
            if !places.iter().any(|place| path.starts_with(place)) || is_pattern {
                continue;
            }
            assert!(checkout().join(path).exists(), "{}: {span}", document.display());
            named += 1;
        }
    }
    assert!(named > 30, "{named}");
}
