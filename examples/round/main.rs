//! Measures the interpreter. `cargo run --release --example round [starts|rounds|calls|repeat|memory|hazards]`; it prints, and
//! asserts nothing. `round program FILE` runs a program that times what it likes within the jail.

mod calls;
mod hazards;
mod memory;
mod repeat;
mod rounds;

use std::error::Error;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use fimble::interpreter::{Carried, Config, Ending, Finished, Host, HostCall, Interpreter, Limits, Repeat, Run};
use fimble_toolkit::ToolError;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The argument with which this program starts an interpreter, runs one program and ends.
const ONCE: &str = "once";

/// How often each of the large results is asked for.
const LARGE_RESULTS: usize = 30;

/// Starts of the whole program.
const STARTS: usize = 20;

/// Answers at once, or after 10 ms, or with a megabyte.
struct Tools {
    /// A thousand records with a long text each, as often as it is asked for: copying one is not what is measured.
    big: Mutex<Vec<Value>>,
    /// Many small values.
    dense: Mutex<Vec<Value>>,
}

impl Tools {
    /// None at all for a start of the whole program: to make them takes half of its time.
    fn none() -> Self {
        Self { big: Mutex::default(), dense: Mutex::default() }
    }

    fn new(copies: usize) -> Self {
        let text = "x".repeat(960);
        let big = (0..1_000).map(|id| json!({"id": id, "name": format!("item {id}"), "text": text, "ok": true}));
        let dense = (0..25_000).map(|id| json!({"id": id, "part": f64::from(id) / 8.0, "ok": id % 2 == 0}));
        let all = |value: Value| Mutex::new(vec![value; copies]);
        Self { big: all(big.collect()), dense: all(dense.collect()) }
    }
}

fn take(values: &Mutex<Vec<Value>>) -> Value {
    values.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
}

#[async_trait]
impl Host for Tools {
    async fn call(&self, call: HostCall) -> Result<Value, ToolError> {
        match call.method.as_str() {
            "wait" => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                Ok(json!(0))
            }
            "big" => Ok(take(&self.big)),
            "dense" => Ok(take(&self.dense)),
            _ => Ok(json!({"id": 7, "name": "Example", "mail": "a@example.org", "n": call.positional})),
        }
    }
    fn print(&self, _text: &str) {}
    fn statement(&self, _number: u32, _of: u32) {}
}

fn main() -> Outcome<()> {
    fimble::interpreter::init();
    let only = std::env::args().nth(1);
    let once = only.as_deref() == Some(ONCE);
    if only.is_none() || only.as_deref() == Some("starts") {
        starts()?;
    }
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(async {
        let interpreter = Interpreter::start(&Config::default()).await?;
        let bench =
            Bench { interpreter, tools: Arc::new(if once { Tools::none() } else { Tools::new(LARGE_RESULTS) }) };
        if once {
            println!("{}", bench.run("print(1 + 1)", Vec::new(), 60.0).await?.output.trim());
            return Ok(());
        }
        if only.as_deref() == Some("program") {
            let file = std::env::args().nth(2).ok_or("which file?")?;
            println!("{}", bench.output(&std::fs::read_to_string(file)?).await?);
            return Ok(());
        }
        println!("layers: {}", bench.interpreter.isolation().layers.join(", "));
        let only = std::env::args().nth(1);
        let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
        if wanted("rounds") {
            rounds::measure(&bench).await?;
        }
        if wanted("calls") {
            calls::measure(&bench).await?;
        }
        if wanted("repeat") {
            repeat::measure(&bench).await?;
        }
        if wanted("memory") {
            memory::measure(&bench).await?;
        }
        if wanted("hazards") {
            hazards::measure(&bench).await?;
        }
        Ok(())
    })
}

/// From exec to the first result, of this program as a whole.
fn starts() -> Outcome<()> {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let begun = Instant::now();
        let mut started = Command::new(std::env::current_exe()?).arg(ONCE).stdout(Stdio::piped()).spawn()?;
        let mut output = started.stdout.take().ok_or("no output")?;
        let mut first = [0];
        std::io::Read::read_exact(&mut output, &mut first)?;
        times.push(begun.elapsed());
        started.wait()?;
    }
    show("exec to the first result", &mut times);
    Ok(())
}

struct Bench {
    interpreter: Interpreter,
    tools: Arc<Tools>,
}

impl Bench {
    async fn run(&self, source: &str, variables: Vec<Carried>, wall_s: f64) -> Outcome<Finished> {
        self.run_again(source, variables, wall_s, None).await
    }

    async fn run_again(
        &self,
        source: &str,
        variables: Vec<Carried>,
        wall_s: f64,
        repeat: Option<Repeat>,
    ) -> Outcome<Finished> {
        let limits = Limits { calls: 100_000, concurrent_calls: 1_000, wall_s, ..Limits::default() };
        let run = Run {
            source: source.to_owned(),
            file_name: "<program>".to_owned(),
            variables,
            proxies: vec!["tools".to_owned()],
            paging: Vec::new(),
            limits,
            repeat,
        };
        let tools: Arc<dyn Host> = Arc::<Tools>::clone(&self.tools);
        Ok(self.interpreter.run(run, tools, CancellationToken::new()).await?)
    }

    /// Runs a program that must end by itself.
    async fn round(&self, source: &str, variables: Vec<Carried>) -> Outcome<(Duration, Finished)> {
        self.repeated(source, variables, None).await
    }

    /// The same with what makes it repeat itself.
    async fn repeated(
        &self,
        source: &str,
        variables: Vec<Carried>,
        repeat: Option<Repeat>,
    ) -> Outcome<(Duration, Finished)> {
        let begun = Instant::now();
        let finished = self.run_again(source, variables, 60.0, repeat).await?;
        match finished.ending {
            Ending::Returned { .. } => Ok((begun.elapsed(), finished)),
            other => Err(format!("{other:?}").into()),
        }
    }

    /// What a program printed.
    async fn output(&self, source: &str) -> Outcome<String> {
        Ok(self.round(source, Vec::new()).await?.1.output.trim().to_owned())
    }
}

fn show(what: &str, times: &mut [Duration]) {
    times.sort();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default().as_secs_f64() * 1e3;
    let (best, count) = (at(0), times.len());
    println!("{what}: best {best:.2} ms, p50 {:.2} ms, p90 {:.2} ms, p99 {:.2} ms, of {count}", at(50), at(90), at(99));
}
