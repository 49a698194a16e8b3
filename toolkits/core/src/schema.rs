//! JSON Schemas as a reader wants them: without references, with the type's name as the title of each object.
//!
//! It does not know Python; whoever renders the schema uses the title as the name of a typed dictionary.

use schemars::Schema;
use serde_json::{Map, Value};

/// The schema with its definitions put in place of the references to them.
///
/// A type that contains itself keeps its reference, and the definitions stay with it.
pub(crate) fn inline(schema: Schema) -> Value {
    let Value::Object(mut root) = schema.to_value() else { return Value::Bool(true) };
    root.remove("$schema");
    let definitions = match root.remove("$defs") {
        Some(Value::Object(definitions)) => definitions,
        _ => Map::new(),
    };
    // The title of anything but an object is its Rust spelling, which tells a Python reader nothing.
    if root.get("properties").is_none() {
        root.remove("title");
    }
    let mut recursive = false;
    let mut schema = resolve(Value::Object(root), &definitions, &mut Vec::new(), &mut recursive);
    if recursive && let Value::Object(root) = &mut schema {
        root.insert("$defs".into(), Value::Object(definitions));
    }
    schema
}

fn resolve(value: Value, definitions: &Map<String, Value>, open: &mut Vec<String>, recursive: &mut bool) -> Value {
    match value {
        Value::Object(mut object) => {
            let name = object.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix("#/$defs/"));
            let Some(name) = name.map(str::to_owned) else {
                return object
                    .into_iter()
                    .map(|(key, inner)| (key, resolve(inner, definitions, open, recursive)))
                    .collect();
            };
            let Some(Value::Object(definition)) = definitions.get(&name) else { return Value::Object(object) };
            if open.contains(&name) {
                *recursive = true;
                return Value::Object(object);
            }
            object.remove("$ref");
            let mut merged = definition.clone();
            if merged.contains_key("properties") {
                merged.entry("title").or_insert_with(|| Value::String(name.clone()));
            }
            // What stands beside the reference, such as the field's own description, is nearer than the type's.
            merged.extend(object);
            open.push(name);
            let resolved =
                merged.into_iter().map(|(key, inner)| (key, resolve(inner, definitions, open, recursive))).collect();
            open.pop();
            resolved
        }
        Value::Array(items) => items.into_iter().map(|item| resolve(item, definitions, open, recursive)).collect(),
        other => other,
    }
}
