//! What a variable's value may come from, by the names that statements read and bind.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use ruff_python_ast::Stmt;
use ruff_text_size::{Ranged, TextSize};

use super::bindings::Bindings;
use super::names::Names;

/// A top-level statement, and what its value may come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    /// Its source.
    pub statement: String,
    /// The lines of the statements before it that bound what it reads, functions that it calls included, and its own; each from
    /// 1, in order.
    pub lines: Vec<RangeInclusive<u32>>,
}

/// The top-level statement that has `line`, which counts from 1; `None` if there is none, or the source does not parse. What
/// changes a value without binding a name (`list.append`) is not followed.
pub fn provenance(source: &str, line: u32) -> Option<Provenance> {
    let module = ruff_python_parser::parse_module(source).ok()?;
    let line_of = |offset: TextSize| {
        let before = source.get(..offset.to_usize()).unwrap_or_default();
        u32::try_from(before.matches('\n').count() + 1).unwrap_or(u32::MAX)
    };
    let lines_of = |statement: &Stmt| line_of(statement.start())..=line_of(statement.end());
    let body = module.suite();
    let at = body.iter().position(|statement| lines_of(statement).contains(&line))?;
    let mut lines = vec![lines_of(&body[at])];
    let mut wanted = BTreeSet::new();
    wanted.extend(reads(&body[at]));
    for statement in body[..at].iter().rev() {
        let bound = Bindings::of(std::slice::from_ref(statement)).bound;
        let bound: Vec<String> =
            bound.into_iter().map(|binding| binding.name).filter(|name| wanted.contains(name)).collect();
        if bound.is_empty() {
            continue;
        }
        if !is_conditional(statement) {
            wanted.retain(|name| !bound.contains(name));
        }
        wanted.extend(reads(statement));
        lines.push(lines_of(statement));
    }
    lines.reverse();
    Some(Provenance { statement: source[body[at].range()].to_owned(), lines })
}

fn reads(statement: &Stmt) -> impl Iterator<Item = String> {
    Names::of(std::slice::from_ref(statement)).read.into_keys()
}

/// True if an earlier binding may have stayed.
fn is_conditional(statement: &Stmt) -> bool {
    matches!(statement, Stmt::If(_) | Stmt::For(_) | Stmt::While(_) | Stmt::Try(_) | Stmt::Match(_) | Stmt::With(_))
}

#[cfg(test)]
mod tests {
    use super::{Provenance, provenance};

    #[test]
    fn a_statement_is_found_by_any_of_its_lines() {
        let source = "x = 1\n\nfor y in (\n    1,\n):\n    z = y\nw = 2; v = 3\n";
        let found: Vec<_> = (0..=8).map(|line| provenance(source, line)).collect();
        let own = |statement: &str, lines| Some(Provenance { statement: statement.to_owned(), lines: vec![lines] });
        let whole = own("for y in (\n    1,\n):\n    z = y", 3..=6);
        let expected = [
            None,
            own("x = 1", 1..=1),
            None,
            whole.clone(),
            whole.clone(),
            whole.clone(),
            whole,
            own("w = 2", 7..=7),
            None,
        ];
        assert_eq!(found, expected);
        assert_eq!(provenance("x =", 1), None);
    }

    #[test]
    fn what_it_reads_is_followed_to_what_bound_it() {
        for (source, line, expected) in [
            // A function that is called, and what that reads.
            (
                "other = 1\nhost = 'a'\ndef ask(what):\n    return get(host, what)\nx = ask(1)",
                5,
                vec![2..=2, 3..=4, 5..=5],
            ),
            // A field of a result.
            ("rec = get()\ny = 1\nx = rec.field", 3, vec![1..=1, 3..=3]),
            // Only what it was bound to last, unless that may not have happened.
            ("a = one()\na = two()\nx = a", 3, vec![2..=2, 3..=3]),
            ("a = one()\nif b:\n    a = two()\nx = a", 4, vec![1..=1, 2..=3, 4..=4]),
            ("a = one()\na += two()\nx = a", 3, vec![1..=1, 2..=2, 3..=3]),
            // What comes later does not count.
            ("x = a\na = one()", 1, vec![1..=1]),
            // A name of a function's own is another one.
            ("a = one()\nx = (lambda a: a)(2)", 2, vec![2..=2]),
        ] {
            assert_eq!(provenance(source, line).unwrap().lines, expected, "{source}");
        }
    }
}
