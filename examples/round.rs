//! Measures the interpreter: rounds, calls, and the time until the first result. `cargo run --release --example round`.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use fimble::interpreter::{Carried, Config, Ending, Host, HostCall, Interpreter, Limits, Run};
use fimble::record::VariableKind;
use fimble_toolkit::ToolError;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 500;
const CALLS: usize = 5_000;

/// Answers at once.
struct Echo;

#[async_trait]
impl Host for Echo {
    async fn call(&self, call: HostCall) -> Result<Value, ToolError> {
        if call.method == "wait" {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(json!(call.positional.len()))
    }
    fn print(&self, _text: &str) {}
    fn statement(&self, _number: u32, _of: u32) {}
}

fn main() -> Result<(), Box<dyn Error>> {
    fimble::interpreter::init();
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(measure())
}

async fn measure() -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    let interpreter = Interpreter::start(&Config::default()).await?;
    println!("isolation: {:?}", interpreter.isolation());
    println!("start: {:.1} ms", begun.elapsed().as_secs_f64() * 1e3);
    round(&interpreter, "1 + 1", Vec::new()).await?;
    println!("start and first result: {:.1} ms", begun.elapsed().as_secs_f64() * 1e3);

    let ten_lines = "\
total = 0
for service in v1:
    total += len(service['name'])
names = sorted(service['name'] for service in v1)
def shout(text):
    return text.upper()
loud = [shout(name) for name in names]
both = dict(zip(names, loud))
print(total, len(both))
total
";
    let content = r#"[{"name": "web", "up": true, "port": 80}, {"name": "db", "up": false, "port": 5432}]"#;
    let variables = || {
        (0..20)
            .map(|n| Carried { name: format!("v{n}"), kind: VariableKind::Value, content: content.to_owned() })
            .collect::<Vec<_>>()
    };
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        tokio::time::sleep(Duration::from_millis(30)).await;
        times.push(round(&interpreter, ten_lines, variables()).await?);
    }
    show("round after 30 ms idle, 20 variables", &mut times);
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        times.push(round(&interpreter, "1 + 1", Vec::new()).await?);
    }
    show("round, one after the other", &mut times);

    let calls = format!(
        "import time\ntimes = []\nfor n in range({CALLS}):\n    begun = time.perf_counter()\n    await demo.echo(n)\n    \
         times.append(time.perf_counter() - begun)\ntimes.sort()\n\
         f'p50 {{times[{CALLS} // 2] * 1e6:.0f}} us, p99 {{times[{CALLS} * 99 // 100] * 1e6:.0f}} us'"
    );
    println!("call: {}", text(&interpreter, &calls).await?);
    for count in [100, 1_000] {
        let gathered = format!(
            "import asyncio, time\nbegun = time.perf_counter()\nawait asyncio.gather(*(demo.wait() for _ in range({count})))\n\
             f'{{(time.perf_counter() - begun) * 1e3:.1f}} ms'"
        );
        println!("{count} calls of 10 ms: {}", text(&interpreter, &gathered).await?);
    }
    Ok(())
}

fn program(source: &str, variables: Vec<Carried>) -> Run {
    let limits = Limits { calls: 100_000, concurrent_calls: 1_000, ..Limits::default() };
    Run {
        source: source.to_owned(),
        file_name: "<program>".to_owned(),
        variables,
        proxies: vec!["demo".to_owned()],
        limits,
    }
}

async fn round(interpreter: &Interpreter, source: &str, variables: Vec<Carried>) -> Result<Duration, Box<dyn Error>> {
    let begun = Instant::now();
    let finished = interpreter.run(program(source, variables), Arc::new(Echo), CancellationToken::new()).await?;
    match finished.ending {
        Ending::Returned { .. } => Ok(begun.elapsed()),
        other => Err(format!("{other:?}").into()),
    }
}

async fn text(interpreter: &Interpreter, source: &str) -> Result<String, Box<dyn Error>> {
    let finished = interpreter.run(program(source, Vec::new()), Arc::new(Echo), CancellationToken::new()).await?;
    match finished.ending {
        Ending::Returned { value: Some(value) } => Ok(value),
        other => Err(format!("{other:?}").into()),
    }
}

fn show(what: &str, times: &mut [Duration]) {
    times.sort();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default().as_secs_f64() * 1e3;
    println!("{what}: p50 {:.2} ms, p99 {:.2} ms", at(50), at(99));
}
