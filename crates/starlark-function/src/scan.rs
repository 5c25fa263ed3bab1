//! The text of a program, character by character.

/// Goes through code: what is in strings and comments, and behind a backslash, is left out.
pub(crate) struct Scan<'t> {
    text: &'t str,
    at: usize,
    /// How many brackets are open.
    pub(crate) depth: usize,
    /// Where the strings are that were passed.
    pub(crate) strings: Vec<(usize, usize)>,
}

impl<'t> Scan<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, at: 0, depth: 0, strings: Vec::new() }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next character of the code, and where it is.
    pub(crate) fn next_code(&mut self) -> Option<(usize, char)> {
        loop {
            let rest = self.rest();
            let character = rest.chars().next()?;
            match character {
                '#' => self.at += rest.find('\n').unwrap_or(rest.len()),
                '"' | '\'' => {
                    let start = self.at;
                    self.skip_string(character);
                    self.strings.push((start, self.at));
                }
                '\\' => self.at += 1 + rest.chars().nth(1).map_or(0, char::len_utf8),
                _ => {
                    let at = self.at;
                    self.at += character.len_utf8();
                    match character {
                        '(' | '[' | '{' => self.depth += 1,
                        ')' | ']' | '}' => self.depth = self.depth.saturating_sub(1),
                        _ => {}
                    }
                    return Some((at, character));
                }
            }
        }
    }

    fn skip_string(&mut self, quote: char) {
        let triple: String = [quote; 3].iter().collect();
        let end = if self.rest().starts_with(&triple) { triple } else { quote.to_string() };
        self.at += end.len();
        loop {
            let rest = self.rest();
            if rest.starts_with(&*end) {
                self.at += end.len();
                return;
            }
            match rest.chars().next() {
                None => return,
                // A string in one line that is not closed.
                Some('\n') if end.len() == 1 => return,
                Some('\\') => self.at += 1 + rest.chars().nth(1).map_or(0, char::len_utf8),
                Some(other) => self.at += other.len_utf8(),
            }
        }
    }
}

/// Whether a character can be part of a name.
pub(crate) fn is_part_of_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The word that starts here, if one does.
pub(crate) fn word_at(text: &str, at: usize) -> Option<&str> {
    let (before, rest) = text.split_at_checked(at)?;
    let word = rest.get(..rest.find(|next| !is_part_of_word(next)).unwrap_or(rest.len()))?;
    (!word.is_empty() && !before.ends_with(is_part_of_word)).then_some(word)
}
