//! What the gate adds to a call: `cargo run --release --example gate [ROUNDS]`. The same program calls a host that answers at
//! once, and a toolkit that answers at once behind the whole gate. It prints, and asserts nothing.
//!
//! A program times a hundred calls in a row, so that its clock costs nothing; figures are the medians of those hundreds.

mod forgetful;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use fimble::gate::{self, Attendant, Gate, Order, Secrets, Stage, Unattended, execute};
use fimble::interpreter::{self, Ending, Host, HostCall, Interpreter, Limits, Run};
use fimble::program::{Known, from_file};
use fimble::record::Outcome as Ended;
use fimble::registry::Registry;
use fimble::session::Session;
use fimble::store::Store;
use fimble::store::sqlite::Sqlite;
use fimble_toolkit::{ToolError, toolkit};
use forgetful::Forgetful;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Hundreds of calls in one program.
const HUNDREDS: usize = 40;

const PROGRAM: &str = "\
import time
times = []
for _ in range(HUNDREDS):
    begun = time.perf_counter()
    for n in range(100):
        await tools.echo(n)
    times.append((time.perf_counter() - begun) * 1e4)
times.sort()
print(f'{times[len(times) // 2]:.2f} {times[0]:.2f}')
";

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Answers at once.
struct Bare;

#[async_trait]
impl Host for Bare {
    async fn call(&self, call: HostCall) -> Result<Value, ToolError> {
        Ok(call.positional.into_iter().next().unwrap_or_default())
    }

    fn print(&self, _text: &str) {}

    fn statement(&self, _number: u32, _of: u32) {}
}

/// Answers at once, too.
struct Tools;

/// Says what it is told.
#[toolkit(name = "tools")]
impl Tools {
    /// The same number.
    #[operation(risk = "read")]
    async fn echo(&self, number: u64) -> Result<u64, ToolError> {
        Ok(number)
    }
}

fn main() -> Outcome<()> {
    interpreter::init();
    let rounds = std::env::args().nth(1).map(|text| text.parse()).transpose()?.unwrap_or(12);
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(measure(rounds))
}

async fn measure(rounds: usize) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let interpreter = Interpreter::start(&interpreter::Config::default()).await?;
    let none: Arc<dyn Store> = Arc::new(Forgetful(Sqlite::in_memory()?));
    let memory: Arc<dyn Store> = Arc::new(Sqlite::in_memory()?);
    let file: Arc<dyn Store> = Arc::new(Sqlite::open(folder.path().join("gate.db"))?);
    let secrets = || Secrets::new((0..20).map(|number| format!("secret number {number} of some length")));
    let limits =
        "[[limits]]\nper_minute = 100000000\nat_once = 8\n[[locks]]\noperations = 'tools.*'\nresource = 'tools'\n";
    let mut limited: gate::Config = toml::from_str(limits)?;
    limited.lock_folder = None;
    let plain = gate_of(gate::Config::default(), Secrets::default())?;
    let full = gate_of(limited, secrets())?;
    let mut figures: Vec<(&str, Vec<f64>)> = [
        "bare",
        "gate, without the journal",
        "the same, 20 secrets, a rate and a lock",
        "gate, journal in memory",
        "gate, journal in a file",
    ]
    .map(|name| (name, Vec::new()))
    .into();
    // In turn: whatever else the machine does meets all of them alike.
    for _ in 0..rounds {
        figures[0].1.push(bare(&interpreter).await?);
        figures[1].1.push(gated(&plain, &interpreter, &none).await?);
        figures[2].1.push(gated(&full, &interpreter, &none).await?);
        figures[3].1.push(gated(&plain, &interpreter, &memory).await?);
        figures[4].1.push(gated(&plain, &interpreter, &file).await?);
    }
    let mut bare = 0.0;
    for (name, mut times) in figures {
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        if name == "bare" {
            bare = median;
        }
        println!("{name:<40} {median:6.1} µs a call (best round {:.1}), adds {:.1}", times[0], median - bare);
    }
    masking(&secrets());
    Ok(())
}

fn gate_of(config: gate::Config, secrets: Secrets) -> Outcome<Arc<Gate>> {
    let registry = Registry::new();
    registry.register(Arc::new(Tools))?;
    Ok(Arc::new(Gate::new(Arc::new(registry), config, secrets)))
}

fn program() -> String {
    PROGRAM.replace("HUNDREDS", &HUNDREDS.to_string())
}

/// The median of a round, in microseconds a call.
fn median(output: &str) -> Outcome<f64> {
    Ok(output.split_whitespace().next().ok_or("the program printed nothing")?.parse()?)
}

async fn bare(interpreter: &Interpreter) -> Outcome<f64> {
    let run = Run { proxies: vec!["tools".to_owned()], limits: limits(), ..Run::of(program()) };
    let finished = interpreter.run(run, Arc::new(Bare), CancellationToken::new()).await?;
    match finished.ending {
        Ending::Returned { .. } => median(&finished.output),
        ending => Err(format!("{ending:?}").into()),
    }
}

async fn gated(gate: &Arc<Gate>, interpreter: &Interpreter, store: &Arc<dyn Store>) -> Outcome<f64> {
    let mut session = Session::create(Arc::clone(store), "bench", "bench", "").await?;
    let declarations = gate.declarations();
    let config = Default::default();
    let shapes = Default::default();
    let known = Known {
        declarations: &declarations,
        carried: &[],
        shapes: &shapes,
        not_kept: &Default::default(),
        finish_length: false,
        config: &config,
    };
    let program = from_file(&program(), &known).map_err(|refusal| refusal.to_string())?;
    let attendant: Arc<dyn Attendant> = Arc::new(Unattended);
    let cancel = CancellationToken::new();
    let stage = Stage { gate, interpreter, attendant: &attendant, cancel: &cancel };
    let order = Order { limits: limits(), ..Order::default() };
    let executed = execute(stage, &mut session, &program, order, &mut |_, _| {}).await?;
    match executed.outcome {
        Ended::Finished { .. } => median(&executed.output),
        outcome => Err(format!("{outcome:?}").into()),
    }
}

fn limits() -> Limits {
    Limits { wall_s: 60.0, calls: 1_000_000, ..Limits::default() }
}

/// What looking for secrets costs.
fn masking(secrets: &Secrets) {
    let text = "The quick brown fox jumps over the lazy dog, 1234 times. ".repeat(20);
    let records =
        json!((0..100).map(|id| json!({"id": id, "name": format!("item {id}"), "text": text})).collect::<Vec<_>>());
    let bytes = records.to_string().len() as f64;
    let mut best = Duration::MAX;
    for _ in 0..20 {
        let mut records = records.clone();
        let begun = Instant::now();
        secrets.mask_value(&mut records);
        best = best.min(begun.elapsed());
    }
    println!("masking, 20 secrets: {:.0} MB/s", bytes / best.as_secs_f64() / 1e6);
}
