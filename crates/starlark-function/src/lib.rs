//! The function `starlark`: runs a program in the Starlark language on the resources of a `ResourceList`.
//!
//! It is a crate of its own because the interpreter brings many dependencies. And it is meant for a process
//! of its own: the interpreter makes no promise about hostile programs, so [`main`] bounds the memory of the
//! process that it runs in, and whoever starts the process bounds its time. [`run`] is the function itself.

mod configuration;
mod convert;
mod evaluate;
mod items;
mod language;
mod modules;
mod nesting;
mod process;
mod scan;
mod while_loops;

use functions::{FunctionConfig, Outcome, Report, ResourceList};
use krm::Budget;

pub use process::{main, why_it_ended};

/// Its name in the catalog.
pub const NAME: &str = "starlark";

/// What it does, in one sentence.
pub const SUMMARY: &str = "Runs a Starlark program on the resources.";

/// How it is used.
pub const USAGE: &str = "\
The functionConfig is one of
- a StarlarkRun (fn.kpt.dev/v1alpha1) with the program in source, and anything it needs to know in params,
- a ConfigMap with the program in data.source, and anything it needs to know beside it in data.

The program reads and changes ctx.resource_list[\"items\"], a list of resources as dicts: it can set and delete
fields, append resources, remove them, or assign a new list. Its own configuration is
ctx.resource_list[\"functionConfig\"]; changes to it, and results that are set, are not looked at. The variables
of its environment are in ctx.environment. What print() prints goes to stderr, and fail() ends the
function with an error. Comments and formatting of what the program does not change stay, and so do
numbers, anchors and merge keys; a program sees the fields that merge keys stand for. New fields are sorted.

The language is Starlark with sets, recursion, while loops, and for, if and while outside of functions.
Texts of values, formats, strings (which are bytes) and the words of errors are those of go.starlark.net.
load() offers encoding/json.star (json), encoding/yaml.star (yaml), encoding/base64.star (base64),
encoding/csv.star (csv), hash.star (hash), math.star (math), re.star (re) and krmfn.star (krmfn).

What is not here fails, and says so: ctx.open_api; the functions of bsoup.star, geo.star, html.star,
http.star, time.star, xlsx.star and zipfile.star, which can be loaded; a part of a character, such as
the first byte of \"\u{e9}\". Some of the rarer errors have words of their own. The last digits of what
math.star computes may differ, the keys that yaml.loads() reads are strings, and type(len) is function.

A program may use 512 MiB of memory, call functions 10,000 levels deep and nest expressions
5,000 levels deep.
";

/// A functionConfig that works.
pub const EXAMPLE: &str = "\
apiVersion: fn.kpt.dev/v1alpha1
kind: StarlarkRun
metadata:
  name: set-namespace
params:
  namespace: prod
source: |
  namespace = ctx.resource_list[\"functionConfig\"][\"params\"][\"namespace\"]
  for resource in ctx.resource_list[\"items\"]:
    resource[\"metadata\"][\"namespace\"] = namespace
";

/// Runs the program in the configuration of a `ResourceList` on its resources.
///
/// It sees the given environment, and prints by the given function, line by line. Time and memory are those
/// of the program.
pub fn run(input: &[u8], environment: &[(String, String)], print: &(dyn Fn(&str) + Sync)) -> Outcome {
    functions::run_with(input, &Budget::unlimited(), |list, config| {
        transform(list, config, environment, print)
    })
}

fn transform(
    list: &mut ResourceList<'_>,
    config: &FunctionConfig,
    environment: &[(String, String)],
    print: &(dyn Fn(&str) + Sync),
) -> Report {
    let mut report = Report::new();
    let outcome = configuration::read(config).and_then(|program| {
        let nodes = list.items();
        let before: Vec<krm::Value> = nodes.iter().map(|&item| list.value(item)).collect();
        let surroundings =
            evaluate::Surroundings { config: config.value(), items: &before, environment, print };
        let after = evaluate::evaluate(&program, &surroundings)?;
        items::write(list, &nodes, after).map_err(|error| error.to_string())
    });
    match outcome {
        Ok(()) => report,
        Err(message) => {
            report.error(message);
            report.fail()
        }
    }
}
