//! An agent on the official SDK.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fimble_a2a::{Agent, Limits, connect};
use fimble_toolkit::{ErrorKind, Risk, classes, signature};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{agent, call, reached};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/a2a_agent.py");

const PACKAGES: [&str; 2] = ["a2a-sdk[http-server]==1.3.0", "uvicorn==0.54.0"];

/// The `bin` of a virtual environment with [`PACKAGES`], in a folder of the user's cache that later runs find again.
fn environment() -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap();
    let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(|| home.join(".cache"), PathBuf::from);
    let tests = cache.join("fimble/tests");
    fs::create_dir_all(&tests).unwrap();
    // Tests of one run are processes of their own.
    let lock = File::create(tests.join("a2a.lock")).unwrap();
    lock.lock().unwrap();
    let (folder, installed) = (tests.join("a2a"), tests.join("a2a/installed"));
    let wanted = PACKAGES.join("\n");
    if fs::read_to_string(&installed).ok().as_deref() != Some(&wanted) {
        let run = |command: &mut Command| assert!(command.status().unwrap().success(), "{command:?}");
        run(Command::new("/usr/bin/python3").args(["-m", "venv"]).arg(&folder));
        run(Command::new(folder.join("bin/pip")).args(["install", "--quiet"]).args(PACKAGES));
        fs::write(&installed, wanted).unwrap();
    }
    folder.join("bin")
}

/// The agent's process, ended with the test.
pub struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn start(arguments: &[&str]) -> (Running, String) {
    let mut command = Command::new(environment().join("python"));
    let mut child = command.arg(SCRIPT).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
    (Running(child), address.trim().to_owned())
}

/// An answer without its ids, and the task's id.
pub fn told(mut answer: Value) -> (Value, String) {
    let fields = answer.as_object_mut().unwrap();
    fields.remove("context_id").unwrap();
    let task = fields.remove("task_id").unwrap();
    (answer, task.as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn the_card_is_the_toolkit() {
    let (_running, url) = start(&[]);
    let declaration = reached(&url).await.declaration();
    assert_eq!(declaration.name, "cook_toolkit");
    let unnamed = connect(Agent { name: String::new(), ..agent(&url) }, Limits::default()).await.unwrap();
    assert_eq!(unnamed.declaration().name, "cook_toolkit");
    assert_eq!(declaration.description, "Does what it is told. It can: Greet: Says hello");
    let stubs: Vec<(String, Risk)> = declaration.operations.iter().map(|one| (signature(one), one.risk)).collect();
    let expected = [
        (
            "send(message: str, data: Any = None, task_id: str = None, context_id: str = None, wait_s: float = 120) -> Answer",
            Risk::Write,
        ),
        ("get_task(task_id: str) -> Answer", Risk::Read),
        ("cancel_task(task_id: str) -> Answer", Risk::Destructive),
    ];
    assert_eq!(stubs, expected.map(|(stub, risk)| (stub.to_owned(), risk)));
    let answer = &classes(&declaration.operations[0])["Answer"];
    assert!(answer.starts_with("class Answer: state: Literal[\"submitted\", "), "{answer}");
    assert!(
        answer.ends_with(
            "text: str; question: str | None; task_id: str | None; context_id: str | None; artifacts: list[Artifact]"
        ),
        "{answer}"
    );
}

#[tokio::test]
async fn an_agent_that_streams_does_what_it_is_told() {
    does_what_it_is_told(&[]).await;
}

#[tokio::test]
async fn an_agent_that_does_not_stream_does_what_it_is_told() {
    does_what_it_is_told(&["plain"]).await;
}

async fn does_what_it_is_told(arguments: &[&str]) {
    let (_running, url) = start(arguments);
    let toolkit = reached(&url).await;
    let send = |message: &str| call(&*toolkit, "send", json!({"message": message}));
    let artifact = |name: &str, text: &str| json!({"name": name, "text": text, "data": [], "files": []});

    let (answer, task) = told(send("hello Ada").await.unwrap());
    let hello = json!({"state": "completed", "text": "Hello, Ada!", "question": null, "artifacts": [artifact("greeting", "Hello, Ada!")]});
    assert_eq!(answer, hello);
    let (answer, _) = told(call(&*toolkit, "get_task", json!({"task_id": task})).await.unwrap());
    assert_eq!(answer, hello);

    let (answer, task) = told(send("message").await.unwrap());
    assert_eq!(
        (answer, task.as_str()),
        (json!({"state": "message", "text": "Just a message.", "question": null, "artifacts": []}), "")
    );

    let (answer, _) = told(send("stream").await.unwrap());
    let count = json!({"state": "completed", "text": "one two three", "question": null, "artifacts": [artifact("count", "one two three")]});
    assert_eq!(answer, count);

    let (answer, _) = told(send("data").await.unwrap());
    let things = json!({"name": "things", "text": "", "data": [{"n": 3.0}],
        "files": [{"name": "hi.txt", "media_type": "text/plain", "base64": "aGk="}]});
    assert_eq!(answer["artifacts"], json!([things]));

    let (answer, task) = told(send("ask").await.unwrap());
    assert_eq!(answer, json!({"state": "input_required", "text": "", "question": "Which city?", "artifacts": []}));
    let (answer, same) = told(call(&*toolkit, "send", json!({"message": "Bergen", "task_id": task})).await.unwrap());
    assert_eq!((&answer["state"], &answer["text"], same), (&json!("completed"), &json!("Rain in Bergen."), task));

    let (answer, _) = told(send("auth").await.unwrap());
    assert_eq!((&answer["state"], &answer["question"]), (&json!("auth_required"), &json!("Sign in first.")));
}

#[tokio::test]
async fn what_fails_says_why() {
    let (running, url) = start(&[]);
    let toolkit = reached(&url).await;
    let unknown = json!({"task_id": "none"});
    let table = [
        (
            "send",
            json!({"message": "fail"}),
            ErrorKind::Failed,
            "cook_toolkit.send(): the agent `cook` failed at it: The oven is broken",
        ),
        (
            "send",
            json!({"message": "reject"}),
            ErrorKind::Failed,
            "cook_toolkit.send(): the agent `cook` does not take it on: I do not bake on Sundays",
        ),
        ("send", json!({"message": "raise"}), ErrorKind::Failed, "cook_toolkit.send(): a defect of the agent"),
        (
            "send",
            json!({"message": "x", "wait_s": -1}),
            ErrorKind::InvalidArgument,
            "cook_toolkit.send(): `wait_s` must be from 0 to 604800",
        ),
        ("nothing", json!({}), ErrorKind::UnknownOperation, "cook_toolkit has no operation `nothing`"),
    ];
    for (operation, arguments, kind, message) in table {
        let error = call(&*toolkit, operation, arguments).await.unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (kind, message));
    }
    for operation in ["get_task", "cancel_task"] {
        let error = call(&*toolkit, operation, unknown.clone()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound, "{error}");
    }
    drop(running);
    let error = call(&*toolkit, "get_task", unknown).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(error.message.starts_with("cook_toolkit.get_task(): the agent `cook` is gone: "), "{error}");
    let error = connect(agent(&url), Limits::default()).await.err().unwrap();
    assert!(error.to_string().starts_with("the A2A agent `cook` cannot be reached: "), "{error}");
}

#[tokio::test]
async fn a_slow_task_can_be_left_and_looked_after() {
    for arguments in [&[][..], &["plain"]] {
        let (_running, url) = start(arguments);
        let toolkit = reached(&url).await;
        let (answer, task) = told(call(&*toolkit, "send", json!({"message": "slow", "wait_s": 0.2})).await.unwrap());
        assert_eq!(answer["state"], "working");
        let (answer, _) = told(call(&*toolkit, "get_task", json!({"task_id": task})).await.unwrap());
        assert_eq!(answer["state"], "working");
        let (answer, _) = told(call(&*toolkit, "cancel_task", json!({"task_id": task})).await.unwrap());
        assert_eq!((&answer["state"], &answer["text"]), (&json!("canceled"), &json!("Stopped.")));
    }
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_cancels_its_task() {
    let (_running, url) = start(&[]);
    let toolkit = reached(&url).await;
    let count =
        async |which: &str| told(call(&*toolkit, "send", json!({"message": which})).await.unwrap()).0["text"].clone();
    let waiting = {
        let toolkit = toolkit.clone();
        tokio::spawn(async move { call(&*toolkit, "send", json!({"message": "slow"})).await })
    };
    while count("started").await != json!("1") {
        sleep(Duration::from_millis(10)).await;
    }
    waiting.abort();
    assert!(waiting.await.is_err_and(|error| error.is_cancelled()));
    while count("cancelled").await != json!("1") {
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_token_is_sent_and_not_shown() {
    let (_running, url) = start(&["key"]);
    let refused = connect(agent(&url), Limits::default()).await.err().unwrap();
    let expected =
        "the A2A agent `cook` cannot be reached: it answered 401 Unauthorized for /.well-known/agent-card.json";
    assert_eq!(refused.to_string(), expected);
    let with = Agent {
        token: Some("open sesame\n".to_owned()),
        headers: BTreeMap::from([("X-More".to_owned(), "m0re".to_owned())]),
        ..agent(&url)
    };
    let shown = format!("{with:?}");
    assert!(!shown.contains("sesame") && !shown.contains("m0re") && shown.contains("X-More"), "{shown}");
    let toolkit = connect(with, Limits::default()).await.unwrap();
    let answer = call(&*toolkit, "send", json!({"message": "hello you"})).await.unwrap();
    assert_eq!(answer["text"], "Hello, you!");
}
