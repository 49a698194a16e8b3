//! Manifests as files: what a good one declares, and what is said of every kind of mistake.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fimble_manifest::{Manifest, Problem, load};
use fimble_toolkit::{Call, Declaration, Operation, Paging, Parameter, Risk, SessionContext, Toolkit, signature};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

fn parameter(name: &str, description: &str, schema: Value, required: bool, default: Option<Value>) -> Parameter {
    Parameter { name: name.into(), description: description.into(), schema, required, default }
}

#[test]
fn a_manifest_declares_what_it_says() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("service.toml");
    let text = r#"
        name = "service_toolkit"
        description = "Services of this machine."
        [[operation]]
        name = "status"
        description = "State of one unit."
        command = ["systemctl", "is-active", "{unit}"]
        risk = "read"
        idempotent = true
        timeout_s = 10
        result = "text"
        [operation.params]
        unit = { type = "str", description = "Unit name, e.g. nginx.service" }
        [[operation]]
        name = "restart"
        description = "Restarts units."
        command = ["systemctl", "restart", "--job-mode={mode}", "--lines={lines}", "--wait={wait}", "--", "{units}"]
        risk = "destructive"
        timeout_s = 1.5
        result = "table"
        [operation.params]
        units = "list"
        mode = { type = "str", default = "fail", choices = ["fail", "replace"] }
        wait = { type = "bool", required = false }
        lines = { type = "int", default = 10 }
        [[operation]]
        name = "list"
        description = "Units."
        command = ["systemctl", "--output=json"]
        risk = "read"
        result = "json"
        [[operation]]
        name = "names"
        description = "Names."
        command = ["systemctl", "{share}"]
        risk = "write"
        result = "lines"
        idempotent = true
        params.share = "float"
    "#;
    fs::write(&path, text).unwrap();
    let string = json!({"type": "string"});
    let operation = |name: &str, description: &str, parameters, returns, risk, idempotent, timeout| Operation {
        name: name.into(),
        description: description.into(),
        parameters,
        returns,
        risk,
        idempotent,
        timeout,
        enabled: true,
        paging: None,
    };
    let strings = json!({"type": "array", "items": {"type": "string"}});
    let table = json!({"type": "array", "items": {"type": "object", "additionalProperties": {"type": "string"}}});
    let expected = Declaration {
        name: "service_toolkit".into(),
        description: "Services of this machine.".into(),
        operations: vec![
            operation(
                "status",
                "State of one unit.",
                vec![parameter("unit", "Unit name, e.g. nginx.service", string.clone(), true, None)],
                string,
                Risk::Read,
                true,
                Some(Duration::from_secs(10)),
            ),
            operation(
                "restart",
                "Restarts units.",
                vec![
                    parameter("units", "", strings.clone(), true, None),
                    parameter(
                        "mode",
                        "",
                        json!({"type": "string", "enum": ["fail", "replace"]}),
                        false,
                        Some(json!("fail")),
                    ),
                    parameter("wait", "", json!({"type": "boolean"}), false, None),
                    parameter("lines", "", json!({"type": "integer"}), false, Some(json!(10))),
                ],
                table,
                Risk::Destructive,
                false,
                Some(Duration::from_millis(1_500)),
            ),
            operation("list", "Units.", Vec::new(), json!(true), Risk::Read, true, None),
            operation(
                "names",
                "Names.",
                vec![parameter("share", "", json!({"type": "number"}), true, None)],
                strings,
                Risk::Write,
                true,
                None,
            ),
        ],
    };
    let declaration = Manifest::read(&path).unwrap().declaration();
    assert_eq!(declaration, expected);
    let signatures: Vec<String> = declaration.operations.iter().map(signature).collect();
    assert_eq!(
        signatures,
        [
            "status(unit: str) -> str",
            "restart(units: list[str], mode: Literal[\"fail\", \"replace\"] = \"fail\", wait: bool = None, lines: int = 10) -> list[dict[str, str]]",
            "list()",
            "names(share: float) -> list[str]",
        ]
    );
}

/// What is said of a manifest with this text.
fn problem(text: &str) -> (Option<usize>, String) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("broken.toml");
    fs::write(&path, text).unwrap();
    let problem = Manifest::read(&path).unwrap_err();
    assert_eq!(problem.path, path);
    (problem.line, problem.reason)
}

#[test]
fn a_mistake_in_the_head_is_told_with_its_line() {
    let operation = "[[operation]]\nname = 'run'\ndescription = ''\nrisk = 'read'\ncommand = ['true']\n";
    for (head, line, reason) in [
        ("description = ''", Some(1), "missing field `name`"),
        ("name = 't'", Some(1), "missing field `description`"),
        ("name = 'no name'\ndescription = ''", Some(1), "`no name`, the name of the toolkit, is no Python name"),
        (
            "name = 't'\ndescription = ''\nicon = 'x'",
            Some(3),
            "unknown field `icon`, expected one of `name`, `description`, `environment`, `operation`",
        ),
        ("name = 't'\ndescription = 5", Some(2), "invalid type: integer `5`, expected a string"),
        (
            "name = 't'\ndescription = ''\nenvironment = ['A', 'B=1']",
            Some(3),
            "`B=1` is no name of an environment variable",
        ),
        ("name = 't'\nname = 'u'", Some(2), "duplicate key"),
        ("name = 't", Some(1), "invalid literal string, expected `'`"),
    ] {
        assert_eq!(problem(&format!("{head}\n{operation}")), (line, reason.to_owned()), "{head}");
    }
    let twice = format!("name = 't'\ndescription = ''\n{operation}{operation}");
    assert_eq!(problem(&twice), (Some(9), "there is already an operation `run`".to_owned()));
    assert_eq!(problem("name = 't'\ndescription = ''\n"), (Some(1), "`t` has no operation".to_owned()));
}

#[test]
fn a_mistake_in_an_operation_is_told_with_its_line() {
    for (lines, line, reason) in [
        ("command = ['true']", 3, "missing field `risk`"),
        ("risk = 'read'", 4, "`run` does nothing"),
        ("risk = 'reed'\ncommand = []", 6, "unknown variant `reed`, expected one of `read`, `write`, `destructive`"),
        ("risk = 'read'\ncommand = 'ls {x}'", 7, "invalid type: string \"ls {x}\", expected a sequence"),
        ("risk = 'read'\ncommand = []", 7, "the command of `run` names no program"),
        ("risk = 'read'\ncommand = ['']", 7, "the command of `run` names no program"),
        (
            "risk = 'read'\ncommand = ['true']\nresult = 'yaml'",
            8,
            "unknown variant `yaml`, expected one of `text`, `lines`, `json`, `table`, `regex`",
        ),
        (
            "risk = 'read'\ncommand = ['true']\nshell = true",
            8,
            "unknown field `shell`, expected one of `name`, `description`, `command`, `request`, `risk`, `idempotent`, \
             `timeout_s`, `result`, `pattern`, `cwd`, `output_kib`, `paging`, `params`",
        ),
        ("risk = 'read'\ncommand = ['true']\ntimeout_s = 0", 8, "`timeout_s` is above 0 and at most 86400, not 0"),
        ("risk = 'read'\ncommand = ['true']\ntimeout_s = nan", 8, "`timeout_s` is above 0 and at most 86400, not NaN"),
        ("risk = 'read'\ncommand = ['true']\noutput_kib = 0", 8, "`output_kib` is from 1 to 65536, not 0"),
        ("risk = 'read'\ncommand = ['ls',\n'{x}']", 8, "the command of `run` has `{x}`, which is no parameter"),
        (
            "risk = 'read'\ncommand = ['{x}']\nparams.x = 'str'",
            7,
            "the command of `run` takes its program from a parameter",
        ),
        ("risk = 'read'\ncommand = ['ls', \"a\\u0000\"]", 7, "the command of `run` has a NUL character in it"),
        (
            "risk = 'read'\ncommand = ['ls', 'a{x}']\nparams.x = 'list'",
            7,
            "the command of `run` has the list `{x}` within a longer argument",
        ),
        (
            "risk = 'read'\ncommand = ['sh', '-c', 'ls \"{x}\"']\nparams.x = 'str'",
            7,
            "the command of `run` has `{x}` within quotes of its script",
        ),
        (
            "risk = 'read'\ncommand = ['ls']\n[operation.params]\nx = 'str'",
            9,
            "the command of `run` does not use parameter `x`",
        ),
        (
            "risk = 'read'\ncommand = ['ls', '\\{x}', '{ x }', '{if}']\n[operation.params]\nx = 'str'",
            9,
            "the command of `run` does not use parameter `x`",
        ),
    ] {
        let text = format!("name = 't'\ndescription = ''\n[[operation]]\nname = 'run'\ndescription = ''\n{lines}\n");
        assert_eq!(problem(&text), (Some(line), reason.to_owned()), "{lines}");
    }
    let named = "name = 't'\ndescription = ''\n[[operation]]\nname = 'import'\ndescription = ''\nrisk = 'read'\ncommand = ['ls']";
    let reason = "`import`, the name of an operation, is no Python name";
    assert_eq!(problem(named), (Some(4), reason.to_owned()));
}

#[test]
fn an_operation_says_how_its_pages_follow_one_another() {
    let run = "name = 't'\ndescription = ''\n[[operation]]\nname = 'run'\ndescription = ''\nrisk = 'read'\n\
               command = ['ls', '{all}', '{page}']\nparams = { all = 'str', page = { type = 'str', required = false } }\n";
    let with = |lines: &str| format!("{run}{lines}\n");
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.toml");
    let declared = |lines: &str| {
        fs::write(&path, with(lines)).unwrap();
        Manifest::read(&path).unwrap().declaration().operations.remove(0).paging
    };
    assert_eq!(declared("result = 'json'"), None);
    let written = "result = 'json'\npaging = { argument = 'page', token = 'meta.next', items = 'rows' }";
    assert_eq!(declared(written), Some(Paging::new("page", "meta.next", "rows")));
    for (lines, line, reason) in [
        (
            "result = 'json'\n[operation.paging]\nargument = 'side'\ntoken = 'next'",
            11,
            "`side`, which asks for a page, is no parameter",
        ),
        (
            "result = 'json'\n[operation.paging]\nargument = 'all'\ntoken = 'next'",
            11,
            "parameter `all` asks for a page and must be given",
        ),
        ("result = 'json'\n[operation.paging]\nargument = 'page'\ntoken = ''", 12, "`token` is empty"),
        ("[operation.paging]\nargument = 'page'\ntoken = 'next'", 11, "only a result of JSON has pages"),
        ("result = 'json'\n[operation.paging]\nargument = 'page'", 10, "missing field `token`"),
        (
            "result = 'json'\n[operation.paging]\nargument = 'page'\ntoken = 'next'\nnext = ''",
            13,
            "unknown field `next`, expected one of `argument`, `token`, `items`",
        ),
    ] {
        assert_eq!(problem(&with(lines)), (Some(line), reason.to_owned()), "{lines}");
    }
}

#[test]
fn a_mistake_in_a_parameter_is_told_with_its_line() {
    for (parameter, reason) in [
        ("x = 'text'", "unknown variant `text`, expected one of `str`, `int`, `float`, `bool`, `list`"),
        ("x = 5", "invalid type: integer `5`, expected a type such as \"str\", or a table with `type`"),
        ("x = {}", "missing field `type`"),
        (
            "x = { type = 'str', min = 1 }",
            "unknown field `min`, expected one of `type`, `description`, `default`, `required`, `choices`, `allow_dash`",
        ),
        ("'a b' = 'str'", "`a b`, the name of a parameter, is no Python name"),
        ("x = { type = 'int', default = 1.5 }", "the default of parameter `x` is no int"),
        ("x = { type = 'float', default = nan }", "the default of parameter `x` is no float"),
        ("x = { type = 'str', default = 2026-01-31 }", "the default of parameter `x` is no str"),
        ("x = { type = 'str', choices = [] }", "parameter `x` has no choices"),
        ("x = { type = 'list', choices = ['a', 1] }", "the choice 1 of parameter `x` is no str"),
        ("x = { type = 'str', default = 'c', choices = ['a'] }", "the default of parameter `x` is none of its choices"),
        ("x = { type = 'str', default = 'c', required = true }", "parameter `x` is required and has a default"),
    ] {
        let text = format!(
            "name = 't'\ndescription = ''\n[[operation]]\nname = 'run'\ndescription = ''\nrisk = 'read'\n\
             command = ['ls', '{{x}}']\n[operation.params]\n{parameter}\n"
        );
        assert_eq!(problem(&text), (Some(9), reason.to_owned()), "{parameter}");
    }
}

#[test]
fn a_file_that_is_no_manifest_is_told_as_a_whole() {
    let folder = TempDir::new().unwrap();
    let missing = folder.path().join("missing.toml");
    assert_eq!(
        Manifest::read(&missing).unwrap_err().to_string(),
        format!("{}: the file cannot be read: No such file or directory (os error 2)", missing.display())
    );
    let path = folder.path().join("big.toml");
    fs::write(&path, "#".repeat(1024 * 1024 + 1)).unwrap();
    let reason = "the file has more than 1048576 bytes";
    assert_eq!(Manifest::read(&path).unwrap_err(), whole(&path, reason, None));
    fs::write(&path, b"name = '\xff'").unwrap();
    assert_eq!(Manifest::read(&path).unwrap_err(), whole(&path, "the file is no UTF-8 text", None));
}

fn whole(path: &Path, reason: &str, hint: Option<String>) -> Problem {
    Problem { path: path.to_owned(), line: None, reason: reason.to_owned(), hint }
}

#[test]
fn a_broken_file_does_not_stop_the_others() {
    let folder = TempDir::new().unwrap();
    let write = |file: &str, name: &str, risk: &str| -> PathBuf {
        let path = folder.path().join(file);
        let text = format!(
            "name = '{name}'\ndescription = ''\n[[operation]]\nname = 'run'\ndescription = ''\ncommand = ['true']\nrisk = '{risk}'\n"
        );
        fs::write(&path, text).unwrap();
        path
    };
    let first = write("a.toml", "one", "read");
    let broken = write("b.toml", "two", "none");
    let again = write("c.toml", "one", "read");
    write("d.toml", "three", "write");
    write("e.txt", "four", "read");
    fs::create_dir(folder.path().join("f.toml")).unwrap();
    let loaded = load(folder.path());
    let names: Vec<String> = loaded.toolkits.iter().map(|toolkit| toolkit.declaration().name).collect();
    assert_eq!(names, ["one", "three"]);
    let hint = format!("`{}` declares it; give one of them another name", first.display());
    assert_eq!(
        loaded.problems,
        [
            Problem {
                path: broken.clone(),
                line: Some(7),
                reason: "unknown variant `none`, expected one of `read`, `write`, `destructive`".into(),
                hint: None,
            },
            whole(&again, "there is already a toolkit `one`", Some(hint)),
        ]
    );
    assert_eq!(
        loaded.problems[0].to_string(),
        format!("{}:7: unknown variant `none`, expected one of `read`, `write`, `destructive`", broken.display())
    );
}

#[test]
fn a_folder_that_is_not_there_is_one_problem() {
    let folder = TempDir::new().unwrap();
    let missing = folder.path().join("missing");
    let loaded = load(&missing);
    assert!(loaded.toolkits.is_empty());
    let reason = "the folder cannot be read: No such file or directory (os error 2)";
    assert_eq!(loaded.problems, [whole(&missing, reason, None)]);
}

async fn machine(operation: &str, arguments: Value) -> Value {
    let loaded = load(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    assert_eq!(loaded.problems, []);
    let toolkit = loaded.toolkits.iter().find(|toolkit| toolkit.declaration().name == "machine_toolkit").unwrap();
    let call = Call {
        operation: operation.to_owned(),
        arguments: arguments.as_object().cloned().unwrap(),
        key: String::new(),
        context: SessionContext::default(),
        cancellation: CancellationToken::new(),
    };
    toolkit.call(call).await.unwrap()
}

#[tokio::test]
async fn the_shipped_manifest_works_on_this_machine() {
    assert!(machine("kernel", json!({})).await.as_str().is_some_and(|text| text.starts_with("Linux ")));
    let root = machine("account", json!({"name": "root"})).await;
    assert!(root.as_str().is_some_and(|text| text.starts_with("root:")), "{root}");
    assert!(machine("processor", json!({})).await["lscpu"].is_array());
    let folder = TempDir::new().unwrap();
    let name = folder.path().to_str().unwrap();
    fs::create_dir(folder.path().join("it's $(id)")).unwrap();
    fs::write(folder.path().join("it's $(id)/new"), "x").unwrap();
    assert_eq!(machine("newest", json!({"folder": name})).await, json!([format!("{name}/it's $(id)/new")]));
    let sizes = machine("sizes", json!({"folder": format!("{name}/it's $(id)")})).await;
    let paths: Vec<&Value> = sizes.as_array().unwrap().iter().map(|row| &row["path"]).collect();
    assert_eq!(paths, [&json!(format!("{name}/it's $(id)"))]);
}
