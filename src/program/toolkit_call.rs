//! Finds calls of toolkits in a program, and what is known of its names. It does not judge them.

use std::collections::BTreeSet;

use fimble_toolkit::Declaration;
use ruff_python_ast::{Expr, ExprCall};

use super::names::Names;

/// The toolkits whose names mean the toolkit everywhere in a program.
pub(super) struct Toolkits<'a> {
    declarations: &'a [Declaration],
    shadowed: BTreeSet<&'a str>,
}

impl<'a> Toolkits<'a> {
    /// A name that some scope of the program binds to something else is not looked at: what it means there is unknown.
    pub(super) fn new(declarations: &'a [Declaration], names: &Names) -> Self {
        let shadowed = declarations.iter().map(|declaration| declaration.name.as_str());
        Self { declarations, shadowed: shadowed.filter(|name| names.local.contains(*name)).collect() }
    }

    /// The toolkit that the expression names.
    pub(super) fn named(&self, expression: &Expr) -> Option<&'a Declaration> {
        let Expr::Name(name) = expression else { return None };
        let declaration = self.declarations.iter().find(|declaration| declaration.name == name.id.as_str())?;
        (!self.shadowed.contains(declaration.name.as_str())).then_some(declaration)
    }

    /// The toolkit and the operation's name, if the call is one of a toolkit.
    pub(super) fn called<'e>(&self, call: &'e ExprCall) -> Option<(&'a Declaration, &'e str)> {
        let Expr::Attribute(attribute) = &*call.func else { return None };
        Some((self.named(&attribute.value)?, attribute.attr.as_str()))
    }
}

/// The words of `candidates` that are nearest to `word`, best first, at most three.
pub(super) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
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

/// Insertions, deletions and replacements between two words.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, character) in one.chars().enumerate() {
        let mut diagonal = row.first().copied().unwrap_or_default();
        let mut left = index + 1;
        let mut next = vec![left];
        for (above, candidate) in row.iter().skip(1).zip(&other) {
            left = (diagonal + usize::from(character != *candidate)).min(left + 1).min(above + 1);
            diagonal = *above;
            next.push(left);
        }
        row = next;
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
    }
}
