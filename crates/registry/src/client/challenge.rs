//! `WWW-Authenticate`: how a registry tells which credentials it wants.
//!
//! Read tolerantly, because registries and the proxies before them write it in many ways: several challenges
//! in one header or in several, parameters quoted or not, commas within quotes, stray commas and spaces.

/// Texts longer than this are no challenge.
const LONGEST_HEADER: usize = 16 * 1024;

/// One way to authenticate. Schemes we do not know are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// User name and password with each request.
    Basic,
    /// A token from the token server at `realm`.
    Bearer { realm: String, service: Option<String>, scope: Option<String>, error: Option<String> },
}

/// All challenges we know of one header.
pub(crate) fn parse(header: &str) -> Vec<Challenge> {
    if header.len() > LONGEST_HEADER {
        return Vec::new();
    }
    let mut challenges = Vec::new();
    let mut scheme: Option<&str> = None;
    let mut parameters: Vec<(String, String)> = Vec::new();
    let mut rest = header;
    loop {
        rest = rest.trim_start_matches(|character: char| character == ',' || character.is_whitespace());
        if rest.is_empty() {
            break;
        }
        let (word, after) = split_word(rest);
        if word.is_empty() {
            // A character that begins nothing: skip it.
            rest = rest.get(rest.chars().next().map_or(1, char::len_utf8)..).unwrap_or_default();
            continue;
        }
        let value_follows = after.trim_start().strip_prefix('=');
        match value_follows {
            Some(value) if scheme.is_some() => {
                let (value, after) = split_value(value.trim_start());
                parameters.push((word.to_ascii_lowercase(), value));
                rest = after;
            }
            // A parameter before any scheme belongs to nothing.
            Some(value) => rest = split_value(value.trim_start()).1,
            None => {
                challenges.extend(scheme.and_then(|scheme| known(scheme, &parameters)));
                parameters.clear();
                scheme = Some(word);
                rest = after;
            }
        }
    }
    challenges.extend(scheme.and_then(|scheme| known(scheme, &parameters)));
    challenges
}

fn known(scheme: &str, parameters: &[(String, String)]) -> Option<Challenge> {
    let parameter = |name: &str| {
        parameters
            .iter()
            .find(|(key, value)| key == name && !value.is_empty())
            .map(|(_, value)| value.clone())
    };
    if scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    Some(Challenge::Bearer {
        realm: parameter("realm")?,
        service: parameter("service"),
        scope: parameter("scope"),
        error: parameter("error"),
    })
}

/// A word ends where a parameter, a list or white space goes on.
fn split_word(text: &str) -> (&str, &str) {
    let end = text
        .find(|character: char| character.is_whitespace() || matches!(character, '=' | ',' | '"'))
        .unwrap_or(text.len());
    text.split_at(end)
}

/// A quoted text with its escapes resolved, or a bare one up to the next comma or white space.
fn split_value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end =
            text.find(|character: char| character.is_whitespace() || character == ',').unwrap_or(text.len());
        let (value, rest) = text.split_at(end);
        return (value.to_owned(), rest);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((position, character)) = characters.next() {
        match character {
            '"' => return (value, quoted.get(position + 1..).unwrap_or_default()),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    // The closing quote is missing: the rest is the value.
    (value, "")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bearer(realm: &str, service: Option<&str>, scope: Option<&str>) -> Challenge {
        Challenge::Bearer {
            realm: realm.to_owned(),
            service: service.map(str::to_owned),
            scope: scope.map(str::to_owned),
            error: None,
        }
    }

    #[test]
    fn what_registries_write_is_understood() {
        for (header, expected) in [
            (
                r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:a/b:pull,push""#,
                vec![bearer(
                    "https://auth.docker.io/token",
                    Some("registry.docker.io"),
                    Some("repository:a/b:pull,push"),
                )],
            ),
            (r#"Basic realm="Registry Realm""#, vec![Challenge::Basic]),
            ("basic", vec![Challenge::Basic]),
            ("BEARER realm=https://h/token , service=h", vec![bearer("https://h/token", Some("h"), None)]),
            (
                r#"Negotiate, Basic realm="a, Bearer realm=x", Bearer realm = "https://h/t?a=b""#,
                vec![Challenge::Basic, bearer("https://h/t?a=b", None, None)],
            ),
            (r#"Bearer realm="a\"b\\c"#, vec![bearer(r#"a"b\c"#, None, None)]),
            (r#",, Bearer ,realm="r",,"#, vec![bearer("r", None, None)]),
            ("Bearer service=\"no realm\"", vec![]),
            ("realm=\"no scheme\"", vec![]),
            ("", vec![]),
            ("\"=,=\"", vec![]),
        ] {
            assert_eq!(parse(header), expected, "{header}");
        }
    }

    #[test]
    fn a_huge_header_is_no_challenge() {
        assert!(parse(&format!("Basic {}", "a=b,".repeat(10_000))).is_empty());
    }

    proptest! {
        #[test]
        fn anything_is_read_without_harm(header in "\\PC*") {
            parse(&header);
        }

        #[test]
        fn many_separators_are_read_without_harm(header in "[a-zB= ,\"\\\\]{0,200}") {
            prop_assert!(parse(&header).len() <= header.len());
        }

        #[test]
        fn what_is_written_is_read(
            realm in "[ -~]{1,40}",
            service in proptest::option::of("[ -~]{1,40}"),
            scope in proptest::option::of("[ -~]{1,40}"),
            gap in "[ ,]{0,3}",
            before in prop_oneof![Just(""), Just("Basic realm=\"x, y\", "), Just("Digest a=b,c=\"d\" ")],
        ) {
            let quote = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
            let mut header = format!("{before}Bearer realm=\"{}\"", quote(&realm));
            for (name, value) in [("service", &service), ("scope", &scope)] {
                if let Some(value) = value {
                    header.extend([",", &gap, name, "=\"", &quote(value), "\""]);
                }
            }
            let found = parse(&header);
            prop_assert_eq!(found.last(), Some(&bearer(&realm, service.as_deref(), scope.as_deref())));
            prop_assert_eq!(found.len(), 1 + usize::from(before.starts_with("Basic")));
        }
    }
}
