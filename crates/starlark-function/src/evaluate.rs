//! Runs a program.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::thread;

use krm::Value;
use starlark::environment::{GlobalsBuilder, LibraryExtension, Module};
use starlark::eval::Evaluator;
use starlark::syntax::Dialect;
use starlark::values::dict::{AllocDict, DictRef};
use starlark::values::list::{AllocList, ListRef};
use starlark::values::structs::AllocStruct;
use starlark::values::tuple::TupleRef;
use starlark::values::{Heap, Value as StarlarkValue};
use starlark::{ErrorKind, PrintHandler};

use crate::configuration::Program;
use crate::convert::{Writer, to_starlark};
use crate::items::Item;
use crate::language::{in_go_words, syntax_in_go_words};
use crate::modules::Modules;
use crate::nesting::{MAXIMUM_NESTING, too_deep};
use crate::{language, while_loops};

/// What the program's own values may take.
const MAXIMUM_HEAP: usize = 512 << 20;

/// How deep functions may call each other, and the stack that is enough for it.
const MAXIMUM_CALLS: usize = 10_000;
const STACK: usize = 512 << 20;

/// As much of an error as anybody reads, in bytes.
const MAXIMUM_MESSAGE: usize = 8 << 10;

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
pub(crate) fn evaluate(program: &Program, surroundings: &Surroundings<'_>) -> Result<Vec<Item>, String> {
    // Parsing and evaluating are recursive.
    let outcome = thread::scope(|scope| {
        let evaluation = || evaluate_here(program, surroundings);
        let thread = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, evaluation);
        thread.map(thread::ScopedJoinHandle::join)
    });
    match outcome {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(panic)) => Err(fault(panic.as_ref())),
        Err(error) => Err(format!("cannot start a thread for the program: {error}")),
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

fn evaluate_here(program: &Program, surroundings: &Surroundings<'_>) -> Result<Vec<Item>, String> {
    if let Some((line, column)) = too_deep(&program.source) {
        let name = &program.name;
        return Err(format!(
            "{name}:{line}:{column}: expressions are nested more than {MAXIMUM_NESTING} levels deep"
        ));
    }
    let without_while = while_loops::rewrite(&program.source);
    let source = &*without_while.source;
    let dialect =
        Dialect { enable_keyword_only_arguments: true, enable_top_level_stmt: true, ..Dialect::Standard };
    let line = |line: usize| without_while.line(line);
    let rewritten = language::rewrite(&program.name, source, &dialect)
        .map_err(|error| syntax(&error, &program.name, source, |at| at, line))?;
    let failure = |error: &starlark::Error| match error.kind() {
        ErrorKind::Scope(_) => syntax(error, &program.name, source, |at| rewritten.origin(at), line),
        _ => in_go_words(&shortened(error)),
    };
    let globals = GlobalsBuilder::extended_by(&[LibraryExtension::SetType]).with(language::language).build();
    Module::with_temp_heap(|module| {
        language::add_prelude(&module).map_err(|error| error.to_string())?;
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
            limits.map_err(|error| error.to_string())?;
            evaluator.eval_module(rewritten.module.clone(), &globals).map_err(|error| failure(&error))?;
        }
        left_behind(&module, surroundings.items)
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

/// What is wrong with a program, with its place, in Go's words.
fn syntax(
    error: &starlark::Error,
    name: &str,
    source: &str,
    place: impl Fn(usize) -> usize,
    line: impl Fn(usize) -> usize,
) -> String {
    let said = shortened(error);
    let Some(span) = error.span() else { return said };
    let (words, is_line_break) = syntax_in_go_words(&said);
    // What is not expected is told where it ends, all else where it begins.
    let unexpected = words.starts_with("got ");
    let at = if unexpected { span.span.end() } else { span.span.begin() };
    let at = place(at.get() as usize).min(source.len());
    let before = source.get(..at).unwrap_or_default();
    let (words, at_end) = if is_line_break && place(span.span.begin().get() as usize) >= source.len() {
        (words.replacen("got newline", "got end of file", 1), true)
    } else {
        (words, false)
    };
    let breaks = before.matches('\n').count();
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let (breaks, column) =
        if is_line_break && !at_end && column > 1 { (breaks + 1, 1) } else { (breaks, column) };
    format!("{name}:{}:{column}: {words}", line(breaks))
}

/// What an error says.
fn shortened(error: &starlark::Error) -> String {
    let mut text = error.without_diagnostic().to_string();
    if text.len() > MAXIMUM_MESSAGE {
        text.truncate(text.floor_char_boundary(MAXIMUM_MESSAGE));
        text.push_str("...");
    }
    text.trim_end().to_owned()
}
