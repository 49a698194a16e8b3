//! A tool as a server describes it, read as an operation. It is lenient: what it cannot use it leaves out, and a tool
//! that is none does not lose the others.

use std::time::Duration;

use fimble_toolkit::{Operation, Risk};
use serde_json::{Map, Value};

use crate::parameter::{Field, definitions, parameters, whole};
use crate::size::json_bytes;
use crate::{Limits, Server};
use fimble_toolkit::python_names;

/// What a call of an operation needs to know of its tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tool {
    /// The operation's name.
    pub(crate) operation: String,
    /// The tool's own name.
    pub(crate) name: String,
    /// Its parameters.
    pub(crate) fields: Vec<Field>,
    /// The parameter that takes what the schema allows beside its own, if it does.
    pub(crate) more: Option<String>,
    /// True if results are wrapped as `{"result": …}`.
    pub(crate) wrapped: bool,
}

impl Tool {
    /// The arguments of a call under the server's own names.
    pub(crate) fn arguments(&self, given: Map<String, Value>) -> Map<String, Value> {
        let mut arguments = Map::new();
        for (name, value) in given {
            match self.fields.iter().find(|field| field.name == name) {
                Some(field) if field.leaves_null_out && value.is_null() => {}
                Some(field) => drop(arguments.insert(field.original.clone(), value)),
                None => match value {
                    Value::Object(more) if self.more.as_ref() == Some(&name) => {
                        // What was given by name wins.
                        for (name, value) in more {
                            arguments.entry(name).or_insert(value);
                        }
                    }
                    Value::Null if self.more.as_ref() == Some(&name) => {}
                    value => drop(arguments.insert(name, value)),
                },
            }
        }
        arguments
    }
}

/// A server's list of tools, read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Listed {
    /// The operations.
    pub(crate) operations: Vec<Operation>,
    /// The way back, in the same order.
    pub(crate) tools: Vec<Tool>,
    /// What cannot be used, a sentence each.
    pub(crate) unusable: Vec<String>,
    /// The tools that the settings leave out.
    pub(crate) filtered: Vec<String>,
}

/// The operations of a server's tools, and the way back.
pub(crate) fn operations(tools: &[Value], server: &Server, limits: &Limits) -> Listed {
    let (mut left_out, mut filtered) = (Vec::new(), Vec::new());
    let mut named: Vec<(&str, &Map<String, Value>)> = Vec::new();
    for (index, tool) in tools.iter().enumerate() {
        match check(tool, limits) {
            Ok((name, _)) if named.iter().any(|(earlier, _)| *earlier == name) => {
                left_out.push(format!("the tool `{}` is listed twice", shown(name, limits)));
            }
            Ok((name, _)) if !server.uses(name) => filtered.push(shown(name, limits)),
            Ok(tool) => named.push(tool),
            Err(problem) => left_out.push(format!("tool {}: {problem}", index + 1)),
        }
    }
    let originals: Vec<&str> = named.iter().map(|(name, _)| *name).collect();
    let names = python_names(&originals, "tool");
    let read = named.iter().zip(names).map(|((original, tool), name)| operation(name, original, tool, limits));
    let (operations, tools) = read.unzip();
    Listed { operations, tools, unusable: left_out, filtered }
}

/// The name and the fields of a tool that can be called.
fn check<'a>(tool: &'a Value, limits: &Limits) -> Result<(&'a str, &'a Map<String, Value>), String> {
    let Value::Object(fields) = tool else { return Err("it is no object".to_owned()) };
    let name = match fields.get("name") {
        Some(Value::String(name)) if !name.is_empty() => name,
        _ => return Err("it has no name".to_owned()),
    };
    match fields.get("inputSchema") {
        Some(Value::Object(schema)) => {
            let count = schema.get("properties").and_then(Value::as_object).map_or(0, Map::len);
            if count > limits.parameters {
                return Err(format!("`{}` has {count} parameters", shown(name, limits)));
            }
            Ok((name, fields))
        }
        None | Some(Value::Bool(true) | Value::Null) => Ok((name, fields)),
        Some(_) => Err(format!("`{}` has an `inputSchema` that is no schema", shown(name, limits))),
    }
}

/// A name as a person may see it.
pub(crate) fn shown(name: &str, limits: &Limits) -> String {
    Limits { text_characters: SHOWN_CHARACTERS, ..*limits }.text(name)
}

/// Characters of a name that is shown.
const SHOWN_CHARACTERS: usize = 100;

fn operation(name: String, original: &str, tool: &Map<String, Value>, limits: &Limits) -> (Operation, Tool) {
    let (parameters, fields, more) = parameters(tool.get("inputSchema").unwrap_or(&Value::Null), limits);
    let (returns, wrapped) = returns(tool.get("outputSchema"), limits);
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
        // A call has limits of its own, which can say more; the gate's is behind the latest of them.
        timeout: Some(limits.start * 3 + limits.call_most + limits.person + Duration::from_secs(1)),
        enabled: true,
        paging: None,
    };
    (operation, Tool { operation: name, name: original.to_owned(), fields, more, wrapped })
}

/// The schema of the value that a program gets, and whether it is the `result` of the server's object.
fn returns(schema: Option<&Value>, limits: &Limits) -> (Value, bool) {
    let Some(schema @ Value::Object(fields)) = schema else { return (Value::Bool(true), false) };
    let properties = fields.get("properties").and_then(Value::as_object);
    let marked = fields.get("x-fastmcp-wrap-result") == Some(&Value::Bool(true));
    match properties.and_then(|properties| properties.get("result").map(|result| (properties.len(), result))) {
        Some((count, result)) if count == 1 || marked => (whole(result, &definitions(schema, limits), limits), true),
        _ if json_bytes(schema) > limits.schema_bytes => (Value::Bool(true), false),
        _ => (schema.clone(), false),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::Endpoint;

    fn server() -> Server {
        let endpoint = Endpoint::Command { command: "x".into(), args: vec![], env: Default::default(), cwd: None };
        Server::new("server", endpoint)
    }

    fn read(tool: Value) -> (Operation, Tool) {
        let mut listed = operations(&[tool], &server(), &Limits::default());
        (listed.operations.remove(0), listed.tools.remove(0))
    }

    #[test]
    fn arguments_go_by_the_servers_names() {
        let schema = json!({
            "properties": {
                "from": {"type": "string"}, "limit": {"type": "integer"}, "note": {"type": ["string", "null"]},
                "any": {}, "kind": {"enum": ["a"]}, "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            },
            "required": ["from"],
            "additionalProperties": true,
        });
        let (operation, tool) = read(json!({"name": "a", "inputSchema": schema}));
        let names: Vec<&str> = operation.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
        assert_eq!(names, ["from_", "limit", "note", "any", "kind", "either", "more_arguments"]);
        let nothing = json!({"from_": null, "limit": null, "note": null, "any": null, "kind": null, "either": null});
        let expected = json!({"from": null, "note": null, "any": null, "either": null});
        let arguments = |given: Value| Value::Object(tool.arguments(given.as_object().cloned().unwrap()));
        assert_eq!(arguments(nothing), expected);
        let more = json!({"from_": "a", "more_arguments": {"from": "b", "x-y": 1}});
        assert_eq!(arguments(more), json!({"from": "a", "x-y": 1}));
    }

    #[test]
    fn what_is_too_large_says_nothing() {
        let large = json!({"Large": {"type": "string", "description": "x".repeat(Limits::default().schema_bytes)}});
        let schema = json!({"properties": {"a": {"$ref": "#/$defs/Large"}, "b": {"type": "string"}}, "$defs": large});
        let (operation, _) = read(json!({"name": "a", "inputSchema": schema}));
        let schemas: Vec<&Value> = operation.parameters.iter().map(|parameter| &parameter.schema).collect();
        assert_eq!(schemas, [&Value::Bool(true), &json!({"type": "string"})]);
        let many: Map<String, Value> = (0..1_000).map(|number| (format!("p{number}"), json!({}))).collect();
        let listed =
            operations(&[json!({"name": "a", "inputSchema": {"properties": many}})], &server(), &Limits::default());
        assert_eq!(listed.unusable, ["tool 1: `a` has 1000 parameters"]);
    }

    /// JSON that resembles a list of tools.
    fn anything() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::from),
            "[a-z$._ -]{0,6}|from|self|é|\u{0}".prop_map(Value::String),
        ];
        leaf.prop_recursive(6, 60, 6, |inner| {
            let key = "name|inputSchema|outputSchema|properties|required|type|\\$ref|\\$defs|default|annotations|\
                       additionalProperties|result|description|enum|anyOf|[a-z.-]{0,3}";
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
                prop::collection::vec((key, inner), 0..6)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Whatever a server lists, what comes of it can be registered, and each operation finds its tool.
        #[test]
        fn any_list_gives_names_that_python_takes(mut tools in prop::collection::vec(anything(), 0..8)) {
            for (index, tool) in tools.iter_mut().enumerate().filter(|(index, _)| index % 2 == 0) {
                if let Value::Object(fields) = tool {
                    fields.insert("name".to_owned(), Value::String(format!("a{}b", [".", "-", "/"][index % 3])));
                }
            }
            let listed = operations(&tools, &server(), &Limits::default());
            prop_assert_eq!(listed.operations.len(), listed.tools.len());
            let mut names = std::collections::HashSet::new();
            for (operation, tool) in listed.operations.iter().zip(&listed.tools) {
                prop_assert!(fimble_toolkit::is_python_name(&operation.name) && names.insert(&operation.name));
                prop_assert_eq!(&operation.name, &tool.operation);
                let mut parameters = std::collections::HashSet::new();
                for parameter in &operation.parameters {
                    prop_assert!(fimble_toolkit::is_python_name(&parameter.name) && parameters.insert(&parameter.name));
                }
            }
        }
    }
}
