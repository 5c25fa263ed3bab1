//! Errors in the words of go.starlark.net, which people know and tests compare.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use starlark::values::Value;
use starlark::values::dict::DictRef;

use super::problem;

/// What the interpreter says of what went wrong in a run, and what Go says.
const RUNTIME: &[(&str, &str)] = &[
    (r"^Key `(?s)(.*)` was not found$", "key $1 not in dict"),
    (r"^Key `(?s).*` not found in dictionary `.*`$", "pop: missing key"),
    (r"^Operation `cmp\(\)` not supported for types `(.*)` and `(.*)`$", "$1 < $2 not implemented"),
    (r"^Operation `(\S+)` not supported for types `(.*)` and `(.*)`$", "unknown binary op: $2 $1 $3"),
    (r"^Operation `\(iter\)` not supported on type `(.*)`$", "$1 value is not iterable"),
    (r"^Operation `call\(\)` not supported on type `(.*)`$", "invalid call of non-function ($1)"),
    (r"^Operation `\[\]` not supported on type `(.*)`$", "unhandled index operation $1[]"),
    (r"^Operation `([-+~])` not supported on type `(.*)`$", "unknown unary op: $1 $2"),
    (r"^Operation `\.(\w+)` not supported on type `(.*)`$", "getattr: $2 has no .$1 field or method"),
    (r"^Operation `len\(\)` not supported on type `(.*)`$", "got $1 in sequence assignment"),
    (
        r"^Object of type `struct` has no attribute `open_api`.*$",
        "ctx.open_api is not available in the built-in starlark function; let the service run the function's image \
         instead",
    ),
    (r"^Object of type `struct` has no attribute `(\w+)`.*$", "struct has no .$1 attribute"),
    (r"^Object of type `(.*)` has no attribute `(\w+)`.*$", "$1 has no .$2 field or method"),
    (r"^Value of type `(.*)` is not hashable$", "unhashable type: $1"),
    (
        r"^Local variable `(\w+)` referenced before assignment$",
        "local variable $1 referenced before assignment",
    ),
    (r"^Missing parameter `(\w+)` for call to `(?:.*\.)?(\w+)`$", "function $2 missing 1 argument ($1)"),
    (r"^Argument `(\w+)` occurs more than once$", "got multiple values for parameter \"$1\""),
    (
        r"^Found `(\w+)` extra named parameter\(s\) for call to (?:.*\.)?(\w+)$",
        "function $2 got an unexpected keyword argument \"$1\"",
    ),
    (r"^float division by zero.*$", "floating-point division by zero"),
    (r"^Floor division by zero.*$", "floored division by zero"),
    (r"^Modulo by zero.*$", "integer modulo by zero"),
    (r"^Cannot parse `(?s)(.*)` as an integer in base (\d+)$", "int: invalid literal with base $2: $1"),
    (r"^Element '(?s).*' not found in '.*'$", "index: value not in list"),
    (r"^Third argument of range \(step\) cannot be zero$", "range: step argument must not be zero"),
    (
        r"^This operation mutates an iterable for an iterator while iterating\.$",
        "cannot change a list or a hash table during iteration",
    ),
    (r#"^"(?s)(.*)" is not a valid number: invalid float literal$"#, "invalid float literal: $1"),
];

static RUNTIME_WORDS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    RUNTIME.iter().filter_map(|(theirs, ours)| Some((Regex::new(theirs).ok()?, *ours))).collect()
});

/// What went wrong in a run, in Go's words as far as they are known here.
pub(crate) fn in_go_words(said: &str) -> String {
    if let Some(counts) = counts(said) {
        return counts;
    }
    let known = RUNTIME_WORDS.iter().find(|(theirs, _)| theirs.is_match(said));
    known.map_or_else(|| said.to_owned(), |(theirs, ours)| theirs.replace(said, *ours).into_owned())
}

/// Where numbers decide about the words.
fn counts(said: &str) -> Option<String> {
    let unpacked = Regex::new(r"^Unpacked (\d+) values but expected (\d+)$").ok()?;
    let number = |found: &Captures<'_>, at: usize| found.get(at)?.as_str().parse::<usize>().ok();
    let found = unpacked.captures(said)?;
    let (got, want) = (number(&found, 1)?, number(&found, 2)?);
    let many = if got > want { "many" } else { "few" };
    Some(format!("too {many} values to unpack (got {got}, want {want})"))
}

/// What is wrong with a program before it runs, in Go's words as far as they are known here; and whether a line break
/// is in the wrong place.
pub(crate) fn syntax_in_go_words(said: &str) -> (String, bool) {
    let said = said.strip_prefix("Parse error: ").unwrap_or(said);
    if let Some(name) = said.strip_prefix("Variable `").and_then(|rest| rest.split('`').next()) {
        return (format!("undefined: {name}"), false);
    }
    let known = match said {
        "unfinished string literal" => Some("unexpected newline in string"),
        "`return` cannot be used outside of a `def` function" => {
            Some("return statement not within a function")
        }
        "`break` cannot be used outside of a `for` loop" => Some("break not in a loop"),
        "`continue` cannot be used outside of a `for` loop" => Some("continue not in a loop"),
        _ => None,
    };
    if let Some(known) = known {
        return (known.to_owned(), false);
    }
    let Some((got, want)) = said.strip_prefix("unexpected ").and_then(|rest| rest.split_once(", expected "))
    else {
        return (said.to_owned(), false);
    };
    let is_line_break = got.starts_with("new line");
    (format!("got {}, want {}", token(got), token(want)), is_line_break)
}

/// What Go calls a part of a program.
fn token(theirs: &str) -> String {
    match theirs {
        "new line" => return "newline".to_owned(),
        "expression" => return "primary expression".to_owned(),
        "new indentation block" => return "indent".to_owned(),
        _ => {}
    }
    if theirs.starts_with("string literal ") {
        return "string literal".to_owned();
    }
    if let Some(symbol) = theirs.strip_prefix("symbol ") {
        return symbol.to_owned();
    }
    match theirs.strip_prefix("keyword '").and_then(|rest| rest.strip_suffix('\'')) {
        Some(keyword) => keyword.to_owned(),
        None => theirs.to_owned(),
    }
}

/// Why there is nothing at an index, if that is so.
pub(super) fn of_index(value: Value<'_>, index: Value<'_>) -> Option<starlark::Error> {
    if DictRef::from_value(value).is_some() {
        return None;
    }
    let kind = value.get_type();
    let length = match value.unpack_str() {
        Some(string) => string.len(),
        None if matches!(kind, "list" | "tuple") => usize::try_from(value.length().ok()?).ok()?,
        None => return None,
    };
    if index.get_type() != "int" {
        let found = index.get_type();
        return Some(problem(format!("{kind} index: got {found}, want int")));
    }
    let index = index.to_repr();
    Some(problem(match length.checked_sub(1) {
        None => format!("index {index} out of range: empty {kind}"),
        Some(last) => format!("{kind} index {index} out of range [-{length}:{last}]"),
    }))
}

pub(super) fn no_attribute(kind: &str, name: &str) -> starlark::Error {
    problem(match kind {
        "struct" => format!("struct has no .{name} attribute"),
        _ => format!("{kind} has no .{name} field or method"),
    })
}
