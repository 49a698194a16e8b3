//! Toolkits as the model reads them: Python classes with typed signatures and one-line docstrings, in few tokens.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use fimble_toolkit::{Declaration, Operation, Parameter, classes, parameter_text, signature};

use crate::segment::estimate_tokens;
use crate::shape::LEARNT;

/// The toolkit through which the program talks to its surroundings; it is always shown whole.
pub(super) const SYSTEM: &str = "system_toolkit";

/// Tokens that the names of a toolkit may take however many toolkits there are.
const LEAST_NAMES: u32 = 40;

/// From this many operations on, what all of them take is told once.
const SHARING: usize = 3;

/// Bytes of fields that are worth a parent class.
const INHERITED: usize = 24;

/// The most parameters of an operation in a stub, if no more are needed.
const PARAMETERS: usize = 30;

/// The most characters of a docstring.
const DOCSTRING: usize = 160;

/// What stubs may take, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Toolkits that are shown whole, and the names of the others.
    pub whole: u32,
    /// Of that, the names of operations of toolkits that are not shown whole.
    pub names: u32,
}

impl Budget {
    /// Everything is shown.
    pub const ALL: Self = Self { whole: u32::MAX, names: u32::MAX };
}

/// The stubs of all toolkits, in at most about the budget: first those that are shown whole, in their own order, then
/// those for which only the names of the operations fit, or only how many begin with which word.
pub fn stubs(declarations: &[Declaration], budget: Budget) -> String {
    shown(declarations, budget).text()
}

/// The stubs of toolkits, as they are shown.
#[derive(Debug)]
pub(super) struct Stubs {
    pub text: String,
    /// Which toolkits are not shown whole.
    brief: Vec<usize>,
}

impl Stubs {
    /// Those of these toolkits that are not shown whole; they are the ones that the stubs are of.
    pub fn briefly<'a>(&self, declarations: &'a [Declaration]) -> Vec<&'a Declaration> {
        self.brief.iter().filter_map(|index| declarations.get(*index)).collect()
    }
}

/// The last stubs that were made, for as long as toolkits and budget stay the same.
#[derive(Debug, Default)]
pub(super) struct LastStubs {
    last: Mutex<Option<Made>>,
}

#[derive(Debug)]
struct Made {
    /// Kept, so that no others can lie at their address.
    of: Arc<Vec<Declaration>>,
    budget: Budget,
    stubs: Arc<Stubs>,
}

impl LastStubs {
    /// The stubs of these toolkits.
    pub fn get(&self, declarations: &Arc<Vec<Declaration>>, budget: Budget) -> Arc<Stubs> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = last.as_ref().filter(|made| Arc::ptr_eq(&made.of, declarations) && made.budget == budget) {
            return Arc::clone(&made.stubs);
        }
        let place = |brief: &Declaration| declarations.iter().position(|one| std::ptr::eq(one, brief));
        let shown = shown(declarations, budget);
        let brief = shown.brief.iter().filter_map(|(declaration, _)| place(declaration)).collect();
        let stubs = Arc::new(Stubs { text: shown.text(), brief });
        *last = Some(Made { of: Arc::clone(declarations), budget, stubs: Arc::clone(&stubs) });
        stubs
    }
}

struct Shown<'a> {
    whole: Vec<String>,
    brief: Vec<(&'a Declaration, String)>,
}

impl Shown<'_> {
    fn text(&self) -> String {
        let mut text = self.whole.join("\n\n");
        if let Some((first, _)) = self.brief.first() {
            let lines: Vec<&str> = self.brief.iter().map(|(_, line)| line.as_str()).collect();
            let gap = if text.is_empty() { "" } else { "\n\n" };
            text.push_str(&format!(
                "{gap}# Only names are shown of these; for signatures: print(await {SYSTEM}.describe(\"{}\")), or .describe(\"what \
                 it should do\")\n{}",
                first.name,
                lines.join("\n")
            ));
        }
        text
    }
}

fn shown(declarations: &[Declaration], budget: Budget) -> Shown<'_> {
    let is_system = |declaration: &&Declaration| declaration.name == SYSTEM;
    let ordered = declarations.iter().filter(is_system).chain(declarations.iter().filter(|one| !is_system(one)));
    let share = budget.names / u32::try_from(declarations.len().max(1)).unwrap_or(u32::MAX);
    let briefs: Vec<(&Declaration, String)> =
        ordered.map(|declaration| (declaration, brief(declaration, share.max(LEAST_NAMES)))).collect();
    let mut left = budget.whole;
    // Every toolkit's names are shown, so their tokens are not there for signatures.
    let mut names: u32 = briefs.iter().map(|(_, brief)| estimate_tokens(brief)).sum();
    let mut shown = Shown { whole: Vec::new(), brief: Vec::new() };
    for (declaration, brief) in briefs {
        let tokens = estimate_tokens(&brief);
        names = names.saturating_sub(tokens);
        let room = if is_system(&declaration) { u32::MAX } else { left.saturating_sub(names) };
        match full(declaration, room) {
            Some(full) => {
                left = left.saturating_sub(estimate_tokens(&full));
                shown.whole.push(full);
            }
            None => {
                left = left.saturating_sub(tokens);
                shown.brief.push((declaration, brief));
            }
        }
    }
    shown
}

/// The stub of a toolkit, if it takes no more than so many tokens.
pub(super) fn full(declaration: &Declaration, room: u32) -> Option<String> {
    let shared = shared_parameters(declaration);
    let mut shapes = BTreeMap::new();
    let mut methods = String::new();
    if let Some(text) = parameters(&shared) {
        methods.push_str(&format!("\n    # All of these also take {text}"));
    }
    for operation in enabled(declaration) {
        methods.push_str(&format!("\n    {}", line(declaration, operation, &shared)));
        // A toolkit of thousands of operations is not written out to be thrown away.
        if estimate_tokens(&methods) > room {
            return None;
        }
        shapes.extend(classes(operation));
    }
    let shapes: String = inherit(&shapes).into_iter().map(|line| line + "\n").collect();
    let text = format!("{shapes}class {}: {}{methods}", declaration.name, docstring(&declaration.description));
    (estimate_tokens(&text) <= room).then_some(text)
}

/// One operation in the stub of its toolkit. Of very many parameters those that are needed are shown, and as many others as
/// there is room for; whoever wants the rest asks for that operation.
fn line(declaration: &Declaration, operation: &Operation, shared: &[Parameter]) -> String {
    if operation.parameters.len() <= PARAMETERS {
        return method(operation, shared);
    }
    let mut short = operation.clone();
    short.parameters.retain(|parameter| !shared.contains(parameter));
    let all = short.parameters.len();
    let needed = short.parameters.iter().filter(|parameter| parameter.required).count();
    let mut room = PARAMETERS.saturating_sub(needed);
    short.parameters.retain(|parameter| {
        let is_shown = parameter.required || room > 0;
        room = room.saturating_sub(usize::from(!parameter.required));
        is_shown
    });
    match all - short.parameters.len() {
        0 => method(operation, shared),
        more => format!(
            "{}  # and {more} more parameters: {SYSTEM}.describe(\"{}.{}\")",
            method(&short, shared),
            declaration.name,
            operation.name
        ),
    }
}

/// One operation as a method, without the parameters that all of its toolkit take.
pub(super) fn method(operation: &Operation, shared: &[Parameter]) -> String {
    let text = if shared.is_empty() {
        signature(operation)
    } else {
        let mut own = operation.clone();
        own.parameters.retain(|parameter| !shared.contains(parameter));
        signature(&own)
    };
    let paged = operation.paging.is_some().then_some("async for gets the items of all pages");
    let learnt = operation.returns.get(LEARNT).is_some().then_some("as seen so far");
    let remarks: Vec<&str> = paged.into_iter().chain(learnt).collect();
    let remark = if remarks.is_empty() { String::new() } else { format!("  # {}", remarks.join("; ")) };
    format!("async def {text}: {}{remark}", docstring(&operation.description))
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

/// A toolkit in one line: the names of its operations, or, if those take more than so many tokens, how many begin with which
/// word.
fn brief(declaration: &Declaration, room: u32) -> String {
    let operations: Vec<&str> = enabled(declaration).map(|operation| operation.name.as_str()).collect();
    let head = format!("class {}: {}  # ", declaration.name, docstring(&declaration.description));
    let names = operations.iter().map(|name| name.len() + 2).sum::<usize>() / 4;
    if u32::try_from(names).is_ok_and(|names| names <= room) {
        return head + &operations.join(", ");
    }
    let mut groups: BTreeMap<&str, usize> = BTreeMap::new();
    for name in &operations {
        *groups.entry(name.split_once('_').map_or(*name, |(first, _)| first)).or_default() += 1;
    }
    let mut groups: Vec<(&str, usize)> = groups.into_iter().collect();
    groups.sort_by_key(|(name, count)| (Reverse(*count), *name));
    let mut text = format!("{} operations:", operations.len());
    let mut told = 0;
    for (name, count) in &groups {
        let group = if *count == 1 { format!(" {name},") } else { format!(" {name}_* {count},") };
        if estimate_tokens(&text) + estimate_tokens(&group) > room {
            break;
        }
        text.push_str(&group);
        told += count;
    }
    match operations.len() - told {
        0 => head + text.trim_end_matches(','),
        more => format!("{head}{text} and {more} more"),
    }
}

pub(super) fn enabled(declaration: &Declaration) -> impl Iterator<Item = &Operation> {
    declaration.operations.iter().filter(|operation| operation.enabled)
}

/// The first paragraph of a description as a Python string, cut to whole sentences of at most [`DOCSTRING`] characters.
pub(super) fn docstring(description: &str) -> String {
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
