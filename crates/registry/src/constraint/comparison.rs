//! One comparison of a constraint: an operator and a version that may be written in part.

use std::cmp::Ordering;

use super::version::{Core, Version, is_number, parse_number, split};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Above,
    Below,
    AtLeast,
    AtMost,
    Tilde,
    Caret,
}

/// Longer spellings first, so that none is taken for the beginning of another.
const SPELLINGS: [(&str, Operator); 11] = [
    ("!=", Operator::NotEqual),
    (">=", Operator::AtLeast),
    ("=>", Operator::AtLeast),
    ("<=", Operator::AtMost),
    ("=<", Operator::AtMost),
    ("~>", Operator::Tilde),
    ("=", Operator::Equal),
    (">", Operator::Above),
    ("<", Operator::Below),
    ("~", Operator::Tilde),
    ("^", Operator::Caret),
];

impl Operator {
    /// The operator that a text starts with, if any, and the rest.
    pub(super) fn split(text: &str) -> (Option<Self>, &str) {
        SPELLINGS
            .iter()
            .find_map(|(spelling, operator)| Some((Some(*operator), text.strip_prefix(spelling)?)))
            .unwrap_or((None, text))
    }
}

/// How much of the version is fixed. Missing parts and wildcards leave the rest open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Precision {
    Nothing,
    Major,
    Minor,
    Patch,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Comparison {
    operator: Operator,
    precision: Precision,
    /// With zeros for what is open.
    bound: Core,
}

impl Comparison {
    /// `None` if the version is none, not even in part.
    pub(super) fn new(operator: Operator, version: &str) -> Option<Self> {
        let parts = split(version)?;
        let is_wildcard = |part: &str| matches!(part, "x" | "X" | "*");
        let fixed = parts.numbers.iter().position(|part| is_wildcard(part)).unwrap_or(parts.numbers.len());
        let mut numbers = [0; 3];
        for (part, number) in parts.numbers.iter().zip(&mut numbers).take(fixed) {
            *number = parse_number(part)?;
        }
        // A number after a wildcard means nothing, but people write it.
        let means_nothing = |part: &&str| is_wildcard(part) || is_number(part);
        if !parts.numbers.iter().skip(fixed).all(means_nothing) {
            return None;
        }
        let precision = match fixed {
            0 => Precision::Nothing,
            1 => Precision::Major,
            2 => Precision::Minor,
            _ => Precision::Patch,
        };
        let [major, minor, patch] = numbers;
        let bound = Core { major, minor, patch, pre_release: parts.pre_release.to_owned() };
        Some(Self { operator, precision, bound })
    }

    pub(super) fn names_pre_release(&self) -> bool {
        !self.bound.pre_release.is_empty()
    }

    /// Whether the version meets this comparison. Whether pre-releases are wanted at all is decided by the
    /// comparisons around it.
    pub(super) fn holds(&self, version: &Version) -> bool {
        let (version, bound) = (&version.core, &self.bound);
        let order = version.precedence(bound);
        match self.operator {
            Operator::AtLeast => order.is_ge(),
            Operator::Below => order.is_lt(),
            // Above 1.2 is 1.3, not 1.2.1.
            Operator::Above => match self.precision {
                Precision::Major => version.major > bound.major,
                Precision::Minor => minors(version) > minors(bound),
                Precision::Nothing | Precision::Patch => order.is_gt(),
            },
            // At most 1.2 takes in 1.2.1.
            Operator::AtMost => match self.precision {
                Precision::Major => version.major <= bound.major,
                Precision::Nothing | Precision::Minor => minors(version) <= minors(bound),
                Precision::Patch => order.is_le(),
            },
            Operator::NotEqual => match self.precision {
                Precision::Major => version.major != bound.major,
                Precision::Minor => {
                    minors(version) != minors(bound) || version.pre_release != bound.pre_release
                }
                Precision::Nothing | Precision::Patch => order.is_ne(),
            },
            Operator::Equal if self.precision == Precision::Patch => order.is_eq(),
            Operator::Equal | Operator::Tilde => self.tilde_holds(version, order),
            Operator::Caret => self.caret_holds(version, order),
        }
    }

    fn tilde_holds(&self, version: &Core, order: Ordering) -> bool {
        let bound = &self.bound;
        let same = match self.precision {
            Precision::Nothing => true,
            Precision::Major => version.major == bound.major,
            // A peculiarity of the Go library, on purpose there: ~0.0.0 is any version.
            Precision::Patch if (bound.major, bound.minor, bound.patch) == (0, 0, 0) => true,
            Precision::Minor | Precision::Patch => minors(version) == minors(bound),
        };
        order.is_ge() && same
    }

    fn caret_holds(&self, version: &Core, order: Ordering) -> bool {
        let bound = &self.bound;
        let same = match self.precision {
            Precision::Nothing => true,
            Precision::Major => version.major == bound.major,
            _ if bound.major > 0 => version.major == bound.major,
            Precision::Minor => minors(version) == minors(bound),
            _ if bound.minor > 0 => minors(version) == minors(bound),
            Precision::Patch => minors(version) == minors(bound) && version.patch == bound.patch,
        };
        order.is_ge() && same
    }
}

fn minors(core: &Core) -> (u64, u64) {
    (core.major, core.minor)
}
