//! Upkeep of a file: counting, clearing, and whole sessions at once.

use std::collections::BTreeSet;

use async_trait::async_trait;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::read::all;
use super::rows::{self, SESSION, SegmentRow, VARIABLE, VersionRow, failed, signed};
use super::thread::Durability;
use super::write::{self, RoundRow, SessionRow, execute, known};
use super::{Sqlite, VERSION, read};
use crate::event::Event;
use crate::record::{CallRecord, SessionRecord, WrittenVariable};
use crate::store::packing::{content_hash, corrupt, hash_bytes, pack_record, unpack};
use crate::store::upkeep::{Statistics, Swept, Upkeep, Version, Whole};
use crate::store::{StoreError, family};

/// How much there is, in the order of [`statistics`].
const COUNTS: &str = "SELECT
    (SELECT count(*) FROM sessions), (SELECT count(*) FROM segments), (SELECT count(*) FROM rounds),
    (SELECT count(*) FROM calls), (SELECT count(*) FROM events), (SELECT count(*) FROM variables),
    (SELECT count(hash) FROM versions), (SELECT count(*) FROM contents),
    (SELECT coalesce(sum(length(content)), 0) FROM contents),
    (SELECT count(*) FROM (SELECT 1 FROM versions WHERE hash IS NOT NULL GROUP BY hash HAVING count(*) > 1)),
    (SELECT count(*) FROM contents WHERE NOT EXISTS (SELECT 1 FROM versions WHERE hash = contents.hash)),
    (SELECT page_count * page_size FROM pragma_page_count, pragma_page_size),
    (SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size)";

/// Contents that no version refers to.
const UNUSED: &str = "FROM contents WHERE NOT EXISTS (SELECT 1 FROM versions WHERE hash = contents.hash)";

#[async_trait]
impl Upkeep for Sqlite {
    async fn all_sessions(&self) -> Result<Vec<SessionRecord>, StoreError> {
        self.reader.read(all_sessions).await
    }

    async fn statistics(&self) -> Result<Statistics, StoreError> {
        self.reader.read(statistics).await
    }

    async fn sweep(&self, dry: bool) -> Result<Swept, StoreError> {
        let swept = if dry {
            self.reader.read(unused).await?
        } else {
            let sweep = |connection: &Connection| {
                let swept = unused(connection)?;
                execute(connection, &format!("DELETE {UNUSED}"), ()).map_err(failed("content"))?;
                Ok(swept)
            };
            self.writer.write(Durability::Machine, sweep).await?
        };
        let file_bytes =
            self.reader.read(move |connection| if dry { free_bytes(connection) } else { shrink(connection) });
        Ok(Swept { file_bytes: file_bytes.await?, ..swept })
    }

    async fn versions(&self, session: &str) -> Result<Vec<Version>, StoreError> {
        let session = session.to_owned();
        self.reader.read(move |connection| versions(connection, &session)).await
    }

    async fn content(&self, session: &str, hash: &str) -> Result<Option<String>, StoreError> {
        let (session, hash) = (session.to_owned(), hash.to_owned());
        self.reader.read(move |connection| content(connection, &session, &hash)).await
    }

    async fn put_session(&self, whole: Whole, replace: bool) -> Result<(), StoreError> {
        // Hashing and compressing is heavy.
        let rows = tokio::task::spawn_blocking(move || Rows::new(&whole)).await;
        let rows = rows.map_err(|error| StoreError::Failed(error.to_string()))??;
        self.writer.write(Durability::Machine, move |connection| rows.run(connection, replace)).await
    }
}

fn all_sessions(connection: &Connection) -> Result<Vec<SessionRecord>, StoreError> {
    all("session", connection, &format!("SELECT {SESSION} FROM sessions ORDER BY id"), (), rows::session)
}

fn statistics(connection: &Connection) -> Result<Statistics, StoreError> {
    let what = "session";
    // One state for all, while other processes write.
    let transaction = connection.unchecked_transaction().map_err(failed(what))?;
    let counts: [i64; 13] = connection
        .query_row(COUNTS, (), |row| {
            let mut counts = [0; 13];
            (0..).zip(&mut counts).try_for_each(|(at, count)| row.get(at).map(|found| *count = found))?;
            Ok(counts)
        })
        .map_err(failed(what))?;
    let sessions = all_sessions(connection)?;
    transaction.finish().map_err(failed(what))?;
    let [
        count,
        segments,
        rounds,
        calls,
        events,
        variables,
        versions,
        contents,
        content_bytes,
        shared,
        unused,
        bytes,
        free,
    ] = counts.map(|count| u64::try_from(count).unwrap_or_default());
    Ok(Statistics {
        schema: VERSION,
        sessions: count,
        forks: sessions.iter().filter(|session| family::mark(&session.id).is_some()).count() as u64,
        segments,
        rounds,
        calls,
        events,
        variables,
        versions,
        contents,
        content_bytes,
        shared,
        unused,
        bytes,
        free_bytes: free,
        oldest: sessions.iter().map(|session| session.created_at).min(),
        newest: sessions.iter().map(|session| session.updated_at).max(),
    })
}

fn unused(connection: &Connection) -> Result<Swept, StoreError> {
    let sql = format!("SELECT count(*), coalesce(sum(length(content)), 0) {UNUSED}");
    let counts = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
    let (contents, bytes) = connection.query_row(&sql, (), counts).map_err(failed("content"))?;
    let counted = |number| u64::try_from(number).unwrap_or_default();
    Ok(Swept { contents: counted(contents), content_bytes: counted(bytes), file_bytes: 0 })
}

fn free_bytes(connection: &Connection) -> Result<u64, StoreError> {
    pragma(connection, "SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size")
}

/// Writes the file anew without its free pages, if it has any. Not within a transaction.
fn shrink(connection: &Connection) -> Result<u64, StoreError> {
    const SIZE: &str = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
    if free_bytes(connection)? == 0 {
        return Ok(0);
    }
    let before = pragma(connection, SIZE)?;
    // What is in the log shrinks the file only when it is moved there; who still reads the old state keeps it from that.
    connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)").map_err(failed("page"))?;
    Ok(before.saturating_sub(pragma(connection, SIZE)?))
}

fn pragma(connection: &Connection, sql: &str) -> Result<u64, StoreError> {
    let number: i64 = connection.query_row(sql, (), |row| row.get(0)).map_err(failed("page"))?;
    Ok(u64::try_from(number).unwrap_or_default())
}

fn versions(connection: &Connection, session: &str) -> Result<Vec<Version>, StoreError> {
    let what = "variable";
    let sql = format!(
        "SELECT {VARIABLE} FROM versions WHERE session = (SELECT key FROM sessions WHERE id = ?1) ORDER BY round, name"
    );
    all(what, connection, &sql, [session], |row| {
        let name = row.get(0).map_err(failed(what))?;
        let round = rows::number(what, row, 1)?;
        let removed = row.get_ref(2).map_err(failed(what))? == ValueRef::Null;
        let variable = if removed { None } else { Some(rows::variable(row)?) };
        Ok(Version { name, round, variable })
    })
}

fn content(connection: &Connection, session: &str, hash: &str) -> Result<Option<String>, StoreError> {
    let what = "variable";
    let Some(bytes) = hash_bytes(hash) else { return Ok(None) };
    let sql = "SELECT content FROM contents WHERE hash = ?2 AND EXISTS (
                   SELECT 1 FROM versions WHERE hash = ?2 AND session = (SELECT key FROM sessions WHERE id = ?1))";
    let found = all(what, connection, sql, (session, bytes), |row| unpack(what, rows::blob(what, row, 0)?))?.pop();
    match found {
        Some(content) if content_hash(&content) != hash => {
            Err(corrupt(what, format!("the content `{hash}` is not what was written")))
        }
        found => Ok(found),
    }
}

/// A whole session as rows.
struct Rows {
    record: SessionRecord,
    row: SessionRow,
    segments: Vec<SegmentRow>,
    events: Vec<(i64, Vec<u8>)>,
    rounds: Vec<RoundRow>,
    calls: Vec<(i64, String, Vec<u8>)>,
    versions: Vec<VersionRow>,
    removed: Vec<(String, i64)>,
    variables: Vec<(String, i64)>,
}

impl Rows {
    fn new(whole: &Whole) -> Result<Self, StoreError> {
        whole.check()?;
        let mut seen = BTreeSet::new();
        let mut version = |version: &Version| {
            let variable = version.variable.as_ref()?;
            // A content is packed with the first version that has it.
            Some(match whole.contents.get(&variable.hash).filter(|_| seen.insert(variable.hash.clone())) {
                Some(content) => {
                    VersionRow::new(&WrittenVariable { variable: variable.clone(), content: content.to_string() })
                }
                None => VersionRow::without_content(variable),
            })
        };
        let call =
            |(round, call): &(u64, CallRecord)| Ok((signed(*round)?, call.key.clone(), pack_record("call", call)?));
        let event = |event: &Event| Ok((signed(event.seq)?, pack_record("event", event)?));
        let removed = whole.versions.iter().filter(|version| version.variable.is_none());
        Ok(Self {
            record: whole.session.clone(),
            row: SessionRow::new(&whole.session)?,
            segments: whole.segments.iter().map(SegmentRow::new).collect::<Result<_, _>>()?,
            events: whole.events.iter().map(event).collect::<Result<_, StoreError>>()?,
            rounds: whole.rounds.iter().map(RoundRow::new).collect::<Result<_, _>>()?,
            calls: whole.calls.iter().map(call).collect::<Result<_, StoreError>>()?,
            versions: whole.versions.iter().filter_map(&mut version).collect::<Result<_, _>>()?,
            removed: removed
                .map(|version| Ok((version.name.clone(), signed(version.round)?)))
                .collect::<Result<_, StoreError>>()?,
            variables: whole
                .variables()
                .into_iter()
                .map(|(name, round)| Ok((name.to_owned(), signed(round)?)))
                .collect::<Result<_, StoreError>>()?,
        })
    }

    fn run(&self, connection: &Connection, replace: bool) -> Result<(), StoreError> {
        let record = &self.record;
        match read::session(connection, &record.id)? {
            Some(_) if !replace => return Err(StoreError::AlreadyExists(record.id.clone())),
            Some(stored) if (&stored.tenant, &stored.user) != (&record.tenant, &record.user) => {
                return Err(StoreError::UnknownSession(record.id.clone()));
            }
            Some(_) => write::delete_session(connection, &record.id)?,
            None => {}
        }
        write::create_session(connection, &self.row)?;
        let session = known(connection, &record.id)?;
        write::segments_and_events(connection, session, &self.segments, &self.events)?;
        for round in &self.rounds {
            write::stored_round(connection, session, round)?;
        }
        let (mut last, mut position) = (0, 0);
        for (round, key, call) in &self.calls {
            position = if *round == last { position + 1 } else { 1 };
            last = *round;
            let sql = "INSERT INTO calls (session, round, position, key, record) VALUES (?1, ?2, ?3, ?4, ?5)";
            execute(connection, sql, (session, round, position, key, call)).map_err(failed("call"))?;
        }
        for version in &self.versions {
            write::version(connection, session, version)?;
        }
        for (name, round) in &self.removed {
            let sql = "INSERT INTO versions (session, name, round) VALUES (?1, ?2, ?3)";
            execute(connection, sql, (session, name, round)).map_err(failed("variable"))?;
        }
        for (name, round) in &self.variables {
            let sql = "INSERT INTO variables (session, name, round) VALUES (?1, ?2, ?3)";
            execute(connection, sql, (session, name, round)).map_err(failed("variable"))?;
        }
        Ok(())
    }
}
