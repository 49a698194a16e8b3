//! Upkeep of a Redis store: its sessions are found by going through all keys of every primary, a piece at a time.

use std::collections::{BTreeMap, BTreeSet};

use ::redis::{Value, cmd};
use async_trait::async_trait;
use futures_util::future::try_join_all;

use super::answer::{Answer, VERSION, unexpected};
use super::{Redis, away, index, keys, read, scripts, write};
use crate::record::SessionRecord;
use crate::store::packing::{content_hash, corrupt, unpack};
use crate::store::upkeep::{Statistics, Swept, Upkeep, Version, Whole};
use crate::store::{StoreError, family};

/// Keys that a server looks at before it does something else.
const STEP: usize = 1_000;

/// Sessions that are asked for at once.
const BATCH: usize = 64;

/// The most arguments of one request: Redis refuses twice as many.
const ARGUMENTS: usize = 500_000;

/// How often a family is counted that grows meanwhile.
const TRIES: u32 = 5;

#[async_trait]
impl Upkeep for Redis {
    async fn all_sessions(&self) -> Result<Vec<SessionRecord>, StoreError> {
        records(self, &found(self).await?.sessions).await
    }

    async fn statistics(&self) -> Result<Statistics, StoreError> {
        let found = found(self).await?;
        let sessions = records(self, &found.sessions).await?;
        let mut all = Statistics {
            schema: VERSION,
            sessions: sessions.len() as u64,
            forks: sessions.iter().filter(|session| family::mark(&session.id).is_some()).count() as u64,
            oldest: sessions.iter().map(|session| session.created_at).min(),
            newest: sessions.iter().map(|session| session.updated_at).max(),
            ..Statistics::default()
        };
        for session in &sessions {
            let answer = self.read(&scripts::COUNT, &session.id, &[]).await?;
            if answer.word == "none" {
                continue;
            }
            let count = |at| answer.number("session", at);
            all.segments += count(0)?;
            all.events += count(1)?;
            all.rounds += count(2)?;
            all.calls += count(3)?;
            all.variables += count(4)?;
            all.versions += count(5)?;
            all.bytes += count(6)?;
        }
        for root in &found.families {
            let contents = clear(self, root, false).await?;
            all.contents += contents.contents;
            all.content_bytes += contents.content_bytes;
            all.shared += contents.shared;
            all.unused += contents.unused;
            all.bytes += contents.bytes;
        }
        Ok(all)
    }

    async fn sweep(&self, dry: bool) -> Result<Swept, StoreError> {
        let mut swept = Swept::default();
        for root in &found(self).await?.families {
            let family = clear(self, root, !dry).await?;
            swept.contents += family.unused;
            swept.content_bytes += family.unused_bytes;
        }
        Ok(swept)
    }

    async fn versions(&self, session: &str) -> Result<Vec<Version>, StoreError> {
        read::versions(&self.read(&scripts::VERSIONS, session, &[]).await?)
    }

    async fn content(&self, session: &str, hash: &str) -> Result<Option<String>, StoreError> {
        let what = "variable";
        let answer = self.read(&scripts::CONTENT, session, &[hash.to_owned()]).await?;
        if answer.word == "none" || matches!(answer.parts.first(), None | Some(None)) {
            return Ok(None);
        }
        let content = unpack(what, answer.bytes(what, 0)?)?;
        if content_hash(&content) == hash {
            Ok(Some(content))
        } else {
            Err(corrupt(what, format!("the content `{hash}` is not what was written")))
        }
    }

    async fn put_session(&self, whole: Whole, replace: bool) -> Result<(), StoreError> {
        let session = whole.session.clone();
        // Hashing and compressing is heavy.
        let arguments = away(move || whole.check().and_then(|()| write::put_session(&whole, replace))).await?;
        if arguments.len() > ARGUMENTS {
            let message =
                format!("session `{}` has {} entries, Redis takes {ARGUMENTS} at once", session.id, arguments.len());
            return Err(StoreError::Failed(message));
        }
        index::enter(self, &session).await?;
        let answer = self.write(&scripts::PUT_SESSION, &session.id, arguments).await?;
        match answer.word.as_str() {
            // An old session's entry may have been taken for one that was left over.
            "ok" => index::enter(self, &session).await,
            "exists" => Err(StoreError::AlreadyExists(session.id)),
            "unknown" => {
                index::leave(self, &session.tenant, &session.user, &session.id).await?;
                Err(StoreError::UnknownSession(session.id))
            }
            word => Err(unexpected(word)),
        }
    }
}

/// What there is by its keys.
struct Found {
    /// Ids of sessions.
    sessions: BTreeSet<String>,
    /// Roots of families that have contents.
    families: BTreeSet<String>,
}

async fn found(store: &Redis) -> Result<Found, StoreError> {
    let mut found = Found { sessions: BTreeSet::new(), families: BTreeSet::new() };
    for slot in primaries(store).await? {
        let mut cursor = "0".to_owned();
        loop {
            let mut scan = cmd("SCAN");
            scan.arg(&cursor).arg("MATCH").arg(keys::ALL).arg("COUNT").arg(STEP).arg("TYPE").arg("hash");
            let answer = store.link.request_of(slot, &scan).await?;
            let strange = |error| StoreError::Failed(format!("the server's list of keys: {error}"));
            let (next, keys): (String, Vec<Vec<u8>>) = ::redis::from_redis_value(answer).map_err(strange)?;
            for key in keys.iter().filter_map(|key| std::str::from_utf8(key).ok()) {
                found.sessions.extend(keys::session_of_row(key));
                found.families.extend(keys::root_of_contents(key));
            }
            if next == "0" {
                break;
            }
            cursor = next;
        }
    }
    Ok(found)
}

/// A slot of every primary.
async fn primaries(store: &Redis) -> Result<Vec<u16>, StoreError> {
    if !store.link.is_cluster() {
        return Ok(vec![0]);
    }
    let strange = || StoreError::Failed("the cluster does not say which node has which slots".into());
    let Value::Array(ranges) = store.link.request(cmd("CLUSTER").arg("SLOTS")).await? else { return Err(strange()) };
    let mut slots = BTreeMap::new();
    for range in ranges {
        // First slot, last slot, the primary as host, port and id, then its replicas.
        let Value::Array(range) = range else { return Err(strange()) };
        let [Value::Int(first), _, Value::Array(primary), ..] = range.as_slice() else { return Err(strange()) };
        let first = u16::try_from(*first).map_err(|_| strange())?;
        let name = format!("{:?}", primary.get(2).or(primary.get(1)));
        slots.entry(name).or_insert(first);
    }
    Ok(slots.into_values().collect())
}

/// The records of sessions, by id; those that went meanwhile are left out.
async fn records(store: &Redis, ids: &BTreeSet<String>) -> Result<Vec<SessionRecord>, StoreError> {
    let ids: Vec<&String> = ids.iter().collect();
    let mut records = Vec::with_capacity(ids.len());
    for batch in ids.chunks(BATCH) {
        records.extend(try_join_all(batch.iter().map(|id| store.read_session(id))).await?.into_iter().flatten());
    }
    Ok(records)
}

/// What a family shares.
struct Shared {
    contents: u64,
    content_bytes: u64,
    shared: u64,
    unused: u64,
    unused_bytes: u64,
    bytes: u64,
}

/// Counts the contents of a family, and removes those that nothing refers to if it is to `remove` them.
async fn clear(store: &Redis, root: &str, remove: bool) -> Result<Shared, StoreError> {
    let what = "content";
    for _ in 0..TRIES {
        let forks = store.link.request(cmd("HKEYS").arg(keys::of_family(root, &[]).get(10))).await?;
        let forks: Vec<String> = ::redis::from_redis_value(forks).map_err(|error| corrupt("session", error))?;
        let arguments = [VERSION.to_string(), u8::from(remove).to_string()].map(String::into_bytes);
        let answer = store.link.script(&scripts::SWEEP, &keys::of_family(root, &forks), &arguments).await?;
        let answer = Answer::read(answer)?;
        match answer.word.as_str() {
            "ok" => {
                return Ok(Shared {
                    contents: answer.number(what, 0)?,
                    content_bytes: answer.number(what, 1)?,
                    shared: answer.number(what, 2)?,
                    unused: answer.number(what, 3)?,
                    unused_bytes: answer.number(what, 4)?,
                    bytes: answer.number(what, 5)?,
                });
            }
            // It has a new fork since.
            "elsewhere" => {}
            word => return Err(unexpected(word)),
        }
    }
    Err(StoreError::Stale(root.to_owned()))
}
