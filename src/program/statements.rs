//! The top-level statements of a program, as the interpreter counts them.

use std::ops::RangeInclusive;

use ruff_text_size::{Ranged, TextSize};

/// The source of each top-level statement, in order; empty if the program does not parse.
pub fn statements(source: &str) -> Vec<String> {
    let Ok(module) = ruff_python_parser::parse_module(source) else { return Vec::new() };
    module.suite().iter().map(|statement| source[statement.range()].to_owned()).collect()
}

/// What comes after the first `count` top-level statements, with the comments between; all of it if it does not parse.
pub fn after_statements(source: &str, count: usize) -> &str {
    let Ok(module) = ruff_python_parser::parse_module(source) else { return source };
    let Some(last) = count.checked_sub(1) else { return source };
    let Some(statement) = module.suite().get(last) else { return "" };
    let rest = source.get(statement.end().to_usize()..).unwrap_or_default();
    match module.suite().get(count) {
        // On the same line, after a semicolon.
        Some(next) if !source[statement.end().to_usize()..next.start().to_usize()].contains('\n') => {
            &source[next.start().to_usize()..]
        }
        _ => rest.split_once('\n').map_or("", |(_, rest)| rest),
    }
}

/// The lines and the source of the top-level statement that has `line`, which counts from 1.
pub fn statement_at(source: &str, line: u32) -> Option<(RangeInclusive<u32>, String)> {
    let module = ruff_python_parser::parse_module(source).ok()?;
    let line_of = |offset: TextSize| {
        let before = source.get(..offset.to_usize()).unwrap_or_default();
        u32::try_from(before.matches('\n').count() + 1).unwrap_or(u32::MAX)
    };
    module.suite().iter().find_map(|statement| {
        let lines = line_of(statement.start())..=line_of(statement.end());
        lines.contains(&line).then(|| (lines, source[statement.range()].to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::{after_statements, statement_at, statements};

    #[test]
    fn what_comes_after_keeps_its_comments() {
        let source = "a = 1  # one\n# two\nb = 2; c = (\n 3)\nd = 4";
        let after: Vec<_> = (0..=5).map(|count| after_statements(source, count)).collect();
        assert_eq!(after, [source, "# two\nb = 2; c = (\n 3)\nd = 4", "c = (\n 3)\nd = 4", "d = 4", "", ""]);
        assert_eq!(after_statements("a =", 1), "a =");
    }

    #[test]
    fn a_statement_is_found_by_any_of_its_lines() {
        let source = "x = 1\n\nfor y in (\n    1,\n):\n    z = y\nw = 2; v = 3\n";
        let found: Vec<_> = (0..=8).map(|line| statement_at(source, line)).collect();
        let whole = Some((3..=6, "for y in (\n    1,\n):\n    z = y".to_owned()));
        let expected = [
            None,
            Some((1..=1, "x = 1".to_owned())),
            None,
            whole.clone(),
            whole.clone(),
            whole.clone(),
            whole,
            Some((7..=7, "w = 2".to_owned())),
            None,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn statements_are_top_level_ones_with_their_whole_source() {
        let source = "import os; x = 1\n\n# why\n@cached\ndef f():\n    return await_me()\n\nawait g(\n    1)\n";
        let expected = ["import os", "x = 1", "@cached\ndef f():\n    return await_me()", "await g(\n    1)"];
        assert_eq!(statements(source), expected);
    }
}
