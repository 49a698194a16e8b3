//! Which names a program can write.

/// True if `name` is an ASCII Python identifier and no keyword.
///
/// Python would take more: it folds other scripts' letters into each other, and two names that look different to the
/// host would then be one in the program.
pub fn is_python_name(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|character| character.is_ascii_alphanumeric() || character == '_')
        && !KEYWORDS.contains(&name)
}

/// The words that Python keeps for itself everywhere; `match`, `case` and `type` are names too.
pub const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
    "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
    "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ascii_identifiers_but_no_keywords() {
        for name in ["log", "_x", "git_toolkit", "Log2", "match", "type", "print"] {
            assert!(is_python_name(name), "{name}");
        }
        for name in ["", "2nd", "two words", "a-b", "a.b", "naïve", "import", "None", "x\n"] {
            assert!(!is_python_name(name), "{name}");
        }
    }
}
