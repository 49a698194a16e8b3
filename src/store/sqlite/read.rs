//! The questions that a session's rows answer. They change nothing.

use rusqlite::{Connection, Params, Row};
use serde::de::DeserializeOwned;

use super::rows::{self, SEGMENT, SESSION, VARIABLE, blob, failed, number};
use crate::event::Event;
use crate::record::{CallRecord, Round, SessionRecord, Variable, WrittenVariable};
use crate::segment::Segment;
use crate::store::StoreError;
use crate::store::packing::{corrupt, unpack_record};

/// The session of that id.
pub fn session(connection: &Connection, id: &str) -> Result<Option<SessionRecord>, StoreError> {
    let sql = format!("SELECT {SESSION} FROM sessions WHERE id = ?1");
    Ok(all("session", connection, &sql, [id], rows::session)?.pop())
}

/// A user's sessions, most recently updated first; ids of version 7 put the younger first among equals.
pub fn sessions(
    connection: &Connection,
    tenant: &str,
    user: &str,
    limit: u32,
) -> Result<Vec<SessionRecord>, StoreError> {
    let sql = format!(
        "SELECT {SESSION} FROM sessions WHERE tenant = ?1 AND user = ?2 ORDER BY updated_at DESC, id DESC LIMIT ?3"
    );
    all("session", connection, &sql, (tenant, user, limit), rows::session)
}

/// Segments after a number, in order.
pub fn segments(connection: &Connection, session: &str, after: u64, limit: u32) -> Result<Vec<Segment>, StoreError> {
    let sql = format!(
        "SELECT {SEGMENT} FROM segments
         WHERE session = (SELECT key FROM sessions WHERE id = ?1) AND segments.id > ?2 ORDER BY segments.id LIMIT ?3"
    );
    all("segment", connection, &sql, (session, bound(after), limit), rows::segment)
}

/// Events after a number, in order.
pub fn events(connection: &Connection, session: &str, after: u64, limit: u32) -> Result<Vec<Event>, StoreError> {
    let sql = "SELECT seq, record FROM events
               WHERE session = (SELECT key FROM sessions WHERE id = ?1) AND seq > ?2 ORDER BY seq LIMIT ?3";
    all("event", connection, sql, (session, bound(after), limit), |row| {
        numbered("event", row, |event: &Event| event.seq)
    })
}

/// Rounds after a number, in order.
pub fn rounds(connection: &Connection, session: &str, after: u64) -> Result<Vec<Round>, StoreError> {
    let sql = "SELECT number, record FROM rounds
               WHERE session = (SELECT key FROM sessions WHERE id = ?1) AND number > ?2 ORDER BY number";
    all("round", connection, sql, (session, bound(after)), |row| numbered("round", row, |round: &Round| round.number))
}

/// A round's calls as they were requested.
pub fn calls(connection: &Connection, session: &str, round: u64) -> Result<Vec<CallRecord>, StoreError> {
    let sql = "SELECT record FROM calls
               WHERE session = (SELECT key FROM sessions WHERE id = ?1) AND round = ?2 ORDER BY position";
    all("call", connection, sql, (session, bound(round)), |row| unpack_record("call", blob("call", row, 0)?))
}

/// The variables there are now, by name.
pub fn variables(connection: &Connection, session: &str) -> Result<Vec<Variable>, StoreError> {
    let sql = format!(
        "SELECT {VARIABLE} FROM variables JOIN versions USING (session, name, round)
         WHERE session = (SELECT key FROM sessions WHERE id = ?1) ORDER BY name"
    );
    all("variable", connection, &sql, [session], rows::variable)
}

/// The variables there were after a round, by name.
pub fn variables_at(connection: &Connection, session: &str, round: u64) -> Result<Vec<Variable>, StoreError> {
    let sql = format!(
        "SELECT {VARIABLE} FROM versions AS version
         WHERE session = (SELECT key FROM sessions WHERE id = ?1) AND hash IS NOT NULL AND round = (
             SELECT max(round) FROM versions
             WHERE session = version.session AND name = version.name AND round <= ?2)
         ORDER BY name"
    );
    all("variable", connection, &sql, (session, bound(round)), rows::variable)
}

/// Some of the variables there are now, with their contents.
pub fn contents(connection: &Connection, session: &str, names: &[String]) -> Result<Vec<WrittenVariable>, StoreError> {
    let what = "variable";
    let sql = format!(
        "SELECT {VARIABLE}, content FROM variables JOIN versions USING (session, name, round) JOIN contents USING (hash)
         WHERE session = (SELECT key FROM sessions WHERE id = ?1) AND name = ?2"
    );
    // One state for all names, while other processes write.
    let transaction = connection.unchecked_transaction().map_err(failed(what))?;
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        found.extend(all(what, connection, &sql, (session, name), |row| {
            let columns = row.as_ref().column_count();
            rows::with_content(rows::variable(row)?, row, columns - 1)
        })?);
    }
    transaction.finish().map_err(failed(what))?;
    Ok(found)
}

/// The record in column 1, which must say the same number as column 0.
fn numbered<T: DeserializeOwned>(
    what: &'static str,
    row: &Row<'_>,
    number_of: impl Fn(&T) -> u64,
) -> Result<T, StoreError> {
    let record = unpack_record(what, blob(what, row, 1)?)?;
    let (stored, own) = (number(what, row, 0)?, number_of(&record));
    if stored == own { Ok(record) } else { Err(corrupt(what, format!("number {own} is stored as {stored}"))) }
}

/// Every row of an answer.
pub(super) fn all<T>(
    what: &'static str,
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
    read: impl Fn(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut statement = connection.prepare_cached(sql).map_err(failed(what))?;
    let mut rows = statement.query(parameters).map_err(failed(what))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(failed(what))? {
        found.push(read(row)?);
    }
    Ok(found)
}

/// A number to compare with: none that is stored is larger than SQLite's largest.
fn bound(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
