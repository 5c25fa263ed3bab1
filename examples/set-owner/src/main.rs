//! A small KRM function: sets the annotation `example.com/owner` on every
//! resource to the `owner` of its configuration.
//!
//! A KRM function reads one ResourceList on standard input, changes its items
//! and writes it to standard output. What it wants to tell goes under
//! `results`; what it did goes to standard error; a code other than 0 says
//! that it failed.
//!
//! `krm::Document` keeps the text: numbers, comments and layout stay as they
//! are written, and only what is set here changes.

use std::{
    error::Error,
    io::{self, Read, Write},
    process::ExitCode,
};

use krm::{Document, EditError, Value};

const ANNOTATION: &str = "example.com/owner";

fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        let _ = writeln!(io::stderr(), "set-owner: {error}");
        ExitCode::FAILURE
    })
}

fn run() -> Result<ExitCode, Box<dyn Error>> {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input)?;
    let mut list = Document::parse(&input)?;
    let code = match owner(&list) {
        Some(owner) => {
            let changed = set_owner(&mut list, &owner)?;
            writeln!(io::stderr(), "set the owner of {changed} resources to {owner}")?;
            ExitCode::SUCCESS
        }
        None => {
            report_missing_owner(&mut list)?;
            ExitCode::FAILURE
        }
    };
    io::stdout().write_all(list.to_text()?.as_bytes())?;
    Ok(code)
}

fn owner(list: &Document<'_>) -> Option<String> {
    let owner = list.at(list.root(), &["functionConfig", "data", "owner"])?;
    // A number without quotes is as good as a text.
    let owner = list.text(owner)?;
    (!owner.is_empty()).then(|| owner.into_owned())
}

/// Sets the annotation where it is missing or different; says how often.
fn set_owner(list: &mut Document<'_>, owner: &str) -> Result<usize, EditError> {
    let Some(items) = list.get(list.root(), "items") else { return Ok(0) };
    let mut changed = 0;
    for item in list.entries(items).collect::<Vec<_>>() {
        if list.string_at(item, &["metadata", "annotations", ANNOTATION]).as_deref() != Some(owner) {
            let annotations = list.ensure_path(item, &["metadata", "annotations"])?;
            list.set_field(annotations, ANNOTATION, owner)?;
            changed += 1;
        }
    }
    Ok(changed)
}

/// Adds a result, which the people who use the function see.
fn report_missing_owner(list: &mut Document<'_>) -> Result<(), EditError> {
    let message = "functionConfig has no data.owner; name who owns these resources";
    let results = match list.get(list.root(), "results") {
        Some(results) => results,
        None => list.set_field(list.root(), "results", Value::Sequence(Vec::new()))?,
    };
    let result = list.push(results, Value::strings([("severity", "error"), ("message", message)]))?;
    list.set_field(result, "field", Value::strings([("path", "data.owner")]))?;
    Ok(())
}
