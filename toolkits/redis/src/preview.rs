//! What changes would do, from what is there now.

use fimble_toolkit::{Call, Preview, ToolError};
use redis::cmd;
use serde_json::{Value, json};

use crate::{Changed, Redis, check_deleted, entry};

/// Elements of a collection that a preview shows.
const SHOWN: usize = 20;
/// Bytes of a value that a preview shows.
const SHOWN_BYTES: u32 = 2_000;

impl Redis {
    /// The value before and after.
    pub(crate) async fn preview_set(&self, call: &Call) -> Result<Option<Preview>, ToolError> {
        let (key, value): (String, String) = (call.argument("key")?, call.argument("value")?);
        let ttl_s: Option<u64> = call.argument("ttl_s")?;
        entry::check_ttl(ttl_s)?;
        let mut connection = self.server.connect().await?;
        let before = entry::get(&mut connection, &key, SHOWN, SHOWN_BYTES).await?;
        let before = serde_json::to_value(before).unwrap_or_default();
        let effect = json!({"before": before["value"], "after": value, "ttl_s": ttl_s});
        Ok(Some(Preview::of(effect).returning(changed(1))))
    }

    /// The time to live before and after.
    pub(crate) async fn preview_expire(&self, call: &Call) -> Result<Option<Preview>, ToolError> {
        let (key, ttl_s): (String, Option<u64>) = (call.argument("key")?, call.argument("ttl_s")?);
        entry::check_ttl(ttl_s)?;
        let before = entry::describe(&mut self.server.connect().await?, &key).await?;
        let before = serde_json::to_value(before).unwrap_or_default();
        let is_there = before["type"] != "none";
        let changes = is_there && (ttl_s.is_some() || !before["ttl_s"].is_null());
        let effect = json!({"is_there": is_there, "ttl_s": {"before": before["ttl_s"], "after": ttl_s}});
        Ok(Some(Preview::of(effect).returning(changed(u64::from(changes)))))
    }

    /// How many of the keys are there.
    pub(crate) async fn preview_delete(&self, call: &Call) -> Result<Option<Preview>, ToolError> {
        let mut keys: Vec<String> = call.argument("keys")?;
        check_deleted(&keys)?;
        keys.sort();
        keys.dedup();
        let there: u64 = self.server.connect().await?.ask(cmd("EXISTS").arg(&keys)).await?;
        Ok(Some(Preview::of(json!({"deletes": there})).returning(changed(there))))
    }
}

fn changed(changed: u64) -> Value {
    serde_json::to_value(Changed { changed }).unwrap_or_default()
}
