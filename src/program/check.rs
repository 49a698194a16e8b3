//! What must not run: a program that breaks out of its scaffold, or that is sure to fail. Every finding tells the model
//! what to write instead.
//!
//! It is manners, not safety: the kernel jail is the boundary.

use std::collections::BTreeMap;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Comprehension, ExceptHandler, Expr, ExprCall, Stmt, StmtTry};
use ruff_text_size::Ranged;

use super::edit::line_of;
use super::names::{Names, is_builtin};
use super::toolkit_call::{listed, nearest};
use super::{Finding, Known};

/// All about a program but its calls of toolkits, in the order of the lines.
pub(super) fn check_structure(source: &str, body: &[Stmt], names: &Names, known: &Known<'_>) -> Vec<Finding> {
    let mut check = Structure {
        source,
        names,
        known,
        forbidden: &known.config.forbidden_imports,
        findings: Vec::new(),
        around: Vec::new(),
        imports_may_fail: false,
    };
    check.visit_body(body);
    let mut findings = check.findings;
    findings.extend(rebound(source, names, known));
    findings.extend(unknown_toolkits(source, names, known));
    findings
}

/// Names that nothing defines. They may stand where the program never comes, so they are told, not refused.
pub(super) fn undefined_names(source: &str, names: &Names, known: &Known<'_>) -> Vec<Finding> {
    if names.dynamic {
        return Vec::new();
    }
    let carried = known.carried.iter().map(|variable| variable.name.as_str());
    let candidates: Vec<&str> = carried.chain(names.anywhere.iter().map(String::as_str)).collect();
    names
        .read
        .iter()
        .filter(|(name, _)| !known.knows(name) && !names.anywhere.contains(name.as_str()) && !is_builtin(name))
        .filter_map(|(name, places)| {
            let near = || nearest(name, candidates.iter().copied()).first().copied();
            let message = match known.not_kept.get(name) {
                Some(reason) => format!("`{name}` was not kept: {reason}"),
                None => match near() {
                    Some(near) => format!("nothing defines `{name}`; did you mean `{near}`"),
                    None => format!("nothing defines `{name}`"),
                },
            };
            Some(Finding { line: line_of(source, places.first()?), message })
        })
        .collect()
}

fn rebound(source: &str, names: &Names, known: &Known<'_>) -> Vec<Finding> {
    let of_toolkits = names.bound.iter().filter(|binding| known.toolkit(&binding.name).is_some());
    of_toolkits
        .map(|binding| Finding {
            line: line_of(source, binding.range),
            message: format!(
                "`{0}` is a toolkit that is already there: do not assign, define, import or delete it, call `await {0}.…(…)`",
                binding.name
            ),
        })
        .collect()
}

fn unknown_toolkits(source: &str, names: &Names, known: &Known<'_>) -> Vec<Finding> {
    let unknown = names
        .read
        .iter()
        .filter(|(name, _)| !known.knows(name) && !names.redefines(name) && !is_builtin(name))
        .filter(|(name, _)| name.ends_with("_toolkit") || known.toolkit(&format!("{name}_toolkit")).is_some());
    unknown
        .filter_map(|(name, places)| {
            let there: Vec<&str> = known.declarations.iter().map(|toolkit| toolkit.name.as_str()).collect();
            // The ending that all share says nothing of likeness.
            let stem = |name: &'_ str| name.trim_end_matches("_toolkit").to_owned();
            let stems: Vec<String> = there.iter().map(|name| stem(name)).collect();
            let near = nearest(&stem(name), stems.iter().map(String::as_str)).first().copied();
            let near = there.iter().find(|name| near.is_some_and(|near| stem(name) == near));
            let all = listed(name, &there, "");
            let hint = match near {
                Some(near) => format!("did you mean `{near}`? There are: {all}"),
                None => format!("there are: {all}"),
            };
            let line = line_of(source, places.first()?);
            Some(Finding { line, message: format!("there is no toolkit `{name}`; {hint}") })
        })
        .collect()
}

/// What stands around a statement or an expression.
#[derive(Clone, Copy, PartialEq)]
enum Around {
    Function,
    AsyncFunction,
    Class,
    Loop,
}

struct Structure<'a> {
    source: &'a str,
    names: &'a Names,
    known: &'a Known<'a>,
    forbidden: &'a BTreeMap<String, String>,
    findings: Vec<Finding>,
    around: Vec<Around>,
    /// True where the program says what it does without a module.
    imports_may_fail: bool,
}

impl Structure<'_> {
    fn find(&mut self, node: impl Ranged, message: impl Into<String>) {
        self.findings.push(Finding { line: line_of(self.source, node), message: message.into() });
    }

    fn within(&mut self, around: Around, visit: impl FnOnce(&mut Self)) {
        self.around.push(around);
        visit(self);
        self.around.pop();
    }

    /// The function, class or lambda that the place belongs to.
    fn scope(&self) -> Option<Around> {
        self.around.iter().rev().copied().find(|around| *around != Around::Loop)
    }

    fn is_in_function(&self) -> bool {
        matches!(self.scope(), Some(Around::Function | Around::AsyncFunction))
    }

    fn imports(&mut self, node: impl Ranged, module: &str) {
        if self.imports_may_fail {
            return;
        }
        let mut name = module;
        loop {
            if let Some(hint) = self.forbidden.get(name) {
                self.find(node, format!("`{module}` does not work here: {hint}"));
                return;
            }
            let Some((parent, _)) = name.rsplit_once('.') else { return };
            name = parent;
        }
    }

    /// `async for` stands there.
    fn waits_for_items(&mut self, node: impl Ranged) {
        if matches!(self.scope(), Some(Around::Function | Around::Class)) {
            self.find(node, "`async for` stands in a function that is not async: write `async def`");
        }
    }

    fn call(&mut self, call: &ExprCall) {
        let Expr::Name(name) = &*call.func else { return };
        if self.names.redefines(&name.id) || self.known.knows(&name.id) {
            return;
        }
        if name.id == "input" {
            self.find(call, "`input()` has nobody to ask: use `answer = await system_toolkit.ask_user(\"…\")`");
        } else if matches!(name.id.as_str(), "breakpoint" | "help") {
            self.find(call, format!("`{}()` has nobody to talk to: print what you want to see", name.id));
        }
    }
}

impl<'a> Visitor<'a> for Structure<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => {
                for decorator in &function.decorator_list {
                    self.visit_decorator(decorator);
                }
                self.visit_parameters(&function.parameters);
                let around = if function.is_async { Around::AsyncFunction } else { Around::Function };
                self.within(around, |check| check.visit_body(&function.body));
            }
            Stmt::ClassDef(class) => self.within(Around::Class, |check| check.visit_body(&class.body)),
            Stmt::For(each) => {
                if each.is_async {
                    self.waits_for_items(each);
                }
                self.visit_expr(&each.iter);
                self.within(Around::Loop, |check| check.visit_body(&each.body));
                self.visit_body(&each.orelse);
            }
            Stmt::While(each) => {
                self.visit_expr(&each.test);
                self.within(Around::Loop, |check| check.visit_body(&each.body));
                self.visit_body(&each.orelse);
            }
            Stmt::Return(answer) => {
                if !self.is_in_function() {
                    self.find(
                        answer,
                        "`return` stands outside a function: use `if … else …`, the program ends by itself",
                    );
                }
                visitor::walk_stmt(self, statement);
            }
            Stmt::Break(_) | Stmt::Continue(_) if self.around.last() != Some(&Around::Loop) => {
                self.find(statement, "`break` and `continue` need a loop around them");
            }
            Stmt::Import(import) => {
                for alias in &import.names {
                    self.imports(alias, &alias.name);
                }
            }
            Stmt::ImportFrom(import) => {
                let module = import.module.as_ref().map(|module| module.as_str()).unwrap_or_default();
                // `from urllib import request` is the module, too.
                let inner = import.names.iter().map(|alias| format!("{module}.{}", alias.name));
                match inner.into_iter().find(|inner| self.forbidden.contains_key(inner)) {
                    Some(inner) => self.imports(import, &inner),
                    None => self.imports(import, module),
                }
            }
            Stmt::Try(attempt) => {
                let outer = self.imports_may_fail;
                self.imports_may_fail |= catches(attempt, &["ImportError", "ModuleNotFoundError", "Exception"]);
                self.visit_body(&attempt.body);
                self.imports_may_fail = outer;
                let is_bare = |handler: &ExceptHandler| {
                    let ExceptHandler::ExceptHandler(handler) = handler;
                    handler.type_.is_none()
                };
                if let Some((_, earlier)) = attempt.handlers.split_last()
                    && let Some(bare) = earlier.iter().find(|handler| is_bare(handler))
                {
                    self.find(bare, "an `except:` that catches all must be the last one");
                }
                attempt.handlers.iter().for_each(|handler| self.visit_except_handler(handler));
                self.visit_body(&attempt.orelse);
                self.visit_body(&attempt.finalbody);
            }
            _ => visitor::walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Lambda(lambda) => {
                self.within(Around::Function, |check| check.visit_expr(&lambda.body));
                return;
            }
            Expr::Await(awaited) if matches!(self.scope(), Some(Around::Function | Around::Class)) => {
                self.find(
                    awaited,
                    "`await` stands in a function that is not async: write `async def`, and await its calls",
                );
            }
            Expr::Yield(_) | Expr::YieldFrom(_) if !self.is_in_function() => {
                self.find(expression, "`yield` stands outside a function");
            }
            Expr::Call(call) => self.call(call),
            // What a generator gives is made later, so it may wait wherever it stands.
            Expr::Generator(each) => {
                let Some((first, others)) = each.generators.split_first() else { return };
                self.visit_expr(&first.iter);
                self.within(Around::AsyncFunction, |check| {
                    first.ifs.iter().for_each(|condition| check.visit_expr(condition));
                    others.iter().for_each(|other| check.visit_comprehension(other));
                    check.visit_expr(&each.elt);
                });
                return;
            }
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }

    fn visit_comprehension(&mut self, comprehension: &'a Comprehension) {
        if comprehension.is_async {
            self.waits_for_items(comprehension);
        }
        visitor::walk_comprehension(self, comprehension);
    }
}

/// True if an exception of one of these names, or any, is caught.
pub(super) fn catches(attempt: &StmtTry, names: &[&str]) -> bool {
    fn names_one(kind: &Expr, names: &[&str]) -> bool {
        match kind {
            Expr::Name(name) => names.contains(&name.id.as_str()),
            Expr::Attribute(attribute) => names.contains(&attribute.attr.as_str()),
            Expr::Tuple(kinds) => kinds.elts.iter().any(|kind| names_one(kind, names)),
            _ => false,
        }
    }
    attempt.handlers.iter().any(|handler| {
        let ExceptHandler::ExceptHandler(handler) = handler;
        handler.type_.as_ref().is_none_or(|kind| names_one(kind, names))
    })
}
