//! One request and its streamed answer. It does not know what is asked, and never asks twice.

use std::time::Duration;

use futures_util::{Stream, StreamExt};
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, Url};
use serde_json::Value;
use sse_stream::SseByteStream;
use tokio::time::{Instant, timeout_at};

use super::config::{Secret, Timeouts, seconds};
use super::refusal::{self, Failure, Peer};
use super::stop::{Filtered, StopFilter};
use super::{Finish, LlmError, OnText, TokenUsage};

/// Most bytes of a refusal that are read.
const REFUSAL_BYTES: usize = 64 * 1024;
/// How long the token counts may lag behind the end of the text.
const USAGE_WAIT: Duration = Duration::from_secs(5);
/// How long the end of the stream may lag behind all that is of interest.
const END_WAIT: Duration = Duration::from_millis(100);

/// What to send, and how to read what comes back.
pub(super) struct Exchange<'a> {
    pub client: &'a Client,
    pub url: &'a Url,
    pub model: &'a str,
    pub key: Option<&'a Secret>,
    pub timeouts: &'a Timeouts,
    /// Most bytes of the answer.
    pub response_bytes: u64,
    pub body: &'a Value,
    pub stops: &'a [String],
    pub read: fn(&Value) -> Piece,
    /// When all must be over.
    pub deadline: Instant,
}

/// What one event of the stream says.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Piece {
    /// New text.
    pub text: String,
    /// True if the model thought instead.
    pub thinks: bool,
    /// Set by the event that ends the text.
    pub finish: Option<Finish>,
    /// Token counts so far.
    pub usage: Option<TokenUsage>,
}

/// A whole answer.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Answer {
    /// All text, as it was handed out.
    pub text: String,
    /// Why it ended.
    pub finish: Option<Finish>,
    /// Token counts, if the server told.
    pub usage: Option<TokenUsage>,
}

impl Exchange<'_> {
    /// Sends the request and hands the text out as it arrives. A failure after the first text is never worth a retry:
    /// what was handed out cannot be taken back.
    pub(super) async fn run(&self, on_text: OnText<'_>) -> Result<Answer, Failure> {
        let mut reading = Reading {
            answer: Answer::default(),
            filter: StopFilter::new(self.stops),
            on_text,
            peer: self.peer(),
            read: self.read,
        };
        let outcome = self.read_answer(&mut reading).await;
        match outcome {
            Ok(()) => Ok(reading.answer),
            Err(failure) if reading.answer.text.is_empty() => Err(failure),
            Err(failure) => Err(Failure::last(failure.error)),
        }
    }

    fn peer(&self) -> Peer<'_> {
        Peer { url: self.url, model: self.model, key: self.key }
    }

    async fn read_answer(&self, reading: &mut Reading<'_>) -> Result<(), Failure> {
        let first_token_by = Instant::now() + seconds(self.timeouts.first_token_s);
        let response = self.send(first_token_by).await?;
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if content_type.is_some_and(|value| value.starts_with("application/json")) {
            return self.read_whole(response, reading, first_token_by).await;
        }
        if content_type.is_some_and(|value| value.starts_with("text/html")) {
            let (status, headers) = (response.status(), response.headers().clone());
            return Err(refusal::of_answer(&self.peer(), status, &headers, "<"));
        }
        let bytes = bounded(response.bytes_stream(), self.response_bytes);
        let mut events = std::pin::pin!(SseByteStream::new(bytes));
        let mut by = first_token_by;
        loop {
            let event = match timeout_at(by.min(self.deadline), events.next()).await {
                // The text is whole; only its token counts are missing.
                Err(_) | Ok(Some(Err(_)) | None) if reading.answer.finish.is_some() => return Ok(()),
                Err(_) => return Err(self.late(by == first_token_by)),
                Ok(None) => return Err(self.cut_off("it ended without a word")),
                Ok(Some(Err(sse_stream::Error::Body(error)))) => return Err(self.cut_off(&innermost(&*error))),
                Ok(Some(Err(error))) => return Err(self.cut_off(&error.to_string())),
                Ok(Some(Ok(event))) => event,
            };
            let Some(data) = event.data else { continue };
            match reading.take(&data)? {
                Next::Thought => by = Instant::now() + seconds(self.timeouts.idle_s),
                Next::Nothing => {}
                Next::UsageOnly => by = Instant::now() + USAGE_WAIT,
                Next::Whole => by = Instant::now() + END_WAIT,
                Next::Over => return Ok(()),
            }
        }
    }

    async fn send(&self, by: Instant) -> Result<Response, Failure> {
        let mut request = self.client.post(self.url.clone()).json(self.body);
        if let Some(key) = self.key {
            request = request.bearer_auth(key.reveal());
        }
        let response = match timeout_at(by.min(self.deadline), request.send()).await {
            Err(_) => return Err(self.late(true)),
            Ok(sent) => {
                let connect = seconds(self.timeouts.connect_s);
                sent.map_err(|error| refusal::of_transport(&self.peer(), error, connect))?
            }
        };
        let status = response.status();
        if status.is_redirection() {
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("nowhere");
            let message = format!("{} is moved to {}", self.peer().address(), self.peer().quote(to));
            return Err(Failure::last(LlmError::permanent(message, "write the new address in `llm.base_url`")));
        }
        if status.is_success() {
            return Ok(response);
        }
        let headers = response.headers().clone();
        let body = timeout_at(by.min(self.deadline), read_up_to(response, REFUSAL_BYTES)).await.unwrap_or_default();
        Err(refusal::of_answer(&self.peer(), status, &headers, &String::from_utf8_lossy(&body)))
    }

    /// A server that answers in one piece though it was asked to stream.
    async fn read_whole(&self, response: Response, reading: &mut Reading<'_>, by: Instant) -> Result<(), Failure> {
        let most = usize::try_from(self.response_bytes).unwrap_or(usize::MAX);
        let body = timeout_at(by.min(self.deadline), read_up_to(response, most)).await.map_err(|_| self.late(true))?;
        match reading.take(&String::from_utf8_lossy(&body))? {
            Next::Over | Next::Whole | Next::UsageOnly => Ok(()),
            Next::Nothing | Next::Thought => Err(self.cut_off("the answer has no end")),
        }
    }

    fn late(&self, first: bool) -> Failure {
        let address = self.peer().address();
        let (message, setting) = if Instant::now() >= self.deadline {
            (format!("{address} did not finish in {} s", self.timeouts.total_s), "total_s")
        } else if first {
            (format!("{address} wrote nothing for {} s", self.timeouts.first_token_s), "first_token_s")
        } else {
            (format!("{address} stopped writing for {} s", self.timeouts.idle_s), "idle_s")
        };
        let hint = format!("see what the server does; `llm.timeouts.{setting}` is how long to wait");
        // A slow server does not get faster by being asked twice.
        Failure::last(LlmError::transient(message, hint))
    }

    fn cut_off(&self, why: &str) -> Failure {
        let message = format!("{} broke off its answer: {}", self.peer().address(), self.peer().quote(why));
        Failure::passing(LlmError::transient(message, "try again, it may pass"))
    }
}

/// What to do after an event.
enum Next {
    /// The model is at work.
    Thought,
    /// An event without news.
    Nothing,
    /// The text is whole, its token counts may follow.
    UsageOnly,
    /// All is there; a stream that is read to its end leaves the connection for the next request.
    Whole,
    /// Nothing more is wanted.
    Over,
}

struct Reading<'a> {
    answer: Answer,
    filter: StopFilter,
    on_text: OnText<'a>,
    peer: Peer<'a>,
    read: fn(&Value) -> Piece,
}

impl Reading<'_> {
    fn take(&mut self, data: &str) -> Result<Next, Failure> {
        if data.trim() == "[DONE]" {
            return self.done();
        }
        let Ok(event) = serde_json::from_str::<Value>(data) else {
            let quoted = self.peer.quote(data);
            let message = format!("{} answered with something that is not JSON: {quoted}", self.peer.address());
            return Err(Failure::last(LlmError::permanent(message, "check `llm.base_url`")));
        };
        if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
            return Err(refusal::of_event(&self.peer, error));
        }
        let piece = (self.read)(&event);
        if piece.usage.is_some() {
            self.answer.usage = piece.usage;
        }
        if self.answer.finish.is_some() {
            return Ok(if piece.usage.is_some() { Next::Whole } else { Next::Nothing });
        }
        let over = match self.filter.push(&piece.text) {
            Filtered::Text(text) => self.hand_out(&text, None),
            Filtered::Last(text) => self.hand_out(&text, Some(Finish::Ended)),
        };
        if over {
            return Ok(Next::Over);
        }
        if piece.finish.is_some() {
            let held = self.filter.finish();
            self.hand_out(&held, piece.finish);
            return Ok(match (self.answer.finish, self.answer.usage) {
                (Some(Finish::Stopped), _) => Next::Over,
                // llama.cpp and Mistral count in the last piece, others in one of its own.
                (_, Some(_)) => Next::Whole,
                (_, None) => Next::UsageOnly,
            });
        }
        Ok(if piece.thinks || !piece.text.is_empty() { Next::Thought } else { Next::Nothing })
    }

    /// Some servers end the stream without having said why the text ends.
    fn done(&mut self) -> Result<Next, Failure> {
        if self.answer.finish.is_none() {
            let held = self.filter.finish();
            self.hand_out(&held, Some(Finish::Ended));
        }
        Ok(Next::Whole)
    }

    /// True if the text is over, by `finish` or because the taker wants no more.
    fn hand_out(&mut self, text: &str, finish: Option<Finish>) -> bool {
        self.answer.finish = finish;
        if !text.is_empty() {
            self.answer.text.push_str(text);
            if (self.on_text)(text).is_break() {
                self.answer.finish = Some(Finish::Stopped);
            }
        }
        self.answer.finish.is_some()
    }
}

/// Why a stream of bytes broke.
#[derive(Debug, thiserror::Error)]
enum BodyError {
    #[error("{0}")]
    Transport(String),
    #[error("it is longer than {0} KiB, see `llm.response_kib`")]
    TooLong(u64),
}

/// Passes at most `most` bytes.
fn bounded<B: AsRef<[u8]>>(
    bytes: impl Stream<Item = reqwest::Result<B>>,
    most: u64,
) -> impl Stream<Item = Result<B, BodyError>> {
    let mut seen = 0_u64;
    bytes.map(move |bytes| {
        let bytes = bytes.map_err(|error| BodyError::Transport(innermost(&error.without_url())))?;
        seen = seen.saturating_add(u64::try_from(bytes.as_ref().len()).unwrap_or(u64::MAX));
        if seen > most { Err(BodyError::TooLong(most / 1024)) } else { Ok(bytes) }
    })
}

/// The beginning of a body; a broken connection ends it early.
pub(super) async fn read_up_to(mut response: Response, most: usize) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(bytes)) = response.chunk().await {
        body.extend_from_slice(&bytes[..bytes.len().min(most - body.len())]);
        if body.len() == most {
            break;
        }
    }
    body
}

fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
