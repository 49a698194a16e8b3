//! The interpreter at its door: real zygotes of the built binary, real jails.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails its test")]

mod attacks;
mod calls;
mod conformance;
mod last_words;
mod life;
mod limits;
mod native;
mod paging;
mod programs;
mod soak;
mod users;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use fimble::interpreter::{Config, Ending, Finished, Host, HostCall, Interpreter, Level, Limits, Run};
use fimble_toolkit::ToolError;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Answers calls and writes down what happens.
#[derive(Default)]
struct Recorder {
    prints: Mutex<Vec<String>>,
    statements: Mutex<Vec<(u32, u32)>>,
    calls: Mutex<Vec<HostCall>>,
    most_at_once: AtomicU32,
    dropped: AtomicU32,
    now: AtomicU32,
    started: Notify,
    printed: Notify,
}

/// Counts calls that are under way.
struct Under<'a>(&'a Recorder, bool);

impl Drop for Under<'_> {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
        if !self.1 {
            self.0.dropped.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[async_trait]
impl Host for Recorder {
    async fn call(&self, call: HostCall) -> Result<Value, ToolError> {
        let mut under = Under(self, false);
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_at_once.fetch_max(now, Ordering::SeqCst);
        self.calls.lock().unwrap().push(call.clone());
        self.started.notify_one();
        let result = match call.method.as_str() {
            "echo" => Ok(json!({ "positional": call.positional, "keyword": call.keyword })),
            "big" => Ok(json!("x".repeat(1024 * 1024))),
            "forever" => std::future::pending().await,
            "wait" => {
                tokio::time::sleep(Duration::from_millis(20)).await;
                Ok(json!("waited"))
            }
            _ => Err(ToolError::not_found("there is no such thing").with_hint("ask for another one")),
        };
        under.1 = true;
        result
    }

    fn print(&self, text: &str) {
        self.prints.lock().unwrap().push(text.to_owned());
        self.printed.notify_one();
    }

    fn statement(&self, number: u32, of: u32) {
        self.statements.lock().unwrap().push((number, of));
    }
}

fn config() -> Config {
    let built = PathBuf::from(env!("CARGO_BIN_EXE_fimble"));
    // Set when the tests run themselves as another user, who may not reach the folder of the build.
    let executable = std::env::var_os("FIMBLE_TEST_EXECUTABLE").map_or(built, PathBuf::from);
    let isolation = match std::env::var("FIMBLE_TEST_ISOLATION").as_deref() {
        Ok("reduced") => Level::Reduced,
        Ok("none") => Level::None,
        _ => Level::Full,
    };
    let spares_deadly_calls = std::env::var_os("FIMBLE_TEST_SPARES").is_some();
    Config { executable: Some(executable), isolation, spares_deadly_calls, ..Config::default() }
}

fn limits() -> Limits {
    Limits { wall_s: 20.0, ..Limits::default() }
}

fn program(source: &str) -> Run {
    Run {
        source: source.to_owned(),
        file_name: "<program>".to_owned(),
        variables: Vec::new(),
        proxies: vec!["demo".to_owned()],
        paging: Vec::new(),
        limits: limits(),
        repeat: None,
    }
}

async fn start() -> Interpreter {
    Interpreter::start(&config()).await.unwrap()
}

async fn finish(interpreter: &Interpreter, run: Run, host: &Arc<Recorder>) -> Finished {
    let host: Arc<dyn Host> = Arc::<Recorder>::clone(host);
    interpreter.run(run, host, CancellationToken::new()).await.unwrap()
}

async fn run(interpreter: &Interpreter, source: &str) -> Finished {
    finish(interpreter, program(source), &Arc::default()).await
}

/// Runs a program that must end by itself, and answers what it printed.
async fn output(interpreter: &Interpreter, source: &str) -> String {
    let finished = run(interpreter, source).await;
    match finished.ending {
        Ending::Returned { .. } => finished.output,
        other => panic!("{source}\n{other:?}\n{}", finished.output),
    }
}

/// The name of the exception that a program ended with, or else how it ended.
fn exception(finished: &Finished) -> String {
    match &finished.ending {
        Ending::Raised { exception, .. } => exception.clone(),
        other => format!("{other:?}"),
    }
}

fn crash(finished: &Finished) -> &str {
    match &finished.ending {
        Ending::Crashed { message } | Ending::Lost { message } => message,
        other => panic!("{other:?}"),
    }
}

fn limit(finished: &Finished) -> &str {
    match &finished.ending {
        Ending::Limit { limit, .. } => limit,
        other => panic!("{other:?}"),
    }
}
