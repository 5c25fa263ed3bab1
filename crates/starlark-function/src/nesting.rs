//! How deep a program is nested.
//!
//! The interpreter is recursive: what is too deep for its stack would end the process, so it never sees it.

use crate::scan::{Scan, word_at};

/// Much deeper than anybody writes, and much less than the stack can take.
pub(crate) const MAXIMUM_NESTING: usize = 5_000;

/// How deep an expression can be at most at some place: each operator and each bracket may add a level.
#[derive(Default)]
struct Depth {
    /// All levels up to here.
    total: usize,
    /// Those since the last bracket that is open.
    here: usize,
    /// Those of them that a comma does not end.
    lasting: usize,
    /// The same of the brackets around it.
    outer: Vec<(usize, usize)>,
}

impl Depth {
    fn add(&mut self) {
        self.total += 1;
        self.here += 1;
    }

    fn open(&mut self) {
        self.add();
        self.outer.push((self.here, self.lasting));
        (self.here, self.lasting) = (0, 0);
    }

    fn close(&mut self) {
        self.total -= self.here;
        (self.here, self.lasting) = self.outer.pop().unwrap_or_default();
    }

    fn end_part(&mut self) {
        self.total -= self.here - self.lasting;
        self.here = self.lasting;
    }

    fn end_statement(&mut self) {
        self.total -= self.here;
        (self.here, self.lasting) = (0, 0);
    }
}

/// The line and column, counted from 1, where a program is nested too deep.
pub(crate) fn too_deep(program: &str) -> Option<(usize, usize)> {
    let mut depth = Depth::default();
    let mut scan = Scan::new(program);
    while let Some((at, character)) = scan.next_code() {
        match character {
            '(' | '[' | '{' => depth.open(),
            ')' | ']' | '}' => depth.close(),
            ',' => depth.end_part(),
            ';' | '\n' if scan.depth == 0 => depth.end_statement(),
            '+' | '-' | '*' | '/' | '%' | '|' | '&' | '^' | '~' | '<' | '>' | '=' | '!' | '.' => depth.add(),
            _ => match word_at(program, at) {
                Some("and" | "else" | "if" | "in" | "not" | "or") => depth.add(),
                Some("for" | "lambda") => {
                    depth.add();
                    depth.lasting += 1;
                }
                // It is part of the one before it, whose end is not to be seen here.
                Some("elif") => depth.total += 1,
                _ => {}
            },
        }
        if depth.total > MAXIMUM_NESTING {
            let before = program.get(..at).unwrap_or_default();
            let line_start = before.rfind('\n').map_or(0, |end| end + 1);
            let column = before.get(line_start..).unwrap_or_default().chars().count();
            return Some((before.matches('\n').count() + 1, column + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_or_wide_is_not_deep() {
        for program in [
            "x = 1 + 2\n".repeat(10_000),
            format!("x = [{}]", "f(a.b, not c), -1, ".repeat(10_000)),
            format!("x = {{{}}}", "'a': [1 if y else 2],\n".repeat(10_000)),
            "def f(a, b = 1):\n  for x, y in z:\n    if x: return (lambda: 1)\n".repeat(10_000),
            format!("x = '{}' # {}", "(".repeat(10_000), "(".repeat(10_000)),
            ")".repeat(10_000),
            String::new(),
        ] {
            assert_eq!(too_deep(&program), None);
        }
    }

    #[test]
    fn what_is_deep_is_found() {
        for piece in [
            "[",
            "f(",
            "{1:",
            "-",
            "~",
            "not ",
            "1+",
            "x.",
            "f()",
            "x[0]",
            "x and ",
            "1 if 2 else ",
            "lambda: ",
            "lambda a, b: ",
            "[1, ",
            "-(",
            "- # comment\n(",
        ] {
            let program = format!("x = 1\ny = {}1", piece.repeat(MAXIMUM_NESTING + 1));
            assert!(too_deep(&program).is_some(), "{piece}");
            assert_eq!(too_deep(&program.replace(&piece.repeat(MAXIMUM_NESTING), piece)), None, "{piece}");
        }
        assert!(too_deep(&format!("if x:\n  y\n{}", "elif x:\n  y\n".repeat(MAXIMUM_NESTING + 1))).is_some());
        assert_eq!(
            too_deep(&format!("ä\n  {}", "[".repeat(MAXIMUM_NESTING + 1))),
            Some((2, MAXIMUM_NESTING + 3))
        );
    }
}
