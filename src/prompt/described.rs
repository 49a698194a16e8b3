//! Signatures on demand: of a toolkit, of operations by name, or of those that fit some words, within a budget.

use std::collections::BTreeMap;

use fimble_toolkit::{Declaration, Operation, classes};

use super::PromptInput;
use super::relevant::relevant;
use super::stubs::{Budget, SYSTEM, docstring, enabled, full, method, stubs};
use crate::segment::{SegmentKind, estimate_tokens};

/// Operations that words find, at most.
const FOUND: usize = 8;

/// Operations that a request finds by itself, at most.
const LIKELY: usize = 6;

/// The tokens of one class, at most; what has more fields is told in part.
const CLASS: u32 = 120;

/// What is asked for: `git_toolkit`, `git_toolkit.log`, several of them parted by commas, or words such as `create an issue`.
/// `None` if nothing has such a name and no operation fits the words.
pub fn described(declarations: &[Declaration], what: &str, budget: u32) -> Option<String> {
    let toolkit = |name: &str| declarations.iter().find(|declaration| declaration.name == name);
    let names: Vec<&str> = what.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    if let [name] = names.as_slice()
        && let Some(declaration) = toolkit(name)
    {
        let one = std::slice::from_ref(declaration);
        return full(declaration, budget).or_else(|| Some(stubs(one, Budget { whole: budget, names: budget / 2 })));
    }
    let mut asked: Vec<(&Declaration, &Operation)> = Vec::new();
    let dotted = |name: &&str| name.split_once('.').and_then(|(of, name)| Some((toolkit(of)?, name.to_owned())));
    let all: Option<Vec<(&Declaration, String)>> = names.iter().map(dotted).collect();
    let is_by_name = all.is_some();
    for (declaration, pattern) in all.into_iter().flatten() {
        let pattern = pattern.trim_end_matches("()");
        let is_meant = |operation: &&Operation| match pattern.strip_suffix('*') {
            Some(head) => operation.name.starts_with(head),
            None => operation.name == pattern,
        };
        asked.extend(enabled(declaration).filter(is_meant).map(|operation| (declaration, operation)));
    }
    if !is_by_name {
        asked = relevant(declarations.iter().filter(|declaration| declaration.name != SYSTEM), what);
        asked.truncate(FOUND);
    }
    if asked.is_empty() { None } else { Some(operations(&asked, budget)) }
}

/// The signatures that the user's last words seem to need, of toolkits that are only shown by name; comment lines, or nothing.
pub(super) fn likely(input: &PromptInput<'_>, briefly: &[&Declaration]) -> String {
    let said = input.segments.iter().rev().find(|segment| segment.kind == SegmentKind::User);
    let (Some(said), false) = (said, briefly.is_empty() || input.config.likely_tokens == 0) else {
        return String::new();
    };
    let mut found = relevant(briefly.iter().copied(), &said.content);
    found.truncate(LIKELY);
    if found.is_empty() {
        return String::new();
    }
    let text = operations(&found, input.config.likely_tokens);
    let lines = std::iter::once("may help:").chain(text.lines());
    lines.map(|line| format!("# {line}\n")).collect()
}

/// Operations as methods of their toolkits, and then as many classes of what they take and give as fit.
fn operations(asked: &[(&Declaration, &Operation)], budget: u32) -> String {
    let mut left = budget;
    let mut toolkits: Vec<(&Declaration, Vec<String>)> = Vec::new();
    let mut shown: Vec<&Operation> = Vec::new();
    let mut others: Vec<String> = Vec::new();
    for (declaration, operation) in asked {
        let line = method(operation, &[]);
        let tokens = estimate_tokens(&line).saturating_add(2);
        if tokens > left && !shown.is_empty() {
            others.push(format!("{}.{}", declaration.name, operation.name));
            continue;
        }
        left = left.saturating_sub(tokens);
        shown.push(operation);
        match toolkits.iter_mut().find(|(known, _)| known.name == declaration.name) {
            Some((_, lines)) => lines.push(line),
            None => toolkits.push((declaration, vec![line])),
        }
    }
    let mut shapes: BTreeMap<String, String> = BTreeMap::new();
    for operation in shown {
        for (name, line) in classes(operation) {
            let line = shortened(&line);
            let tokens = estimate_tokens(&line).saturating_add(1);
            if tokens <= left && !shapes.contains_key(&name) {
                left -= tokens;
                shapes.insert(name, line);
            }
        }
    }
    let mut text: String = shapes.into_values().map(|line| line + "\n").collect();
    for (declaration, lines) in toolkits {
        text.push_str(&format!("class {}: {}\n", declaration.name, docstring(&declaration.description)));
        lines.iter().for_each(|line| text.push_str(&format!("    {line}\n")));
    }
    if !others.is_empty() {
        others.truncate(FOUND);
        text.push_str(&format!("# also: {}\n", others.join(", ")));
    }
    text.truncate(text.trim_end().len());
    text
}

/// A class with as many fields as a class may have.
fn shortened(line: &str) -> String {
    if estimate_tokens(line) <= CLASS {
        return line.to_owned();
    }
    let fields: Vec<&str> = line.split("; ").collect();
    let mut text = String::new();
    for (index, field) in fields.iter().enumerate() {
        if index > 0 && estimate_tokens(&text) + estimate_tokens(field) > CLASS {
            return format!("{text}; ...  # and {} more", fields.len() - index);
        }
        if index > 0 {
            text.push_str("; ");
        }
        text.push_str(field);
    }
    text
}
