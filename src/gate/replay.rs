//! The second run of a round that was cut off or waited: its calls are answered from the journal, and what front ends were
//! told before is not told again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fimble_toolkit::Risk;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::event::{Custom, Event, EventKind};
use crate::record::{CallRecord, CallStatus, Readings};
use crate::session::Emitter;

/// How long an answer waits for those that came before it the first time. A program that does not repeat itself never asks
/// for them.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a round did in its earlier run; nothing, if this is its first.
#[derive(Debug)]
pub(super) struct Replay {
    /// By number, those that were not asked for yet.
    calls: Mutex<BTreeMap<u64, CallRecord>>,
    /// The numbers of the answered ones, in the order of their answers.
    order: Vec<u64>,
    /// How many of those are answered again.
    answered: watch::Sender<usize>,
    readings: Readings,
}

impl Replay {
    /// Of the calls that were journaled so far.
    pub fn of(calls: Vec<CallRecord>) -> Self {
        let mut answered: Vec<_> = calls
            .iter()
            .filter(|call| matches!(call.status, CallStatus::Done { .. } | CallStatus::Failed { .. }))
            .map(|call| (call.done_at, call.number))
            .collect();
        answered.sort();
        let calls: BTreeMap<u64, CallRecord> = calls.into_iter().map(|call| (call.number, call)).collect();
        let mut readings = Readings::default();
        calls.values().for_each(|call| readings.extend(&call.readings));
        Self {
            calls: Mutex::new(calls),
            order: answered.into_iter().map(|(_, number)| number).collect(),
            answered: watch::Sender::new(0),
            readings,
        }
    }

    /// True if a call was made before.
    pub fn has_calls(&self) -> bool {
        !lock(&self.calls).is_empty()
    }

    /// What clocks said to the program.
    pub fn readings(&self) -> Readings {
        self.readings.clone()
    }

    /// The record of the call of that number, if it was made before. The error says how the program differs from itself.
    pub fn take(&self, number: u64, key: &str, called: &str) -> Result<Option<CallRecord>, String> {
        let mut calls = lock(&self.calls);
        let Some(record) = calls.remove(&number) else { return Ok(None) };
        if record.key == key {
            return Ok(Some(record));
        }
        Err(format!(
            "the program did not repeat itself: its call number {number} was {}.{} before, at line {}, and is {called} \
             now, or has other arguments; it was stopped before anything more was done",
            record.toolkit, record.operation, record.site.line
        ))
    }

    /// Waits until all calls that were answered before this one are answered again: a program may go by the order.
    pub async fn in_turn(&self, number: u64) {
        let Some(rank) = self.order.iter().position(|answered| *answered == number) else { return };
        let mut answered = self.answered.subscribe();
        let _ = timeout(PATIENCE, answered.wait_for(|count| *count >= rank)).await;
        self.answered.send_modify(|count| *count = (*count).max(rank + 1));
    }

    /// How the program differs from itself if it ends here: it has not made a call that changed something before.
    pub fn missing(&self) -> Option<String> {
        let calls = lock(&self.calls);
        let may_have_acted = |call: &&CallRecord| {
            call.risk != Risk::Read && matches!(call.status, CallStatus::Requested | CallStatus::Done { .. })
        };
        let call = calls.values().find(may_have_acted)?;
        Some(format!(
            "the program did not repeat itself: it made the call {}.{} at line {} before, and ended without it now; look at \
             what that call did",
            call.toolkit, call.operation, call.site.line
        ))
    }
}

/// Tells a round's events, but for those that were told in its earlier run.
#[derive(Clone)]
pub(super) struct Teller {
    emitter: Emitter,
    told: std::sync::Arc<Mutex<Told>>,
}

/// What was told before and not again yet.
#[derive(Debug, Default)]
struct Told {
    ids: BTreeSet<String>,
    statements: u32,
    printed_bytes: usize,
}

impl Teller {
    /// Tells by `emitter` what is not in `before`.
    pub fn new(emitter: Emitter, before: &[Event]) -> Self {
        let mut told = Told::default();
        for event in before {
            match &event.kind {
                EventKind::Custom(Custom::Print { text }) => told.printed_bytes += text.len(),
                EventKind::Custom(Custom::Statement { number, .. }) => told.statements = told.statements.max(*number),
                kind => told.ids.extend(id_of(kind)),
            }
        }
        Self { emitter, told: std::sync::Arc::new(Mutex::new(told)) }
    }

    /// Tells nobody.
    pub fn detached() -> Self {
        Self::new(Emitter::detached(), &[])
    }

    /// The round's number.
    pub fn round(&self) -> u64 {
        self.emitter.round()
    }

    /// Tells an event that is new.
    pub fn emit(&self, kind: EventKind) {
        let mut told = lock(&self.told);
        let kind = match kind {
            EventKind::Custom(Custom::Print { text }) => {
                let known = text.floor_char_boundary(told.printed_bytes);
                told.printed_bytes -= known;
                let new = text.get(known..).unwrap_or_default();
                if new.is_empty() {
                    return;
                }
                // What is left of it would stand within a character.
                told.printed_bytes = 0;
                EventKind::Custom(Custom::Print { text: new.to_owned() })
            }
            EventKind::Custom(Custom::Statement { number, .. }) if number <= told.statements => return,
            kind => kind,
        };
        if id_of(&kind).is_some_and(|id| told.ids.remove(&id)) {
            return;
        }
        drop(told);
        self.emitter.emit(kind);
    }
}

/// What tells an event from others of its kind.
fn id_of(kind: &EventKind) -> Option<String> {
    match kind {
        EventKind::ToolCallChunk { tool_call_id, .. } => Some(format!("call {tool_call_id}")),
        EventKind::ToolCallResult { message_id, .. } => Some(format!("result {message_id}")),
        EventKind::TextMessageChunk { message_id, .. } => Some(format!("message {message_id}")),
        EventKind::Custom(Custom::Card { id, .. }) => Some(format!("card {id}")),
        EventKind::Custom(Custom::CardAnswered { id, .. }) => Some(format!("answered {id}")),
        EventKind::Custom(Custom::Question { id, .. }) => Some(format!("question {id}")),
        _ => None,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing in here panics half-way; a poisoned lock guards sound data.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
