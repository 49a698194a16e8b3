//! Compares a Python literal with a JSON Schema. Says nothing where either is not known for sure.

use ruff_python_ast::{Expr, Number, UnaryOp};
use serde_json::{Value, json};

/// What the literal is, if the schema surely does not allow it: `the str "5"`.
pub(super) fn mismatch(schema: &Value, literal: &Expr) -> Option<String> {
    let shape = shape(literal)?;
    (!allows(schema, schema, &shape, 0)).then(|| shape.text())
}

/// The value of a literal, if all of it is known.
pub(super) fn known_literal(literal: &Expr) -> Option<Value> {
    match shape(literal)? {
        Shape::Known(value) => Some(value),
        _ => None,
    }
}

/// True if the schema may allow the value.
pub(super) fn takes(schema: &Value, value: &Value) -> bool {
    allows(schema, schema, &Shape::Known(value.clone()), 0)
}

/// What is known of a literal.
enum Shape<'a> {
    /// All of it.
    Known(Value),
    /// A string whose text is not known.
    Text,
    /// A list or tuple, with its elements.
    List(&'a [Expr]),
    /// A dict, with its values by those keys that are literal.
    Dict(Vec<(String, &'a Expr)>),
}

impl Shape<'_> {
    fn text(&self) -> String {
        match self {
            Shape::Known(Value::Null) => "None".to_owned(),
            Shape::Known(value) => format!("the {} {}", kind_name(value), fimble_toolkit::literal(value)),
            Shape::Text => "a str".to_owned(),
            Shape::List(_) => "a list".to_owned(),
            Shape::Dict(_) => "a dict".to_owned(),
        }
    }
}

fn kind_name(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "int",
        _ => "str",
    }
}

fn shape(expression: &Expr) -> Option<Shape<'_>> {
    Some(match expression {
        Expr::NoneLiteral(_) => Shape::Known(Value::Null),
        Expr::BooleanLiteral(literal) => Shape::Known(Value::Bool(literal.value)),
        Expr::StringLiteral(literal) => Shape::Known(Value::String(literal.value.to_str().to_owned())),
        Expr::FString(_) => Shape::Text,
        Expr::NumberLiteral(literal) => Shape::Known(number(&literal.value, 1)?),
        Expr::UnaryOp(negated) if negated.op == UnaryOp::USub => match &*negated.operand {
            Expr::NumberLiteral(literal) => Shape::Known(number(&literal.value, -1)?),
            _ => return None,
        },
        Expr::List(list) => Shape::List(&list.elts),
        Expr::Tuple(tuple) => Shape::List(&tuple.elts),
        Expr::Dict(dict) => Shape::Dict(
            dict.items
                .iter()
                .filter_map(|item| match item.key.as_ref()? {
                    Expr::StringLiteral(key) => Some((key.value.to_str().to_owned(), &item.value)),
                    _ => None,
                })
                .collect(),
        ),
        _ => return None,
    })
}

fn number(number: &Number, sign: i64) -> Option<Value> {
    match number {
        Number::Int(integer) => integer.as_i64().map(|value| json!(sign * value)),
        Number::Float(value) => serde_json::Number::from_f64(*value).map(Value::Number),
        Number::Complex { .. } => None,
    }
}

fn allows(root: &Value, schema: &Value, shape: &Shape<'_>, depth: u32) -> bool {
    let Value::Object(fields) = schema else { return schema != &Value::Bool(false) };
    if depth > 16 {
        return true;
    }
    if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return target.is_none_or(|target| allows(root, target, shape, depth + 1));
    }
    if let Some(values) = fields.get("enum").and_then(Value::as_array) {
        return allows_values(values, shape);
    }
    if let Some(value) = fields.get("const") {
        return allows_values(std::slice::from_ref(value), shape);
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(choices) = fields.get(key).and_then(Value::as_array) {
            return choices.iter().any(|choice| allows(root, choice, shape, depth + 1));
        }
    }
    match fields.get("type") {
        Some(Value::String(kind)) => allows_type(root, schema, kind, shape, depth),
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).any(|kind| allows_type(root, schema, kind, shape, depth))
        }
        _ => true,
    }
}

fn allows_values(values: &[Value], shape: &Shape<'_>) -> bool {
    match shape {
        Shape::Known(value) => values.contains(value),
        Shape::Text => values.iter().any(Value::is_string),
        Shape::List(_) => values.iter().any(Value::is_array),
        Shape::Dict(_) => values.iter().any(Value::is_object),
    }
}

fn allows_type(root: &Value, schema: &Value, kind: &str, shape: &Shape<'_>, depth: u32) -> bool {
    match (kind, shape) {
        ("string", Shape::Known(Value::String(_)) | Shape::Text) => true,
        ("integer", Shape::Known(Value::Number(number))) => {
            !number.is_f64() || number.as_f64().is_some_and(|value| value.fract() == 0.0)
        }
        ("number", Shape::Known(Value::Number(_))) => true,
        ("boolean", Shape::Known(Value::Bool(_))) => true,
        ("null", Shape::Known(Value::Null)) => true,
        ("array", Shape::List(elements)) => {
            let Some(items) = schema.get("items") else { return true };
            elements.iter().all(|element| allows_nested(root, items, element, depth))
        }
        ("object", Shape::Dict(values)) => values.iter().all(|(key, value)| {
            let property = schema.get("properties").and_then(|properties| properties.get(key));
            property.is_none_or(|property| allows_nested(root, property, value, depth))
        }),
        ("string" | "integer" | "number" | "boolean" | "null" | "array" | "object", _) => false,
        _ => true,
    }
}

fn allows_nested(root: &Value, schema: &Value, value: &Expr, depth: u32) -> bool {
    shape(value).is_none_or(|shape| allows(root, schema, &shape, depth + 1))
}
