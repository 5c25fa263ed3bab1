//! Applies a patch in unified format.

use std::collections::BTreeMap;

/// The files after the patch.
pub(crate) fn apply(files: &BTreeMap<String, String>, patch: &str) -> BTreeMap<String, String> {
    let mut files = files.clone();
    let mut lines = patch.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(old) = line.strip_prefix("--- ") else { continue };
        let new = lines.next().and_then(|line| line.strip_prefix("+++ ")).unwrap();
        let mut hunks = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("diff ")) {
            hunks.push(line);
        }
        let old_text = old.strip_prefix("a/").map(|path| files.remove(path).unwrap());
        if let Some(path) = new.strip_prefix("b/") {
            files.insert(path.to_owned(), patched(&old_text.unwrap_or_default(), &hunks));
        }
    }
    files
}

fn patched(text: &str, hunks: &[&str]) -> String {
    let old: Vec<&str> = text.lines().collect();
    let mut new = Vec::new();
    let mut at = 0;
    let mut no_newline = !text.ends_with('\n');
    for line in hunks {
        match line.as_bytes().first() {
            Some(b'@') => {
                let start: usize =
                    line.split([' ', ',']).nth(1).unwrap().trim_start_matches('-').parse().unwrap();
                let start = start.max(1) - 1;
                new.extend(&old[at..start.max(at)]);
                at = start.max(at);
            }
            Some(b'-') => {
                assert_eq!(old[at], &line[1..]);
                at += 1;
                no_newline = false;
            }
            Some(b'+') => {
                new.push(&line[1..]);
                no_newline = false;
            }
            Some(b'\\') => no_newline = true,
            _ => {
                assert_eq!(old[at], line.get(1..).unwrap_or_default());
                new.push(old[at]);
                at += 1;
            }
        }
    }
    new.extend(&old[at..]);
    let mut text = new.join("\n");
    if !no_newline {
        text.push('\n');
    }
    text
}
