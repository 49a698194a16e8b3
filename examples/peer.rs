//! Fimble as a row of a benchmark that is written in Python: `benches/fimble_peer.py` drives it. A request is a line of JSON
//! on standard input, a reply one on standard output. The three tools of that benchmark live here.

use std::error::Error;
use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use fimble::interpreter::{Carried, Config, Ending, Host, HostCall, Interpreter, Limits, Run};
use fimble::record::VariableKind;
use fimble_toolkit::ToolError;
use futures_util::future::try_join_all;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

type Outcome<T> = Result<T, Box<dyn Error>>;

#[derive(Deserialize)]
struct Request {
    code: String,
    /// JSON text of an object.
    variables: String,
    /// Seconds.
    timeout: Option<f64>,
    /// How many sessions run it at once.
    sessions: usize,
}

#[derive(Serialize)]
struct Reply {
    output: String,
    variables: Option<Map<String, Value>>,
    /// `None` if the program ran to its end.
    failure: Option<(String, String)>,
    zygote: u32,
}

/// The tools `echo`, `big` and `slow`.
struct Tools {
    big: Value,
}

impl Tools {
    fn new() -> Self {
        let text = "x".repeat(960);
        Self {
            big: (0..1_000)
                .map(|id| json!({"id": id, "name": format!("item {id}"), "text": text, "ok": true}))
                .collect(),
        }
    }
}

#[async_trait]
impl Host for Tools {
    async fn call(&self, mut call: HostCall) -> Result<Value, ToolError> {
        let n = call.keyword.remove("n").unwrap_or_else(|| json!(0));
        match call.method.as_str() {
            "echo" => Ok(json!({
                "project_id": call.keyword.remove("project_id"),
                "name": "Example project",
                "owner": {"id": 7, "mail": "a@example.org"},
                "n": n,
            })),
            "big" => Ok(self.big.clone()),
            "slow" => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                Ok(n)
            }
            other => Err(ToolError::not_found(format!("there is no tool `{other}`"))),
        }
    }
    fn print(&self, _text: &str) {}
    fn statement(&self, _number: u32, _of: u32) {}
}

fn main() -> Outcome<()> {
    fimble::interpreter::init();
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(serve())
}

async fn serve() -> Outcome<()> {
    let interpreter = Interpreter::start(&Config::default()).await?;
    let tools: Arc<dyn Host> = Arc::new(Tools::new());
    // Nothing else runs here while a request is waited for.
    for line in std::io::stdin().lock().lines() {
        let request: Request = serde_json::from_str(&line?)?;
        let last = Mutex::new(None);
        try_join_all((0..request.sessions).map(|_| async {
            let reply = answer(&interpreter, &tools, &request).await?;
            *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(reply);
            Ok::<(), Box<dyn Error>>(())
        }))
        .await?;
        let mut reply = serde_json::to_string(&last.into_inner()?)?;
        reply.push('\n');
        std::io::stdout().write_all(reply.as_bytes())?;
    }
    Ok(())
}

async fn answer(interpreter: &Interpreter, tools: &Arc<dyn Host>, request: &Request) -> Outcome<Reply> {
    let mut variables: Map<String, Value> = serde_json::from_str(&request.variables)?;
    let carried = |(name, value): (&String, &Value)| Carried {
        name: name.clone(),
        kind: VariableKind::Value,
        content: value.to_string(),
    };
    let limits = Limits {
        calls: 1_000_000,
        concurrent_calls: 1_000,
        wall_s: request.timeout.unwrap_or(600.0),
        ..Limits::default()
    };
    let run = Run {
        source: request.code.clone(),
        file_name: "<program>".to_owned(),
        variables: variables.iter().map(carried).collect(),
        proxies: vec!["tools".to_owned()],
        paging: Vec::new(),
        limits,
        repeat: None,
    };
    let finished = interpreter.run(run, Arc::clone(tools), CancellationToken::new()).await?;
    let failure = match finished.ending {
        Ending::Returned { .. } => None,
        Ending::Raised { traceback, exception, .. } => Some((exception, traceback)),
        Ending::Limit { limit, message } => Some((limit.to_owned(), message)),
        Ending::Crashed { message } | Ending::Lost { message } => Some(("crashed".to_owned(), message)),
        Ending::Cancelled => Some(("cancelled".to_owned(), String::new())),
    };
    for name in &finished.removed {
        variables.remove(name);
    }
    for captured in finished.written.into_iter().filter(|captured| captured.kind == VariableKind::Value) {
        variables.insert(captured.name, plain(serde_json::from_str(&captured.content)?));
    }
    let zygote = interpreter.zygote_pid().await;
    Ok(Reply { output: finished.output, variables: Some(variables), failure, zygote })
}

/// The value without the mark that its objects are records.
fn plain(value: Value) -> Value {
    match value {
        Value::Object(mut fields) if fields.get("$") == Some(&json!("records")) => {
            fields.remove("v").unwrap_or_default()
        }
        other => other,
    }
}
