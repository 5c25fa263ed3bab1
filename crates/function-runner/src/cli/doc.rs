//! `function-runner doc`: what a built-in function does and how it is configured.

use std::process::ExitCode;

use flags::{Flags, Mistake, Mistakes};

use super::say;
use crate::builtin::{self, Builtin};

pub(super) fn main(mut flags: Flags) -> Result<ExitCode, Mistakes> {
    let found = match flags.arguments() {
        [name] => {
            let name = name.to_string_lossy();
            builtin::find(&name).ok_or_else(|| format!("{:?} is no built-in function", shortened(&name)))
        }
        [] => Err("name the function to show".to_owned()),
        [_, second, ..] => {
            let second = second.to_string_lossy();
            Err(format!("one function is shown at a time; what is {:?}?", shortened(&second)))
        }
    };
    let text = match found {
        Ok(function) => page(function),
        Err(problem) => {
            let names: Vec<_> = builtin::all().iter().map(Builtin::name).collect();
            flags.add(Mistake::Other(format!("{problem}; there are: {}", names.join(", "))));
            String::new()
        }
    };
    flags.finish(text).map(|text| say(&text))
}

/// As much of a word as is worth repeating.
fn shortened(word: &str) -> String {
    word.chars().take(100).collect()
}

fn page(function: Builtin) -> String {
    let (name, summary) = (function.name(), function.summary());
    let (usage, example) = (function.usage().trim_end(), function.example().trim_end());
    let example: Vec<_> = example.lines().map(|line| format!("  {line}").trim_end().to_owned()).collect();
    format!("{name}: {summary}\n\n{usage}\n\nAn example of a functionConfig:\n\n{}", example.join("\n"))
}
