//! Forks of a session, and its way back to an earlier round. Rows are copied, contents are shared. Each function runs inside a
//! transaction of its caller.

use rusqlite::Connection;

use super::rows::{VersionRow, failed, signed};
use super::write::{self, RoundRow, SessionRow, execute, known, one};
use super::{read, rows};
use crate::record::SessionRecord;
use crate::store::{Rewind, StoreError, check};

/// The segments that a fork takes over: ?1 the source, ?2 the fork, ?3 the last segment.
const SEGMENTS: &str = "INSERT INTO segments (session, id, round, at, kind, content, tokens, pinned)
    SELECT ?2, id, round, at, kind, content, tokens, pinned FROM segments WHERE session = ?1 AND id <= ?3";

/// What a fork takes over of the other tables: ?1 the source, ?2 the fork, ?3 the last round. What others refer to comes first.
const OF_ROUNDS: [(&str, &str); 4] = [
    (
        "round",
        "INSERT INTO rounds (session, number, ended, record)
         SELECT ?2, number, ended, record FROM rounds WHERE session = ?1 AND number <= ?3",
    ),
    (
        "call",
        "INSERT INTO calls (session, round, position, key, record)
         SELECT ?2, round, position, key, record FROM calls WHERE session = ?1 AND round <= ?3",
    ),
    (
        "variable",
        "INSERT INTO versions (session, name, round, hash, kind, type_name, preview, size, line, uses)
         SELECT ?2, name, round, hash, kind, type_name, preview, size, line, uses FROM versions
         WHERE session = ?1 AND round <= ?3",
    ),
    (
        "variable",
        "INSERT INTO variables (session, name, round)
         SELECT ?2, name, round FROM versions AS version
         WHERE session = ?1 AND hash IS NOT NULL AND round = (
             SELECT max(round) FROM versions WHERE session = ?1 AND name = version.name AND round <= ?3)",
    ),
];

/// A new session that is as another one was.
pub struct Fork {
    source: String,
    record: SessionRecord,
    row: SessionRow,
    last: [i64; 2],
}

impl Fork {
    /// The rows of a fork.
    pub fn new(source: &str, fork: &SessionRecord) -> Result<Self, StoreError> {
        check::fork(source, fork)?;
        let last = [signed(fork.segments)?, signed(fork.rounds)?];
        Ok(Self { source: source.to_owned(), record: fork.clone(), row: SessionRow::new(fork)?, last })
    }

    /// Writes them.
    pub fn run(&self, connection: &Connection) -> Result<(), StoreError> {
        let unknown = || StoreError::UnknownSession(self.source.clone());
        let stored = read::session(connection, &self.source)?.ok_or_else(unknown)?;
        check::fork_from(&stored, &self.record)?;
        let source = known(connection, &self.source)?;
        write::create_session(connection, &self.row)?;
        let fork = known(connection, &self.record.id)?;
        let [segments, rounds] = self.last;
        execute(connection, SEGMENTS, (source, fork, segments)).map_err(failed("segment"))?;
        for (what, sql) in OF_ROUNDS {
            execute(connection, sql, (source, fork, rounds)).map_err(failed(what))?;
        }
        Ok(())
    }
}

/// The way back as rows.
pub struct Back {
    before: SessionRecord,
    row: SessionRow,
    segments: i64,
    round: RoundRow,
    written: Vec<VersionRow>,
    removed: Vec<String>,
}

impl Back {
    /// The rows of a way back that agrees with itself.
    pub fn new(rewind: &Rewind) -> Result<Self, StoreError> {
        check::rewind(rewind)?;
        Ok(Self {
            before: rewind.before.clone(),
            row: SessionRow::new(&rewind.session)?,
            segments: rows::signed(rewind.session.segments)?,
            round: RoundRow::new(&rewind.round)?,
            written: rewind.written.iter().map(VersionRow::without_content).collect::<Result<_, _>>()?,
            removed: rewind.removed.clone(),
        })
    }

    /// Writes them.
    pub fn run(&self, connection: &Connection) -> Result<(), StoreError> {
        let id = &self.before.id;
        let stored = read::session(connection, id)?.ok_or_else(|| StoreError::UnknownSession(id.clone()))?;
        check::rewind_from(&stored, &self.before)?;
        let session = known(connection, id)?;
        // Contents are those of all sessions here: one that is none of this session's must not become so.
        let own = "SELECT 1 FROM versions WHERE session = ?1 AND hash = ?2 LIMIT 1";
        for version in &self.written {
            if one::<i64>("variable", connection, own, (session, &version.hash))?.is_none() {
                return Err(StoreError::Failed(format!("the session has no such content of `{}`", version.name)));
            }
        }
        self.row.update(connection, session)?;
        let cut = "DELETE FROM segments WHERE session = ?1 AND id > ?2";
        execute(connection, cut, (session, self.segments)).map_err(failed("segment"))?;
        let number = write::stored_round(connection, session, &self.round)?;
        write::versions(connection, session, number, &self.written, &self.removed)
    }
}
