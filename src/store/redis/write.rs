//! What writes are made of: the arguments of their scripts, in the order in which those take them, and what is wrong where a
//! script refuses.

use std::time::Duration;

use super::answer::{Answer, VERSION, unexpected};
use super::keys::number;
use crate::event::Event;
use crate::record::{CallRecord, Round, SessionRecord, Variable};
use crate::segment::Segment;
use crate::store::packing::{hash_bytes, pack, pack_record};
use crate::store::upkeep::Whole;
use crate::store::{Rewind, RoundCommit, StoreError, check};

/// Arguments of a script.
pub type Arguments = Vec<Vec<u8>>;

/// What every write begins with. `keep`: how long the session is kept after it; `patience`: how long it may be tried, for
/// which its mark must be there.
/// `lease`: the number of the writer's lease, if it has one.
pub fn begin(keep: Option<Duration>, patience: Duration, lease: Option<u64>) -> Arguments {
    let keep = keep.map_or(0, |keep| keep.as_millis().max(1));
    let mark = patience.as_secs() * 2 + 30;
    let lease = lease.map(|number| number.to_string()).unwrap_or_default();
    texts([VERSION.to_string(), keep.to_string(), format!("{mark} {lease}")])
}

/// A new session's row.
///
/// # Errors
/// `Failed` for what cannot be stored.
pub fn create_session(session: &SessionRecord) -> Result<Arguments, StoreError> {
    let SessionRecord { tenant, user, title, created_at, updated_at, rounds, segments, events, .. } = session;
    Ok(texts([
        tenant.clone(),
        user.clone(),
        title.clone(),
        status(session)?,
        created_at.to_string(),
        updated_at.to_string(),
        number(*rounds)?,
        number(*segments)?,
        number(*events)?,
        turn(session),
    ]))
}

/// A whole session that agrees with itself.
///
/// # Errors
/// `Failed` for what cannot be stored.
pub fn put_session(whole: &Whole, replace: bool) -> Result<Arguments, StoreError> {
    let mut arguments = vec![if replace { "1" } else { "0" }.into()];
    arguments.extend(create_session(&whole.session)?);
    let count = |count: usize| count.to_string().into_bytes();
    arguments.push(count(whole.segments.len()));
    for segment in &whole.segments {
        arguments.push(pack_record("segment", segment)?);
    }
    arguments.push(count(whole.events.len()));
    for event in &whole.events {
        arguments.push(pack_record("event", event)?);
    }
    arguments.push(count(whole.rounds.len()));
    for round in &whole.rounds {
        arguments.extend(open_round(round)?);
    }
    arguments.push(count(whole.calls.len()));
    for (round, record) in &whole.calls {
        arguments.extend(call(*round, record)?);
    }
    arguments.push(count(whole.versions.len()));
    for version in &whole.versions {
        arguments.push(format!("{}/{}", number(version.round)?, version.name).into_bytes());
        arguments.push(match &version.variable {
            Some(variable) => [hash(variable)?, pack_record("variable", variable)?].concat(),
            None => Vec::new(),
        });
    }
    arguments.push(count(whole.contents.len()));
    for (hash, content) in &whole.contents {
        arguments.extend([hash.clone().into_bytes(), pack(content)?]);
    }
    let variables = whole.variables();
    arguments.push(count(variables.len()));
    for (name, round) in variables {
        arguments.extend([name.as_bytes().to_vec(), number(round)?.into_bytes()]);
    }
    Ok(arguments)
}

/// The way back to an earlier round.
///
/// # Errors
/// `Failed` for one that contradicts itself, and for what cannot be stored.
pub fn rewind_session(rewind: &Rewind) -> Result<Arguments, StoreError> {
    check::rewind(rewind)?;
    let Rewind { before, session, round, written, removed } = rewind;
    let mut arguments = texts([
        session.tenant.clone(),
        session.user.clone(),
        number(before.rounds)?,
        number(before.segments)?,
        number(before.events)?,
        session.title.clone(),
        status(session)?,
        session.updated_at.to_string(),
        number(session.rounds)?,
        number(session.segments)?,
        number(round.number)?,
    ]);
    arguments.push(pack_record("round", round)?);
    arguments.push(written.len().to_string().into_bytes());
    for variable in written {
        arguments.extend([variable.name.clone().into_bytes(), hash(variable)?, pack_record("variable", variable)?]);
    }
    arguments.extend(removed.iter().map(|name| name.clone().into_bytes()));
    Ok(arguments)
}

/// A session's new row and what is appended to it.
///
/// # Errors
/// `Failed` for entries that leave a gap among themselves, and for what cannot be stored.
pub fn append(session: &SessionRecord, segments: &[Segment], events: &[Event]) -> Result<Arguments, StoreError> {
    let SessionRecord { tenant, user, title, updated_at, rounds, .. } = session;
    let segment_ids: Vec<u64> = segments.iter().map(|segment| segment.id).collect();
    let event_numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
    let mut arguments = texts([
        tenant.clone(),
        user.clone(),
        title.clone(),
        status(session)?,
        updated_at.to_string(),
        number(*rounds)?,
        number(session.segments)?,
        number(session.events)?,
        number(check::follows_on("segment", session.segments, &segment_ids)?)?,
        number(check::follows_on("event", session.events, &event_numbers)?)?,
        segments.len().to_string(),
        events.len().to_string(),
        turn(session),
    ]);
    for segment in segments {
        arguments.push(pack_record("segment", segment)?);
    }
    for event in events {
        arguments.push(pack_record("event", event)?);
    }
    Ok(arguments)
}

/// The end of a round, after what [`append`] gives.
///
/// # Errors
/// `Failed` for a commit that contradicts itself, and for what cannot be stored.
pub fn commit_round(commit: &RoundCommit) -> Result<Arguments, StoreError> {
    check::commit(commit)?;
    let mut arguments = append(&commit.session, &commit.segments, &commit.events)?;
    arguments.extend(open_round(&commit.round)?);
    arguments.push(commit.written.len().to_string().into_bytes());
    for written in &commit.written {
        let variable = &written.variable;
        arguments.extend([variable.name.clone().into_bytes(), hash(variable)?, pack_record("variable", variable)?]);
        arguments.push(pack(&written.content)?);
    }
    arguments.extend(commit.removed.iter().map(|name| name.clone().into_bytes()));
    Ok(arguments)
}

/// A round's number, whether it has ended, and its record.
///
/// # Errors
/// `Failed` for what cannot be stored.
pub fn open_round(round: &Round) -> Result<Arguments, StoreError> {
    let ended = if check::is_open(round.outcome.as_ref()) { "0" } else { "1" };
    Ok(vec![number(round.number)?.into_bytes(), ended.into(), pack_record("round", round)?])
}

/// A round's number, a call's key, and the call's record.
///
/// # Errors
/// `Failed` for what cannot be stored.
pub fn call(round: u64, call: &CallRecord) -> Result<Arguments, StoreError> {
    Ok(vec![number(round)?.into_bytes(), call.key.clone().into_bytes(), pack_record("call", call)?])
}

/// Why [`append`] was refused; `Ok` if it was not.
///
/// # Errors
/// That.
pub fn appended(
    answer: &Answer,
    session: &SessionRecord,
    segments: &[Segment],
    events: &[Event],
) -> Result<(), StoreError> {
    match answer.word.as_str() {
        "ok" => Ok(()),
        "unknown" => Err(StoreError::UnknownSession(session.id.clone())),
        "elsewhere" => {
            let what = "session";
            let stored = SessionRecord {
                rounds: answer.number(what, 0)?,
                segments: answer.number(what, 1)?,
                events: answer.number(what, 2)?,
                ..session.clone()
            };
            let segment_ids: Vec<u64> = segments.iter().map(|segment| segment.id).collect();
            let event_numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
            check::append(&stored, session, &segment_ids, &event_numbers)?;
            Err(unexpected(&answer.word))
        }
        word => Err(unexpected(word)),
    }
}

/// A variable's hash: the first 64 bytes of its version.
fn hash(variable: &Variable) -> Result<Vec<u8>, StoreError> {
    match hash_bytes(&variable.hash) {
        Some(_) => Ok(variable.hash.clone().into_bytes()),
        None => Err(StoreError::Failed(format!("`{}` is no content hash", variable.hash))),
    }
}

/// Empty between turns.
fn turn(session: &SessionRecord) -> String {
    session.turn.as_ref().map(ToString::to_string).unwrap_or_default()
}

fn status(session: &SessionRecord) -> Result<String, StoreError> {
    match serde_json::to_value(session.status) {
        Ok(serde_json::Value::String(word)) => Ok(word),
        other => Err(StoreError::Failed(format!("no word: {other:?}"))),
    }
}

fn texts<const N: usize>(texts: [String; N]) -> Arguments {
    texts.map(String::into_bytes).into()
}
