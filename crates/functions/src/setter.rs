//! Setters: comments that tell how a value is made of named parts.
//!
//! `image: nginx:1.16.1 # kpt-set: nginx:${tag}` says that the setter `tag` is `1.16.1` here. The comment of a
//! list is on the line of its key, or behind its bracket.

use std::collections::HashMap;

use krm::{Budget, NodeId};

use crate::list::ResourceList;

/// What a comment starts with.
const COMMENT: &str = "# kpt-set: ";

/// A text with setters in it: a literal, a name, a literal, and so on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern<'t> {
    text: &'t str,
    /// What is around the names: one more than those.
    literals: Vec<&'t str>,
    names: Vec<&'t str>,
}

/// The text of the pattern in a value's comment.
pub(crate) fn pattern_text(list: &ResourceList<'_>, node: NodeId) -> Option<String> {
    let comment = list.line_comment(node)?;
    let text = comment.strip_prefix(COMMENT)?.trim();
    // Where there is no value, the comment is that of the key.
    let missing = list.text(node).is_some_and(|text| text.is_empty()) && list.is_null(node);
    (!text.is_empty() && !missing).then(|| text.to_owned())
}

impl<'t> Pattern<'t> {
    pub(crate) fn parse(text: &'t str) -> Self {
        let mut pattern = Self { text, literals: Vec::new(), names: Vec::new() };
        let mut rest = text;
        while let Some((literal, (name, after))) =
            rest.split_once("${").and_then(|(literal, rest)| Some((literal, rest.split_once('}')?)))
        {
            pattern.literals.push(literal);
            pattern.names.push(name);
            rest = after;
        }
        pattern.literals.push(rest);
        pattern
    }

    /// The names of the setters, in their order.
    pub(crate) fn names(&self) -> &[&'t str] {
        &self.names
    }

    /// The name, if there is nothing but one setter: what a list may have.
    pub(crate) fn only_name(&self) -> Option<&'t str> {
        match (&*self.names, &*self.literals) {
            (&[name], ["", ""]) => Some(name),
            _ => None,
        }
    }

    /// The pattern without the outer `${` and `}`.
    pub(crate) fn stripped(&self) -> &'t str {
        let start = self.text.strip_prefix("${").unwrap_or(self.text);
        start.strip_suffix('}').unwrap_or(start)
    }

    /// The text with values in the place of names; names without one stay.
    pub(crate) fn resolve<'v>(
        &self,
        budget: &Budget,
        value: impl Fn(&str) -> Option<&'v str>,
    ) -> Result<String, String> {
        let mut text = String::new();
        for (at, literal) in self.literals.iter().enumerate() {
            budget.append(&mut text, literal)?;
            match self.names.get(at).map(|name| (name, value(name))) {
                Some((_, Some(value))) => budget.append(&mut text, value)?,
                Some((name, None)) => text.extend(["${", name, "}"]),
                None => {}
            }
        }
        Ok(text)
    }

    /// What the setters are, if a value was made by this pattern: each as long as it can be, those that come
    /// first before the others. Nothing if one of them would be empty that may not be. Text on the same line may
    /// be before and behind what the pattern says.
    pub(crate) fn values<'v>(
        &self,
        value: &'v str,
        may_be_empty: impl Fn(&str) -> bool,
    ) -> HashMap<&'t str, &'v str> {
        let shortest: usize = self.literals.iter().map(|literal| literal.len()).sum();
        let mut lines = value.split('\n').filter(|line| line.len() >= shortest);
        let found = lines.find_map(|line| self.values_on(line)).unwrap_or_default();
        if self.names.iter().zip(&found).any(|(name, value)| value.is_empty() && !may_be_empty(name)) {
            return HashMap::new();
        }
        self.names.iter().copied().zip(found).collect()
    }

    fn values_on<'v>(&self, line: &'v str) -> Option<Vec<&'v str>> {
        let (first, others) = self.literals.split_first()?;
        let rest = line.get(line.find(first)? + first.len()..)?;
        // From behind, each literal as far behind as it can be: so what is before it is as long as it can be.
        let mut limit = rest.len();
        let mut places = Vec::with_capacity(others.len());
        for literal in others.iter().rev() {
            limit = rest.get(..limit)?.rfind(literal)?;
            places.push((limit, limit + literal.len()));
        }
        let mut start = 0;
        let mut values = Vec::with_capacity(others.len());
        for (end, next) in places.into_iter().rev() {
            values.push(rest.get(start..end)?);
            start = next;
        }
        Some(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pattern: &str, value: &str) -> Vec<(String, String)> {
        let pattern = Pattern::parse(pattern);
        let mut values: Vec<(String, String)> = pattern
            .values(value, |name| name == "empty")
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        values.sort();
        values
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn values_are_found_where_the_pattern_says() {
        assert_eq!(values("${image}:${tag}", "nginx:1.7"), pairs(&[("image", "nginx"), ("tag", "1.7")]));
        assert_eq!(
            values("app.${stage}.${zone}", "app.dev.example"),
            pairs(&[("stage", "dev"), ("zone", "example")])
        );
        assert_eq!(
            values("foo-${environment}-bar-${region}-baz", "foo-dev-bar-us-east-1-baz"),
            pairs(&[("environment", "dev"), ("region", "us-east-1")])
        );
        // What the characters mean in a regular expression does not matter.
        assert_eq!(values("(${a$^*()<>?})+", "(x)+"), pairs(&[("a$^*()<>?", "x")]));
    }

    #[test]
    fn the_first_values_are_the_longest() {
        assert_eq!(values("${a}:${b}", "x:y:z"), pairs(&[("a", "x:y"), ("b", "z")]));
        assert_eq!(values("${a}-${b}-${c}", "1-2-3-4"), pairs(&[("a", "1-2"), ("b", "3"), ("c", "4")]));
    }

    #[test]
    fn a_name_that_is_there_twice_has_its_last_value() {
        assert_eq!(values("${a}/${a}", "x/y"), pairs(&[("a", "y")]));
    }

    #[test]
    fn other_text_may_be_around_what_the_pattern_says() {
        assert_eq!(values("nginx:${tag}", "docker.io/nginx:1"), pairs(&[("tag", "1")]));
        assert_eq!(values("<${a}>", "x <y> z"), pairs(&[("a", "y")]));
        assert_eq!(values("b=${b}", "a=1\nb=2\nc=3"), pairs(&[("b", "2")]));
    }

    #[test]
    fn nothing_is_found_where_a_value_would_be_empty_or_something_is_missing() {
        for (pattern, value) in [
            ("${image}:${tag}", "nginx"),
            ("${image}:${tag}", ":1.7"),
            ("${image}${tag}", "nginx"),
            ("${a}", ""),
            ("${a}${empty}${b}", "x"),
            ("${a", "x"),
            ("plain", "plain"),
            ("", ""),
        ] {
            assert_eq!(values(pattern, value), pairs(&[]), "{pattern} on {value}");
        }
    }

    #[test]
    fn a_value_may_be_empty_where_that_is_known() {
        assert_eq!(values("${empty}:${tag}", ":1"), pairs(&[("empty", ""), ("tag", "1")]));
    }

    #[test]
    fn names_are_replaced_by_values() {
        let budget = Budget::default();
        let pattern = Pattern::parse("${a}-${b}$${}{c}");
        assert_eq!(pattern.names(), ["a", "b", ""]);
        assert_eq!(
            pattern.resolve(&budget, |name| (name == "a").then_some("${x}")).unwrap(),
            "${x}-${b}$${}{c}"
        );
        assert_eq!(pattern.resolve(&budget, |name| (name != "b").then_some("1")).unwrap(), "1-${b}$1{c}");
    }

    #[test]
    fn texts_do_not_grow_without_bound() {
        let (pattern, value) = ("${a}".repeat(100_000), "x".repeat(1_000_000));
        let error = Pattern::parse(&pattern).resolve(&Budget::default(), |_| Some(&value)).unwrap_err();
        assert!(error.contains("bytes of memory"), "{error}");
    }

    #[test]
    fn a_list_has_one_setter_and_nothing_else() {
        assert_eq!(Pattern::parse("${a}").only_name(), Some("a"));
        for text in ["", "a", "${a}b", "a${b}", "${a}${b}", "${a"] {
            assert_eq!(Pattern::parse(text).only_name(), None, "{text}");
        }
        assert_eq!(Pattern::parse("${a}:${b}").stripped(), "a}:${b");
    }

    #[test]
    fn long_texts_take_linear_time() {
        let pattern = "${a}x".repeat(20_000);
        let value = "yx".repeat(200_000);
        let pattern = Pattern::parse(&pattern);
        assert_eq!(pattern.values(&value, |_| false).get("a"), Some(&"y"));
    }
}
