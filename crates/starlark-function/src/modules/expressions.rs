//! `re.star`: regular expressions.

use regex::Regex;
use starlark::environment::{FrozenModule, GlobalsBuilder, LibraryExtension, Module};
use starlark::eval::Evaluator;
use starlark::starlark_module;
use starlark::syntax::{AstModule, Dialect};
use starlark::values::list::AllocList;
use starlark::values::tuple::AllocTuple;
use starlark::values::{Heap, Value};

use super::problem;

pub(super) const NAME: &str = "re.star";

/// The module. A compiled expression is a struct of the same functions.
const SOURCE: &str = r#"
def _compile(pattern, flags = 0):
    _search(pattern, "")
    return struct(
        search = lambda string, flags = 0: _search(pattern, string),
        match = lambda string, flags = 0: _match(pattern, string),
        split = lambda string, maxsplit = 0, flags = 0: _split(pattern, string, maxsplit),
        findall = lambda string, flags = 0: _findall(pattern, string),
        sub = lambda repl, string, count = 0, flags = 0: _sub(pattern, repl, string),
    )

re = struct(
    compile = _compile,
    search = lambda pattern, string, flags = 0: _search(pattern, string),
    match = lambda pattern, string, flags = 0: _match(pattern, string),
    split = lambda pattern, string, maxsplit = 0, flags = 0: _split(pattern, string, maxsplit),
    findall = lambda pattern, string, flags = 0: _findall(pattern, string),
    sub = lambda pattern, repl, string, count = 0, flags = 0: _sub(pattern, repl, string),
)
"#;

fn compile(pattern: &str) -> starlark::Result<Regex> {
    // The error draws a picture over several lines, of which the last tells the cause.
    let cause = |error: regex::Error| error.to_string().lines().last().unwrap_or_default().to_owned();
    Regex::new(pattern)
        .map_err(|error| problem(format!("error parsing regexp: {}: `{pattern}`", cause(error))))
}

#[starlark_module]
fn functions(builder: &mut GlobalsBuilder) {
    /// Where the first match starts and ends.
    fn _search<'v>(pattern: &str, text: &str, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        Ok(match compile(pattern)?.find(text) {
            Some(found) => heap.alloc(AllocList([found.start(), found.end()])),
            None => Value::new_none(),
        })
    }

    /// All matches, each with its groups.
    fn _match<'v>(pattern: &str, text: &str, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        let pattern = compile(pattern)?;
        let matches = pattern.captures_iter(text).map(|groups| {
            heap.alloc(AllocTuple(groups.iter().map(|group| group.map_or("", |group| group.as_str()))))
        });
        Ok(heap.alloc(AllocList(matches)))
    }

    fn _split<'v>(pattern: &str, text: &str, most: i32, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        let pattern = compile(pattern)?;
        Ok(match usize::try_from(most) {
            Ok(most) if most > 0 => heap.alloc(AllocTuple(pattern.splitn(text, most))),
            _ => heap.alloc(AllocTuple(pattern.split(text))),
        })
    }

    fn _findall<'v>(pattern: &str, text: &str, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        let pattern = compile(pattern)?;
        Ok(heap.alloc(AllocTuple(pattern.find_iter(text).map(|found| found.as_str()))))
    }

    fn _sub(pattern: &str, replacement: &str, text: &str) -> starlark::Result<String> {
        Ok(compile(pattern)?.replace_all(text, replacement).into_owned())
    }
}

pub(super) fn module() -> starlark::Result<FrozenModule> {
    let ast = AstModule::parse(NAME, SOURCE.to_owned(), &Dialect::Standard)?;
    let globals = GlobalsBuilder::extended_by(&[LibraryExtension::StructType]).with(functions).build();
    Module::with_temp_heap(|module| {
        Evaluator::new(&module).eval_module(ast, &globals)?;
        module.freeze().map_err(|error| problem(format!("cannot load {NAME}: {error:?}")))
    })
}
