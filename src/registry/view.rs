//! Who sees which toolkits and operations. It does not know who asks.

use fimble_toolkit::{Declaration, Operation};
use serde::{Deserialize, Serialize};

/// What of the registry somebody sees: `toolkits.view` for everybody, `toolkits.tenants.NAME` for one tenant. A pattern is
/// `toolkit` or `toolkit.operation`, and `*` in it is any characters: `git_toolkit`, `files_toolkit.read*`, `*.delete*`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct View {
    /// Only what matches one of these. Default all.
    pub only: Vec<String>,
    /// Not what matches one of these. Default none.
    pub without: Vec<String>,
}

impl View {
    /// True if it shows that operation.
    pub fn shows(&self, toolkit: &str, operation: &str) -> bool {
        let is_named = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, toolkit, operation));
        (self.only.is_empty() || is_named(&self.only)) && !is_named(&self.without)
    }
}

/// Views laid over each other: what each of them shows. The default shows all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope(Vec<View>);

impl Scope {
    /// What all of `views` show.
    pub fn of(views: impl IntoIterator<Item = View>) -> Self {
        Self(views.into_iter().filter(|view| *view != View::default()).collect())
    }

    /// True if all its views show that operation.
    pub fn shows(&self, toolkit: &str, operation: &str) -> bool {
        self.0.iter().all(|view| view.shows(toolkit, operation))
    }

    /// What it leaves of a toolkit; `None` if nothing, unless the toolkit has nothing.
    pub fn narrow(&self, mut declaration: Declaration) -> Option<Declaration> {
        let had = declaration.operations.len();
        let name = &declaration.name;
        declaration.operations.retain(|Operation { name: operation, .. }| self.shows(name, operation));
        (had == 0 || !declaration.operations.is_empty()).then_some(declaration)
    }
}

/// A pattern without a `.` means the whole toolkit.
fn matches(pattern: &str, toolkit: &str, operation: &str) -> bool {
    match pattern.split_once('.') {
        Some((of, what)) => glob(of.as_bytes(), toolkit.as_bytes()) && glob(what.as_bytes(), operation.as_bytes()),
        None => glob(pattern.as_bytes(), toolkit.as_bytes()),
    }
}

/// True if `text` is `pattern`, with any characters for each `*`. Goes back to the last `*` only, so it takes no longer than
/// the one length times the other.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    let mut star = None;
    while read < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, read));
                at += 1;
            }
            Some(byte) if *byte == text[read] => {
                at += 1;
                read += 1;
            }
            _ => {
                let Some((back, from)) = star else { return false };
                star = Some((back, from + 1));
                at = back + 1;
                read = from + 1;
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn view(only: &[&str], without: &[&str]) -> View {
        let owned = |patterns: &[&str]| patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        View { only: owned(only), without: owned(without) }
    }

    #[test]
    fn patterns_name_toolkits_and_operations() {
        for (only, without, shown) in [
            (&[][..], &[][..], true),
            (&["git_toolkit"], &[], true),
            (&["git_toolkit.log"], &[], true),
            (&["git*"], &[], true),
            (&["*.l*g"], &[], true),
            (&["git_toolkit.lo"], &[], false),
            (&["host_toolkit", "files_toolkit.*"], &[], false),
            (&["log"], &[], false),
            (&[""], &[], false),
            (&[], &["git_toolkit"], false),
            (&["git_toolkit"], &["*.log"], false),
            (&["git_toolkit"], &["*.delete*"], true),
        ] {
            assert_eq!(view(only, without).shows("git_toolkit", "log"), shown, "{only:?} without {without:?}");
        }
        let both = Scope::of([view(&["git_toolkit"], &[]), view(&[], &["*.log"])]);
        assert_eq!((both.shows("git_toolkit", "log"), both.shows("git_toolkit", "show")), (false, true));
        assert!(Scope::default().shows("x", "y"));
    }

    proptest! {
        #[test]
        fn a_glob_is_what_its_regular_expression_is(pattern in "[ab*]{0,8}", text in "[ab]{0,10}") {
            // Told by trying all cuts, slowly.
            fn slow(pattern: &[u8], text: &[u8]) -> bool {
                match pattern.split_first() {
                    None => text.is_empty(),
                    Some((b'*', rest)) => (0..=text.len()).any(|cut| slow(rest, &text[cut..])),
                    Some((byte, rest)) => text.split_first().is_some_and(|(first, left)| first == byte && slow(rest, left)),
                }
            }
            prop_assert_eq!(glob(pattern.as_bytes(), text.as_bytes()), slow(pattern.as_bytes(), text.as_bytes()));
        }
    }
}
