//! A judge of rounds that knows the protocol from its description, not from the host's side of it.

use std::collections::HashSet;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::super::done::{self, Done, DoneEnding};
use super::super::message::{self, Cancelled, Printed, StatementDone};
use super::super::{Ending, Finished, Run, frame};
use super::rounds::{AT_ONCE, CALLS, FRAME_BYTES, Last, OUTPUT_BYTES, Toolkit};

/// What a child said, by the protocol's description: up to its last word, to the first thing that it may not say, or to the
/// end of its bytes.
#[derive(Default)]
pub(super) struct Judged {
    /// Calls before that, in order.
    calls: Vec<u64>,
    printed: String,
    statements: Vec<u32>,
    of: Option<u32>,
    pub done: Option<Done>,
    violated: bool,
}

pub(super) fn judge(mut bytes: &[u8], run: &Run) -> Judged {
    let mut judged = Judged::default();
    let mut stops = 0;
    while let Some((head, rest)) = bytes.split_first_chunk::<5>() {
        let [a, b, c, d, kind] = *head;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > FRAME_BYTES {
            judged.violated = true;
            return judged;
        }
        let Some((body, rest)) = rest.split_at_checked(length) else { return judged };
        bytes = rest;
        judged.violated = match kind {
            frame::PRINT => {
                message::read::<Printed>(body).map(|printed| judged.printed.push_str(&printed.text)).is_err()
            }
            frame::STATEMENT => match message::read::<StatementDone>(body) {
                Ok(StatementDone { number, of }) => {
                    let last = judged.statements.last().copied().unwrap_or_default();
                    judged.statements.push(number);
                    let is_same = *judged.of.get_or_insert(of) == of;
                    number <= last || number > of || of as usize > run.source.len() || !is_same
                }
                Err(_) => true,
            },
            frame::CALL => match message::read_call(body) {
                Ok(call) => {
                    let is_known = judged.calls.contains(&call.id);
                    // What is above the limit is not made, and not remembered.
                    if !is_known && judged.calls.len() < CALLS as usize {
                        judged.calls.push(call.id);
                    }
                    is_known || call.target != "demo"
                }
                Err(_) => true,
            },
            frame::CANCEL => !message::read::<Cancelled>(body).is_ok_and(|one| judged.calls.contains(&one.id)),
            frame::STOPPING => {
                stops += 1;
                stops > 4
            }
            frame::DONE => match message::read::<Done>(body).and_then(|done| done::check(done, run)) {
                Ok(done) => {
                    judged.done = Some(done);
                    return judged;
                }
                Err(_) => true,
            },
            _ => true,
        };
        if judged.violated {
            return judged;
        }
    }
    judged
}

/// Each call was made once, as it was asked for, and not too many at a time.
pub(super) fn look_at_calls(toolkit: &Toolkit, judged: &Judged) {
    let made = toolkit.made.lock().unwrap_or_else(PoisonError::into_inner);
    let mut seen = HashSet::new();
    let mut asked = judged.calls.iter();
    for id in made.iter() {
        assert!(seen.insert(*id), "the call {id} was made twice");
        assert!(asked.any(|one| one == id), "the call {id} was made, and not asked for by then");
    }
    assert!(made.len() <= CALLS as usize, "{} calls", made.len());
    let most = toolkit.most.load(Ordering::SeqCst);
    assert!(most <= AT_ONCE as usize, "{most} calls at the same time");
    let statements = toolkit.statements.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(judged.statements.starts_with(&statements), "{statements:?} of {:?}", judged.statements);
}

pub(super) fn look_at_end(finished: &Finished, toolkit: &Toolkit, judged: &Judged, last: Last, is_orphan: bool) {
    let ending = &finished.ending;
    let is_clean = last == Last::Exits(0) || is_orphan;
    let said = judged.done.as_ref().map(|done| &done.ending);
    assert_ne!(*ending, Ending::Cancelled, "nobody cancelled it");
    match ending {
        Ending::Returned { value } => {
            let fits = matches!(said, Some(DoneEnding::Returned { value: said }) if said == value);
            assert!(fits && is_clean, "{ending:?} of {said:?}, {last:?}");
        }
        Ending::Raised { traceback, .. } => {
            let fits = matches!(said, Some(DoneEnding::Raised { traceback: said, .. }) if said == traceback);
            assert!(fits && is_clean, "{ending:?} of {said:?}, {last:?}");
        }
        // Time is over whenever the machine is busy.
        Ending::Limit { .. } | Ending::Crashed { .. } => {}
        Ending::Lost { .. } => assert!(is_orphan, "{ending:?}"),
        Ending::Cancelled => {}
    }
    if judged.violated {
        let is_told = matches!(ending, Ending::Limit { .. } | Ending::Crashed { .. } | Ending::Lost { .. });
        assert!(is_told && finished.written.is_empty(), "{finished:?}");
    }
    if judged.done.is_none() || !is_clean {
        assert!(finished.written.is_empty() && finished.removed.is_empty(), "{finished:?}");
    }
    assert!(finished.statements_done <= finished.statements, "{finished:?}");
    // The mark of what was cut takes its own room.
    assert!(finished.output.len() <= OUTPUT_BYTES + 200, "{} bytes of output", finished.output.len());
    let printed = toolkit.printed.lock().unwrap_or_else(PoisonError::into_inner);
    let shown = printed.len().min(OUTPUT_BYTES / 4 * 3);
    assert_eq!(printed.get(..shown), judged.printed.get(..shown), "what was shown was not printed");
    assert!(finished.usage.calls <= CALLS, "{:?}", finished.usage);
}
