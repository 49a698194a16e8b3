//! The wire formats that fill a hole: tokens or `suffix` on `/completions`, llama.cpp's `/infill`, Mistral's
//! `/fim/completions`. It sends nothing.

use serde_json::{Value, json};

use super::chat;
use super::exchange::Piece;
use super::family::{Family, neutralise};
use super::{Finish, TokenUsage};

/// A prompt that marks the hole with the family's own tokens.
pub(super) fn tokens_body(prefix: &str, suffix: &str, family: Family) -> Value {
    let prompt = family.prompt(&neutralise(prefix, Some(family)), &neutralise(suffix, Some(family)));
    json!({ "prompt": prompt, "stream_options": { "include_usage": true } })
}

/// A prompt with the `suffix` parameter.
pub(super) fn suffix_body(prefix: &str, suffix: &str, family: Option<Family>) -> Value {
    let mut body = mistral_body(prefix, suffix, family);
    body["stream_options"] = json!({ "include_usage": true });
    body
}

/// Like [`suffix_body`], for a server that refuses fields it does not know.
pub(super) fn mistral_body(prefix: &str, suffix: &str, family: Option<Family>) -> Value {
    json!({ "prompt": neutralise(prefix, family), "suffix": neutralise(suffix, family) })
}

/// llama.cpp's own request.
pub(super) fn infill_body(prefix: &str, suffix: &str, family: Option<Family>) -> Value {
    json!({ "input_prefix": neutralise(prefix, family), "input_suffix": neutralise(suffix, family) })
}

/// What a piece of a `/completions` stream says.
pub(super) fn read_completion(event: &Value) -> Piece {
    let choice = event.get("choices").and_then(|choices| choices.get(0));
    let text = choice.and_then(|choice| choice.get("text")).and_then(Value::as_str).unwrap_or_default();
    Piece { text: text.to_owned(), thinks: false, finish: choice.and_then(chat::finish), usage: chat::usage(event) }
}

/// What a piece of an `/infill` stream says. The last one has `stop: true`; there is no `[DONE]`.
pub(super) fn read_infill(event: &Value) -> Piece {
    let ended = event.get("stop").and_then(Value::as_bool).unwrap_or(false);
    let limited = event.get("stop_type").and_then(Value::as_str) == Some("limit");
    let count = |value: Option<&Value>| value.map_or(0, chat::count);
    Piece {
        text: event.get("content").and_then(Value::as_str).unwrap_or_default().to_owned(),
        thinks: false,
        finish: ended.then_some(if limited { Finish::Length } else { Finish::Ended }),
        usage: event.get("tokens_evaluated").map(|evaluated| TokenUsage {
            prompt: chat::count(evaluated),
            cached: count(event.pointer("/timings/cache_n")),
            completion: count(event.get("tokens_predicted")),
        }),
    }
}
