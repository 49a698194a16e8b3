//! Turns that any worker may make: a stream, and a consumer group that hands each entry to one worker until it is done. An entry
//! that its worker has not been heard of for a while is handed to another one. Those of one session are made one after the other,
//! in the order of the stream: whoever ends one goes on with the next.

use std::time::Duration;

use ::redis::{FromRedisValue, Value, cmd};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::answer::{Answer, unexpected};
use super::scripts::Script;
use super::{Address, Link, Settings, scripts};
use crate::store::StoreError;
use crate::store::packing::corrupt;

const STREAM: &str = "fimble:turns";
const GROUP: &str = "workers";

/// Turns that are to be made later, by the time in milliseconds. In the slot of the stream.
const LATER: &str = "{fimble:turns}:later";

/// The entries by session, see `scripts/turns.lua`. In the slot of the stream.
const ORDER: &str = "{fimble:turns}:order";

/// Turns whose time has come that one look moves to the stream at most.
const WAKED: usize = 16;

/// Entries that wait for another one of their session that one look passes over at most.
const PASSED_OVER: usize = 16;

/// Entries that are kept at most. An older one that nobody took is lost: nobody works.
const MOST_ENTRIES: usize = 100_000;

/// A turn that some worker is to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnRequest {
    /// Unique; the id of the turn.
    pub id: String,
    /// The session's id.
    pub session: String,
    /// On whose behalf.
    pub tenant: String,
    /// On whose behalf.
    pub user: String,
    /// What is to be done.
    pub kind: TurnKind,
}

/// What a worker is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TurnKind {
    /// Answer a message.
    Message {
        /// The message.
        text: String,
    },
    /// Go on with what was cut off or waits.
    Resume,
}

/// The stream of turns. It has connections of its own: on that by which turns are taken, nothing else is answered meanwhile.
pub struct Turns {
    link: Link,
    taking: Link,
}

impl Turns {
    /// Connects, and makes the group if there is none.
    ///
    /// # Errors
    /// `Unreachable`.
    pub async fn open(address: &Address, settings: &Settings) -> Result<Self, StoreError> {
        let turns = Self { link: Link::new(address.clone(), settings)?, taking: Link::new(address.clone(), settings)? };
        let mut make = cmd("XGROUP");
        make.arg("CREATE").arg(STREAM).arg(GROUP).arg("0").arg("MKSTREAM");
        match turns.link.request(&make).await {
            Ok(_) => Ok(turns),
            Err(StoreError::Failed(message)) if message.contains("BUSYGROUP") => Ok(turns),
            Err(error) => Err(error),
        }
    }

    /// Adds a turn to be made.
    ///
    /// # Errors
    /// `Unreachable`; then it may have been added.
    pub async fn push(&self, request: &TurnRequest) -> Result<(), StoreError> {
        let arguments = [record(request)?, MOST_ENTRIES.to_string()];
        self.ask(&self.link, &scripts::ADD_TURN, arguments).await.map(drop)
    }

    /// Adds a turn that is to be made at that time.
    ///
    /// # Errors
    /// `Unreachable`; then it may have been added.
    pub async fn push_at(&self, at: Timestamp, request: &TurnRequest) -> Result<(), StoreError> {
        let arguments = [record(request)?, MOST_ENTRIES.to_string(), at.as_millisecond().to_string()];
        self.ask(&self.link, &scripts::ADD_TURN, arguments).await.map(drop)
    }

    /// The next turn: one whose worker has not been heard of for `abandoned`, or a new one, for which this waits so long. It is
    /// none that has to wait for another one of its session; whoever ends that goes on with it, see [`end`](Self::end).
    ///
    /// # Errors
    /// `Unreachable`.
    pub async fn take(
        &self,
        worker: &str,
        abandoned: Duration,
        wait: Duration,
    ) -> Result<Option<(String, TurnRequest)>, StoreError> {
        let most = [WAKED, PASSED_OVER, MOST_ENTRIES].map(|most| most.to_string());
        let arguments = [GROUP.to_owned(), worker.to_owned(), millis(abandoned).to_string()];
        let answer = self.ask(&self.taking, &scripts::TAKE_TURN, arguments.into_iter().chain(most)).await?;
        if let Some((entry, record)) = taken(&answer)? {
            return self.read(worker, entry, &record).await;
        }
        let mut read = cmd("XREADGROUP");
        read.arg("GROUP").arg(GROUP).arg(worker).arg("COUNT").arg(1).arg("BLOCK").arg(millis(wait));
        read.arg("STREAMS").arg(STREAM).arg(">");
        let Value::Array(streams) = self.taking.request(&read).await? else { return Ok(None) };
        let Some(Value::Array(stream)) = streams.into_iter().next() else { return Ok(None) };
        let Some(Value::Array(entries)) = stream.into_iter().nth(1) else { return Ok(None) };
        let Some(entry) = entries.into_iter().next() else { return Ok(None) };
        let (entry, fields): (String, Vec<Vec<u8>>) =
            ::redis::from_redis_value(entry).map_err(|error| corrupt("turn", error))?;
        let arguments = [GROUP.to_owned(), worker.to_owned(), entry.clone()];
        match self.ask(&self.taking, &scripts::BEGIN_TURN, arguments).await?.word.as_str() {
            "ok" => self.read(worker, entry, fields.get(1).map(Vec::as_slice).unwrap_or_default()).await,
            _ => Ok(None),
        }
    }

    /// Says that the worker is still at it.
    ///
    /// # Errors
    /// `Unreachable`.
    pub async fn keep(&self, worker: &str, entry: &str) -> Result<(), StoreError> {
        let mut claim = cmd("XCLAIM");
        claim.arg(STREAM).arg(GROUP).arg(worker).arg(0).arg(entry).arg("JUSTID");
        self.link.request(&claim).await.map(drop)
    }

    /// Leaves the entry for whoever comes for it after `after`; a worker takes what it has not heard of for `abandoned`.
    ///
    /// # Errors
    /// `Unreachable`.
    pub async fn put_off(
        &self,
        worker: &str,
        entry: &str,
        abandoned: Duration,
        after: Duration,
    ) -> Result<(), StoreError> {
        let mut claim = cmd("XCLAIM");
        claim.arg(STREAM).arg(GROUP).arg(worker).arg(0).arg(entry);
        claim.arg("IDLE").arg(millis(abandoned.saturating_sub(after))).arg("JUSTID");
        self.link.request(&claim).await.map(drop)
    }

    /// The turn was made, or never will be. The session's next one if some worker has had it and had to leave it: it is this
    /// worker's now.
    ///
    /// # Errors
    /// `Unreachable`.
    pub async fn end(
        &self,
        worker: &str,
        entry: &str,
        session: &str,
    ) -> Result<Option<(String, TurnRequest)>, StoreError> {
        let arguments = [GROUP, worker, entry, session].map(str::to_owned);
        match taken(&self.ask(&self.link, &scripts::END_TURN, arguments).await?)? {
            Some((entry, record)) => Box::pin(self.read(worker, entry, &record)).await,
            None => Ok(None),
        }
    }

    /// How many turns wait or are made now.
    ///
    /// # Errors
    /// `Unreachable`.
    pub async fn length(&self) -> Result<u64, StoreError> {
        let mut length = cmd("XLEN");
        length.arg(STREAM);
        u64::from_redis_value(self.link.request(&length).await?).map_err(|error| corrupt("turn", error))
    }

    /// An entry as it came. One that is no turn is taken off, so that it does not come again and again.
    async fn read(
        &self,
        worker: &str,
        entry: String,
        record: &[u8],
    ) -> Result<Option<(String, TurnRequest)>, StoreError> {
        if let Ok(request) = serde_json::from_slice(record) {
            return Ok(Some((entry, request)));
        }
        tracing::warn!("the entry `{entry}` of `{STREAM}` is no turn and was dropped");
        let session = serde_json::from_slice::<serde_json::Value>(record).ok();
        let session = session.as_ref().and_then(|record| record.get("session")?.as_str()).unwrap_or_default();
        self.end(worker, &entry, session).await
    }

    async fn ask(
        &self,
        link: &Link,
        script: &Script,
        arguments: impl IntoIterator<Item = String>,
    ) -> Result<Answer, StoreError> {
        let arguments: Vec<Vec<u8>> = arguments.into_iter().map(String::into_bytes).collect();
        Answer::read(link.write(script, &[STREAM, ORDER, LATER].map(str::to_owned), &arguments).await?)
    }
}

/// The entry that a script answers, and its record.
fn taken(answer: &Answer) -> Result<Option<(String, Vec<u8>)>, StoreError> {
    match answer.word.as_str() {
        "ok" => Ok(Some((answer.text("turn", 0)?, answer.bytes("turn", 1)?.to_vec()))),
        "none" => Ok(None),
        word => Err(unexpected(word)),
    }
}

fn record(request: &TurnRequest) -> Result<String, StoreError> {
    serde_json::to_string(request).map_err(|error| StoreError::Failed(error.to_string()))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
