//! Runs a program.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::thread;

use krm::Value;
use starlark::PrintHandler;
use starlark::codemap::FileSpan;
use starlark::environment::{GlobalsBuilder, LibraryExtension, Module};
use starlark::eval::Evaluator;
use starlark::syntax::{AstModule, Dialect};
use starlark::values::dict::{AllocDict, DictRef};
use starlark::values::list::{AllocList, ListRef};
use starlark::values::structs::AllocStruct;
use starlark::values::tuple::TupleRef;
use starlark::values::{Heap, Value as StarlarkValue};

use crate::Failure;
use crate::configuration::Program;
use crate::convert::{Writer, to_starlark};
use crate::items::Item;
use crate::modules::Modules;
use crate::nesting::{MAXIMUM_NESTING, too_deep};
use crate::while_loops::{Rewritten, rewrite};

/// What the program's own values may take.
const MAXIMUM_HEAP: usize = 512 << 20;

/// How deep functions may call each other, and the stack that is enough for it.
const MAXIMUM_CALLS: usize = 10_000;
const STACK: usize = 512 << 20;

/// As much of an error as anybody reads, in bytes.
const MAXIMUM_MESSAGE: usize = 8 << 10;

/// As many of the first and of the last calls as are shown of those that led to an error.
const SHOWN_CALLS: usize = 10;

/// What a program can see, and whom it can tell.
pub(crate) struct Surroundings<'s> {
    pub(crate) config: &'s Value,
    pub(crate) items: &'s [Value],
    pub(crate) environment: &'s [(String, String)],
    pub(crate) print: &'s (dyn Fn(&str) + Sync),
}

struct Printer<'s>(&'s (dyn Fn(&str) + Sync));

impl PrintHandler for Printer<'_> {
    fn println(&self, text: &str) -> starlark::Result<()> {
        (self.0)(text);
        Ok(())
    }
}

/// Runs a program, and gives the resources that it left behind.
pub(crate) fn evaluate(program: &Program, surroundings: &Surroundings<'_>) -> Result<Vec<Item>, Failure> {
    // Parsing and evaluating are recursive.
    let outcome = thread::scope(|scope| {
        let evaluation = || evaluate_here(program, surroundings);
        let thread = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, evaluation);
        thread.map(thread::ScopedJoinHandle::join)
    });
    match outcome {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(panic)) => Err(Failure::from(fault(panic.as_ref()))),
        Err(error) => Err(Failure::from(format!("cannot start a thread for the program: {error}"))),
    }
}

/// What to say of a panic of the interpreter.
fn fault(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    match text {
        // Said by the allocator of the program's values.
        "out of memory" => "the program needs more memory than it may have".to_owned(),
        // Said where a single value would take more than 4 GiB.
        text if text.contains("must not exceed u32::MAX") => {
            "the program needs more memory than it may have, for one value alone".to_owned()
        }
        other => format!("the interpreter failed: {other}"),
    }
}

fn evaluate_here(program: &Program, surroundings: &Surroundings<'_>) -> Result<Vec<Item>, Failure> {
    if let Some((line, column)) = too_deep(&program.source) {
        let name = &program.name;
        return Err(Failure::from(format!(
            "{name}:{line}:{column}: expressions are nested more than {MAXIMUM_NESTING} levels deep"
        )));
    }
    let rewritten = rewrite(&program.source);
    let failure = |error: &starlark::Error| describe(error, &program.name, &rewritten);
    let dialect =
        Dialect { enable_keyword_only_arguments: true, enable_top_level_stmt: true, ..Dialect::Standard };
    let ast = AstModule::parse(&program.name, rewritten.source.clone(), &dialect)
        .map_err(|error| failure(&error))?;
    let extensions = [LibraryExtension::Print, LibraryExtension::SetType];
    let globals = GlobalsBuilder::extended_by(&extensions).build();
    Module::with_temp_heap(|module| {
        set_context(&module, surroundings);
        let printer = Printer(surroundings.print);
        {
            let mut evaluator = Evaluator::new(&module);
            evaluator.set_loader(&Modules);
            evaluator.set_print_handler(&printer);
            // Its recursion is as deep as the program's values are, and programs are short.
            evaluator.disable_gc();
            let limits = evaluator
                .set_max_callstack_size(MAXIMUM_CALLS)
                .and_then(|()| evaluator.set_max_heap_size(MAXIMUM_HEAP));
            limits.map_err(|error| Failure::from(error.to_string()))?;
            evaluator.eval_module(ast, &globals).map_err(|error| failure(&error))?;
        }
        left_behind(&module, surroundings.items).map_err(Failure::from)
    })
}

/// Gives the program its `ctx`, and keeps what is in it where the program cannot replace it.
fn set_context(module: &Module<'_>, surroundings: &Surroundings<'_>) {
    let heap = module.heap();
    let items: Vec<StarlarkValue<'_>> =
        surroundings.items.iter().map(|item| to_starlark(item, heap)).collect();
    let originals = heap.alloc(AllocList(items.iter().copied()));
    let resource_list = heap.alloc(AllocDict([
        ("apiVersion", heap.alloc("config.kubernetes.io/v1")),
        ("kind", heap.alloc("ResourceList")),
        ("items", heap.alloc(AllocList(items))),
        ("functionConfig", to_starlark(surroundings.config, heap)),
    ]));
    let environment = environment(surroundings.environment, heap);
    let context = AllocStruct([("resource_list", resource_list), ("environment", environment)]);
    module.set("ctx", heap.alloc(context));
    module.set_extra_value(heap.alloc((resource_list, originals)));
}

fn environment<'v>(variables: &[(String, String)], heap: Heap<'v>) -> StarlarkValue<'v> {
    // Of a variable that is there twice, the last counts; a dict cannot be made of both.
    let variables: BTreeMap<&str, &str> = variables.iter().map(|(name, value)| (&**name, &**value)).collect();
    heap.alloc(AllocDict(variables))
}

/// The resources that the program left behind.
fn left_behind(module: &Module<'_>, before: &[Value]) -> Result<Vec<Item>, String> {
    let kept = module.extra_value().and_then(TupleRef::from_value).ok_or("the resources are gone")?;
    let [resource_list, originals] = kept.content() else { return Err("the resources are gone".to_owned()) };
    let items = DictRef::from_value(*resource_list).and_then(|list| list.get_str("items"));
    let Some(items) = items.filter(|items| !items.is_none()) else { return Ok(Vec::new()) };
    let originals = ListRef::from_value(*originals).map(ListRef::content).unwrap_or_default();
    let entries = ListRef::from_value(items)
        .map(ListRef::content)
        .or_else(|| TupleRef::from_value(items).map(TupleRef::content))
        .ok_or_else(|| {
            format!("ctx.resource_list[\"items\"] must be a list, but is of type {}", items.get_type())
        })?;
    let origins: HashMap<_, usize> =
        originals.iter().enumerate().map(|(at, item)| (item.identity(), at)).collect();
    let mut writer = Writer::new();
    let mut left = Vec::with_capacity(entries.len());
    for (at, entry) in entries.iter().enumerate() {
        if DictRef::from_value(*entry).is_none() {
            let found = entry.get_type();
            return Err(format!("ctx.resource_list[\"items\"][{at}] must be a dict, but is of type {found}"));
        }
        let origin = origins.get(&entry.identity()).copied();
        let old = origin.and_then(|origin| before.get(origin));
        let value = writer.write(*entry, old).map_err(|refusal| {
            refusal.within(format!("[{at}]")).within("ctx.resource_list[\"items\"]").to_string()
        })?;
        left.push(Item { origin, value });
    }
    Ok(left)
}

/// An error with its place in the program.
fn describe(error: &starlark::Error, name: &str, rewritten: &Rewritten) -> Failure {
    let mut text = error.without_diagnostic().to_string();
    if text.len() > MAXIMUM_MESSAGE {
        text.truncate(text.floor_char_boundary(MAXIMUM_MESSAGE));
        text.push_str("...");
    }
    let text = text.trim_end();
    let message = match error.span() {
        Some(span) if span.filename() == name => {
            let begin = span.resolve_span().begin;
            format!("{name}:{}:{}: {text}", rewritten.line(begin.line), begin.column + 1)
        }
        _ => text.to_owned(),
    };
    Failure { message, trace: trace(error, name, rewritten) }
}

/// The calls that led to an error, the outermost first.
fn trace(error: &starlark::Error, name: &str, rewritten: &Rewritten) -> String {
    let place = |span: &FileSpan| {
        let begin = span.resolve_span().begin;
        let line = if span.filename() == name { rewritten.line(begin.line) } else { begin.line + 1 };
        format!("{}:{line}:{}", span.filename(), begin.column + 1)
    };
    let mut lines: Vec<String> = Vec::new();
    let mut function = "<toplevel>";
    let mut last = String::new();
    for frame in &error.call_stack().frames {
        if let Some(location) = &frame.location {
            last = place(location);
            lines.push(format!("  {last}: in {function}\n"));
        }
        function = &frame.name;
    }
    // Where it happened, unless that is the call of a function that is not the program's own.
    lines.extend(
        error
            .span()
            .map(place)
            .filter(|place| *place != last)
            .map(|place| format!("  {place}: in {function}\n")),
    );
    if error.call_stack().is_empty() {
        return String::new();
    }
    if lines.len() > 2 * SHOWN_CALLS {
        let left_out = lines.len() - 2 * SHOWN_CALLS;
        lines.splice(SHOWN_CALLS..SHOWN_CALLS + left_out, [format!("  ... {left_out} more calls ...\n")]);
    }
    format!("Traceback (most recent call last):\n{}", lines.concat())
}
