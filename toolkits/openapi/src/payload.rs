//! A value as the body of a request.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use fimble_toolkit::ToolError;
use reqwest::RequestBuilder;
use reqwest::header::CONTENT_TYPE;
use reqwest::multipart::{Form, Part};
use serde_json::{Map, Value};

use crate::Limits;
use crate::body::{Field, Kind, Media};
use crate::encode::{Style, scalar};
use crate::request::form_pairs;

/// Adds the body and its content type.
///
/// # Errors
/// `InvalidArgument`: the value is too large, or cannot be written in this content type.
pub(crate) fn add(
    request: RequestBuilder,
    media: &Media,
    value: &Value,
    limits: &Limits,
) -> Result<RequestBuilder, ToolError> {
    let bytes = match media.kind {
        Kind::Multipart => return Ok(request.multipart(multipart(media, value, limits)?)),
        Kind::Json => value.to_string().into_bytes(),
        Kind::Form => form(media, value)?.into_bytes(),
        Kind::Bytes => file(value)?.0,
    };
    within(bytes.len(), limits)?;
    Ok(request.header(CONTENT_TYPE, media.content_type.as_str()).body(bytes))
}

fn within(bytes: usize, limits: &Limits) -> Result<(), ToolError> {
    if bytes <= limits.request_bytes {
        return Ok(());
    }
    let message = format!("the body has {bytes} bytes, more than {}", limits.request_bytes);
    Err(ToolError::invalid_argument(message).with_hint("send less, or in several calls"))
}

fn fields(value: &Value) -> Result<&Map<String, Value>, ToolError> {
    value.as_object().ok_or_else(|| ToolError::invalid_argument("the body is a form and must be a dict of its fields"))
}

fn form(media: &Media, value: &Value) -> Result<String, ToolError> {
    let mut pairs = Vec::new();
    for (name, value) in fields(value)? {
        let field = media.fields.get(name);
        let (style, explode) = field.map_or((Style::Form, true), |field| (field.style, field.explode));
        pairs.extend(form_pairs(name, value, style, explode));
    }
    Ok(pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&"))
}

fn multipart(media: &Media, value: &Value, limits: &Limits) -> Result<Form, ToolError> {
    let mut form = Form::new();
    let mut bytes = 0_usize;
    for (name, value) in fields(value)? {
        let field = media.fields.get(name);
        let values = match value {
            Value::Array(items) if !items.iter().any(Value::is_array) => items.as_slice(),
            Value::Null => &[],
            other => std::slice::from_ref(other),
        };
        for value in values {
            let (part, size) = part(name, value, field)?;
            bytes = bytes.saturating_add(size);
            form = form.part(name.clone(), part);
        }
    }
    within(bytes, limits)?;
    Ok(form)
}

fn part(name: &str, value: &Value, field: Option<&Field>) -> Result<(Part, usize), ToolError> {
    let kind = field.and_then(|field| field.content_type.as_deref());
    let (bytes, filename, usual) = if field.is_some_and(|field| field.binary) {
        let (bytes, filename) = file(value)?;
        (bytes, Some(filename.unwrap_or_else(|| name.to_owned())), Some("application/octet-stream"))
    } else if value.is_object() || value.is_array() {
        (value.to_string().into_bytes(), None, Some("application/json"))
    } else {
        (scalar(value).into_bytes(), None, None)
    };
    let size = bytes.len();
    let mut part = Part::bytes(bytes);
    if let Some(filename) = filename {
        part = part.file_name(filename);
    }
    match kind.or(usual) {
        Some(kind) => {
            let wrong = |_| ToolError::invalid_argument(format!("the content type of `{name}` cannot be sent"));
            part.mime_str(kind).map(|part| (part, size)).map_err(wrong)
        }
        None => Ok((part, size)),
    }
}

/// The bytes of a file, and its name if it was given: a text, or `{"base64": …, "filename": …}`.
fn file(value: &Value) -> Result<(Vec<u8>, Option<String>), ToolError> {
    match value {
        Value::Object(fields) if fields.contains_key("base64") => {
            let encoded = fields.get("base64").and_then(Value::as_str).unwrap_or_default();
            let bytes = BASE64_STANDARD.decode(encoded.trim());
            let bytes =
                bytes.map_err(|error| ToolError::invalid_argument(format!("`base64` is no base64: {error}")))?;
            Ok((bytes, fields.get("filename").and_then(Value::as_str).map(str::to_owned)))
        }
        Value::Object(_) | Value::Array(_) => Ok((value.to_string().into_bytes(), None)),
        other => Ok((scalar(other).into_bytes(), None)),
    }
}
