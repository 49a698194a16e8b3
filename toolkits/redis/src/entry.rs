//! Keys and what they hold, read up to a limit.

use fimble_toolkit::ToolError;
use redis::cmd;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::Changed;
use crate::connection::Connection;

/// Keys that the server looks at for one SCAN.
const STEP: u64 = 1_000;

/// Names and values of a stream's entry.
type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// A key's value.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Entry {
    /// `None` if the key is not there.
    pub value: Value,
    /// `string`, `list`, `set`, `zset`, `hash`, `stream`, or `none`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Bytes of a string, elements of a collection.
    pub length: u64,
    /// Seconds until it is gone; none if it stays.
    pub ttl_s: Option<f64>,
    /// What was left out.
    pub note: Option<String>,
}

/// Keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Keys {
    /// In no order.
    pub keys: Vec<String>,
    /// What was left out.
    pub note: Option<String>,
}

/// What a key is.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Description {
    /// `string`, `list`, `set`, `zset`, `hash`, `stream`, or `none` if it is not there.
    #[serde(rename = "type")]
    pub kind: String,
    /// Seconds until it is gone; none if it stays.
    pub ttl_s: Option<f64>,
    /// Bytes of a string, elements of a collection.
    pub length: u64,
    /// How it is stored, e.g. `listpack`.
    pub encoding: Option<String>,
    /// Bytes with all that belongs to it, estimated for large collections.
    pub memory_bytes: Option<u64>,
}

pub(crate) async fn describe(connection: &mut Connection, key: &str) -> Result<Description, ToolError> {
    let kind: String = connection.ask(cmd("TYPE").arg(key)).await?;
    Ok(Description {
        ttl_s: ttl(connection, key).await?,
        length: length(connection, key, &kind).await?,
        encoding: connection.ask(cmd("OBJECT").arg("ENCODING").arg(key)).await?,
        memory_bytes: connection.ask(cmd("MEMORY").arg("USAGE").arg(key)).await?,
        kind,
    })
}

pub(crate) async fn get(connection: &mut Connection, key: &str, limit: usize, bytes: u32) -> Result<Entry, ToolError> {
    let kind: String = connection.ask(cmd("TYPE").arg(key)).await?;
    let length = length(connection, key, &kind).await?;
    let ttl_s = ttl(connection, key).await?;
    if kind != "string" && kind != "none" {
        refuse_large(connection, key, length, limit, bytes).await?;
    }
    let value = match kind.as_str() {
        "string" => {
            let read: Vec<u8> = connection.ask(cmd("GETRANGE").arg(key).arg(0).arg(i64::from(bytes) - 1)).await?;
            json!(text(&read))
        }
        "list" => {
            let items: Vec<Vec<u8>> = connection.ask(cmd("LRANGE").arg(key).arg(0).arg(limit - 1)).await?;
            items.iter().map(|item| text(item)).collect()
        }
        "zset" => {
            let command = cmd("ZRANGE").arg(key).arg(0).arg(limit - 1).arg("WITHSCORES").to_owned();
            let members: Vec<(Vec<u8>, f64)> = connection.ask(&command).await?;
            members.into_iter().map(|(member, score)| (text(&member), score_value(score))).collect::<Map<_, _>>().into()
        }
        "hash" => {
            let fields = scan(connection, "HSCAN", key, limit * 2).await?;
            let pairs = fields
                .chunks_exact(2)
                .take(limit)
                .filter_map(|pair| Some((text(pair.first()?), json!(text(pair.get(1)?)))));
            pairs.collect::<Map<_, _>>().into()
        }
        "set" => scan(connection, "SSCAN", key, limit).await?.iter().take(limit).map(|item| text(item)).collect(),
        "stream" => {
            let command = cmd("XREVRANGE").arg(key).arg("+").arg("-").arg("COUNT").arg(limit).to_owned();
            let entries: Vec<(String, Fields)> = connection.ask(&command).await?;
            let fields = |fields: Fields| -> Map<String, Value> {
                fields.into_iter().map(|(name, value)| (text(&name), json!(text(&value)))).collect()
            };
            entries.into_iter().map(|(id, read)| json!({"id": id, "fields": fields(read)})).collect()
        }
        "none" => Value::Null,
        other => {
            let message = format!("`{key}` is of the type {other}, whose values this toolkit does not read");
            return Err(ToolError::failed(message).with_hint("describe() tells what can be told"));
        }
    };
    let note = match kind.as_str() {
        "string" if length > u64::from(bytes) => Some(format!("only the first {bytes} of {length} bytes")),
        "string" | "none" => None,
        "stream" if length > limit as u64 => {
            Some(format!("only the newest {limit} of {length} entries, the newest first"))
        }
        _ if length > limit as u64 => Some(format!("only {limit} of {length} elements; raise `limit`")),
        _ => None,
    };
    Ok(Entry { value, kind, length, ttl_s, note })
}

/// Elements are read whole, so those asked for must not be too large together, as far as sampling tells.
async fn refuse_large(
    connection: &mut Connection,
    key: &str,
    length: u64,
    limit: usize,
    bytes: u32,
) -> Result<(), ToolError> {
    let memory: Option<u64> = connection.ask(cmd("MEMORY").arg("USAGE").arg(key)).await?;
    let each = memory.unwrap_or_default() / length.max(1);
    let asked = each.saturating_mul(length.min(limit as u64));
    // What an element takes beside its own bytes is some dozens of bytes; that must not count against many small ones.
    if asked <= u64::from(bytes) + 100 * limit as u64 {
        return Ok(());
    }
    let message =
        format!("the elements of `{key}` take about {each} bytes each, {asked} bytes together; {bytes} are allowed");
    let fits = u64::from(bytes) / each.max(1);
    Err(ToolError::failed(message).with_hint(match fits {
        0 => "no element of it can be read here; describe() tells its size".to_owned(),
        fits => format!("read fewer, limit={fits} or less"),
    }))
}

pub(crate) async fn keys(
    connection: &mut Connection,
    pattern: &str,
    kind: Option<&str>,
    limit: usize,
    most: u64,
) -> Result<Keys, ToolError> {
    let command = |cursor: &str| {
        let mut command = cmd("SCAN");
        command.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(STEP);
        if let Some(kind) = kind {
            command.arg("TYPE").arg(kind);
        }
        command
    };
    let mut found = std::collections::BTreeSet::new();
    let (mut cursor, mut looked_at) = ("0".to_owned(), 0);
    loop {
        let (next, keys): (String, Vec<Vec<u8>>) = connection.ask(&command(&cursor)).await?;
        // SCAN may give a key twice.
        found.extend(keys.iter().map(|key| text(key)));
        looked_at += STEP;
        let is_end = next == "0";
        let note = if found.len() > limit {
            Some(format!("only {limit} keys; there are more: use a narrower pattern"))
        } else if !is_end && looked_at >= most {
            Some(format!("stopped after about {looked_at} keys of the server were looked at; there may be more"))
        } else {
            None
        };
        if is_end || note.is_some() {
            return Ok(Keys { keys: found.into_iter().take(limit).collect(), note });
        }
        cursor = next;
    }
}

pub(crate) async fn set(
    connection: &mut Connection,
    key: &str,
    value: &str,
    ttl_s: Option<u64>,
) -> Result<Changed, ToolError> {
    let mut command = cmd("SET");
    command.arg(key).arg(value);
    if let Some(seconds) = ttl_s {
        command.arg("EX").arg(checked(seconds)?);
    }
    connection.ask::<()>(&command).await?;
    Ok(Changed { changed: 1 })
}

pub(crate) async fn expire(connection: &mut Connection, key: &str, ttl_s: Option<u64>) -> Result<Changed, ToolError> {
    let command = match ttl_s {
        Some(seconds) => cmd("EXPIRE").arg(key).arg(checked(seconds)?).to_owned(),
        None => cmd("PERSIST").arg(key).to_owned(),
    };
    Ok(Changed { changed: connection.ask(&command).await? })
}

pub(crate) async fn delete(connection: &mut Connection, keys: &[String]) -> Result<Changed, ToolError> {
    Ok(Changed { changed: connection.ask(cmd("UNLINK").arg(keys)).await? })
}

/// Refuses a time that cannot be set.
pub(crate) fn check_ttl(seconds: Option<u64>) -> Result<(), ToolError> {
    seconds.map_or(Ok(()), |seconds| checked(seconds).map(drop))
}

/// The server takes 0 as an order to delete.
fn checked(seconds: u64) -> Result<u64, ToolError> {
    if seconds == 0 {
        return Err(ToolError::invalid_argument("`ttl_s` is at least 1").with_hint("delete([key]) deletes a key"));
    }
    Ok(seconds)
}

/// At least `count` items, unless there are fewer.
async fn scan(connection: &mut Connection, name: &str, key: &str, count: usize) -> Result<Vec<Vec<u8>>, ToolError> {
    let (mut cursor, mut items) = ("0".to_owned(), Vec::new());
    loop {
        let command = cmd(name).arg(key).arg(&cursor).arg("COUNT").arg(count).to_owned();
        let (next, mut read): (String, Vec<Vec<u8>>) = connection.ask(&command).await?;
        items.append(&mut read);
        if next == "0" || items.len() >= count {
            return Ok(items);
        }
        cursor = next;
    }
}

async fn ttl(connection: &mut Connection, key: &str) -> Result<Option<f64>, ToolError> {
    let milliseconds: i64 = connection.ask(cmd("PTTL").arg(key)).await?;
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of thousands of years are exact in a double")]
    Ok((milliseconds >= 0).then_some(milliseconds as f64 / 1000.0))
}

async fn length(connection: &mut Connection, key: &str, kind: &str) -> Result<u64, ToolError> {
    let name = match kind {
        "string" => "STRLEN",
        "list" => "LLEN",
        "set" => "SCARD",
        "zset" => "ZCARD",
        "hash" => "HLEN",
        "stream" => "XLEN",
        _ => return Ok(0),
    };
    connection.ask(&cmd(name).arg(key).to_owned()).await
}

/// Bytes as text; what is no UTF-8 reads as U+FFFD.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A score; infinity is a text.
fn score_value(score: f64) -> Value {
    if score.is_finite() { json!(score) } else { json!(score.to_string()) }
}
