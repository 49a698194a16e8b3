//! Calls whose answer the program does not wait for any more, e.g. after `asyncio.wait_for`. Front ends are told at once;
//! the journal has the time, and is written at the round's end with what else was cut off.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use fimble_toolkit::{ErrorKind, ToolError};
use jiff::Timestamp;

use super::call::json_text;
use super::risk::rating;
use super::round::{RoundGate, cut};
use crate::event::EventKind;
use crate::record::CallRecord;

/// The calls of one round.
#[derive(Debug, Default)]
pub(super) struct LetGo {
    calls: Mutex<Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    /// By the program's number, those that front ends were told of and that are not answered: their keys and since when.
    under_way: HashMap<u64, (String, Instant)>,
    /// By key, when the program let go of those that were under way.
    told: HashMap<String, Timestamp>,
    /// By number, the same of those that front ends were not told of.
    untold: HashMap<u64, Timestamp>,
}

impl LetGo {
    /// A call of that number is under way, and front ends were told.
    pub fn begun(&self, number: u64, record: &CallRecord) {
        self.calls().under_way.insert(number, (record.key.clone(), Instant::now()));
    }

    /// The call is answered.
    pub fn answered(&self, number: u64) {
        self.calls().under_way.remove(&number);
    }

    /// When the program let go of the call, if it did, and whether front ends were told.
    pub fn of(&self, record: &CallRecord) -> Option<(Timestamp, bool)> {
        let calls = self.calls();
        let told = calls.told.get(&record.key).map(|at| (*at, true));
        told.or_else(|| calls.untold.get(&record.number).map(|at| (*at, false)))
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RoundGate {
    /// The program let go of a call: it ends here, and its toolkit is told to stop by the drop of its future.
    pub(super) fn end_let_go(&self, number: u64) {
        let at = self.replay.end();
        let mut calls = self.let_go.calls();
        let Some((key, begun)) = calls.under_way.remove(&number) else {
            calls.untold.insert(number, at);
            return;
        };
        calls.told.insert(key.clone(), at);
        drop(calls);
        self.teller.emit(failed(key, &cut_off(ErrorKind::Cancelled), begun.elapsed().as_secs_f64() * 1_000.0));
    }
}

/// The error of a call that nobody waits for: `Cancelled` if its program let go of it, `Failed` if that ended.
pub(super) fn cut_off(kind: ErrorKind) -> ToolError {
    ToolError::new(kind, "cut off: the program no longer waited for the answer")
}

/// That a call begins. Of its arguments, so many bytes are shown.
pub(super) fn request(record: &CallRecord, program: &str, bytes: usize) -> EventKind {
    EventKind::ToolCallChunk {
        tool_call_id: record.key.clone(),
        tool_call_name: format!("{}.{}", record.toolkit, record.operation),
        delta: cut(&json_text(&record.arguments), bytes),
        rating: rating(program, record.site.line).map(str::to_owned),
    }
}

/// That the call with that key failed.
pub(super) fn failed(key: String, error: &ToolError, duration_ms: f64) -> EventKind {
    EventKind::ToolCallResult {
        message_id: format!("{key}-result"),
        tool_call_id: key,
        content: error.to_string(),
        role: "tool".to_owned(),
        failed: true,
        duration_ms,
    }
}
