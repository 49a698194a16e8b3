//! Records out of the answers of scripts. What does not fit its record is `Corrupt`, never a default.

use serde::de::{DeserializeOwned, IntoDeserializer};

use super::answer::Answer;
use crate::record::{CallRecord, SessionRecord, SessionStatus, Variable, WrittenVariable};
use crate::segment::Segment;
use crate::store::StoreError;
use crate::store::packing::{content_hash, corrupt, unpack, unpack_record};
use crate::store::upkeep::Version;

/// How many segments, events or rounds one question asks for: Redis does nothing else while it answers.
pub const PAGE: usize = 1_000;

/// The bytes of a hash in hexadecimal, before the record of a version.
const HASH: usize = 64;

/// The session of that id; `None` where there is none.
pub fn session(id: &str, answer: &Answer) -> Result<Option<SessionRecord>, StoreError> {
    let what = "session";
    if answer.word == "none" {
        return Ok(None);
    }
    let time = |at| answer.text(what, at)?.parse().map_err(|error| corrupt(what, error));
    let word = answer.text(what, 3)?;
    let word: serde::de::value::StrDeserializer<'_, serde::de::value::Error> = word.as_str().into_deserializer();
    let status: SessionStatus = serde::Deserialize::deserialize(word).map_err(|error| corrupt(what, error))?;
    Ok(Some(SessionRecord {
        id: id.to_owned(),
        tenant: answer.text(what, 0)?,
        user: answer.text(what, 1)?,
        title: answer.text(what, 2)?,
        status,
        created_at: time(4)?,
        updated_at: time(5)?,
        rounds: answer.number(what, 6)?,
        segments: answer.number(what, 7)?,
        events: answer.number(what, 8)?,
        turn: match answer.parts.get(9) {
            None | Some(None) => None,
            Some(Some(text)) if text.is_empty() => None,
            Some(Some(text)) => serde_json::from_slice(text).map_err(|error| corrupt("turn", error))?,
        },
    }))
}

/// Segments in order, the first of which must be `first`.
pub fn segments(first: u64, answer: &Answer) -> Result<Vec<Segment>, StoreError> {
    let what = "segment";
    let mut segments: Vec<Segment> = Vec::with_capacity(answer.parts.len());
    for (at, id) in (0..answer.parts.len()).zip(first..) {
        let segment: Segment = unpack_record(what, answer.bytes(what, at)?)?;
        segments.push(same(what, segment.id, id).map(|()| segment)?);
    }
    Ok(segments)
}

/// Records, each after its number, which it must say itself.
pub fn numbered<T: DeserializeOwned>(
    what: &'static str,
    answer: &Answer,
    number_of: impl Fn(&T) -> u64,
) -> Result<Vec<T>, StoreError> {
    let mut records = Vec::with_capacity(answer.parts.len() / 2);
    for at in (0..answer.parts.len()).step_by(2) {
        let record = unpack_record(what, answer.bytes(what, at + 1)?)?;
        same(what, number_of(&record), answer.number(what, at)?)?;
        records.push(record);
    }
    Ok(records)
}

/// A round's calls as they were requested.
pub fn calls(answer: &Answer) -> Result<Vec<CallRecord>, StoreError> {
    (0..answer.parts.len()).map(|at| unpack_record("call", answer.bytes("call", at)?)).collect()
}

/// The variables there are now, by name.
pub fn variables(answer: &Answer) -> Result<Vec<Variable>, StoreError> {
    let each = (0..answer.parts.len()).step_by(3);
    let mut variables: Vec<Variable> = each.map(|at| variable(answer, at)).collect::<Result<_, _>>()?;
    variables.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(variables)
}

/// Variables with their contents, in the order in which they were asked for.
pub fn contents(answer: &Answer) -> Result<Vec<WrittenVariable>, StoreError> {
    let what = "variable";
    let mut found = Vec::with_capacity(answer.parts.len() / 4);
    for at in (0..answer.parts.len()).step_by(4) {
        let variable = variable(answer, at)?;
        let content = unpack(what, answer.bytes(what, at + 3)?)?;
        if content_hash(&content) != variable.hash {
            return Err(corrupt(what, format!("the content of `{}` is not what was written", variable.name)));
        }
        found.push(WrittenVariable { variable, content });
    }
    Ok(found)
}

/// All versions by round and name, each after its round and name.
pub fn versions(answer: &Answer) -> Result<Vec<Version>, StoreError> {
    let what = "variable";
    let mut versions = Vec::with_capacity(answer.parts.len() / 2);
    for at in (0..answer.parts.len()).step_by(2) {
        let place = answer.text(what, at)?;
        let strange = || corrupt(what, format!("`{place}` is no place of a version"));
        let (round, name) = place.split_once('/').ok_or_else(strange)?;
        let round = round.parse().map_err(|_| strange())?;
        let stored = answer.bytes(what, at + 1)?;
        let variable = if stored.is_empty() { None } else { Some(version(name, round, stored)?) };
        versions.push(Version { name: name.to_owned(), round, variable });
    }
    versions.sort_by(|one, other| (one.round, &one.name).cmp(&(other.round, &other.name)));
    Ok(versions)
}

/// A name, the round of its version, and that version.
fn variable(answer: &Answer, at: usize) -> Result<Variable, StoreError> {
    let what = "variable";
    version(&answer.text(what, at)?, answer.number(what, at + 1)?, answer.bytes(what, at + 2)?)
}

fn version(name: &str, round: u64, stored: &[u8]) -> Result<Variable, StoreError> {
    let what = "variable";
    let (hash, record) = stored.split_at_checked(HASH).ok_or_else(|| corrupt(what, "it is too short"))?;
    let variable: Variable = unpack_record(what, record)?;
    same(what, variable.round, round)?;
    if variable.name != name || variable.hash.as_bytes() != hash {
        return Err(corrupt(what, format!("`{}` is stored as `{name}`", variable.name)));
    }
    Ok(variable)
}

fn same(what: &'static str, own: u64, stored: u64) -> Result<(), StoreError> {
    if own == stored { Ok(()) } else { Err(corrupt(what, format!("number {own} is stored as {stored}"))) }
}
