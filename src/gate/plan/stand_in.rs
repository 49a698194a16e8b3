//! A value in place of a result that nobody knows, by the schema of the result: empty, but of the right shape, so that a program
//! which only looks at its form goes on.

use serde_json::{Map, Value};

/// How deep schemas are followed.
const DEPTH: usize = 8;

/// The plainest value that a JSON Schema describes; `null` where it says nothing.
pub(in crate::gate) fn stand_in(schema: &Value) -> Value {
    value(schema, DEPTH)
}

fn value(schema: &Value, depth: usize) -> Value {
    let Some(depth) = depth.checked_sub(1) else { return Value::Null };
    for known in ["const", "default"] {
        if let Some(known) = schema.get(known) {
            return known.clone();
        }
    }
    if let Some(first) = schema.get("enum").and_then(Value::as_array).and_then(|values| values.first()) {
        return first.clone();
    }
    for choice in ["anyOf", "oneOf", "allOf"] {
        if let Some(first) = schema.get(choice).and_then(Value::as_array).and_then(|schemas| schemas.first()) {
            return value(first, depth);
        }
    }
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str).unwrap_or_default(),
        _ if schema.get("properties").is_some() => "object",
        _ => "",
    };
    match kind {
        "string" => Value::from(""),
        "integer" => Value::from(0),
        "number" => Value::from(0.0),
        "boolean" => Value::from(false),
        "array" => Value::Array(Vec::new()),
        "object" => {
            let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
            let fields: Map<String, Value> =
                properties.map(|(name, schema)| (name.clone(), value(schema, depth))).collect();
            Value::Object(fields)
        }
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_stand_in_has_the_shape_that_its_schema_says() {
        for (schema, expected) in [
            (json!(true), json!(null)),
            (json!({"type": "string"}), json!("")),
            (json!({"type": ["integer", "null"]}), json!(0)),
            (json!({"enum": ["a", "b"]}), json!("a")),
            (json!({"anyOf": [{"type": "boolean"}, {"type": "null"}]}), json!(false)),
            (
                json!({"type": "object", "properties": {"n": {"type": "number"}, "l": {"type": "array"}, "x": {}}}),
                json!({"n": 0.0, "l": [], "x": null}),
            ),
        ] {
            assert_eq!(stand_in(&schema), expected, "{schema}");
        }
        let mut deep = json!({"type": "string"});
        for _ in 0..100 {
            deep = json!({"properties": {"a": deep}});
        }
        assert!(stand_in(&deep)["a"]["a"].is_object());
    }
}
