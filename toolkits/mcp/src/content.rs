//! What an answer consists of, as records that a program reads. It is lenient: a kind that it does not know stays as the
//! server sent it.

use serde_json::{Map, Value, json};

/// The text of a content that is nothing else.
pub(crate) fn text(content: &Value) -> Option<&str> {
    (content.get("type").and_then(Value::as_str) == Some("text")).then(|| content.get("text"))??.as_str()
}

/// One content as a record with `type` and, by its kind, `text`, `data` (bytes), `mime_type`, `uri`, `name` and so on,
/// without what is meant for a host that shows it.
pub(crate) fn record(content: Value) -> Value {
    let Value::Object(mut fields) = content else { return content };
    let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    // The contents of a resource lie one level deeper, for no reason that a program knows.
    if kind == "resource"
        && let Some(Value::Object(resource)) = fields.remove("resource")
    {
        fields.extend(resource);
    }
    let mut record = Map::new();
    for (key, value) in fields {
        let key = match key.as_str() {
            "annotations" | "_meta" | "icons" => continue,
            "mimeType" => "mime_type".to_owned(),
            "blob" if kind == "resource" => "data".to_owned(),
            _ => key,
        };
        let value = if key == "data" && BINARY.contains(&&*kind) { bytes(value) } else { value };
        record.insert(key, value);
    }
    Value::Object(record)
}

/// The kinds whose `data` is Base64 by the protocol.
const BINARY: [&str; 3] = ["image", "audio", "resource"];

/// Base64 text in the form that a program reads as bytes. Everything else stays as it is.
fn bytes(value: Value) -> Value {
    match value {
        Value::String(text) if is_base64(&text) => json!({ "$": "bytes", "v": text }),
        other => other,
    }
}

/// The usual alphabet, padded.
fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_become_records() {
        for (content, expected) in [
            (
                json!({"type": "image", "data": "AAAA", "mimeType": "image/png", "annotations": {"priority": 1}}),
                json!({"type": "image", "data": {"$": "bytes", "v": "AAAA"}, "mime_type": "image/png"}),
            ),
            (
                json!({"type": "resource", "resource": {"uri": "file:///a", "mimeType": "x/y", "blob": "AA==", "_meta": {}}}),
                json!({"type": "resource", "uri": "file:///a", "mime_type": "x/y", "data": {"$": "bytes", "v": "AA=="}}),
            ),
            (json!({"type": "audio", "data": "no Base64"}), json!({"type": "audio", "data": "no Base64"})),
            (
                json!({"type": "resource_link", "uri": "file:///a", "name": "a", "size": 3, "mimeType": "x/y"}),
                json!({"type": "resource_link", "uri": "file:///a", "name": "a", "size": 3, "mime_type": "x/y"}),
            ),
            (json!({"type": "resource", "resource": 3}), json!({"type": "resource"})),
            (json!({"type": "hologram", "data": "AAAA"}), json!({"type": "hologram", "data": "AAAA"})),
            (json!(7), json!(7)),
        ] {
            assert_eq!(record(content.clone()), expected, "{content}");
        }
    }
}
