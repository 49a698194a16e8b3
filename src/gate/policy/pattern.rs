//! A pattern for the names of operations and the texts of arguments: `*` is any characters, `?` one, `[ab]` one of some,
//! `{one,other}` one of some texts.

use std::fmt;
use std::str::FromStr;

use globset::{Glob, GlobMatcher};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A pattern for a whole text.
#[derive(Clone)]
pub struct Pattern {
    text: String,
    matcher: GlobMatcher,
}

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no pattern: {reason}")]
pub struct PatternError {
    text: String,
    reason: String,
}

impl Pattern {
    /// True if all of `text` is what the pattern says.
    pub fn matches(&self, text: &str) -> bool {
        self.matcher.is_match(text)
    }

    /// The same, to let something pass: a text that climbs out of a folder by `..` is only what the pattern says if the pattern
    /// says that too, so that `/srv/*` does not allow `/srv/../etc/passwd`.
    pub fn allows(&self, text: &str) -> bool {
        self.matches(text) && (!climbs(text) || climbs(&self.text))
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

fn climbs(text: &str) -> bool {
    text.split(|character: char| character == '/' || character == '\\' || character.is_whitespace())
        .any(|part| part == "..")
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        match Glob::new(text) {
            Ok(glob) => Ok(Self { text: text.to_owned(), matcher: glob.compile_matcher() }),
            Err(error) => Err(PatternError { text: text.to_owned(), reason: error.kind().to_string() }),
        }
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.text)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_of_the_whole_text_and_lets_nobody_climb() {
        let pattern = |text: &str| text.parse::<Pattern>().unwrap();
        for (text, whole, matches) in [
            ("git_toolkit.*", "git_toolkit.log", true),
            ("git_toolkit.*", "my_git_toolkit.log", false),
            ("git push*", "git push origin\nmain", true),
            ("{get,list}_*", "list_pods", true),
            ("/srv/*", "/srv/a/b", true),
            ("a?c", "abc", true),
            ("[ab]", "c", false),
        ] {
            assert_eq!(pattern(text).matches(whole), matches, "{text} {whole}");
        }
        assert!(pattern("/srv/*").matches("/srv/../etc/passwd") && !pattern("/srv/*").allows("/srv/../etc/passwd"));
        assert!(!pattern("cat *").allows("cat ..") && pattern("cat *").allows("cat a..b"));
        assert!(pattern("../*").allows("../a"));
        let error = "[a".parse::<Pattern>().unwrap_err().to_string();
        assert!(error.starts_with("`[a` is no pattern: "), "{error}");
    }
}
