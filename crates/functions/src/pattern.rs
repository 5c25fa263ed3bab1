//! Texts to look for, which may be regular expressions.

use krm::Budget;

use crate::regexp::Expression;

/// A text or a regular expression.
#[derive(Debug)]
pub(crate) enum Pattern {
    /// Equal to this text.
    Whole(String),
    /// With this text in it.
    Part(String),
    /// Matched by this expression, which counts what it costs.
    Expression(Box<Expression>),
}

impl Pattern {
    /// What must match a whole text.
    pub(crate) fn whole(text: &str, budget: &Budget) -> Result<Self, String> {
        if is_literal(text) {
            return Ok(Self::Whole(text.to_owned()));
        }
        Expression::in_go(&format!("^(?:{text})$"), budget)
            .map(|expression| Self::Expression(Box::new(expression)))
    }

    /// What must match somewhere in a text.
    pub(crate) fn part(text: &str, budget: &Budget) -> Result<Self, String> {
        if is_literal(text) {
            return Ok(Self::Part(text.to_owned()));
        }
        Expression::in_go(text, budget).map(|expression| Self::Expression(Box::new(expression)))
    }

    /// Whether a text is, or has in it, what is looked for.
    pub(crate) fn matches(&self, text: &str) -> Result<bool, String> {
        match self {
            Self::Whole(whole) => Ok(whole == text),
            Self::Part(part) => Ok(text.contains(&**part)),
            Self::Expression(expression) => expression.is_match(text),
        }
    }
}

fn is_literal(text: &str) -> bool {
    !text.contains(['\\', '.', '+', '*', '?', '(', ')', '|', '[', ']', '{', '}', '^', '$'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_expressions_match() {
        let whole = |pattern: &str, text: &str| {
            Pattern::whole(pattern, &Budget::default()).unwrap().matches(text).unwrap()
        };
        let part = |pattern: &str, text: &str| {
            Pattern::part(pattern, &Budget::default()).unwrap().matches(text).unwrap()
        };
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
        let error = Pattern::whole("web(", &Budget::default()).unwrap_err();
        assert!(error.starts_with("error parsing regexp: ") && error.ends_with("`^(?:web()$`"), "{error}");
    }
}
