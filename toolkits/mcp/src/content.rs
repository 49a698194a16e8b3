//! What an answer consists of, as records that a program reads. It is lenient: a kind that it does not know stays as the
//! server sent it.

use serde_json::{Map, Value};

/// The text of a content that is nothing else.
pub(crate) fn text(content: &Value) -> Option<&str> {
    (content.get("type").and_then(Value::as_str) == Some("text")).then(|| content.get("text"))??.as_str()
}

/// One content as a record with `type` and, by its kind, `text`, `data` (Base64), `mime_type`, `uri`, `name` and so on,
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
        record.insert(key, value);
    }
    Value::Object(record)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn contents_become_records() {
        for (content, expected) in [
            (
                json!({"type": "image", "data": "AAAA", "mimeType": "image/png", "annotations": {"priority": 1}}),
                json!({"type": "image", "data": "AAAA", "mime_type": "image/png"}),
            ),
            (
                json!({"type": "resource", "resource": {"uri": "file:///a", "mimeType": "x/y", "blob": "AA==", "_meta": {}}}),
                json!({"type": "resource", "uri": "file:///a", "mime_type": "x/y", "data": "AA=="}),
            ),
            (
                json!({"type": "resource_link", "uri": "file:///a", "name": "a", "size": 3, "mimeType": "x/y"}),
                json!({"type": "resource_link", "uri": "file:///a", "name": "a", "size": 3, "mime_type": "x/y"}),
            ),
            (json!({"type": "resource", "resource": 3}), json!({"type": "resource"})),
            (json!({"type": "hologram", "depth": 3}), json!({"type": "hologram", "depth": 3})),
            (json!(7), json!(7)),
        ] {
            assert_eq!(record(content.clone()), expected, "{content}");
        }
    }
}
