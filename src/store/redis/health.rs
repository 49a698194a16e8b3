//! What a person wants to know of the server: whether it answers, and what it does with what it was given.

use std::fmt;
use std::time::{Duration, Instant};

use ::redis::{Value, cmd};

use super::link::{Link, OPEN};
use crate::store::StoreError;

/// How a server is, and what it promises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// How long one question took.
    pub answered_in: Duration,
    /// Its version; empty where it may not be asked.
    pub version: String,
    /// What is to be told of its settings, a sentence each without a full stop.
    pub notes: Vec<String>,
}

impl fmt::Display for Health {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = if self.version.is_empty() { "" } else { &format!("Redis {}, ", self.version) };
        write!(formatter, "{version}answers in {:.1} ms", self.answered_in.as_secs_f64() * 1_000.0)?;
        self.notes.iter().try_for_each(|note| write!(formatter, "; {note}"))
    }
}

/// Asks a server; of a cluster, all of its nodes, and tells what is so of the first. `replicas` are those that writes wait for.
pub async fn ask(link: &Link, replicas: u32) -> Result<Health, StoreError> {
    let begun = Instant::now();
    link.command(&cmd("PING"), OPEN).await?;
    let answered_in = begun.elapsed();
    // Managed servers may refuse this: then there is less to tell.
    let info = link.command(&cmd("INFO"), OPEN).await.map(all_text).unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(|value| value.trim().to_owned()).unwrap_or_default()
    };
    let mut notes = Vec::new();
    match field("aof_enabled").as_str() {
        "0" => notes.push("a crash of the server loses what it did not save yet (`appendonly no`)".to_owned()),
        "1" => notes.push("append-only file on".to_owned()),
        _ => {}
    }
    match (field("connected_slaves").parse().unwrap_or(0), replicas) {
        (0, 0) => {}
        (there, 0) => notes.push(format!(
            "replicas: {there}; a failover loses what has not reached them (`store_replicas = 1` waits for it)"
        )),
        (there, wanted) if there < wanted => {
            notes.push(format!("replicas: {there}, and every write waits for {wanted} (`store_replicas`)"));
        }
        (there, wanted) => notes.push(format!("replicas: {there}, every write waits for {wanted}")),
    }
    let policy = field("maxmemory_policy");
    if !policy.is_empty() && policy != "noeviction" {
        notes.push(format!(
            "sessions may be damaged when its memory is full (`maxmemory-policy {policy}`; use `noeviction`)"
        ));
    }
    Ok(Health { answered_in, version: field("redis_version"), notes })
}

/// The text of an answer, of all nodes of a cluster.
fn all_text(value: Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Value::VerbatimString { text, .. } => text,
        Value::Map(nodes) => nodes.into_iter().map(|(_, value)| all_text(value)).collect::<Vec<_>>().join("\n"),
        Value::Array(parts) => parts.into_iter().map(all_text).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}
