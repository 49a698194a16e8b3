//! What the journals of a user's sessions say of the calls and the rounds: how many, how long they took, how they failed. It
//! reads, and keeps nothing of its own, so that it holds for all processes and after a restart.

use std::collections::BTreeMap;

use fimble_toolkit::ErrorKind;
use jiff::Timestamp;
use serde::Serialize;

use super::exception_class;
use crate::record::{CallRecord, CallStatus, Outcome, Round};
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

/// The rounds of all sessions.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RoundStatistics {
    /// Programs that began.
    pub rounds: u64,
    /// Of those, the ones that ran to their end.
    pub finished: u64,
    /// Of those, the others that ended, by what ended them: the class of the exception, e.g. `KeyError`, or the limit, e.g. `wall`.
    pub errors: BTreeMap<String, u64>,
    /// Of those, the ones that did not end: they run or wait, or their process died.
    pub open: u64,
    /// `finished` of all that ended, from 0 to 1; 0 if none ended.
    pub success_rate: f64,
    /// The wall time in the middle, in milliseconds, of all that ended; 0 if none did.
    pub median_ms: f64,
    /// 95 of 100 took no longer.
    pub p95_ms: f64,
    /// The longest one.
    pub longest_ms: f64,
}

/// The statistics of the rounds that a user's sessions began since `since`.
///
/// # Errors
/// Those of the store.
pub async fn round_statistics(
    store: &dyn Store,
    tenant: &str,
    user: &str,
    since: Timestamp,
) -> Result<RoundStatistics, StoreError> {
    let mut rounds = Vec::new();
    for session in store.sessions(tenant, user, u32::MAX).await? {
        // They come with the last one first.
        if session.updated_at < since {
            break;
        }
        rounds.extend(store.rounds(&session.id, 0).await?.into_iter().filter(|round| round.started_at >= since));
    }
    Ok(count_rounds(&rounds))
}

fn count_rounds(rounds: &[Round]) -> RoundStatistics {
    let mut counted = RoundStatistics { rounds: rounds.len() as u64, ..RoundStatistics::default() };
    let mut times_ms = Vec::new();
    for round in rounds {
        match &round.outcome {
            None | Some(Outcome::Suspended { .. }) => {
                counted.open += 1;
                continue;
            }
            Some(Outcome::Finished { .. }) => counted.finished += 1,
            Some(outcome @ Outcome::Raised { .. }) => {
                let class = exception_class(outcome).unwrap_or_default();
                *counted.errors.entry(class.to_owned()).or_default() += 1;
            }
            Some(Outcome::Stopped { limit, .. }) => *counted.errors.entry(limit.clone()).or_default() += 1,
        }
        times_ms.push(round.usage.wall_ms);
    }
    let ended = times_ms.len();
    if ended > 0 {
        #[expect(clippy::cast_precision_loss, reason = "nobody has so many rounds")]
        let rate = counted.finished as f64 / ended as f64;
        counted.success_rate = rate;
    }
    [counted.median_ms, counted.p95_ms, counted.longest_ms] = spread(times_ms);
    counted
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
        let [median_ms, p95_ms, longest_ms] = spread(std::mem::take(&mut self.times_ms));
        let Self { calls, errors, open, .. } = self;
        OperationStatistics { toolkit, operation, calls, errors, open, median_ms, p95_ms, longest_ms }
    }
}

/// The time in the middle, the one that 95 of 100 do not exceed, and the longest; 0 where there is none.
fn spread(mut times_ms: Vec<f64>) -> [f64; 3] {
    times_ms.sort_by(f64::total_cmp);
    let last = times_ms.len().saturating_sub(1);
    [50, 95, 100].map(|percent| times_ms.get((times_ms.len() * percent / 100).min(last)).copied().unwrap_or_default())
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

    #[test]
    fn rounds_are_counted_by_how_they_ended() {
        let round = |number: u64, outcome: Option<Outcome>| Round {
            number,
            parents: Vec::new(),
            goal: String::new(),
            prefix: String::new(),
            hole: String::new(),
            suffix: String::new(),
            output: String::new(),
            written: Vec::new(),
            removed: Vec::new(),
            not_kept: Default::default(),
            statements_done: 0,
            outcome,
            started_at: Timestamp::UNIX_EPOCH,
            ended_at: None,
            usage: crate::record::RoundUsage { wall_ms: 10.0, ..Default::default() },
            seed: String::new(),
            trace: String::new(),
        };
        let raised_as = |exception: &str, traceback: &str| Outcome::Raised {
            traceback: traceback.to_owned(),
            statement: 1,
            exception: exception.to_owned(),
        };
        let raised = |traceback: &str| raised_as("", traceback);
        let outcomes = [
            Some(Outcome::Finished { value: None }),
            Some(Outcome::Finished { value: None }),
            Some(raised("Traceback (most recent call last):\n  File \"p\", line 1\n    x['a']\nKeyError: 'a: B'\n")),
            Some(raised("json.decoder.JSONDecodeError: Expecting value\nhint: look at it")),
            Some(raised("KeyError: 'b'\n    x = {}")),
            Some(raised_as("ExceptionGroup", "  | ExceptionGroup: two\n    | ValueError: one\nNote: see the log")),
            Some(raised_as("ValueError", "ValueError: one\nNote: see the log")),
            Some(Outcome::Stopped { limit: "wall".to_owned(), message: String::new() }),
            Some(Outcome::Suspended { on: "question".to_owned(), call: String::new() }),
            None,
        ];
        let rounds: Vec<Round> = (1..).zip(outcomes).map(|(number, outcome)| round(number, outcome)).collect();
        let counted = count_rounds(&rounds);
        let errors = [("KeyError", 2), ("JSONDecodeError", 1), ("ExceptionGroup", 1), ("ValueError", 1), ("wall", 1)];
        assert_eq!(counted.errors, errors.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect());
        assert_eq!((counted.rounds, counted.finished, counted.open), (10, 2, 2));
        assert!((counted.success_rate - 0.25).abs() < 1e-9 && (counted.median_ms - 10.0).abs() < 1e-9);
        assert_eq!(count_rounds(&[]), RoundStatistics::default());
    }
}
