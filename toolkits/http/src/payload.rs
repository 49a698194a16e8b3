//! A response's body as a program gets it: JSON, text, or nothing.

use serde_json::Value;

use crate::secret::Secrets;

/// The value of a body. `kind` is its content type; a body that was cut is never JSON.
pub(crate) fn value(bytes: &[u8], kind: &str, cut: bool, secrets: &Secrets) -> Value {
    if bytes.is_empty() {
        return Value::Null;
    }
    let Some(text) = text(bytes, kind, cut) else { return Value::Null };
    let text = secrets.mask(text);
    let media = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json = media == "application/json" || media.ends_with("+json") || media == "text/json";
    let parsed = (is_json && !cut).then(|| serde_json::from_str(&text).ok()).flatten();
    parsed.unwrap_or(Value::String(text))
}

/// The text by its charset; `None` for bytes that are no text.
pub(crate) fn text(bytes: &[u8], kind: &str, cut: bool) -> Option<String> {
    let charset = kind.split(';').skip(1).find_map(|part| {
        let (name, value) = part.trim().split_once('=')?;
        name.eq_ignore_ascii_case("charset").then(|| value.trim_matches(['"', ' ']))
    });
    let encoding = charset.and_then(|charset| encoding_rs::Encoding::for_label(charset.as_bytes()));
    if let Some(encoding) = encoding.filter(|encoding| *encoding != encoding_rs::UTF_8) {
        return Some(encoding.decode(bytes).0.into_owned());
    }
    if bytes.contains(&0) {
        return None;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text.trim_start_matches('\u{feff}').to_owned()),
        // Half a character at the cut.
        Err(error) if cut && error.error_len().is_none() => {
            Some(String::from_utf8_lossy(bytes.get(..error.valid_up_to()).unwrap_or_default()).into_owned())
        }
        Err(_) if kind.starts_with("text/") || charset.is_some() => Some(String::from_utf8_lossy(bytes).into_owned()),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(bytes: &[u8], kind: &str) -> Value {
        value(bytes, kind, false, &Secrets::default())
    }

    #[test]
    fn a_body_is_json_text_or_nothing() {
        assert_eq!(read(b"{\"a\": [1]}", "application/json; charset=utf-8"), json!({"a": [1]}));
        assert_eq!(read(b"[1]", "application/problem+json"), json!([1]));
        assert_eq!(read(b"{broken", "application/json"), json!("{broken"));
        assert_eq!(read(b"[1]", "text/plain"), json!("[1]"));
        assert_eq!(read(b"[1]", ""), json!("[1]"));
        assert_eq!(read(b"", "application/json"), Value::Null);
        assert_eq!(read(b"\xe4", "text/html; charset=ISO-8859-1"), json!("ä"));
        assert_eq!(read(b"\xe4x", "text/plain"), json!("\u{fffd}x"));
        assert_eq!(read(b"\x89PNG\0", "image/png"), Value::Null);
        assert_eq!(read(b"\x89PNG", "image/png"), Value::Null);
        let cut = value("[1,ä".as_bytes().get(..4).unwrap(), "application/json", true, &Secrets::default());
        assert_eq!(cut, json!("[1,"));
        let deep = "[".repeat(100_000);
        assert_eq!(read(deep.as_bytes(), "application/json"), json!(deep));
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_value(bytes: Vec<u8>, kind in "(application/json|text/plain|x)?(; charset=(utf-16|latin1|q)?)?", cut: bool) {
            let value = value(&bytes, &kind, cut, &Secrets::default());
            prop_assert!(!cut || !value.is_array() && !value.is_object());
        }
    }
}
