//! The top-level statements of a program, as the interpreter counts them.

use ruff_text_size::Ranged;

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

#[cfg(test)]
mod tests {
    use super::{after_statements, statements};

    #[test]
    fn what_comes_after_keeps_its_comments() {
        let source = "a = 1  # one\n# two\nb = 2; c = (\n 3)\nd = 4";
        let after: Vec<_> = (0..=5).map(|count| after_statements(source, count)).collect();
        assert_eq!(after, [source, "# two\nb = 2; c = (\n 3)\nd = 4", "c = (\n 3)\nd = 4", "d = 4", "", ""]);
        assert_eq!(after_statements("a =", 1), "a =");
    }

    #[test]
    fn statements_are_top_level_ones_with_their_whole_source() {
        let source = "import os; x = 1\n\n# why\n@cached\ndef f():\n    return await_me()\n\nawait g(\n    1)\n";
        let expected = ["import os", "x = 1", "@cached\ndef f():\n    return await_me()", "await g(\n    1)"];
        assert_eq!(statements(source), expected);
    }
}
