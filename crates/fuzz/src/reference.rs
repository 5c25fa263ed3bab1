//! Names of images: references, prefixes, mirrors, constraints.

use api::Versions;
use function_runner::routing::Claim;
use registry::{Constraint, Mirror, Prefix, Reference, Version};

/// Lines: a reference, a prefix, a mirror, a constraint, and then tags.
pub(crate) fn names(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let mut lines = text.split('\n');
    let mut next = || lines.next().unwrap_or_default();
    let (image, prefix, mirror, constraint) = (next(), next(), next(), next());
    let tags: Vec<&str> = lines.collect();
    let image = reference(image, prefix);
    match Prefix::parse(prefix) {
        Ok(prefix) => {
            let again = Prefix::parse(&prefix.to_string()).unwrap();
            assert_eq!(again.to_string(), prefix.to_string());
            assert!(prefix.overlaps(&again));
            if let Some(image) = &image {
                assert_eq!(prefix.covers(image), prefix.rest(image).is_some());
            }
        }
        Err(error) => crate::is_one_line(&error.to_string()),
    }
    if let Err(error) = mirror.parse::<Mirror>() {
        crate::is_one_line(&error.to_string());
    }
    versions(constraint, &tags);
}

fn reference(text: &str, prefix: &str) -> Option<Reference> {
    if let Err(error) = Claim::parse(text, prefix) {
        crate::is_one_line(&error);
    }
    let reference = match Reference::parse_with_prefix(text, prefix) {
        Ok(reference) => reference,
        Err(error) => {
            crate::is_one_line(&error.to_string());
            return None;
        }
    };
    // The normalised text and the key are references that are normalised already.
    let again = Reference::parse(&reference.normalised()).unwrap();
    assert_eq!((again.normalised(), again.key()), (reference.normalised(), reference.key()));
    let by_key = Reference::parse(reference.key().as_str()).unwrap();
    assert_eq!((by_key.key(), by_key.normalised()), (reference.key(), by_key.as_given().to_owned()));
    Some(reference)
}

fn versions(text: &str, tags: &[&str]) {
    if let Err(error) = Versions::parse(text) {
        crate::is_one_line(&error);
    }
    let constraint = match Constraint::parse(text) {
        Ok(constraint) => constraint,
        Err(error) => return crate::is_one_line(&error.to_string()),
    };
    let highest = registry::highest(&constraint, tags.iter().copied());
    let backwards = registry::highest(&constraint, tags.iter().rev().copied());
    assert_eq!(highest, backwards, "the order of the tags matters");
    let meets = |tag: &&str| Version::parse_tag(tag).is_some_and(|version| constraint.matches(&version));
    assert_eq!(highest.is_some(), tags.iter().any(meets));
    assert!(highest.is_none_or(|highest| meets(&highest)));
    let chosen = registry::choose(text, tags.iter().copied()).unwrap();
    assert_eq!(chosen, if tags.contains(&text) { Some(text) } else { highest });
}
