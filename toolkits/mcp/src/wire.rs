//! The bytes of a server as messages. It does not know what a message means, but for two kinds, nor how bytes come.
//!
//! The answers to `tools/list` and `tools/call` are handed on as the JSON that came: one tool or one kind of content
//! that the protocol's types do not know must not lose the rest. A text that is too long fails the call that it answers.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, CustomResult, ErrorCode, ErrorData, RequestId,
    ServerJsonRpcMessage, ServerResult,
};
use serde_json::Value;

/// The requests whose answers are handed on as they came.
#[derive(Clone, Default)]
pub(crate) struct RawAnswers(Arc<Mutex<HashSet<RequestId>>>);

impl RawAnswers {
    /// Takes note of what is about to be sent.
    pub(crate) fn note(&self, message: &ClientJsonRpcMessage) {
        let mut raw = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// True if the request is one of them; it is none any more.
    fn take(&self, id: &RequestId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id)
    }
}

/// One message as it comes in.
#[derive(Default)]
pub(crate) struct Line {
    /// All of it, or its beginning if it is too long.
    bytes: Vec<u8>,
    /// The last bytes of a line that is too long.
    tail: Vec<u8>,
    too_long: bool,
}

impl Line {
    /// Adds what came next. Of a text of more than `most` bytes only both ends are kept.
    pub(crate) fn extend(&mut self, bytes: &[u8], most: usize) {
        if !self.too_long && self.bytes.len().saturating_add(bytes.len()) <= most {
            self.bytes.extend_from_slice(bytes);
            return;
        }
        if !self.too_long {
            self.too_long = true;
            self.tail = self.bytes.split_off(self.bytes.len().saturating_sub(EDGE_BYTES));
            if self.bytes.len() < EDGE_BYTES {
                // The ends overlap.
                self.bytes.extend(self.tail.iter().take(EDGE_BYTES - self.bytes.len()));
            }
            self.bytes.truncate(EDGE_BYTES);
            self.bytes.shrink_to_fit();
        }
        self.bytes.extend(bytes.iter().take(EDGE_BYTES - self.bytes.len()));
        self.tail.extend(bytes.get(bytes.len().saturating_sub(EDGE_BYTES)..).unwrap_or_default());
        self.tail.drain(..self.tail.len().saturating_sub(EDGE_BYTES));
    }

    /// Adds another text, and a line break before it.
    pub(crate) fn add_line(&mut self, line: &Self, most: usize) {
        self.extend(b"\n", most);
        self.extend(&line.bytes, most);
        if line.too_long {
            // More than all that is allowed, so that it is not taken for a whole text.
            self.extend(&line.tail, 0);
        }
    }

    /// The text without a beginning that it has, such as `data:`, and a space behind that.
    pub(crate) fn without(&self, beginning: &str) -> Option<Self> {
        let bytes = self.bytes.strip_prefix(beginning.as_bytes())?;
        let bytes = bytes.strip_prefix(b" ").unwrap_or(bytes);
        Some(Self { bytes: bytes.to_vec(), tail: self.tail.clone(), too_long: self.too_long })
    }

    /// Without the carriage return at its end.
    pub(crate) fn trimmed(mut self) -> Self {
        let end = if self.too_long { &mut self.tail } else { &mut self.bytes };
        if end.last() == Some(&b'\r') {
            end.pop();
        }
        self
    }

    /// What there is of it: all, or the beginning.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What the server says with it. A text that is no message is noise, such as a banner, unless it can be seen to be
    /// the answer to a request: that fails then.
    pub(crate) fn message(&self, most: usize, raw: &RawAnswers) -> Option<ServerJsonRpcMessage> {
        let broken = |id: RequestId, code: ErrorCode, problem: String| {
            raw.take(&id);
            Some(ServerJsonRpcMessage::error(ErrorData::new(code, problem, None), Some(id)))
        };
        if self.too_long {
            let id = id_at_the_edges(&self.bytes, &self.tail)?;
            return broken(id, TOO_LONG, format!("the answer is longer than {most} bytes"));
        }
        let mut message: Value = match serde_json::from_slice(&self.bytes) {
            Ok(message) => message,
            Err(error) => {
                tracing::debug!(%error, "an MCP server sent what is no JSON");
                let end = self.bytes.get(self.bytes.len().saturating_sub(EDGE_BYTES)..).unwrap_or_default();
                let id = id_at_the_edges(self.bytes.get(..EDGE_BYTES).unwrap_or(&self.bytes), end)?;
                return broken(id, MALFORMED, "the answer is no JSON".to_owned());
            }
        };
        let id = answered(&message);
        if let Some(id) = &id
            && raw.take(id)
            && let Some(result) = message.get_mut("result").map(Value::take)
        {
            return Some(ServerJsonRpcMessage::response(ServerResult::CustomResult(CustomResult(result)), id.clone()));
        }
        match (serde_json::from_value(message), id) {
            (Ok(message), _) => Some(message),
            (Err(_), Some(id)) => broken(id, MALFORMED, "the answer has neither a result nor an error".to_owned()),
            (Err(error), None) => {
                tracing::debug!(%error, "an MCP server sent what is no message");
                None
            }
        }
    }
}

/// Bytes at each end of a line that is too long that are looked at for the number of the request.
const EDGE_BYTES: usize = 256;

/// The codes of the errors that stand for an answer that is too long, and for one that is no message; none of them is
/// the protocol's.
pub(crate) const TOO_LONG: ErrorCode = ErrorCode(-32_099);
pub(crate) const MALFORMED: ErrorCode = ErrorCode(-32_098);

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
        raw.0.lock().unwrap().insert(RequestId::Number(7));
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

    #[test]
    fn an_answer_that_is_no_message_fails_its_call() {
        let error = |message: &str| {
            Some(json!({"jsonrpc": "2.0", "id": 7, "error": {"code": MALFORMED.0, "message": message}}))
        };
        assert_eq!(read(r#"{"jsonrpc":"2.0","id":7,"result":{"a"}}"#, 5, 1000), error("the answer is no JSON"));
        assert_eq!(read(r#"{"jsonrpc":"2.0","id":7,"resul"#, 5, 1000), error("the answer is no JSON"));
        assert_eq!(read(r#"{"jsonrpc":"2.0","id":7}"#, 5, 1000), error("the answer has neither a result nor an error"));
    }

    proptest::proptest! {
        /// However a text is cut and however long it may be, it is never kept beyond the limit, and what comes of it
        /// does not depend on the cuts.
        #[test]
        fn pieces_make_no_difference(
            text in r#"\{"jsonrpc":"2.0",("id":7,)?"result":\{"a":"x{0,700}"\}(,"id":7)?\}|.{0,40}|(\{|\}|"id":|7|,|"jsonrpc":"2.0"| ){0,20}"#,
            pieces in 1_usize..900,
            most in 1_usize..800,
        ) {
            let whole = read(&text, text.len().max(1), most);
            proptest::prop_assert_eq!(read(&text, pieces, most), whole);
            let mut line = Line::default();
            for piece in text.as_bytes().chunks(pieces) {
                line.extend(piece, most);
            }
            proptest::prop_assert!(line.bytes.len() <= most.max(EDGE_BYTES) && line.tail.len() <= EDGE_BYTES);
        }

        #[test]
        fn any_bytes_are_taken(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
            let mut line = Line::default();
            line.extend(&bytes, 200);
            let _ = line.message(200, &RawAnswers::default());
        }
    }
}
