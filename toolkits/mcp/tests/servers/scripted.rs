//! A server that does what servers do wrong.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fimble_mcp::{Endpoint, Limits, Server, connect};
use fimble_toolkit::{Declaration, ErrorKind, Risk, ToolError, Toolkit, signature};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::{Value, json};

use crate::{call, program};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/fixtures/scripted.py");

pub(crate) fn scripted(modes: &[&str]) -> Server {
    let args: Vec<&str> = [SCRIPT].iter().chain(modes).copied().collect();
    program("my server-1", "/usr/bin/python3", &args)
}

async fn toolkit() -> Arc<dyn Toolkit> {
    connect(scripted(&[]), Limits::default()).await.unwrap()
}

async fn refused(server: Server, limits: Limits) -> String {
    connect(server, limits).await.err().unwrap().to_string()
}

fn risk(declaration: &Declaration, name: &str) -> (Risk, bool) {
    let operation = declaration.operation(name).unwrap();
    (operation.risk, operation.idempotent)
}

#[tokio::test]
async fn tools_become_operations_and_bad_ones_are_left_out() {
    let declaration = toolkit().await.declaration();
    let stubs: Vec<String> = declaration.operations.iter().take(11).map(signature).collect();
    let expected = [
        "echo(from_: str, limit: int = 3, content_type: str = None)",
        "free(more_arguments: dict = None)",
        "bare()",
        "import_()",
        "get_sum()",
        "get_sum_2()",
        "node(node: Node)",
        "wrapped() -> list[int]",
        "object() -> Object",
        "text()",
        "json()",
    ];
    assert_eq!((declaration.name.as_str(), stubs), ("my_server_1_toolkit", expected.map(str::to_owned).to_vec()));
    let risks = ["import_", "get_sum", "get_sum_2", "bare"].map(|name| risk(&declaration, name));
    let expected = [(Risk::Read, true), (Risk::Write, true), (Risk::Destructive, false), (Risk::Write, false)];
    assert_eq!(risks, expected);
    let echo = declaration.operation("echo").unwrap();
    assert_eq!((echo.description.as_str(), echo.parameters[0].description.as_str()), ("About echo.", "Some text."));
}

#[tokio::test]
async fn calls_carry_the_servers_own_names() {
    let toolkit = toolkit().await;
    for (operation, arguments, tool, received) in [
        ("echo", json!({"from_": "a", "content_type": "b"}), "echo", json!({"from": "a", "content-type": "b"})),
        ("import_", json!({}), "import", json!({})),
        ("get_sum", json!({}), "get-sum", json!({})),
        ("get_sum_2", json!({}), "get.sum", json!({})),
        ("node", json!({"node": {"next": {}}}), "node", json!({"node": {"next": {}}})),
    ] {
        let result = call(&*toolkit, operation, arguments).await.unwrap();
        assert_eq!(result, json!({"tool": tool, "arguments": received}), "{operation}");
    }
    let error = call(&*toolkit, "strange", json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::UnknownOperation);
}

#[tokio::test]
async fn answers_become_values() {
    let toolkit = toolkit().await;
    let picture = json!([
        {"type": "text", "text": "a picture"},
        {"type": "image", "mime_type": "image/png", "data": {"$": "bytes", "v": "AAAA"}},
        {"type": "hologram", "depth": 3},
    ]);
    for (operation, expected) in [
        ("wrapped", json!([1, 2])),
        ("object", json!({"result": 1, "unit": "s"})),
        ("text", json!("one\ntwo")),
        ("json", json!({"a": 1})),
        ("number", json!("42")),
        ("picture", picture),
        ("nothing", Value::Null),
    ] {
        assert_eq!(call(&*toolkit, operation, json!({})).await, Ok(expected), "{operation}");
    }
}

#[tokio::test]
async fn a_tools_failure_is_an_error_with_the_servers_own_words() {
    let toolkit = toolkit().await;
    for (operation, expected) in [
        ("fails", ToolError::failed("there is no such service")),
        ("refuses", ToolError::invalid_argument("my_server_1_toolkit.refuses(): limit must be positive")),
        ("breaks", ToolError::failed("my_server_1_toolkit.breaks(): the cluster cannot be reached")),
        (
            "input",
            ToolError::failed(
                "my_server_1_toolkit.input() asked and nobody was there to answer: \
                 it asks for what a program cannot give",
            )
            .with_hint(
                "ask the user by system_toolkit.ask_user(), then call again with the answer as an argument if it takes one",
            ),
        ),
    ] {
        assert_eq!(call(&*toolkit, operation, json!({})).await, Err(expected), "{operation}");
    }
}

#[tokio::test]
async fn an_answer_that_is_too_large_fails_at_once_and_the_server_stays() {
    let limits = Limits { message_bytes: 1_000_000, result_bytes: 200_000, ..Limits::default() };
    let toolkit = connect(scripted(&[]), limits).await.unwrap();
    let hint = "ask for less, e.g. by a filter, a limit or page by page";
    for (operation, message) in [
        ("big", "the result of my_server_1_toolkit.big() has 300002 bytes of JSON, more than 200000"),
        ("huge", "my_server_1_toolkit.huge(): the answer is longer than 1000000 bytes"),
        ("mammoth", "my_server_1_toolkit.mammoth(): the answer is longer than 1000000 bytes"),
    ] {
        let expected = ToolError::failed(message).with_hint(hint);
        assert_eq!(call(&*toolkit, operation, json!({})).await, Err(expected), "{operation}");
    }
    assert_eq!(call(&*toolkit, "json", json!({})).await, Ok(json!({"a": 1})));
}

#[tokio::test]
async fn an_answer_that_is_no_answer_fails_at_once_and_the_server_stays() {
    let toolkit = toolkit().await;
    for (operation, message) in [
        ("malformed", "my_server_1_toolkit.malformed(): the answer is no JSON"),
        ("empty", "my_server_1_toolkit.empty(): the answer has neither a result nor an error"),
    ] {
        assert_eq!(call(&*toolkit, operation, json!({})).await, Err(ToolError::failed(message)), "{operation}");
    }
    let error = call(&*toolkit, "scalar", json!({})).await.unwrap_err();
    assert_eq!(error.message, "my_server_1_toolkit.scalar() answered with what is no result of a tool");
    assert_eq!(call(&*toolkit, "json", json!({})).await, Ok(json!({"a": 1})));
}

#[tokio::test]
async fn a_call_that_hangs_ends_at_its_limit_and_the_server_is_told() {
    let limits = Limits { call: Duration::from_millis(300), ..Limits::default() };
    let toolkit = connect(scripted(&[]), limits).await.unwrap();
    let error = call(&*toolkit, "hang", json!({})).await.unwrap_err();
    let message = "my_server_1_toolkit.hang() did not end within 300ms";
    let hint = "ask for less, or look first whether it took effect";
    assert_eq!(error, ToolError::new(ErrorKind::Timeout, message).with_hint(hint));
    // The notice is sent before the next call is.
    let cancelled = call(&*toolkit, "cancelled", json!({})).await.unwrap();
    assert_eq!(cancelled.as_array().map(Vec::len), Some(1));

    let given_up = tokio::time::timeout(Duration::from_millis(100), call(&*toolkit, "hang", json!({}))).await;
    assert!(given_up.is_err());
    let cancelled = call(&*toolkit, "cancelled", json!({})).await.unwrap();
    assert_eq!(cancelled.as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn a_server_that_ends_in_a_call_is_started_again_at_the_next() {
    let toolkit = toolkit().await;
    let error = call(&*toolkit, "crash", json!({})).await.unwrap_err();
    let message = "the MCP server `my server-1` ended during my_server_1_toolkit.crash(); it last wrote: \
                   scripted: listening | fatal: the disk is full";
    let hint = "look whether the call took effect, then call again: the server is started again";
    assert_eq!(error, ToolError::unavailable(message).with_hint(hint));
    let (first, second) =
        tokio::join!(call(&*toolkit, "processes", json!({})), call(&*toolkit, "processes", json!({})));
    assert_eq!(first.unwrap()[0], second.unwrap()[0], "it is started once");
}

#[tokio::test]
async fn a_server_that_ended_between_two_calls_is_started_again() {
    let toolkit = toolkit().await;
    let before = call(&*toolkit, "processes", json!({})).await.unwrap();
    let server = Pid::from_raw(before[0].as_i64().unwrap().try_into().unwrap()).unwrap();
    rustix::process::kill_process(server, rustix::process::Signal::KILL).unwrap();
    wait_for_the_end(&before[0]);
    // Whether its end is seen before the call or in it is a race; either way it is there afterwards.
    if let Err(error) = call(&*toolkit, "json", json!({})).await {
        assert_eq!(error.kind, ErrorKind::Unavailable);
    }
    let after = call(&*toolkit, "processes", json!({})).await.unwrap();
    assert_ne!(before[0], after[0]);
    wait_for_the_end(&before[1]);
}

#[tokio::test]
async fn dropping_the_toolkit_kills_the_server_and_what_it_started() {
    let toolkit = toolkit().await;
    let processes = call(&*toolkit, "processes", json!({})).await.unwrap();
    drop(toolkit);
    wait_for_the_end(&processes[0]);
    wait_for_the_end(&processes[1]);
}

/// Waits until a process ended; a test that waits for longer than ten seconds fails.
pub(crate) fn wait_for_the_end(process: &Value) {
    let pid = Pid::from_raw(process.as_i64().unwrap().try_into().unwrap()).unwrap();
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    let limit = Timespec { tv_sec: 10, tv_nsec: 0 };
    let ended = loop {
        // The end of a child is a signal too.
        match poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&limit)) {
            Err(rustix::io::Errno::INTR) => {}
            ended => break ended,
        }
    };
    assert_eq!(ended, Ok(1));
}

#[tokio::test]
async fn a_server_gets_its_own_variables_and_none_of_ours() {
    let mut server = scripted(&[]);
    let Endpoint::Command { env, .. } = &mut server.endpoint else { panic!("{server:?}") };
    *env = BTreeMap::from([("TOKEN".to_owned(), "secret".to_owned())]);
    assert!(!format!("{server:?}").contains("secret"));
    let toolkit = connect(server, Limits::default()).await.unwrap();
    let environment = call(&*toolkit, "environment", json!({})).await.unwrap();
    // Cargo sets this one for every test.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert_eq!((&environment["TOKEN"], &environment["CARGO_MANIFEST_DIR"]), (&json!("secret"), &Value::Null));
    assert!(environment["PATH"].is_string());
}

#[tokio::test]
async fn a_server_that_ends_at_a_question_it_does_not_know_is_asked_the_old_way() {
    let toolkit = connect(scripted(&["exits"]), Limits::default()).await.unwrap();
    assert_eq!(call(&*toolkit, "json", json!({})).await, Ok(json!({"a": 1})));
    // It is known by then how to begin.
    call(&*toolkit, "crash", json!({})).await.unwrap_err();
    assert_eq!(call(&*toolkit, "json", json!({})).await, Ok(json!({"a": 1})));
}

#[tokio::test]
async fn a_server_that_leaves_what_it_does_not_know_unanswered_is_asked_the_old_way() {
    let toolkit = connect(scripted(&["ignores"]), Limits::default()).await.unwrap();
    assert_eq!(call(&*toolkit, "json", json!({})).await, Ok(json!({"a": 1})));
}

#[tokio::test]
async fn a_list_without_an_end_is_cut() {
    let limits = Limits { pages: 4, ..Limits::default() };
    let declaration = connect(scripted(&["endless"]), limits).await.unwrap().declaration();
    let names: Vec<&str> = declaration.operations.iter().map(|operation| operation.name.as_str()).collect();
    assert_eq!(names, ["tool1", "tool2", "tool3", "tool4"]);
    let limits = Limits { tools: 2, ..Limits::default() };
    let declaration = connect(scripted(&["endless"]), limits).await.unwrap().declaration();
    assert_eq!(declaration.operations.len(), 2);
}

#[tokio::test]
async fn a_server_that_does_not_start_says_why() {
    let told = refused(scripted(&["broken"]), Limits::default()).await;
    let expected = "the MCP server `my server-1` ended with exit status: 1 before it answered; it last wrote: \
                    scripted: listening | ModuleNotFoundError: No module named 'nothing'";
    assert_eq!(told, expected);

    let told = refused(program("none", "/nowhere/server", &[]), Limits::default()).await;
    let expected = "the MCP server `none` did not start: `/nowhere/server`: No such file or directory (os error 2)";
    assert_eq!(told, expected);

    let started = Instant::now();
    let limits = Limits { start: Duration::from_millis(500), ..Limits::default() };
    let told = refused(scripted(&["silent"]), limits).await;
    let expected = "the MCP server `my server-1` did not answer within 500ms; it last wrote: scripted: listening";
    assert_eq!(told, expected);
    assert!(started.elapsed() < Duration::from_secs(5));

    let told = refused(Server { disabled: true, ..scripted(&[]) }, Limits::default()).await;
    assert_eq!(told, "the MCP server `my server-1` is disabled");
}
