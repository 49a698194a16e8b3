//! The embedded store: one SQLite file, nothing to install, any number of processes at once.
//!
//! What is on the disk when (`synchronous=FULL` in write-ahead-log mode: one `fsync` of the log for each transaction):
//! - [`create_session`](Store::create_session), [`append`](Store::append), [`request_call`](Store::request_call),
//!   [`finish_call`](Store::finish_call), [`commit_round`](Store::commit_round), [`fork_session`](Store::fork_session),
//!   [`rewind_session`](Store::rewind_session) and [`delete_session`](Store::delete_session) return when the disk has them. Those that wait at the same time share
//!   one `fsync`.
//! - [`open_round`](Store::open_round) returns when the operating system has it (`synchronous=NORMAL`): it outlives a
//!   crash of the process at once, and a power failure from the next durable write on. Without such a write the round has
//!   done nothing that could be lost.
//!
//! The database file is created with mode 0600 and missing folders above it with 0700; an existing one keeps its mode.
//! Nothing in it is encrypted. A deleted session's bytes stay in the file's free pages until they are used again.

mod branch;
mod read;
mod rows;
mod schema;
mod thread;
mod upkeep;
mod write;

use std::path::Path;

use async_trait::async_trait;

pub use schema::{BUSY_TIMEOUT, VERSION};

use self::rows::signed;
use self::thread::{Durability, Thread};
use self::write::SessionRow;
use super::packing::pack_record;
use super::{Rewind, RoundCommit, Store, StoreError};
use crate::event::Event;
use crate::record::{CallRecord, Round, SessionRecord, Variable, WrittenVariable};
use crate::segment::Segment;

/// Contents longer than this, in bytes in all, are hashed and compressed away from the async runtime.
const HEAVY: usize = 256 * 1024;

/// A store in one SQLite file. Clones share its connections.
#[derive(Clone)]
pub struct Sqlite {
    writer: Thread,
    reader: Thread,
}

impl Sqlite {
    /// Opens the file, and creates it and its folder if they are missing. Waits up to [`BUSY_TIMEOUT`] for other processes.
    ///
    /// # Errors
    /// `Unreachable` if the file cannot be used or is another program's, `TooNew` if a newer Fimble wrote it; in both
    /// cases an existing file is left as it is.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        schema::prepare(path)?;
        Ok(Self {
            writer: Thread::start("store-writer", schema::connect(path)?)?,
            reader: Thread::start("store-reader", schema::connect(path)?)?,
        })
    }

    /// A store that ends with its last clone.
    ///
    /// # Errors
    /// `Unreachable` if there is no memory for it.
    pub fn in_memory() -> Result<Self, StoreError> {
        let only = Thread::start("store", schema::in_memory()?)?;
        Ok(Self { writer: only.clone(), reader: only })
    }
}

#[async_trait]
impl Store for Sqlite {
    async fn create_session(&self, session: &SessionRecord) -> Result<(), StoreError> {
        let session = SessionRow::new(session)?;
        self.writer.write(Durability::Machine, move |connection| write::create_session(connection, &session)).await
    }

    async fn session(&self, id: &str) -> Result<Option<SessionRecord>, StoreError> {
        let id = id.to_owned();
        self.reader.read(move |connection| read::session(connection, &id)).await
    }

    async fn sessions(&self, tenant: &str, user: &str, limit: u32) -> Result<Vec<SessionRecord>, StoreError> {
        let (tenant, user) = (tenant.to_owned(), user.to_owned());
        self.reader.read(move |connection| read::sessions(connection, &tenant, &user, limit)).await
    }

    async fn delete_session(&self, id: &str) -> Result<(), StoreError> {
        let id = id.to_owned();
        self.writer.write(Durability::Machine, move |connection| write::delete_session(connection, &id)).await
    }

    async fn append(&self, session: &SessionRecord, segments: &[Segment], events: &[Event]) -> Result<(), StoreError> {
        let append = write::Append::new(session, segments, events)?;
        self.writer.write(Durability::Machine, move |connection| append.run(connection).map(drop)).await
    }

    async fn segments(&self, session: &str, after: u64, limit: u32) -> Result<Vec<Segment>, StoreError> {
        let session = session.to_owned();
        self.reader.read(move |connection| read::segments(connection, &session, after, limit)).await
    }

    async fn events(&self, session: &str, after: u64, limit: u32) -> Result<Vec<Event>, StoreError> {
        let session = session.to_owned();
        self.reader.read(move |connection| read::events(connection, &session, after, limit)).await
    }

    async fn open_round(&self, session: &str, round: &Round) -> Result<(), StoreError> {
        let (session, round) = (session.to_owned(), write::RoundRow::new(round)?);
        self.writer.write(Durability::Process, move |connection| write::open_round(connection, &session, &round)).await
    }

    async fn request_call(&self, session: &str, round: u64, call: &CallRecord) -> Result<(), StoreError> {
        let (session, round, key) = (session.to_owned(), signed(round)?, call.key.clone());
        let record = pack_record("call", call)?;
        let request = move |connection: &_| write::request_call(connection, &session, round, &key, &record);
        self.writer.write(Durability::Machine, request).await
    }

    async fn finish_call(&self, session: &str, round: u64, call: &CallRecord) -> Result<(), StoreError> {
        let (session, round, key) = (session.to_owned(), signed(round)?, call.key.clone());
        let record = pack_record("call", call)?;
        let finish = move |connection: &_| write::finish_call(connection, &session, round, &key, &record);
        self.writer.write(Durability::Machine, finish).await
    }

    async fn commit_round(&self, commit: &RoundCommit) -> Result<(), StoreError> {
        let bytes: usize = commit.written.iter().map(|written| written.content.len()).sum();
        let commit = if bytes > HEAVY {
            let commit = commit.clone();
            tokio::task::spawn_blocking(move || write::Commit::new(&commit))
                .await
                .map_err(|error| StoreError::Failed(error.to_string()))??
        } else {
            write::Commit::new(commit)?
        };
        self.writer.write(Durability::Machine, move |connection| commit.run(connection)).await
    }

    async fn rounds(&self, session: &str, after: u64) -> Result<Vec<Round>, StoreError> {
        let session = session.to_owned();
        self.reader.read(move |connection| read::rounds(connection, &session, after)).await
    }

    async fn calls(&self, session: &str, round: u64) -> Result<Vec<CallRecord>, StoreError> {
        let session = session.to_owned();
        self.reader.read(move |connection| read::calls(connection, &session, round)).await
    }

    async fn variables(&self, session: &str) -> Result<Vec<Variable>, StoreError> {
        let session = session.to_owned();
        self.reader.read(move |connection| read::variables(connection, &session)).await
    }

    async fn variables_at(&self, session: &str, round: u64) -> Result<Vec<Variable>, StoreError> {
        let session = session.to_owned();
        self.reader.read(move |connection| read::variables_at(connection, &session, round)).await
    }

    async fn fork_session(&self, source: &str, fork: &SessionRecord) -> Result<(), StoreError> {
        let fork = branch::Fork::new(source, fork)?;
        self.writer.write(Durability::Machine, move |connection| fork.run(connection)).await
    }

    async fn rewind_session(&self, rewind: &Rewind) -> Result<(), StoreError> {
        let back = branch::Back::new(rewind)?;
        self.writer.write(Durability::Machine, move |connection| back.run(connection)).await
    }

    async fn contents(&self, session: &str, names: &[String]) -> Result<Vec<WrittenVariable>, StoreError> {
        let (session, names) = (session.to_owned(), names.to_vec());
        self.reader.read(move |connection| read::contents(connection, &session, &names)).await
    }
}
