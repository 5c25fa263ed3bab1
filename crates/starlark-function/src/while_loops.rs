//! `while` loops, which the interpreter does not know, as `for` loops.
//!
//! `while CONDITION:` becomes `for _while in range(…):` with `if not (CONDITION): break` at the start of its
//! body. The interpreter cannot count without end; a loop that has taken all turns fails rather than ends.

use crate::scan::{Scan, is_part_of_word, word_at};

/// As many turns as the interpreter can count.
const TURNS: u32 = i32::MAX as u32;

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
    let mut rewriter =
        Rewriter { program, line: 0, out: String::with_capacity(program.len()), lines: vec![0] };
    rewriter.all();
    Rewritten { source: rewriter.out, lines: rewriter.lines }
}

struct Rewriter<'p> {
    program: &'p str,
    /// The line of the statement that is looked at, counted from 0.
    line: usize,
    out: String,
    lines: Vec<usize>,
}

impl<'p> Rewriter<'p> {
    fn all(&mut self) {
        let mut at = 0;
        while at < self.program.len() {
            let end = end_of_statement(self.program, at);
            let statement = self.text(at, end);
            if self.write_loop(at, end).is_none() {
                self.write(statement, self.line);
            }
            self.line += line_breaks(statement);
            at = end;
        }
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

    /// Writes the statement from `at` to `end`, if it is a loop: all of it that is in the line of its head.
    fn write_loop(&mut self, at: usize, end: usize) -> Option<()> {
        let statement = self.text(at, end);
        let indent = statement.len() - statement.trim_start_matches([' ', '\t']).len();
        let rest = statement.get(indent..)?.strip_prefix("while")?;
        if rest.starts_with(is_part_of_word) {
            return None;
        }
        let start = at + indent + "while".len();
        let colon = colon(self.text(start, end))? + start;
        let condition = self.text(start, colon).trim();
        let body = self.text(colon + 1, end);
        let is_block =
            matches!(body.trim_start_matches([' ', '\t']).chars().next(), None | Some('\n' | '\r' | '#'));
        let own_indent = self.text(at, at + indent);
        let body_indent = if is_block {
            let inner = self.indent_of_block(end);
            (inner.len() > indent).then(|| inner.to_owned())?
        } else {
            format!("{own_indent} ")
        };
        let last = TURNS - 1;
        let head = format!(
            "{own_indent}for _while in range({TURNS}):\n\
             {body_indent}if _while == {last}: fail(\"a while loop took more than {last} turns\")\n"
        );
        // Each line of the head comes from the same line of the program.
        for piece in head.split_inclusive('\n') {
            self.write(piece, self.line);
        }
        self.write(&format!("{body_indent}if not ({condition}): break\n"), self.line);
        if !is_block {
            let line = self.line + line_breaks(self.text(at, colon));
            self.write(&format!("{body_indent}{}", body.trim_start_matches([' ', '\t'])), line);
        }
        Some(())
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

fn line_breaks(text: &str) -> usize {
    text.matches('\n').count()
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
            'l' if word_at(text, at) == Some("lambda") => lambdas += 1,
            _ => {}
        }
    }
    None
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_rewritten() {
        let program = "x = 0\nwhile x < 3: # up\n\n  # comment\n  x += 1\n  while (x ==\n      2): x += 1; y = 2\nprint(x)";
        let expected = r#"x = 0
for _while in range(2147483647):
  if _while == 2147483646: fail("a while loop took more than 2147483646 turns")
  if not (x < 3): break

  # comment
  x += 1
  for _while in range(2147483647):
   if _while == 2147483646: fail("a while loop took more than 2147483646 turns")
   if not ((x ==
      2)): break
   x += 1; y = 2
print(x)"#;
        let rewritten = rewrite(program);
        assert_eq!(rewritten.source, expected);
        let lines: Vec<usize> = (0..13).map(|line| rewritten.line(line)).collect();
        assert_eq!(lines, [1, 2, 2, 2, 3, 4, 5, 6, 6, 6, 7, 7, 8]);
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
        let condition = "\n  if not (f(lambda: 1) and {1: 2}[1:] and (lambda x: x)(1)): break\n  pass\n";
        assert!(rewrite(program).source.ends_with(condition));
    }
}
