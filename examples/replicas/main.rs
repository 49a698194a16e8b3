//! Turns of one worker and of two on the same Redis: `cargo run --release --example replicas redis://localhost:6379 [TURNS]`,
//! and how long a turn is left alone whose worker is killed. The model is scripted and answers at once; each program makes ten
//! calls of 20 ms, one after the other. The database is used as it is: name an empty one.

mod failover;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use fimble::agent::{Agent, Config, EncodingChoice, PromptParts};
use fimble::gate::{Gate, Secrets};
use fimble::interpreter::{self, Interpreter, Limits};
use fimble::llm::scripted::Scripted;
use fimble::prompt::Templates;
use fimble::registry::Registry;
use fimble::session::Session;
use fimble::store::Store;
use fimble::store::redis::{Address, Redis, Settings, TurnKind, TurnRequest, Turns};
use fimble::worker::Worker;
use fimble_toolkit::{Call, Declaration, Operation, Risk, ToolError, Toolkit};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

const PROGRAM: &str =
    "for number in range(10):\n    await slow_toolkit.look()\nawait system_toolkit.send_message('done')\n";

/// Takes 20 ms.
struct Slow;

#[async_trait]
impl Toolkit for Slow {
    fn declaration(&self) -> Declaration {
        let look = Operation {
            name: "look".to_owned(),
            description: "Takes its time.".to_owned(),
            parameters: Vec::new(),
            returns: Value::Bool(true),
            risk: Risk::Read,
            idempotent: true,
            timeout: None,
            enabled: true,
            paging: None,
        };
        Declaration { name: "slow_toolkit".to_owned(), description: "Slow.".to_owned(), operations: vec![look] }
    }

    async fn call(&self, _call: Call) -> Result<Value, ToolError> {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Ok(Value::Null)
    }
}

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

async fn agent(turns: usize) -> Outcome<Arc<Agent>> {
    let registry = Registry::new();
    registry.register(Arc::new(Slow))?;
    let gate = Arc::new(Gate::new(Arc::new(registry), fimble::gate::Config::default(), Secrets::default()));
    let parts = PromptParts {
        gate,
        program: fimble::program::Config::default(),
        prompt: fimble::prompt::Config::default(),
        templates: Templates::new(&BTreeMap::new())?,
    };
    let interpreter = Interpreter::start(&interpreter::Config::default()).await?;
    Ok(Arc::new(Agent {
        model: Arc::new(Scripted::new(vec![PROGRAM; turns])),
        interpreter: Arc::new(interpreter),
        config: Config { encoding: EncodingChoice::Chat, ..Config::default() },
        parts,
        limits: Limits::default(),
    }))
}

async fn worker(address: &Address, name: &str, lease: Duration, turns: usize) -> Outcome<Worker> {
    Ok(Worker {
        name: format!("{name}-{}", std::process::id()),
        agent: agent(turns).await?,
        store: Arc::new(Redis::open(address, Settings::default()).await?),
        turns: Arc::new(Turns::open(address, &Settings::default()).await?),
        lease,
        at_once: 1,
        session: fimble::session::Config::default(),
        view: fimble::registry::View::default(),
    })
}

/// Turns a second of so many workers, each with one turn at a time.
async fn measure(address: &Address, workers: usize, turns: usize) -> Outcome<f64> {
    let store: Arc<dyn Store> = Arc::new(Redis::open(address, Settings::default()).await?);
    let stream = Arc::new(Turns::open(address, &Settings::default()).await?);
    let cancel = CancellationToken::new();
    let mut running = Vec::new();
    for number in 0..workers {
        let worker = worker(address, &format!("worker-{number}"), Duration::from_secs(10), turns).await?;
        let cancel = cancel.clone();
        running.push(tokio::spawn(async move { worker.work(&cancel).await }));
    }
    // Zygotes warm up while nobody waits.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut requests = Vec::new();
    for number in 0..turns {
        let session = Session::create(Arc::clone(&store), "bench", "bench", "").await?;
        let (id, session) = (format!("{number}-{}", session.record().id), session.record().id.clone());
        let kind = TurnKind::Message { text: "Look".to_owned() };
        requests.push(TurnRequest { id, session, tenant: "bench".to_owned(), user: "bench".to_owned(), kind });
    }
    let begun = Instant::now();
    for request in &requests {
        stream.push(request).await?;
    }
    while stream.length().await? > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let rate = turns as f64 / begun.elapsed().as_secs_f64();
    cancel.cancel();
    for worker in running {
        worker.await?;
    }
    for request in requests {
        store.delete_session(&request.session).await?;
    }
    Ok(rate)
}

fn main() -> Outcome<()> {
    fimble::interpreter::init();
    tokio::runtime::Runtime::new()?.block_on(compare())
}

async fn compare() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().ok_or("name a Redis: redis://localhost:6379")?;
    let turns = arguments.next();
    if turns.as_deref() == Some(failover::OWNER) {
        return failover::own(&Address::parse(&address)?).await;
    }
    let turns = turns.map_or(Ok(40), |turns| turns.parse())?;
    let one = measure(&Address::parse(&address)?, 1, turns).await?;
    let two = measure(&Address::parse(&address)?, 2, turns).await?;
    println!("{turns} turns of ten calls of 20 ms: one worker {one:.1} a second, two {two:.1}, ratio {:.2}", two / one);
    failover::measure(&address).await
}
