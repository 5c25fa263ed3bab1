//! Version constraints: which of an image's tags somebody means who wrote `~0.4` or `>=1.2 <2`.
//!
//! Syntax and meaning are those of Go's `github.com/Masterminds/semver/v3`, because that is what users of
//! the original write. Where it does otherwise than that library:
//! - `^*` means any version, as its documentation says; its code takes 0.0.0 only.
//! - Hyphen ranges are read, not rewritten as text. There, `!=1.5 1.2 - 2.0` is an error, `1 - 2>1.5` is none,
//!   and `3||1 - 2` means something else.
//! - What follows an open part must be a number or open too: `1.x.3x` is an error.

mod comparison;
mod tags;
mod version;

use std::fmt;
use std::str::FromStr;

use comparison::{Comparison, Operator};
pub use tags::{choose, highest};
pub use version::Version;

/// As in Go. Nobody writes a longer one, and it bounds the work that a request can ask for.
const LONGEST_CONSTRAINT: usize = 512;
/// How much of a wrong text an error repeats.
const SHOWN_CHARACTERS: usize = 120;

/// A condition on versions, such as `~0.4`, `>=1.2, <2` or `1.x || 2.1 - 2.4`. Exists only if valid.
///
/// - Comparisons: `=` `!=` `>` `<` `>=` (`=>`) `<=` (`=<`), `~` (`~>`): the last part may grow, `^`: all but
///   the first part that is not zero may grow. A version alone means `=`.
/// - Missing parts and `x`, `X`, `*` leave a part open: `1.2`, `1.2.x` and `=1.2` mean any 1.2, `*` anything.
/// - Space or comma: all must hold. `||`: one must hold. `1.2 - 2.0` means `>=1.2, <=2.0`.
/// - A pre-release such as `1.2.0-rc.1` matches only if a comparison it must meet names a pre-release too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constraint {
    given: String,
    alternatives: Vec<Vec<Comparison>>,
}

/// A text that is no constraint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid version constraint {constraint}: {problem}; right ones look like ~0.4, ^1.2, >=1.2 <2 or 1.x"
)]
pub struct InvalidConstraint {
    /// In quotes, shortened when long.
    constraint: String,
    problem: ConstraintProblem,
}

impl InvalidConstraint {
    /// What is wrong.
    pub fn problem(&self) -> &ConstraintProblem {
        &self.problem
    }
}

/// What can be wrong with a constraint. Parts of it are quoted and shortened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintProblem {
    /// There is no text, or nothing on one side of a `||` or a comma.
    #[error("a comparison is missing; write * for any version")]
    Missing,
    /// Longer than any reasonable one.
    #[error("it has {0} bytes, more than {LONGEST_CONSTRAINT}")]
    TooLong(usize),
    /// Something stands where a version must be.
    #[error("{0} is not a version with up to three numbers, x or *, as in v1.2.3, 1.x or 1.2.0-rc.1")]
    Version(String),
}

impl Constraint {
    /// Reads a constraint. The empty text is none: callers know what its absence means.
    pub fn parse(text: &str) -> Result<Self, InvalidConstraint> {
        let invalid = |problem| InvalidConstraint { constraint: shown(text), problem };
        if text.len() > LONGEST_CONSTRAINT {
            return Err(invalid(ConstraintProblem::TooLong(text.len())));
        }
        let alternatives = text.split("||").map(parse_all).collect::<Result<_, _>>().map_err(invalid)?;
        Ok(Self { given: text.to_owned(), alternatives })
    }

    /// Whether the version meets the constraint.
    pub fn matches(&self, version: &Version) -> bool {
        self.alternatives.iter().any(|comparisons| {
            let wants_pre_releases = comparisons.iter().any(Comparison::names_pre_release);
            (wants_pre_releases || !version.is_pre_release())
                && comparisons.iter().all(|comparison| comparison.holds(version))
        })
    }

    /// The text that was read.
    pub fn as_given(&self) -> &str {
        &self.given
    }
}

/// Reads the comparisons on one side of a `||`.
fn parse_all(text: &str) -> Result<Vec<Comparison>, ConstraintProblem> {
    let mut comparisons = Vec::new();
    let mut rest = skip_space(text);
    loop {
        let (operator, after_operator) = Operator::split(rest);
        let (version, after_version) = split_version(skip_space(after_operator));
        let after_space = skip_space(after_version);
        match hyphen(after_space).filter(|_| operator.is_none()) {
            Some(after_hyphen) => {
                let (last, after_last) = split_version(after_hyphen);
                comparisons.push(comparison(Operator::AtLeast, version)?);
                comparisons.push(comparison(Operator::AtMost, last)?);
                rest = skip_space(after_last);
            }
            None => {
                comparisons.push(comparison(operator.unwrap_or(Operator::Equal), version)?);
                rest = after_space;
            }
        }
        // A version ends at a space, a comma or the end: what follows is another comparison in any case.
        rest = match rest.strip_prefix(',') {
            Some(after_comma) => skip_space(after_comma),
            None if rest.is_empty() => return Ok(comparisons),
            None => rest,
        };
    }
}

fn comparison(operator: Operator, version: &str) -> Result<Comparison, ConstraintProblem> {
    if version.is_empty() {
        return Err(ConstraintProblem::Missing);
    }
    Comparison::new(operator, version).ok_or_else(|| ConstraintProblem::Version(shown(version)))
}

/// What follows a hyphen that stands alone. That there is a space before it, the caller's splitting of
/// versions has seen to.
fn hyphen(text: &str) -> Option<&str> {
    let after = text.strip_prefix('-')?;
    after.starts_with(is_space).then(|| skip_space(after))
}

fn split_version(text: &str) -> (&str, &str) {
    let end = text.find(|character| character == ',' || is_space(character));
    text.split_at(end.unwrap_or(text.len()))
}

fn skip_space(text: &str) -> &str {
    text.trim_start_matches(is_space)
}

fn is_space(character: char) -> bool {
    character.is_ascii_whitespace()
}

/// Text fit for an error message: in quotes, without control characters, shortened.
fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{:?}", text.get(..end).unwrap_or_default().to_owned() + "…"),
        None => format!("{text:?}"),
    }
}

impl FromStr for Constraint {
    type Err = InvalidConstraint;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.given)
    }
}
