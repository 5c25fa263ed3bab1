//! From images to whoever has laid claim to them.

use std::collections::HashMap;

use api::Versions;
use registry::{Constraint, Prefix, Reference, Version, choose};

use super::claim::{Claim, Place};

/// Claims and what they lead to. Finding an image takes the same time however many there are: only claims to
/// versions of the same repository are looked at one by one.
///
/// Of several claims that take an image in, the first of these wins: one to its repository before one to its
/// name, a longer prefix before a shorter; within these its very tag or digest, a constraint it meets, any tag,
/// all; among constraints the one added first.
#[derive(Debug)]
pub struct Table<T> {
    repositories: HashMap<String, Claims<T>>,
    /// By the last part of the repository; the longest prefix first.
    names: HashMap<String, Vec<Under<T>>>,
    count: usize,
}

/// A prefix, or none for everywhere, and the claims there.
type Under<T> = (Option<Prefix>, Claims<T>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { repositories: HashMap::new(), names: HashMap::new(), count: 0 }
    }
}

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub struct Match<'a, T> {
    /// What the claim leads to.
    pub value: &'a T,
    /// The claim as it was written.
    pub entry: &'a str,
    /// The tag a constraint was found to mean.
    pub tag: Option<&'a str>,
}

impl<T> Table<T> {
    /// Adds a claim. The first to claim something keeps it, and the second is told whose it is.
    pub fn add(&mut self, claim: &Claim, value: T) -> Result<(), &T> {
        let claims = match &claim.place {
            Place::Repository(full_name) => self.repositories.entry(full_name.clone()).or_default(),
            Place::Named { name, prefix } => {
                claims_under(self.names.entry(name.clone()).or_default(), prefix.as_ref())
            }
        };
        claims.add(claim, value)?;
        self.count += 1;
        Ok(())
    }

    /// Whose an image is. With a constraint, the image's highest tag is meant that is known and meets it.
    pub fn find(&self, image: &Reference, constraint: Option<&Constraint>) -> Option<Match<'_, T>> {
        self.around(image).find_map(|claims| match constraint {
            Some(constraint) => claims.find_meeting(constraint, image),
            None => claims.find(image),
        })
    }

    /// The claims to places where an image is; those that win first.
    fn around(&self, image: &Reference) -> impl Iterator<Item = &Claims<T>> {
        let named = self.names.get(image.name()).into_iter().flatten();
        let under = named.filter(|(prefix, _)| prefix.as_ref().is_none_or(|prefix| prefix.covers(image)));
        self.repositories.get(image.full_name()).into_iter().chain(under.map(|(_, claims)| claims))
    }

    /// All claims as they were written and what they lead to, by their texts.
    pub fn entries(&self) -> Vec<(&str, &T)> {
        let under = self.names.values().flatten().map(|(_, claims)| claims);
        let mut entries: Vec<_> = self.repositories.values().chain(under).flat_map(Claims::entries).collect();
        entries.sort_by_key(|(text, _)| *text);
        entries
    }

    /// How many claims there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no claims.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The claims under a prefix, made in the order in which they are asked.
fn claims_under<'a, T>(places: &'a mut Vec<Under<T>>, prefix: Option<&Prefix>) -> &'a mut Claims<T> {
    let length = |prefix: Option<&Prefix>| prefix.map_or(0, Prefix::length);
    let place = places.iter().position(|(known, _)| known.as_ref() == prefix).unwrap_or_else(|| {
        let place = places.partition_point(|(known, _)| length(known.as_ref()) >= length(prefix));
        places.insert(place, (prefix.cloned(), Claims::default()));
        place
    });
    &mut places[place].1
}

/// The claims to one place.
#[derive(Debug)]
struct Claims<T> {
    tags: HashMap<String, Entry<T>>,
    digests: HashMap<String, Entry<T>>,
    constraints: Vec<(Constraint, Entry<T>)>,
    any_tag: Option<Entry<T>>,
    all: Option<Entry<T>>,
}

#[derive(Debug)]
struct Entry<T> {
    text: String,
    value: T,
}

impl<T> Entry<T> {
    fn found(&self) -> Match<'_, T> {
        Match { value: &self.value, entry: &self.text, tag: None }
    }
}

impl<T> Default for Claims<T> {
    fn default() -> Self {
        Self {
            tags: HashMap::new(),
            digests: HashMap::new(),
            constraints: Vec::new(),
            any_tag: None,
            all: None,
        }
    }
}

impl<T> Claims<T> {
    fn add(&mut self, claim: &Claim, value: T) -> Result<(), &T> {
        let entry = Entry { text: claim.entry.clone(), value };
        let place = match &claim.versions {
            Versions::Tag(tag) => self.tags.entry(tag.clone()),
            Versions::Digest(digest) => self.digests.entry(digest.clone()),
            Versions::AnyTag => return put(&mut self.any_tag, entry),
            Versions::All => return put(&mut self.all, entry),
            Versions::Constraint(constraint) => {
                let first = self.constraints.iter().position(|(known, _)| known == constraint);
                return match first {
                    Some(place) => Err(&self.constraints[place].1.value),
                    None => {
                        self.constraints.push((constraint.clone(), entry));
                        Ok(())
                    }
                };
            }
        };
        match place {
            std::collections::hash_map::Entry::Occupied(first) => Err(&first.into_mut().value),
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(entry);
                Ok(())
            }
        }
    }

    fn entries(&self) -> impl Iterator<Item = (&str, &T)> {
        let Self { tags, digests, constraints, any_tag, all } = self;
        let constraints = constraints.iter().map(|(_, entry)| entry);
        let entries = tags.values().chain(digests.values()).chain(constraints).chain(any_tag).chain(all);
        entries.map(|entry| (entry.text.as_str(), &entry.value))
    }

    fn find(&self, image: &Reference) -> Option<Match<'_, T>> {
        match image.digest() {
            Some(digest) => self.digests.get(digest).or(self.all.as_ref()).map(Entry::found),
            None => self.find_tag(image.tag().unwrap_or("latest")),
        }
    }

    fn find_tag(&self, tag: &str) -> Option<Match<'_, T>> {
        let met = || {
            let version = Version::parse_tag(tag)?;
            self.constraints
                .iter()
                .find(|(constraint, _)| constraint.matches(&version))
                .map(|(_, entry)| entry)
        };
        self.tags.get(tag).or_else(met).or_else(|| self.any()).map(Entry::found)
    }

    /// The highest known tag that meets the constraint. Where no tags are known but those of constraints, the
    /// very same constraint will do, or a tag that the constraint may be as well, or any tag: whichever tag is
    /// meant, it is claimed.
    fn find_meeting(&self, constraint: &Constraint, image: &Reference) -> Option<Match<'_, T>> {
        let highest = choose(constraint.as_given(), self.tags.keys().map(String::as_str)).ok().flatten();
        if let Some((tag, entry)) = highest.and_then(|tag| self.tags.get_key_value(tag)) {
            return Some(Match { tag: Some(tag), ..entry.found() });
        }
        let same = self.constraints.iter().find(|(known, _)| known == constraint).map(|(_, entry)| entry);
        same.map(Entry::found)
            .or_else(|| image.tag().and_then(|tag| self.find_tag(tag)))
            .or_else(|| self.any().map(Entry::found))
    }

    /// What is claimed whatever the tag.
    fn any(&self) -> Option<&Entry<T>> {
        self.any_tag.as_ref().or(self.all.as_ref())
    }
}

fn put<T>(place: &mut Option<Entry<T>>, entry: Entry<T>) -> Result<(), &T> {
    match place {
        Some(first) => Err(&first.value),
        free => {
            *free = Some(entry);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(claims: &[&str]) -> Table<usize> {
        let mut table = Table::default();
        for (number, text) in claims.iter().enumerate() {
            table.add(&Claim::parse(text, "").unwrap(), number).unwrap();
        }
        table
    }

    fn found(table: &Table<usize>, image: &str) -> Option<usize> {
        table.find(&Reference::parse(image).unwrap(), None).map(|found| *found.value)
    }

    /// The number of the claim, and the tag.
    fn meeting<'a>(
        table: &'a Table<usize>,
        image: &str,
        constraint: &str,
    ) -> Option<(usize, Option<&'a str>)> {
        let (image, constraint) = (Reference::parse(image).unwrap(), Constraint::parse(constraint).unwrap());
        table.find(&image, Some(&constraint)).map(|found| (*found.value, found.tag))
    }

    #[test]
    fn the_very_image_wins_over_constraints_and_those_over_any_tag() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let table = table(&[
            "example.com/f:*",
            "example.com/f:~0.4",
            "example.com/f:>=0.4.5",
            "example.com/f:v0.4.7",
            &format!("example.com/f@{digest}"),
            "example.com/g:v1",
        ]);
        for (image, claim) in [
            ("example.com/f:v0.4.7", Some(3)),
            ("example.com/f:0.4.7", Some(1)),
            ("example.com/f:v0.4.8", Some(1)),
            ("example.com/f:v0.5.0", Some(2)),
            ("example.com/f:v0.5.0-rc.1", Some(0)),
            ("example.com/f:v0.1", Some(0)),
            ("example.com/f:main", Some(0)),
            ("example.com/f", Some(0)),
            ("example.com/g:v1", Some(5)),
            ("example.com/g", None),
            ("example.com/g:v1.0.1", None),
            ("example.com/h:v1", None),
            ("example.org/f:v0.4.7", None),
        ] {
            assert_eq!(found(&table, image), claim, "{image}");
        }
        assert_eq!(found(&table, &format!("example.com/f:v0.4.7@{digest}")), Some(4), "the digest decides");
        let other = format!("example.com/f:v0.4.7@sha256:{}", "b".repeat(64));
        assert_eq!(found(&table, &other), None, "a digest is no tag");
        assert_eq!(table.len(), 6);
    }

    #[test]
    fn all_takes_in_what_nothing_else_does() {
        let mut table = table(&["example.com/f:v1"]);
        let all = Claim { versions: Versions::All, ..Claim::parse("example.com/f", "").unwrap() };
        table.add(&all, 1).unwrap();
        assert_eq!(table.add(&all, 2), Err(&1));
        let digest = format!("example.com/f:v1@sha256:{}", "a".repeat(64));
        for (image, claim) in
            [("example.com/f:v1", 0), ("example.com/f:v2", 1), ("example.com/f", 1), (&digest, 1)]
        {
            assert_eq!(found(&table, image), Some(claim), "{image}");
        }
        assert_eq!(meeting(&table, "example.com/f", "~7"), Some((1, None)));
        assert_eq!(meeting(&table, "example.com/f", "~1"), Some((0, Some("v1"))));
    }

    #[test]
    fn all_claims_are_listed_as_they_were_written() {
        let digest = format!("example.com/f@sha256:{}", "a".repeat(64));
        let mut texts =
            ["example.com/g:v1", "example.com/f:v1", "example.com/f:~2", "example.com/f:*", &digest];
        let mut table = table(&texts);
        table.add(&Claim::named("n", None, "", &Versions::All), 5).unwrap();
        let listed: Vec<_> = table.entries().into_iter().map(|(text, _)| text).collect();
        texts.sort_unstable();
        assert_eq!(listed[..5], texts);
        assert_eq!(listed[5..], ["…/n"]);
    }

    #[test]
    fn a_constraint_means_the_highest_tag_that_is_known() {
        let table = table(&[
            "example.com/f:v0.4.1",
            "example.com/f:v0.4.10",
            "example.com/f:v0.4",
            "example.com/f:v1.0.0-rc.1",
            "example.com/f:latest",
            "example.com/g:~1.2",
            "example.com/any:*",
        ]);
        for (image, constraint, claim) in [
            ("example.com/f", "~0.4", Some((1, Some("v0.4.10")))),
            ("example.com/f", "*", Some((1, Some("v0.4.10")))),
            ("example.com/f:v0.4", "v0.4", Some((2, Some("v0.4")))),
            ("example.com/f:0.4", "0.4", Some((1, Some("v0.4.10")))),
            ("example.com/f", "<0.4.10", Some((0, Some("v0.4.1")))),
            ("example.com/f", ">=1.0.0-0", Some((3, Some("v1.0.0-rc.1")))),
            ("example.com/f", ">=1", None),
            // Which tag is meant nobody knows, but that it is claimed.
            ("example.com/g", "~1.2", Some((5, None))),
            ("example.com/g:v1.2.9", "v1.2.9", Some((5, None))),
            ("example.com/g", "~1.2.0", None),
            ("example.com/any", "~7", Some((6, None))),
            ("example.com/h", "*", None),
        ] {
            assert_eq!(meeting(&table, image, constraint), claim, "{image} {constraint}");
        }
    }

    #[test]
    fn the_first_claim_wins_and_the_second_is_told() {
        let digest = format!("example.com/f@sha256:{}", "a".repeat(64));
        for text in ["example.com/f:v1", "example.com/f:~1", "example.com/f:*", &digest] {
            let mut table = table(&[text]);
            assert_eq!(table.add(&Claim::parse(text, "").unwrap(), 1), Err(&0), "{text}");
            assert_eq!(table.len(), 1);
        }
        let mut table = table(&["example.com/f"]);
        assert_eq!(table.add(&Claim::parse("example.com/f:latest", "").unwrap(), 1), Err(&0));
    }

    #[test]
    fn a_name_is_claimed_anywhere_or_under_prefixes_the_longest_of_which_wins() {
        let mut table = Table::default();
        for (number, prefix) in
            [None, Some("ghcr.io"), Some("ghcr.io/org"), Some("ghcr.io/o")].iter().enumerate()
        {
            let prefix = prefix.map(|prefix| Prefix::parse(prefix).unwrap());
            let place = Place::Named { name: "f".to_owned(), prefix };
            for versions in [Versions::Tag("v1".to_owned()), Versions::parse("~2").unwrap()] {
                let claim = Claim { entry: format!("object {number}"), place: place.clone(), versions };
                table.add(&claim, number).unwrap();
                assert_eq!(table.add(&claim, 99), Err(&number));
            }
        }
        table.add(&Claim::parse("ghcr.io/org/f:v1", "").unwrap(), 100).unwrap();
        for (image, claim) in [
            ("ghcr.io/org/f:v1", Some(100)),
            ("ghcr.io/org/f:v2.1", Some(2)),
            ("ghcr.io/org/deep/f:v1", Some(2)),
            ("ghcr.io/organisation/f:v1", Some(1)),
            ("ghcr.io/f:v1", Some(1)),
            ("quay.io/a/f:v1", Some(0)),
            ("quay.io/a/f:v3", None),
            ("quay.io/a/g:v1", None),
        ] {
            assert_eq!(found(&table, image), claim, "{image}");
        }
    }

    #[test]
    fn among_many_images_only_claims_to_the_same_are_looked_at() {
        let mut table = Table::default();
        for number in 0..20_000 {
            table.add(&Claim::parse(&format!("example.com/f{number}:~1"), "").unwrap(), number).unwrap();
        }
        for number in 0..20_000 {
            let image = format!("example.com/f{number}:v1.2");
            assert_eq!(found(&table, &image), Some(number));
            let image = Reference::parse(&image).unwrap();
            let looked_at: usize = table.around(&image).map(|claims| claims.entries().count()).sum();
            assert_eq!(looked_at, 1, "{image}");
        }
    }
}
