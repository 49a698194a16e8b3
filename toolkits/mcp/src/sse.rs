//! The HTTP transport of 2024: the server's messages come as events of one long answer, ours go to the address that its
//! first event names. It does not know what a message means.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use futures_util::StreamExt;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use reqwest::Url;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::wire::{Line, RawAnswers};

/// A server that sends events.
pub(crate) struct Events {
    client: reqwest::Client,
    headers: HeaderMap,
    /// Where our messages go.
    address: Url,
    incoming: mpsc::Receiver<ServerJsonRpcMessage>,
    raw: RawAnswers,
    reading: AbortHandle,
}

/// Why it cannot be spoken to.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nothing was answered.
    Http(reqwest::Error),
    /// The answer is no stream of events.
    Status(StatusCode),
    /// The stream does not begin as it should.
    Stream(&'static str),
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(error) => error.fmt(formatter),
            Self::Status(status) => write!(formatter, "the answer is {status}"),
            Self::Stream(problem) => formatter.write_str(problem),
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Http(error) => Some(error),
            _ => None,
        }
    }
}

impl Events {
    /// Opens the stream and waits for its first event.
    pub(crate) async fn open(
        client: reqwest::Client,
        url: &str,
        headers: HeaderMap,
        message_bytes: usize,
    ) -> Result<Self, Failure> {
        let request = client.get(url).headers(headers.clone()).header(header::ACCEPT, "text/event-stream");
        let answer = request.send().await.map_err(Failure::Http)?;
        if answer.status() != StatusCode::OK {
            return Err(Failure::Status(answer.status()));
        }
        let base = answer.url().clone();
        let kind = answer.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        if !kind.starts_with(b"text/event-stream") {
            return Err(Failure::Stream("the answer is no stream of events"));
        }
        let mut parts = answer.bytes_stream();
        let mut reader = Reader::new(message_bytes);
        let (first, mut early) = loop {
            let part = parts.next().await.ok_or(Failure::Stream("the stream of events is empty"))?;
            let mut events = reader.read(&part.map_err(Failure::Http)?).into_iter();
            if let Some(first) = events.next() {
                break (first, events.collect::<Vec<_>>());
            }
        };
        let address = Some(first).filter(|event| event.is("endpoint")).and_then(|event| event.address(&base));
        // Our headers, and with them our keys, are for this server only.
        let address = address.filter(|address| address.origin() == base.origin());
        let address = address.ok_or(Failure::Stream("the stream of events does not name its address first"))?;
        let (messages, incoming) = mpsc::channel(QUEUED_MESSAGES);
        let raw = RawAnswers::default();
        let known = raw.clone();
        let reading = tokio::spawn(async move {
            loop {
                for message in early.iter().filter(|event| event.is("message")) {
                    let Some(message) = message.data.message(message_bytes, &known) else { continue };
                    if messages.send(message).await.is_err() {
                        return;
                    }
                }
                match parts.next().await {
                    Some(Ok(part)) => early = reader.read(&part),
                    _ => return,
                }
            }
        });
        Ok(Self { client, headers, address, incoming, raw, reading: reading.abort_handle() })
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

impl Transport<RoleClient> for Events {
    type Error = Failure;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = Result<(), Failure>> + Send + 'static {
        self.raw.note(&message);
        let request = self.client.post(self.address.clone()).headers(self.headers.clone()).timeout(SENT_WITHIN);
        async move {
            let body = serde_json::to_vec(&message).map_err(|_| Failure::Stream("the message cannot be written"))?;
            let request = request.header(header::CONTENT_TYPE, "application/json").body(body);
            let answer = request.send().await.map_err(Failure::Http)?;
            // What it says is in the stream.
            if answer.status().is_success() { Ok(()) } else { Err(Failure::Status(answer.status())) }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.incoming.recv().await
    }

    async fn close(&mut self) -> Result<(), Failure> {
        self.reading.abort();
        Ok(())
    }
}

/// Messages that wait before the stream is read on.
const QUEUED_MESSAGES: usize = 64;

/// How long a server may take to accept a message. Its answer comes by the stream.
const SENT_WITHIN: Duration = Duration::from_secs(30);

/// One event.
#[derive(Default)]
struct Event {
    name: String,
    data: Line,
}

impl Event {
    fn is(&self, name: &str) -> bool {
        self.name == name || (self.name.is_empty() && name == "message")
    }

    fn address(&self, base: &Url) -> Option<Url> {
        base.join(std::str::from_utf8(self.data.bytes()).ok()?.trim()).ok()
    }
}

/// Bytes as events.
struct Reader {
    most: usize,
    line: Line,
    event: Event,
    has_data: bool,
}

impl Reader {
    fn new(most: usize) -> Self {
        Self { most, line: Line::default(), event: Event::default(), has_data: false }
    }

    /// The events that end in this part.
    fn read(&mut self, part: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        let mut rest = part;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, behind) = rest.split_at(end);
            self.line.extend(line, self.most);
            rest = behind.get(1..).unwrap_or_default();
            let line = std::mem::take(&mut self.line).trimmed();
            events.extend(self.take(&line));
        }
        self.line.extend(rest, self.most);
        events
    }

    /// One line; the event, if it ends one.
    fn take(&mut self, line: &Line) -> Option<Event> {
        if line.bytes().is_empty() {
            let event = std::mem::take(&mut self.event);
            return std::mem::take(&mut self.has_data).then_some(event);
        }
        if let Some(name) = line.without("event:") {
            self.event.name = String::from_utf8_lossy(name.bytes()).into_owned();
        } else if let Some(data) = line.without("data:") {
            if std::mem::replace(&mut self.has_data, true) {
                self.event.data.add_line(&data, self.most);
            } else {
                self.event.data = data;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8], pieces: usize) -> Vec<(String, String)> {
        let mut reader = Reader::new(100);
        let events = text.chunks(pieces).flat_map(|piece| reader.read(piece)).collect::<Vec<_>>();
        let text = |line: &Line| String::from_utf8_lossy(line.bytes()).into_owned();
        events.into_iter().map(|event| (event.name.clone(), text(&event.data))).collect()
    }

    #[test]
    fn events_are_read() {
        let text = b": hello\n\nevent: endpoint\ndata: /m?s=1\n\nid: 4\ndata:{\r\ndata:}\r\n\r\nevent: none\n\ndata: x\n\nopen";
        let pair = |name: &str, data: &str| (name.to_owned(), data.to_owned());
        let expected = [pair("endpoint", "/m?s=1"), pair("", "{\n}"), pair("", "x")];
        for pieces in [1, 3, 200] {
            assert_eq!(read(text, pieces), expected, "{pieces}");
        }
    }

    proptest::proptest! {
        #[test]
        fn pieces_make_no_difference(
            text in "(data:|event:|\n|\r\n|x{0,150}| |: |é){0,30}",
            pieces in 1_usize..200,
        ) {
            proptest::prop_assert_eq!(read(text.as_bytes(), pieces), read(text.as_bytes(), text.len().max(1)));
        }
    }
}
