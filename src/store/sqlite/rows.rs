//! Records as rows and back. Every row is read as if a stranger had written it: what does not fit its record is
//! `Corrupt`, never a default.

use jiff::Timestamp;
use rusqlite::{ErrorCode, Row};
use serde::Serialize;
use serde::de::{DeserializeOwned, IntoDeserializer};

use crate::record::{SessionRecord, Variable, WrittenVariable};
use crate::segment::Segment;
use crate::store::StoreError;
use crate::store::packing::{corrupt, hash_bytes, hexadecimal, pack, unpack};

/// The columns that [`session`] reads, in its order.
pub const SESSION: &str = "id, tenant, user, title, status, created_at, updated_at, rounds, segments, events, turn";
/// The columns that [`segment`] reads, in its order.
pub const SEGMENT: &str = "id, round, at, kind, content, tokens, pinned";
/// The columns that [`variable`] reads, in its order.
pub const VARIABLE: &str = "name, round, hash, kind, type_name, preview, size, line, uses";

/// A session's row.
pub fn session(row: &Row<'_>) -> Result<SessionRecord, StoreError> {
    let what = "session";
    Ok(SessionRecord {
        id: get(what, row, 0)?,
        tenant: get(what, row, 1)?,
        user: get(what, row, 2)?,
        title: get(what, row, 3)?,
        status: from_word(what, row, 4)?,
        created_at: time(what, row, 5)?,
        updated_at: time(what, row, 6)?,
        rounds: number(what, row, 7)?,
        segments: number(what, row, 8)?,
        events: number(what, row, 9)?,
        turn: turn(&get::<Option<String>>(what, row, 10)?)?,
    })
}

fn turn(text: &Option<String>) -> Result<Option<serde_json::Value>, StoreError> {
    text.as_ref().map(|text| serde_json::from_str(text).map_err(|error| corrupt("turn", error))).transpose()
}

/// A segment's row.
pub fn segment(row: &Row<'_>) -> Result<Segment, StoreError> {
    let what = "segment";
    Ok(Segment {
        id: number(what, row, 0)?,
        round: number(what, row, 1)?,
        at: time(what, row, 2)?,
        kind: from_word(what, row, 3)?,
        content: unpack(what, blob(what, row, 4)?)?,
        tokens: get(what, row, 5)?,
        pinned: get(what, row, 6)?,
    })
}

/// A version's row, without its content.
pub fn variable(row: &Row<'_>) -> Result<Variable, StoreError> {
    let what = "variable";
    Ok(Variable {
        name: get(what, row, 0)?,
        round: number(what, row, 1)?,
        hash: hexadecimal(blob(what, row, 2)?),
        kind: from_word(what, row, 3)?,
        type_name: get(what, row, 4)?,
        preview: get(what, row, 5)?,
        size: number(what, row, 6)?,
        line: get(what, row, 7)?,
        references: serde_json::from_str(&get::<String>(what, row, 8)?).map_err(|error| corrupt(what, error))?,
    })
}

/// A variable's content, packed in column `index`, which must be the one that the variable's hash says.
pub fn with_content(variable: Variable, row: &Row<'_>, index: usize) -> Result<WrittenVariable, StoreError> {
    let content = unpack("variable", blob("variable", row, index)?)?;
    if crate::store::packing::content_hash(&content) != variable.hash {
        return Err(corrupt("variable", format!("the content of `{}` is not what was written", variable.name)));
    }
    Ok(WrittenVariable { variable, content })
}

/// A segment as the values of [`SEGMENT`].
pub struct SegmentRow(i64, i64, i64, String, Vec<u8>, u32, bool);

impl SegmentRow {
    /// The row of a segment.
    pub fn new(segment: &Segment) -> Result<Self, StoreError> {
        Ok(Self(
            signed(segment.id)?,
            signed(segment.round)?,
            nanoseconds(segment.at)?,
            word(&segment.kind)?,
            pack(&segment.content)?,
            segment.tokens,
            segment.pinned,
        ))
    }

    /// The values, after the session's key.
    pub fn values(&self, session: i64) -> impl rusqlite::Params {
        (session, self.0, self.1, self.2, &self.3, &self.4, self.5, self.6)
    }
}

/// A version and its content as the values of [`VARIABLE`].
pub struct VersionRow {
    /// The Python name.
    pub name: String,
    /// The content's address.
    pub hash: [u8; 32],
    /// The content, packed; `None` for one that is stored already.
    pub content: Option<Vec<u8>>,
    round: i64,
    kind: String,
    type_name: String,
    preview: String,
    size: i64,
    line: u32,
    uses: String,
}

impl VersionRow {
    /// The row of what a round wrote.
    pub fn new(written: &WrittenVariable) -> Result<Self, StoreError> {
        Ok(Self { content: Some(pack(&written.content)?), ..Self::without_content(&written.variable)? })
    }

    /// The row of a version whose content is stored already.
    pub fn without_content(variable: &Variable) -> Result<Self, StoreError> {
        Ok(Self {
            name: variable.name.clone(),
            hash: hash_bytes(&variable.hash)
                .ok_or_else(|| StoreError::Failed(format!("`{}` is no content hash", variable.hash)))?,
            content: None,
            round: signed(variable.round)?,
            kind: word(&variable.kind)?,
            type_name: variable.type_name.clone(),
            preview: variable.preview.clone(),
            size: signed(variable.size)?,
            line: variable.line,
            uses: serde_json::to_string(&variable.references)
                .map_err(|error| StoreError::Failed(format!("a variable: {error}")))?,
        })
    }

    /// The values, after the session's key.
    pub fn values(&self, session: i64) -> impl rusqlite::Params {
        (
            session,
            &self.name,
            self.round,
            &self.hash,
            &self.kind,
            &self.type_name,
            &self.preview,
            self.size,
            self.line,
            &self.uses,
        )
    }
}

/// What SQLite said about a stored `what`, for the user.
pub fn failed(what: &'static str) -> impl Fn(rusqlite::Error) -> StoreError {
    move |error| match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => corrupt(what, error),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Failed(format!(
            "another process has held the database for {} s",
            super::schema::BUSY_TIMEOUT.as_secs()
        )),
        Some(ErrorCode::DiskFull) => StoreError::Failed("the disk is full".into()),
        Some(_) => StoreError::Failed(error.to_string()),
        None => match error {
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..) => corrupt(what, error),
            error => StoreError::Failed(error.to_string()),
        },
    }
}

/// A counter as SQLite counts.
pub fn signed(number: u64) -> Result<i64, StoreError> {
    i64::try_from(number).map_err(|_| StoreError::Failed(format!("a number is too large to be stored: {number}")))
}

/// The word that serde writes for an enum without data.
pub fn word<T: Serialize>(value: &T) -> Result<String, StoreError> {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => Ok(word),
        other => Err(StoreError::Failed(format!("no word: {other:?}"))),
    }
}

/// A time in nanoseconds since 1970, which reaches from 1677 to 2262.
pub fn nanoseconds(at: Timestamp) -> Result<i64, StoreError> {
    i64::try_from(at.as_nanosecond())
        .map_err(|_| StoreError::Failed(format!("a time is too far away to be stored: {at}")))
}

/// The bytes of a column, not copied.
pub fn blob<'row>(what: &'static str, row: &'row Row<'_>, index: usize) -> Result<&'row [u8], StoreError> {
    row.get_ref(index).map_err(failed(what))?.as_blob().map_err(|error| corrupt(what, error))
}

/// A counter.
pub fn number(what: &'static str, row: &Row<'_>, index: usize) -> Result<u64, StoreError> {
    u64::try_from(get::<i64>(what, row, index)?).map_err(|error| corrupt(what, error))
}

fn get<T: rusqlite::types::FromSql>(what: &'static str, row: &Row<'_>, index: usize) -> Result<T, StoreError> {
    row.get(index).map_err(failed(what))
}

fn time(what: &'static str, row: &Row<'_>, index: usize) -> Result<Timestamp, StoreError> {
    Timestamp::from_nanosecond(get::<i64>(what, row, index)?.into()).map_err(|error| corrupt(what, error))
}

fn from_word<T: DeserializeOwned>(what: &'static str, row: &Row<'_>, index: usize) -> Result<T, StoreError> {
    let text = row.get_ref(index).map_err(failed(what))?.as_str().map_err(|error| corrupt(what, error))?;
    let deserializer: serde::de::value::StrDeserializer<'_, serde::de::value::Error> = text.into_deserializer();
    T::deserialize(deserializer).map_err(|error| corrupt(what, error))
}
