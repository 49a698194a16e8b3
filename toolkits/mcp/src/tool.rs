//! A tool as a server describes it, read as an operation. It is lenient: what it cannot use it leaves out, and a tool
//! that is none does not lose the others.

use std::time::Duration;

use fimble_toolkit::{Operation, Parameter, Risk, python_names};
use serde_json::{Map, Value};

use crate::Limits;

/// What a call of an operation needs to know of its tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tool {
    /// The operation's name.
    pub(crate) operation: String,
    /// The tool's own name.
    pub(crate) name: String,
    /// The parameters' names: in Python, and the server's own.
    pub(crate) parameters: Vec<(String, String)>,
    /// True if results are wrapped as `{"result": …}`.
    pub(crate) wrapped: bool,
}

/// The operations of a server's tools, and the way back. Also what was left out, a sentence each.
pub(crate) fn operations(tools: &[Value], limits: &Limits) -> (Vec<Operation>, Vec<Tool>, Vec<String>) {
    let mut left_out = Vec::new();
    let mut named: Vec<(&str, &Map<String, Value>)> = Vec::new();
    for (index, tool) in tools.iter().enumerate() {
        match check(tool) {
            Ok((name, _)) if named.iter().any(|(earlier, _)| *earlier == name) => {
                left_out.push(format!("the tool `{name}` is listed twice"));
            }
            Ok(tool) => named.push(tool),
            Err(problem) => left_out.push(format!("tool {}: {problem}", index + 1)),
        }
    }
    let originals: Vec<&str> = named.iter().map(|(name, _)| *name).collect();
    let names = python_names(&originals, "tool");
    let read = named.iter().zip(names).map(|((original, tool), name)| operation(name, original, tool, limits));
    let (operations, tools) = read.unzip();
    (operations, tools, left_out)
}

/// The name and the fields of a tool that can be called.
fn check(tool: &Value) -> Result<(&str, &Map<String, Value>), String> {
    let Value::Object(fields) = tool else { return Err("it is no object".to_owned()) };
    let name = match fields.get("name") {
        Some(Value::String(name)) if !name.is_empty() => name,
        _ => return Err("it has no name".to_owned()),
    };
    match fields.get("inputSchema") {
        None | Some(Value::Object(_) | Value::Bool(true) | Value::Null) => Ok((name, fields)),
        Some(_) => Err(format!("`{name}` has an `inputSchema` that is no schema")),
    }
}

fn operation(name: String, original: &str, tool: &Map<String, Value>, limits: &Limits) -> (Operation, Tool) {
    let (parameters, names) = parameters(tool.get("inputSchema").unwrap_or(&Value::Null), limits);
    let (returns, wrapped) = returns(tool.get("outputSchema"));
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(|text| limits.text(text));
    let described = text(tool.get("description")).filter(|text| !text.is_empty());
    let annotations = tool.get("annotations");
    let hint = |key: &str| annotations.and_then(|annotations| annotations.get(key)).and_then(Value::as_bool);
    let risk = match (hint("readOnlyHint"), hint("destructiveHint")) {
        (Some(true), _) => Risk::Read,
        (_, Some(true)) => Risk::Destructive,
        _ => Risk::Write,
    };
    let operation = Operation {
        name: name.clone(),
        description: described.or_else(|| text(tool.get("title"))).unwrap_or_default(),
        parameters,
        returns,
        risk,
        idempotent: risk == Risk::Read || hint("idempotentHint") == Some(true),
        // The call has its own limit; the gate's comes a moment later, because ours can say more.
        timeout: Some(limits.call + Duration::from_secs(1)),
        enabled: true,
    };
    (operation, Tool { operation: name, name: original.to_owned(), parameters: names, wrapped })
}

/// The parameters, the required ones first, and their names in Python and at the server.
fn parameters(schema: &Value, limits: &Limits) -> (Vec<Parameter>, Vec<(String, String)>) {
    let required: Vec<&str> = match schema.get("required") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut fields: Vec<(&str, &Value)> =
        properties.into_iter().flatten().map(|(name, field)| (name.as_str(), field)).collect();
    fields.sort_by_key(|(name, _)| !required.contains(name));
    let originals: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let names = python_names(&originals, "argument");
    let parameters = fields.iter().zip(&names).map(|((original, field), name)| Parameter {
        name: name.clone(),
        description: field.get("description").and_then(Value::as_str).map(|text| limits.text(text)).unwrap_or_default(),
        schema: whole(field, schema),
        required: required.contains(original),
        default: field.get("default").filter(|default| !default.is_null()).cloned(),
    });
    (parameters.collect(), names.iter().cloned().zip(originals.into_iter().map(str::to_owned)).collect())
}

/// The schema of one field with the definitions that it refers to. What is no schema says nothing.
fn whole(field: &Value, root: &Value) -> Value {
    let Value::Object(fields) = field else { return Value::Bool(true) };
    let mut fields = fields.clone();
    if refers(field) {
        for key in ["$defs", "definitions"] {
            if let Some(definitions) = root.get(key) {
                fields.entry(key).or_insert_with(|| definitions.clone());
            }
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

/// The schema of the value that a program gets, and whether it is the `result` of the server's object.
fn returns(schema: Option<&Value>) -> (Value, bool) {
    let Some(schema @ Value::Object(fields)) = schema else { return (Value::Bool(true), false) };
    let properties = fields.get("properties").and_then(Value::as_object);
    let marked = fields.get("x-fastmcp-wrap-result") == Some(&Value::Bool(true));
    match properties.and_then(|properties| properties.get("result").map(|result| (properties.len(), result))) {
        Some((count, result)) if count == 1 || marked => (whole(result, schema), true),
        _ => (schema.clone(), false),
    }
}
