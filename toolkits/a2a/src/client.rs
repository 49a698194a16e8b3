//! JSON-RPC requests to one agent, and the streams that it answers with. It does not know tasks.

use std::error::Error as _;
use std::sync::Once;
use std::time::Duration;

use bytes::Bytes;
use fimble_toolkit::{ErrorKind, ToolError};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};
use sse_stream::SseByteStream;
use tokio::time::timeout;
use url::Url;

use crate::limits::line;
use crate::{Agent, Error, Limits};

/// The version of the protocol, which every request names.
const VERSION: &str = "1.0";

/// What a question is answered with, one after another.
pub(crate) type Results = BoxStream<'static, Result<Value, ToolError>>;

/// Says it to one agent.
#[derive(Clone)]
pub(crate) struct Peer {
    client: Client,
    /// The agent's name in messages.
    pub(crate) name: String,
    url: Url,
    headers: HeaderMap,
    pub(crate) limits: Limits,
}

impl Peer {
    /// # Errors
    /// A header that cannot be sent.
    pub(crate) fn new(agent: &Agent, url: Url, limits: Limits) -> Result<Self, Error> {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| {
            // Another part of the program may have chosen already.
            let _ = rustls::crypto::ring::default_provider().install_default();
        });
        let client = Client::builder()
            .connect_timeout(limits.connect)
            // What is sent may hold a credential.
            .redirect(Policy::none())
            .user_agent(concat!("fimble/", env!("CARGO_PKG_VERSION")))
            // A connection that the agent closed while it was idle would fail the next call.
            .pool_max_idle_per_host(0)
            .build()
            .map_err(|error| Error::Unreachable { agent: agent.name.clone(), problem: reason(&error) })?;
        Ok(Self { client, name: agent.name.clone(), url, headers: headers(agent)?, limits })
    }

    /// The same agent at another address; without credentials if that has another origin.
    pub(crate) fn moved(mut self, url: Url) -> Self {
        if url.origin() != self.url.origin() {
            self.headers.clear();
        }
        self.url = url;
        self
    }

    /// The JSON at the address.
    ///
    /// # Errors
    /// One sentence's end: what happened.
    pub(crate) async fn get(&self) -> Result<Value, String> {
        let fetched = async {
            let request = self.client.get(self.url.clone()).headers(self.headers.clone());
            let response = request.send().await.map_err(|error| reason(&error))?;
            let status = response.status();
            if !status.is_success() {
                return Err(format!("it answered {status} for {}", self.url.path()));
            }
            let body = body(response, self.limits.card_bytes).await?;
            serde_json::from_slice(&body).map_err(|error| format!("its card is no JSON: {error}"))
        };
        let late = format!("it did not answer within {:?}", self.limits.connect);
        timeout(self.limits.connect, fetched).await.unwrap_or(Err(late))
    }

    /// One question and its answer, which may take up to `most`.
    ///
    /// # Errors
    /// The agent's error, or why there is no answer, beginning with `called`.
    pub(crate) async fn ask(
        &self,
        called: &str,
        method: &str,
        parameters: Value,
        most: Duration,
    ) -> Result<Value, ToolError> {
        let asked = async {
            let response = self.send(called, method, parameters).await?;
            let body = body(response, self.limits.answer_bytes).await.map_err(|problem| self.gone(called, &problem))?;
            self.result(called, &body)
        };
        self.in_time(called, most, asked).await
    }

    /// One question and the results that it is answered with, one after another.
    ///
    /// # Errors
    /// As for [`ask`](Self::ask).
    pub(crate) async fn stream(&self, called: &str, method: &str, parameters: Value) -> Result<Results, ToolError> {
        let response = self.send(called, method, parameters).await?;
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        // A refusal is no stream, but one answer.
        if !kind.starts_with("text/event-stream") {
            let body = body(response, self.limits.answer_bytes).await.map_err(|problem| self.gone(called, &problem))?;
            return Ok(futures_util::stream::iter([self.result(called, &body)]).boxed());
        }
        let (peer, called) = (self.clone(), called.to_owned());
        let events = SseByteStream::new(bounded(response, self.limits.answer_bytes));
        let results = events.filter_map(move |event| {
            let result = match event {
                Ok(event) => event.data.map(|data| peer.result(&called, data.as_bytes())),
                Err(sse_stream::Error::Body(error)) => Some(Err(peer.gone(&called, &innermost(&*error)))),
                Err(error) => Some(Err(peer.gone(&called, &error.to_string()))),
            };
            std::future::ready(result)
        });
        Ok(results.boxed())
    }

    async fn send(&self, called: &str, method: &str, parameters: Value) -> Result<Response, ToolError> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}).to_string();
        let request = self.client.post(self.url.clone()).headers(self.headers.clone());
        let request = request
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .header("A2A-Version", VERSION)
            .body(body);
        let response = request.send().await.map_err(|error| self.gone(called, &reason(&error)))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        // Some send the error of the protocol with a status of its own.
        let body = body_of_failure(response, self.limits.card_bytes).await;
        match self.result(called, &body) {
            Err(error) if serde_json::from_slice::<Value>(&body).is_ok_and(|body| body.get("error").is_some()) => {
                Err(error)
            }
            _ => Err(self.refused(called, status)),
        }
    }

    /// The result of an answer of JSON-RPC, or its error.
    fn result(&self, called: &str, body: &[u8]) -> Result<Value, ToolError> {
        let mut answer: Value = serde_json::from_slice(body).map_err(|error| {
            ToolError::failed(format!("{called}: the agent `{}` answered what is no JSON: {error}", self.name))
        })?;
        if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
            return Err(self.failed(called, error));
        }
        match answer.get_mut("result").map(Value::take) {
            Some(result) => Ok(result),
            None => Err(ToolError::failed(format!("{called}: the agent `{}` answered without a result", self.name))),
        }
    }

    fn failed(&self, called: &str, error: &Value) -> ToolError {
        let message = error.get("message").and_then(Value::as_str).unwrap_or("it does not say why");
        let message = line(message, self.limits.message_characters);
        let message = message.trim_end_matches('.');
        let kind = match error.get("code").and_then(Value::as_i64) {
            Some(TASK_NOT_FOUND) => ErrorKind::NotFound,
            Some(INVALID_PARAMETERS | CONTENT_TYPE_NOT_SUPPORTED) => ErrorKind::InvalidArgument,
            Some(METHOD_NOT_FOUND | UNSUPPORTED_OPERATION | VERSION_NOT_SUPPORTED) => ErrorKind::Unavailable,
            _ => ErrorKind::Failed,
        };
        ToolError::new(kind, format!("{called}: {message}"))
    }

    fn refused(&self, called: &str, status: StatusCode) -> ToolError {
        let name = &self.name;
        let kind = match status.as_u16() {
            401 | 403 => ErrorKind::Denied,
            _ => ErrorKind::Unavailable,
        };
        let error = ToolError::new(kind, format!("{called}: the agent `{name}` answered {status}"));
        if kind == ErrorKind::Denied {
            error.with_hint("it does not take the host's credential; tell the user")
        } else {
            error.with_hint("call again later, or do without it")
        }
    }

    fn gone(&self, called: &str, problem: &str) -> ToolError {
        let problem = line(problem, self.limits.message_characters);
        ToolError::unavailable(format!("{called}: the agent `{}` is gone: {problem}", self.name))
            .with_hint("look with get_task whether it took effect, or call again later")
    }

    /// # Errors
    /// `Timeout` if it takes longer than `most`.
    pub(crate) async fn in_time<T>(
        &self,
        called: &str,
        most: Duration,
        work: impl Future<Output = Result<T, ToolError>>,
    ) -> Result<T, ToolError> {
        timeout(most, work).await.unwrap_or_else(|_| {
            let message = format!("{called}: the agent `{}` did not answer within {most:?}", self.name);
            Err(ToolError::new(ErrorKind::Timeout, message).with_hint("call again later, or do without it"))
        })
    }
}

const METHOD_NOT_FOUND: i64 = -32_601;
const INVALID_PARAMETERS: i64 = -32_602;
const TASK_NOT_FOUND: i64 = -32_001;
const UNSUPPORTED_OPERATION: i64 = -32_004;
const CONTENT_TYPE_NOT_SUPPORTED: i64 = -32_005;
const VERSION_NOT_SUPPORTED: i64 = -32_009;

fn headers(agent: &Agent) -> Result<HeaderMap, Error> {
    let wrong = |problem: String| Error::Setting { agent: agent.name.clone(), problem };
    let mut headers = HeaderMap::new();
    if let Some(token) = &agent.token {
        let mut value = HeaderValue::try_from(format!("Bearer {}", token.trim()))
            .map_err(|_| wrong("a token that cannot be sent".to_owned()))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    for (name, value) in &agent.headers {
        let (Ok(name), Ok(mut value)) = (HeaderName::try_from(name.as_str()), HeaderValue::try_from(value.as_str()))
        else {
            return Err(wrong(format!("a header `{name}` that cannot be sent")));
        };
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// The pieces of a body until there are more than `most` bytes.
fn bounded(response: Response, most: usize) -> impl Stream<Item = std::io::Result<Bytes>> + Send {
    let mut left = most;
    response.bytes_stream().map(move |piece| {
        let piece = piece.map_err(|error| std::io::Error::other(reason(&error)))?;
        left = left
            .checked_sub(piece.len())
            .ok_or_else(|| std::io::Error::other(format!("it sent more than {most} bytes")))?;
        Ok(piece)
    })
}

async fn body(response: Response, most: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut pieces = std::pin::pin!(bounded(response, most));
    while let Some(piece) = pieces.next().await {
        bytes.extend_from_slice(&piece.map_err(|error| error.to_string())?);
    }
    Ok(bytes)
}

/// What came of a body before it ended or was too long.
async fn body_of_failure(response: Response, most: usize) -> Vec<u8> {
    body(response, most).await.unwrap_or_default()
}

/// Why a request failed, without its address.
fn reason(error: &reqwest::Error) -> String {
    match error.source() {
        Some(cause) => innermost(cause),
        None if error.is_timeout() => "it took too long".to_owned(),
        None => "the request failed".to_owned(),
    }
}

fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
