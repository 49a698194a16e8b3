//! Finds calls of toolkits in a program, and what is known of its names. It does not judge them.

use std::collections::BTreeMap;

use fimble_toolkit::{Declaration, Operation};
use ruff_python_ast::{Expr, ExprCall, Stmt};

use super::names::Names;

/// The toolkits whose names mean the toolkit everywhere in a program.
pub(super) struct Toolkits<'a> {
    by_name: BTreeMap<String, &'a Declaration>,
}

impl<'a> Toolkits<'a> {
    /// A name that some scope of the program binds to something else is not looked at: what it means there is unknown.
    /// What the top level assigns a toolkit to, once, is another name of it.
    pub(super) fn new(declarations: &'a [Declaration], names: &Names, body: &[Stmt]) -> Self {
        let named = declarations.iter().map(|declaration| (declaration.name.clone(), declaration));
        let mut by_name: BTreeMap<String, &Declaration> =
            named.filter(|(name, _)| !names.local.contains(name)).collect();
        for statement in body {
            if let Stmt::Assign(assign) = statement
                && let ([Expr::Name(alias)], Expr::Name(toolkit)) = (assign.targets.as_slice(), &*assign.value)
                && let Some(declaration) = by_name.get(toolkit.id.as_str()).copied()
                && !names.local.contains(alias.id.as_str())
                && names.bound.iter().filter(|binding| binding.name == alias.id.as_str()).count() == 1
            {
                by_name.entry(alias.id.to_string()).or_insert(declaration);
            }
        }
        Self { by_name }
    }

    /// The toolkit that the expression names.
    pub(super) fn named(&self, expression: &Expr) -> Option<&'a Declaration> {
        let Expr::Name(name) = expression else { return None };
        self.by_name.get(name.id.as_str()).copied()
    }

    /// True if the name means a toolkit, or another name of one.
    pub(super) fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The operations that a program may call.
    pub(super) fn operations(toolkit: &Declaration) -> impl Iterator<Item = &Operation> {
        toolkit.operations.iter().filter(|operation| operation.enabled)
    }

    /// The toolkit and the operation's name, if the call is one of a toolkit.
    pub(super) fn called<'e>(&self, call: &'e ExprCall) -> Option<(&'a Declaration, &'e str)> {
        let Expr::Attribute(attribute) = &*call.func else { return None };
        Some((self.named(&attribute.value)?, attribute.attr.as_str()))
    }
}

/// The words of `candidates` that are nearest to `word`, best first, at most three.
pub(super) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    // A longer one is no slip of the pen, and comparing it takes long.
    if word.len() > COMPARED {
        return Vec::new();
    }
    let word = word.to_lowercase();
    let mut scored: Vec<(usize, &str)> = candidates
        .filter_map(|candidate| {
            let lower = candidate.to_lowercase();
            let distance = distance(&word, &lower);
            let related = lower.contains(&word) || word.contains(&lower);
            let near = distance <= (word.chars().count().max(lower.chars().count()) / 3).max(1);
            (related || near).then_some((if related { distance.min(2) } else { distance }, candidate))
        })
        .collect();
    scored.sort();
    scored.into_iter().take(3).map(|(_, candidate)| candidate).collect()
}

/// Longest name in bytes that is compared.
const COMPARED: usize = 100;

/// Most names that a message lists.
const LISTED: usize = 12;

/// All names, or those most like `wanted`, how many more there are and, in `where_all`, who tells them.
pub(super) fn listed(wanted: &str, names: &[&str], where_all: &str) -> String {
    if names.len() <= LISTED {
        return names.join(", ");
    }
    let wanted = wanted.to_lowercase();
    let wanted = &wanted[..wanted.floor_char_boundary(COMPARED)];
    let mut ranked: Vec<(usize, usize)> = names
        .iter()
        .map(|name| distance(wanted, &name.to_lowercase()))
        .enumerate()
        .map(|(at, far)| (far, at))
        .collect();
    ranked.sort_unstable();
    let near: Vec<&str> = ranked.iter().take(LISTED).filter_map(|(_, at)| names.get(*at).copied()).collect();
    format!("{} and {} more{where_all}", near.join(", "), names.len() - near.len())
}

/// Insertions, deletions, replacements and swaps of neighbours between two words.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    let (mut before, mut previous) = (row.clone(), None);
    for (index, character) in one.chars().enumerate() {
        let mut left = index + 1;
        let mut next = vec![left];
        for (column, candidate) in other.iter().enumerate() {
            let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX - 1);
            left =
                (at(&row, column) + usize::from(character != *candidate)).min(left + 1).min(at(&row, column + 1) + 1);
            let swapped = column.checked_sub(1).filter(|back| {
                previous == Some(*candidate) && other.get(*back) == Some(&character) && character != *candidate
            });
            if let Some(back) = swapped {
                left = left.min(at(&before, back) + 1);
            }
            next.push(left);
        }
        before = std::mem::replace(&mut row, next);
        previous = Some(character);
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_come_first() {
        let operations = ["log", "show", "diff", "branches", "status", "blame"];
        assert_eq!(nearest("logs", operations.into_iter()), ["log"]);
        assert_eq!(nearest("get_status", operations.into_iter()), ["status"]);
        assert_eq!(nearest("branch", operations.into_iter()), ["branches"]);
        assert_eq!(nearest("push", operations.into_iter()), Vec::<&str>::new());
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(nearest("nmae", ["size", "name"].into_iter()), ["name"]);
    }
}
