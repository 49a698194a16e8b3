//! Turns that any worker may make: a stream, and a consumer group that hands each entry to one worker until it is done. An entry
//! that its worker has not been heard of for a while is handed to another one.

use std::time::Duration;

use ::redis::{FromRedisValue, Value, cmd};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Address, Link, scripts};
use crate::store::StoreError;
use crate::store::packing::corrupt;

const STREAM: &str = "fimble:turns";
const GROUP: &str = "workers";

/// Turns that are to be made later, by the time in milliseconds. In the slot of the stream.
const LATER: &str = "{fimble:turns}:later";

/// Turns whose time has come that one look moves to the stream at most.
const WAKED: usize = 16;

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

/// The stream of turns. It has a connection of its own, because taking waits.
pub struct Turns {
    link: Link,
}

impl Turns {
    /// Connects, and makes the group if there is none.
    ///
    /// # Errors
    /// `Unreachable`.
    pub async fn open(address: &Address, patience: Duration) -> Result<Self, StoreError> {
        let turns = Self { link: Link::new(address.clone(), patience)? };
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
        let mut add = cmd("XADD");
        add.arg(STREAM).arg("MAXLEN").arg("~").arg(MOST_ENTRIES).arg("*").arg("record").arg(record(request)?);
        self.link.request(&add).await.map(drop)
    }

    /// Adds a turn that is to be made at that time.
    ///
    /// # Errors
    /// `Unreachable`; then it may have been added.
    pub async fn push_at(&self, at: Timestamp, request: &TurnRequest) -> Result<(), StoreError> {
        let mut add = cmd("ZADD");
        add.arg(LATER).arg(at.as_millisecond()).arg(record(request)?);
        self.link.request(&add).await.map(drop)
    }

    /// The next turn: one whose worker has not been heard of for `abandoned`, or a new one, for which this waits so long.
    ///
    /// # Errors
    /// `Unreachable`.
    pub async fn take(
        &self,
        worker: &str,
        abandoned: Duration,
        wait: Duration,
    ) -> Result<Option<(String, TurnRequest)>, StoreError> {
        let keys = [LATER, STREAM].map(str::to_owned);
        self.link.script(&scripts::WAKE_TURNS, &keys, &[WAKED.to_string().into_bytes()]).await?;
        let mut claim = cmd("XAUTOCLAIM");
        claim.arg(STREAM).arg(GROUP).arg(worker).arg(millis(abandoned)).arg("0").arg("COUNT").arg(1);
        if let Value::Array(parts) = self.link.request(&claim).await?
            && let Some(Value::Array(entries)) = parts.into_iter().nth(1)
            && let Some(entry) = entries.into_iter().next()
        {
            return self.read(entry).await;
        }
        let mut read = cmd("XREADGROUP");
        read.arg("GROUP").arg(GROUP).arg(worker).arg("COUNT").arg(1).arg("BLOCK").arg(millis(wait));
        read.arg("STREAMS").arg(STREAM).arg(">");
        let Value::Array(streams) = self.link.request(&read).await? else { return Ok(None) };
        let Some(Value::Array(stream)) = streams.into_iter().next() else { return Ok(None) };
        let Some(Value::Array(entries)) = stream.into_iter().nth(1) else { return Ok(None) };
        match entries.into_iter().next() {
            Some(entry) => self.read(entry).await,
            None => Ok(None),
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

    /// The turn was made, or never will be.
    ///
    /// # Errors
    /// `Unreachable`.
    pub async fn done(&self, entry: &str) -> Result<(), StoreError> {
        let mut acknowledge = cmd("XACK");
        acknowledge.arg(STREAM).arg(GROUP).arg(entry);
        self.link.request(&acknowledge).await?;
        let mut remove = cmd("XDEL");
        remove.arg(STREAM).arg(entry);
        self.link.request(&remove).await.map(drop)
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
    async fn read(&self, entry: Value) -> Result<Option<(String, TurnRequest)>, StoreError> {
        let (id, fields): (String, Vec<Vec<u8>>) =
            ::redis::from_redis_value(entry).map_err(|error| corrupt("turn", error))?;
        match fields.get(1).map(|record| serde_json::from_slice(record)) {
            Some(Ok(request)) => Ok(Some((id, request))),
            _ => {
                tracing::warn!("the entry `{id}` of `{STREAM}` is no turn and was dropped");
                self.done(&id).await.map(|()| None)
            }
        }
    }
}

fn record(request: &TurnRequest) -> Result<String, StoreError> {
    serde_json::to_string(request).map_err(|error| StoreError::Failed(error.to_string()))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
