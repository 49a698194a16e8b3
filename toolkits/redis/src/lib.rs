//! A Redis (or Valkey) server: what is in it, how it is, and a few changes.
//!
//! Keys are found by SCAN and never by KEYS, values are read up to a limit of elements and bytes, and every request ends
//! in time; a call has a connection of its own. What it does not protect: whoever may read the server may see every value
//! in it, and an element of a collection is read whole, however large it is, unless sampling says beforehand that the
//! elements asked for are too large together.

mod connection;
mod entry;
mod preview;
mod status;

use std::fmt;

use fimble_toolkit::{Number, ToolError, toolkit};
use redis::IntoConnectionInfo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use entry::{Description, Entry, Keys};
pub use status::{Clients, Connected, Info, Memory, Slow, Slowlog};

use connection::Server;

/// The toolkit `redis_toolkit`.
#[derive(Debug, Clone)]
pub struct Redis {
    server: Server,
    config: Config,
}

/// Where the server is and how much of it is shown, `[toolkits.redis]`.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The server: `redis://[user:password@]host[:port][/db]`, `rediss://…` (TLS), or `redis+unix:///path?db=0`. Empty (the
    /// default): there is none.
    #[serde(skip_serializing)]
    pub url: String,
    /// Seconds that connecting, and each request, may take; above 0 and at most 300. Default 10.
    pub timeout_s: f64,
    /// The most that `limit` may be, 1 to 1,000,000: keys, elements, clients and so on of one result. Default 5,000.
    pub most: u32,
    /// Bytes of a string that are read, and of a collection's elements together, 1 to 1,073,741,824. Default 1,048,576.
    pub value_bytes: u32,
    /// Keys that `keys` looks at before it gives up, 1 to 1,000,000,000. Default 1,000,000.
    pub scanned_keys: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { url: String::new(), timeout_s: 10.0, most: 5_000, value_bytes: 1024 * 1024, scanned_keys: 1_000_000 }
    }
}

impl Config {
    /// The numbers in the settings, and what they may be.
    pub fn numbers(&self) -> Vec<Number> {
        vec![
            Number::above_zero("toolkits.redis.timeout_s", self.timeout_s, 300.0, "seconds"),
            Number::whole("toolkits.redis.most", self.most.into(), 1..=1_000_000, "items"),
            Number::whole("toolkits.redis.value_bytes", self.value_bytes.into(), 1..=1 << 30, "bytes"),
            Number::whole("toolkits.redis.scanned_keys", self.scanned_keys, 1..=1_000_000_000, "keys"),
        ]
    }

    /// What of the settings must not be shown: the password.
    pub fn secrets(&self) -> Vec<String> {
        let info = self.url.as_str().into_connection_info().ok();
        info.and_then(|info| info.redis_settings().password().map(str::to_owned)).into_iter().collect()
    }
}

/// Without the URL, which may hold a password.
impl fmt::Debug for Config {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Config")
            .field("timeout_s", &self.timeout_s)
            .field("most", &self.most)
            .field("value_bytes", &self.value_bytes)
            .field("scanned_keys", &self.scanned_keys)
            .finish_non_exhaustive()
    }
}

/// Keys in one `delete`.
const DELETED: usize = 1_000;

/// What a change did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Changed {
    /// Keys that were changed.
    pub changed: u64,
}

impl Redis {
    /// The toolkit for a server, which is not connected to yet.
    ///
    /// # Errors
    /// What is wrong with the settings, with a hint.
    pub fn new(config: Config) -> Result<Self, ToolError> {
        config.numbers().iter().try_for_each(Number::check)?;
        Ok(Self { server: Server::new(&config)?, config })
    }

    fn checked(&self, limit: u32) -> Result<usize, ToolError> {
        let most = self.config.most;
        if (1..=most).contains(&limit) {
            return Ok(limit as usize);
        }
        Err(ToolError::invalid_argument(format!("`limit` is from 1 to {most}, not {limit}")))
    }
}

/// A Redis server.
#[toolkit(name = "redis_toolkit")]
impl Redis {
    /// The value of a key of any type: a text, a list, a dict (hash, or member to score), stream entries; `None` if it is
    /// not there.
    #[operation(risk = "read", timeout_s = 60)]
    async fn get(
        &self,
        /// The key.
        key: String,
        /// Most elements of a collection to return.
        #[default(200)]
        limit: u32,
    ) -> Result<Entry, ToolError> {
        let limit = self.checked(limit)?;
        entry::get(&mut self.server.connect().await?, &key, limit, self.config.value_bytes).await
    }

    /// The keys of a pattern such as `user:*`, in no order.
    #[operation(risk = "read", timeout_s = 120)]
    async fn keys(
        &self,
        /// A glob: `*`, `?`, `[ab]`.
        #[default("*".to_owned())]
        pattern: String,
        /// Only of this type: `string`, `list`, `set`, `zset`, `hash` or `stream`.
        r#type: Option<String>,
        /// Most keys to return.
        #[default(200)]
        limit: u32,
    ) -> Result<Keys, ToolError> {
        let limit = self.checked(limit)?;
        let mut connection = self.server.connect().await?;
        entry::keys(&mut connection, &pattern, r#type.as_deref(), limit, self.config.scanned_keys).await
    }

    /// Type, remaining time, length and memory of a key.
    #[operation(risk = "read", timeout_s = 60)]
    async fn describe(
        &self,
        /// The key.
        key: String,
    ) -> Result<Description, ToolError> {
        entry::describe(&mut self.server.connect().await?, &key).await
    }

    /// What the server says of itself, by section, e.g. `info("replication").sections["replication"]["role"]`.
    #[operation(risk = "read", timeout_s = 60)]
    async fn info(
        &self,
        /// Only this section, e.g. `server`, `clients`, `stats`, `replication`, `persistence` or `keyspace`.
        section: Option<String>,
    ) -> Result<Info, ToolError> {
        status::info(&mut self.server.connect().await?, section.as_deref()).await
    }

    /// How much memory is used and allowed, and what happens when it is full.
    #[operation(risk = "read", timeout_s = 60)]
    async fn memory(&self) -> Result<Memory, ToolError> {
        status::memory(&mut self.server.connect().await?).await
    }

    /// The slowest commands of late, the newest first.
    #[operation(risk = "read", timeout_s = 60)]
    async fn slowlog(
        &self,
        /// Most commands to return.
        #[default(20)]
        limit: u32,
    ) -> Result<Slowlog, ToolError> {
        let limit = self.checked(limit)?;
        status::slowlog(&mut self.server.connect().await?, limit).await
    }

    /// Who is connected.
    #[operation(risk = "read", timeout_s = 60)]
    async fn clients(
        &self,
        /// Most clients to return.
        #[default(100)]
        limit: u32,
    ) -> Result<Clients, ToolError> {
        let limit = self.checked(limit)?;
        status::clients(&mut self.server.connect().await?, limit).await
    }

    /// Sets a key to a text, whatever it was.
    #[operation(risk = "write", idempotent, timeout_s = 60, preview = "preview_set")]
    async fn set(
        &self,
        /// The key.
        key: String,
        /// The text.
        value: String,
        /// Seconds until it is gone. Default: never.
        ttl_s: Option<u64>,
    ) -> Result<Changed, ToolError> {
        entry::set(&mut self.server.connect().await?, &key, &value, ttl_s).await
    }

    /// Lets a key be gone after some seconds, or never.
    #[operation(risk = "write", timeout_s = 60, preview = "preview_expire")]
    async fn expire(
        &self,
        /// The key.
        key: String,
        /// Seconds from now, at least 1. Default: never.
        ttl_s: Option<u64>,
    ) -> Result<Changed, ToolError> {
        entry::expire(&mut self.server.connect().await?, &key, ttl_s).await
    }

    /// Deletes keys.
    #[operation(risk = "destructive", idempotent, timeout_s = 60, preview = "preview_delete")]
    async fn delete(
        &self,
        /// The keys, no patterns; at most 1000.
        keys: Vec<String>,
    ) -> Result<Changed, ToolError> {
        check_deleted(&keys)?;
        entry::delete(&mut self.server.connect().await?, &keys).await
    }
}

fn check_deleted(keys: &[String]) -> Result<(), ToolError> {
    if (1..=DELETED).contains(&keys.len()) {
        return Ok(());
    }
    Err(ToolError::invalid_argument(format!("`keys` has 1 to {DELETED} keys, not {}", keys.len())))
}
