//! `while` loops, which the interpreter does not know, as `for` loops.
//!
//! `while CONDITION:` becomes `for _while in range(…):` with `if not (CONDITION): break` as the first line of
//! its body.

/// As many turns as the interpreter can count.
const TURNS: &str = "2147483647";

/// A program without `while`.
#[derive(Debug)]
pub(crate) struct Rewritten {
    pub(crate) source: String,
    /// Which line of the program each line comes from, counted from 0.
    lines: Vec<usize>,
}

impl Rewritten {
    /// The line of the program, counted from 1, that a line of the source comes from, counted from 0.
    pub(crate) fn line(&self, line: usize) -> usize {
        self.lines.get(line).copied().unwrap_or(line) + 1
    }
}

pub(crate) fn rewrite(program: &str) -> Rewritten {
    let mut rewriter = Rewriter { program, out: String::with_capacity(program.len()), lines: vec![0] };
    rewriter.all();
    Rewritten { source: rewriter.out, lines: rewriter.lines }
}

struct Rewriter<'p> {
    program: &'p str,
    out: String,
    lines: Vec<usize>,
}

impl<'p> Rewriter<'p> {
    fn all(&mut self) {
        let mut at = 0;
        while at < self.program.len() {
            let end = end_of_statement(self.program, at);
            match self.loop_at(at, end) {
                Some(next) => at = next,
                None => {
                    self.copy(at, end);
                    at = end;
                }
            }
        }
    }

    /// Copies a part of the program.
    fn copy(&mut self, from: usize, to: usize) {
        let text = self.text(from, to);
        let first = self.line_of(from);
        self.write(text, first);
    }

    /// Writes text whose first line comes from this line of the program.
    fn write(&mut self, text: &str, line: usize) {
        let mut line = line;
        for piece in text.split_inclusive('\n') {
            if let Some(last) = self.lines.last_mut()
                && (self.out.is_empty() || self.out.ends_with('\n'))
            {
                *last = line;
            }
            self.out.push_str(piece);
            if piece.ends_with('\n') {
                line += 1;
                self.lines.push(line);
            }
        }
    }

    fn text(&self, from: usize, to: usize) -> &'p str {
        self.program.get(from..to).unwrap_or_default()
    }

    fn line_of(&self, at: usize) -> usize {
        self.text(0, at).matches('\n').count()
    }

    /// If the statement from `at` to `end` is a loop, writes its head, and gives where its body goes on.
    fn loop_at(&mut self, at: usize, end: usize) -> Option<usize> {
        let statement = self.text(at, end);
        let indent = statement.len() - statement.trim_start_matches([' ', '\t']).len();
        let rest = statement.get(indent..)?.strip_prefix("while")?;
        if rest.starts_with(|next: char| next.is_alphanumeric() || next == '_') {
            return None;
        }
        let start = at + indent + "while".len();
        let colon = colon(self.text(start, end))? + start;
        let condition = self.text(start, colon).trim();
        let line = self.line_of(at);
        let body = self.text(colon + 1, end);
        let is_block = matches!(body.trim_start_matches([' ', '\t']).chars().next(), None | Some('\n' | '\r' | '#'));
        let own_indent = self.text(at, at + indent);
        let body_indent = if is_block {
            let inner = self.indent_of_block(end);
            (inner.len() > indent).then(|| inner.to_owned())?
        } else {
            format!("{own_indent} ")
        };
        self.write(&format!("{own_indent}for _while in range({TURNS}):\n"), line);
        let check_line = self.line_of(start);
        self.write(&format!("{body_indent}if not ({condition}): break\n"), check_line);
        if is_block {
            return Some(end);
        }
        self.write(&body_indent, line);
        self.copy(colon + 1 + (body.len() - body.trim_start_matches([' ', '\t']).len()), end);
        Some(end)
    }

    /// The blanks before the first statement from here on.
    fn indent_of_block(&self, from: usize) -> &'p str {
        for line in self.text(from, self.program.len()).lines() {
            let text = line.trim_start_matches([' ', '\t']);
            if !text.is_empty() && !text.starts_with(['#', '\r']) {
                return line.get(..line.len() - text.len()).unwrap_or_default();
            }
        }
        ""
    }
}

/// Where the colon is that ends the head of a loop.
fn colon(text: &str) -> Option<usize> {
    let mut lambdas = 0;
    let mut scan = Scan::new(text);
    while let Some((at, character)) = scan.next_code() {
        if scan.depth > 0 {
            continue;
        }
        match character {
            ':' if lambdas == 0 => return Some(at),
            ':' => lambdas -= 1,
            'l' if is_word(text, at, "lambda") => lambdas += 1,
            _ => {}
        }
    }
    None
}

fn is_word(text: &str, at: usize, word: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    let before = text.get(..at).unwrap_or_default();
    text.get(at..).and_then(|text| text.strip_prefix(word)).is_some_and(|rest| !rest.starts_with(is_part))
        && !before.ends_with(is_part)
}

/// Where the statement, or the empty line, that starts here ends: behind its line break.
fn end_of_statement(program: &str, from: usize) -> usize {
    let text = program.get(from..).unwrap_or_default();
    let mut scan = Scan::new(text);
    while let Some((at, character)) = scan.next_code() {
        if character == '\n' && scan.depth == 0 {
            return from + at + 1;
        }
    }
    program.len()
}

/// Goes through code: what is in strings and comments, and behind a backslash, is left out.
struct Scan<'t> {
    text: &'t str,
    at: usize,
    /// How many brackets are open.
    depth: usize,
}

impl<'t> Scan<'t> {
    fn new(text: &'t str) -> Self {
        Self { text, at: 0, depth: 0 }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn next_code(&mut self) -> Option<(usize, char)> {
        loop {
            let rest = self.rest();
            let character = rest.chars().next()?;
            match character {
                '#' => self.at += rest.find('\n').unwrap_or(rest.len()),
                '"' | '\'' => self.skip_string(character),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_rewritten() {
        let program = "x = 0\nwhile x < 3: # up\n\n  # comment\n  x += 1\n  while (x ==\n      2): x += 1; y = 2\nprint(x)";
        let expected = "x = 0
for _while in range(2147483647):
  if not (x < 3): break
\n  # comment
  x += 1
  for _while in range(2147483647):
   if not ((x ==
      2)): break
   x += 1; y = 2
print(x)";
        let rewritten = rewrite(program);
        assert_eq!(rewritten.source, expected);
        let lines: Vec<usize> = (0..11).map(|line| rewritten.line(line)).collect();
        assert_eq!(lines, [1, 2, 2, 3, 4, 5, 6, 6, 7, 6, 8]);
    }

    #[test]
    fn all_else_stays() {
        for program in [
            "",
            "\n",
            "x = 'while x:'\n",
            "x = '''\nwhile x:\n  y\n'''\n",
            "# while x:\n",
            "whilex = 1\nwhile_ = 2\n",
            "x = [\nwhile\n]\n",
            "while x\n",
            "while x:\ny\n",
            "x = 'open\n",
            "def f():\r\n  return 1\r\n",
            "s = r'\\'\nx = 'ä' \\\n  + 'ö'",
        ] {
            let rewritten = rewrite(program);
            assert_eq!(rewritten.source, program);
            assert_eq!(rewritten.line(0), 1);
        }
    }

    #[test]
    fn lambdas_and_brackets_have_colons_of_their_own() {
        let program = "while f(lambda: 1) and {1: 2}[1:] and (lambda x: x)(1):\n  pass\n";
        let expected = "for _while in range(2147483647):\n  if not (f(lambda: 1) and {1: 2}[1:] and (lambda x: x)(1)): break\n  pass\n";
        assert_eq!(rewrite(program).source, expected);
    }
}
