//! Which variables a program starts with, and in which order. Pure; it reads Python only to see what a definition needs
//! while it is being defined.
//!
//! The order: imports; then definitions, older first, each after what it needs to be defined (its decorators, defaults,
//! annotations, bases and the statements of a class body, and all that those reach when they are called); then values, each after the
//! classes it has instances of. What a function only names in its body may come later: it is looked up when called.
//! In a circle the older definition comes first.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::visitor::{Visitor, walk_decorator, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, Stmt};

use crate::interpreter::Carried;
use crate::record::{Variable, VariableKind, WrittenVariable};

/// A definition longer than this, in bytes, is not parsed: all it refers to comes ahead of it.
const PARSE_LIMIT: usize = 256 * 1024;

/// Expressions nested deeper than this are not looked into.
const DEPTH_LIMIT: usize = 200;

/// The names that a variable cannot do without, of those that the session has.
pub fn reached(written: &WrittenVariable, variables: &BTreeMap<String, Variable>) -> BTreeSet<String> {
    let variable = &written.variable;
    let mut names: BTreeSet<String> =
        variable.references.iter().filter(|name| variables.contains_key(*name)).cloned().collect();
    if variable.kind == VariableKind::Value {
        let classes = variables.values().filter(|variable| is_class(variable));
        names.extend(classes.filter(|class| mentions(&written.content, &class.name)).map(|class| class.name.clone()));
    }
    names.remove(&variable.name);
    names
}

/// Variables in an order in which they can be restored, see the module.
pub fn in_order(found: BTreeMap<String, (WrittenVariable, BTreeSet<String>)>) -> Vec<Carried> {
    let of_kind = |kind: VariableKind| {
        let of_kind =
            found.values().map(|(written, _)| &written.variable).filter(move |variable| variable.kind == kind);
        let mut variables: Vec<&Variable> = of_kind.collect();
        variables.sort_by_key(|variable| (variable.round, variable.line, &variable.name));
        variables.into_iter().map(|variable| variable.name.as_str())
    };
    let mut order = Order { found: &found, readied: BTreeSet::new(), placed: BTreeSet::new(), names: Vec::new() };
    for kind in [VariableKind::Import, VariableKind::Definition, VariableKind::Value] {
        for name in of_kind(kind) {
            order.place(name);
        }
    }
    let names: Vec<String> = order.names.into_iter().map(str::to_owned).collect();
    let mut found = found;
    names
        .into_iter()
        .filter_map(|name| found.remove(&name))
        .map(|(WrittenVariable { variable, content }, _)| Carried { name: variable.name, kind: variable.kind, content })
        .collect()
}

struct Order<'found> {
    found: &'found BTreeMap<String, (WrittenVariable, BTreeSet<String>)>,
    readied: BTreeSet<&'found str>,
    placed: BTreeSet<&'found str>,
    names: Vec<&'found str>,
}

/// What is left to do; a stack of its own, because the model decides how long a chain of definitions is.
enum Step<'found> {
    /// Put it there, after what it needs.
    Place(&'found str),
    /// What it needs is there: it is next.
    Put(&'found str),
    /// Put it there and all that it reaches, because it will be called.
    Ready(&'found str),
    /// Put there what it reaches.
    Reach(&'found str),
}

impl<'found> Order<'found> {
    fn place(&mut self, name: &'found str) {
        let mut steps = vec![Step::Place(name)];
        while let Some(step) = steps.pop() {
            match step {
                Step::Place(name) => {
                    if let Some((written, reached)) = self.found.get(name)
                        && self.placed.insert(name)
                    {
                        steps.push(Step::Put(name));
                        let needed = needed(written);
                        let needs = |name: &&String| needed.as_ref().is_none_or(|needed| needed.contains(*name));
                        steps.extend(reached.iter().rev().filter(needs).map(|name| Step::Ready(name)));
                    }
                }
                Step::Put(name) => self.names.push(name),
                Step::Ready(name) => {
                    if self.readied.insert(name) {
                        steps.extend([Step::Reach(name), Step::Place(name)]);
                    }
                }
                Step::Reach(name) => {
                    let reached = self.found.get(name).into_iter().flat_map(|(_, reached)| reached.iter().rev());
                    steps.extend(reached.map(|name| Step::Ready(name)));
                }
            }
        }
    }
}

/// The names that must be there when a variable is restored; `None` for all that it refers to.
fn needed(written: &WrittenVariable) -> Option<BTreeSet<String>> {
    if written.variable.kind != VariableKind::Definition || written.content.len() > PARSE_LIMIT {
        return None;
    }
    let parsed = ruff_python_parser::parse_module(&written.content).ok()?;
    let mut names = Needed { names: BTreeSet::new(), depth: 0 };
    names.visit_body(parsed.suite());
    Some(names.names)
}

/// Collects the names that are read while definitions are made, not when they are called.
struct Needed {
    names: BTreeSet<String>,
    depth: usize,
}

impl<'ast> Visitor<'ast> for Needed {
    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        match statement {
            Stmt::FunctionDef(function) => {
                function.decorator_list.iter().for_each(|decorator| walk_decorator(self, decorator));
                self.visit_parameters(&function.parameters);
                function.returns.iter().for_each(|annotation| self.visit_annotation(annotation));
            }
            statement => walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        if self.depth == DEPTH_LIMIT {
            return;
        }
        self.depth += 1;
        match expression {
            Expr::Name(name) => {
                self.names.insert(name.id.to_string());
            }
            Expr::Lambda(lambda) => {
                lambda.parameters.iter().for_each(|parameters| self.visit_parameters(parameters));
            }
            expression => walk_expr(self, expression),
        }
        self.depth -= 1;
    }
}

fn is_class(variable: &Variable) -> bool {
    let preview = variable.preview.trim_start();
    variable.kind == VariableKind::Definition && (preview.starts_with("class ") || preview.starts_with('@'))
}

/// Whether a name stands in a text as a word. A value that merely quotes a class's name brings the class along, which
/// costs its definition and nothing else.
fn mentions(content: &str, name: &str) -> bool {
    let is_part = |letter: char| letter == '_' || letter.is_alphanumeric();
    content
        .match_indices(name)
        .any(|(at, _)| !content[..at].ends_with(is_part) && !content[at + name.len()..].starts_with(is_part))
}
