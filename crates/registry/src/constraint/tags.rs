//! Which tag of an image a constraint means.

use super::{Constraint, InvalidConstraint, Version};

/// The tag of the highest version that meets the constraint. Tags that are no versions (`latest`) are passed
/// over. Of several spellings of the highest version the fullest is taken: `v0.4.0` before `0.4.0` before
/// `v0.4`. The order of the tags does not matter.
pub fn highest<'a>(constraint: &Constraint, tags: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    tags.filter_map(|tag| Some((tag, matching(constraint, tag)?)))
        .max_by(|(_, one), (_, other)| one.preference(other))
        .map(|(tag, _)| tag)
}

/// The tag meant by a text that may be a tag or a constraint, as a request's `Tag` and the place of a tag in
/// configuration may.
///
/// A tag of exactly that name wins: who writes `v0.4` where there is a tag `v0.4` gets that one, even if
/// there is a `v0.4.7`. Otherwise the text is a constraint, and the [`highest`] tag that meets it is
/// meant; `v0.4` then means any 0.4, and `0.4.7` also finds `v0.4.7`. It is an error only if it is neither.
pub fn choose<'a>(
    wanted: &str,
    tags: impl IntoIterator<Item = &'a str>,
) -> Result<Option<&'a str>, InvalidConstraint> {
    let constraint = Constraint::parse(wanted);
    let mut best: Option<(&str, Version)> = None;
    for tag in tags {
        if tag == wanted {
            return Ok(Some(tag));
        }
        let version = constraint.as_ref().ok().and_then(|constraint| matching(constraint, tag));
        if let Some(version) = version
            && best.as_ref().is_none_or(|(_, best)| version.preference(best).is_gt())
        {
            best = Some((tag, version));
        }
    }
    constraint.map(|_| best.map(|(tag, _)| tag))
}

fn matching(constraint: &Constraint, tag: &str) -> Option<Version> {
    Version::parse_tag(tag).filter(|version| constraint.matches(version))
}
