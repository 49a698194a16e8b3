//! How long a typical round takes to persist, and a session to load, as it grows. Prints; asserts nothing.
//!
//! `cargo run --release --example store_speed [FILE|URL] [ROUNDS]`: without a name, or with an empty one, a file among the
//! temporary ones. The file system of FILE decides most of it, or the network to the Redis at URL and its `appendfsync`.
//! ROUNDS is 1,000 unless told.

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

/// After how many rounds the costs are told.
const MARKS: [usize; 7] = [10, 30, 100, 300, 1_000, 3_000, 10_000];
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
    let name = std::env::args().nth(1).filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| folder.path().join("speed.db").display().to_string());
    let measured = Measured::open(&name).await?;
    let mut session = Session::create(Arc::clone(&measured.store), "local", "ada", "speed").await?;
    let rounds: usize = std::env::args().nth(2).map_or(Ok(1_000), |rounds| rounds.parse())?;
    let mut times = Times::default();
    persist_large_variables(&mut session).await?;
    println!("after so many rounds: one more round; the load of the session and of 3 variables for its next turn");
    for round in 1..=rounds {
        persist_round(&mut session, &measured, &mut times).await?;
        if MARKS.contains(&round) || round == rounds {
            let newest = times.round.len() - (round / 2).min(50);
            let (mut loads, mut carries) = next_turns(&name, &session.record().id).await?;
            let (round_ms, load, carry) =
                (median(&mut times.round[newest..].to_vec()), median(&mut loads), median(&mut carries));
            println!("{round:>7}: {round_ms:.2} ms; {load:.2} + {carry:.2} ms");
        }
    }
    report("persist a whole round, its five calls journaled one after the other", &mut times.round);
    report("open a round", &mut times.open);
    report("journal a call, requested and done", &mut times.call);
    report("commit a round", &mut times.commit);
    let (mut loads, mut carries) = next_turns(&name, &session.record().id).await?;
    let count = session.record().segments;
    report(&format!("load a session of {rounds} rounds, {count} segments and 10 MB of variables"), &mut loads);
    report("read 3 variables that a program names", &mut carries);
    match &measured.redis {
        None => println!("{} KiB on disk", std::fs::metadata(&name)?.len() / 1024),
        Some(redis) => {
            let (all, most) = (times.requests.iter().sum::<u64>(), times.requests.iter().max().unwrap_or(&0));
            println!("network round trips of a commit: {:.2} in the mean, {most} at most", all as f64 / rounds as f64);
            println!("{}", redis.health().await?);
            measured.store.delete_session(&session.record().id).await?;
        }
    }
    Ok(())
}

/// How long it takes to load the session, and three of its variables, by a process that has not seen it.
async fn next_turns(name: &str, id: &str) -> Result<(Vec<Duration>, Vec<Duration>), StoreError> {
    let measured = Measured::open(name).await?;
    let names = ["v1", "v2", "v3"].map(String::from).into();
    let (mut loads, mut carries) = (Vec::new(), Vec::new());
    for _ in 0..50 {
        let begun = Instant::now();
        let session = Session::open(Arc::clone(&measured.store), id, "local", "ada").await?;
        loads.push(begun.elapsed());
        let begun = Instant::now();
        session.carried(&names).await?;
        carries.push(begun.elapsed());
    }
    Ok((loads, carries))
}

/// 100 variables of 100 KB that no later round names.
async fn persist_large_variables(session: &mut Session) -> Result<(), StoreError> {
    let round = session.begin_round("goal", vec![], "try:\n", "pass", "").await?;
    let large = (0..100).map(|number| captured(format!("large{number}"), 100_000));
    let written = large.map(|captured| written_variable(captured, round.number)).collect();
    let round = Round { outcome: Some(Outcome::Finished { value: None }), ended_at: Some(Timestamp::now()), ..round };
    session.commit_round(round, written, vec![]).await.map(drop)
}

/// A variable of at least so many bytes.
fn captured(name: String, bytes: usize) -> Captured {
    let line = format!("{{\"service\":\"{name}\",\"id\":\"{}\",\"active\":true}},", uuid::Uuid::new_v4());
    Captured {
        name,
        kind: VariableKind::Value,
        content: line.repeat(bytes / line.len() + 1),
        type_name: "list[dict]".into(),
        preview: line,
        line: 1,
        references: vec![],
    }
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
    let written = (0..VARIABLES).map(|number| written_variable(captured(format!("v{number}"), 100), round.number));
    let written = written.collect();
    let round = Round { outcome: Some(Outcome::Finished { value: None }), ended_at: Some(Timestamp::now()), ..round };
    let (begun_commit, requests) = (Instant::now(), measured.requests());
    session.commit_round(round, written, vec![]).await?;
    times.commit.push(begun_commit.elapsed());
    times.requests.push(measured.requests() - requests);
    times.round.push(begun.elapsed());
    Ok(())
}

/// In milliseconds.
fn median(times: &mut [Duration]) -> f64 {
    times.sort();
    times.get(times.len() / 2).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
}

fn report(what: &str, times: &mut [Duration]) {
    times.sort();
    let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)].as_secs_f64() * 1e3;
    println!("{what}: p50 {:.2} ms, p95 {:.2} ms, {} times", at(50), at(95), times.len());
}
