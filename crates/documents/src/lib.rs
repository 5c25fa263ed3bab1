//! The project's documents, as far as tests compare them with what is so: their blocks and their tables.

pub mod metrics;

use std::fmt;

/// A fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The line of its first fence, counted from 1.
    pub line: usize,
    /// What stands behind the fence, such as `console`.
    pub language: String,
    /// Its lines, without the indentation of its fence.
    pub lines: Vec<String>,
}

/// A table: the cells of its head and of its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The line of its head, counted from 1.
    pub line: usize,
    /// What stands above its columns.
    pub head: Vec<String>,
    /// The rows below.
    pub rows: Vec<Vec<String>>,
}

/// A command of a `console` block, and what it is said to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its first line, counted from 1 in the document.
    pub line: usize,
    /// The command, without the prompt.
    pub command: String,
    /// What it prints on both outputs, without blank lines at the end.
    pub output: Vec<String>,
}

/// All fenced blocks of a document.
pub fn blocks(document: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, Block)> = None;
    for (number, line) in document.lines().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let fence = line.trim_start().strip_prefix("```");
        match (&mut open, fence) {
            (None, Some(language)) => {
                let block =
                    Block { line: number + 1, language: language.trim().to_owned(), lines: Vec::new() };
                open = Some((indent, block));
            }
            (Some(_), Some("")) => blocks.extend(open.take().map(|(_, block)| block)),
            (Some((indent, block)), _) => {
                let inner = line.get(..*indent).filter(|start| start.trim().is_empty()).map(str::len);
                block.lines.push(line.get(inner.unwrap_or_default()..).unwrap_or_default().to_owned());
            }
            (None, None) => {}
        }
    }
    blocks
}

/// The commands of a `console` block. A command is what follows the prompt `$ `, and the lines after it for as
/// long as `is_whole` says that something is missing; the rest up to the next prompt is its output.
pub fn steps(block: &Block, is_whole: impl Fn(&str) -> bool) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (offset, line) in block.lines.iter().enumerate() {
        let unfinished = steps.last_mut().filter(|step| step.output.is_empty() && !is_whole(&step.command));
        match (unfinished, line.strip_prefix("$ ")) {
            (Some(step), _) => {
                step.command.push('\n');
                step.command.push_str(line);
            }
            (None, Some(command)) => steps.push(Step {
                line: block.line + 1 + offset,
                command: command.to_owned(),
                output: Vec::new(),
            }),
            (None, None) => {
                if let Some(step) = steps.last_mut() {
                    step.output.push(line.clone());
                }
            }
        }
    }
    for step in &mut steps {
        trim(&mut step.output);
    }
    steps
}

/// Takes blank lines from the end.
pub fn trim(lines: &mut Vec<String>) {
    while lines.last().is_some_and(|line| line.trim().is_empty()) {
        lines.pop();
    }
}

/// Whether lines are what a document says. In a document, a line `...` stands for any number of lines, and `…` for
/// any text within a line.
pub fn agree(said: &[String], printed: &[String]) -> bool {
    match said.split_first() {
        None => printed.is_empty(),
        Some((line, rest)) if line == "..." => {
            (0..=printed.len()).any(|skipped| agree(rest, printed.get(skipped..).unwrap_or_default()))
        }
        Some((line, rest)) => printed
            .split_first()
            .is_some_and(|(first, others)| line_agrees(line, first) && agree(rest, others)),
    }
}

fn line_agrees(said: &str, printed: &str) -> bool {
    let Some((start, rest)) = said.split_once('…') else { return said == printed };
    let Some(printed) = printed.strip_prefix(start) else { return false };
    let starts = printed.char_indices().map(|(at, _)| at).chain([printed.len()]);
    starts.filter_map(|at| printed.get(at..)).any(|tail| line_agrees(rest, tail))
}

/// All tables of a document.
pub fn tables(document: &str) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let mut inside = false;
    let mut head = None;
    let mut fenced = false;
    for (number, line) in document.lines().enumerate() {
        fenced ^= line.trim_start().starts_with("```");
        let Some(row) = line.strip_prefix('|').filter(|_| !fenced) else {
            (inside, head) = (false, None);
            continue;
        };
        let cells = cells(row);
        match (inside, head.take()) {
            (true, _) => tables.last_mut().into_iter().for_each(|table| table.rows.push(cells.clone())),
            (false, None) => head = Some((number + 1, cells)),
            // The line of dashes.
            (false, Some((line, head))) => {
                tables.push(Table { line, head, rows: Vec::new() });
                inside = true;
            }
        }
    }
    tables
}

/// The cells of a row, of which the first bar is gone. A bar within a cell has a backslash before it.
fn cells(row: &str) -> Vec<String> {
    let row = row.replace("\\|", "\u{0}");
    let row = row.trim_end().trim_end_matches('|');
    row.split('|').map(|cell| cell.trim().replace('\u{0}', "|")).collect()
}

/// What stands between backticks.
pub fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

impl Table {
    /// The cells of one column.
    pub fn column(&self, name: &str) -> Vec<&str> {
        let Some(at) = self.head.iter().position(|head| head == name) else { return Vec::new() };
        self.rows.iter().filter_map(|row| row.get(at)).map(String::as_str).collect()
    }
}

impl fmt::Display for Block {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}: {}", self.line, self.lines.first().map_or("", String::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn blocks_are_found_with_their_steps() {
        let document =
            "a\n```console\n$ one \\\n    two\nout\n\nput\n\n$ three\n```\n- b\n\n  ```\n  x\n   y\n  ```\n";
        let blocks = blocks(document);
        assert_eq!((blocks[0].line, blocks[0].language.as_str()), (2, "console"));
        let steps = steps(&blocks[0], |command| !command.ends_with('\\'));
        let found: Vec<_> =
            steps.iter().map(|step| (step.line, &*step.command, step.output.clone())).collect();
        assert_eq!(found, [(3, "one \\\n    two", lines("out\n\nput")), (9, "three", Vec::new())]);
        assert_eq!((blocks[1].language.as_str(), blocks[1].lines.clone()), ("", lines("x\n y")));
        assert_eq!(blocks.len(), 2);
    }

    #[test]
    fn only_marks_stand_for_something_else() {
        for (said, printed, expected) in [
            ("", "", true),
            ("a\nb", "a\nb", true),
            ("a", "a\nb", false),
            ("a\nb", "a", false),
            ("...", "", true),
            ("...", "a\nb", true),
            ("a\n...\nd", "a\nb\nc\nd", true),
            ("a\n...\nd", "a\nb\nc", false),
            ("a…c", "abbc", true),
            ("a…c", "ac", true),
            ("a…c", "ab", false),
            ("…\u{e9}…", "x\u{e9}\u{e9}y", true),
            ("a...", "abc", false),
        ] {
            assert_eq!(agree(&lines(said), &lines(printed)), expected, "{said:?} {printed:?}");
        }
    }

    #[test]
    fn tables_have_rows_of_cells() {
        let document = "| a | b |\n| --- | --- |\n| `x` | 1 \\| 2 |\n| | y |\n\n```\n| no | table |\n```\n";
        let tables = tables(document);
        assert_eq!(tables.len(), 1);
        assert_eq!((tables[0].line, tables[0].column("b")), (1, vec!["1 | 2", "y"]));
        assert_eq!(tables[0].column("a"), ["`x`", ""]);
        assert_eq!(quoted("`a`, `b` c"), ["a", "b"]);
    }
}
