//! Which words of an argument vector are a shell's program text, and where in such a text quotes are open.
//!
//! It is no shell parser. The reading of quotes serves a better message; that values cannot become code does not
//! depend on it.

/// The indices of the words that a shell reads as its program: what follows `sh -c`, also behind a wrapper such as
/// `timeout 5 sh -c`, and with other options beside, such as `bash -eu -o pipefail -c`.
pub(crate) fn script_places(words: &[&str]) -> Vec<usize> {
    let shells = words.iter().enumerate().filter(|(_, word)| is_shell(word)).map(|(index, _)| index);
    shells.filter_map(|shell| Some(shell + 1 + script_after(words.get(shell + 1..)?)?)).collect()
}

/// Where quotes are open in a shell script, read piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Quotes {
    state: State,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Outside of quotes, after white space or at the beginning: a `#` would begin a comment.
    #[default]
    Between,
    Word,
    Escaped,
    Single,
    Double,
    DoubleEscaped,
    Comment,
}

impl Quotes {
    pub(crate) fn read(&mut self, text: &str) {
        self.state = text.chars().fold(self.state, |state, character| match (state, character) {
            (State::Single, '\'') | (State::Double, '"') | (State::Escaped, _) => State::Word,
            (State::Single, _) => State::Single,
            (State::Double, '\\') => State::DoubleEscaped,
            (State::Double | State::DoubleEscaped, _) => State::Double,
            (State::Comment, '\n') => State::Between,
            (State::Comment, _) | (State::Between, '#') => State::Comment,
            (_, '\\') => State::Escaped,
            (_, '\'') => State::Single,
            (_, '"') => State::Double,
            (_, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')') => State::Between,
            _ => State::Word,
        });
    }

    pub(crate) fn open(&self) -> bool {
        matches!(self.state, State::Single | State::Double | State::DoubleEscaped)
    }
}

const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "ksh", "zsh"];

fn is_shell(word: &str) -> bool {
    word.rsplit('/').next().is_some_and(|name| SHELLS.contains(&name))
}

/// Among the words behind the shell's name, the index of the script.
fn script_after(words: &[&str]) -> Option<usize> {
    let mut from_text = false;
    let mut index = 0;
    while let Some(word) = words.get(index) {
        let cluster = word.strip_prefix(['-', '+']).filter(|letters| !letters.is_empty());
        let Some(letters) = cluster else { return from_text.then_some(index) };
        if word.starts_with("--") {
            index += 1;
            continue;
        }
        from_text |= word.starts_with('-') && letters.contains('c');
        // `-o pipefail` and `-O extglob` take a word of their own.
        index += if letters.ends_with(['o', 'O']) { 2 } else { 1 };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_found_behind_shells_and_their_wrappers() {
        for (words, expected) in [
            (vec!["sh", "-c", "x"], vec![2]),
            (vec!["/bin/bash", "-c", "x", "name", "one"], vec![2]),
            (vec!["bash", "-euo", "pipefail", "-c", "x"], vec![4]),
            (vec!["bash", "--norc", "-lc", "x"], vec![3]),
            (vec!["sh", "-c", "-e", "x"], vec![3]),
            (vec!["sh", "-c", "--", "x"], vec![3]),
            (vec!["timeout", "5", "dash", "-c", "x"], vec![4]),
            (vec!["sh", "file", "-c"], vec![]),
            (vec!["sh", "-c"], vec![]),
            (vec!["grep", "-c", "x"], vec![]),
        ] {
            assert_eq!(script_places(&words), expected, "{words:?}");
        }
    }

    #[test]
    fn quotes_are_open_between_them() {
        for (text, expected) in [
            ("a ", false),
            ("a '", true),
            ("a 'b' ", false),
            ("a \"b", true),
            ("a \"b\\\" ", true),
            ("a \\\" ", false),
            ("a '\\' ", false),
            ("# don't\n", false),
            ("# don't ", false),
            ("a#'", true),
        ] {
            let mut quotes = Quotes::default();
            quotes.read(text);
            assert_eq!(quotes.open(), expected, "{text}");
        }
    }
}
