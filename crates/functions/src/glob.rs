//! Patterns of file paths, such as `**/setters.yaml`, as the catalog's functions know them.

use std::iter::Peekable;
use std::str::Chars;

use krm::Budget;

use crate::regexp::{Expression, literal};

/// Compiles a pattern of whole paths: `*` and `?` stay within a folder, `**/` is any number of folders,
/// `[a-z]`, `[^a]` and `[!a]` are classes of characters, `{a,b}` are alternatives, a backslash takes a
/// character's meaning away.
pub(crate) fn compile(pattern: &str, budget: &Budget) -> Result<Expression, String> {
    let malformed = |cause: &str| format!("syntax error in pattern: {cause}: `{pattern}`");
    let expression = translate(pattern).map_err(malformed)?;
    Expression::new(&expression, budget).map_err(|cause| malformed(&cause))
}

fn translate(pattern: &str) -> Result<String, &'static str> {
    let mut out = "(?s)^".to_owned();
    let mut rest = pattern.chars().peekable();
    // For each brace that is open: whether a folder or file starts with it.
    let mut open = Vec::new();
    let mut starts = true;
    while let Some(character) = rest.next() {
        let started = std::mem::replace(&mut starts, character == '/');
        match character {
            '*' if rest.next_if_eq(&'*').is_some() && started => match rest.peek() {
                None => out.push_str(".*"),
                Some('/') => {
                    rest.next();
                    out.push_str("(?:.*/)?");
                    starts = true;
                }
                Some(_) => out.push_str("[^/]*"),
            },
            '*' => out.push_str("[^/]*"),
            '?' => out.push_str("[^/]"),
            '[' => class(&mut rest, &mut out)?,
            '{' => {
                open.push(started);
                starts = started;
                out.push_str("(?:");
            }
            ',' if !open.is_empty() => {
                starts = open.last().copied().unwrap_or_default();
                out.push('|');
            }
            '}' => {
                open.pop().ok_or("a brace is closed that is not open")?;
                out.push(')');
            }
            // A folder is also in itself.
            '/' if open.is_empty() && rest.clone().eq("**".chars()) => {
                out.push_str("(?:/.*)?");
                break;
            }
            '\\' => literal(&mut out, rest.next().ok_or("nothing follows the last backslash")?),
            other => literal(&mut out, other),
        }
    }
    if !open.is_empty() {
        return Err("a brace is not closed");
    }
    out.push('$');
    Ok(out)
}

fn class(rest: &mut Peekable<Chars<'_>>, out: &mut String) -> Result<(), &'static str> {
    const OPEN: &str = "a bracket is not closed";
    out.push('[');
    if rest.next_if(|&character| matches!(character, '^' | '!')).is_some() {
        out.push('^');
    }
    if rest.peek() == Some(&']') {
        return Err("there is nothing in brackets");
    }
    loop {
        let low = match rest.next().ok_or(OPEN)? {
            ']' => break,
            '\\' => rest.next().ok_or(OPEN)?,
            character => character,
        };
        literal(out, low);
        let mut ahead = rest.clone();
        if ahead.next() != Some('-') || ahead.peek() == Some(&']') {
            continue;
        }
        rest.next();
        let high = match rest.next().ok_or(OPEN)? {
            '\\' => rest.next().ok_or(OPEN)?,
            character => character,
        };
        if high < low {
            return Err("a range ends before it starts");
        }
        out.push('-');
        literal(out, high);
    }
    out.push(']');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, matching: &[&str], other: &[&str]) {
        let glob = compile(pattern, &Budget::default()).unwrap();
        for path in matching {
            assert!(glob.is_match(path).unwrap(), "{pattern} does not match {path}");
        }
        for path in other {
            assert!(!glob.is_match(path).unwrap(), "{pattern} matches {path}");
        }
    }

    #[test]
    fn stars_stay_within_a_folder_unless_they_are_two() {
        check(
            "resources.yaml",
            &["resources.yaml"],
            &["a/resources.yaml", "resources.yaml.old", "resourcesxyaml"],
        );
        check(
            "**/baz.yaml",
            &["foo/bar/baz.yaml", "bar/baz.yaml", "baz.yaml"],
            &["foo/bar/bat.yaml", "foobaz.yaml"],
        );
        check(
            "foo/**/baz.yaml",
            &["foo/bar/baz.yaml", "foo/bar/bor/baz.yaml", "foo/baz.yaml"],
            &["bar/baz.yaml", "baz.yaml"],
        );
        check("foo/*/baz.yaml", &["foo/bar/baz.yaml"], &["foo/baz.yaml", "foo/bar/bor/baz.yaml"]);
        check(
            "foo/bar/*.yaml",
            &["foo/bar/baz.yaml", "foo/bar/.yaml"],
            &["foo/baz.yaml", "foo/bar/x/baz.yaml"],
        );
        check("a/**.txt", &["a/b.txt", "a/.txt"], &["a/b/c.txt"]);
        check("a/**", &["a", "a/b", "a/b/c"], &["ab", "b/a"]);
        check("**", &["a", "a/b"], &[]);
        check("*", &["a", ""], &["a/b"]);
        check("a?c", &["abc", "aäc"], &["a/c", "ac", "abbc"]);
    }

    #[test]
    fn classes_and_alternatives() {
        check("[a-c]x", &["ax", "cx"], &["dx", "x"]);
        check("[^a-c]x", &["dx"], &["ax"]);
        check("[!ab]x", &["cx"], &["ax", "bx"]);
        check(r"[a\-\]]x", &["ax", "-x", "]x"], &["bx"]);
        check("[a-]x", &["ax", "-x"], &["bx"]);
        check("{a,b*}/c", &["a/c", "bb/c"], &["c/c", "a"]);
        check("{**/,x/}y", &["a/b/y", "y", "x/y"], &["xy"]);
        check("x{,.{yaml,yml}}", &["x", "x.yaml", "x.yml"], &["x."]);
        check("a,b", &["a,b"], &["a", "b"]);
    }

    #[test]
    fn a_backslash_takes_the_meaning_away() {
        check(r"a\*", &["a*"], &["ab"]);
        check(r"\{a,b\}", &["{a,b}"], &["a"]);
        check("a.b+(c)$", &["a.b+(c)$"], &["axb+(c)$"]);
    }

    #[test]
    fn malformed_patterns_are_told() {
        for pattern in ["[a", "[", "[]", "[]a", "[^]", "{a", "{a,{b}", "a}", "a\\", "[b-a]", "[a-", "[a\\"] {
            let error = compile(pattern, &Budget::default()).unwrap_err();
            assert!(error.starts_with("syntax error in pattern: ") && error.contains(pattern), "{error}");
        }
    }
}
