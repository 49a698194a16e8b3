//! A document as JSON, and what its references mean. It does not know operations.

use serde_json::{Map, Value};

use crate::Limits;

/// An OpenAPI document.
#[derive(Debug)]
pub(crate) struct Document {
    root: Map<String, Value>,
    references: usize,
}

impl Document {
    /// The document, 3.0 or 3.1.
    pub(crate) fn new(root: Map<String, Value>, limits: &Limits) -> Self {
        Self { root, references: limits.references }
    }

    /// The fields of the document's first level.
    pub(crate) fn fields(&self) -> &Map<String, Value> {
        &self.root
    }

    /// A field of the document's first level.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.root.get(key)
    }

    /// The object that `value` is or refers to, through references to references.
    ///
    /// # Errors
    /// One sentence: what the reference is and why it leads nowhere.
    pub(crate) fn object<'a>(&'a self, value: &'a Value) -> Result<&'a Map<String, Value>, String> {
        let mut value = value;
        for _ in 0..self.references {
            let Value::Object(fields) = value else { return Err("there is no object where one must be".to_owned()) };
            let Some(reference) = fields.get("$ref").and_then(Value::as_str) else { return Ok(fields) };
            value = self.target(reference)?;
        }
        Err(format!("a reference leads to another one more than {} times", self.references))
    }

    /// What a reference names, which may be a reference again.
    ///
    /// # Errors
    /// One sentence, as for [`object`](Self::object).
    pub(crate) fn target(&self, reference: &str) -> Result<&Value, String> {
        let shown: String = reference.chars().take(MOST_SHOWN).collect();
        let Some(pointer) = reference.strip_prefix('#') else {
            return Err(format!("`{shown}` is in another file, which is not read"));
        };
        let found = self.at(pointer).or_else(|| self.at(&decoded(pointer)));
        found.ok_or_else(|| format!("`{shown}` is not in the document"))
    }

    /// What a JSON pointer means. The document itself is no schema, parameter or path, so that it is nothing here.
    fn at(&self, pointer: &str) -> Option<&Value> {
        let rest = pointer.strip_prefix('/')?;
        // Nearly all are of this form, and need no text of their own.
        if let Some((kind, name)) = rest.strip_prefix("components/").and_then(|below| below.split_once('/'))
            && !name.contains(['/', '~'])
        {
            return self.root.get("components")?.get(kind)?.get(name);
        }
        let (first, below) =
            rest.split_once('/').map_or((rest, ""), |(first, _)| (first, rest.get(first.len()..).unwrap_or_default()));
        self.root.get(&first.replace("~1", "/").replace("~0", "~"))?.pointer(below)
    }
}

/// Characters of a reference that a problem shows.
const MOST_SHOWN: usize = 120;

/// A pointer in a URL may be percent-encoded.
fn decoded(pointer: &str) -> String {
    let mut bytes = Vec::with_capacity(pointer.len());
    let mut rest = pointer.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let code = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The text of a field.
pub(crate) fn text<'a>(fields: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    fields.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
}

/// The items of a field that is a list; none where it is not.
pub(crate) fn items<'a>(fields: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    fields.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// True if the field is there and true.
pub(crate) fn is_true(fields: &Map<String, Value>, key: &str) -> bool {
    fields.get(key) == Some(&Value::Bool(true))
}

/// The first sentence of a description, in one line, without the tags of HTML and the marks of links and code blocks.
pub(crate) fn sentence(text: &str, most: usize) -> String {
    let mut plain = String::new();
    let mut in_tag = false;
    // A description may be a whole manual; its first sentence is near its beginning.
    let mut characters = text.chars().take(most.saturating_mul(8)).peekable();
    while let Some(character) = characters.next() {
        match character {
            '<' if characters.peek().is_some_and(|next| next.is_ascii_alphabetic() || *next == '/') => in_tag = true,
            '>' if in_tag => in_tag = false,
            _ if in_tag => {}
            character if character.is_whitespace() || character.is_control() => {
                if !plain.is_empty() && !plain.ends_with(' ') {
                    plain.push(' ');
                }
            }
            '#' | '*' if plain.is_empty() => {}
            character => plain.push(character),
        }
    }
    let plain = plain.trim();
    let end = ENDS.iter().filter_map(|end| plain.find(end).map(|place| place + 1)).min();
    let first = end.and_then(|end| plain.get(..end)).unwrap_or(plain);
    if first.chars().count() <= most {
        return first.to_owned();
    }
    let cut: String = first.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", cut.trim_end())
}

/// What ends a sentence.
const ENDS: [&str; 3] = [". ", "! ", "? "];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reference_leads_to_its_object_or_says_why_not() {
        let root = json!({
            "a": {"$ref": "#/b~1c"}, "b/c": {"type": "string"}, "loop": {"$ref": "#/loop"},
            "x": {"two words": {"type": "integer"}},
        });
        let document = Document::new(root.as_object().cloned().unwrap(), &Limits::default());
        let resolve = |reference: &str| {
            let value = json!({"$ref": reference});
            document.object(&value).map(|fields| fields["type"].as_str().unwrap_or_default().to_owned())
        };
        assert_eq!(resolve("#/a"), Ok("string".to_owned()));
        assert_eq!(resolve("#/x/two%20words"), Ok("integer".to_owned()));
        assert_eq!(resolve("#/none"), Err("`#/none` is not in the document".to_owned()));
        assert_eq!(resolve("x.yaml#/a"), Err("`x.yaml#/a` is in another file, which is not read".to_owned()));
        assert_eq!(resolve("#/loop"), Err("a reference leads to another one more than 32 times".to_owned()));
    }

    #[test]
    fn a_description_is_its_first_sentence() {
        let table = [
            ("Lists pets.", "Lists pets."),
            ("Lists pets. And more.", "Lists pets."),
            ("<p>Lists <b>all</b>\n  pets. More</p>", "Lists all pets."),
            ("### Pets\nare listed", "Pets are listed"),
            ("a < b and c", "a < b and c"),
            ("", ""),
            ("0123456789 123456789 x", "0123456789 12345678…"),
        ];
        for (text, expected) in table {
            assert_eq!(sentence(text, 20), expected, "{text}");
        }
    }
}
