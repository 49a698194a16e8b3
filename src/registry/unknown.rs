//! What is said of calls that mean no toolkit, no operation, or one that is switched off.

use fimble_toolkit::{Declaration, ErrorKind, ToolError};

use super::nearest::{nearest, ranked};
use super::python_type::quoted;

/// Most names that an error lists.
const LISTED_NAMES: usize = 12;

pub(super) fn switched_off(what: String) -> ToolError {
    ToolError::new(ErrorKind::Denied, format!("{what} is switched off"))
        .with_hint("do it another way, or tell the user")
}

pub(super) fn unknown_toolkit(shown: &[Declaration], toolkit: &str, operation: &str) -> ToolError {
    let names: Vec<&str> = shown.iter().map(|declaration| declaration.name.as_str()).collect();
    let message = format!("there is no toolkit {}; {}", quoted(toolkit), listed("toolkits", &names, toolkit));
    let error = ToolError::new(ErrorKind::UnknownOperation, message);
    match (nearest(toolkit, &names), owner(shown, operation)) {
        (Some(name), _) => error.with_hint(format!("did you mean \"{name}\"?")),
        (None, Some(owner)) => error.with_hint(format!("{owner} has {operation}()")),
        (None, None) => error,
    }
}

/// The error for an operation that a toolkit does not have, with the names it has and the nearest one.
pub fn unknown_operation(declaration: &Declaration, operation: &str) -> ToolError {
    let names: Vec<&str> =
        declaration.operations.iter().filter(|known| known.enabled).map(|known| known.name.as_str()).collect();
    let toolkit = &declaration.name;
    if names.is_empty() {
        // It says itself why.
        let message = format!("{toolkit} has no operations now: {}", declaration.description.replace("\n\n", "; "));
        return ToolError::unavailable(message).with_hint("do without it, and tell the user why");
    }
    let message =
        format!("{toolkit} has no operation {}; {}", quoted(operation), listed("operations", &names, operation));
    let error = ToolError::new(ErrorKind::UnknownOperation, message);
    match nearest(operation, &names) {
        Some(name) => error.with_hint(format!("did you mean \"{name}\"?")),
        None => error,
    }
}

pub(super) fn unknown_here(shown: &[Declaration], declaration: &Declaration, operation: &str) -> ToolError {
    let error = unknown_operation(declaration, operation);
    match owner(shown, operation) {
        Some(owner) => error.with_hint(format!("{owner} has {operation}()")),
        None => error,
    }
}

/// The first toolkit that has the operation.
fn owner<'a>(shown: &'a [Declaration], operation: &str) -> Option<&'a str> {
    let has = |declaration: &&Declaration| declaration.operations.iter().any(|known| known.name == operation);
    shown.iter().find(has).map(|declaration| declaration.name.as_str())
}

/// All names, or the nearest and how many more there are.
fn listed(what: &str, names: &[&str], wanted: &str) -> String {
    if names.is_empty() {
        return format!("there are no {what}");
    }
    if names.len() <= LISTED_NAMES {
        return format!("{what}: {}", names.join(", "));
    }
    let near = ranked(wanted, names, LISTED_NAMES);
    format!("{what}: {} and {} more", near.join(", "), names.len() - near.len())
}
