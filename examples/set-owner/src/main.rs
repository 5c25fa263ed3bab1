//! A small KRM function: sets the annotation `example.com/owner` on every
//! resource to the `owner` of its configuration.
//!
//! A KRM function reads one ResourceList on standard input, changes its items
//! and writes it to standard output. What it wants to tell goes under
//! `results`; what it did goes to standard error; a code other than 0 says
//! that it failed.

use std::{
    io::{self, Read, Write},
    process::ExitCode,
};

use serde_json::{Map, Value, json};

const ANNOTATION: &str = "example.com/owner";

fn main() -> io::Result<ExitCode> {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input)?;
    let mut list: Value = serde_saphyr::from_str(&input).map_err(io::Error::other)?;
    let code = match owner(&list) {
        Some(owner) => {
            let changed = set_owner(&mut list, &owner);
            writeln!(io::stderr(), "set the owner of {changed} resources to {owner}")?;
            ExitCode::SUCCESS
        }
        None => {
            list["results"] = json!([{
                "severity": "error",
                "message": "functionConfig has no data.owner; name who owns these resources",
                "field": { "path": "data.owner" },
            }]);
            ExitCode::FAILURE
        }
    };
    let output = serde_saphyr::to_string(&list).map_err(io::Error::other)?;
    io::stdout().write_all(output.as_bytes())?;
    Ok(code)
}

fn owner(list: &Value) -> Option<String> {
    let owner = list.pointer("/functionConfig/data/owner")?.as_str()?;
    (!owner.is_empty()).then(|| owner.to_owned())
}

/// Sets the annotation where it is missing or different; says how often.
fn set_owner(list: &mut Value, owner: &str) -> usize {
    let items = list.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten();
    items
        .filter_map(|item| {
            annotations(item)?
                .insert(ANNOTATION.to_owned(), owner.into())
                .ne(&Some(owner.into()))
                .then_some(())
        })
        .count()
}

/// The annotations of a resource, made where there are none.
fn annotations(item: &mut Value) -> Option<&mut Map<String, Value>> {
    let metadata = item.as_object_mut()?.entry("metadata").or_insert_with(|| json!({})).as_object_mut()?;
    metadata.entry("annotations").or_insert_with(|| json!({})).as_object_mut()
}
