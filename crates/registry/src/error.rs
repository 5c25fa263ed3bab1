//! What can go wrong between us and a registry, told so that a person knows what to fix.

/// How much of a registry's own words an error repeats, in characters.
const LONGEST_WORDS: usize = 400;

/// What kind of trouble it is: decides the status a caller gets and whether asking again helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RegistryErrorKind {
    /// The registry knows no such image or tag.
    Missing,
    /// We have no right to the image.
    Denied,
    /// The registry's answer is wrong or not usable: a digest that does not match, no image for our
    /// platform, a body larger than allowed.
    Invalid,
    /// The registry's certificate is not trusted, or what to trust cannot be read.
    Untrusted,
    /// Trouble that may pass, after our own retries.
    Unavailable,
    /// The caller's deadline, or our own bound, passed.
    TimedOut,
}

impl RegistryErrorKind {
    /// Whether the registry gave a definite answer, as opposed to trouble on the way to it.
    pub fn is_definite(self) -> bool {
        !matches!(self, Self::Unavailable | Self::TimedOut)
    }

    /// A short name, fit for a metric's label.
    pub fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Denied => "denied",
            Self::Invalid => "invalid",
            Self::Untrusted => "untrusted",
            Self::Unavailable => "unavailable",
            Self::TimedOut => "timed out",
        }
    }
}

/// Why an image's metadata or tags cannot be had. Never holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read image {image:?}: {}", self.explanation())]
pub struct RegistryError {
    kind: RegistryErrorKind,
    image: String,
    problem: String,
    said: Option<String>,
    remedy: String,
}

impl RegistryError {
    /// An error about an image. Sources of metadata other than [`Registry`](crate::Registry) make theirs
    /// with this as well.
    pub fn new(
        kind: RegistryErrorKind,
        image: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { kind, image: image.into(), problem: problem.into(), said: None, remedy: remedy.into() }
    }

    /// What kind of trouble it is.
    pub fn kind(&self) -> RegistryErrorKind {
        self.kind
    }

    /// The image as it was asked for.
    pub fn image(&self) -> &str {
        &self.image
    }

    /// What went wrong, the registry's words and the remedy, without the image.
    pub fn explanation(&self) -> String {
        let said = self.said().map(|said| format!(" (the registry says: {said})")).unwrap_or_default();
        format!("{}{said}; {}", self.problem, self.remedy)
    }

    /// What went wrong, without the registry's words and the remedy.
    pub fn problem(&self) -> &str {
        &self.problem
    }

    /// The registry's own words, shortened and without control characters.
    pub fn said(&self) -> Option<&str> {
        self.said.as_deref()
    }

    /// What to do about it.
    pub fn remedy(&self) -> &str {
        &self.remedy
    }

    /// The same trouble, told of another spelling of the image.
    #[must_use]
    pub fn about(mut self, image: &str) -> Self {
        image.clone_into(&mut self.image);
        self
    }

    /// The same trouble, after a mirror had failed before.
    #[must_use]
    pub(crate) fn after_mirror(mut self, mirror: &str, earlier: &Self) -> Self {
        self.problem = format!("{}; before that, the mirror {mirror}: {}", self.problem, earlier.problem);
        self
    }
}

/// Trouble before it is known which image it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) kind: RegistryErrorKind,
    pub(crate) problem: String,
    pub(crate) said: Option<String>,
    pub(crate) remedy: String,
}

impl Trouble {
    pub(crate) fn new(
        kind: RegistryErrorKind,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { kind, problem: problem.into(), said: None, remedy: remedy.into() }
    }

    pub(crate) fn invalid(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(RegistryErrorKind::Invalid, problem, remedy)
    }

    pub(crate) fn unavailable(problem: impl Into<String>) -> Self {
        Self::new(RegistryErrorKind::Unavailable, problem, "check that the registry runs and can be reached")
    }

    pub(crate) fn saying(mut self, said: Option<String>) -> Self {
        self.said = said;
        self
    }

    pub(crate) fn with_image(self, image: &str) -> RegistryError {
        RegistryError {
            kind: self.kind,
            image: image.to_owned(),
            problem: self.problem,
            said: self.said,
            remedy: self.remedy,
        }
    }
}

/// A stranger's text made fit for a message: one line, no control characters, no text direction tricks,
/// shortened. `None` if nothing is left.
pub(crate) fn clean(text: &str) -> Option<String> {
    let mut words = String::new();
    let mut characters = 0;
    for word in text.split(|character: char| character.is_whitespace() || is_hidden(character)) {
        if word.is_empty() {
            continue;
        }
        if !words.is_empty() {
            words.push(' ');
            characters += 1;
        }
        for character in word.chars() {
            if characters >= LONGEST_WORDS {
                words.push('…');
                return Some(words);
            }
            words.push(character);
            characters += 1;
        }
    }
    (!words.is_empty()).then_some(words)
}

/// Characters that change how the rest of a line looks.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_words_become_one_short_line() {
        assert_eq!(clean("a\r\n\tb\u{1b}[31mc\u{202e}d\0").as_deref(), Some("a b [31mc d"));
        assert_eq!(clean(" \n\u{7}\u{200b} "), None);
        let long = clean(&"é".repeat(10_000)).unwrap();
        assert_eq!(long.chars().count(), LONGEST_WORDS + 1);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn an_error_names_the_image_the_cause_the_words_and_the_remedy() {
        let error = Trouble::new(RegistryErrorKind::Missing, "h has no tag v9", "check the tag")
            .saying(Some("MANIFEST_UNKNOWN".into()))
            .with_image("h/a:v9");
        assert_eq!(
            error.to_string(),
            "cannot read image \"h/a:v9\": h has no tag v9 (the registry says: MANIFEST_UNKNOWN); check the tag"
        );
    }
}
