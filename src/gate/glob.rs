//! Patterns for the names of operations.

/// True if `text` is one of the alternatives that `pattern` has between `|`; `*` in one is any characters, also none. It takes
/// time in proportion to both lengths, whatever the pattern.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    pattern.split('|').any(|alternative| matches_one(alternative.trim().as_bytes(), text.as_bytes()))
}

fn matches_one(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut in_text) = (0, 0);
    // Where the last `*` stands, and how far the text was when it was met: it may have to take one byte more.
    let mut star: Option<(usize, usize)> = None;
    while in_text < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, in_text));
                at += 1;
            }
            Some(byte) if *byte == text[in_text] => {
                at += 1;
                in_text += 1;
            }
            _ => match star {
                Some((place, taken)) => {
                    star = Some((place, taken + 1));
                    (at, in_text) = (place + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_characters_and_a_bar_an_alternative() {
        for (pattern, text, expected) in [
            ("*", "git_toolkit.log", true),
            ("git_toolkit.log", "git_toolkit.log", true),
            ("git_toolkit.*", "git_toolkit.log", true),
            ("*.log", "git_toolkit.log", true),
            ("git*log*", "git_toolkit.log", true),
            ("*o*o*", "git_toolkit.log", true),
            ("git_toolkit.log | shell_toolkit.*", "shell_toolkit.run", true),
            ("git_toolkit", "git_toolkit.log", false),
            ("*.logs", "git_toolkit.log", false),
            ("", "git_toolkit.log", false),
            ("", "", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
        assert!(!matches(&"a*".repeat(1_000), &"a".repeat(999)));
    }
}
