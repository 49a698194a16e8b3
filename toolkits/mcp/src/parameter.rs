//! The parameters of a tool: names, schemas within their limits, and what a call needs to know of each. It does not know
//! what a tool is beside them.

use fimble_toolkit::Parameter;
use serde_json::{Map, Value, json};

use crate::Limits;
use crate::size::json_bytes;
use fimble_toolkit::python_names;

/// One parameter of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    /// Its name in Python.
    pub(crate) name: String,
    /// The server's own name for it.
    pub(crate) original: String,
    /// True if it can be left out and `null` is no value of it: `None` in a program leaves it out then.
    pub(crate) leaves_null_out: bool,
}

/// The parameters, the required ones first, what a call needs to know of them, and the one for what is not declared.
pub(crate) fn parameters(schema: &Value, limits: &Limits) -> (Vec<Parameter>, Vec<Field>, Option<String>) {
    let required: Vec<&str> = match schema.get("required") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut fields: Vec<(&str, &Value)> =
        properties.into_iter().flatten().map(|(name, field)| (name.as_str(), field)).collect();
    fields.sort_by_key(|(name, _)| !required.contains(name));
    let allows_more = schema == &Value::Bool(true)
        || schema.get("additionalProperties").is_some_and(|more| more == &Value::Bool(true) || more.is_object());
    let mut originals: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    if allows_more {
        originals.push(MORE);
    }
    let mut names = python_names(&originals, "argument");
    let more = if allows_more { names.pop() } else { None };
    let definitions = definitions(schema, limits);
    let mut parameters: Vec<Parameter> = fields
        .iter()
        .zip(&names)
        .map(|((original, field), name)| Parameter {
            name: name.clone(),
            description: field
                .get("description")
                .and_then(Value::as_str)
                .map(|text| limits.text(text))
                .unwrap_or_default(),
            schema: whole(field, &definitions, limits),
            required: required.contains(original),
            default: field.get("default").filter(|default| !default.is_null()).cloned(),
        })
        .collect();
    parameters.extend(more.iter().map(|name| Parameter {
        name: name.clone(),
        description: "Further arguments by name.".to_owned(),
        schema: json!({"type": "object"}),
        required: false,
        default: None,
    }));
    let known = fields.iter().zip(names).map(|((original, field), name)| Field {
        name,
        original: (*original).to_owned(),
        leaves_null_out: !required.contains(original) && !allows_null(field),
    });
    (parameters, known.collect(), more)
}

/// The name of the parameter for what is not declared.
const MORE: &str = "more_arguments";

/// True unless the schema says plainly that `null` is none of its values.
fn allows_null(field: &Value) -> bool {
    match field.get("type") {
        Some(Value::String(name)) => name == "null",
        Some(Value::Array(names)) => names.iter().any(|name| name == "null"),
        _ => !["enum", "const", "anyOf", "oneOf"].iter().any(|key| field.get(key).is_some_and(|of| !says_null(of))),
    }
}

fn says_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(says_null),
        Value::Object(fields) => fields.get("type").is_none_or(|name| name == "null" || !name.is_string()),
        _ => false,
    }
}

/// What a schema's parts refer to, unless it is too large to stand beside each of them.
pub(crate) fn definitions(root: &Value, limits: &Limits) -> Map<String, Value> {
    let found = ["$defs", "definitions"].iter().filter_map(|key| Some(((*key).to_owned(), root.get(key)?.clone())));
    let found = Value::Object(found.collect());
    match found {
        Value::Object(fields) if json_bytes(&Value::Object(fields.clone())) <= limits.schema_bytes => fields,
        _ => Map::new(),
    }
}

/// The schema of one field with the definitions that it refers to. What is no schema, or too large a one, says nothing.
pub(crate) fn whole(field: &Value, definitions: &Map<String, Value>, limits: &Limits) -> Value {
    let Value::Object(fields) = field else { return Value::Bool(true) };
    if json_bytes(field) > limits.schema_bytes {
        return Value::Bool(true);
    }
    let mut fields = fields.clone();
    if refers(field) {
        if definitions.is_empty() {
            return Value::Bool(true);
        }
        for (key, definition) in definitions {
            fields.entry(key.clone()).or_insert_with(|| definition.clone());
        }
    }
    Value::Object(fields)
}

fn refers(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(key, inner)| key == "$ref" || refers(inner)),
        Value::Array(items) => items.iter().any(refers),
        _ => false,
    }
}
