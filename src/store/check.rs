//! What no store writes, whatever it is built on: entries that leave a gap, and commits that contradict themselves. Pure.

use std::collections::BTreeSet;

use super::packing::content_hash;
use super::{Rewind, RoundCommit, StoreError, family};
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

/// Whether `fork` can be a new fork of the session `source`: of its family, without events and with no turn under way.
///
/// # Errors
/// `Failed`.
pub fn fork(source: &str, fork: &SessionRecord) -> Result<(), StoreError> {
    let refuse = |why: &str| Err(StoreError::Failed(format!("`{}` cannot be a fork of `{source}`: {why}", fork.id)));
    if family::mark(&fork.id).is_none() || family::root(&fork.id) != family::root(source) {
        return refuse("its id is none of that family");
    }
    if fork.events != 0 || fork.turn.is_some() {
        return refuse("a fork has no events and no turn yet");
    }
    Ok(())
}

/// Whether the `stored` source has what `fork` is to take over.
///
/// # Errors
/// `UnknownSession` if it is somebody else's, `Stale` if it has less.
pub fn fork_from(stored: &SessionRecord, fork: &SessionRecord) -> Result<(), StoreError> {
    if (&stored.tenant, &stored.user) != (&fork.tenant, &fork.user) {
        return Err(StoreError::UnknownSession(stored.id.clone()));
    }
    if stored.rounds < fork.rounds || stored.segments < fork.segments {
        return Err(StoreError::Stale(stored.id.clone()));
    }
    Ok(())
}

/// Whether the way back agrees with itself: it is the session's next round and has ended, it adds no segment, loses no event,
/// and changes no name twice.
///
/// # Errors
/// `Failed`, which names what does not fit.
pub fn rewind(rewind: &Rewind) -> Result<(), StoreError> {
    let refuse = |message: String| Err(StoreError::Failed(message));
    let Rewind { before, session, round, written, removed } = rewind;
    let number = round.number;
    if before.id != session.id || before.rounds.checked_add(1) != Some(number) || session.rounds != number {
        return refuse(format!("round {number} is not the next one of the session"));
    }
    if is_open(round.outcome.as_ref()) {
        return refuse(format!("round {number} has not ended"));
    }
    if session.segments > before.segments || session.events != before.events || session.turn.is_some() {
        return refuse("going back adds no segment, loses no event, and leaves no turn".to_owned());
    }
    if let Some(other) = written.iter().find(|variable| variable.round != number) {
        return refuse(format!("`{}` is of round {}, not of round {number}", other.name, other.round));
    }
    let mut names = BTreeSet::new();
    match written.iter().map(|variable| &variable.name).chain(removed).find(|name| !names.insert(*name)) {
        Some(name) => refuse(format!("round {number} changes `{name}` twice")),
        None => Ok(()),
    }
}

/// Whether the `stored` session is still as `before` says.
///
/// # Errors
/// `UnknownSession` if it is somebody else's, `Stale` if it is not.
pub fn rewind_from(stored: &SessionRecord, before: &SessionRecord) -> Result<(), StoreError> {
    if (&stored.tenant, &stored.user) != (&before.tenant, &before.user) {
        return Err(StoreError::UnknownSession(before.id.clone()));
    }
    let counters = |record: &SessionRecord| (record.rounds, record.segments, record.events);
    if counters(stored) == counters(before) { Ok(()) } else { Err(StoreError::Stale(before.id.clone())) }
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
