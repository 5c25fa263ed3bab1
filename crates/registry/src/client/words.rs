//! A registry's own words, out of the body of an error.

use serde::Deserialize;

use crate::credentials::Secret;
use crate::error::clean;

/// How much of an error's body is read.
pub(super) const MOST_BYTES: usize = 8 * 1024;
/// How many errors of one answer are told.
const MOST_ERRORS: usize = 3;
/// Shorter secrets are hidden nowhere: they would tear holes into every message, and show themselves by that.
const SHORTEST_SECRET: usize = 4;

/// The shapes in which registries and token servers write errors.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Body {
    errors: Vec<Item>,
    error: Option<serde_json::Value>,
    error_description: Option<serde_json::Value>,
    message: Option<serde_json::Value>,
    details: Option<serde_json::Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Item {
    code: Option<serde_json::Value>,
    message: Option<serde_json::Value>,
}

/// What a body says, and the code of its first error. Secrets that are repeated in it are left out.
pub(super) fn read(body: &[u8], secrets: &[Secret]) -> (Option<String>, Option<String>) {
    let text = String::from_utf8_lossy(body);
    let (said, code) = match serde_json::from_str::<Body>(&text) {
        Ok(body) => from_json(&body),
        // A page for people's browsers explains nothing in one line.
        Err(_) if text.trim_start().starts_with('<') => (String::new(), None),
        Err(_) => (text.into_owned(), None),
    };
    let hidden = secrets
        .iter()
        .map(Secret::reveal)
        .filter(|secret| secret.len() >= SHORTEST_SECRET)
        .fold(said, |said, secret| hide(&said, secret));
    (clean(&hidden), code)
}

/// The text without the secret, and without the beginning of it that the text breaks off in.
fn hide(text: &str, secret: &str) -> String {
    let hidden = text.replace(secret, "***");
    let beginnings = secret.char_indices().rev().filter_map(|(at, _)| secret.get(..at));
    let cut = beginnings
        .take_while(|beginning| beginning.len() >= SHORTEST_SECRET)
        .find_map(|beginning| hidden.strip_suffix(beginning));
    cut.map(|before| format!("{before}***")).unwrap_or(hidden)
}

fn from_json(body: &Body) -> (String, Option<String>) {
    let text = |value: &Option<serde_json::Value>| value.as_ref()?.as_str().map(str::to_owned);
    let code = body.errors.first().and_then(|item| text(&item.code));
    let items: Vec<String> = body
        .errors
        .iter()
        .take(MOST_ERRORS)
        .map(|item| {
            [text(&item.code), text(&item.message)].into_iter().flatten().collect::<Vec<_>>().join(": ")
        })
        .filter(|item| !item.is_empty())
        .collect();
    if !items.is_empty() {
        return (items.join("; "), code);
    }
    let other = [&body.error_description, &body.message, &body.details, &body.error];
    (other.into_iter().find_map(text).unwrap_or_default(), code)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_words_are_found_in_every_shape() {
        for (body, said) in [
            (
                r#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown","detail":{"Tag":"v9"}}]}"#,
                Some("MANIFEST_UNKNOWN: manifest unknown"),
            ),
            (r#"{"errors":[{"code":"A"},{"message":"b"},{},{"code":"d"}]}"#, Some("A; b")),
            (r#"{"error":"invalid_grant","error_description":"expired"}"#, Some("expired")),
            (r#"{"details":"incorrect username or password"}"#, Some("incorrect username or password")),
            ("404 page not found\n", Some("404 page not found")),
            ("<html>no</html>", None),
            ("", None),
            (r#"{"errors":[]}"#, None),
        ] {
            assert_eq!(read(body.as_bytes(), &[]).0.as_deref(), said, "{body}");
        }
    }

    #[test]
    fn repeated_secrets_are_left_out() {
        let body = br#"{"errors":[{"code":"DENIED","message":"wrong password hunter2-hunter2"}]}"#;
        let (said, code) = read(body, &[Secret::new("hunter2")]);
        assert_eq!(said.as_deref(), Some("DENIED: wrong password ***-***"));
        assert_eq!(code.as_deref(), Some("DENIED"));
        // A body may break off in the middle of one.
        for (body, expected) in [
            ("no hunter2", "no ***"),
            ("no hunter", "no ***"),
            ("no hunt", "no ***"),
            ("no hun", "no hun"),
            ("hunter2hunte", "******"),
        ] {
            assert_eq!(
                read(body.as_bytes(), &[Secret::new("hunter2")]).0.as_deref(),
                Some(expected),
                "{body}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_body_becomes_one_bounded_line(body in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let (said, _) = read(&body, &[]);
            prop_assert!(said.is_none_or(|said| said.chars().count() < 500 && !said.chars().any(char::is_control)));
        }
    }
}
