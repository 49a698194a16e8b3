//! What a tool answered, read as the value that a program gets or as the error that it reads.

use fimble_toolkit::{ErrorKind, ToolError};
use serde_json::Value;

use crate::content::{self, text};
use crate::{Limits, size::json_bytes};

/// The value of an answer: its structured content, else its texts, else its contents as records.
///
/// Several texts are one, with line breaks; if that is a JSON object or list, it is read. Texts that merely look like a
/// number or a word of JSON stay texts.
pub(crate) fn value(mut answer: Value, tool: &str, wrapped: bool, limits: &Limits) -> Result<Value, ToolError> {
    if !answer.is_object() {
        return Err(ToolError::failed(format!("{tool} answered with what is no result of a tool"))
            .with_hint("look whether it took effect, or use another operation"));
    }
    let contents = match answer.get_mut("content").map(Value::take) {
        Some(Value::Array(contents)) => contents,
        _ => Vec::new(),
    };
    if answer.get("isError").and_then(Value::as_bool) == Some(true) {
        return Err(failure(tool, &contents, limits));
    }
    if answer.get("resultType").and_then(Value::as_str) == Some("task") {
        return Err(ToolError::failed(format!("{tool} goes on behind its answer as a task, which cannot be followed"))
            .with_hint("look later whether it took effect, by another operation"));
    }
    let value = match answer.get_mut("structuredContent").map(Value::take) {
        Some(Value::Object(mut fields)) if wrapped && fields.contains_key("result") => {
            fields.remove("result").unwrap_or_default()
        }
        Some(structured) if !structured.is_null() => structured,
        _ => unstructured(contents),
    };
    let size = json_bytes(&value);
    if size > limits.result_bytes {
        let message = format!("the result of {tool} has {size} bytes of JSON, more than {}", limits.result_bytes);
        return Err(ToolError::failed(message).with_hint("ask for less, e.g. by a filter, a limit or page by page"));
    }
    Ok(value)
}

/// The answer that says of itself that it is an error.
fn failure(tool: &str, contents: &[Value], limits: &Limits) -> ToolError {
    let message = texts(contents, limits);
    let message = message.trim_end_matches('.');
    ToolError::failed(if message.is_empty() {
        format!("{tool} failed and does not say why")
    } else {
        message.to_owned()
    })
}

/// The texts of an answer, cut.
pub(crate) fn texts(contents: &[Value], limits: &Limits) -> String {
    let texts: Vec<&str> = contents.iter().filter_map(text).collect();
    limits.text(&texts.join("\n"))
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
        return Value::Array(contents.into_iter().map(content::record).collect());
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
