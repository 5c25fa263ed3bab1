//! What a program can `load()`: the modules of the catalog's function.

#![expect(clippy::unnecessary_wraps, reason = "functions of a Starlark module must return a result")]

mod csv;
mod encodings;
mod expressions;
mod gamma;
mod json;
mod json_decode;
mod krmfn;
mod math;
mod unavailable;

use starlark::environment::{FrozenModule, GlobalsBuilder};
use starlark::eval::FileLoader;

use crate::language::problem;

/// Gives programs their modules.
#[derive(Debug)]
pub(crate) struct Modules;

/// Puts what a module has into it.
type Fill = fn(&mut GlobalsBuilder);

/// What each module has in it.
const MODULES: &[(&str, Fill)] = &[
    ("bsoup.star", unavailable::bsoup),
    ("encoding/base64.star", encodings::base64),
    ("encoding/csv.star", csv::csv),
    ("encoding/json.star", json::json),
    ("encoding/yaml.star", encodings::yaml),
    ("geo.star", unavailable::geo),
    ("hash.star", encodings::hash),
    ("html.star", unavailable::html),
    ("http.star", unavailable::http),
    ("krmfn.star", krmfn::krmfn),
    ("math.star", math::math),
    ("time.star", unavailable::time),
    ("xlsx.star", unavailable::xlsx),
    ("zipfile.star", unavailable::zipfile),
];

impl FileLoader for Modules {
    fn load(&self, path: &str) -> starlark::Result<FrozenModule> {
        if path == expressions::NAME {
            return expressions::module();
        }
        let Some((_, fill)) = MODULES.iter().find(|(name, _)| *name == path) else {
            let mut names: Vec<&str> = MODULES.iter().map(|(name, _)| *name).collect();
            names.push(expressions::NAME);
            names.sort_unstable();
            return Err(problem(format!("there is no module {path}; there are {}", names.join(", "))));
        };
        let globals = GlobalsBuilder::new().with(*fill).build();
        FrozenModule::from_globals(&globals)
            .map_err(|error| problem(format!("cannot load {path}: {error:?}")))
    }
}
