//! Invents `ResourceList`s as text, and knows what is in them.

use std::fmt::Write as _;

use crate::{FunctionResult, ResourceRef};

/// Decisions taken one after the other from given bytes: fewer and smaller bytes make simpler texts, so
/// that failures shrink well.
pub(crate) struct Choices<'a>(std::slice::Iter<'a, u8>);

impl<'a> Choices<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes.iter())
    }

    pub(crate) fn below(&mut self, limit: u8) -> u8 {
        self.0.next().map_or(0, |choice| choice % limit)
    }

    pub(crate) fn of<T: Copy>(&mut self, options: &[T]) -> T {
        options[usize::from(self.below(u8::try_from(options.len()).unwrap()))]
    }
}

#[derive(Debug)]
pub(crate) struct Invented {
    pub(crate) text: String,
    pub(crate) api_version: Option<String>,
    pub(crate) results: Vec<FunctionResult>,
}

pub(crate) const WORDS: &[&str] = &[
    "web",
    "a b",
    "1",
    "-1",
    "true",
    "null",
    "",
    "x: y",
    "a # b",
    "#",
    "- a",
    "it's",
    "say \"hi\"",
    "ünï ✓",
    "a\nb",
    "a\n\n  b\n",
    "{}",
    "[x]",
    "*a",
    "&a",
    "!t",
    "|",
    ">",
    "%",
    "@",
    "`",
    "?",
    "a:",
    ":8080",
    "http://a:1/b#c",
    "\\n",
    "  lead",
    "trail  ",
    "tab\tbed",
    "---",
    "...",
    "--- a",
    "~",
    "\u{1F600}",
    "\u{1}",
    "\u{85}",
    "\u{2028}",
    "a,b",
    "=",
    "<<",
    "0x1F",
    "2001-01-01",
    "a long text that goes on and on, so that an emitter would want to fold it",
];

const COMMENTS: &[&str] = &["", "", "", " # note", " #", "   ", " # key: \"value\" - [x\t"];

/// Whether the text means itself as a plain scalar, in block and flow style.
fn is_plain_safe(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b' ')
        && text.trim() == text
        && !["null", "true"].contains(&text)
}

fn single_line(text: &str) -> bool {
    text.chars().all(|character| !character.is_control() && character != '\u{2028}')
}

fn double_quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            control if control.is_control() => write!(quoted, "\\u{:04x}", u32::from(control)).unwrap(),
            other => quoted.push(other),
        }
    }
    quoted + "\""
}

/// A scalar as it may stand after `key: ` in a mapping at `column`, with its line end.
pub(crate) fn scalar(choices: &mut Choices<'_>, text: &str, column: usize) -> String {
    let comment = choices.of(COMMENTS);
    let pad = " ".repeat(column + 2);
    match choices.below(7) {
        0 if is_plain_safe(text) => format!("{text}{comment}\n"),
        // Folded onto a second line where it has a blank.
        1 if is_plain_safe(text) => format!("{}{comment}\n", text.replacen(' ', &format!("\n{pad}"), 1)),
        2 if single_line(text) => format!("'{}'{comment}\n", text.replace('\'', "''")),
        3 if text.lines().all(|line| single_line(line) && !line.starts_with(' '))
            && text.ends_with(|end| end != '\n') =>
        {
            let marker = choices.of(&["|-", "|2-", "|-2"]);
            let lines: Vec<String> = text
                .split('\n')
                .map(|line| if line.is_empty() { String::new() } else { format!("{pad}{line}") })
                .collect();
            format!("{marker}{comment}\n{}\n", lines.join("\n"))
        }
        4 if single_line(text) && !text.is_empty() && text.trim() == text && !text.contains("  ") => {
            format!(">-\n{pad}{}\n", text.replacen(' ', &format!("\n{pad}"), 1))
        }
        5 if single_line(text) && text.trim() == text && !text.contains("  ") => {
            format!("{}{comment}\n", double_quoted(text).replacen(' ', &format!("\n{pad} "), 1))
        }
        _ => format!("{}{comment}\n", double_quoted(text)),
    }
}

/// What a manifest may have in it, at this column.
pub(crate) fn anything(choices: &mut Choices<'_>, text: &mut String, column: usize) {
    let pad = " ".repeat(column);
    for number in 0..=choices.below(3) {
        let noise = choices.of(&["", "", "\n", "# note\n", "      # deep: note\n", "   \n"]);
        text.push_str(noise);
        let quote = choices.of(&["", "", "\"", "'"]);
        let gap = choices.of(&["", "", " "]);
        write!(text, "{pad}{quote}key{number}{quote}{gap}:").unwrap();
        match choices.below(if column > 12 { 3 } else { 8 }) {
            0 => text.push_str(choices.of(&[
                " {}\n",
                " []\n",
                "\n",
                " [a, \"b\", -1] # c\n",
                " {a: b, c: [d, {e: 'f'}]}\n",
            ])),
            1 | 2 => {
                let word = choices.of(WORDS);
                let value = scalar(choices, word, column);
                write!(text, " {value}").unwrap();
            }
            3 | 4 => {
                text.push_str(choices.of(COMMENTS));
                text.push('\n');
                let deeper = choices.of(&[2, 4, 1]);
                anything(choices, text, column + deeper);
            }
            5 => {
                text.push('\n');
                let dash = column + choices.of(&[0, 2]);
                for _ in 0..=choices.below(2) {
                    let word = choices.of(WORDS);
                    let value = scalar(choices, word, dash);
                    write!(text, "{}- {value}", " ".repeat(dash)).unwrap();
                }
            }
            6 => {
                text.push('\n');
                let dash = column + choices.of(&[0, 2]);
                let mut inner = String::new();
                anything(choices, &mut inner, dash + 2);
                write!(text, "{}-\n{inner}", " ".repeat(dash)).unwrap();
            }
            _ => {
                text.push('\n');
                let dash = column + choices.of(&[0, 2]);
                for _ in 0..=choices.below(2) {
                    let first = scalar(choices, "web", dash + 2);
                    write!(text, "{}- name: {first}", " ".repeat(dash)).unwrap();
                    anything(choices, text, dash + 2);
                }
            }
        }
    }
}

fn result(choices: &mut Choices<'_>) -> FunctionResult {
    let severity = choices.of(&[None, Some("error"), Some("warning"), Some("info")]).map(str::to_owned);
    let message = choices.of(WORDS).to_owned();
    let resource = (choices.below(2) == 1).then(|| ResourceRef {
        api_version: choices.of(&["v1", "apps/v1", ""]).to_owned(),
        kind: "Service".to_owned(),
        namespace: choices.of(&["", "shop"]).to_owned(),
        name: choices.of(WORDS).to_owned(),
    });
    let field_path = choices.of(&[None, Some("spec.replicas"), Some("a b")]).map(str::to_owned);
    FunctionResult { severity, message, resource, field_path }
}

/// The result as a list entry whose fields stand at `column`.
fn result_text(choices: &mut Choices<'_>, result: &FunctionResult, column: usize) -> String {
    let pad = " ".repeat(column);
    let mut fields = vec![format!("message: {}", scalar(choices, &result.message, column))];
    if let Some(severity) = &result.severity {
        fields.push(format!("severity: {}", scalar(choices, severity, column)));
    }
    if let Some(resource) = &result.resource {
        let mut field = "resourceRef:\n".to_owned();
        let parts = [
            ("name", &resource.name),
            ("kind", &resource.kind),
            ("namespace", &resource.namespace),
            ("apiVersion", &resource.api_version),
        ];
        for (key, part) in parts {
            write!(field, "{pad}  {key}: {}", scalar(choices, part, column + 2)).unwrap();
        }
        fields.push(field);
    }
    if let Some(path) = &result.field_path {
        fields.push(format!("field:\n{pad}  path: {}", scalar(choices, path, column + 2)));
    }
    fields.push("tags: {}\n".to_owned());
    let first = usize::from(choices.below(4)).min(fields.len() - 1);
    fields.rotate_left(first);
    format!("{}- {}", " ".repeat(column - 2), fields.join(&pad))
}

/// A `ResourceList` in block style.
pub(crate) fn block(choices: &mut Choices<'_>) -> Invented {
    let api_version =
        choices.of(&[Some("config.kubernetes.io/v1"), None, Some("x: y"), Some("1")]).map(str::to_owned);
    let mut results: Vec<FunctionResult> = Vec::new();
    let mut sections = vec![format!("kind: {}", scalar(choices, "ResourceList", 0))];
    if let Some(version) = &api_version {
        sections.push(format!(
            "{}: {}",
            choices.of(&["apiVersion", "\"apiVersion\""]),
            scalar(choices, version, 0)
        ));
    }
    let mut items = "items:\n".to_owned();
    for _ in 0..choices.below(3) {
        items.push_str("- apiVersion: v1\n  kind: Service\n");
        anything(choices, &mut items, 2);
    }
    sections.push(items);
    match choices.below(5) {
        0 => {}
        1 => sections.push(
            choices
                .of(&["results: []\n", "results:\n", "results: null\n", "results: {items: []}\n"])
                .to_owned(),
        ),
        how => {
            let (mut section, column) = match how {
                2 => ("results:\n".to_owned(), 2),
                3 => ("\"results\": # all\n".to_owned(), 4),
                _ => ("results:\n  metadata: {}\n  items:\n".to_owned(), 4),
            };
            for _ in 0..=choices.below(3) {
                let result = result(choices);
                section.push_str(&result_text(choices, &result, column));
                results.push(result);
            }
            sections.push(section);
        }
    }
    let first = usize::from(choices.below(4)) % sections.len();
    sections.rotate_left(first);
    let start = choices.of(&["", "", "---\n", "# head\n\n--- # start\n", "\u{FEFF}", "\n"]);
    let between = choices.of(&["", "# between\n", "\n"]);
    Invented { text: format!("{start}{}", sections.join(between)), api_version, results }
}

/// A `ResourceList` in JSON.
pub(crate) fn json(choices: &mut Choices<'_>) -> Invented {
    let api_version = choices.of(&[Some("config.kubernetes.io/v1"), None]).map(str::to_owned);
    let results: Vec<FunctionResult> = (0..choices.below(4)).map(|_| result(choices)).collect();
    let entries: Vec<String> = results
        .iter()
        .map(|result| {
            let mut fields = vec![format!("\"message\":{}", double_quoted(&result.message))];
            if let Some(severity) = &result.severity {
                fields.push(format!("\"severity\": {}", double_quoted(severity)));
            }
            if let Some(ResourceRef { api_version, kind, namespace, name }) = &result.resource {
                fields.push(format!(
                    "\"resourceRef\": {{\"apiVersion\":{}, \"kind\":{}, \"namespace\":{}, \"name\":{}}}",
                    double_quoted(api_version),
                    double_quoted(kind),
                    double_quoted(namespace),
                    double_quoted(name)
                ));
            }
            if let Some(path) = &result.field_path {
                fields.push(format!("\"field\":{{\"path\":{},\"index\":0}}", double_quoted(path)));
            }
            format!("{{{}}}", fields.join(","))
        })
        .collect();
    let values = [
        "{}",
        "[]",
        "-1.5e+3",
        "true",
        "null",
        "[[], {\"a\": [0]}]",
        "\"\\ud83d\\ude00\\/\"",
        "{\"a\":\"b\"}",
    ];
    let mut sections = vec![
        "\"kind\":\"ResourceList\"".to_owned(),
        format!("\"items\":[{}, {}]", choices.of(&values), choices.of(&values)),
        format!(
            "\"results\": {}",
            match choices.below(2) {
                0 => format!("[{}]", entries.join(",\t")),
                _ => format!("{{\"items\": [{}]}}", entries.join(",\n")),
            }
        ),
    ];
    if let Some(version) = &api_version {
        sections.push(format!("\"apiVersion\" : {}", double_quoted(version)));
    }
    let first = usize::from(choices.below(4)) % sections.len();
    sections.rotate_left(first);
    let gap = choices.of(&["", "\n", "\n\t", "\r\n  ", " "]);
    let text = format!("{gap}{{{gap}{}{gap}}}{gap}", sections.join(&format!(",{gap}")));
    Invented { text: text.trim_start_matches('\t').to_owned(), api_version, results }
}
