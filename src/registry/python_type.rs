//! A JSON Schema, and a JSON value, as a Python programmer would name their type; only for error messages.

use serde_json::Value;

/// The Python type of values that the schema takes, e.g. `list[str] | None`.
pub(crate) fn schema_type(schema: &Value) -> String {
    let Value::Object(object) = schema else { return "Any".into() };
    if let Some(Value::Array(allowed)) = object.get("enum") {
        return format!("Literal[{}]", allowed.iter().map(literal).collect::<Vec<_>>().join(", "));
    }
    if let Some(value) = object.get("const") {
        return format!("Literal[{}]", literal(value));
    }
    if let Some(Value::Array(choices)) = object.get("anyOf").or_else(|| object.get("oneOf")) {
        return union(choices.iter().map(schema_type).collect());
    }
    match object.get("type") {
        Some(Value::String(word)) => word_type(word, object.get("items")),
        Some(Value::Array(words)) => {
            let words = words.iter().filter_map(Value::as_str);
            union(words.map(|word| word_type(word, object.get("items"))).collect())
        }
        _ => "Any".into(),
    }
}

/// The value as a Python literal, cut to 60 characters.
pub(crate) fn literal(value: &Value) -> String {
    let text = match value {
        Value::Null => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        other => other.to_string(),
    };
    if text.chars().count() <= 60 {
        return text;
    }
    text.chars().take(59).chain(['…']).collect()
}

/// A name as the program wrote it, in quotes, cut as a literal is.
pub(crate) fn quoted(name: &str) -> String {
    literal(&Value::String(name.chars().take(100).collect()))
}

/// The Python type of a value.
pub(crate) fn value_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "None",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "int",
        Value::String(_) => "str",
        Value::Array(_) => "list",
        Value::Object(_) => "dict",
    }
}

fn word_type(word: &str, items: Option<&Value>) -> String {
    match word {
        "string" => "str".into(),
        "integer" => "int".into(),
        "number" => "float".into(),
        "boolean" => "bool".into(),
        "null" => "None".into(),
        "object" => "dict".into(),
        "array" => items.map_or_else(|| "list".into(), |items| format!("list[{}]", schema_type(items))),
        _ => "Any".into(),
    }
}

/// The types joined by `|`, each once, `None` last. Literals are one literal.
fn union(types: Vec<String>) -> String {
    let mut literals = Vec::new();
    let mut others: Vec<String> = Vec::new();
    for kind in types {
        match kind.strip_prefix("Literal[").and_then(|rest| rest.strip_suffix(']')) {
            Some(values) => literals.push(values.to_owned()),
            None if !others.contains(&kind) => others.push(kind),
            None => {}
        }
    }
    if !literals.is_empty() {
        others.insert(0, format!("Literal[{}]", literals.join(", ")));
    }
    others.sort_by_key(|kind| kind == "None");
    if others.is_empty() { "Any".into() } else { others.join(" | ") }
}
