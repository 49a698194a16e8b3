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
use super::toolkit_call::{Toolkits, nearest};

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
        let Some(toolkit) = self.toolkits.named(&attribute.value) else { return };
        let name = attribute.attr.as_str();
        if toolkit.operation(name).is_none() && !name.starts_with("__") {
            self.find(attribute, unknown_operation(toolkit, name));
        }
    }

    fn call(&mut self, call: &ExprCall) {
        if let Some(toolkit) = self.toolkits.named(&call.func) {
            let operations: Vec<&str> = enabled(toolkit).map(|operation| operation.name.as_str()).collect();
            let message = format!(
                "`{0}` is an object, not a function: call one of its operations, `await {0}.…(…)` with {1}",
                toolkit.name,
                operations.join(", ")
            );
            self.find(call, message);
        }
        let Some((toolkit, name)) = self.toolkits.called(call) else { return };
        let Some(operation) = toolkit.operation(name) else { return };
        let complaints = complaints(operation, call);
        if !complaints.is_empty() {
            let message = format!(
                "`{}.{name}`: {}; its signature is `{}`",
                toolkit.name,
                complaints.join("; "),
                signature(operation)
            );
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

fn enabled(toolkit: &Declaration) -> impl Iterator<Item = &Operation> {
    toolkit.operations.iter().filter(|operation| operation.enabled)
}

fn unknown_operation(toolkit: &Declaration, name: &str) -> String {
    let there: Vec<&str> = enabled(toolkit).map(|operation| operation.name.as_str()).collect();
    let near: Vec<String> = nearest(name, there.iter().copied()).into_iter().map(|near| format!("`{near}`")).collect();
    let hint = if near.is_empty() { String::new() } else { format!("; did you mean {}", near.join(" or ")) };
    format!("`{}` has no operation `{name}`{hint}; it has: {}", toolkit.name, there.join(", "))
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
            None => complaints.push(format!("it has no parameter `{name}`")),
        }
    }
    let missing = operation.parameters.iter().filter(|parameter| parameter.required);
    let missing = missing.filter(|parameter| !is_open && !given.contains(&parameter.name.as_str()));
    complaints.extend(missing.map(|parameter| format!("`{}` is missing", parameter.name)));
    complaints
}

fn wrong_literal(parameter: &Parameter, value: &Expr) -> Option<String> {
    if value.is_none_literal_expr() && !parameter.required {
        return None;
    }
    let found = mismatch(&parameter.schema, value)?;
    Some(format!("`{}` is {found}, not {}", parameter.name, annotation(&parameter.schema)))
}
