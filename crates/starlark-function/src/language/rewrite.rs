//! Lets a program call our functions where the interpreter would do something else.
//!
//! `a[b]` becomes `__index__(a, b)`, `a[b:c]` becomes `__slice__(a, b, c, None)` and `a.find(b)` becomes
//! `__call__(a, "find", b)`; `a % b` becomes `__percent__(a, b)` once it is parsed.

use std::collections::HashMap;

use starlark::codemap::Span;
use starlark::syntax::ast::{AssignOp, AssignTargetP, AstExpr, AstStmt, ExprP, StmtP};
use starlark::syntax::{AstModule, Dialect};

use super::strings::METHODS;
use super::tokens::Tokens;

/// A program in which our functions are called.
#[derive(Debug)]
pub(crate) struct Rewritten {
    pub(crate) module: AstModule,
    /// What was put in the place of what, in order.
    edits: Vec<Edit>,
}

/// Puts a text in the place of some bytes.
#[derive(Debug)]
struct Edit {
    start: usize,
    end: usize,
    text: String,
}

impl Rewritten {
    /// Where something that is here now was before.
    pub(crate) fn origin(&self, at: usize) -> usize {
        let (mut old, mut new) = (0, 0);
        for edit in &self.edits {
            let unchanged = edit.start - old;
            if at < new + unchanged {
                break;
            }
            new += unchanged + edit.text.len();
            old = edit.end;
            if at < new {
                return edit.start;
            }
        }
        old + at.saturating_sub(new)
    }
}

/// Parses a program, rewrites it and parses it again.
pub(crate) fn rewrite(name: &str, program: &str, dialect: &Dialect) -> starlark::Result<Rewritten> {
    let parsed = AstModule::parse(name, program.to_owned(), dialect)?;
    let mut rewriter = Rewriter { program, tokens: Tokens::of(program), edits: Vec::new() };
    rewriter.statement(parsed.statement());
    parsed.statement().visit_expr(|expression| rewriter.expression(expression));
    let mut edits = rewriter.edits;
    // What begins at one place keeps its order: the outer one first.
    edits.sort_by_key(|edit| (edit.start, edit.end));
    let mut source =
        String::with_capacity(program.len() + edits.iter().map(|edit| edit.text.len()).sum::<usize>());
    let mut at = 0;
    for edit in &edits {
        source.push_str(program.get(at..edit.start).unwrap_or_default());
        source.push_str(&edit.text);
        at = edit.end;
    }
    source.push_str(program.get(at..).unwrap_or_default());
    let mut module = AstModule::parse(name, source, dialect)?;
    module.replace_binary_operators(&HashMap::from([("%".to_owned(), "__percent__".to_owned())]));
    Ok(Rewritten { module, edits })
}

struct Rewriter<'p> {
    program: &'p str,
    tokens: Tokens<'p>,
    edits: Vec<Edit>,
}

impl Rewriter<'_> {
    fn put(&mut self, start: usize, end: usize, text: impl Into<String>) {
        self.edits.push(Edit { start, end, text: text.into() });
    }

    /// The first byte behind this place that is this one.
    fn find(&self, from: usize, byte: u8) -> Option<usize> {
        memchr::memchr(byte, self.program.as_bytes().get(from..)?).map(|at| from + at)
    }

    fn statement(&mut self, statement: &AstStmt) {
        if let StmtP::AssignModify(target, AssignOp::Percent, value) = &statement.node
            && let AssignTargetP::Identifier(name) = &target.node
            && let Some(operator) = self.find(end(target.span), b'%')
        {
            self.put(operator, operator + 2, format!("= {} % (", name.node.ident));
            // Behind all brackets that the value is in.
            let last = end(statement.span).max(end(value.span));
            self.put(last, last, ")");
        }
        statement.visit_stmt(|inner| self.statement(inner));
    }

    fn expression(&mut self, expression: &AstExpr) {
        let _ = self.replace(expression);
        expression.visit_expr(|child| self.expression(child));
    }

    /// Rewrites an expression, if it is one of those, but not what is in it.
    fn replace(&mut self, expression: &AstExpr) -> Option<()> {
        let function = match &expression.node {
            ExprP::Index(_) => "__index__(",
            ExprP::Slice(..) => "__slice__(",
            ExprP::Call(function, _) => match &function.node {
                ExprP::Dot(_, name) if METHODS.contains(&&*name.node) => "__call__(",
                _ => return None,
            },
            _ => return None,
        };
        let (open, close) = self.tokens.brackets(end(expression.span).checked_sub(1)?)?;
        let bracket = *self.tokens.get(open)?;
        let last = *self.tokens.get(close)?;
        match &expression.node {
            ExprP::Call(_, arguments) => {
                // The dot and the name are before the bracket.
                let name = self.tokens.get(open.checked_sub(1)?)?;
                let dot = *self.tokens.get(open.checked_sub(2)?)?;
                let first = self.tokens.start_of_value(open.checked_sub(3)?)?;
                let name_end = name.end;
                let text = format!(", \"{}\"", self.tokens.text(open - 1));
                self.put(first, first, function);
                self.put(dot.start, name_end, text);
                self.put(bracket.start, bracket.end, if arguments.args.is_empty() { "" } else { ", " });
            }
            ExprP::Index(_) => {
                let first = self.tokens.start_of_value(open.checked_sub(1)?)?;
                self.put(first, first, function);
                self.put(bracket.start, bracket.end, ", ");
                self.put(last.start, last.end, ")");
            }
            _ => {
                let colons = self.tokens.within(open, close, ":")?;
                let first = self.tokens.start_of_value(open.checked_sub(1)?)?;
                self.put(first, first, function);
                let given = colons.len();
                let cuts: Vec<usize> = std::iter::once(open).chain(colons).chain([close]).collect();
                for pair in cuts.windows(2) {
                    let [cut, next] = *pair else { continue };
                    let token = *self.tokens.get(cut)?;
                    self.put(token.start, token.end, if next == cut + 1 { ", None" } else { ", " });
                }
                self.put(last.start, last.end, if given == 2 { ")" } else { ", None)" });
            }
        }
        Some(())
    }
}

fn end(span: Span) -> usize {
    span.end().get() as usize
}
