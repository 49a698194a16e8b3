//! What changes a session's rows. Each function runs inside a transaction of its caller, who undoes it if it fails.

use rusqlite::{Connection, ErrorCode, OptionalExtension};

use super::read;
use super::rows::{SEGMENT, SegmentRow, VARIABLE, VersionRow, failed, nanoseconds, signed, word};
use crate::event::Event;
use crate::record::{Round, SessionRecord};
use crate::segment::Segment;
use crate::store::packing::pack_record;
use crate::store::{RoundCommit, StoreError, check};

/// A session as its row's values, and as the record they were made of.
pub struct SessionRow {
    record: SessionRecord,
    status: String,
    created_at: i64,
    updated_at: i64,
    counters: [i64; 3],
    turn: Option<String>,
}

impl SessionRow {
    /// The row of a session.
    pub fn new(session: &SessionRecord) -> Result<Self, StoreError> {
        Ok(Self {
            record: session.clone(),
            status: word(&session.status)?,
            created_at: nanoseconds(session.created_at)?,
            updated_at: nanoseconds(session.updated_at)?,
            counters: [signed(session.rounds)?, signed(session.segments)?, signed(session.events)?],
            turn: session.turn.as_ref().map(ToString::to_string),
        })
    }

    /// Writes what may change of a session that is there.
    pub(super) fn update(&self, connection: &Connection, key: i64) -> Result<(), StoreError> {
        let Self { record, status, updated_at, counters: [rounds, segments, events], turn, .. } = self;
        let sql =
            "UPDATE sessions SET title = ?2, status = ?3, updated_at = ?4, rounds = ?5, segments = ?6, events = ?7, turn = ?8
                   WHERE key = ?1";
        execute(connection, sql, (key, &record.title, status, updated_at, rounds, segments, events, turn))
            .map(drop)
            .map_err(failed("session"))
    }
}

/// A round as its row's values.
pub struct RoundRow {
    number: i64,
    ended: bool,
    record: Vec<u8>,
}

impl RoundRow {
    /// The row of a round.
    pub fn new(round: &Round) -> Result<Self, StoreError> {
        Ok(Self {
            number: signed(round.number)?,
            ended: !check::is_open(round.outcome.as_ref()),
            record: pack_record("round", round)?,
        })
    }
}

/// Stores a round as it is, and answers its number.
pub(super) fn stored_round(connection: &Connection, session: i64, round: &RoundRow) -> Result<i64, StoreError> {
    let sql = "INSERT INTO rounds (session, number, ended, record) VALUES (?1, ?2, ?3, ?4)";
    execute(connection, sql, (session, round.number, round.ended, &round.record)).map_err(failed("round"))?;
    Ok(round.number)
}

/// Opens a session.
pub fn create_session(connection: &Connection, row: &SessionRow) -> Result<(), StoreError> {
    let SessionRow { record, status, created_at, updated_at, counters: [rounds, segments, events], turn } = row;
    let sql =
        "INSERT INTO sessions (id, tenant, user, title, status, created_at, updated_at, rounds, segments, events, turn)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    let SessionRecord { id, tenant, user, title, .. } = record;
    execute(connection, sql, (id, tenant, user, title, status, created_at, updated_at, rounds, segments, events, turn))
        .map(drop)
        .map_err(taken(|| record.id.clone(), "session"))
}

/// Removes a session, and the contents that nothing else refers to.
pub fn delete_session(connection: &Connection, id: &str) -> Result<(), StoreError> {
    let what = "session";
    let Some(session) = find(connection, id)? else { return Ok(()) };
    let mut statement = connection
        .prepare_cached("SELECT DISTINCT hash FROM versions WHERE session = ?1 AND hash IS NOT NULL")
        .map_err(failed(what))?;
    let hashes: Vec<Vec<u8>> =
        statement.query_map([session], |row| row.get(0)).and_then(Iterator::collect).map_err(failed(what))?;
    execute(connection, "DELETE FROM sessions WHERE key = ?1", [session]).map_err(failed(what))?;
    let sweep = "DELETE FROM contents WHERE hash = ?1 AND NOT EXISTS (SELECT 1 FROM versions WHERE hash = ?1)";
    for hash in hashes {
        execute(connection, sweep, [hash]).map_err(failed(what))?;
    }
    Ok(())
}

/// Stores a round that is about to run.
pub fn open_round(connection: &Connection, session: &str, round: &RoundRow) -> Result<(), StoreError> {
    let key = known(connection, session)?;
    let sql = "INSERT INTO rounds (session, number, ended, record) VALUES (?1, ?2, ?3, ?4)";
    execute(connection, sql, (key, round.number, round.ended, &round.record))
        .map_err(taken(|| format!("round {}", round.number), "round"))?;
    let sql = "UPDATE sessions SET rounds = ?2 WHERE key = ?1 AND rounds < ?2";
    execute(connection, sql, (key, round.number)).map(drop).map_err(failed("session"))
}

/// Journals a call's request.
pub fn request_call(
    connection: &Connection,
    session: &str,
    round: i64,
    key: &str,
    record: &[u8],
) -> Result<(), StoreError> {
    let what = "call";
    let session = known(connection, session)?;
    match has_ended(connection, session, round)? {
        None => return Err(StoreError::Failed(format!("round {round} was never opened"))),
        Some(true) => return Err(StoreError::Failed(format!("round {round} has ended and takes no more calls"))),
        Some(false) => {}
    }
    let sql = "INSERT INTO calls (session, round, position, key, record)
               VALUES (?1, ?2, (SELECT coalesce(max(position), 0) + 1 FROM calls WHERE session = ?1 AND round = ?2), ?3, ?4)";
    execute(connection, sql, (session, round, key, record)).map(drop).map_err(taken(|| key.to_owned(), what))
}

/// Journals a call's end.
pub fn finish_call(
    connection: &Connection,
    session: &str,
    round: i64,
    key: &str,
    record: &[u8],
) -> Result<(), StoreError> {
    let session = known(connection, session)?;
    let sql = "UPDATE calls SET record = ?4 WHERE session = ?1 AND key = ?3 AND round = ?2";
    match execute(connection, sql, (session, round, key, record)).map_err(failed("call"))? {
        0 => Err(StoreError::Failed(format!("call `{key}` was never requested in round {round}"))),
        _ => Ok(()),
    }
}

/// A session's new row and what is appended to it.
pub struct Append {
    session: SessionRow,
    segment_ids: Vec<u64>,
    event_numbers: Vec<u64>,
    segments: Vec<SegmentRow>,
    events: Vec<(i64, Vec<u8>)>,
}

impl Append {
    /// The rows of what is appended.
    pub fn new(session: &SessionRecord, segments: &[Segment], events: &[Event]) -> Result<Self, StoreError> {
        let event = |event: &Event| Ok((signed(event.seq)?, pack_record("event", event)?));
        Ok(Self {
            session: SessionRow::new(session)?,
            segment_ids: segments.iter().map(|segment| segment.id).collect(),
            event_numbers: events.iter().map(|event| event.seq).collect(),
            segments: segments.iter().map(SegmentRow::new).collect::<Result<_, _>>()?,
            events: events.iter().map(event).collect::<Result<_, _>>()?,
        })
    }

    /// Writes them and returns the session's key.
    pub fn run(&self, connection: &Connection) -> Result<i64, StoreError> {
        let record = &self.session.record;
        let unknown = || StoreError::UnknownSession(record.id.clone());
        let stored = read::session(connection, &record.id)?.ok_or_else(unknown)?;
        if (&stored.tenant, &stored.user) != (&record.tenant, &record.user) {
            return Err(unknown());
        }
        check::append(&stored, record, &self.segment_ids, &self.event_numbers)?;
        let key = known(connection, &record.id)?;
        self.session.update(connection, key)?;
        segments_and_events(connection, key, &self.segments, &self.events)?;
        Ok(key)
    }
}

/// The end of a round as rows.
pub struct Commit {
    append: Append,
    round: RoundRow,
    written: Vec<VersionRow>,
    removed: Vec<String>,
}

impl Commit {
    /// The rows of a commit that agrees with itself.
    pub fn new(commit: &RoundCommit) -> Result<Self, StoreError> {
        check::commit(commit)?;
        Ok(Self {
            append: Append::new(&commit.session, &commit.segments, &commit.events)?,
            round: RoundRow::new(&commit.round)?,
            written: commit.written.iter().map(VersionRow::new).collect::<Result<_, _>>()?,
            removed: commit.removed.clone(),
        })
    }

    /// Writes them.
    pub fn run(&self, connection: &Connection) -> Result<(), StoreError> {
        let session = self.append.run(connection)?;
        let number = self.round.number;
        match has_ended(connection, session, number)? {
            None => return Err(StoreError::Failed(format!("round {number} was never opened"))),
            Some(true) => return Err(StoreError::AlreadyExists(format!("round {number}"))),
            Some(false) => {}
        }
        let sql = "UPDATE rounds SET ended = ?3, record = ?4 WHERE session = ?1 AND number = ?2";
        execute(connection, sql, (session, number, self.round.ended, &self.round.record)).map_err(failed("round"))?;
        versions(connection, session, number, &self.written, &self.removed)
    }
}

/// Writes segments and events.
pub(super) fn segments_and_events(
    connection: &Connection,
    session: i64,
    segments: &[SegmentRow],
    events: &[(i64, Vec<u8>)],
) -> Result<(), StoreError> {
    let sql = format!("INSERT INTO segments (session, {SEGMENT}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
    for segment in segments {
        execute(connection, &sql, segment.values(session)).map_err(failed("segment"))?;
    }
    let sql = "INSERT INTO events (session, seq, record) VALUES (?1, ?2, ?3)";
    for (number, event) in events {
        execute(connection, sql, (session, number, event)).map_err(failed("event"))?;
    }
    Ok(())
}

/// Writes a version, and its content if it is not there.
pub(super) fn version(connection: &Connection, session: i64, written: &VersionRow) -> Result<(), StoreError> {
    let what = "variable";
    if let Some(packed) = &written.content {
        let content = "INSERT INTO contents (hash, content) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        execute(connection, content, (&written.hash, packed)).map_err(failed(what))?;
    }
    let sql = format!("INSERT INTO versions (session, {VARIABLE}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)");
    execute(connection, &sql, written.values(session)).map(drop).map_err(failed(what))
}

/// Writes what a round made of names.
pub(super) fn versions(
    connection: &Connection,
    session: i64,
    round: i64,
    written: &[VersionRow],
    removed: &[String],
) -> Result<(), StoreError> {
    let what = "variable";
    let current = "INSERT INTO variables (session, name, round) VALUES (?1, ?2, ?3)
                   ON CONFLICT DO UPDATE SET round = excluded.round";
    for written in written {
        version(connection, session, written)?;
        execute(connection, current, (session, &written.name, round)).map_err(failed(what))?;
    }
    for name in removed {
        let gone = "DELETE FROM variables WHERE session = ?1 AND name = ?2";
        if execute(connection, gone, (session, name)).map_err(failed(what))? > 0 {
            let mark = "INSERT INTO versions (session, name, round) VALUES (?1, ?2, ?3)";
            execute(connection, mark, (session, name, round)).map_err(failed(what))?;
        }
    }
    Ok(())
}

/// The key of a session that must be there.
pub(super) fn known(connection: &Connection, id: &str) -> Result<i64, StoreError> {
    find(connection, id)?.ok_or_else(|| StoreError::UnknownSession(id.to_owned()))
}

fn find(connection: &Connection, id: &str) -> Result<Option<i64>, StoreError> {
    one("session", connection, "SELECT key FROM sessions WHERE id = ?1", [id])
}

/// Whether a round's outcome is final; `None` if it was never opened.
fn has_ended(connection: &Connection, session: i64, round: i64) -> Result<Option<bool>, StoreError> {
    one("round", connection, "SELECT ended FROM rounds WHERE session = ?1 AND number = ?2", (session, round))
}

pub(super) fn one<T: rusqlite::types::FromSql>(
    what: &'static str,
    connection: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
) -> Result<Option<T>, StoreError> {
    let mut statement = connection.prepare_cached(sql).map_err(failed(what))?;
    statement.query_row(parameters, |row| row.get(0)).optional().map_err(failed(what))
}

pub(super) fn execute(
    connection: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
) -> rusqlite::Result<usize> {
    connection.prepare_cached(sql)?.execute(parameters)
}

/// `AlreadyExists` where a unique value is there already.
fn taken(name: impl Fn() -> String, what: &'static str) -> impl Fn(rusqlite::Error) -> StoreError {
    move |error| match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => StoreError::AlreadyExists(name()),
        _ => failed(what)(error),
    }
}
