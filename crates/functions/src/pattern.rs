//! Texts to look for, which may be regular expressions.

use std::cell::RefCell;

use crate::regexp::Expression;

/// A text or a regular expression.
#[derive(Debug)]
pub(crate) enum Pattern {
    /// Equal to this text.
    Whole(String),
    /// With this text in it.
    Part(String),
    /// Matched by this expression, which counts what it costs.
    Expression(RefCell<Expression>),
}

impl Pattern {
    /// What must match a whole text.
    pub(crate) fn whole(text: &str) -> Result<Self, String> {
        if is_literal(text) { Ok(Self::Whole(text.to_owned())) } else { expression(&format!("^(?:{text})$")) }
    }

    /// What must match somewhere in a text.
    pub(crate) fn part(text: &str) -> Result<Self, String> {
        if is_literal(text) { Ok(Self::Part(text.to_owned())) } else { expression(text) }
    }

    /// Whether a text is, or has in it, what is looked for.
    pub(crate) fn matches(&self, text: &str) -> Result<bool, String> {
        match self {
            Self::Whole(whole) => Ok(whole == text),
            Self::Part(part) => Ok(text.contains(&**part)),
            Self::Expression(expression) => expression.borrow_mut().is_match(text),
        }
    }
}

fn expression(text: &str) -> Result<Pattern, String> {
    Expression::in_go(text).map(|expression| Pattern::Expression(RefCell::new(expression)))
}

fn is_literal(text: &str) -> bool {
    !text.contains(['\\', '.', '+', '*', '?', '(', ')', '|', '[', ']', '{', '}', '^', '$'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_expressions_match() {
        let whole = |pattern: &str, text: &str| Pattern::whole(pattern).unwrap().matches(text).unwrap();
        let part = |pattern: &str, text: &str| Pattern::part(pattern).unwrap().matches(text).unwrap();
        assert!(whole("web", "web"));
        assert!(!whole("web", "web-1"));
        assert!(whole("web.*|db", "web-1"));
        assert!(!whole("web.*|db", "a db"));
        assert!(part("web", "my-web-1"));
        assert!(part("^w\\w+$", "web"));
        assert!(!part("^w\\w+$", "my-web"));
    }

    #[test]
    fn bad_expressions_are_refused() {
        let error = Pattern::whole("web(").unwrap_err();
        assert!(error.starts_with("error parsing regexp: ") && error.ends_with("`^(?:web()$`"), "{error}");
    }
}
