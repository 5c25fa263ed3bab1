//! Which program to run.

use functions::FunctionConfig;
use krm::{Tag, Value};

/// A program and its name.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) source: String,
}

pub(crate) fn read(config: &FunctionConfig) -> Result<Program, String> {
    if config.is_empty() {
        return Err("FunctionConfig is missing. Expect `ConfigMap` or `StarlarkRun`".to_owned());
    }
    let resource = config.resource();
    let source = if resource.is_roughly("", "v1", "ConfigMap") {
        if config.strings(&["data"]).is_none() {
            return Err("all values of `data` must be strings".to_owned());
        }
        config.at(&["data", "source"])
    } else if resource.is_roughly("fn.kpt.dev", "v1alpha1", "StarlarkRun") {
        config.at(&["source"])
    } else {
        let (group, version, kind) = (resource.group(), resource.version(), &resource.kind);
        return Err(format!(
            "`functionConfig` must be either /v1, Kind=ConfigMap or fn.kpt.dev/v1alpha1, Kind=StarlarkRun, \
             but we got: {group}/{version}, Kind={kind}"
        ));
    };
    let source = match source {
        None | Some(Value::Scalar(_, Tag::Null)) => "",
        Some(Value::Scalar(text, Tag::String)) => text,
        Some(_) => return Err("`source` must be a string".to_owned()),
    };
    if source.is_empty() {
        return Err("`source` must not be empty".to_owned());
    }
    let name = match config.name() {
        // With the letter that the catalog's function leaves out, since its messages begin with it.
        "" => "stalark-function-run",
        name => name,
    };
    Ok(Program { name: name.to_owned(), source: source.to_owned() })
}
