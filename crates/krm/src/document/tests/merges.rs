//! Merge keys.

use crate::{Document, Value};

const LIST: &str = "\
containers:
- &c
  name: a # A
  image: old
  env: {a: b}
- {<<: *c, name: b}
- <<: *c
  name: c
";

fn images(document: &Document<'_>) -> Vec<String> {
    let containers = document.get(document.root(), "containers").unwrap();
    let image = |container| document.string_at(container, &["image"]).unwrap().into_owned();
    document.entries(containers).map(image).collect()
}

fn set_images(document: &mut Document<'_>, of: &[usize]) {
    let containers = document.get(document.root(), "containers").unwrap();
    let containers: Vec<_> = document.entries(containers).collect();
    for &at in of {
        document.set_field(containers[at], "image", "new").unwrap();
    }
}

#[test]
fn they_are_read_as_the_fields_that_they_stand_for() {
    let text = "a: &a {x: 1, y: 2}\nb: &b {<<: *a, y: 3}\nc: {<<: [*b, {y: 4, z: 5}], w: 6}\nd: *b\n";
    let document = Document::parse(text).unwrap();
    let numbers = |fields: &[(&str, &str)]| {
        Value::Mapping(fields.iter().map(|(key, value)| ((*key).to_owned(), Value::plain(*value))).collect())
    };
    let value = |key: &str| document.value(document.get(document.root(), key).unwrap());
    assert_eq!(value("b"), numbers(&[("y", "3"), ("x", "1")]));
    assert_eq!(value("c"), numbers(&[("w", "6"), ("y", "3"), ("x", "1"), ("z", "5")]));
    assert_eq!(value("d"), value("b"));
}

#[test]
fn they_stay_where_all_fields_change_alike() {
    let mut document = Document::parse(LIST).unwrap();
    assert_eq!(document.to_text().unwrap(), LIST);
    set_images(&mut document, &[0, 1, 2]);
    assert_eq!(images(&document), ["new", "new", "new"]);
    assert_eq!(document.to_text().unwrap(), LIST.replace("old", "new"));
}

#[test]
fn what_differs_becomes_a_field() {
    let mut document = Document::parse(LIST).unwrap();
    set_images(&mut document, &[1, 2]);
    let expected = LIST.replace("name: b}", "name: b, image: new}") + "  image: new\n";
    assert_eq!(document.to_text().unwrap(), expected);
    assert_eq!(images(&Document::parse(&expected).unwrap()), ["old", "new", "new"]);
    let mut document = Document::parse(LIST).unwrap();
    set_images(&mut document, &[0]);
    let expected = LIST.replace("old", "new").replace("name: b}", "name: b, image: old}") + "  image: old\n";
    assert_eq!(document.to_text().unwrap(), expected);
}

#[test]
fn what_would_say_too_much_goes() {
    let mut document = Document::parse(LIST).unwrap();
    let containers = document.get(document.root(), "containers").unwrap();
    let last = document.entries(containers).last().unwrap();
    document.remove(document.get(last, "image").unwrap());
    let expected = LIST.replace("- <<: *c\n  name: c\n", "- name: c\n  env: {a: b}\n");
    assert_eq!(document.to_text().unwrap(), expected);
    // Nor can it stay when what it stands for has gone, or has got what it must not give.
    let mut document = Document::parse(LIST).unwrap();
    let first = document.entries(containers).next().unwrap();
    document.remove(first);
    let expected =
        "containers:\n- {name: b, image: old, env: {a: b}}\n- name: c\n  image: old\n  env: {a: b}\n";
    assert_eq!(document.to_text().unwrap(), expected);
    let mut document = Document::parse(LIST).unwrap();
    document.set_field(first, "tty", true).unwrap();
    let expected = LIST
        .replace("  env: {a: b}\n", "  env: {a: b}\n  tty: true\n")
        .replace("{<<: *c, name: b}", "{name: b, image: old, env: {a: b}}")
        .replace("- <<: *c\n  name: c\n", "- name: c\n  image: old\n  env: {a: b}\n");
    assert_eq!(document.to_text().unwrap(), expected);
}

#[test]
fn other_keys_of_that_name_stay_what_they_are() {
    for text in [
        "\"<<\": {a: b}\n",
        "'<<': {a: b}\n",
        "!!str <<: {a: b}\n",
        "<<: a\n",
        "<<: [a]\n",
        "{\"<<\":{\"a\":1}}",
    ] {
        let document = Document::parse(text).unwrap();
        assert!(document.get(document.root(), "<<").is_some(), "{text}");
        assert!(document.get(document.root(), "a").is_none(), "{text}");
    }
    let document = Document::parse("!!merge <<: {a: b}\n").unwrap();
    assert!(document.get(document.root(), "a").is_some());
}

/// Each level has the fields of the one before it several times.
#[test]
fn they_do_not_multiply_without_end() {
    let level = |level: usize| {
        let before = level - 1;
        format!("a{level}: &a{level} {{<<: *a{before}, p{level}: *a{before}, q{level}: *a{before}}}\n")
    };
    let levels: Vec<String> = (1..40).map(level).collect();
    let text = format!("a0: &a0 {{x: 1}}\n{}", levels.concat());
    let error = Document::parse(&text).unwrap_err().to_string();
    assert!(error.contains("aliases"), "{error}");
}
