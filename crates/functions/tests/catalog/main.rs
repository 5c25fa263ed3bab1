//! The example packages of the function catalog: run through their pipelines, they become what the
//! catalog says. The packages are not part of this repository; where they are not found beside it, the
//! test says so.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "helpers of tests")]

mod package;
mod patch;

use std::path::{Path, PathBuf};

use krm::{Document, NodeId, Value};
use package::{Package, Step};

fn packages() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/catalog");
    folder.is_dir().then_some(folder)
}

#[test]
fn packages_become_what_the_catalog_says() {
    let Some(folder) = packages() else {
        println!("no packages at ../shared/catalog: nothing was tried");
        return;
    };
    let mut tried = 0;
    let mut folders: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    for folder in folders {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let original = Package::read(&folder);
        let steps = original.steps(&folder);
        if let Some(missing) = steps.iter().find(|step| functions::find(&step.function).is_none()) {
            println!("{name}: left out, there is no {}", missing.function);
            continue;
        }
        assert!(!steps.is_empty(), "{name} has no pipeline");
        let (first, results) = run(&name, &original, &steps);
        let expected = original.expected(&folder);
        compare(&name, &first, &expected);
        if let Some(expected) = Package::expected_results(&folder) {
            assert_eq!(results, expected, "results of {name}");
        }
        let (second, _) = run(&name, &first, &steps);
        assert_eq!(second.files, first.files, "{name}: the second run changes something");
        println!("{name}: as expected");
        tried += 1;
    }
    assert!(tried >= 5, "only {tried} packages were tried");
}

fn run(name: &str, package: &Package, steps: &[Step]) -> (Package, Vec<Value>) {
    let mut package = package.clone();
    let mut results = Vec::new();
    for step in steps {
        let input = package.resource_list(step);
        let outcome = functions::run(&step.function, input.as_bytes()).unwrap();
        assert!(
            outcome.succeeded,
            "{name}: {} failed: {}\n{:?}",
            step.function, outcome.stderr, outcome.results
        );
        let output = String::from_utf8(outcome.output).unwrap();
        results.extend(package.take(&output, step));
    }
    (package, results)
}

/// Compares the texts; where they differ, the difference must be in formatting only.
fn compare(name: &str, found: &Package, expected: &Package) {
    let paths = |package: &Package| package.files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(paths(found), paths(expected), "files of {name}");
    for (path, text) in &found.files {
        let wanted = &expected.files[path];
        if text == wanted {
            continue;
        }
        println!("{name}: {path} differs in formatting");
        let (found, expected) = (package::documents(text), package::documents(wanted));
        assert_eq!(found.len(), expected.len(), "{name}: documents in {path}:\n{text}");
        for (found, expected) in found.iter().zip(&expected) {
            let (found, expected) = (Document::parse(found).unwrap(), Document::parse(expected).unwrap());
            assert_eq!(
                facts(&found, found.root()),
                facts(&expected, expected.root()),
                "{name}: {path}:\n{text}"
            );
        }
    }
}

/// The value and its comments, whatever the formatting.
fn facts(document: &Document<'_>, node: NodeId) -> Vec<String> {
    let mut facts = vec![format!("{:?} {:?}", document.text(node), document.tag(node))];
    facts.extend(document.line_comment(node).map(|comment| format!("line comment {comment}")));
    facts.extend(document.head_comment(node).map(|comment| format!("head comment {comment}")));
    for child in document.children(node) {
        let key = document.key(child).unwrap_or_default().into_owned();
        facts.extend(self::facts(document, child).into_iter().map(|fact| format!("{key}/{fact}")));
    }
    facts
}
