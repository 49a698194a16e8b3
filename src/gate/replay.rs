//! The second run of a round that was cut off or waited: its calls are answered from the journal, and what front ends were
//! told before is not told again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fimble_toolkit::Risk;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;
use tokio::time::timeout;

use super::plan;
use crate::event::{Custom, Event, EventKind};
use crate::record::{CallRecord, CallStatus, Readings};
use crate::session::Emitter;

/// How long an answer waits for those that came before it the first time. A program that does not repeat itself never asks
/// for them.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a round did in its earlier run; nothing, if this is its first.
#[derive(Debug)]
pub(super) struct Replay {
    /// By number and key, those that were not asked for yet.
    calls: Mutex<BTreeMap<(u64, String), CallRecord>>,
    /// True if calls may come in another order than before.
    by_key: bool,
    /// The numbers of the answered ones, in the order of their answers.
    order: Vec<u64>,
    /// How many of those are answered again.
    answered: watch::Sender<usize>,
    /// What clocks said before each call, by its number.
    readings: BTreeMap<u64, Readings>,
    /// When the last call ended.
    ended: Mutex<Option<Timestamp>>,
}

/// Numbers in a row that no call in the journal has: what a child says its calls' numbers are is no reason to count on.
const MOST_UNKNOWN: usize = 10_000;

/// When a call ends, by the clock; after the last one that did, also if the clock was set back: the order of answers is in it.
pub(super) fn end_after(last: Option<Timestamp>) -> Timestamp {
    let now = Timestamp::now();
    last.and_then(|last| last.checked_add(SignedDuration::from_nanos(1)).ok()).map_or(now, |next| next.max(now))
}

impl Replay {
    /// Of the calls that were journaled so far.
    pub fn of(mut calls: Vec<CallRecord>) -> Self {
        // No program makes it.
        calls.retain(|call| !plan::is_plan(call));
        let mut answered: Vec<_> = calls
            .iter()
            .filter(|call| matches!(call.status, CallStatus::Done { .. } | CallStatus::Failed { .. }))
            .map(|call| (call.done_at, call.number))
            .collect();
        answered.sort();
        let ended = answered.iter().filter_map(|(at, _)| *at).max();
        let calls: BTreeMap<_, _> = calls.into_iter().map(|call| ((call.number, call.key.clone()), call)).collect();
        let mut readings: BTreeMap<u64, Readings> = BTreeMap::new();
        calls.values().for_each(|call| readings.entry(call.number).or_default().extend(&call.readings));
        Self {
            calls: Mutex::new(calls),
            by_key: false,
            order: answered.into_iter().map(|(_, number)| number).collect(),
            answered: watch::Sender::new(0),
            readings,
            ended: Mutex::new(ended),
        }
    }

    /// When a call ends that ends now.
    pub fn end(&self) -> Timestamp {
        let mut ended = lock(&self.ended);
        let now = end_after(*ended);
        *ended = Some(now);
        now
    }

    /// The same, for a program whose calls take other times than before, so that those that are made together come in another
    /// order: a call is known by its place and its arguments alone. `readings` are those of calls that are in no journal yet.
    pub fn in_any_order(mut self, readings: &[(u64, Readings)]) -> Self {
        for (number, readings) in readings {
            self.readings.entry(*number).or_insert_with(|| readings.clone());
        }
        Self { by_key: true, ..self }
    }

    /// True if a call was made before.
    pub fn has_calls(&self) -> bool {
        !lock(&self.calls).is_empty()
    }

    /// What clocks said to the program, with its calls between them; those that are in no journal, because they were refused,
    /// are counted by their numbers.
    pub fn readings(&self) -> Readings {
        let (mut all, mut last) = (Readings::default(), 0);
        if self.readings.values().all(Readings::is_empty) {
            return all;
        }
        for (&number, readings) in &self.readings {
            (last..number.saturating_sub(1)).take(MOST_UNKNOWN).for_each(|_| all.call());
            all.extend(readings);
            all.call();
            last = number;
        }
        all
    }

    /// The record of the call of that number, if it was made before. The error says how the program differs from itself.
    pub fn take(&self, number: u64, key: &str, called: &str) -> Result<Option<CallRecord>, String> {
        let mut calls = lock(&self.calls);
        let place = match self.by_key {
            true => calls.keys().find(|(_, known)| known == key).cloned(),
            false => calls.range((number, String::new())..).next().map(|(place, _)| place.clone()),
        };
        let place = place.filter(|(known, _)| self.by_key || *known == number);
        let Some(record) = place.and_then(|place| calls.remove(&place)) else { return Ok(None) };
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
            call.risk != Risk::Read
                && matches!(call.status, CallStatus::Requested | CallStatus::Pending { .. } | CallStatus::Done { .. })
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
    /// True if what the program says is not told: it will say it again.
    is_quiet: bool,
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
        Self { emitter, told: std::sync::Arc::new(Mutex::new(told)), is_quiet: false }
    }

    /// The same, for a program that only says what it would do.
    pub fn quiet(self) -> Self {
        Self { is_quiet: true, ..self }
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
        let is_said_again = matches!(
            kind,
            EventKind::Custom(Custom::Print { .. } | Custom::Statement { .. } | Custom::Progress { .. })
        );
        if self.is_quiet && is_said_again {
            return;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_ends_after_the_one_before_it_whatever_the_clock_says() {
        let late: Timestamp = "3000-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(end_after(Some(late)).to_string(), "3000-01-01T00:00:00.000000001Z");
        assert_eq!(end_after(Some(Timestamp::MAX)).cmp(&Timestamp::now()), std::cmp::Ordering::Less);
        assert!(
            end_after(Some(Timestamp::UNIX_EPOCH))
                > late.checked_sub(SignedDuration::from_hours(24 * 366 * 1000)).unwrap()
        );
    }

    #[test]
    fn readings_are_told_between_the_calls_that_they_were_made_between() {
        let at = |wall: &[i64]| Readings { wall: wall.to_vec(), ..Readings::default() };
        let known = [(2, at(&[5, 6])), (3, at(&[])), (4, at(&[7]))];
        let told = Replay::of(Vec::new()).in_any_order(&known).readings();
        // The first call was refused, and is in no journal.
        let call = Readings::CALL;
        assert_eq!(told.wall, [call, 5, 6, call, call, 7, call]);
        assert_eq!((told.steady, told.counter), (vec![call; 4], vec![call; 4]));
        assert!(Replay::of(Vec::new()).in_any_order(&[(1, at(&[]))]).readings().is_empty());
        let forged = Replay::of(Vec::new()).in_any_order(&[(u64::MAX, at(&[1]))]).readings();
        assert_eq!(forged.wall.len(), MOST_UNKNOWN + 2);
    }
}
