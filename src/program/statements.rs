//! The top-level statements of a program, as the interpreter counts them.

use ruff_text_size::Ranged;

/// The source of each top-level statement, in order; empty if the program does not parse.
pub fn statements(source: &str) -> Vec<String> {
    let Ok(module) = ruff_python_parser::parse_module(source) else { return Vec::new() };
    module.suite().iter().map(|statement| source[statement.range()].to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::statements;

    #[test]
    fn statements_are_top_level_ones_with_their_whole_source() {
        let source = "import os; x = 1\n\n# why\n@cached\ndef f():\n    return await_me()\n\nawait g(\n    1)\n";
        let expected = ["import os", "x = 1", "@cached\ndef f():\n    return await_me()", "await g(\n    1)"];
        assert_eq!(statements(source), expected);
    }
}
