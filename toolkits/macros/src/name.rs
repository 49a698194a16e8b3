//! Which names Python takes. The same rule as `fimble_toolkit::is_python_name`, which this crate cannot depend on.

/// Why `name` cannot be a Python name, or `None` if it can.
pub(crate) fn python_name_problem(name: &str) -> Option<String> {
    if KEYWORDS.contains(&name) {
        return Some(format!("`{name}` is a Python keyword"));
    }
    let mut characters = name.chars();
    let starts_well = characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    if !starts_well || !characters.all(|character| character.is_ascii_alphanumeric() || character == '_') {
        return Some(format!("`{name}` is no Python name: it needs ASCII letters, digits and `_`, and no digit first"));
    }
    None
}

const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
    "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
    "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];
