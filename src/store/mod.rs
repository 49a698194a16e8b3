//! Sessions, variables, journals and events, behind one contract.
//!
//! The store does not know the interpreter, the model or what a round means; it keeps records and their order. Every
//! implementation passes the same suite, `tests/stores.rs`.

pub mod check;
pub mod family;
pub mod packing;
pub mod redis;
pub mod sqlite;
pub mod transfer;
pub mod upkeep;

use std::time::Duration;

use async_trait::async_trait;

use crate::event::Event;
use crate::record::{CallRecord, Round, SessionRecord, Variable, WrittenVariable};
use crate::segment::Segment;

/// What every store promises.
///
/// - A write that returned `Ok` is there after a crash of this process; [`request_call`](Store::request_call) and
///   [`finish_call`](Store::finish_call) return only when the journal is durable.
/// - [`commit_round`](Store::commit_round) is atomic.
/// - Equal variable contents of a session and its forks are stored once; those of other sessions as well where one file holds
///   them all. They are there as long as a version of one of those sessions refers to them.
/// - An unknown session id reads as `None` or an empty list, and a write to it is `StoreError::UnknownSession`; so is a
///   write with another tenant or user than the session was opened with.
/// - Segments and events are appended without a gap. A write that starts from an older state than the stored one is
///   `StoreError::Stale` and leaves nothing: somebody else has written meanwhile.
/// - What a round wrote is never changed: a later round's version of a variable stands beside it.
/// - A write whose future is dropped may still happen.
#[async_trait]
pub trait Store: Send + Sync {
    /// Opens a session. `AlreadyExists` if its id is taken.
    async fn create_session(&self, session: &SessionRecord) -> Result<(), StoreError>;
    /// The session of that id.
    async fn session(&self, id: &str) -> Result<Option<SessionRecord>, StoreError>;
    /// The user's sessions, most recently updated first, at most `limit`.
    async fn sessions(&self, tenant: &str, user: &str, limit: u32) -> Result<Vec<SessionRecord>, StoreError>;
    /// Removes a session and all that belongs to it. Unknown ids are no error. `NotOwner` while somebody else has its lease.
    async fn delete_session(&self, id: &str) -> Result<(), StoreError>;
    /// Updates the session's row and appends segments and events, atomically.
    async fn append(&self, session: &SessionRecord, segments: &[Segment], events: &[Event]) -> Result<(), StoreError>;
    /// Segments with `id > after` in order, at most `limit`.
    async fn segments(&self, session: &str, after: u64, limit: u32) -> Result<Vec<Segment>, StoreError>;
    /// Events with `seq > after` in order, at most `limit`.
    async fn events(&self, session: &str, after: u64, limit: u32) -> Result<Vec<Event>, StoreError>;
    /// Stores a round that is about to run, without an outcome. The session's `rounds` becomes its number if that is
    /// higher. `AlreadyExists` if the number is taken.
    async fn open_round(&self, session: &str, round: &Round) -> Result<(), StoreError>;
    /// Journals a call before its toolkit acts. `AlreadyExists` if the key is taken; `Failed` if the round was never
    /// opened or has ended.
    async fn request_call(&self, session: &str, round: u64, call: &CallRecord) -> Result<(), StoreError>;
    /// Journals a call's end before the program sees its result. Replaces the record of the same key; `Failed` if there
    /// is none in that round. Allowed after the round has ended: the toolkit may have been slower.
    async fn finish_call(&self, session: &str, round: u64, call: &CallRecord) -> Result<(), StoreError>;
    /// Writes all that a round changed, or nothing. `AlreadyExists` if the round has ended before; a suspended one has
    /// not. `Failed` if it was never opened, or the commit contradicts itself, see [`check::commit`].
    async fn commit_round(&self, commit: &RoundCommit) -> Result<(), StoreError>;
    /// Rounds with `number > after` in order.
    async fn rounds(&self, session: &str, after: u64) -> Result<Vec<Round>, StoreError>;
    /// The calls of a round in the order they were requested.
    async fn calls(&self, session: &str, round: u64) -> Result<Vec<CallRecord>, StoreError>;
    /// The variables of a session as of its last round, by name.
    async fn variables(&self, session: &str) -> Result<Vec<Variable>, StoreError>;
    /// The variables of a session as of the end of that round, by name; after its last round they are those of now.
    async fn variables_at(&self, session: &str, round: u64) -> Result<Vec<Variable>, StoreError>;
    /// Makes `owner` the only one who may write to the session for so long, or prolongs that; false while another one is, and for
    /// an owner who slept until another one had been. From then on, writes of whoever was it before are `NotOwner`, however late
    /// they come. Only this handle and its clones write as `owner`. A store that one machine alone uses leaves this to its file locks, and says true.
    async fn take_lease(&self, _session: &str, _owner: &str, _period: Duration) -> Result<bool, StoreError> {
        Ok(true)
    }
    /// Ends what [`take_lease`](Store::take_lease) began; nothing, if it has ended.
    async fn release_lease(&self, _session: &str, _owner: &str) -> Result<(), StoreError> {
        Ok(())
    }
    /// Counts the session among those of its user that are at work, for so long, or prolongs that; false if `most` others are.
    /// One that is counted stays so. A store that one machine alone uses leaves this to its file locks, and says true.
    async fn take_place(&self, _session: &SessionRecord, _most: u32, _period: Duration) -> Result<bool, StoreError> {
        Ok(true)
    }
    /// Ends what [`take_place`](Store::take_place) began; nothing, if it has ended.
    async fn release_place(&self, _session: &SessionRecord) -> Result<(), StoreError> {
        Ok(())
    }
    /// Stores a new session that is as `source` was after its round `fork.rounds`: that round and those before it with their
    /// calls, the variables as they were then, and the first `fork.segments` segments. Contents are shared, not copied;
    /// events are not taken over. `AlreadyExists` if the id is taken, `Failed` if it is none of the source's family, see
    /// [`family`], `Stale` if the source has fewer rounds or segments.
    async fn fork_session(&self, source: &str, fork: &SessionRecord) -> Result<(), StoreError>;
    /// Takes a session back, or does nothing: cuts its segments, and stores a round that has ended and makes earlier contents
    /// those of now. What was between stays as it was. `Stale` unless the session is as `before` says; `Failed` if a
    /// content is none of the session's, or the order contradicts itself, see [`check::rewind`].
    async fn rewind_session(&self, rewind: &Rewind) -> Result<(), StoreError>;
    /// The contents of some of the session's variables, in the order of `names`; names that are not there are absent
    /// from the answer.
    async fn contents(&self, session: &str, names: &[String]) -> Result<Vec<WrittenVariable>, StoreError>;
}

/// All that the end of a round changes; written in one transaction or not at all.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundCommit {
    /// The session as it is after the round, its counters included.
    pub session: SessionRecord,
    /// The round with its outcome.
    pub round: Round,
    /// What it wrote; nothing if it is suspended.
    pub written: Vec<WrittenVariable>,
    /// The names it removed; those that are not there are no error.
    pub removed: Vec<String>,
    /// Segments not stored yet.
    pub segments: Vec<Segment>,
    /// Events not stored yet.
    pub events: Vec<Event>,
}

/// The way back to an earlier round, which is itself a round.
#[derive(Debug, Clone, PartialEq)]
pub struct Rewind {
    /// The session as it was read.
    pub before: SessionRecord,
    /// The session as it is afterwards: with fewer segments, and one round more.
    pub session: SessionRecord,
    /// That round, with its outcome.
    pub round: Round,
    /// Versions of that round whose contents an earlier one has written.
    pub written: Vec<Variable>,
    /// The names it removes; those that are not there are no error.
    pub removed: Vec<String>,
}

/// Why the store could not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such session. Says nothing about other users' sessions.
    #[error("there is no session `{0}`")]
    UnknownSession(String),
    /// The id or key is taken.
    #[error("`{0}` is already stored")]
    AlreadyExists(String),
    /// The session was written by somebody else since it was read; nothing was written.
    #[error("session `{0}` was changed by another process meanwhile")]
    Stale(String),
    /// Another process owns the session now; nothing was written.
    #[error("session `{0}` is in the hands of another process")]
    NotOwner(String),
    /// The file or server cannot be opened.
    #[error("the store cannot be opened: {message}")]
    Unreachable {
        /// What the store said.
        message: String,
        /// What to do.
        hint: String,
    },
    /// It was written by a newer Fimble; nothing was touched.
    #[error("the store has schema version {found}, this Fimble reads up to {supported}")]
    TooNew {
        /// The version found.
        found: u32,
        /// The newest version this program reads.
        supported: u32,
    },
    /// A stored row cannot be read.
    #[error("a stored {what} cannot be read: {message}")]
    Corrupt {
        /// What it was.
        what: &'static str,
        /// What was wrong.
        message: String,
    },
    /// Anything else the store said.
    #[error("the store failed: {0}")]
    Failed(String),
}

impl StoreError {
    /// What the user can do, if there is something.
    pub fn hint(&self) -> Option<&str> {
        match self {
            StoreError::Unreachable { hint, .. } => Some(hint),
            StoreError::TooNew { .. } => Some("upgrade Fimble, or name another store with `store = …`"),
            StoreError::UnknownSession(_) => Some("`fimble sessions list` shows the sessions there are"),
            StoreError::NotOwner(_) => Some("wait for it, or start a new session"),
            StoreError::Stale(_) => Some("open the session again; one process at a time can go on with it"),
            StoreError::Corrupt { .. } => Some("delete the session, or put back a copy of the store from before"),
            StoreError::AlreadyExists(_) | StoreError::Failed(_) => None,
        }
    }
}
