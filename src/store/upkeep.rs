//! What the owner of a store does with all of it, whoever the sessions belong to: count, clear, and carry it elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use super::packing::{content_hash, hash_bytes};
use super::{Store, StoreError};
use crate::event::Event;
use crate::record::{CallRecord, Round, SessionRecord, Variable};
use crate::segment::Segment;

/// The longest id of a session that is taken in from outside, in bytes.
const ID_LIMIT: usize = 128;

/// Upkeep of a store; every store passes the same suite, `tests/stores/upkeep.rs`.
#[async_trait]
pub trait Upkeep: Store {
    /// The records of all sessions, by id.
    async fn all_sessions(&self) -> Result<Vec<SessionRecord>, StoreError>;
    /// How much there is.
    async fn statistics(&self) -> Result<Statistics, StoreError>;
    /// Removes the contents that no version refers to and gives the space of what was deleted back; with `dry`, only says what
    /// it would remove. Other processes may go on meanwhile.
    async fn sweep(&self, dry: bool) -> Result<Swept, StoreError>;
    /// What every round of a session made of every name, by round and name.
    async fn versions(&self, session: &str) -> Result<Vec<Version>, StoreError>;
    /// A content that one of the session's versions refers to; `None` if there is none of that hash.
    async fn content(&self, session: &str, hash: &str) -> Result<Option<String>, StoreError>;
    /// Stores a whole session, or nothing. `AlreadyExists` if its id is taken; with `replace`, what is there of it is removed,
    /// if it is of the same tenant and user, and `UnknownSession` if not. `Failed` if it contradicts itself, see
    /// [`Whole::check`].
    async fn put_session(&self, whole: Whole, replace: bool) -> Result<(), StoreError>;
}

/// How much a store holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The schema version.
    pub schema: u32,
    /// Sessions, forks among them.
    pub sessions: u64,
    /// Sessions that began as a fork.
    pub forks: u64,
    /// Segments of conversations.
    pub segments: u64,
    /// Rounds.
    pub rounds: u64,
    /// Journaled calls.
    pub calls: u64,
    /// Events.
    pub events: u64,
    /// Variables as of now.
    pub variables: u64,
    /// Versions of variables, those of now among them.
    pub versions: u64,
    /// Contents of variables.
    pub contents: u64,
    /// Their bytes, as they are stored.
    pub content_bytes: u64,
    /// Contents that several versions refer to.
    pub shared: u64,
    /// Contents that no version refers to.
    pub unused: u64,
    /// Bytes of the file, or of the server's memory that our keys take; 0 if the server does not say.
    pub bytes: u64,
    /// Bytes of the file that nothing uses.
    pub free_bytes: u64,
    /// When the oldest session was opened.
    pub oldest: Option<Timestamp>,
    /// When something was last stored.
    pub newest: Option<Timestamp>,
}

/// What was cleared away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Contents that nothing referred to.
    pub contents: u64,
    /// Their bytes, as they were stored.
    pub content_bytes: u64,
    /// Bytes that the file became shorter by.
    pub file_bytes: u64,
}

/// What a round made of a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    /// The name.
    pub name: String,
    /// The round.
    pub round: u64,
    /// What it wrote; `None` if it removed the name.
    pub variable: Option<Variable>,
}

/// A session with all that belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Whole {
    /// The session.
    pub session: SessionRecord,
    /// Its segments in order.
    pub segments: Vec<Segment>,
    /// Its events in order.
    pub events: Vec<Event>,
    /// Its rounds in order.
    pub rounds: Vec<Round>,
    /// Its calls, each with its round: in the order of rounds, and as they were requested.
    pub calls: Vec<(u64, CallRecord)>,
    /// Its versions by round and name.
    pub versions: Vec<Version>,
    /// The contents that they refer to, by hash. Left empty by [`read`].
    pub contents: BTreeMap<String, Arc<str>>,
}

/// How often a session is read that others write to meanwhile, before it is given up.
const TRIES: u32 = 5;

/// Reads a session as it was at one moment, without contents; `None` if there is none.
///
/// # Errors
/// Those of the store; `Stale` if others write to it all the time.
pub async fn read(store: &dyn Upkeep, id: &str) -> Result<Option<Whole>, StoreError> {
    for _ in 0..TRIES {
        let Some(session) = store.session(id).await? else { return Ok(None) };
        let segments = store.segments(id, 0, u32::MAX).await?;
        let events = store.events(id, 0, u32::MAX).await?;
        let rounds = store.rounds(id, 0).await?;
        let mut calls = Vec::new();
        for round in &rounds {
            calls.extend(store.calls(id, round.number).await?.into_iter().map(|call| (round.number, call)));
        }
        let versions = store.versions(id).await?;
        let whole = Whole { session, segments, events, rounds, calls, versions, contents: BTreeMap::new() };
        // Between two equal records nothing was written that they count, and the rest has the same version of it all.
        if store.session(id).await?.as_ref() == Some(&whole.session) && whole.counts().is_ok() {
            return Ok(Some(whole));
        }
    }
    Err(StoreError::Stale(id.to_owned()))
}

impl Whole {
    /// Whether it agrees with itself: what is counted is there in order, every call and version has its round, none is there
    /// twice, every content is what its hash says.
    ///
    /// # Errors
    /// `Failed`, which names what does not fit.
    pub fn check(&self) -> Result<(), StoreError> {
        let refuse = |message: String| Err(StoreError::Failed(message));
        let id = &self.session.id;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        // An id names keys and files.
        if id.is_empty() || id.len() > ID_LIMIT || id.starts_with('.') || !id.bytes().all(is_plain) {
            return refuse(format!("`{id}` is no id of a session: letters, digits, `-`, `_` and `.` are"));
        }
        self.counts()?;
        let numbers: BTreeSet<u64> = self.rounds.iter().map(|round| round.number).collect();
        let mut keys = BTreeSet::new();
        let mut last = 0;
        for (round, call) in &self.calls {
            if !numbers.contains(round) || *round < last {
                return refuse(format!("call `{}` is not in the order of rounds: {round}", call.key));
            }
            if !keys.insert(&call.key) {
                return refuse(format!("call `{}` is there twice", call.key));
            }
            last = *round;
        }
        let place = |version: &Version| (version.round, version.name.clone());
        if let Some(pair) = self.versions.windows(2).find(|pair| place(&pair[0]) >= place(&pair[1])) {
            return refuse(format!("the versions of `{}` are not in order", pair[1].name));
        }
        let hash_is_true =
            |hash: &String| self.contents.get(hash).is_some_and(|content| content_hash(content) == *hash);
        if let Some(hash) = self.contents.keys().find(|hash| !hash_is_true(hash)) {
            return refuse(format!("the content `{hash}` is not what its hash says"));
        }
        for Version { name, round, variable } in &self.versions {
            if !numbers.contains(round) {
                return refuse(format!("`{name}` is of round {round}, which is not there"));
            }
            let Some(variable) = variable else { continue };
            if variable.name != *name || variable.round != *round || hash_bytes(&variable.hash).is_none() {
                return refuse(format!("the version of `{name}` of round {round} says something else itself"));
            }
            let size = self.contents.get(&variable.hash).map(|content| content.len() as u64);
            if size != Some(variable.size) {
                return refuse(format!("the content of `{name}` of round {round} is not there, or of another size"));
            }
        }
        Ok(())
    }

    /// Whether segments, events and rounds are those that the session counts.
    fn counts(&self) -> Result<(), StoreError> {
        let refuse = |what: &str, count: u64, found: usize| {
            Err(StoreError::Failed(format!("the session counts {count} {what}s and has {found} in order")))
        };
        let in_order = |numbers: Vec<u64>| numbers.into_iter().zip(1..).take_while(|(one, other)| one == other).count();
        let segments = in_order(self.segments.iter().map(|segment| segment.id).collect());
        if segments != self.segments.len() || segments as u64 != self.session.segments {
            return refuse("segment", self.session.segments, segments);
        }
        let events = in_order(self.events.iter().map(|event| event.seq).collect());
        if events != self.events.len() || events as u64 != self.session.events {
            return refuse("event", self.session.events, events);
        }
        let rises = self.rounds.windows(2).all(|pair| pair[0].number < pair[1].number);
        let first = self.rounds.first().map_or(1, |round| round.number);
        let last = self.rounds.last().map_or(0, |round| round.number);
        if !rises || first == 0 || last > self.session.rounds {
            return refuse("round", self.session.rounds, self.rounds.len());
        }
        Ok(())
    }

    /// The last version of each name that is not removed.
    pub fn variables(&self) -> BTreeMap<&str, u64> {
        let mut variables = BTreeMap::new();
        for version in &self.versions {
            match version.variable {
                Some(_) => variables.insert(version.name.as_str(), version.round),
                None => variables.remove(version.name.as_str()),
            };
        }
        variables
    }
}
