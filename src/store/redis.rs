//! The shared store: Redis 6.2 or newer, Valkey, a Redis Cluster, or a server that sentinels know. Any number of processes on
//! any number of machines.
//!
//! What a write promises:
//! - Each is one script in the slot of its session: all of it happens or nothing, and nothing comes between its check and its
//!   change. A connection that is cut leaves the old state or the new one. A write whose answer was lost is asked again with
//!   the same mark, and happens once.
//! - When a write returned, the *server* has it. What a crash of the server leaves is its own setting: with `appendonly yes` and
//!   `appendfsync always` every acknowledged write, with `everysec` all but the last second. A failover to a replica
//!   loses what had not reached it: with [`Settings::replicas`] a write returns when so many have it. [`Redis::health`] says
//!   how the server is set.
//! - Memory must not be reclaimed from the store: `maxmemory-policy noeviction`, which is Redis's default.
//!
//! Equal contents of one session and its forks are stored once; those of other sessions lie in different slots of a cluster, and
//! are stored once for each. Keys begin with `fimble:`, see `redis/keys.rs`; nothing in them is encrypted.

mod address;
mod answer;
mod branch;
mod health;
mod index;
mod keys;
mod link;
mod read;
mod scripts;
mod turns;
mod upkeep;
mod write;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

pub use self::address::{Address, is_address};
pub use self::answer::VERSION;
use self::answer::{Answer, newer, unexpected};
pub use self::health::Health;
use self::index::Scores;
use self::link::{Link, OPEN};
use self::read::PAGE;
use self::scripts::Script;
pub use self::turns::{TurnKind, TurnRequest, Turns};
use self::write::Arguments;
use super::packing::corrupt;
use super::{Rewind, RoundCommit, Store, StoreError};
use crate::event::Event;
use crate::record::{CallRecord, Round, SessionRecord, Variable, WrittenVariable};
use crate::segment::Segment;

/// Contents longer than this, in bytes in all, are hashed and compressed away from the async runtime.
const HEAVY: usize = 256 * 1024;

/// The most bytes that one write may have, packed: below what Redis takes in one request. 512 MiB.
const WRITE_LIMIT: usize = 512 * 1024 * 1024;

/// How a Redis store is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How long a session is kept after its last write. Default: for ever.
    pub keep: Option<Duration>,
    /// How long a request goes on being tried while the server does not answer; 1 s more for every 4 MiB that are sent, and
    /// at most ten minutes. Opening tries for 3 s at most. Default 15 s.
    pub patience: Duration,
    /// How many replicas must have a write before it returns. Default 0: a failover may lose the last writes.
    pub replicas: u32,
    /// How long one attempt waits for them. Default 1 s.
    pub replicas_wait: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        let (patience, replicas_wait) = (Duration::from_secs(15), Duration::from_secs(1));
        Self { keep: None, patience, replicas: 0, replicas_wait }
    }
}

/// What a handle knows of a session that is its own.
struct Lease {
    owner: String,
    /// Larger than those of all owners before.
    number: u64,
}

/// A store in Redis. Clones share its connection.
#[derive(Clone)]
pub struct Redis {
    link: Arc<Link>,
    scores: Arc<Scores>,
    /// The leases that this handle has, by session.
    leases: Arc<Mutex<HashMap<String, Lease>>>,
    settings: Settings,
}

impl Redis {
    /// Connects, and marks an empty database as ours. Goes on trying for 3 s.
    ///
    /// # Errors
    /// `Unreachable` if nobody answers or lets this program in, `TooNew` if a newer Fimble has written there; then nothing was
    /// touched.
    pub async fn open(address: &Address, settings: Settings) -> Result<Self, StoreError> {
        let link = Link::new(address.clone(), &settings)?;
        let patience = OPEN.min(settings.patience);
        let schema = |name: &str| {
            let mut command = ::redis::cmd(name);
            command.arg(keys::SCHEMA);
            command
        };
        let found = match text(link.command(&schema("GET"), patience).await?)? {
            Some(found) => found,
            None => {
                link.command(schema("SETNX").arg(VERSION), patience).await?;
                text(link.command(&schema("GET"), patience).await?)?.unwrap_or_default()
            }
        };
        match found.parse::<u32>() {
            Ok(version) if version <= VERSION => {}
            _ => return Err(newer(&found)),
        }
        Ok(Self { link: Arc::new(link), scores: Arc::default(), leases: Arc::default(), settings })
    }

    /// How many requests this store has sent, each one network round trip.
    pub fn requests(&self) -> u64 {
        self.link.requests()
    }

    /// How the server is, and what it promises.
    ///
    /// # Errors
    /// `Unreachable`.
    pub async fn health(&self) -> Result<Health, StoreError> {
        health::ask(&self.link, self.settings.replicas).await
    }

    async fn write(&self, script: &Script, session: &str, arguments: Arguments) -> Result<Answer, StoreError> {
        self.write_keys(script, session, &keys::of_write(session), arguments).await
    }

    async fn write_keys(
        &self,
        script: &Script,
        session: &str,
        keys: &[String],
        arguments: Arguments,
    ) -> Result<Answer, StoreError> {
        let size: usize = arguments.iter().map(Vec::len).sum();
        if size > WRITE_LIMIT {
            return Err(StoreError::Failed(format!("a write of {size} bytes is over the limit: {WRITE_LIMIT}")));
        }
        let lease = self.leases().get(session).map(|lease| lease.number);
        let mut all = write::begin(self.settings.keep, self.link.patience_for(size), lease);
        all.extend(arguments);
        let answer = Answer::read(self.link.write(script, keys, &all).await?)?;
        if answer.word == "fenced" { Err(StoreError::NotOwner(session.to_owned())) } else { Ok(answer) }
    }

    fn leases(&self) -> MutexGuard<'_, HashMap<String, Lease>> {
        // Nothing in here panics half-way; a poisoned lock guards sound data.
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget_lease(&self, session: &str, owner: &str) {
        let mut leases = self.leases();
        if leases.get(session).is_some_and(|lease| lease.owner == owner) {
            leases.remove(session);
        }
    }

    async fn read(&self, script: &Script, session: &str, arguments: &[String]) -> Result<Answer, StoreError> {
        let mut all = vec![VERSION.to_string().into_bytes()];
        all.extend(arguments.iter().map(|argument| argument.clone().into_bytes()));
        let answer = Answer::read(self.link.script(script, &keys::of_session(session), &all).await?)?;
        match answer.word.as_str() {
            "ok" | "none" => Ok(answer),
            word => Err(unexpected(word)),
        }
    }

    async fn read_session(&self, id: &str) -> Result<Option<SessionRecord>, StoreError> {
        read::session(id, &self.read(&scripts::SESSION, id, &[]).await?)
    }
}

#[async_trait]
impl Store for Redis {
    async fn create_session(&self, session: &SessionRecord) -> Result<(), StoreError> {
        let arguments = write::create_session(session)?;
        index::enter(self, session).await?;
        match self.write(&scripts::CREATE_SESSION, &session.id, arguments).await?.word.as_str() {
            "ok" => Ok(()),
            "exists" => Err(StoreError::AlreadyExists(session.id.clone())),
            word => Err(unexpected(word)),
        }
    }

    async fn session(&self, id: &str) -> Result<Option<SessionRecord>, StoreError> {
        self.read_session(id).await
    }

    async fn sessions(&self, tenant: &str, user: &str, limit: u32) -> Result<Vec<SessionRecord>, StoreError> {
        index::sessions(self, tenant, user, limit).await
    }

    async fn delete_session(&self, id: &str) -> Result<(), StoreError> {
        let lease = self.leases().get(id).map(|lease| lease.number.to_string());
        let arguments = [VERSION.to_string(), lease.unwrap_or_default()].map(String::into_bytes);
        let answer = self.link.write(&scripts::DELETE_SESSION, &keys::of_lease(id), &arguments).await?;
        let answer = Answer::read(answer)?;
        match (answer.word.as_str(), answer.parts.is_empty()) {
            ("fenced", _) => Err(StoreError::NotOwner(id.to_owned())),
            ("ok", true) => Ok(()),
            ("ok", false) => index::leave(self, &answer.text("session", 0)?, &answer.text("session", 1)?, id).await,
            (word, _) => Err(unexpected(word)),
        }
    }

    async fn append(&self, session: &SessionRecord, segments: &[Segment], events: &[Event]) -> Result<(), StoreError> {
        let arguments = write::append(session, segments, events)?;
        index::raise(self, session).await?;
        let answer = self.write(&scripts::APPEND, &session.id, arguments).await?;
        write::appended(&answer, session, segments, events)
    }

    async fn segments(&self, session: &str, after: u64, limit: u32) -> Result<Vec<Segment>, StoreError> {
        let mut segments: Vec<Segment> = Vec::new();
        loop {
            let wanted = PAGE.min(limit as usize - segments.len());
            let first = after.saturating_add(segments.len() as u64);
            if wanted == 0 {
                return Ok(segments);
            }
            // Redis counts places in 63 bits.
            let page =
                [first, first.saturating_add(wanted as u64 - 1)].map(|place| place.min(i64::MAX as u64).to_string());
            let answer = self.read(&scripts::SEGMENTS, session, &page).await?;
            segments.extend(read::segments(first.saturating_add(1), &answer)?);
            if answer.parts.len() < wanted {
                return Ok(segments);
            }
        }
    }

    async fn events(&self, session: &str, after: u64, limit: u32) -> Result<Vec<Event>, StoreError> {
        let (mut events, mut after): (Vec<Event>, _) = (Vec::new(), after);
        loop {
            let wanted = PAGE.min(limit as usize - events.len());
            let Some(first) = after.checked_add(1).filter(|_| wanted > 0) else { return Ok(events) };
            let answer = self.read(&scripts::EVENTS, session, &[first.to_string(), wanted.to_string()]).await?;
            let page = read::numbered("event", &answer, |event: &Event| event.seq)?;
            let is_last = page.len() < wanted;
            after = page.last().map_or(after, |event| event.seq);
            events.extend(page);
            if is_last {
                return Ok(events);
            }
        }
    }

    async fn open_round(&self, session: &str, round: &Round) -> Result<(), StoreError> {
        let arguments = write::open_round(round)?;
        match self.write(&scripts::OPEN_ROUND, session, arguments).await?.word.as_str() {
            "ok" => Ok(()),
            "unknown" => Err(StoreError::UnknownSession(session.to_owned())),
            "exists" => Err(StoreError::AlreadyExists(format!("round {}", round.number))),
            word => Err(unexpected(word)),
        }
    }

    async fn request_call(&self, session: &str, round: u64, call: &CallRecord) -> Result<(), StoreError> {
        let arguments = write::call(round, call)?;
        match self.write(&scripts::REQUEST_CALL, session, arguments).await?.word.as_str() {
            "ok" => Ok(()),
            "unknown" => Err(StoreError::UnknownSession(session.to_owned())),
            "unopened" => Err(StoreError::Failed(format!("round {round} was never opened"))),
            "ended" => Err(StoreError::Failed(format!("round {round} has ended and takes no more calls"))),
            "exists" => Err(StoreError::AlreadyExists(call.key.clone())),
            word => Err(unexpected(word)),
        }
    }

    async fn finish_call(&self, session: &str, round: u64, call: &CallRecord) -> Result<(), StoreError> {
        let arguments = write::call(round, call)?;
        match self.write(&scripts::FINISH_CALL, session, arguments).await?.word.as_str() {
            "ok" => Ok(()),
            "unknown" => Err(StoreError::UnknownSession(session.to_owned())),
            "unrequested" => {
                Err(StoreError::Failed(format!("call `{}` was never requested in round {round}", call.key)))
            }
            word => Err(unexpected(word)),
        }
    }

    async fn commit_round(&self, commit: &RoundCommit) -> Result<(), StoreError> {
        let bytes: usize = commit.written.iter().map(|written| written.content.len()).sum();
        let arguments = if bytes > HEAVY {
            let commit = commit.clone();
            away(move || write::commit_round(&commit)).await?
        } else {
            write::commit_round(commit)?
        };
        index::raise(self, &commit.session).await?;
        let (session, number) = (&commit.session, commit.round.number);
        let answer = self.write(&scripts::COMMIT_ROUND, &session.id, arguments).await?;
        match answer.word.as_str() {
            "unopened" => Err(StoreError::Failed(format!("round {number} was never opened"))),
            "ended" => Err(StoreError::AlreadyExists(format!("round {number}"))),
            _ => write::appended(&answer, session, &commit.segments, &commit.events),
        }
    }

    async fn rounds(&self, session: &str, after: u64) -> Result<Vec<Round>, StoreError> {
        let (mut rounds, mut after): (Vec<Round>, _) = (Vec::new(), after);
        loop {
            let answer = self.read(&scripts::ROUNDS, session, &[after.to_string(), PAGE.to_string()]).await?;
            let page = read::numbered("round", &answer, |round: &Round| round.number)?;
            let is_last = page.len() < PAGE;
            after = page.last().map_or(after, |round| round.number);
            rounds.extend(page);
            if is_last {
                return Ok(rounds);
            }
        }
    }

    async fn calls(&self, session: &str, round: u64) -> Result<Vec<CallRecord>, StoreError> {
        read::calls(&self.read(&scripts::CALLS, session, &[round.to_string()]).await?)
    }

    async fn variables(&self, session: &str) -> Result<Vec<Variable>, StoreError> {
        read::variables(&self.read(&scripts::VARIABLES, session, &[]).await?)
    }

    async fn variables_at(&self, session: &str, round: u64) -> Result<Vec<Variable>, StoreError> {
        read::variables(&self.read(&scripts::VARIABLES_AT, session, &[round.to_string()]).await?)
    }

    async fn take_lease(&self, session: &str, owner: &str, period: Duration) -> Result<bool, StoreError> {
        let is_own = |lease: &&Lease| lease.owner == owner;
        let known = self.leases().get(session).filter(is_own).map(|lease| lease.number.to_string());
        let period = period.as_millis().max(1).to_string();
        let arguments = [VERSION.to_string(), owner.to_owned(), period, known.unwrap_or_default()];
        let arguments = arguments.map(String::into_bytes);
        let answer = self.link.write(&scripts::TAKE_LEASE, &keys::of_lease(session), &arguments).await?;
        let answer = Answer::read(answer)?;
        match answer.word.as_str() {
            "ok" => {
                let lease = Lease { owner: owner.to_owned(), number: answer.number("session", 0)? };
                self.leases().insert(session.to_owned(), lease);
                Ok(true)
            }
            "held" => {
                self.forget_lease(session, owner);
                Ok(false)
            }
            "unknown" => Err(StoreError::UnknownSession(session.to_owned())),
            word => Err(unexpected(word)),
        }
    }

    async fn release_lease(&self, session: &str, owner: &str) -> Result<(), StoreError> {
        let arguments = [VERSION.to_string(), owner.to_owned()].map(String::into_bytes);
        self.link.write(&scripts::RELEASE_LEASE, &keys::of_lease(session), &arguments).await?;
        self.forget_lease(session, owner);
        Ok(())
    }

    async fn take_place(&self, session: &SessionRecord, most: u32, period: Duration) -> Result<bool, StoreError> {
        let arguments = [session.id.clone(), most.to_string(), period.as_millis().max(1).to_string()];
        let (keys, arguments) = ([keys::of_places(&session.tenant, &session.user)], arguments.map(String::into_bytes));
        match Answer::read(self.link.script(&scripts::TAKE_PLACE, &keys, &arguments).await?)?.word.as_str() {
            "ok" => Ok(true),
            "full" => Ok(false),
            word => Err(unexpected(word)),
        }
    }

    async fn release_place(&self, session: &SessionRecord) -> Result<(), StoreError> {
        let mut remove = ::redis::cmd("ZREM");
        remove.arg(keys::of_places(&session.tenant, &session.user)).arg(&session.id);
        self.link.command(&remove, self.settings.patience).await.map(drop)
    }

    async fn fork_session(&self, source: &str, fork: &SessionRecord) -> Result<(), StoreError> {
        branch::fork(self, source, fork).await
    }

    async fn rewind_session(&self, rewind: &Rewind) -> Result<(), StoreError> {
        branch::rewind(self, rewind).await
    }

    async fn contents(&self, session: &str, names: &[String]) -> Result<Vec<WrittenVariable>, StoreError> {
        let answer = self.read(&scripts::CONTENTS, session, names).await?;
        if answer.parts.iter().flatten().map(Vec::len).sum::<usize>() > HEAVY {
            return away(move || read::contents(&answer)).await;
        }
        read::contents(&answer)
    }
}

/// Does heavy work away from the async runtime.
async fn away<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| StoreError::Failed(error.to_string()))?
}

/// A text, or nothing.
fn text(value: ::redis::Value) -> Result<Option<String>, StoreError> {
    ::redis::from_redis_value(value).map_err(|error| corrupt("schema version", error))
}
