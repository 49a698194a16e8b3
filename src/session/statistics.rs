//! What the journals of a user's sessions say of the calls: how many, how long they took, how they failed. It reads, and keeps
//! nothing of its own, so that it holds for all processes and after a restart.

use std::collections::BTreeMap;

use fimble_toolkit::ErrorKind;
use jiff::Timestamp;
use serde::Serialize;

use crate::record::{CallRecord, CallStatus};
use crate::store::{Store, StoreError};

/// The calls of one operation.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct OperationStatistics {
    /// The toolkit's name.
    pub toolkit: String,
    /// The operation's name.
    pub operation: String,
    /// Calls that were made.
    pub calls: u64,
    /// Of those, the ones that failed, by their kind of error, e.g. `timeout`.
    pub errors: BTreeMap<String, u64>,
    /// Of those, the ones whose end was never journaled: they run, or their process died.
    pub open: u64,
    /// The time in the middle, in milliseconds, failed calls included; 0 if none ended.
    pub median_ms: f64,
    /// 95 of 100 calls took no longer.
    pub p95_ms: f64,
    /// The longest one.
    pub longest_ms: f64,
}

/// The statistics of all operations that a user's programs called since `since`, by toolkit and operation. Calls that were
/// refused before they were made are not in the journal.
///
/// # Errors
/// Those of the store.
pub async fn call_statistics(
    store: &dyn Store,
    tenant: &str,
    user: &str,
    since: Timestamp,
) -> Result<Vec<OperationStatistics>, StoreError> {
    let mut counted: BTreeMap<(String, String), Counted> = BTreeMap::new();
    for session in store.sessions(tenant, user, u32::MAX).await? {
        // They come with the last one first.
        if session.updated_at < since {
            break;
        }
        for round in 1..=session.rounds {
            for call in store.calls(&session.id, round).await? {
                if call.requested_at >= since {
                    let name = (call.toolkit.clone(), call.operation.clone());
                    counted.entry(name).or_default().count(&call);
                }
            }
        }
    }
    Ok(counted.into_iter().map(|((toolkit, operation), counted)| counted.finish(toolkit, operation)).collect())
}

#[derive(Default)]
struct Counted {
    calls: u64,
    errors: BTreeMap<String, u64>,
    open: u64,
    times_ms: Vec<f64>,
}

impl Counted {
    fn count(&mut self, call: &CallRecord) {
        self.calls += 1;
        match &call.status {
            CallStatus::Waiting | CallStatus::Approved | CallStatus::Requested | CallStatus::Pending { .. } => {
                self.open += 1;
            }
            CallStatus::Done { .. } => {}
            CallStatus::Failed { error } => *self.errors.entry(word(error.kind)).or_default() += 1,
        }
        if let Some(done_at) = call.done_at {
            // A clock that was set back must not make a call end before it began.
            self.times_ms.push((done_at.duration_since(call.requested_at).as_secs_f64() * 1_000.0).max(0.0));
        }
    }

    fn finish(mut self, toolkit: String, operation: String) -> OperationStatistics {
        self.times_ms.sort_by(f64::total_cmp);
        let at = |percent: usize| {
            let last = self.times_ms.len().saturating_sub(1);
            self.times_ms.get((self.times_ms.len() * percent / 100).min(last)).copied().unwrap_or_default()
        };
        let (median_ms, p95_ms, longest_ms) = (at(50), at(95), at(100));
        let Self { calls, errors, open, .. } = self;
        OperationStatistics { toolkit, operation, calls, errors, open, median_ms, p95_ms, longest_ms }
    }
}

/// The kind as it is written everywhere.
fn word(kind: ErrorKind) -> String {
    match serde_json::to_value(kind) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "failed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use fimble_toolkit::{Risk, ToolError};
    use serde_json::{Map, Value};

    use super::*;
    use crate::record::{Readings, Site};

    fn call(status: CallStatus, took_ms: Option<i64>) -> CallRecord {
        let requested_at = Timestamp::from_millisecond(1_000).unwrap();
        CallRecord {
            key: String::new(),
            number: 1,
            site: Site::default(),
            ordinal: 0,
            toolkit: "a".to_owned(),
            operation: "b".to_owned(),
            arguments: Map::new(),
            risk: Risk::Read,
            status,
            requested_at,
            done_at: took_ms.map(|took| Timestamp::from_millisecond(1_000 + took).unwrap()),
            readings: Readings::default(),
        }
    }

    #[test]
    fn calls_are_counted_by_how_they_ended_and_how_long_they_took() {
        let mut counted = Counted::default();
        for took in 1..=18 {
            counted.count(&call(CallStatus::Done { result: Value::Null }, Some(took)));
        }
        counted.count(&call(CallStatus::Failed { error: ToolError::not_found("x") }, Some(500)));
        counted.count(&call(CallStatus::Failed { error: ToolError::new(ErrorKind::Timeout, "x") }, Some(900)));
        counted.count(&call(CallStatus::Requested, None));
        let expected = OperationStatistics {
            toolkit: "a".to_owned(),
            operation: "b".to_owned(),
            calls: 21,
            errors: [("not_found".to_owned(), 1), ("timeout".to_owned(), 1)].into(),
            open: 1,
            median_ms: 11.0,
            p95_ms: 900.0,
            longest_ms: 900.0,
        };
        assert_eq!(counted.finish("a".to_owned(), "b".to_owned()), expected);
    }
}
