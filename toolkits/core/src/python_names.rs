//! Python names for the names that servers and documents chose: the same names always give the same names. It does not
//! know what is named.

use std::collections::{HashMap, HashSet};

use crate::is_python_name;

/// A Python name for each of `originals`, in their order; no two are the same.
///
/// A name that is a Python name stays. Otherwise what Python does not take becomes `_`, a keyword gets a `_` behind it,
/// and what is taken by then gets a number. `fallback` begins the names of which nothing is left.
pub fn python_names(originals: &[&str], fallback: &str) -> Vec<String> {
    // Those that need no change come first, so that no neighbour takes a name from its owner.
    let mut taken: HashSet<String> = HashSet::with_capacity(originals.len());
    let mut names: Vec<Option<String>> = Vec::with_capacity(originals.len());
    for original in originals {
        let own = usable(original) && taken.insert((*original).to_owned());
        names.push(own.then(|| (*original).to_owned()));
    }
    // Where the last search for a free number ended: names of one base must not each begin at 2.
    let mut reached: HashMap<String, usize> = HashMap::new();
    let mut chosen = Vec::with_capacity(names.len());
    for (original, name) in originals.iter().zip(names) {
        chosen.push(name.unwrap_or_else(|| {
            let base = python_name(original, fallback);
            let stem = base.trim_end_matches('_').to_owned();
            let number = reached.entry(stem.clone()).or_insert(1);
            let mut name = base;
            while taken.contains(&name) {
                *number += 1;
                name = format!("{stem}_{number}");
            }
            taken.insert(name.clone());
            name
        }));
    }
    chosen
}

/// A Python name that resembles `original`.
pub fn python_name(original: &str, fallback: &str) -> String {
    let ascii = |character: char| if character.is_ascii_alphanumeric() { character } else { '_' };
    let name: String = original.chars().take(MAX_CHARACTERS).map(ascii).collect();
    let name = name.trim_matches('_');
    if name.is_empty() {
        fallback.to_owned()
    } else if name.starts_with(|first: char| first.is_ascii_digit()) {
        format!("{fallback}_{name}")
    } else if usable(name) {
        name.to_owned()
    } else {
        format!("{name}_")
    }
}

/// Longer than any name that a person chose.
const MAX_CHARACTERS: usize = 64;

/// Names with a leading `_` are the proxy's own, and `self` is its first parameter.
fn usable(name: &str) -> bool {
    is_python_name(name) && !name.starts_with('_') && name != "self" && name.len() <= MAX_CHARACTERS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_gets_a_python_name_of_its_own() {
        let table: [(&[&str], &[&str]); 6] = [
            (&["log", "getUser"], &["log", "getUser"]),
            (&["get-sum", "a.b/c-d", "from", "set"], &["get_sum", "a_b_c_d", "from_", "set"]),
            (&["a-b", "a.b", "a_b", "a b"], &["a_b_2", "a_b_3", "a_b", "a_b_4"]),
            (&["x", "x", "from", "from"], &["x", "x_2", "from_", "from_2"]),
            (&["1st", "", "--", "_private", "self"], &["tool_1st", "tool", "tool_2", "private", "self_"]),
            (&["погода", "a\u{0}b"], &["tool", "a_b"]),
        ];
        for (originals, expected) in table {
            assert_eq!(python_names(originals, "tool"), expected, "{originals:?}");
        }
    }
}
