//! An A2A agent that works at a task until it is told that it is done, and counts what it is asked.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

/// The agent. Its address is that of the server, which lives as long as it.
pub struct Agent {
    server: MockServer,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    asked: BTreeMap<String, usize>,
    is_done: bool,
}

struct Script(Arc<Mutex<State>>);

impl Agent {
    pub async fn start() -> Self {
        let server = MockServer::start().await;
        let card = json!({"name": "Cook", "supportedInterfaces":
            [{"url": "/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]});
        Mock::given(method("GET")).respond_with(ResponseTemplate::new(200).set_body_json(card)).mount(&server).await;
        let state: Arc<Mutex<State>> = Arc::default();
        Mock::given(method("POST")).respond_with(Script(Arc::clone(&state))).mount(&server).await;
        Self { server, state }
    }

    /// Makes it a toolkit of whoever has this folder of settings.
    pub fn configure(&self, config: &Path) {
        std::fs::create_dir_all(config.join("fimble")).unwrap();
        let settings = format!("[[toolkits.a2a]]\nname = \"cook\"\nurl = \"{}\"\n", self.server.uri());
        std::fs::write(config.join("fimble/config.toml"), settings).unwrap();
    }

    /// How often it was asked that.
    pub fn asked(&self, method: &str) -> usize {
        self.state.lock().unwrap().asked.get(method).copied().unwrap_or_default()
    }

    /// Its task is done from now on.
    pub fn is_done(&self) {
        self.state.lock().unwrap().is_done = true;
    }
}

impl Respond for Script {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let asked: Value = serde_json::from_slice(&request.body).unwrap();
        let method = asked["method"].as_str().unwrap().to_owned();
        let mut state = self.0.lock().unwrap();
        *state.asked.entry(method.clone()).or_default() += 1;
        let word = match (method.as_str(), state.is_done) {
            ("CancelTask", _) => "CANCELED",
            (_, true) => "COMPLETED",
            _ => "WORKING",
        };
        let looks = state.asked.get("GetTask").copied().unwrap_or_default();
        let message = json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": format!("step {looks}")}]});
        let artifacts =
            if state.is_done { json!([{"artifactId": "a", "parts": [{"text": "Bread."}]}]) } else { json!([]) };
        let task = json!({"id": "t1", "contextId": "c1", "status": {"state": format!("TASK_STATE_{word}"), "message": message},
            "artifacts": artifacts});
        let result = if method == "SendMessage" { json!({"task": task}) } else { task };
        ResponseTemplate::new(200).set_body_json(json!({"jsonrpc": "2.0", "id": 1, "result": result}))
    }
}
