//! Values that no output may show, and the mask that replaces them.

use serde_json::Value;

/// What a secret is replaced by.
pub(super) const MASK: &str = "********";

/// Shorter values are not masked: they would blot out ordinary text.
const SHORTEST: usize = 6;

/// Values that live in the host and are masked in results, prints, events and prompts.
#[derive(Clone, Default)]
pub struct Secrets {
    values: Vec<String>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Secrets({})", self.values.len())
    }
}

impl Secrets {
    /// Secrets of these values; those of fewer than six bytes are left out. Longer ones are masked first.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut values: Vec<String> = values.into_iter().filter(|value| value.len() >= SHORTEST).collect();
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        Self { values }
    }

    /// `text` with every secret replaced.
    pub fn mask(&self, text: &str) -> String {
        self.values.iter().fold(text.to_owned(), |text, secret| {
            if text.contains(secret.as_str()) { text.replace(secret.as_str(), MASK) } else { text }
        })
    }

    /// Replaces every secret in the strings and keys of `value`.
    pub fn mask_value(&self, value: &mut Value) {
        if self.values.is_empty() {
            return;
        }
        match value {
            Value::String(text) => {
                if self.values.iter().any(|secret| text.contains(secret.as_str())) {
                    *text = self.mask(text);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask_value(item)),
            Value::Object(fields) => {
                if fields.keys().any(|key| self.values.iter().any(|secret| key.contains(secret.as_str()))) {
                    *fields = std::mem::take(fields).into_iter().map(|(key, item)| (self.mask(&key), item)).collect();
                }
                fields.values_mut().for_each(|item| self.mask_value(item));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_masked_in_nested_strings_and_keys() {
        let secrets = Secrets::new(["hunter22".to_owned(), "ab".to_owned()]);
        let mut value = json!({"a": ["x hunter22 y", 1], "hunter22": {"ab": "ab"}});
        secrets.mask_value(&mut value);
        assert_eq!(value, json!({"a": ["x ******** y", 1], "********": {"ab": "ab"}}));
    }

    #[test]
    fn a_secret_that_contains_another_is_masked_whole() {
        let secrets = Secrets::new(["secret".to_owned(), "secret-long".to_owned()]);
        assert_eq!(secrets.mask("a secret-long b secret c"), "a ******** b ******** c");
    }
}
