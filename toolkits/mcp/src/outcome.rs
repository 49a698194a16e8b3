//! What a tool answered, read as the value that a program gets or as the error that it reads.

use fimble_toolkit::{ErrorKind, ToolError};
use serde_json::{Map, Value};

use crate::Limits;

/// The value of an answer: its structured content, else its texts, else its contents as the server sent them.
///
/// Several texts are one, with line breaks; if that is a JSON object or list, it is read. Texts that merely look like a
/// number or a word of JSON stay texts.
pub(crate) fn value(mut answer: Value, tool: &str, wrapped: bool, limits: &Limits) -> Result<Value, ToolError> {
    let contents = match answer.get_mut("content").map(Value::take) {
        Some(Value::Array(contents)) => contents,
        _ => Vec::new(),
    };
    if answer.get("isError").and_then(Value::as_bool) == Some(true) {
        return Err(failure(tool, &contents, limits));
    }
    if answer.get("resultType").and_then(Value::as_str) == Some("input_required") {
        let message = format!("{tool} asks its caller for more input, which a program cannot give");
        return Err(
            ToolError::failed(message).with_hint("give everything it needs as arguments, or use another operation")
        );
    }
    let value = match answer.get_mut("structuredContent").map(Value::take) {
        Some(Value::Object(mut fields)) if wrapped && fields.contains_key("result") => {
            fields.remove("result").unwrap_or_default()
        }
        Some(structured) if !structured.is_null() => structured,
        _ => unstructured(contents),
    };
    let size = size(&value);
    if size > limits.result_bytes {
        let message = format!("the result of {tool} has {size} bytes of JSON, more than {}", limits.result_bytes);
        return Err(ToolError::failed(message).with_hint("ask for less, e.g. by a filter, a limit or page by page"));
    }
    Ok(value)
}

/// The answer that says of itself that it is an error.
fn failure(tool: &str, contents: &[Value], limits: &Limits) -> ToolError {
    let texts: Vec<&str> = contents.iter().filter_map(text).collect();
    let message = limits.text(&texts.join("\n"));
    let message = message.trim_end_matches('.');
    ToolError::failed(if message.is_empty() {
        format!("{tool} failed and does not say why")
    } else {
        message.to_owned()
    })
}

/// An error of the protocol: many servers report a tool's failure this way.
pub(crate) fn refusal(tool: &str, code: i32, message: &str, limits: &Limits) -> ToolError {
    let message = limits.text(message);
    let message = message.trim_end_matches('.');
    match code {
        INVALID_PARAMETERS => ToolError::invalid_argument(format!("{tool}: {message}")),
        METHOD_NOT_FOUND => ToolError::new(ErrorKind::UnknownOperation, format!("{tool}: {message}")),
        _ => ToolError::failed(format!("{tool}: {message}")),
    }
}

const INVALID_PARAMETERS: i32 = -32_602;
const METHOD_NOT_FOUND: i32 = -32_601;

fn unstructured(contents: Vec<Value>) -> Value {
    let texts: Vec<&str> = contents.iter().filter_map(text).collect();
    if texts.len() < contents.len() {
        return Value::Array(contents.into_iter().map(without_hints).collect());
    }
    if texts.is_empty() {
        return Value::Null;
    }
    let text = texts.join("\n");
    if text.trim_start().starts_with(['{', '['])
        && let Ok(value) = serde_json::from_str(&text)
    {
        return value;
    }
    Value::String(text)
}

fn text(content: &Value) -> Option<&str> {
    (content.get("type").and_then(Value::as_str) == Some("text")).then(|| content.get("text"))??.as_str()
}

/// An image, a resource or the like, without what is meant for a host that shows it.
fn without_hints(content: Value) -> Value {
    let Value::Object(fields) = content else { return content };
    let kept = fields.into_iter().filter(|(key, _)| key != "annotations" && key != "_meta");
    Value::Object(kept.collect::<Map<_, _>>())
}

/// Bytes of the value as JSON, counted and not kept.
fn size(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}
