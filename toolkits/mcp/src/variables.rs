//! References to variables of the environment in settings. It does not know what the settings mean.

use std::collections::HashMap;

use crate::process::is_inherited;

/// The variables that references may name.
pub(crate) struct Variables(HashMap<String, String>);

impl Variables {
    /// Those of this process, and the host's secrets.
    pub(crate) fn of_process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let mut variables: HashMap<String, String> = std::env::vars_os().filter_map(text).collect();
        for (name, value) in fimble_toolkit::offered_values() {
            let own = variables.entry(name).or_default();
            if own.is_empty() {
                *own = value;
            }
        }
        Self(variables)
    }

    /// The text with each `${NAME}`, `${env:NAME}` and `${NAME:-default}` replaced. What was put in is not looked at
    /// again, and anything else with a `$` stays as it is.
    ///
    /// # Errors
    /// The name of a variable that is not set and has no default.
    pub(crate) fn put_into(&self, text: &str) -> Result<String, String> {
        let mut whole = String::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("${") {
            whole.push_str(before);
            match behind.split_once('}').and_then(|(inside, rest)| Some((reference(inside)?, rest))) {
                Some(((name, default), after)) => {
                    let value = self.0.get(name).map(String::as_str).filter(|value| !value.is_empty());
                    // A variable that is set to nothing counts as set where there is no default.
                    let value = value.or(default).or_else(|| self.0.get(name).map(String::as_str));
                    whole.push_str(value.ok_or_else(|| name.to_owned())?);
                    rest = after;
                }
                None => {
                    whole.push_str("${");
                    rest = behind;
                }
            }
        }
        whole.push_str(rest);
        Ok(whole)
    }
}

impl Variables {
    /// The values that [`put_into`](Self::put_into) puts in place of references, but for those that every program gets.
    pub(crate) fn values_in(&self, text: &str) -> Vec<String> {
        let named = text.split("${").skip(1).filter_map(|behind| reference(behind.split_once('}')?.0));
        let own = named.map(|(name, _)| name).filter(|name| !is_inherited(name));
        own.filter_map(|name| self.0.get(name)).filter(|value| !value.is_empty()).cloned().collect()
    }
}

fn reference(inside: &str) -> Option<(&str, Option<&str>)> {
    let inside = inside.strip_prefix("env:").unwrap_or(inside);
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let is_name = !name.is_empty() && name.chars().all(word) && !name.starts_with(|first: char| first.is_ascii_digit());
    is_name.then_some((name, default))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_replaced_once() {
        let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let variables = Variables([("A", "1"), ("EMPTY", ""), ("NESTED", "${A}")].map(pair).into());
        for (text, expected) in [
            ("Bearer ${A}", Ok("Bearer 1")),
            ("${env:A}${A}", Ok("11")),
            ("${NONE:-x}${EMPTY:-y}${A:-z}[${EMPTY}]", Ok("xy1[]")),
            ("${NESTED}", Ok("${A}")),
            ("$A ${} ${a b} ${unclosed $", Ok("$A ${} ${a b} ${unclosed $")),
            ("${NONE}", Err("NONE")),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(variables.put_into(text), expected, "{text}");
        }
    }

    #[test]
    fn values_are_those_of_references_but_for_what_everybody_knows() {
        let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let variables = Variables([("A", "first"), ("B", "second"), ("HOME", "/home/me")].map(pair).into());
        for (text, expected) in [
            ("--key=${A}", &["first"][..]),
            ("${env:A}:${B:-x}${B}", &["first", "second", "second"]),
            ("${HOME}/data $A ${NONE:-none} ${unclosed ${A", &[]),
            ("${a${B}", &["second"]),
        ] {
            assert_eq!(variables.values_in(text), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken(text in ".{0,60}|(\\$\\{|\\}|A|:-|env:|é){0,12}") {
            let variables = Variables([("A".to_owned(), "1".to_owned())].into());
            if let Ok(put) = variables.put_into(&text) {
                let has_reference = text.contains("${");
                proptest::prop_assert!(has_reference || put == text);
            }
        }
    }
}
