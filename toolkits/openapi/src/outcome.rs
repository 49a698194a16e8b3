//! What a server answered, as the value that a program gets or as the error that it reads.

use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use fimble_toolkit::{ErrorKind, ToolError};
use reqwest::header::{CONTENT_TYPE, HeaderMap, LINK, LOCATION, RETRY_AFTER};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::Limits;
use crate::operation::Plan;
use crate::request::next_of;
use crate::response::Paging;

/// An answer that was read.
pub(crate) struct Answer {
    /// Its status.
    pub(crate) status: StatusCode,
    /// Its headers.
    pub(crate) headers: HeaderMap,
    /// Its body.
    pub(crate) body: Vec<u8>,
}

/// The value of an answer that means success.
pub(crate) fn value(answer: &Answer, plan: &Plan, called: &str) -> Result<Value, ToolError> {
    if plan.method == Method::HEAD {
        let headers = answer.headers.iter().filter(|(name, _)| *name != "set-cookie");
        let headers =
            headers.map(|(name, value)| (name.to_string(), Value::from(String::from_utf8_lossy(value.as_bytes()))));
        return Ok(json!({"status": answer.status.as_u16(), "headers": headers.collect::<serde_json::Map<_, _>>()}));
    }
    let mut value = content(answer, called)?;
    if let Paging::Field(next) | Paging::Mark(_, next) = plan.paging {
        ensure(&mut value, next.path);
    }
    if plan.paging == Paging::Link && value.is_array() {
        let next = next_link(&answer.headers).and_then(|address| next_of(&address, plan));
        return Ok(json!({"entries": value, "next": next}));
    }
    Ok(value)
}

/// The last page of most servers has no field for the next one. Programs read it all the same, as `None`.
fn ensure(value: &mut Value, path: &[&str]) {
    let (Value::Object(fields), Some((first, below))) = (value, path.split_first()) else { return };
    if below.is_empty() {
        fields.entry(*first).or_insert(Value::Null);
    } else if let Some(inner) = fields.get_mut(*first) {
        ensure(inner, below);
    }
}

fn content(answer: &Answer, called: &str) -> Result<Value, ToolError> {
    let kind = content_type(&answer.headers);
    let is_stream = is_json(&kind) && content_type_says(&answer.headers, "stream=");
    if is_stream {
        let values: Result<Vec<Value>, _> = serde_json::Deserializer::from_slice(&answer.body).into_iter().collect();
        return values.map(Value::Array).map_err(|error| {
            ToolError::failed(format!("{called}: the server answered with a stream that is not JSON: {error}"))
        });
    }
    if answer.body.is_empty() {
        return Ok(Value::Null);
    }
    if is_json(&kind) {
        return json_of(&answer.body).map_err(|error| {
            ToolError::failed(format!("{called}: the server answered {}, but not in JSON: {error}", answer.status))
        });
    }
    match std::str::from_utf8(&answer.body) {
        Ok(text) if kind.is_empty() && text.trim_start().starts_with(['{', '[']) => {
            Ok(serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)))
        }
        Ok(text) => Ok(Value::from(text)),
        Err(_) => Ok(json!({"content_type": kind, "base64": BASE64_STANDARD.encode(&answer.body)})),
    }
}

/// The JSON of a body. Several values one after another, as streams of events have them, are a list.
fn json_of(body: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(body).or_else(|error| {
        let values: Vec<Value> = serde_json::Deserializer::from_slice(body).into_iter().collect::<Result<_, _>>()?;
        if values.len() > 1 { Ok(Value::Array(values)) } else { Err(error) }
    })
}

fn content_type(headers: &HeaderMap) -> String {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// True if a parameter of the content type begins so. Kubernetes says `stream=watch` of events that come one by one.
fn content_type_says(headers: &HeaderMap, parameter: &str) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').skip(1).any(|one| one.trim().starts_with(parameter))
}

fn is_json(kind: &str) -> bool {
    kind.ends_with("/json") || kind.ends_with("+json") || matches!(kind, "application/x-ndjson" | "application/jsonl")
}

/// The address that a `Link` header calls the next one.
fn next_link(headers: &HeaderMap) -> Option<String> {
    headers.get_all(LINK).iter().filter_map(|header| header.to_str().ok()).find_map(|header| {
        let mut rest = header;
        while let Some((_, after)) = rest.split_once('<') {
            let (address, after) = after.split_once('>')?;
            // The parameters of this link end where the next one begins.
            let parameters = after.split(",<").next().unwrap_or_default().split(", <").next().unwrap_or_default();
            let is_next = parameters.split(';').filter_map(|one| one.split_once('=')).any(|(name, value)| {
                let names = value.trim().trim_end_matches(',').trim_matches('"');
                name.trim().eq_ignore_ascii_case("rel") && names.split_ascii_whitespace().any(|name| name == "next")
            });
            if is_next {
                return Some(address.to_owned());
            }
            rest = after;
        }
        None
    })
}

/// The error of an answer that does not mean success, in the server's own words.
pub(crate) fn failure(answer: &Answer, plan: &Plan, called: &str, limits: &Limits) -> ToolError {
    let status = answer.status;
    let kind = match status.as_u16() {
        400 | 405 | 406 | 411 | 413 | 414 | 415 | 422 => ErrorKind::InvalidArgument,
        401 | 403 | 407 | 451 => ErrorKind::Denied,
        404 | 410 => ErrorKind::NotFound,
        408 | 504 => ErrorKind::Timeout,
        429 | 502 | 503 => ErrorKind::Unavailable,
        _ => ErrorKind::Failed,
    };
    let said = if status.is_redirection() {
        let target = answer.headers.get(LOCATION).and_then(|target| target.to_str().ok());
        let target = target.map(|target| target.split('?').next().unwrap_or_default());
        Some(format!("it redirects to {}, which is not followed", target.unwrap_or("nowhere")))
    } else {
        said(answer)
    };
    let said = said.map(|said| shortened(&said, limits.message_characters)).filter(|said| !said.is_empty());
    let said = said.map(|said| format!(": {said}")).unwrap_or_default();
    let error = ToolError::new(kind, format!("{called}: the server answered {status}{said}"));
    match hint(answer, plan) {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

fn hint(answer: &Answer, plan: &Plan) -> Option<String> {
    let missing = plan.grants.missing.as_ref();
    match answer.status.as_u16() {
        401 | 403 if missing.is_some() => {
            let missing = missing.map(String::as_str).unwrap_or_default();
            Some(format!("the host has no credential for `{missing}`; tell the user that one must be configured"))
        }
        401 if !plan.grants.sent.is_empty() => {
            Some("the server does not take the host's credential; tell the user".to_owned())
        }
        429 | 503 => Some(match wait(&answer.headers) {
            Some(wait) => format!("wait {} s, then call again", wait.as_secs().max(1)),
            None => "wait a while, then call again".to_owned(),
        }),
        403 if answer.headers.get("x-ratelimit-remaining").is_some_and(|left| left == "0") => {
            Some("the server's limit on calls is used up; wait a while, or make fewer calls".to_owned())
        }
        500 | 502 | 504 if !plan.method.is_safe() => {
            Some("look whether it took effect before you call again".to_owned())
        }
        _ => None,
    }
}

/// How long the server asks to wait: seconds, or a date.
fn wait(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds.ceil()).ok();
    }
    httpdate::parse_http_date(text).ok()?.duration_since(SystemTime::now()).ok()
}

/// The server's own sentence.
fn said(answer: &Answer) -> Option<String> {
    if let Ok(value) = serde_json::from_slice::<Value>(&answer.body) {
        return sentence(&value, 0);
    }
    let text = std::str::from_utf8(&answer.body).ok()?;
    if content_type(&answer.headers) == "text/html" || text.trim_start().starts_with("<!") {
        let (_, after) = text.split_once("<title>")?;
        return after.split_once("</title>").map(|(title, _)| title.trim().to_owned());
    }
    Some(text.to_owned())
}

/// The fields in which servers explain themselves, the best first.
const FIELDS: [&str; 15] = [
    "detail",
    "message",
    "error_description",
    "error",
    "errors",
    "title",
    "msg",
    "description",
    "reason",
    "error_message",
    "Message",
    "errorMessages",
    "messages",
    "fault",
    "causes",
];

/// Levels of an error that are looked into.
const MOST_LEVELS: usize = 6;

/// Items of a list of errors that are told.
const MOST_ITEMS: usize = 5;

fn sentence(value: &Value, level: usize) -> Option<String> {
    if level > MOST_LEVELS {
        return None;
    }
    match value {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Array(items) => {
            let items: Vec<String> =
                items.iter().take(MOST_ITEMS).filter_map(|item| sentence(item, level + 1)).collect();
            (!items.is_empty()).then(|| items.join("; "))
        }
        Value::Object(fields) => {
            let found = FIELDS.iter().find_map(|name| Some((*name, sentence(fields.get(*name)?, level + 1)?)));
            let Some((name, mut text)) = found else {
                return (level > 0 && !fields.is_empty()).then(|| value.to_string());
            };
            // Where it is wrong: `loc` of pydantic, `field` of GitHub and others.
            let place = fields
                .get("loc")
                .and_then(place)
                .or_else(|| ["field", "path", "param"].iter().find_map(|key| place(fields.get(*key)?)));
            if let Some(place) = place {
                text = format!("{place}: {text}");
            }
            // A general sentence says less than the list beside it.
            let more = ["errors", "details"]
                .iter()
                .filter(|more| **more != name)
                .filter_map(|more| fields.get(*more))
                // What it was about is in the sentence already.
                .filter(|more| more.as_object().is_none_or(|more| FIELDS.iter().any(|name| more.contains_key(*name))))
                .find_map(|more| sentence(more, level + 1));
            Some(match more {
                Some(more) if more != text => format!("{text} ({more})"),
                _ => text,
            })
        }
        _ => None,
    }
}

fn place(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().take(MOST_LEVELS).map(crate::encode::scalar).collect();
            (!items.is_empty()).then(|| items.join("."))
        }
        _ => None,
    }
}

/// The text in one line, without control characters and a full stop, cut to `most` characters.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let words = text.split(|character: char| character.is_whitespace() || character.is_control());
    let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let line = line.trim_end_matches('.');
    if line.chars().count() <= most {
        return line.to_owned();
    }
    format!("{}…", line.chars().take(most).collect::<String>())
}
