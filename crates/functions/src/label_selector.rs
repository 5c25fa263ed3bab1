//! Label selectors as Kubernetes writes them: `app=web,tier in (front, back),!canary`.

/// Which labels a resource must have. An empty one matches all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    Exists,
    IsMissing,
    In(Vec<String>),
    NotIn(Vec<String>),
    Greater(i64),
    Less(i64),
}

impl Test {
    fn holds(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::Exists => value.is_some(),
            Self::IsMissing => value.is_none(),
            Self::In(values) => value.is_some_and(|value| values.iter().any(|one| one == value)),
            Self::NotIn(values) => value.is_none_or(|value| values.iter().all(|one| one != value)),
            Self::Greater(limit) => number().is_some_and(|number| number > *limit),
            Self::Less(limit) => number().is_some_and(|number| number < *limit),
        }
    }
}

impl LabelSelector {
    /// Reads a selector.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut tokens = Tokens { rest: text };
        let mut requirements = Vec::new();
        let mut expected = "!, identifier, or 'end of string'";
        loop {
            let first = tokens.next();
            if first.is_empty() && requirements.is_empty() {
                break;
            }
            if first != "!" && identifier(first).is_err() {
                return Err(format!("found '{first}', expected: {expected}"));
            }
            let requirement = requirement(first, &mut tokens);
            requirements
                .push(requirement.map_err(|problem| format!("unable to parse requirement: {problem}"))?);
            match tokens.next() {
                "" => break,
                "," => expected = "identifier after ','",
                other => return Err(format!("found '{other}', expected: ',' or 'end of string'")),
            }
        }
        Ok(Self { requirements })
    }

    /// How many keys and values there are to compare.
    pub(crate) fn len(&self) -> usize {
        let count = |requirement: &Requirement| match &requirement.test {
            Test::In(values) | Test::NotIn(values) => 1 + values.len(),
            _ => 1,
        };
        self.requirements.iter().map(count).sum()
    }

    /// Whether labels are what it asks for.
    pub(crate) fn matches(&self, label: impl Fn(&str) -> Option<String>) -> bool {
        self.requirements.iter().all(|Requirement { key, test }| test.holds(label(key).as_deref()))
    }
}

fn requirement(first: &str, tokens: &mut Tokens<'_>) -> Result<Requirement, String> {
    if first == "!" {
        let key = identifier(tokens.next())?;
        return Ok(Requirement { key, test: Test::IsMissing });
    }
    let key = identifier(first)?;
    let test = match tokens.peek() {
        "" | "," => Test::Exists,
        _ => match tokens.next() {
            "=" | "==" => Test::In(vec![tokens.value()?]),
            "!=" => Test::NotIn(vec![tokens.value()?]),
            "in" => Test::In(values(tokens)?),
            "notin" => Test::NotIn(values(tokens)?),
            ">" => Test::Greater(number(tokens)?),
            "<" => Test::Less(number(tokens)?),
            other => return Err(format!("found '{other}', expected: in, notin, =, ==, !=, >, <")),
        },
    };
    Ok(Requirement { key, test })
}

fn identifier(token: &str) -> Result<String, String> {
    if token.is_empty() || token.bytes().all(is_symbol) {
        return Err(format!("found '{token}', expected: identifier"));
    }
    Ok(token.to_owned())
}

fn number(tokens: &mut Tokens<'_>) -> Result<i64, String> {
    tokens.value()?.parse().map_err(|_| "for 'Gt', 'Lt' operators, the value must be an integer".to_owned())
}

/// A list in parentheses.
fn values(tokens: &mut Tokens<'_>) -> Result<Vec<String>, String> {
    match tokens.next() {
        "(" => {}
        other => return Err(format!("found '{other}', expected: '('")),
    }
    let mut values = Vec::new();
    loop {
        values.push(tokens.value()?);
        match tokens.next() {
            ")" => return Ok(values),
            "," => {}
            other => return Err(format!("found '{other}', expected: ',' or ')'")),
        }
    }
}

fn is_symbol(byte: u8) -> bool {
    matches!(byte, b'=' | b'!' | b'(' | b')' | b',' | b'<' | b'>')
}

/// Symbols and words; nothing at the end.
struct Tokens<'t> {
    rest: &'t str,
}

impl<'t> Tokens<'t> {
    fn next(&mut self) -> &'t str {
        let text = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let length = match text.as_bytes() {
            [b'=' | b'!', b'=', ..] => 2,
            [first, ..] if is_symbol(*first) => 1,
            bytes => bytes
                .iter()
                .position(|&byte| is_symbol(byte) || byte.is_ascii_whitespace())
                .unwrap_or(bytes.len()),
        };
        // All of these bytes are characters of their own.
        let (token, rest) = text.split_at(length);
        self.rest = rest;
        token
    }

    fn peek(&self) -> &'t str {
        Tokens { rest: self.rest }.next()
    }

    /// A word, or nothing where none is written.
    fn value(&mut self) -> Result<String, String> {
        match self.peek() {
            "," | ")" | "" => Ok(String::new()),
            _ => identifier(self.next()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(selector: &str, labels: &[(&str, &str)]) -> bool {
        let labels =
            |key: &str| labels.iter().find(|(name, _)| *name == key).map(|(_, value)| (*value).to_owned());
        LabelSelector::parse(selector).unwrap().matches(labels)
    }

    #[test]
    fn all_forms_are_understood() {
        let labels = [("app", "web"), ("tier", "front"), ("count", "7"), ("empty", "")];
        for selector in [
            "",
            "  ",
            "app",
            "app=web",
            "app == web",
            "app!=db",
            "missing!=db",
            "tier in (front, back)",
            "tier notin (back)",
            "missing notin (back)",
            "!missing",
            "count>6",
            "count < 8",
            "empty=",
            "empty in (,x)",
            "app=web,tier in (front),!canary , count>1",
            "in notin (x)",
        ] {
            assert!(matches(selector, &labels), "{selector}");
        }
        for selector in [
            "missing",
            "app=db",
            "app!=web",
            "tier in (back)",
            "tier notin (front)",
            "!app",
            "count>7",
            "app>1",
            "app=",
        ] {
            assert!(!matches(selector, &labels), "{selector}");
        }
    }

    #[test]
    fn what_is_no_selector_is_refused() {
        for (selector, problem) in [
            (",", "found ',', expected: !, identifier, or 'end of string'"),
            ("app=web,", "found '', expected: identifier after ','"),
            ("app=web tier", "found 'tier', expected: ',' or 'end of string'"),
            ("app web", "unable to parse requirement: found 'web', expected: in, notin, =, ==, !=, >, <"),
            ("app in web", "unable to parse requirement: found 'web', expected: '('"),
            ("app in (web", "unable to parse requirement: found '', expected: ',' or ')'"),
            ("app in (web back)", "unable to parse requirement: found 'back', expected: ',' or ')'"),
            ("!=x", "found '!=', expected: !, identifier, or 'end of string'"),
            ("!", "unable to parse requirement: found '', expected: identifier"),
            ("a>x", "unable to parse requirement: for 'Gt', 'Lt' operators, the value must be an integer"),
            ("app==(", "unable to parse requirement: found '(', expected: identifier"),
        ] {
            assert_eq!(LabelSelector::parse(selector).unwrap_err(), problem, "{selector}");
        }
    }

    #[test]
    fn hostile_selectors_end() {
        let long = format!("a in ({}", "x,".repeat(100_000));
        assert!(LabelSelector::parse(&long).is_err());
        assert!(LabelSelector::parse("ä=ö").unwrap().matches(|_| Some("ö".to_owned())));
    }
}
