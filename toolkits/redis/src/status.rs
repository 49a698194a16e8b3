//! How the server is: what it says of itself, its slow commands, its clients.

use std::collections::BTreeMap;

use fimble_toolkit::ToolError;
use jiff::Timestamp;
use redis::{Value as Reply, cmd};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Number, Value, json};

use crate::connection::Connection;
use crate::entry::text;

/// Characters of a slow command that are shown.
const COMMAND_CHARACTERS: usize = 500;

/// What the server says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Info {
    /// By lower-case section, then by name; numbers are numbers.
    pub sections: BTreeMap<String, Map<String, Value>>,
}

/// Memory.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Memory {
    /// Bytes that the server uses.
    pub used_bytes: u64,
    /// The most that it ever used.
    pub peak_bytes: u64,
    /// Bytes that the system gave it.
    pub rss_bytes: u64,
    /// Bytes that it may use; 0 is no limit.
    pub limit_bytes: u64,
    /// What happens at the limit, e.g. `noeviction` or `allkeys-lru`.
    pub policy: String,
    /// Bytes of the keys and values.
    pub dataset_bytes: u64,
    /// Memory of the system by used memory; far above 1 is waste.
    pub fragmentation_ratio: Option<f64>,
    /// Keys that were removed for lack of memory.
    pub evicted_keys: u64,
}

/// Slow commands.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Slowlog {
    /// The newest first.
    pub commands: Vec<Slow>,
    /// What was left out, and from when on a command is slow.
    pub note: Option<String>,
}

/// A slow command.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Slow {
    /// RFC 3339.
    pub time: String,
    /// Milliseconds.
    pub duration_ms: f64,
    /// With its arguments, cut by the server.
    pub command: String,
    /// Address and port.
    pub client: String,
    /// What the client calls itself.
    pub client_name: String,
}

/// Clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Clients {
    /// Those that use most memory first.
    pub clients: Vec<Connected>,
    /// What was left out.
    pub note: Option<String>,
}

/// A client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Connected {
    /// Its number.
    pub id: u64,
    /// Address and port.
    pub address: String,
    /// What it calls itself.
    pub name: String,
    /// The user.
    pub user: String,
    /// Seconds since it connected.
    pub age_s: u64,
    /// Seconds since its last command.
    pub idle_s: u64,
    /// The database.
    pub db: u64,
    /// The last command.
    pub command: String,
    /// Bytes.
    pub memory_bytes: u64,
    /// E.g. `N` (normal), `S` (replica), `M` (primary), `P` (subscriber), `b` (blocked).
    pub flags: String,
}

pub(crate) async fn info(connection: &mut Connection, section: Option<&str>) -> Result<Info, ToolError> {
    let mut command = cmd("INFO");
    if let Some(section) = section {
        command.arg(section);
    }
    let said: Vec<u8> = connection.ask(&command).await?;
    let sections = sections(&text(&said));
    match section {
        Some(section) if sections.is_empty() => Err(ToolError::not_found(format!("Redis has no section `{section}`"))
            .with_hint("info() without a section shows them all")),
        _ => Ok(Info { sections }),
    }
}

/// `# Section` and `name:value` lines.
fn sections(text: &str) -> BTreeMap<String, Map<String, Value>> {
    let mut sections: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    let mut section = "other".to_owned();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(name) = line.strip_prefix('#') {
            section = name.trim().to_lowercase();
        } else if let Some((name, value)) = line.split_once(':') {
            sections.entry(section.clone()).or_default().insert(name.to_owned(), plain_or_pairs(value));
        }
    }
    sections
}

/// `keys=1,expires=0` as a dict, which only a comma and an equals sign tell from a plain value.
fn plain_or_pairs(text: &str) -> Value {
    let pairs: Option<Map<String, Value>> =
        text.split(',').map(|pair| pair.split_once('=').map(|(name, value)| (name.to_owned(), plain(value)))).collect();
    pairs.map_or_else(|| plain(text), Value::Object)
}

fn plain(text: &str) -> Value {
    if let Ok(whole) = text.parse::<i64>() {
        return json!(whole);
    }
    let is_decimal =
        text.contains('.') && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-'));
    let number = text.parse().ok().filter(|_| is_decimal).and_then(Number::from_f64);
    number.map_or_else(|| json!(text), Value::Number)
}

pub(crate) async fn memory(connection: &mut Connection) -> Result<Memory, ToolError> {
    let (memory, stats) = (info(connection, Some("memory")).await?, info(connection, Some("stats")).await?);
    let (memory, stats) = (memory.sections.get("memory"), stats.sections.get("stats"));
    let number = |name: &str| memory.and_then(|memory| memory.get(name)?.as_u64()).unwrap_or_default();
    let field = |name: &str| memory.and_then(|memory| memory.get(name));
    Ok(Memory {
        used_bytes: number("used_memory"),
        peak_bytes: number("used_memory_peak"),
        rss_bytes: number("used_memory_rss"),
        limit_bytes: number("maxmemory"),
        policy: field("maxmemory_policy").and_then(Value::as_str).unwrap_or_default().to_owned(),
        dataset_bytes: number("used_memory_dataset"),
        fragmentation_ratio: field("mem_fragmentation_ratio").and_then(Value::as_f64),
        evicted_keys: stats.and_then(|stats| stats.get("evicted_keys")?.as_u64()).unwrap_or_default(),
    })
}

pub(crate) async fn slowlog(connection: &mut Connection, limit: usize) -> Result<Slowlog, ToolError> {
    let total: usize = connection.ask(cmd("SLOWLOG").arg("LEN")).await?;
    let entries: Vec<Reply> = connection.ask(cmd("SLOWLOG").arg("GET").arg(limit)).await?;
    let commands: Vec<Slow> = entries.iter().filter_map(slow).collect();
    let note = (total > limit).then(|| format!("only the newest {limit} of {total} commands; raise `limit`"));
    Ok(Slowlog { commands, note })
}

fn slow(entry: &Reply) -> Option<Slow> {
    let Reply::Array(fields) = entry else { return None };
    let [_, Reply::Int(second), Reply::Int(microseconds), Reply::Array(words), rest @ ..] = fields.as_slice() else {
        return None;
    };
    let words: Vec<String> = words.iter().map(reply_text).collect();
    #[expect(clippy::cast_precision_loss, reason = "microseconds of any run are exact in a double")]
    let duration_ms = *microseconds as f64 / 1000.0;
    Some(Slow {
        time: Timestamp::from_second(*second).ok()?.to_string(),
        duration_ms,
        command: words.join(" ").chars().take(COMMAND_CHARACTERS).collect(),
        client: rest.first().map(reply_text).unwrap_or_default(),
        client_name: rest.get(1).map(reply_text).unwrap_or_default(),
    })
}

fn reply_text(reply: &Reply) -> String {
    match reply {
        Reply::BulkString(bytes) => text(bytes),
        Reply::SimpleString(text) => text.clone(),
        Reply::Int(number) => number.to_string(),
        _ => String::new(),
    }
}

pub(crate) async fn clients(connection: &mut Connection, limit: usize) -> Result<Clients, ToolError> {
    let said: Vec<u8> = connection.ask(cmd("CLIENT").arg("LIST")).await?;
    let mut clients: Vec<Connected> = text(&said).lines().map(client).collect();
    clients.sort_by_key(|client| std::cmp::Reverse(client.memory_bytes));
    let total = clients.len();
    clients.truncate(limit);
    let note = (total > limit).then(|| format!("only {limit} of {total} clients; raise `limit`"));
    Ok(Clients { clients, note })
}

/// `id=3 addr=127.0.0.1:5 name= …`
fn client(line: &str) -> Connected {
    let fields: BTreeMap<&str, &str> = line.split(' ').filter_map(|field| field.split_once('=')).collect();
    let text = |name: &str| fields.get(name).copied().unwrap_or_default().to_owned();
    let number = |name: &str| fields.get(name).and_then(|value| value.parse().ok()).unwrap_or_default();
    Connected {
        id: number("id"),
        address: text("addr"),
        name: text("name"),
        user: text("user"),
        age_s: number("age"),
        idle_s: number("idle"),
        db: number("db"),
        command: text("cmd"),
        memory_bytes: number("tot-mem"),
        flags: text("flags"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_the_server_says_is_read_by_section() {
        let said = "# Server\r\nredis_version:7.0.15\r\nuptime_in_seconds:12\r\n\r\n# CPU\r\nused_cpu_sys:0.5\r\n\
                    # Keyspace\r\ndb0:keys=3,expires=1,avg_ttl=0\r\n";
        let read = serde_json::to_value(sections(said)).unwrap();
        assert_eq!(
            read,
            json!({"server": {"redis_version": "7.0.15", "uptime_in_seconds": 12}, "cpu": {"used_cpu_sys": 0.5},
                   "keyspace": {"db0": {"keys": 3, "expires": 1, "avg_ttl": 0}}})
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[#a-z0-9=:,. \\r\\n]{0,80}") {
            let _ = (sections(&text), client(&text));
        }
    }
}
