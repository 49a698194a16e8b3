//! The doors of this module, [`splice`] and [`from_file`], on what models and people write.

mod accepted;
mod awaits;
mod carried;
mod corpus;
mod hostile;
mod refused;
mod repaired;
mod results;
mod wrong;

use fimble_toolkit::{Operation, Paging, Parameter, Risk};
use serde_json::{Value, json};

use super::*;
use crate::record::VariableKind;

/// `name`, its type, and its default if it is optional.
type Row<'a> = (&'a str, Value, Option<Value>);

fn operation(name: &str, rows: &[Row<'_>], returns: Value) -> Operation {
    let parameters = rows.iter().map(|(name, schema, default)| Parameter {
        name: (*name).to_owned(),
        description: String::new(),
        schema: schema.clone(),
        required: default.is_none(),
        default: default.clone().filter(|value| !value.is_null()),
    });
    Operation {
        name: name.to_owned(),
        description: format!("{name}."),
        parameters: parameters.collect(),
        returns,
        risk: Risk::Read,
        idempotent: true,
        timeout: None,
        enabled: true,
        paging: None,
    }
}

fn toolkit(name: &str, operations: Vec<Operation>) -> Declaration {
    Declaration { name: name.to_owned(), description: format!("{name}."), operations }
}

fn text() -> Value {
    json!({"type": "string"})
}

fn integer() -> Value {
    json!({"type": "integer"})
}

fn optional(schema: &str) -> Value {
    json!({"type": [schema, "null"]})
}

fn declarations() -> Vec<Declaration> {
    let strings = json!({"type": "array", "items": {"type": "string"}});
    vec![
        toolkit(
            "git_toolkit",
            vec![
                operation(
                    "log",
                    &[("limit", integer(), Some(json!(20))), ("path", optional("string"), Some(Value::Null))],
                    json!(true),
                ),
                operation("show", &[("revision", text(), None)], json!(true)),
                operation("branches", &[], strings.clone()),
                operation("status", &[], json!(true)),
                Operation { enabled: false, ..operation("push", &[], json!(true)) },
            ],
        ),
        toolkit(
            "host_toolkit",
            vec![
                operation("cpu", &[], json!(true)),
                operation("memory", &[], json!(true)),
                operation("disks", &[], json!(true)),
                operation(
                    "processes",
                    &[
                        ("sort", json!({"enum": ["cpu", "memory"]}), Some(json!("cpu"))),
                        ("limit", integer(), Some(json!(10))),
                    ],
                    json!(true),
                ),
                operation("service", &[("name", text(), None)], json!(true)),
                operation(
                    "restart",
                    &[("name", text(), None), ("wait_s", json!({"type": "number"}), Some(json!(5.0)))],
                    json!(true),
                ),
            ],
        ),
        toolkit(
            "files_toolkit",
            vec![
                operation("list", &[("path", text(), Some(json!(".")))], json!(true)),
                operation(
                    "read",
                    &[
                        ("path", text(), None),
                        ("start", integer(), Some(json!(1))),
                        ("end", optional("integer"), Some(Value::Null)),
                    ],
                    text(),
                ),
                operation("search", &[("pattern", text(), None), ("paths", strings, Some(json!([])))], json!(true)),
            ],
        ),
        toolkit(
            "system_toolkit",
            vec![
                operation("send_message", &[("text", text(), None)], json!({"type": "null"})),
                operation(
                    "ask_user",
                    &[
                        ("question", text(), None),
                        ("choices", json!({"type": ["array", "null"], "items": {"type": "string"}}), Some(Value::Null)),
                    ],
                    text(),
                ),
                operation("now", &[], text()),
                operation("sleep", &[("seconds", json!({"type": "number"}), None)], json!({"type": "null"})),
            ],
        ),
        toolkit(
            "ops_toolkit",
            vec![
                operation(
                    "ports",
                    &[],
                    json!({"type": "object", "title": "Ports", "properties": {
                        "ports": {"type": "array", "items": {"type": "object", "title": "Port", "properties": {
                            "port": integer(), "process": optional("string"),
                        }}},
                        "truncated": {"type": "boolean"},
                    }}),
                ),
                operation(
                    "disks",
                    &[],
                    json!({"type": "array", "items": {"type": "object", "title": "Disk", "properties": {
                        "mount": text(), "used_percent": {"type": "number"},
                    }}}),
                ),
                Operation {
                    paging: Some(Paging::new("cursor", "meta.next", "rows")),
                    ..operation(
                        "issues",
                        &[("state", text(), Some(json!("open"))), ("cursor", optional("string"), Some(Value::Null))],
                        json!({"type": "object", "title": "IssuePage", "properties": {
                            "rows": {"type": "array", "items": {"type": "object", "title": "Issue", "properties": {
                                "number": integer(), "title": text(),
                            }}},
                            "labels": {"type": "array", "items": text()},
                            "meta": {"type": "object", "title": "Meta", "properties": {"next": optional("string")}},
                        }}),
                    )
                },
            ],
        ),
        toolkit(
            "devops_toolkit",
            vec![operation(
                "search_requirements",
                &[("project_id", text(), None), ("query", text(), None)],
                json!(true),
            )],
        ),
    ]
}

fn variable(name: &str, kind: VariableKind, preview: &str, references: &[&str]) -> Variable {
    Variable {
        name: name.to_owned(),
        kind,
        type_name: "list".to_owned(),
        preview: preview.to_owned(),
        size: 2,
        hash: String::new(),
        round: 1,
        line: 1,
        references: references.iter().map(|name| (*name).to_owned()).collect(),
    }
}

fn carried() -> Vec<Variable> {
    vec![
        variable("services", VariableKind::Value, "[]", &[]),
        variable("rows", VariableKind::Value, "[]", &[]),
        variable("count", VariableKind::Definition, "def count(items): ...", &["rows", "helper"]),
        variable("helper", VariableKind::Definition, "def helper(): ...", &["limit"]),
        variable("limit", VariableKind::Value, "5", &[]),
        variable("fetch", VariableKind::Definition, "async def fetch(name): ...", &[]),
    ]
}

/// Nothing is known of what is carried.
static NO_SHAPES: BTreeMap<String, Value> = BTreeMap::new();

/// All was kept.
static NOTHING_LOST: BTreeMap<String, String> = BTreeMap::new();

fn scaffold() -> Scaffold {
    Scaffold::new(&ScaffoldInput { goal: "do it", ..ScaffoldInput::default() })
}

fn splice_text(text: &str, finish_length: bool) -> Result<Program, Refusal> {
    let (declarations, carried, config) = (declarations(), carried(), Config::default());
    let known = Known {
        declarations: &declarations,
        carried: &carried,
        shapes: &NO_SHAPES,
        not_kept: &NOTHING_LOST,
        finish_length,
        config: &config,
    };
    splice(&scaffold(), text, &known)
}

fn file(text: &str) -> Result<Program, Refusal> {
    let (declarations, carried, config) = (declarations(), carried(), Config::default());
    let known = Known {
        declarations: &declarations,
        carried: &carried,
        shapes: &NO_SHAPES,
        not_kept: &NOTHING_LOST,
        finish_length: false,
        config: &config,
    };
    from_file(text, &known)
}

/// What runs, and what was said about it.
fn hole(text: &str) -> (String, Vec<String>) {
    let program = splice_text(text, false).unwrap();
    (program.hole, program.repairs)
}

/// The message the model gets.
fn message(text: &str) -> String {
    splice_text(text, false).unwrap_err().to_string()
}
