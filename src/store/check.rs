//! What no store writes, whatever it is built on: entries that leave a gap, and commits that contradict themselves. Pure.

use std::collections::BTreeSet;

use super::packing::content_hash;
use super::{RoundCommit, StoreError};
use crate::record::{Outcome, SessionRecord};

/// Whether `session`, the ids of its new segments and the numbers of its new events go on from the `stored` record of
/// the same session.
///
/// # Errors
/// `Stale` if they go on from an older one, `Failed` if they leave a gap or the counters do not fit.
pub fn append(
    stored: &SessionRecord,
    session: &SessionRecord,
    segments: &[u64],
    events: &[u64],
) -> Result<(), StoreError> {
    if session.rounds < stored.rounds
        || starts_before(stored.segments, session.segments, segments)
        || starts_before(stored.events, session.events, events)
    {
        return Err(StoreError::Stale(session.id.clone()));
    }
    follows("segment", stored.segments, session.segments, segments)?;
    follows("event", stored.events, session.events, events)
}

/// The number that new entries follow, the session then counting `counter` of them. For a store that compares it with the
/// stored counter where nothing comes between that and its write: lower is stale, higher a gap.
///
/// # Errors
/// `Failed` if they leave a gap among themselves, or the counter is not that of the last.
pub fn follows_on(what: &str, counter: u64, numbers: &[u64]) -> Result<u64, StoreError> {
    let before = match numbers.first() {
        None => counter,
        Some(first) => first
            .checked_sub(1)
            .ok_or_else(|| StoreError::Failed(format!("{what} 0 cannot be stored: they count from 1")))?,
    };
    follows(what, before, counter, numbers).map(|()| before)
}

/// Whether a commit agrees with itself: the round has an outcome, each written variable carries the round's number and
/// the hash and size of its content, no name is there twice, and a suspended round changes none.
///
/// # Errors
/// `Failed`, which names what does not fit.
pub fn commit(commit: &RoundCommit) -> Result<(), StoreError> {
    let refuse = |message: String| Err(StoreError::Failed(message));
    let round = commit.round.number;
    match &commit.round.outcome {
        None => return refuse(format!("round {round} has no outcome")),
        Some(Outcome::Suspended { .. }) if !(commit.written.is_empty() && commit.removed.is_empty()) => {
            return refuse(format!("round {round} is suspended and cannot change variables yet"));
        }
        Some(_) => {}
    }
    if commit.session.rounds < round {
        return refuse(format!("the session counts {} rounds and commits round {round}", commit.session.rounds));
    }
    let mut names = BTreeSet::new();
    for name in commit.written.iter().map(|written| &written.variable.name).chain(&commit.removed) {
        if !names.insert(name) {
            return refuse(format!("round {round} changes `{name}` twice"));
        }
    }
    for written in &commit.written {
        let variable = &written.variable;
        if variable.round != round {
            return refuse(format!("`{}` is of round {}, not of round {round}", variable.name, variable.round));
        }
        if variable.size != written.content.len() as u64 || variable.hash != content_hash(&written.content) {
            return refuse(format!("the hash or size of `{}` is not that of its content", variable.name));
        }
    }
    Ok(())
}

/// True for a round that can still go on: it runs, waits, or its owner died.
pub fn is_open(outcome: Option<&Outcome>) -> bool {
    matches!(outcome, None | Some(Outcome::Suspended { .. }))
}

fn starts_before(stored: u64, counter: u64, numbers: &[u64]) -> bool {
    counter < stored || numbers.first().is_some_and(|first| *first <= stored)
}

fn follows(what: &str, stored: u64, counter: u64, numbers: &[u64]) -> Result<(), StoreError> {
    let mut last = stored;
    for &number in numbers {
        if last.checked_add(1) != Some(number) {
            return Err(StoreError::Failed(format!("{what} {number} cannot follow {what} {last}")));
        }
        last = number;
    }
    if counter == last {
        Ok(())
    } else {
        Err(StoreError::Failed(format!("the session counts {counter} {what}s and has {last}")))
    }
}
