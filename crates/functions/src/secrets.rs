//! Values that should not be told in results, since results are shown and kept.

use std::sync::OnceLock;

use regex::Regex;

/// What stands in the place of a secret.
const REDACTED: &str = "<redacted>";

/// How many characters of a value are told.
const MOST: usize = 128;

/// Words in the name of a field or setter whose value is a secret.
const NAMES: &[&str] = &[
    "api-key",
    "api_key",
    "apikey",
    "auth",
    "bearer",
    "cert",
    "credential",
    "passwd",
    "password",
    "private_key",
    "privatekey",
    "secret",
    "token",
];

/// What a secret of some kind looks like.
struct Shape {
    /// One of these is in it, if case does not matter.
    signs: &'static [&'static str],
    expression: &'static str,
    compiled: OnceLock<Option<Regex>>,
}

const fn shape(signs: &'static [&'static str], expression: &'static str) -> Shape {
    Shape { signs, expression, compiled: OnceLock::new() }
}

/// Rather too much is held back than too little: nothing is made of how random a value looks.
static SHAPES: [Shape; 12] = [
    // Keys and certificates.
    shape(&["-----begin"], "-----BEGIN [A-Z ]+-----"),
    // JSON web tokens.
    shape(&["eyj"], r"\bey[A-Za-z0-9_-]{10,}\.ey[A-Za-z0-9_-]{10,}\."),
    // Access keys of AWS.
    shape(&["a3t", "akia", "asia", "abia", "acca"], r"\b(?:A3T[A-Z0-9]|A(?:KI|SI|BI|CC)A)[A-Z0-9]{16}\b"),
    // GitHub and GitLab.
    shape(&["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], r"gh[opsru]_[A-Za-z0-9]{36}"),
    shape(&["github_pat_", "glpat-"], r"(?:github_pat_|glpat-)[A-Za-z0-9_-]{20}"),
    // Google, Azure.
    shape(&["aiza"], r"\bAIza[A-Za-z0-9_-]{35}"),
    shape(&["q~"], r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31}"),
    // Slack.
    shape(&["xox", "xapp-"], r"(?i)\b(?:xox[abeprs]|xapp)-[a-z0-9-]{10}"),
    // Stripe and OpenAI.
    shape(&["sk_", "rk_"], r"\b[rs]k_(?:live|prod|test)_[A-Za-z0-9]{10}"),
    shape(&["sk-"], r"\bsk-(?:[a-z]+-)?[A-Za-z0-9_]{20}"),
    // A password in a URL.
    shape(&["://"], r"(?i)\b[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/@]+@"),
    // Headers of HTTP.
    shape(&["bearer", "basic"], r"(?i)\b(?:bearer\s+[a-z0-9._~+/=-]{10}|basic\s+[a-z0-9+/=]{8})"),
];

/// A value as it may be told: not at all if it may be a secret by its field's or setter's name or by its looks,
/// and not in full if it is long.
pub(crate) fn redacted<'n>(value: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    let is_secret = |name: &str| {
        let name = name.to_lowercase();
        NAMES.iter().any(|word| name.contains(word))
    };
    if names.into_iter().any(is_secret) || looks_secret(value) {
        return REDACTED.to_owned();
    }
    match value.char_indices().nth(MOST) {
        Some((end, _)) => {
            let (told, rest) = value.split_at(end);
            format!("{told}... (truncated {} chars)", rest.chars().count())
        }
        None => value.to_owned(),
    }
}

fn looks_secret(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let fits = |shape: &Shape| {
        shape.signs.iter().any(|sign| lower.contains(sign))
            && shape
                .compiled
                .get_or_init(|| Regex::new(shape.expression).ok())
                .as_ref()
                .is_some_and(|expression| expression.is_match(value))
    };
    is_opaque(value) || SHAPES.iter().any(fits)
}

/// Whether a text is long and could be in base 64 or 16.
fn is_opaque(value: &str) -> bool {
    let kinds: [fn(u8) -> bool; 4] = [
        |byte| byte.is_ascii_uppercase(),
        |byte| byte.is_ascii_lowercase(),
        |byte| byte.is_ascii_digit(),
        |byte| matches!(byte, b'+' | b'/' | b'='),
    ];
    value.len() >= 40
        && value.bytes().all(|byte| kinds.iter().any(|kind| kind(byte)))
        && kinds.iter().filter(|kind| value.bytes().any(kind)).count() >= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(value: &str) -> String {
        redacted(value, ["spec.value", "setter"])
    }

    #[test]
    fn all_expressions_compile() {
        for shape in &SHAPES {
            Regex::new(shape.expression).unwrap();
            assert!(shape.signs.iter().all(|sign| *sign == sign.to_ascii_lowercase()));
        }
    }

    #[test]
    fn usual_values_are_told() {
        for value in [
            "",
            "3",
            "nginx:1.16.2",
            "- prod\n- dev",
            "ghcr.io/kptdev/krm-functions-catalog/set-image:v0.2",
            "${image}:${tag}",
            "https://example.com:8080/path@v1",
            "sk-bratislava-datacenter-1",
            "task-runner-for-the-night",
            "eyjafjallajokull.example",
            "sha256:e1d6f00f191515945233f562777fc9ab3b7637ea75169b3dd628d46c9b24400f",
        ] {
            assert_eq!(told(value), value);
        }
    }

    #[test]
    fn secrets_are_not_told() {
        let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl";
        let letters = "abcdefghij".repeat(9);
        for value in [
            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
            jwt,
            "ASIAUM2VG3ANQNP3IXQG",
            "key=AKIAIOSFODNN7EXAMPLE",
            &format!("ghp_{}", letters.split_at(36).0),
            &format!("github_pat_{letters}"),
            "glpat-abcdefghij0123456789",
            &format!("AIza{}", letters.split_at(35).0),
            &format!("abc8Q~{}", letters.split_at(34).0),
            "xoxb-1234567890-1234567890-abc",
            "xapp-1-A0123456789-123-abc",
            "sk_live_abcdefghij",
            "sk-proj-abcdefghij0123456789",
            "mongodb+srv://user:pass@cluster.example.net/db",
            "postgresql://user:word@host:5432/db",
            "Authorization: Bearer abcdefghijkl",
            "basic dXNlcjpwYXNz",
            &"aB3".repeat(14),
            &"0f".repeat(32),
        ] {
            assert_eq!(told(value), "<redacted>", "{value}");
        }
    }

    #[test]
    fn names_make_a_value_a_secret() {
        for name in ["spec.tls.privateKey", "db-password", "API_KEY", "stringData.authorization", "certs[0]"]
        {
            assert_eq!(redacted("x", ["spec", name]), "<redacted>", "{name}");
        }
        assert_eq!(redacted("", ["token"]), "<redacted>");
        assert_eq!(redacted("x", ["spec.keyboard"]), "x");
    }

    #[test]
    fn long_values_are_cut() {
        let end = "... (truncated 72 chars)";
        assert_eq!(told(&"a".repeat(200)), "a".repeat(128) + end);
        assert_eq!(told(&"ä".repeat(200)), "ä".repeat(128) + end);
        assert_eq!(told(&"a".repeat(128)), "a".repeat(128));
    }
}
