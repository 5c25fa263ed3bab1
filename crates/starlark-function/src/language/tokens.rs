//! The parts of a program, to find where an expression begins: the interpreter does not count the brackets around it.

use crate::scan::{Scan, is_part_of_word};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    Text,
    Open,
    Close,
    Other,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Where the other bracket is.
    pub(super) partner: usize,
}

/// Words behind which something else begins.
const KEYWORDS: &[&str] = &[
    "and", "break", "continue", "def", "elif", "else", "for", "if", "in", "lambda", "load", "not", "or",
    "pass", "return",
];

#[derive(Debug)]
pub(super) struct Tokens<'p> {
    program: &'p str,
    tokens: Vec<Token>,
}

impl<'p> Tokens<'p> {
    pub(super) fn of(program: &'p str) -> Self {
        let mut tokens: Vec<Token> = Vec::new();
        let mut scan = Scan::new(program);
        let mut open = Vec::new();
        let mut strings = 0;
        loop {
            let code = scan.next_code();
            for &(start, end) in scan.strings.get(strings..).unwrap_or_default() {
                tokens.push(Token { kind: Kind::Text, start, end, partner: 0 });
            }
            strings = scan.strings.len();
            let Some((start, character)) = code else { break };
            let end = start + character.len_utf8();
            if is_part_of_word(character) {
                match tokens.last_mut() {
                    Some(last) if last.kind == Kind::Word && last.end == start => last.end = end,
                    _ => tokens.push(Token { kind: Kind::Word, start, end, partner: 0 }),
                }
                continue;
            }
            if character.is_whitespace() && (character != '\n' || scan.depth > 0) {
                continue;
            }
            let at = tokens.len();
            let mut token = Token { kind: Kind::Other, start, end, partner: 0 };
            match character {
                '(' | '[' | '{' => {
                    token.kind = Kind::Open;
                    open.push(at);
                }
                ')' | ']' | '}' => {
                    token.kind = Kind::Close;
                    if let Some(partner) = open.pop() {
                        token.partner = partner;
                        if let Some(partner) = tokens.get_mut(partner) {
                            partner.partner = at;
                        }
                    }
                }
                _ => {}
            }
            tokens.push(token);
        }
        Self { program, tokens }
    }

    pub(super) fn get(&self, at: usize) -> Option<&Token> {
        self.tokens.get(at)
    }

    pub(super) fn text(&self, at: usize) -> &'p str {
        self.get(at).and_then(|token| self.program.get(token.start..token.end)).unwrap_or_default()
    }

    /// The bracket that closes at this position, and the one that it closes.
    pub(super) fn brackets(&self, close: usize) -> Option<(usize, usize)> {
        let at = self.tokens.binary_search_by_key(&close, |token| token.start).ok()?;
        let token = self.get(at).filter(|token| token.kind == Kind::Close)?;
        Some((token.partner, at))
    }

    /// Whether a value may end with this token.
    fn ends_value(&self, at: usize) -> bool {
        match self.get(at).map(|token| token.kind) {
            Some(Kind::Word) => !KEYWORDS.contains(&self.text(at)),
            Some(Kind::Text | Kind::Close) => true,
            _ => false,
        }
    }

    /// Where the value begins, with all that it is chosen from, that ends with this token.
    pub(super) fn start_of_value(&self, last: usize) -> Option<usize> {
        let mut at = last;
        loop {
            let token = self.get(at)?;
            let before = at.checked_sub(1);
            match token.kind {
                Kind::Close => {
                    let open = token.partner;
                    let before = open.checked_sub(1);
                    match before.filter(|before| self.text(open) != "{" && self.ends_value(*before)) {
                        Some(before) => at = before,
                        None => return self.get(open).map(|open| open.start),
                    }
                }
                Kind::Word => match before.filter(|before| self.text(*before) == ".") {
                    Some(dot) => match dot.checked_sub(1).filter(|before| self.ends_value(*before)) {
                        Some(before) => at = before,
                        None => return self.get(dot).map(|dot| dot.start),
                    },
                    None => return Some(token.start),
                },
                Kind::Text => {
                    // It may have a prefix.
                    let prefix = before.and_then(|before| self.get(before));
                    let prefix =
                        prefix.filter(|prefix| prefix.kind == Kind::Word && prefix.end == token.start);
                    return Some(prefix.map_or(token.start, |prefix| prefix.start));
                }
                Kind::Open | Kind::Other => return None,
            }
        }
    }

    /// The tokens of this text between two brackets that are in no others; `None` if what they are is not clear.
    pub(super) fn within(&self, open: usize, close: usize, text: &str) -> Option<Vec<usize>> {
        let mut found = Vec::new();
        let mut at = open + 1;
        while at < close {
            match self.get(at)?.kind {
                Kind::Open => at = self.get(at)?.partner.max(at),
                Kind::Word if self.text(at) == "lambda" => return None,
                _ if self.text(at) == text => found.push(at),
                _ => {}
            }
            at += 1;
        }
        Some(found)
    }
}
