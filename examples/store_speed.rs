//! How long a typical round takes to persist, and a long session to load. Prints; asserts nothing.
//!
//! `cargo run --release --example store_speed [FILE|URL]`: the file system of FILE decides most of it, or the network to the
//! Redis at URL and its `appendfsync`.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fimble::event::{Custom, EventKind};
use fimble::interpreter::Captured;
use fimble::record::{CallRecord, CallStatus, Outcome, Readings, Round, Site, VariableKind};
use fimble::segment::SegmentKind;
use fimble::session::{Session, written_variable};
use fimble::store::redis::{Address, Redis, Settings, is_address};
use fimble::store::sqlite::Sqlite;
use fimble::store::{Store, StoreError};
use fimble_toolkit::Risk;
use jiff::Timestamp;
use serde_json::Map;

const ROUNDS: u64 = 1_000;
const VARIABLES: u64 = 20;
const CALLS: u32 = 5;
const EVENTS: u32 = 12;

#[derive(Default)]
struct Times {
    open: Vec<Duration>,
    call: Vec<Duration>,
    commit: Vec<Duration>,
    round: Vec<Duration>,
    /// Requests of each commit, where they cross a network.
    requests: Vec<u64>,
}

/// A store to measure.
struct Measured {
    store: Arc<dyn Store>,
    redis: Option<Redis>,
}

impl Measured {
    async fn open(name: &str) -> Result<Self, StoreError> {
        if is_address(name) {
            let redis = Redis::open(&Address::parse(name)?, Settings::default()).await?;
            return Ok(Self { store: Arc::new(redis.clone()), redis: Some(redis) });
        }
        Ok(Self { store: Arc::new(Sqlite::open(name)?), redis: None })
    }

    fn requests(&self) -> u64 {
        self.redis.as_ref().map_or(0, Redis::requests)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let name = std::env::args().nth(1).unwrap_or_else(|| folder.path().join("speed.db").display().to_string());
    let measured = Measured::open(&name).await?;
    let mut session = Session::create(Arc::clone(&measured.store), "local", "ada", "speed").await?;
    let mut times = Times::default();
    for _ in 0..ROUNDS {
        persist_round(&mut session, &measured, &mut times).await?;
    }
    let count = times.round.len();
    report("open a round", &mut times.open);
    report("journal a call, requested and done", &mut times.call);
    report("commit a round", &mut times.commit);
    report("first 100 rounds, all of the above", &mut times.round[..100].to_vec());
    report("last 100 rounds, all of the above", &mut times.round[count - 100..].to_vec());

    let measured = Measured::open(&name).await?;
    let (mut loads, mut carries) = (Vec::new(), Vec::new());
    let names = ["v1", "v2", "v3"].map(String::from).into();
    for _ in 0..50 {
        let begun = Instant::now();
        let session = Session::open(Arc::clone(&measured.store), &session.record().id, "local", "ada").await?;
        loads.push(begun.elapsed());
        let begun = Instant::now();
        session.carried(&names).await?;
        carries.push(begun.elapsed());
    }
    report(&format!("load a session of {ROUNDS} rounds and {} segments", session.segments().len()), &mut loads);
    report("read 3 variables of 2 KB that a program names", &mut carries);
    match &measured.redis {
        None => println!("{} KiB on disk", std::fs::metadata(&name)?.len() / 1024),
        Some(redis) => {
            let (all, most) = (times.requests.iter().sum::<u64>(), times.requests.iter().max().unwrap_or(&0));
            println!("network round trips of a commit: {:.2} in the mean, {most} at most", all as f64 / count as f64);
            println!("{}", redis.health().await?);
            measured.store.delete_session(&session.record().id).await?;
        }
    }
    Ok(())
}

async fn persist_round(session: &mut Session, measured: &Measured, times: &mut Times) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    let round = session.begin_round("goal", vec![], "try:\n", "x = await git_toolkit.log()\n".repeat(10), "").await?;
    times.open.push(begun.elapsed());
    let journal = session.journal(round.number);
    for ordinal in 0..CALLS {
        let begun_call = Instant::now();
        let site = Site { line: ordinal, column: 4 };
        let mut call = CallRecord {
            key: journal.key(site, 0, "git_toolkit", "log", &Map::new()),
            number: u64::from(ordinal) + 1,
            site,
            ordinal: 0,
            toolkit: "git_toolkit".into(),
            operation: "log".into(),
            arguments: Map::new(),
            risk: Risk::Read,
            status: CallStatus::Requested,
            requested_at: Timestamp::now(),
            done_at: None,
            readings: Readings::default(),
        };
        journal.request(&call).await?;
        call.status = CallStatus::Done { result: "a line of a log\n".repeat(20).into() };
        call.done_at = Some(Timestamp::now());
        journal.finish(&call).await?;
        times.call.push(begun_call.elapsed());
    }
    for _ in 0..EVENTS {
        session.emitter().emit(EventKind::Custom(Custom::Print { text: "a piece of output\n".repeat(4) }));
    }
    for kind in [SegmentKind::Thought, SegmentKind::Code, SegmentKind::Output, SegmentKind::Reply] {
        session.push(kind, "some words of a conversation, as they are. ".repeat(8));
    }
    let written = (0..VARIABLES).map(|variable| {
        let line = format!("{{\"service\":\"unit {variable} of {}\",\"active\":true}},", round.number);
        let captured = Captured {
            name: format!("v{variable}"),
            kind: VariableKind::Value,
            content: line.repeat(2_048 / line.len() + 1),
            type_name: "list[dict]".into(),
            preview: line,
            line: 1,
            references: vec![],
        };
        written_variable(captured, round.number)
    });
    let written = written.collect();
    let round = Round { outcome: Some(Outcome::Finished { value: None }), ended_at: Some(Timestamp::now()), ..round };
    let (begun_commit, requests) = (Instant::now(), measured.requests());
    session.commit_round(round, written, vec![]).await?;
    times.commit.push(begun_commit.elapsed());
    times.requests.push(measured.requests() - requests);
    times.round.push(begun.elapsed());
    Ok(())
}

fn report(what: &str, times: &mut [Duration]) {
    times.sort();
    let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)].as_secs_f64() * 1e3;
    println!("{what}: p50 {:.2} ms, p95 {:.2} ms, {} times", at(50), at(95), times.len());
}
