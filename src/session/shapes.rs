//! What the variables of a session look like, for whoever checks a program before it runs.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Session;
use crate::record::{Variable, VariableKind};
use crate::shape::{Limits, shape};

/// A larger content in bytes is not looked at.
const LARGEST: u64 = 64 * 1024;

/// Most variables that are looked at for one program.
const MOST: usize = 20;

impl Session {
    /// The JSON Schemas of the variables that a program names, where they are known to the last field. What the store cannot
    /// say now is left out: whoever runs the program will hear of it.
    pub async fn shapes(&self, program: &str) -> BTreeMap<String, Value> {
        let is_named = |variable: &&Variable| {
            variable.kind == VariableKind::Value
                && variable.size <= LARGEST
                && matches!(variable.type_name.split('[').next(), Some("list" | "dict" | "str" | "Record"))
                && program.contains(&variable.name)
        };
        let names: Vec<String> =
            self.variables.values().filter(is_named).take(MOST).map(|variable| variable.name.clone()).collect();
        if names.is_empty() {
            return BTreeMap::new();
        }
        let contents = self.store.contents(&self.record.id, &names).await.unwrap_or_default();
        let read = contents.into_iter().filter_map(|written| {
            let value = serde_json::from_str(&written.content).ok()?;
            Some((written.variable.name, shape(&plain(value), Limits::default())))
        });
        read.collect()
    }
}

/// The value without the marks of records and of lists that are met twice. What has another mark stays an object of which
/// nothing is known.
fn plain(value: Value) -> Value {
    match value {
        Value::Array(elements) => elements.into_iter().map(plain).collect(),
        Value::Object(mut fields) => match fields.get("$").and_then(Value::as_str) {
            // A table with keys that are no text is a list of pairs.
            Some("records") => fields.remove("v").map_or(Value::Null, plain),
            Some("record" | "dict") if fields.get("v").is_some_and(Value::is_object) => plain(fields["v"].take()),
            Some("list") if fields.get("v").is_some_and(Value::is_array) => plain(fields["v"].take()),
            Some(_) => Value::Object(serde_json::Map::from_iter([("$".to_owned(), Value::Null)])),
            None => Value::Object(fields.into_iter().map(|(name, value)| (name, plain(value))).collect()),
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marks_of_records_are_looked_through_and_others_hide_what_they_have() {
        let content = json!({"$": "records", "v": [{"name": "a", "at": {"$": "datetime", "v": "2026-01-01"}}]});
        let schema = shape(&plain(content), Limits::default());
        let expected = json!({"type": "array", "items": {"type": "object", "properties": {
            "name": {"type": "string"}, "at": {"type": "object"},
        }}});
        assert_eq!(schema, expected);
        assert_eq!(
            shape(&plain(json!({"$": "defaultdict", "v": [["a", 1]]})), Limits::default()),
            json!({"type": "object"})
        );
    }
}
