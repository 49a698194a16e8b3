//! Checks calls of toolkits against the declarations: the operation, the names of arguments, and literal values.
//!
//! A value that is not a literal is left to the gate, which binds and checks what really arrives.

use fimble_toolkit::{Declaration, Operation, Parameter, annotation, signature};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprAttribute, ExprCall, Stmt};
use ruff_text_size::Ranged;

use super::Finding;
use super::edit::line_of;
use super::literal_type::mismatch;
use super::suggest::corrected;
use super::toolkit_call::{Toolkits, listed, nearest};

/// Findings about every call of a toolkit in `body`.
pub(super) fn check_calls(source: &str, body: &[Stmt], toolkits: &Toolkits<'_>) -> Vec<Finding> {
    let mut calls = Calls { source, toolkits, findings: Vec::new() };
    calls.visit_body(body);
    calls.findings
}

struct Calls<'a> {
    source: &'a str,
    toolkits: &'a Toolkits<'a>,
    findings: Vec<Finding>,
}

impl Calls<'_> {
    fn find(&mut self, node: impl Ranged, message: String) {
        self.findings.push(Finding { line: line_of(self.source, node), message });
    }

    fn attribute(&mut self, attribute: &ExprAttribute) {
        let name = attribute.attr.as_str();
        if let Expr::Attribute(operation) = &*attribute.value
            && let Some(toolkit) = self.toolkits.named(&operation.value)
            && toolkit.operation(&operation.attr).is_some()
            && !name.starts_with("__")
        {
            let called = format!("{}.{}", toolkit.name, operation.attr);
            let message =
                format!("`{called}` is an operation and has no `{name}`: call it, `(await {called}(…)).{name}`");
            self.find(attribute, message);
        }
        let Some(toolkit) = self.toolkits.named(&attribute.value) else { return };
        if toolkit.operation(name).is_none() && !name.starts_with("__") {
            self.find(attribute, unknown_operation(toolkit, name));
        }
    }

    fn call(&mut self, call: &ExprCall) {
        if let Some(toolkit) = self.toolkits.named(&call.func) {
            let operations: Vec<&str> =
                Toolkits::operations(toolkit).map(|operation| operation.name.as_str()).collect();
            let message = format!(
                "`{0}` is an object, not a function: call one of its operations, `await {0}.…(…)` with {1}",
                toolkit.name,
                listed("", &operations, &told_by(toolkit))
            );
            self.find(call, message);
        }
        let Some((toolkit, name)) = self.toolkits.called(call) else { return };
        let Some(operation) = toolkit.operation(name) else { return };
        let complaints = complaints(operation, call);
        if !complaints.is_empty() {
            let hint = match corrected(self.source, toolkit, operation, call) {
                Some(text) => format!("; write `{text}`"),
                None => String::new(),
            };
            let message = format!("`{}.{name}`: {}; {}{hint}", toolkit.name, complaints.join("; "), known(operation));
            self.find(call, message);
        }
    }
}

impl<'a> Visitor<'a> for Calls<'_> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Attribute(attribute) => self.attribute(attribute),
            Expr::Call(call) => self.call(call),
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }
}

/// Who tells the operations that a message leaves out.
fn told_by(toolkit: &Declaration) -> String {
    format!(" (`await system_toolkit.describe(\"{}\")`)", toolkit.name)
}

/// Characters of why a toolkit has no operations.
const REASON: usize = 1_000;

/// The longest signature in characters that a message has; of a longer one the names are told.
const SIGNATURE: usize = 400;
/// Parameters of an operation that are told by name.
const PARAMETERS: usize = 24;

/// How an operation is called, as far as a model reads it.
fn known(operation: &Operation) -> String {
    let signature = signature(operation);
    if signature.chars().count() <= SIGNATURE {
        return format!("its signature is `{signature}`");
    }
    let (required, optional): (Vec<&Parameter>, Vec<&Parameter>) =
        operation.parameters.iter().partition(|parameter| parameter.required);
    let needed: Vec<&str> = required.iter().map(|parameter| parameter.name.as_str()).collect();
    let needed = if needed.is_empty() { String::new() } else { format!("it needs {} and ", needed.join(", ")) };
    let names = optional.iter().take(PARAMETERS).map(|parameter| parameter.name.as_str()).collect::<Vec<_>>();
    let more = match optional.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{needed}takes {}{more}", names.join(", "))
}

fn unknown_operation(toolkit: &Declaration, name: &str) -> String {
    let there: Vec<&str> = Toolkits::operations(toolkit).map(|operation| operation.name.as_str()).collect();
    if there.is_empty() {
        let why: String = toolkit.description.replace("\n\n", "; ").chars().take(REASON).collect();
        return format!("`{}` has no operations now: {why}", toolkit.name);
    }
    let near: Vec<String> = nearest(name, there.iter().copied()).into_iter().map(|near| format!("`{near}`")).collect();
    let hint = if near.is_empty() { String::new() } else { format!("; did you mean {}", near.join(" or ")) };
    format!("`{}` has no operation `{name}`{hint}; it has: {}", toolkit.name, listed(name, &there, &told_by(toolkit)))
}

/// What is wrong with the arguments of a call, one clause each.
fn complaints(operation: &Operation, call: &ExprCall) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut given: Vec<&str> = Vec::new();
    // After `*rows` nobody knows which parameter is next, after `**row` none which are missing.
    let mut is_open = false;
    for (index, argument) in call.arguments.args.iter().enumerate() {
        if argument.is_starred_expr() {
            is_open = true;
            break;
        }
        let Some(parameter) = operation.parameters.get(index) else {
            let most = operation.parameters.len();
            complaints.push(format!("takes at most {most} arguments, got {}", call.arguments.args.len()));
            break;
        };
        given.push(&parameter.name);
        complaints.extend(wrong_literal(parameter, argument));
    }
    for keyword in &call.arguments.keywords {
        let Some(name) = &keyword.arg else {
            is_open = true;
            continue;
        };
        match operation.parameters.iter().find(|parameter| parameter.name == name.as_str()) {
            Some(parameter) if given.contains(&parameter.name.as_str()) => {
                complaints.push(format!("`{name}` is given twice"));
            }
            Some(parameter) => {
                given.push(&parameter.name);
                complaints.extend(wrong_literal(parameter, &keyword.value));
            }
            None => {
                let names = operation.parameters.iter().map(|parameter| parameter.name.as_str());
                let free = names.filter(|name| !given.contains(name) && !is_named(call, name));
                let hint = match nearest(name, free).first() {
                    Some(near) => format!(", did you mean `{near}`"),
                    None => String::new(),
                };
                complaints.push(format!("it has no parameter `{name}`{hint}"));
            }
        }
    }
    let missing = operation.parameters.iter().filter(|parameter| parameter.required);
    let missing = missing.filter(|parameter| !is_open && !given.contains(&parameter.name.as_str()));
    complaints.extend(missing.map(|parameter| format!("`{}` is missing", parameter.name)));
    complaints
}

/// True if the call gives the argument by its name.
fn is_named(call: &ExprCall, name: &str) -> bool {
    call.arguments.keywords.iter().any(|keyword| keyword.arg.as_ref().is_some_and(|arg| arg.as_str() == name))
}

fn wrong_literal(parameter: &Parameter, value: &Expr) -> Option<String> {
    if value.is_none_literal_expr() && !parameter.required {
        return None;
    }
    let found = mismatch(&parameter.schema, value)?;
    Some(format!("`{}` is {found}, not {}", parameter.name, annotation(&parameter.schema)))
}
