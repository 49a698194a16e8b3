//! The pipes of a server as messages: one JSON text a line. It does not know what a message means, but for two kinds.
//!
//! The answers to `tools/list` and `tools/call` are handed on as the JSON that came: one tool or one kind of content
//! that the protocol's types do not know must not lose the rest. A line that is too long fails the call that it answers.

use std::collections::HashSet;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, CustomResult, ErrorCode, ErrorData, RequestId,
    ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc;

/// A server's standard input and output. Reading and writing have tasks of their own: a wait that is given up never
/// leaves half a message behind.
pub(crate) struct Pipes {
    outgoing: Option<mpsc::Sender<Vec<u8>>>,
    incoming: mpsc::Receiver<ServerJsonRpcMessage>,
    raw: RawAnswers,
}

/// The requests whose answers are handed on as they came.
type RawAnswers = Arc<Mutex<HashSet<RequestId>>>;

impl Pipes {
    /// Speaks over a process's pipes until it closes them or is `gone`: what it started may hold them for longer. A line
    /// of more than `message_bytes` is passed over.
    pub(crate) fn new(
        stdin: ChildStdin,
        stdout: ChildStdout,
        gone: impl Future<Output = ()> + Send + 'static,
        message_bytes: usize,
    ) -> Self {
        let (outgoing, lines) = mpsc::channel(QUEUED_MESSAGES);
        let (messages, incoming) = mpsc::channel(QUEUED_MESSAGES);
        let raw = RawAnswers::default();
        tokio::spawn(write_lines(stdin, lines));
        let reading = read_lines(stdout, message_bytes, Arc::clone(&raw), messages);
        tokio::spawn(async move {
            tokio::select! {
                () = reading => {}
                () = gone => {}
            }
        });
        Self { outgoing: Some(outgoing), incoming, raw }
    }

    fn note(&self, message: &ClientJsonRpcMessage) {
        let mut raw = self.raw.lock().unwrap_or_else(PoisonError::into_inner);
        match message {
            ClientJsonRpcMessage::Request(request) => {
                if matches!(request.request, ClientRequest::CallToolRequest(_) | ClientRequest::ListToolsRequest(_)) {
                    raw.insert(request.id.clone());
                }
            }
            ClientJsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    raw.remove(id);
                }
            }
            _ => {}
        }
    }
}

impl Transport<RoleClient> for Pipes {
    type Error = io::Error;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.note(&message);
        let outgoing = self.outgoing.clone();
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let closed = || io::Error::new(io::ErrorKind::BrokenPipe, "the server takes no more input");
            outgoing.ok_or_else(closed)?.send(line).await.map_err(|_| closed())
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.incoming.recv().await
    }

    /// The end of its input tells a server to end.
    async fn close(&mut self) -> io::Result<()> {
        self.outgoing = None;
        Ok(())
    }
}

/// Messages that wait in each direction before the sender waits too.
const QUEUED_MESSAGES: usize = 64;

async fn write_lines(mut stdin: ChildStdin, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

/// Reads until the server closes its output or nobody listens. Lines that are no message are noise, such as a banner.
async fn read_lines(stdout: ChildStdout, most: usize, raw: RawAnswers, messages: mpsc::Sender<ServerJsonRpcMessage>) {
    let mut reader = BufReader::with_capacity(64 * 1024, stdout);
    let mut line = Line::default();
    loop {
        let Ok(available @ [_, ..]) = reader.fill_buf().await else { return };
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(available.len());
        line.extend(available.get(..taken).unwrap_or_default(), most);
        reader.consume(end.map_or(taken, |end| end + 1));
        if end.is_none() {
            continue;
        }
        let message = line.message(most, &raw);
        line = Line::default();
        if let Some(message) = message
            && messages.send(message).await.is_err()
        {
            return;
        }
    }
}

/// One line as it comes in.
#[derive(Default)]
struct Line {
    /// The line, or its beginning if it is too long.
    bytes: Vec<u8>,
    /// The last bytes of a line that is too long.
    tail: Vec<u8>,
    too_long: bool,
}

impl Line {
    fn extend(&mut self, bytes: &[u8], most: usize) {
        if !self.too_long && self.bytes.len().saturating_add(bytes.len()) > most {
            self.too_long = true;
            self.tail = self.bytes.split_off(self.bytes.len().saturating_sub(EDGE_BYTES));
            self.bytes.truncate(EDGE_BYTES);
            self.bytes.shrink_to_fit();
            if self.bytes.is_empty() {
                // All that there was is short enough to be both the beginning and the end.
                self.bytes.clone_from(&self.tail);
                self.bytes.extend(bytes.iter().take(EDGE_BYTES));
            }
        }
        if self.too_long {
            self.tail.extend(bytes.get(bytes.len().saturating_sub(EDGE_BYTES)..).unwrap_or_default());
            self.tail.drain(..self.tail.len().saturating_sub(EDGE_BYTES));
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn message(&self, most: usize, raw: &RawAnswers) -> Option<ServerJsonRpcMessage> {
        if self.too_long {
            let id = id_at_the_edges(&self.bytes, &self.tail)?;
            raw.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            let error = ErrorData::new(TOO_LONG, format!("the answer is longer than {most} bytes"), None);
            return Some(ServerJsonRpcMessage::error(error, Some(id)));
        }
        let mut message: Value = serde_json::from_slice(&self.bytes).ok()?;
        if let Some(id) = answered(&message)
            && raw.lock().unwrap_or_else(PoisonError::into_inner).remove(&id)
            && let Some(result) = message.get_mut("result").map(Value::take)
        {
            return Some(ServerJsonRpcMessage::response(ServerResult::CustomResult(CustomResult(result)), id));
        }
        let parsed = serde_json::from_value(message);
        parsed.inspect_err(|error| tracing::debug!(%error, "an MCP server sent what is no message")).ok()
    }
}

/// Bytes at each end of a line that is too long that are looked at for the number of the request.
const EDGE_BYTES: usize = 256;

/// The code of the error that stands for an answer that is too long; not one of the protocol's.
pub(crate) const TOO_LONG: ErrorCode = ErrorCode(-32_099);

/// The request that a message answers. Some servers give the number back as text.
fn answered(message: &Value) -> Option<RequestId> {
    if message.get("method").is_some() {
        return None;
    }
    match message.get("id")? {
        Value::Number(number) => number.as_i64().map(RequestId::Number),
        Value::String(text) => text.parse().ok().map(RequestId::Number),
        _ => None,
    }
}

/// The `id` of the outermost object: it is read only where nothing but the protocol's own fields stands outside of it.
fn id_at_the_edges(head: &[u8], tail: &[u8]) -> Option<RequestId> {
    let text = |bytes: &[u8]| -> String {
        String::from_utf8_lossy(bytes).chars().filter(|character| !character.is_whitespace()).collect()
    };
    let (head, tail) = (text(head), text(tail));
    let version = "\"jsonrpc\":\"2.0\"";
    let first = head.strip_prefix('{').map(|fields| {
        let fields = fields.strip_prefix(version).map_or(fields, |rest| rest.strip_prefix(',').unwrap_or(rest));
        fields.strip_prefix("\"id\":").map(|rest| rest.split(',').next().unwrap_or_default().to_owned())
    });
    let last = tail.strip_suffix('}').map(|fields| {
        let fields = fields.strip_suffix(version).map_or(fields, |rest| rest.strip_suffix(',').unwrap_or(rest));
        fields.rsplit_once("\"id\":").map(|(_, number)| number.to_owned())
    });
    let numbers = [first.flatten(), last.flatten()];
    numbers.into_iter().flatten().find_map(|number| number.parse().ok().map(RequestId::Number))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The message of a line that comes in pieces, when request 7 is one of those whose answers come as they are.
    fn read(text: &str, pieces: usize, most: usize) -> Option<Value> {
        let raw = RawAnswers::default();
        raw.lock().unwrap().insert(RequestId::Number(7));
        let mut line = Line::default();
        for piece in text.as_bytes().chunks(pieces) {
            line.extend(piece, most);
        }
        line.message(most, &raw).map(|message| serde_json::to_value(message).unwrap())
    }

    #[test]
    fn an_answer_to_a_tool_call_comes_as_it_is() {
        let result = json!({"content": [{"type": "hologram"}]});
        for id in ["7", "\"7\""] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
            assert_eq!(read(&text, 5, 1000), Some(json!({"jsonrpc": "2.0", "id": 7, "result": result})));
        }
        assert_eq!(read("Starting…", 5, 1000), None);
        assert_eq!(read("[[[", 5, 1000), None);
    }

    #[test]
    fn an_answer_that_is_too_long_fails_its_call() {
        let filler = "x".repeat(2000);
        let long = [
            format!(r#"{{"jsonrpc": "2.0", "id": 7, "result": {{"a": "{filler}"}}}}"#),
            format!(r#"{{"id":7,"result":{{"a":"{filler}"}},"jsonrpc":"2.0"}}"#),
            format!(r#"{{"result":{{"a":"{filler}","b":{{"id":8}}}},"jsonrpc":"2.0","id":7}}"#),
            format!(r#"{{"result":{{"a":"{filler}"}},"id":7,"jsonrpc":"2.0"}}"#),
        ];
        let error = json!({"code": TOO_LONG.0, "message": "the answer is longer than 1000 bytes"});
        let expected = json!({"jsonrpc": "2.0", "id": 7, "error": error});
        for text in &long {
            for pieces in [7, 300, 1500, 4096] {
                assert_eq!(read(text, pieces, 1000).as_ref(), Some(&expected), "{pieces}: {text}");
            }
        }
        let inner = format!(r#"{{"jsonrpc":"2.0","result":{{"id":7,"a":"{filler}","b":{{"id":7}}}}}}"#);
        assert_eq!(read(&inner, 300, 1000), None);
    }
}
