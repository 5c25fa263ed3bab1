//! `docs/migrate-from-porch.md` names a test for each difference from Porch's own runner.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where its set-up fails")]

mod common;

use std::{collections::BTreeSet, fs, path::Path};

use common::checkout;

/// The names of all functions in the Rust files below a folder.
fn functions_below(folder: &Path, names: &mut BTreeSet<String>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            functions_below(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let names_in = text.lines().filter_map(|line| {
                let rest = line.trim().trim_start_matches("async ").strip_prefix("fn ")?;
                rest.split_once("()").map(|(name, _)| name.to_owned())
            });
            names.extend(names_in);
        }
    }
}

#[test]
fn every_difference_has_a_test_that_is_there() {
    let document = fs::read_to_string(checkout().join("docs/migrate-from-porch.md")).unwrap();
    let (_, rest) = document.split_once("## What is different").unwrap();
    let mut known = BTreeSet::new();
    for folder in ["crates", "cluster-tests"] {
        functions_below(&checkout().join(folder), &mut known);
    }
    let is_row =
        |line: &&str| line.starts_with("| ") && !line.starts_with("| |") && !line.starts_with("| ---");
    let rows: Vec<&str> = rest.lines().filter(is_row).collect();
    assert!(rows.len() > 40, "{} rows", rows.len());
    for row in rows {
        let cells: Vec<_> = row.trim_matches('|').split(" | ").collect();
        let [_, _, _, tests] = cells[..] else { panic!("not four cells: {row}") };
        for test in tests.split(", ") {
            let name = test.trim().trim_matches('`');
            assert!(known.contains(name), "there is no test {name:?}, named in: {row}");
        }
    }
}
