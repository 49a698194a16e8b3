//! The HTTP adapters against servers that speak the wire formats, errors included.
#![expect(clippy::unwrap_used, reason = "a helper that fails is a failed test")]

mod answers;
mod refusals;

use std::ops::ControlFlow;
use std::time::Duration;

use fimble::llm::scripted::Scripted;
use fimble::llm::{
    Abilities, Completion, Config, Endpoint, Family, FillFormat, Finish, Input, LlmError, Message, Model, Request,
    Role, Secret, Timeouts, TokenUsage, connect,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use wiremock::matchers::{body_partial_json, header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

fn config(address: &str) -> Config {
    Config {
        base_url: Some(address.to_owned()),
        api_key: Some(Secret::new("sk-secret")),
        model: Some("qwen2.5-coder".to_owned()),
        fill: FillFormat::Tokens,
        timeouts: Timeouts { connect_s: 5.0, first_token_s: 10.0, idle_s: 10.0, total_s: 20.0 },
        ..Config::default()
    }
}

fn chat(text: &str) -> Request {
    let message = Message { role: Role::User, content: text.to_owned() };
    Request { input: Input::Chat(vec![message]), max_tokens: 64, temperature: 0.2, stop: vec!["STOP".to_owned()] }
}

fn hole(prefix: &str, suffix: &str) -> Request {
    let input = Input::Fill { prefix: prefix.to_owned(), suffix: suffix.to_owned() };
    Request { input, max_tokens: 64, temperature: 0.0, stop: Vec::new() }
}

/// The completion, and all pieces that were handed out.
async fn complete(model: &dyn Model, request: &Request) -> (Result<Completion, LlmError>, Vec<String>) {
    let mut pieces = Vec::new();
    let completed = model
        .complete(request, &mut |text| {
            pieces.push(text.to_owned());
            ControlFlow::Continue(())
        })
        .await;
    (completed, pieces)
}

/// What a completion says, without its time.
fn said(completion: &Completion) -> (&str, Finish, TokenUsage) {
    (&completion.text, completion.finish, completion.usage)
}

fn events(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>() + "data: [DONE]\n\n"
}

fn chat_events() -> String {
    let delta =
        |delta: Value, finish: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    let usage = json!({"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}});
    format!(
        ": ping\n\n{}",
        events(&[
            delta(json!({"role": "assistant", "content": null}), Value::Null),
            delta(json!({"reasoning": "hm", "reasoning_content": "hm"}), Value::Null),
            delta(json!({"content": "Здрав"}), Value::Null),
            delta(json!({"content": "ствуй\n"}), Value::Null),
            delta(json!({}), json!("stop")),
            json!({"choices": [], "usage": usage}),
        ])
    )
}

const CHAT_SAID: (&str, Finish, TokenUsage) =
    ("Здравствуй\n", Finish::Ended, TokenUsage { prompt: 12, cached: 8, completion: 3 });

fn stream(text: impl Into<String>) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_raw(text.into(), "text/event-stream")
}

async fn serve(at: &str, answer: ResponseTemplate) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(method("POST")).and(path(at)).respond_with(answer).mount(&server).await;
    server
}

async fn body_of(server: &MockServer, number: usize) -> Value {
    server.received_requests().await.unwrap()[number].body_json().unwrap()
}

fn error_json(status: u16, error: Value) -> ResponseTemplate {
    ResponseTemplate::new(status).set_body_json(json!({ "error": error }))
}

/// A server that answers each connection with the next of `answers`, byte for byte, and then closes it; without any
/// left it stops to listen. Says when a client leaves before the answer is out.
async fn raw_server(answers: Vec<Vec<Vec<u8>>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move {
        for answer in answers {
            let mut stream = listener.accept().await.unwrap().0;
            read_request(&mut stream).await;
            for piece in answer {
                stream.write_all(&piece).await.unwrap();
                stream.flush().await.unwrap();
                tokio::task::yield_now().await;
            }
        }
    });
    address
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return text;
            }
        }
        let mut block = [0; 4096];
        let read = stream.read(&mut block).await.unwrap();
        assert!(read > 0, "the client left");
        request.extend_from_slice(&block[..read]);
    }
}

fn head() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_vec()
}
