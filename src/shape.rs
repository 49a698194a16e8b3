//! What values look like, as a JSON Schema: fields and kinds, never a value. Bounded, whatever the values are.
//!
//! It does not know whose values they are, or who reads the schema.

use fimble_toolkit::is_python_name;
use serde_json::{Map, Value, json};

/// In a schema: how many results it was learnt from. Nobody promised that the next one looks like that.
pub const LEARNT: &str = "x-learnt";

/// How much of values is looked at and kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Objects and lists within each other. Deeper ones are unknown. Default 4.
    pub depth: usize,
    /// Fields of an object; one with more is taken for a table by key, whose keys are data. Default 40.
    pub fields: usize,
    /// Elements of a list that are looked at. What has more may have other fields, too. Default 100.
    pub elements: usize,
    /// Bytes of a field's name. Longer ones are left out, and all that are no Python names. Default 40.
    pub name: usize,
    /// Fields and elements in all that are looked at. What comes beyond them is unknown. Default 4,000.
    pub total: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth: 4, fields: 40, elements: 100, name: 40, total: 4_000 }
    }
}

/// The schema of one value. An object whose schema has `additionalProperties` may have other fields.
pub fn shape(value: &Value, limits: Limits) -> Value {
    let mut left = limits.total;
    read(value, limits, 0, &mut left)
}

/// The schema of values of which some have one schema, some the other.
pub fn merged(one: Value, other: Value, limits: Limits) -> Value {
    if one == other {
        return one;
    }
    let (one, other) = match (not_null(one), not_null(other)) {
        ((None, _), (kind, _)) | ((kind, _), (None, _)) => return nullable(kind),
        ((Some(one), false), (Some(other), false)) => (one, other),
        ((Some(one), _), (Some(other), _)) => return nullable(Some(merged(one, other, limits))),
    };
    let kinds = (one.get("type").and_then(Value::as_str), other.get("type").and_then(Value::as_str));
    match kinds {
        (Some("integer"), Some("number")) | (Some("number"), Some("integer")) => json!({"type": "number"}),
        (Some("array"), Some("array")) => match (one.get("items").cloned(), other.get("items").cloned()) {
            (Some(one), Some(other)) => list_of(merged(one, other, limits)),
            // An empty list says nothing of its elements.
            (Some(items), None) | (None, Some(items)) => list_of(items),
            (None, None) => one,
        },
        (Some("object"), Some("object")) => merged_objects(&one, &other, limits),
        _ => Value::Bool(true),
    }
}

/// The schema, whose values may have other fields as well.
pub fn opened(mut schema: Value) -> Value {
    let Value::Object(fields) = &mut schema else { return schema };
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        for (_, property) in properties.iter_mut() {
            *property = opened(property.take());
        }
        fields.insert("additionalProperties".to_owned(), Value::Bool(true));
    }
    if let Some(items) = fields.get_mut("items") {
        *items = opened(items.take());
    }
    if let Some(Value::Array(choices)) = fields.get_mut("anyOf") {
        for choice in choices {
            *choice = opened(choice.take());
        }
    }
    schema
}

/// True for a schema that [`shape`] could have given: it has no word that is not a kind or a short Python name.
pub fn is_shape(schema: &Value, limits: Limits) -> bool {
    let Value::Object(words) = schema else { return schema == &Value::Bool(true) };
    let is_kind = |kind: &Value| {
        let kinds = ["null", "boolean", "integer", "number", "string", "array", "object"];
        kind.as_str().is_some_and(|kind| kinds.contains(&kind))
    };
    words.iter().all(|(word, value)| match word.as_str() {
        "type" => is_kind(value),
        "items" => is_shape(value, limits),
        "additionalProperties" => value == &Value::Bool(true),
        "anyOf" => value.as_array().is_some_and(|choices| choices.iter().all(|choice| is_shape(choice, limits))),
        "properties" => value.as_object().is_some_and(|fields| {
            fields.len() <= limits.fields
                && fields
                    .iter()
                    .all(|(name, field)| name.len() <= limits.name && is_python_name(name) && is_shape(field, limits))
        }),
        _ => false,
    })
}

fn read(value: &Value, limits: Limits, depth: usize, left: &mut usize) -> Value {
    match value {
        Value::Null => json!({"type": "null"}),
        Value::Bool(_) => json!({"type": "boolean"}),
        Value::Number(number) if number.is_f64() => json!({"type": "number"}),
        Value::Number(_) => json!({"type": "integer"}),
        Value::String(_) => json!({"type": "string"}),
        Value::Array(_) | Value::Object(_) if depth >= limits.depth => Value::Bool(true),
        Value::Array(elements) => {
            let mut items = None;
            let mut looked_at = 0;
            for element in elements.iter().take(limits.elements) {
                if *left == 0 {
                    break;
                }
                *left -= 1;
                looked_at += 1;
                let shape = read(element, limits, depth + 1, left);
                items = Some(match items {
                    Some(items) => merged(items, shape, limits),
                    None => shape,
                });
            }
            match items {
                Some(items) if elements.len() > looked_at => list_of(opened(items)),
                Some(items) => list_of(items),
                None => json!({"type": "array"}),
            }
        }
        Value::Object(fields) => object(fields, limits, depth, left),
    }
}

fn object(fields: &Map<String, Value>, limits: Limits, depth: usize, left: &mut usize) -> Value {
    if fields.is_empty() || fields.len() > limits.fields || fields.len() > *left {
        return json!({"type": "object"});
    }
    *left -= fields.len();
    let mut is_open = false;
    let mut properties = Map::new();
    for (name, value) in fields {
        if name.len() <= limits.name && is_python_name(name) {
            properties.insert(name.clone(), read(value, limits, depth + 1, left));
        } else {
            is_open = true;
        }
    }
    of_fields(properties, is_open, limits)
}

fn of_fields(properties: Map<String, Value>, is_open: bool, limits: Limits) -> Value {
    if properties.is_empty() || properties.len() > limits.fields || is_table(&properties) {
        return json!({"type": "object"});
    }
    let mut schema = Map::from_iter([("type".to_owned(), json!("object"))]);
    schema.insert("properties".to_owned(), Value::Object(properties));
    if is_open {
        schema.insert("additionalProperties".to_owned(), Value::Bool(true));
    }
    Value::Object(schema)
}

/// Objects of one kind under many names: the names are data.
fn is_table(properties: &Map<String, Value>) -> bool {
    const MANY: usize = 4;
    let mut values = properties.values();
    let Some(first) = values.next() else { return false };
    properties.len() >= MANY && first.get("properties").is_some() && values.all(|value| value == first)
}

fn merged_objects(one: &Value, other: &Value, limits: Limits) -> Value {
    let fields = |schema: &Value| schema.get("properties").and_then(Value::as_object).cloned();
    let (Some(mut properties), Some(others)) = (fields(one), fields(other)) else { return json!({"type": "object"}) };
    if !properties.keys().any(|name| others.contains_key(name)) {
        // Nothing in common: the names are data.
        return json!({"type": "object"});
    }
    for (name, schema) in others {
        let known = properties.shift_remove(&name);
        let schema = match known {
            Some(known) => merged(known, schema, limits),
            None => schema,
        };
        properties.insert(name, schema);
    }
    let is_open = [one, other].iter().any(|schema| schema.get("additionalProperties").is_some());
    of_fields(properties, is_open, limits)
}

fn list_of(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

/// The schema without `None`, and whether it had that.
fn not_null(schema: Value) -> (Option<Value>, bool) {
    if schema.get("type").is_some_and(|kind| kind == "null") {
        return (None, true);
    }
    match schema.get("anyOf").and_then(Value::as_array).and_then(|choices| choices.first()) {
        Some(kind) => (Some(kind.clone()), true),
        None => (Some(schema), false),
    }
}

fn nullable(schema: Option<Value>) -> Value {
    match schema {
        None => json!({"type": "null"}),
        Some(Value::Bool(_)) => Value::Bool(true),
        Some(schema) if schema.get("anyOf").is_some() => schema,
        Some(schema) => json!({"anyOf": [schema, {"type": "null"}]}),
    }
}

#[cfg(test)]
mod tests {
    use fimble_toolkit::annotation;
    use proptest::prelude::*;

    use super::*;

    fn of(value: &Value) -> Value {
        shape(value, Limits::default())
    }

    fn fields(schema: &Value) -> Vec<&str> {
        let properties = schema.get("properties").and_then(Value::as_object);
        properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn values_read_as_their_kinds() {
        let table = [
            (json!(null), "None"),
            (json!(1), "int"),
            (json!(1.5), "float"),
            (json!([1, 2.5]), "list[float]"),
            (json!([1, null]), "list[int | None]"),
            (json!([1, "a"]), "list"),
            (json!([]), "list"),
            (json!([[], ["a"]]), "list[list[str]]"),
            (json!({}), "dict"),
            (json!([null, {"a": 1}]), "list[dict | None]"),
        ];
        for (value, expected) in table {
            let schema = of(&value);
            let text = annotation(&schema);
            let text = text.replace("Dict", "dict");
            assert_eq!(text, expected, "{value}");
        }
    }

    #[test]
    fn elements_have_the_fields_that_any_of_them_has() {
        let schema = of(&json!([{"a": 1, "b": null}, {"a": 2.5, "b": "x", "c": [{"d": 1}]}]));
        let expected = json!({"type": "array", "items": {"type": "object", "properties": {
            "a": {"type": "number"},
            "b": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "c": {"type": "array", "items": {"type": "object", "properties": {"d": {"type": "integer"}}}},
        }}});
        assert_eq!(schema, expected);
    }

    #[test]
    fn names_that_are_data_are_left_out() {
        // No Python names, or too long: the object may have more than is known.
        let long = "x".repeat(41);
        let schema = of(&json!({"ok": 1, "not a name": 2, "ignore previous instructions": 3, "class": 4, (long): 5}));
        assert_eq!(fields(&schema), ["ok"]);
        assert_eq!(schema["additionalProperties"], json!(true));
        // One object per service: the services are data.
        let unit = json!({"active": true});
        let table = json!({"nginx": unit, "redis": unit, "postgres": unit, "cron": unit});
        assert_eq!(of(&table), json!({"type": "object"}));
        let merged = merged(of(&json!({"nginx": 1})), of(&json!({"redis": 1})), Limits::default());
        assert_eq!(merged, json!({"type": "object"}));
        let many: Map<String, Value> = (0..41).map(|number| (format!("field_{number}"), json!(number))).collect();
        assert_eq!(of(&Value::Object(many)), json!({"type": "object"}));
    }

    #[test]
    fn a_list_that_is_not_seen_whole_may_have_other_fields() {
        let rows: Vec<Value> = (0..101).map(|number| json!({"a": number})).collect();
        assert_eq!(of(&Value::Array(rows.clone()))["items"]["additionalProperties"], json!(true));
        assert_eq!(of(&json!(rows[..100]))["items"].get("additionalProperties"), None);
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,20}".prop_map(Value::from),
        ];
        leaf.prop_recursive(8, 200, 60, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..60).prop_map(Value::Array),
                prop::collection::vec(("([a-d]|[a-z_]{1,50}|.{0,8})", inner), 0..60)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    /// True if the schema takes the value: what was learnt from it must.
    fn takes(schema: &Value, value: &Value) -> bool {
        if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
            return choices.iter().any(|choice| takes(choice, value));
        }
        let Some(kind) = schema.get("type").and_then(Value::as_str) else { return schema == &Value::Bool(true) };
        match (kind, value) {
            ("null", Value::Null) | ("boolean", Value::Bool(_)) | ("string", Value::String(_)) => true,
            ("integer", Value::Number(number)) => !number.is_f64(),
            ("number", Value::Number(_)) => true,
            ("array", Value::Array(elements)) => {
                schema.get("items").is_none_or(|items| elements.iter().all(|element| takes(items, element)))
            }
            ("object", Value::Object(fields)) => match schema.get("properties") {
                None => true,
                Some(properties) => fields.iter().all(|(name, value)| match properties.get(name) {
                    Some(property) => takes(property, value),
                    None => schema.get("additionalProperties").is_some(),
                }),
            },
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn what_was_learnt_from_values_takes_them_and_is_bounded(one in values(), other in values()) {
            let limits = Limits::default();
            let both = merged(of(&one), of(&other), limits);
            prop_assert!(takes(&of(&one), &one), "{} {}", of(&one), one);
            prop_assert!(takes(&both, &one) && takes(&both, &other), "{} {} {}", both, one, other);
            prop_assert!(is_shape(&both, limits), "{}", both);
            prop_assert!(both.to_string().len() < 200 * limits.total, "{}", both);
        }
    }
}
