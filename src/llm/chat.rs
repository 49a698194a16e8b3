//! The wire format of `/chat/completions`: what is asked, and what a piece of the stream says. It sends nothing.

use serde_json::{Value, json};

use super::exchange::Piece;
use super::family::{Family, neutralise};
use super::{Finish, Message, Role, TokenUsage};

/// Most stop strings that every server takes; [`StopFilter`](super::stop::StopFilter) sees to the rest.
pub(super) const SENT_STOPS: usize = 4;

/// What is asked.
pub(super) fn body(messages: &[Message], family: Option<Family>) -> Value {
    let messages: Vec<Value> = messages
        .iter()
        .map(|message| {
            let role = match message.role {
                Role::System => "system",
                Role::User => "user",
                Role::Assistant => "assistant",
            };
            json!({ "role": role, "content": neutralise(&message.content, family) })
        })
        .collect();
    json!({ "messages": messages, "stream_options": { "include_usage": true } })
}

/// What a piece of the stream says, or a whole answer of a server that does not stream. Mistral's answers to
/// `/fim/completions` have this shape too.
pub(super) fn read(event: &Value) -> Piece {
    let choice = event.get("choices").and_then(|choices| choices.get(0));
    let message = choice.and_then(|choice| choice.get("delta").or_else(|| choice.get("message")));
    let text_of = |name| message.and_then(|message| message.get(name)).and_then(Value::as_str).unwrap_or_default();
    Piece {
        text: text_of("content").to_owned(),
        // What a model thinks is no part of its text, but a sign of life.
        thinks: !text_of("reasoning").is_empty() || !text_of("reasoning_content").is_empty(),
        finish: choice.and_then(finish),
        usage: usage(event),
    }
}

/// Why a choice ended, if it did. Words we do not know mean that the model ended it.
pub(super) fn finish(choice: &Value) -> Option<Finish> {
    match choice.get("finish_reason")?.as_str()? {
        "length" => Some(Finish::Length),
        _ => Some(Finish::Ended),
    }
}

/// The token counts of an answer, if it has any.
pub(super) fn usage(event: &Value) -> Option<TokenUsage> {
    let usage = event.get("usage").filter(|usage| usage.is_object())?;
    let cached = usage
        .pointer("/prompt_tokens_details/cached_tokens")
        .or_else(|| usage.get("prompt_cache_hit_tokens"))
        .map_or(0, count);
    let number = |name| usage.get(name).map_or(0, count);
    Some(TokenUsage { prompt: number("prompt_tokens"), cached, completion: number("completion_tokens") })
}

/// A count, whatever the server wrote.
pub(super) fn count(value: &Value) -> u32 {
    value.as_u64().map_or(0, |count| u32::try_from(count).unwrap_or(u32::MAX))
}
