//! The language as the catalog's function has it, where the interpreter has another one.
//!
//! Programs are written for go.starlark.net: texts of values, formats, strings that are bytes, the words of errors.
//! What of it is a function or an operator is replaced by one of ours; [`rewrite`] lets programs call them.

#![expect(clippy::unnecessary_wraps, reason = "functions of a Starlark module must return a result")]

mod interpolate;
mod rewrite;
mod strings;
pub(crate) mod text;
mod tokens;
mod words;

use starlark::environment::{GlobalsBuilder, LibraryExtension, Module};
use starlark::eval::Evaluator;
use starlark::starlark_module;
use starlark::syntax::{AstModule, Dialect};
use starlark::values::dict::DictRef;
use starlark::values::none::NoneType;
use starlark::values::tuple::UnpackTuple;
use starlark::values::{Heap, UnpackValue as _, Value};

pub(crate) use rewrite::rewrite;
pub(crate) use words::{in_go_words, syntax_in_go_words};

/// Something that a program did wrong.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Problem(String);

pub(crate) fn problem(text: impl Into<String>) -> starlark::Error {
    starlark::Error::new_other(Problem(text.into()))
}

/// Some values as `print()` and `fail()` write them.
fn joined<'v>(values: &[Value<'v>], separator: &str, heap: Heap<'v>) -> String {
    let texts: Vec<String> = values.iter().map(|value| text::str(*value, heap)).collect();
    texts.join(separator)
}

/// The functions of the language that the interpreter does not have, or not so.
#[starlark_module]
fn functions(builder: &mut GlobalsBuilder) {
    fn str<'v>(#[starlark(require = pos)] x: Value<'v>, heap: Heap<'v>) -> starlark::Result<String> {
        Ok(text::str(x, heap))
    }

    fn repr<'v>(#[starlark(require = pos)] x: Value<'v>, heap: Heap<'v>) -> starlark::Result<String> {
        Ok(text::repr(x, heap))
    }

    fn len<'v>(#[starlark(require = pos)] x: Value<'v>) -> starlark::Result<i32> {
        match x.unpack_str() {
            Some(text) => strings::length(text),
            None => {
                x.length().map_err(|_| problem(format!("len: value of type {} has no len", x.get_type())))
            }
        }
    }

    fn fail<'v>(
        #[starlark(args)] values: UnpackTuple<Value<'v>>,
        #[starlark(require = named, default = " ")] sep: &str,
        heap: Heap<'v>,
    ) -> starlark::Result<NoneType> {
        Err(problem(format!("fail: {}", joined(&values.items, sep, heap))))
    }

    fn ord(#[starlark(require = pos)] s: &str) -> starlark::Result<u32> {
        let mut characters = s.chars();
        match (characters.next(), characters.next()) {
            (Some(one), None) => Ok(one.into()),
            _ => {
                let count = s.chars().count();
                Err(problem(format!("ord: string encodes {count} Unicode code points, want 1")))
            }
        }
    }

    fn chr<'v>(#[starlark(require = pos)] i: Value<'v>) -> starlark::Result<String> {
        let code = i64::unpack_value(i).ok().flatten();
        let character = code.and_then(|code| u32::try_from(code).ok()).and_then(char::from_u32);
        character.map(String::from).ok_or_else(|| {
            let over = if code.is_some_and(|code| code < 0) { "<0" } else { ">0x10FFFF" };
            problem(format!("chr: Unicode code point {} out of range ({over})", i.to_repr()))
        })
    }
}

/// What [`rewrite`] puts into programs.
#[starlark_module]
fn operators(builder: &mut GlobalsBuilder) {
    fn __percent__<'v>(
        #[starlark(require = pos)] left: Value<'v>,
        #[starlark(require = pos)] right: Value<'v>,
        heap: Heap<'v>,
    ) -> starlark::Result<Value<'v>> {
        match left.unpack_str() {
            Some(format) => Ok(heap.alloc(interpolate::percent(format, right, heap)?)),
            None => left.percent(right, heap),
        }
    }

    fn __index__<'v>(
        #[starlark(require = pos)] value: Value<'v>,
        #[starlark(require = pos)] index: Value<'v>,
        heap: Heap<'v>,
    ) -> starlark::Result<Value<'v>> {
        if let Some(found) = strings::index(value, index, heap)? {
            return Ok(found);
        }
        value.at(index, heap).map_err(|error| words::of_index(value, index).unwrap_or(error))
    }

    fn __slice__<'v>(
        #[starlark(require = pos)] value: Value<'v>,
        #[starlark(require = pos)] start: Value<'v>,
        #[starlark(require = pos)] stop: Value<'v>,
        #[starlark(require = pos)] step: Value<'v>,
        heap: Heap<'v>,
    ) -> starlark::Result<Value<'v>> {
        let given = |value: Value<'v>| if value.is_none() { None } else { Some(value) };
        match strings::slice(value, start, stop, step)? {
            Some(found) => Ok(heap.alloc(found)),
            None => value.slice(given(start), given(stop), given(step), heap),
        }
    }

    /// Calls a method whose name is that of one that strings have.
    fn __call__<'v>(
        #[starlark(require = pos)] value: Value<'v>,
        #[starlark(require = pos)] name: &str,
        #[starlark(args)] arguments: UnpackTuple<Value<'v>>,
        #[starlark(kwargs)] named: DictRef<'v>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<Value<'v>> {
        let heap = eval.heap();
        let arguments = arguments.items;
        if let Some(text) = value.unpack_str() {
            if name == "format" {
                return Ok(heap.alloc(interpolate::format(text, &arguments, &named, heap)?));
            }
            if let Some(found) = strings::call(text, name, &arguments, heap)? {
                return Ok(found);
            }
        }
        let method =
            value.get_attr(name, heap)?.ok_or_else(|| words::no_attribute(value.get_type(), name))?;
        let named: Vec<(&str, Value<'v>)> =
            named.iter().filter_map(|(name, value)| Some((name.unpack_str()?, value))).collect();
        eval.eval_function(method, &arguments, &named)
    }
}

/// What [`PRELUDE`] needs.
#[starlark_module]
fn texts(builder: &mut GlobalsBuilder) {
    fn _joined<'v>(
        #[starlark(require = pos)] values: UnpackTuple<Value<'v>>,
        #[starlark(require = pos)] separator: &str,
        heap: Heap<'v>,
    ) -> starlark::Result<String> {
        Ok(joined(&values.items, separator, heap))
    }
}

/// Only the interpreter's own `print()` knows where to print.
const PRELUDE: &str = "def print(*args, sep = \" \"):\n    _print(_joined(args, sep))\n";

/// Gives a program what is written in the language itself.
pub(crate) fn add_prelude(module: &Module<'_>) -> starlark::Result<()> {
    let library = GlobalsBuilder::extended_by(&[LibraryExtension::Print]).build();
    let mut globals = GlobalsBuilder::new().with(texts);
    for (_, print) in library.iter().filter(|(name, _)| *name == "print") {
        globals.set("_print", print);
    }
    globals.frozen_heap().add_reference(library.heap());
    let ast = AstModule::parse("prelude", PRELUDE.to_owned(), &Dialect::Standard)?;
    let prelude = Module::with_temp_heap(|prelude| {
        Evaluator::new(&prelude).eval_module(ast, &globals.build())?;
        prelude.freeze().map_err(|error| problem(format!("cannot load the prelude: {error:?}")))
    })?;
    module.import_public_symbols(&prelude);
    Ok(())
}

pub(crate) fn language(builder: &mut GlobalsBuilder) {
    functions(builder);
    operators(builder);
}
