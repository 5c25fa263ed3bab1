//! Paths, patterns and selectors by chance.

use crate::maker::Maker;

/// Places that resources have, so that paths lead somewhere.
const PLACES: [&[&str]; 14] = [
    &["a"],
    &["l"],
    &["spec", "l", "a"],
    &["spec", "l"],
    &["metadata", "name"],
    &["metadata", "annotations"],
    &["metadata", "labels", "a"],
    &["spec", "template", "spec", "containers", "image"],
    &["aliased", "anchored"],
    &["deep", "a", "a", "a", "a", "a"],
    &["a", "a", "a"],
    &["m", "a"],
    &["t"],
    &["f"],
];

/// Pieces of regular expressions that are large, slow or odd.
const EXPRESSIONS: [&str; 22] = [
    "a",
    ".*",
    "(a|b)*",
    "(a?){30}",
    "\\pL",
    "\\pL{8}",
    "(?i)\\pL",
    "[^a]",
    "(?i)[^a]",
    "{",
    "}",
    "[[:",
    "[a",
    "(",
    "\\Q",
    "\\w+",
    "a{1,1000}",
    "()",
    "\\b",
    "nginx",
    "$",
    "|",
];

/// Parts of a path, which is one of the places, a long way down, or anything.
fn parts(maker: &mut Maker) -> Vec<String> {
    let mut parts: Vec<String> = match maker.below(5) {
        0 => (0..maker.count("parts of a path")).map(|_| "a".to_owned()).collect(),
        1 => (0..=maker.below(8)).map(|_| maker.word()).collect(),
        _ => PLACES[maker.below(PLACES.len())].iter().map(|&part| part.to_owned()).collect(),
    };
    if maker.once_in(8) {
        parts.push(maker.any("length of a part"));
    }
    parts
}

/// A path with slashes.
pub(crate) fn field_spec_path(maker: &mut Maker) -> String {
    let mut path = parts(maker).join("/");
    if maker.once_in(4) {
        path = path.replace("/a", "[]/a").replace("containers", "containers[]");
    }
    path
}

/// A path with dots, as replacements have it.
pub(crate) fn field_path(maker: &mut Maker) -> String {
    let mut parts = parts(maker);
    if maker.once_in(2) {
        let part = match maker.below(8) {
            0 => "*".to_owned(),
            1 => "0".to_owned(),
            2 => format!("{}", maker.below(3000)),
            3 => "[=a]".to_owned(),
            4 => format!("[a={}]", expression(maker)),
            5 => format!("[{}", maker.again("open bracket", &["a.", "a\\.", "."])),
            6 => format!("[a={}]", maker.any("length of a value")),
            _ => "-".to_owned(),
        };
        parts.insert(maker.below(parts.len() + 1), part);
    }
    parts.join(".")
}

/// A path as search-replace matches it.
pub(crate) fn field_match(maker: &mut Maker) -> String {
    match maker.below(5) {
        0 => maker.again("stars", &["**.", "*.", "a[*].", "a."]) + "a",
        1 => format!("{}[{}]", maker.word(), maker.any("length of an index")),
        2 => "**".to_owned(),
        _ => parts(maker).join("."),
    }
}

/// A regular expression.
pub(crate) fn expression(maker: &mut Maker) -> String {
    match maker.below(4) {
        0 => maker.again("expression", &EXPRESSIONS),
        1 => (0..maker.below(40)).map(|_| maker.pick(&EXPRESSIONS)).collect(),
        2 => ".*".to_owned(),
        _ => maker.word(),
    }
}

/// A pattern of file paths.
pub(crate) fn glob(maker: &mut Maker) -> String {
    maker.again("pattern", &["*", "**/", "[a-z]", "[!a]", "{a,b}", "?", "a", "{", "["])
}

/// A selector of labels.
pub(crate) fn label_selector(maker: &mut Maker) -> String {
    match maker.below(3) {
        0 => maker.again("requirements", &["a!=x,", "!b,", "a notin (x),", "a,"]) + "a!=y",
        1 => format!("a notin ({})", maker.again("values", &["x,", "y,", ","]) + "z"),
        _ => "a".to_owned(),
    }
}
