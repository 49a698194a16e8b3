//! Toolkits as the model reads them: Python classes with typed signatures and one-line docstrings, in few tokens.

use std::collections::BTreeMap;

use fimble_toolkit::{Declaration, Operation, classes, signature};

use crate::segment::estimate_tokens;

/// The toolkit through which the program talks to its surroundings; it is always shown whole.
const SYSTEM: &str = "system_toolkit";

/// The stubs of all toolkits, in at most about `budget` tokens: first those that are shown whole, in their own order,
/// then those for which only the names of the operations fit.
pub fn stubs(declarations: &[Declaration], budget: u32) -> String {
    let is_system = |declaration: &&Declaration| declaration.name == SYSTEM;
    let ordered = declarations.iter().filter(is_system).chain(declarations.iter().filter(|one| !is_system(one)));
    let mut left = budget;
    // Every toolkit's names are shown, so their tokens are not there for signatures.
    let mut names: u32 = declarations.iter().map(|declaration| estimate_tokens(&brief(declaration))).sum();
    let mut whole = Vec::new();
    let mut briefs: Vec<&Declaration> = Vec::new();
    for declaration in ordered {
        let full = full(declaration);
        let tokens = estimate_tokens(&full);
        let brief_tokens = estimate_tokens(&brief(declaration));
        names = names.saturating_sub(brief_tokens);
        if is_system(&declaration) || tokens.saturating_add(names) <= left {
            left = left.saturating_sub(tokens);
            whole.push(full);
        } else {
            left = left.saturating_sub(brief_tokens);
            briefs.push(declaration);
        }
    }
    if let Some(first) = briefs.first() {
        let lines: Vec<String> = briefs.iter().map(|declaration| brief(declaration)).collect();
        whole.push(format!(
            "# Only names are shown of these; for signatures: print(await {SYSTEM}.describe(\"{}\"))\n{}",
            first.name,
            lines.join("\n")
        ));
    }
    whole.join("\n\n")
}

fn full(declaration: &Declaration) -> String {
    let mut shapes = BTreeMap::new();
    let mut methods = String::new();
    for operation in enabled(declaration) {
        shapes.extend(classes(operation));
        methods.push_str(&format!("\n    async def {}: {}", signature(operation), docstring(&operation.description)));
    }
    let shapes: String = shapes.into_values().map(|line| line + "\n").collect();
    format!("{shapes}class {}: {}{methods}", declaration.name, docstring(&declaration.description))
}

fn brief(declaration: &Declaration) -> String {
    let operations: Vec<&str> = enabled(declaration).map(|operation| operation.name.as_str()).collect();
    format!("class {}: {}  # {}", declaration.name, docstring(&declaration.description), operations.join(", "))
}

fn enabled(declaration: &Declaration) -> impl Iterator<Item = &Operation> {
    declaration.operations.iter().filter(|operation| operation.enabled)
}

/// The first line of a description as a Python string.
fn docstring(description: &str) -> String {
    let first = description.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    if first.is_empty() { "...".to_owned() } else { format!("\"{}\"", first.replace('\\', "").replace('"', "'")) }
}
