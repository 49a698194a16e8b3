//! Agents that say too much, too little or nonsense.

use fimble_a2a::{Limits, connect};
use fimble_toolkit::{ErrorKind, ToolError};
use proptest::prelude::*;
use serde_json::{Value, json};
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::{agent, call};

fn card(streaming: bool) -> Value {
    json!({"name": "x", "capabilities": {"streaming": streaming},
        "supportedInterfaces": [{"url": "/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]})
}

fn small() -> Limits {
    Limits { answer_bytes: 2_000, result_bytes: 500, card_bytes: 4_000, ..Limits::default() }
}

/// What `send` gives when the agent answers with that.
async fn sent(answer: ResponseTemplate, streaming: bool) -> Result<Value, ToolError> {
    sent_with(json!({"message": "x", "wait_s": 0}), answer, streaming).await
}

async fn sent_with(arguments: Value, answer: ResponseTemplate, streaming: bool) -> Result<Value, ToolError> {
    let server = MockServer::start().await;
    Mock::given(method("GET"))
        .respond_with(ResponseTemplate::new(200).set_body_json(card(streaming)))
        .mount(&server)
        .await;
    Mock::given(method("POST")).respond_with(answer).mount(&server).await;
    let toolkit = connect(agent(&server.uri()), small()).await.unwrap();
    call(&*toolkit, "send", arguments).await
}

fn events(text: &str) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_raw(text, "text/event-stream")
}

#[tokio::test]
async fn what_is_no_answer_is_an_error() {
    let json_of = |body: Value| ResponseTemplate::new(200).set_body_json(body);
    let result = |result: Value| json!({"jsonrpc": "2.0", "id": 1, "result": result});
    let long = json!({"message": {"parts": [{"text": "x".repeat(1_000)}]}});
    let table = [
        (json_of(json!({})), false, "the agent `cook` answered without a result"),
        (json_of(result(json!({"odd": 1}))), false, "the agent `cook` answered neither a message nor a task"),
        (
            ResponseTemplate::new(200).set_body_string("<html>"),
            false,
            "the agent `cook` answered what is no JSON: expected value at line 1 column 1",
        ),
        (
            ResponseTemplate::new(500).set_body_string("oops"),
            true,
            "the agent `cook` answered 500 Internal Server Error",
        ),
        (
            ResponseTemplate::new(400).set_body_json(json!({"error": {"code": -32602, "message": "Bad\npart."}})),
            true,
            "Bad part",
        ),
        (
            ResponseTemplate::new(302).insert_header("location", "http://127.0.0.1:1/"),
            false,
            "the agent `cook` answered 302 Found",
        ),
        (
            json_of(result(long.clone())),
            false,
            "the result of cook_toolkit.send() has 1093 bytes of JSON, more than 500",
        ),
        (
            ResponseTemplate::new(200).set_body_string(" ".repeat(3_000)),
            false,
            "the agent `cook` is gone: it sent more than 2000 bytes",
        ),
        (
            events(&"data: {\"result\": {}}\n\n".repeat(200)),
            true,
            "the agent `cook` is gone: it sent more than 2000 bytes",
        ),
        (events(""), true, "the agent `cook` answered nothing"),
        (
            events("data: nonsense\n\n"),
            true,
            "the agent `cook` answered what is no JSON: expected ident at line 1 column 2",
        ),
        (events("data: {\"error\": {\"code\": -32009, \"message\": \"Speak 2.0\"}}\n\n"), true, "Speak 2.0"),
    ];
    for (answer, streaming, expected) in table {
        let error = sent(answer, streaming).await.unwrap_err();
        assert!(error.message.ends_with(expected), "{error}");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_leaves_the_task() {
    let task = "data: {\"result\": {\"task\": {\"id\": \"t1\", \"contextId\": \"c1\", \"status\": {\"state\": \"TASK_STATE_WORKING\"}}}}\n\n";
    let answer = sent(events(task), true).await.unwrap();
    assert_eq!(
        (&answer["state"], &answer["task_id"], &answer["context_id"]),
        (&json!("working"), &json!("t1"), &json!("c1"))
    );
}

#[tokio::test]
async fn an_answered_question_is_not_asked_again() {
    let state = |state: &str| json!({"state": state, "message": {"parts": [{"text": state}]}});
    let old = json!({"result": {"task": {"id": "t1", "status": state("TASK_STATE_INPUT_REQUIRED")}}});
    let new = json!({"result": {"statusUpdate": {"taskId": "t1", "status": state("TASK_STATE_COMPLETED")}}});
    let on = || json!({"message": "Bergen", "task_id": "t1"});
    let answer = sent_with(on(), events(&format!("data: {old}\n\ndata: {new}\n\n")), true).await.unwrap();
    assert_eq!((&answer["state"], &answer["text"]), (&json!("completed"), &json!("TASK_STATE_COMPLETED")));
    let answer = sent_with(on(), events(&format!("data: {old}\n\n")), true).await.unwrap();
    assert_eq!(
        (&answer["state"], &answer["question"]),
        (&json!("input_required"), &json!("TASK_STATE_INPUT_REQUIRED"))
    );
}

#[tokio::test]
async fn a_card_is_bounded_and_checked() {
    let table = [
        (
            ResponseTemplate::new(200).set_body_string("x".repeat(5_000)),
            "cannot be reached: it sent more than 4000 bytes",
        ),
        (
            ResponseTemplate::new(200).set_body_string("x"),
            "cannot be reached: its card is no JSON: expected value at line 1 column 1",
        ),
        (
            ResponseTemplate::new(200).set_body_json(json!({"protocolVersion": "0.3.0"})),
            "speaks A2A 0.3.0, and only 1.0 is spoken here",
        ),
    ];
    for (answer, expected) in table {
        let server = MockServer::start().await;
        Mock::given(method("GET")).respond_with(answer).mount(&server).await;
        let error = connect(agent(&server.uri()), small()).await.err().unwrap();
        assert_eq!(error.to_string(), format!("the A2A agent `cook` {expected}"));
        assert!(!error.hint().is_empty());
    }
    let error = connect(agent("file:///etc/passwd"), small()).await.err().unwrap();
    assert_eq!(error.to_string(), "the A2A agent `cook` has a `url` that is neither http:// nor https://");
}

fn arbitrary() -> impl Strategy<Value = Value> {
    let words = [
        "task",
        "message",
        "statusUpdate",
        "artifactUpdate",
        "id",
        "taskId",
        "contextId",
        "status",
        "state",
        "parts",
        "text",
        "data",
        "raw",
        "url",
        "artifact",
        "artifacts",
        "artifactId",
        "append",
        "TASK_STATE_COMPLETED",
        "TASK_STATE_WORKING",
        "TASK_STATE_INPUT_REQUIRED",
        "result",
        "error",
        "code",
    ];
    let word = prop::sample::select(words.to_vec()).prop_map(str::to_owned);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word.clone().prop_map(Value::from)
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((word.clone(), inner), 0..5).prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_answer_is_survived(answers in prop::collection::vec(arbitrary(), 1..4), streaming in any::<bool>()) {
        let lines: Vec<String> = answers.iter().map(|answer| format!("data: {}\n\n", json!({"result": answer}))).collect();
        let answer = if streaming { events(&lines.concat()) } else { ResponseTemplate::new(200).set_body_json(json!({"result": answers[0]})) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        match runtime.block_on(sent(answer, streaming)) {
            Ok(record) => prop_assert!(record["state"].is_string() && record["text"].is_string() && record["artifacts"].is_array()),
            Err(error) => prop_assert!(error.kind != ErrorKind::UnknownOperation && !error.message.is_empty()),
        }
    }
}
