//! Toolkits as the model reads them: Python classes with typed signatures and one-line docstrings, in few tokens.

use std::collections::BTreeMap;

use fimble_toolkit::{Declaration, Operation, Parameter, classes, parameter_text, signature};

use crate::segment::estimate_tokens;

/// The toolkit through which the program talks to its surroundings; it is always shown whole.
const SYSTEM: &str = "system_toolkit";

/// From this many operations on, what all of them take is told once.
const SHARING: usize = 3;

/// Bytes of fields that are worth a parent class.
const INHERITED: usize = 24;

/// The most characters of a docstring.
const DOCSTRING: usize = 160;

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
    let shared = shared_parameters(declaration);
    let mut shapes = BTreeMap::new();
    let mut methods = String::new();
    if let Some(text) = parameters(&shared) {
        methods.push_str(&format!("\n    # All of these also take {text}"));
    }
    for operation in enabled(declaration) {
        shapes.extend(classes(operation));
        let mut own = operation.clone();
        own.parameters.retain(|parameter| !shared.contains(parameter));
        methods.push_str(&format!("\n    async def {}: {}", signature(&own), docstring(&operation.description)));
    }
    let shapes: String = inherit(&shapes).into_iter().map(|line| line + "\n").collect();
    format!("{shapes}class {}: {}{methods}", declaration.name, docstring(&declaration.description))
}

/// The optional parameters that every operation takes, if there are [`SHARING`] operations or more: they are told once.
fn shared_parameters(declaration: &Declaration) -> Vec<Parameter> {
    let mut operations = enabled(declaration);
    let Some(first) = operations.next() else { return Vec::new() };
    let others: Vec<&Operation> = operations.collect();
    let is_shared = |one: &&Parameter| !one.required && others.iter().all(|other| other.parameters.contains(one));
    if others.len() + 1 < SHARING { Vec::new() } else { first.parameters.iter().filter(is_shared).cloned().collect() }
}

/// Parameters as a signature has them; nothing for none.
fn parameters(parameters: &[Parameter]) -> Option<String> {
    let texts = parameters.iter().map(parameter_text).collect::<Vec<_>>();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// Classes whose first fields are all those of another class are written as its children.
fn inherit(shapes: &BTreeMap<String, String>) -> Vec<String> {
    let fields: BTreeMap<&str, &str> = shapes
        .iter()
        .filter_map(|(name, line)| {
            Some((name.as_str(), line.strip_prefix("class ")?.strip_prefix(name)?.strip_prefix(": ")?))
        })
        .collect();
    let line = |(name, line): (&String, &String)| {
        let own = fields.get(name.as_str())?;
        let parents = fields.iter().filter_map(|(parent, theirs)| {
            let rest = own.strip_prefix(theirs)?.strip_prefix("; ")?;
            (theirs.len() >= INHERITED).then(|| (theirs.len(), format!("class {name}({parent}): {rest}")))
        });
        Some(parents.max().map_or_else(|| line.clone(), |(_, text)| text))
    };
    shapes.iter().filter_map(line).collect()
}

fn brief(declaration: &Declaration) -> String {
    let operations: Vec<&str> = enabled(declaration).map(|operation| operation.name.as_str()).collect();
    format!("class {}: {}  # {}", declaration.name, docstring(&declaration.description), operations.join(", "))
}

fn enabled(declaration: &Declaration) -> impl Iterator<Item = &Operation> {
    declaration.operations.iter().filter(|operation| operation.enabled)
}

/// The first paragraph of a description as a Python string, cut to whole sentences of at most [`DOCSTRING`] characters.
fn docstring(description: &str) -> String {
    let lines = description.trim().lines().map(str::trim).take_while(|line| !line.is_empty());
    let paragraph = lines.collect::<Vec<_>>().join(" ");
    let first = shorten(&paragraph);
    if first.is_empty() { "...".to_owned() } else { format!("\"{}\"", first.replace('\\', "").replace('"', "'")) }
}

fn shorten(paragraph: &str) -> String {
    let Some((end, _)) = paragraph.char_indices().nth(DOCSTRING) else { return paragraph.to_owned() };
    let head = &paragraph[..end];
    match head.rfind(". ") {
        Some(sentence) => head[..=sentence].to_owned(),
        None => format!("{}…", head.rsplit_once(' ').map_or(head, |(whole, _)| whole)),
    }
}
