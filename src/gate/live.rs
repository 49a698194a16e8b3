//! The rounds that run in this process: what each has done so far and what it waits for, and the way to end one from
//! outside. It does not know who looks, nor how they got here.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::patience::Stopwatch;
use crate::interpreter::{Process, counted};

/// Characters of a goal and of a question that a view shows.
const SHOWN_CHARACTERS: usize = 200;

/// The rounds of one gate.
#[derive(Debug, Default)]
pub struct Live {
    rounds: Mutex<Vec<Arc<Running>>>,
}

/// A running round, as it is seen at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundView {
    /// The session's id.
    pub session: String,
    /// The round's number.
    pub round: u64,
    /// What it is to reach; its first 200 characters.
    pub goal: String,
    /// The id of the process that runs it, which is the program's host.
    pub host_pid: u32,
    /// The id of the program's own process, as the host sees it; `None` before it began and where it cannot be seen.
    pub pid: Option<u32>,
    /// When it began.
    pub started_at: Timestamp,
    /// Seconds since then.
    pub age_s: f64,
    /// Seconds that count towards its limit: those in which it computed or waited for nobody but itself.
    pub wall_s: f64,
    /// The limit.
    pub wall_limit_s: f64,
    /// Seconds of CPU time; `None` as for `pid`.
    pub cpu_s: Option<f64>,
    /// Resident memory in KiB; `None` as for `pid`.
    pub memory_kib: Option<u64>,
    /// Calls that it made.
    pub calls: u32,
    /// What it waits for, persons first, then the oldest; empty if it computes.
    pub waits: Vec<Wait>,
}

/// Something that a round waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// What it is.
    pub kind: WaitKind,
    /// `toolkit.operation`, or the question.
    pub of: String,
    /// For how many seconds it has waited.
    pub for_s: f64,
}

/// What a round can wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// A person is to approve a call.
    Approval,
    /// A person is to answer a question.
    Answer,
    /// A task is to end that the system behind a toolkit works at.
    Task,
    /// A call is to return.
    Call,
}

/// A round while it runs.
#[derive(Debug)]
pub(super) struct Running {
    session: String,
    round: u64,
    goal: String,
    wall_limit_s: f64,
    started_at: Timestamp,
    begun: Instant,
    process: Mutex<Option<Process>>,
    calls: AtomicU32,
    waits: Mutex<Waits>,
    waiting: Stopwatch,
    killed: CancellationToken,
    ended: CancellationToken,
}

#[derive(Debug, Default)]
struct Waits {
    last: u64,
    open: BTreeMap<u64, (WaitKind, String, Instant)>,
}

impl Live {
    /// Adds a round; it is there until what this returns is dropped. `killed` is cancelled to end it.
    pub(super) fn enter(
        self: &Arc<Self>,
        session: &str,
        round: u64,
        goal: &str,
        wall_limit_s: f64,
        killed: CancellationToken,
    ) -> Entered {
        let running = Arc::new(Running {
            session: session.to_owned(),
            round,
            goal: goal.chars().take(SHOWN_CHARACTERS).collect(),
            wall_limit_s,
            started_at: Timestamp::now(),
            begun: Instant::now(),
            process: Mutex::default(),
            calls: AtomicU32::new(0),
            waits: Mutex::default(),
            waiting: Stopwatch::default(),
            killed,
            ended: CancellationToken::new(),
        });
        lock(&self.rounds).push(Arc::clone(&running));
        Entered { live: Arc::clone(self), running }
    }

    /// What runs now, the oldest first.
    pub fn rounds(&self) -> Vec<RoundView> {
        let rounds = lock(&self.rounds).clone();
        rounds.iter().map(|running| running.view()).collect()
    }

    /// Ends a round and waits until its process is gone; false if it does not run.
    pub async fn kill(&self, session: &str, round: u64) -> bool {
        let is_it = |running: &&Arc<Running>| running.session == session && running.round == round;
        let Some(running) = lock(&self.rounds).iter().find(is_it).cloned() else { return false };
        running.killed.cancel();
        running.ended.cancelled().await;
        true
    }
}

/// A round's place among those that run.
#[derive(Debug)]
pub(super) struct Entered {
    live: Arc<Live>,
    pub(super) running: Arc<Running>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        lock(&self.live.rounds).retain(|running| !Arc::ptr_eq(running, &self.running));
        self.running.ended.cancel();
    }
}

impl Running {
    /// Its program is about to begin in this process.
    pub(super) fn begins(&self, process: Process) {
        *lock(&self.process) = Some(process);
    }

    /// It made a call.
    pub(super) fn count_call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// It waits until what this returns is dropped.
    pub(super) fn wait(&self, kind: WaitKind, of: &str) -> Waiting<'_> {
        let mut waits = lock(&self.waits);
        waits.last += 1;
        let number = waits.last;
        waits.open.insert(number, (kind, of.to_owned(), Instant::now()));
        drop(waits);
        self.waiting.start();
        Waiting { running: self, number }
    }

    /// For how long so far it waited for a toolkit or a person.
    pub(super) fn waited(&self) -> Duration {
        self.waiting.total()
    }

    fn view(&self) -> RoundView {
        let mut waits: Vec<_> = lock(&self.waits).open.values().cloned().collect();
        waits.sort_by_key(|(kind, _, since)| (*kind, *since));
        let waits = waits.into_iter().map(|(kind, of, since)| Wait {
            kind,
            of: of.chars().take(SHOWN_CHARACTERS).collect(),
            for_s: since.elapsed().as_secs_f64(),
        });
        let vitals = lock(&self.process).clone().and_then(|process| process.look());
        let age = self.begun.elapsed();
        let computed = vitals.map(|vitals| vitals.cpu).unwrap_or_default();
        RoundView {
            session: self.session.clone(),
            round: self.round,
            goal: self.goal.clone(),
            host_pid: std::process::id(),
            pid: vitals.map(|vitals| vitals.pid),
            started_at: self.started_at,
            age_s: age.as_secs_f64(),
            wall_s: counted(age, self.waited(), computed).as_secs_f64(),
            wall_limit_s: self.wall_limit_s,
            cpu_s: vitals.map(|vitals| vitals.cpu.as_secs_f64()),
            memory_kib: vitals.map(|vitals| vitals.memory_kib),
            calls: self.calls.load(Ordering::Relaxed),
            waits: waits.collect(),
        }
    }
}

/// A wait under way; ends when dropped, however it ended.
pub(super) struct Waiting<'a> {
    running: &'a Running,
    number: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        lock(&self.running.waits).open.remove(&self.number);
        self.running.waiting.stop();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing in here panics half-way; a poisoned lock guards sound data.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
