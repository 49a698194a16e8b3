//! What a model wrote, and a file: what is accepted parses and stays where it belongs.
#![no_main]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use fimble::program::{Config, Known, Scaffold, ScaffoldInput, from_file, hole_end, is_complete, splice, statements};
use fimble_toolkit::{Declaration, Operation, Parameter, Risk};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

static DECLARATIONS: LazyLock<Vec<Declaration>> = LazyLock::new(|| {
    let parameter = |name: &str, schema, required| Parameter {
        name: name.to_owned(),
        description: String::new(),
        schema,
        required,
        default: None,
    };
    let commit = json!({"type": "object", "properties": {"sha": {"type": "string"}, "files": {"type": "array", "items":
        {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}}, "required": ["sha"]});
    let operation = |name: &str, parameters, returns| Operation {
        name: name.to_owned(),
        description: String::new(),
        parameters,
        returns,
        risk: Risk::Read,
        idempotent: true,
        timeout: None,
        enabled: true,
        paging: None,
    };
    vec![Declaration {
        name: "git_toolkit".to_owned(),
        description: "Git.".to_owned(),
        operations: vec![
            operation(
                "log",
                vec![parameter("limit", json!({"type": "integer"}), false)],
                json!({"type": "array", "items": commit}),
            ),
            operation("show", vec![parameter("revision", json!({"type": "string"}), true)], commit.clone()),
        ],
    }]
});

/// No variables, and no length of a card.
fn nothing_known(config: &Config) -> Known<'_> {
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    static SHAPES: BTreeMap<String, Value> = BTreeMap::new();
    Known { declarations: &DECLARATIONS, carried: &[], shapes: &SHAPES, not_kept: &NONE, finish_length: false, config }
}

fuzz_target!(|text: &str| {
    let config = Config::default();
    let scaffold = Scaffold::new(&ScaffoldInput { goal: "do it", ..ScaffoldInput::default() });
    for finish_length in [false, true] {
        let known = Known { finish_length, ..nothing_known(&config) };
        match splice(&scaffold, text, &known) {
            Ok(program) => {
                let whole = program.text();
                assert!(whole.starts_with(&scaffold.prefix) && whole.ends_with(&scaffold.suffix), "{whole}");
                assert!(!statements(&program.hole).is_empty(), "{}", program.hole);
                // What was accepted once is accepted again.
                let again = splice(&scaffold, &program.hole, &known);
                assert!(again.is_ok(), "{again:?}\n{}", program.hole);
            }
            Err(refusal) => assert!(!refusal.findings.is_empty() && !refusal.to_string().is_empty()),
        }
    }
    let known = nothing_known(&config);
    if let Ok(program) = from_file(text, &known) {
        assert!(from_file(&program.text(), &known).is_ok(), "{}", program.text());
    }
    is_complete(text);
    assert!(hole_end(text).is_none_or(|end| text.is_char_boundary(end)));
});
