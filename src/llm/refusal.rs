//! Turns what went wrong on the wire into an [`LlmError`] for the user, and says whether a second try makes sense. It
//! does not send anything.

use std::error::Error as _;
use std::io;
use std::time::{Duration, SystemTime};

use reqwest::header::HeaderMap;
use reqwest::{StatusCode, Url};
use serde_json::Value;

use super::LlmError;
use super::config::Secret;
use super::retry::{Advice, advice};

/// A failed attempt.
#[derive(Debug)]
pub(super) struct Failure {
    /// What the user is told if no further attempt follows.
    pub error: LlmError,
    /// Whether one may follow.
    pub advice: Advice,
}

impl Failure {
    pub(super) fn last(error: LlmError) -> Self {
        Self { error, advice: Advice::GiveUp }
    }

    pub(super) fn passing(error: LlmError) -> Self {
        Self { error, advice: Advice::Retry(None) }
    }
}

/// Whom a failure is about.
pub(super) struct Peer<'a> {
    /// The address asked.
    pub url: &'a Url,
    /// The model asked for.
    pub model: &'a str,
    /// The key sent; struck out of everything shown.
    pub key: Option<&'a Secret>,
}

impl Peer<'_> {
    /// The address without user, password and query.
    pub(super) fn address(&self) -> String {
        let mut url = self.url.clone();
        // Both fail only for addresses that cannot have a password in the first place.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        url.to_string()
    }

    /// One line of the server's words, without the key, control characters and what is beyond 300 characters.
    pub(super) fn quote(&self, words: &str) -> String {
        let mut words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        words.retain(|letter| !letter.is_control());
        if let Some(key) = self.key.map(Secret::reveal).filter(|key| !key.is_empty()) {
            words = words.replace(key, "***");
        }
        match words.char_indices().nth(300) {
            Some((at, _)) => format!("{}…", &words[..at]),
            None => words.trim_end_matches('.').to_owned(),
        }
    }
}

/// A refusal before any answer: `body` is what the server said, cut to a bound.
pub(super) fn of_answer(peer: &Peer<'_>, status: StatusCode, headers: &HeaderMap, body: &str) -> Failure {
    let advice = advice(status, headers, SystemTime::now());
    let error = serde_json::from_str::<Value>(body).ok().map(|body| body.get("error").cloned().unwrap_or(body));
    let Some(error) = error else { return of_foreign_body(peer, status, advice, body) };
    let code = status.as_u16();
    let words = peer.quote(words(&error).unwrap_or(body));
    let address = peer.address();
    if let Some(overflow) = overflow(&error, code) {
        return Failure::last(overflow);
    }
    let error = match code {
        401 | 403 if peer.key.is_none() => {
            LlmError::permanent(format!("{address} wants an API key: {words}"), "set `OPENAI_API_KEY` or `llm.api_key`")
        }
        401 | 403 => LlmError::permanent(
            format!("{address} refused the API key: {words}"),
            "check `OPENAI_API_KEY` or `llm.api_key`, and that the key may use this model",
        ),
        404 if words.to_lowercase().contains("model") => LlmError::permanent(
            format!("{address} has no model `{}`: {words}", peer.model),
            "set `llm.model` to a model that the server lists",
        ),
        404 => LlmError::permanent(
            format!("{address} is no address of this server: {words}"),
            "check `llm.base_url`; most servers want it to end with `/v1`",
        ),
        429 if has_word(&error, "insufficient_quota") => {
            let error = LlmError::permanent(format!("{address} says the quota is used up: {words}"), "check the plan");
            return Failure::last(error);
        }
        429 => LlmError::transient(format!("{address} is asked too often: {words}"), "wait a little and try again"),
        _ if matches!(advice, Advice::Retry(_)) || (code >= 500 && code != 501) => {
            LlmError::transient(format!("{address} failed with status {code}: {words}"), "try again later")
        }
        _ => LlmError::permanent(format!("{address} refused the request with status {code}: {words}"), ""),
    };
    Failure { error, advice }
}

/// An error that the server reports within a stream that began well.
pub(super) fn of_event(peer: &Peer<'_>, error: &Value) -> Failure {
    let code = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
    if let Some(overflow) = overflow(error, code) {
        return Failure::last(overflow);
    }
    let words = peer.quote(words(error).unwrap_or("it did not say why"));
    let error =
        LlmError::transient(format!("{} broke off its answer: {words}", peer.address()), "try again, it may pass");
    let fits = |status| advice(status, &HeaderMap::new(), SystemTime::now());
    Failure { error, advice: StatusCode::from_u16(code).map_or(Advice::GiveUp, fits) }
}

/// The connection failed, or broke.
pub(super) fn of_transport(peer: &Peer<'_>, error: reqwest::Error, connect: Duration) -> Failure {
    let address = peer.address();
    let is_connect = error.is_connect();
    let timed_out = error.is_timeout();
    let error = error.without_url();
    let mut refused = false;
    let mut innermost = error.to_string();
    let mut cause = error.source();
    while let Some(this) = cause {
        if let Some(tls) = this.downcast_ref::<rustls::Error>().or_else(|| tls_in(this)) {
            return Failure::last(of_tls(&address, tls));
        }
        refused |= this.downcast_ref::<io::Error>().is_some_and(|io| io.kind() == io::ErrorKind::ConnectionRefused);
        innermost = this.to_string();
        cause = this.source();
    }
    let innermost = peer.quote(&innermost);
    Failure::passing(if refused {
        LlmError::transient(format!("nothing listens at {address}"), "start the server, or correct `llm.base_url`")
    } else if is_connect && timed_out {
        LlmError::transient(
            format!("{address} did not take the connection in {} s", connect.as_secs_f64()),
            "check the network and `llm.base_url`; `llm.timeouts.connect_s` is how long to wait",
        )
    } else if is_connect {
        LlmError::transient(
            format!("{address} cannot be reached: {innermost}"),
            "check the network, the proxy and `llm.base_url`",
        )
    } else {
        LlmError::transient(format!("the connection to {address} broke: {innermost}"), "try again")
    })
}

/// An `io::Error` does not name the error that it wraps as its source; TLS errors are wrapped so, even twice.
fn tls_in<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a rustls::Error> {
    let mut io = error.downcast_ref::<io::Error>();
    while let Some(wrapped) = io.and_then(io::Error::get_ref) {
        if let Some(tls) = wrapped.downcast_ref() {
            return Some(tls);
        }
        io = wrapped.downcast_ref();
    }
    None
}

fn of_tls(address: &str, error: &rustls::Error) -> LlmError {
    match error {
        rustls::Error::InvalidCertificate(why) => LlmError::permanent(
            format!("the certificate of {address} is not trusted: {why:?}"),
            "install the authority that signed it, or correct `llm.base_url`",
        ),
        rustls::Error::InvalidMessage(_) => LlmError::permanent(
            format!("{address} does not speak TLS"),
            "write `http://` in `llm.base_url` if the server has no certificate",
        ),
        _ => LlmError::permanent(format!("no secure connection to {address}: {error}"), "check `llm.base_url`"),
    }
}

/// An answer that is not JSON: a web page of a proxy or a wrong address.
fn of_foreign_body(peer: &Peer<'_>, status: StatusCode, advice: Advice, body: &str) -> Failure {
    let address = peer.address();
    let what = if body.trim_start().starts_with('<') { "a web page" } else { "something that is not JSON" };
    let message = format!("{address} answered status {} with {what}", status.as_u16());
    let error = match advice {
        Advice::Retry(_) => LlmError::transient(message, "try again later, and check the proxy"),
        Advice::GiveUp if matches!(status.as_u16(), 401 | 403) => LlmError::permanent(
            format!("{address} refused the API key"),
            "check `OPENAI_API_KEY` or `llm.api_key`, and the proxy",
        ),
        Advice::GiveUp => LlmError::permanent(message, "check `llm.base_url`; most servers want it to end with `/v1`"),
    };
    Failure { error, advice }
}

/// The prompt does not fit: each server has its own way to say so.
fn overflow(error: &Value, code: u16) -> Option<LlmError> {
    let told = words(error).unwrap_or_default().to_lowercase();
    let is_overflow = has_word(error, "exceed_context_size_error")
        || has_word(error, "context_length_exceeded")
        || code == 413
        || (code == 400 && (told.contains("maximum context length") || told.contains("context size")));
    let number = |name| error.get(name).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
    let (prompt_tokens, context_tokens) = (number("n_prompt_tokens"), number("n_ctx"));
    let message = match (prompt_tokens, context_tokens) {
        (Some(prompt), Some(context)) => format!("the prompt has {prompt} tokens, the model takes {context}"),
        _ => "the prompt is longer than the model takes".to_owned(),
    };
    is_overflow.then_some(LlmError::Overflow { message, prompt_tokens, context_tokens })
}

fn has_word(error: &Value, word: &str) -> bool {
    ["type", "code"].iter().any(|name| error.get(name).and_then(Value::as_str) == Some(word))
}

/// The server's sentence: `{"message"}`, `{"detail"}`, or the error is the sentence.
fn words(error: &Value) -> Option<&str> {
    error.as_str().or_else(|| ["message", "detail", "msg"].iter().find_map(|name| error.get(name)?.as_str()))
}
