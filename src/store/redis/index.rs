//! Which sessions a user has. The index is a sorted set in another slot than the sessions, so that no script writes both; it
//! is written so that whatever happens in between leaves nothing wrong:
//!
//! - A session is in the index before it is there, and gone before it leaves the index.
//! - Its score is a time that its `updated_at` does not exceed: raised before the session is written, in steps of a minute,
//!   so that most writes need not touch it.
//! - Who lists reads the sessions themselves, from the highest score on, until no further one can be among the newest. What
//!   is not there, or is another user's, is passed over; and left out for good once its id says that it is an hour old.
//! - The index itself is kept for ever, also where sessions are not: their processes may keep them for different times.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ::redis::cmd;
use futures_util::future::try_join_all;
use jiff::Timestamp;

use super::Redis;
use super::keys;
use crate::record::SessionRecord;
use crate::store::{StoreError, family};

/// The step of scores, in milliseconds. One minute.
const STEP: i64 = 60_000;

/// How many sessions are asked for at once.
const BATCH: usize = 64;

/// How old an id must be before its entry can be told from one that is about to be written. One hour.
const SETTLED: Duration = Duration::from_secs(3_600);

/// How many scores a process remembers to have written.
const REMEMBERED: usize = 10_000;

/// The scores that this process has written.
#[derive(Default)]
pub struct Scores(Mutex<HashMap<String, i64>>);

impl Scores {
    fn has(&self, id: &str, score: i64) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).is_some_and(|written| *written >= score)
    }

    fn remember(&self, id: &str, score: i64) {
        let mut scores = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if scores.len() >= REMEMBERED {
            scores.clear();
        }
        scores.insert(id.to_owned(), score);
    }

    fn forget(&self, id: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

/// Enters a session, before it is created.
pub async fn enter(store: &Redis, session: &SessionRecord) -> Result<(), StoreError> {
    store.scores.forget(&session.id);
    raise(store, session).await
}

/// Makes sure that the score is not exceeded by `updated_at`, before a session is written.
pub async fn raise(store: &Redis, session: &SessionRecord) -> Result<(), StoreError> {
    let score = (session.updated_at.as_millisecond().div_euclid(STEP) + 1) * STEP;
    if store.scores.has(&session.id, score) {
        return Ok(());
    }
    let key = keys::of_user(&session.tenant, &session.user);
    let mut command = cmd("ZADD");
    command.arg(&key).arg("GT").arg(score).arg(&session.id);
    store.link.request(&command).await?;
    store.scores.remember(&session.id, score);
    Ok(())
}

/// Takes a session out, after it was deleted.
pub async fn leave(store: &Redis, tenant: &str, user: &str, id: &str) -> Result<(), StoreError> {
    store.scores.forget(id);
    let mut command = cmd("ZREM");
    command.arg(keys::of_user(tenant, user)).arg(id);
    store.link.request(&command).await.map(drop)
}

/// A user's sessions, most recently updated first; ids of version 7 put the younger first among equals.
pub async fn sessions(store: &Redis, tenant: &str, user: &str, limit: u32) -> Result<Vec<SessionRecord>, StoreError> {
    let limit = limit as usize;
    let mut found: Vec<SessionRecord> = Vec::new();
    for batch in entries(store, tenant, user).await?.chunks(BATCH) {
        // No further one was updated later than this.
        let highest = batch.first().map_or(i64::MIN, |(_, score)| *score);
        if found.len() == limit && found.last().is_none_or(|last| last.updated_at.as_millisecond() > highest) {
            break;
        }
        let records = try_join_all(batch.iter().map(|(id, _)| store.read_session(id))).await?;
        for ((id, score), record) in batch.iter().zip(records) {
            match record.filter(|record| record.tenant == tenant && record.user == user) {
                Some(record) => found.push(record),
                None if is_settled(id, *score) => leave(store, tenant, user, id).await?,
                None => {}
            }
        }
        found.sort_by(|one, other| (other.updated_at, &other.id).cmp(&(one.updated_at, &one.id)));
        found.truncate(limit);
    }
    Ok(found)
}

/// All entries of one moment with their scores, the highest first.
async fn entries(store: &Redis, tenant: &str, user: &str) -> Result<Vec<(String, i64)>, StoreError> {
    let mut command = cmd("ZREVRANGE");
    command.arg(keys::of_user(tenant, user)).arg(0).arg(-1).arg("WITHSCORES");
    let strange = |error: ::redis::ParsingError| StoreError::Failed(format!("the index of sessions: {error}"));
    let entries: Vec<(String, f64)> =
        ::redis::from_redis_value(store.link.request(&command).await?).map_err(strange)?;
    #[expect(clippy::cast_possible_truncation, reason = "scores are whole milliseconds")]
    Ok(entries.into_iter().map(|(id, score)| (id, score as i64)).collect())
}

/// True for an entry of a session that cannot be about to be made: its id, of version 7, is older than an hour, and so is a
/// fork's score, whose id begins as that of an old session.
fn is_settled(id: &str, score: i64) -> bool {
    let is_past = |second: i64| {
        u64::try_from(Timestamp::now().as_second().saturating_sub(second)).is_ok_and(|age| age > SETTLED.as_secs())
    };
    let Some(made) = uuid::Uuid::parse_str(family::root(id)).ok().and_then(|id| id.get_timestamp()) else {
        return false;
    };
    is_past(i64::try_from(made.to_unix().0).unwrap_or(i64::MAX))
        && (family::mark(id).is_none() || is_past(score / 1_000))
}
