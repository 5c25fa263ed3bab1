//! The example packages of the function catalog that use this function. They are not part of this
//! repository; where they are not found beside it, the test says so.

use std::path::{Path, PathBuf};

use krm::Document;

use super::package::{Package, Step, documents};
use super::run_list;

fn run(package: &Package, steps: &[Step]) -> Package {
    let mut package = package.clone();
    for step in steps {
        let (outcome, _) = run_list(&package.resource_list(step));
        assert!(outcome.succeeded, "{}{:?}", outcome.stderr, outcome.results);
        package.take(&String::from_utf8(outcome.output).unwrap(), step);
    }
    package
}

/// What the documents of a file say; the catalog's function sorts the fields of what it writes.
fn values(file: &str) -> Vec<String> {
    let sorted = |text: &String| {
        let document = Document::parse(text).unwrap();
        let mut lines = Vec::new();
        facts(&document, document.root(), "", &mut lines);
        lines.sort();
        lines.join("\n")
    };
    documents(file).iter().map(sorted).collect()
}

fn facts(document: &Document<'_>, node: krm::NodeId, path: &str, lines: &mut Vec<String>) {
    let comments = (document.head_comment(node), document.line_comment(node));
    lines.push(format!("{path}: {:?} {:?} {comments:?}", document.text(node), document.tag(node)));
    for (at, child) in document.children(node).enumerate() {
        let step = document.key(child).map_or_else(|| at.to_string(), std::borrow::Cow::into_owned);
        facts(document, child, &format!("{path}/{step}"), lines);
    }
}

#[test]
fn packages_become_what_the_catalog_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/catalog");
    let Ok(folders) = std::fs::read_dir(folder) else {
        println!("no packages at ../shared/catalog: nothing was tried");
        return;
    };
    let folders: Vec<PathBuf> =
        folders.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    let mut tried = 0;
    for folder in folders {
        let original = Package::read(&folder);
        let steps = original.steps(&folder);
        if steps.iter().any(|step| step.function != starlark_function::NAME) {
            continue;
        }
        let first = run(&original, &steps);
        let expected = original.expected(&folder);
        let name = folder.display();
        assert_eq!(
            first.files.keys().collect::<Vec<_>>(),
            expected.files.keys().collect::<Vec<_>>(),
            "{name}"
        );
        for (path, text) in &first.files {
            assert_eq!(values(text), values(&expected.files[path]), "{name}: {path}:\n{text}");
        }
        assert_eq!(run(&first, &steps).files, first.files, "{name}: the second run changes something");
        tried += 1;
    }
    assert!(tried >= 2, "only {tried} packages were tried");
}
