//! The help text of a command.

use std::fmt::Write as _;

use crate::command::Command;
use crate::flag::Spec;
use crate::value::Kind;

/// Where lines are broken.
const WIDTH: usize = 100;
/// The farthest column at which explanations start; a longer flag gets a line to itself.
const FARTHEST_COLUMN: usize = 38;

impl Command {
    /// The help text: what the command does, and its flags under their headings.
    pub fn help(&self) -> String {
        let visible = |flags: &'static [Spec]| flags.iter().filter(|spec| !spec.hidden);
        let column = self
            .groups
            .iter()
            .flat_map(|group| visible(group.flags))
            .map(|spec| head(spec).chars().count() + 2)
            .filter(|column| *column <= FARTHEST_COLUMN)
            .max()
            .unwrap_or(FARTHEST_COLUMN);
        let mut text = String::new();
        write_wrapped(&mut text, self.summary, 0, 0);
        write_line(&mut text, &format!("\nUsage: {} {}", self.name, self.usage));
        for group in self.groups {
            if visible(group.flags).next().is_none() {
                continue;
            }
            write_line(&mut text, &format!("\n{}:", group.heading));
            for spec in visible(group.flags) {
                let head = head(spec);
                let mut at = head.chars().count();
                text.push_str(&head);
                if at + 2 > column {
                    text.push('\n');
                    at = 0;
                }
                write_wrapped(&mut text, &explanation(spec), column, at);
            }
        }
        if self.specs().any(|spec| !spec.hidden) {
            text.push('\n');
            let note = "Flags take one dash or two, and their value as --name=value or --name value; switches \
                        as --name, --name=true or --name=false. Durations look like 30m, 1h30m or 1.5s.";
            write_wrapped(&mut text, note, 0, 0);
        }
        text
    }
}

/// The flag with its placeholder, indented.
fn head(spec: &Spec) -> String {
    let placeholder = spec.placeholder.unwrap_or(match spec.kind {
        Kind::Boolean { .. } => "",
        Kind::Integer { .. } => "N",
        Kind::Text { .. } => "TEXT",
        Kind::Duration { .. } => "DURATION",
        Kind::List { .. } => "LIST",
        Kind::Choice { .. } => "WORD",
        Kind::Path { .. } => "PATH",
    });
    format!("  --{} {placeholder}", spec.name).trim_end().to_owned()
}

fn explanation(spec: &Spec) -> String {
    let mut text = spec.help.to_owned();
    let (Kind::List { words, .. } | Kind::Choice { words, .. }) = spec.kind else {
        return text + &default_note(spec);
    };
    if !words.is_empty() {
        // Writing to a String cannot fail.
        let _ = write!(text, " Must be {}.", spec.kind.accepted());
    }
    text + &default_note(spec)
}

fn default_note(spec: &Spec) -> String {
    let default = spec.kind.default_text();
    if default.is_empty() { String::new() } else { format!(" (default {default})") }
}

fn write_line(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}

/// Writes words from `column` on, in as many lines as they need; the first line is filled up to `at`.
fn write_wrapped(text: &mut String, words: &str, column: usize, mut at: usize) {
    let mut fresh = true;
    for word in words.split_whitespace() {
        let length = word.chars().count();
        if !fresh && at + 1 + length > WIDTH {
            text.push('\n');
            at = 0;
            fresh = true;
        }
        let blanks = if fresh { column.saturating_sub(at) } else { 1 };
        text.extend(std::iter::repeat_n(' ', blanks));
        text.push_str(word);
        at += blanks + length;
        fresh = false;
    }
    text.push('\n');
}
