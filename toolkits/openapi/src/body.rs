//! The body of a request as its document has it: which content types, and whether its fields are parameters of their own.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::document::{Document, is_true, text};
use crate::encode::Style;
use crate::view::{Direction, View};

/// How a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// JSON.
    Json,
    /// `application/x-www-form-urlencoded`.
    Form,
    /// `multipart/form-data`.
    Multipart,
    /// Text, or bytes as base64.
    Bytes,
}

/// One content type of a body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Media {
    /// What the request's header says.
    pub(crate) content_type: String,
    /// How it is written.
    pub(crate) kind: Kind,
    /// What is special about some fields of a form.
    pub(crate) fields: BTreeMap<String, Field>,
}

/// A field of a form.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    /// How lists and objects are written.
    pub(crate) style: Style,
    /// True if each item or field stands for itself.
    pub(crate) explode: bool,
    /// The content type of a part, if the document names one.
    pub(crate) content_type: Option<String>,
    /// True if it is a file.
    pub(crate) binary: bool,
}

/// A body, its schema still in the document.
pub(crate) struct Declared<'a> {
    /// The content types, the one that is used first.
    pub(crate) media: Vec<Media>,
    /// True if the caller says which of them.
    pub(crate) chosen: bool,
    /// The schema for the first of them.
    pub(crate) schema: Option<&'a Value>,
    /// Its description, or empty.
    pub(crate) description: &'a str,
    /// True if there must be one.
    pub(crate) required: bool,
}

/// Fields that are parameters of their own; an object of more is one parameter.
const MOST_FIELDS: usize = 60;

/// The body of an operation; `None` if it has none.
///
/// # Errors
/// One sentence: why it cannot be read.
pub(crate) fn declared<'a>(
    document: &'a Document,
    operation: &'a Map<String, Value>,
) -> Result<Option<Declared<'a>>, String> {
    let Some(body) = operation.get("requestBody") else { return Ok(None) };
    let body = document.object(body).map_err(|problem| format!("its body cannot be read: {problem}"))?;
    let Some(content) = body.get("content").and_then(Value::as_object).filter(|content| !content.is_empty()) else {
        return Ok(None);
    };
    let mut ranked: Vec<(u8, &str, &Value)> =
        content.iter().map(|(name, media)| (rank(name), name.as_str(), media)).collect();
    ranked.sort_by_key(|(rank, _, _)| *rank);
    // Ways to patch mean different things, so that the caller says which. `application/json` alone says nothing of that.
    let patches = ranked.iter().filter(|(rank, _, _)| (PLAIN_JSON + 1..=JSON_PATCH).contains(rank)).count();
    let chosen = patches > 1 && ranked.first().is_some_and(|(rank, _, _)| *rank != PLAIN_JSON);
    ranked.truncate(if chosen { patches } else { 1 });
    let schema = ranked.first().and_then(|(_, _, media)| media.get("schema"));
    let media = ranked.iter().map(|(rank, name, media)| read(document, *rank, name, media));
    Ok(Some(Declared {
        media: media.collect(),
        chosen,
        schema,
        description: text(body, "description").unwrap_or_default(),
        required: is_true(body, "required"),
    }))
}

const PLAIN_JSON: u8 = 0;
const JSON_PATCH: u8 = 3;
const FORM: u8 = 4;
const MULTIPART: u8 = 5;

fn rank(content_type: &str) -> u8 {
    let name = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match name.as_str() {
        "application/json" | "*/*" | "application/*" => PLAIN_JSON,
        "application/merge-patch+json" => 1,
        "application/json-patch+json" => JSON_PATCH,
        name if name.ends_with("+json") || name.ends_with("/json") => 2,
        "application/x-www-form-urlencoded" => FORM,
        "multipart/form-data" => MULTIPART,
        name if name.starts_with("text/") => 6,
        _ => 7,
    }
}

fn read(document: &Document, rank: u8, name: &str, media: &Value) -> Media {
    let schema = media.get("schema");
    let kind = match rank {
        FORM => Kind::Form,
        MULTIPART => Kind::Multipart,
        PLAIN_JSON if name.contains('*') && schema.is_some_and(|schema| is_binary(document, schema)) => Kind::Bytes,
        PLAIN_JSON..=JSON_PATCH => Kind::Json,
        _ => Kind::Bytes,
    };
    let content_type = match (kind, name.contains('*')) {
        (Kind::Json, true) => "application/json",
        (Kind::Bytes, true) => "application/octet-stream",
        _ => name,
    };
    let mut fields = BTreeMap::new();
    if let (Kind::Form | Kind::Multipart, Some(schema)) = (kind, schema) {
        let encoding = media.get("encoding").and_then(Value::as_object);
        for (name, schema) in View::new(document, schema).properties(document, Direction::Request) {
            let empty = Map::new();
            let said = encoding.and_then(|encoding| encoding.get(name)).and_then(Value::as_object).unwrap_or(&empty);
            let style = match text(said, "style") {
                Some("deepObject") => Style::DeepObject,
                Some("spaceDelimited") => Style::SpaceDelimited,
                Some("pipeDelimited") => Style::PipeDelimited,
                _ => Style::Form,
            };
            let explode = said.get("explode").and_then(Value::as_bool).unwrap_or(true);
            let content_type = text(said, "contentType").filter(|kind| !kind.contains(['*', ','])).map(str::to_owned);
            let view = View::new(document, schema);
            let item = if view.kinds() == ["array"] { view.get("items") } else { None };
            let binary = is_binary(document, item.unwrap_or(schema));
            fields.insert(name.to_owned(), Field { style, explode, content_type, binary });
        }
    }
    Media { content_type: content_type.to_owned(), kind, fields }
}

/// True if a value is a file: `format: binary` in 3.0, a media type of its content in 3.1.
pub(crate) fn is_binary(document: &Document, schema: &Value) -> bool {
    let view = View::new(document, schema);
    let is_text = matches!(view.kinds().as_slice(), [] | ["string"]);
    is_text && (view.text("format") == Some("binary") || view.get("contentMediaType").is_some())
}

/// The fields of a body that can be parameters of their own: those of an object that has no others and is no choice.
pub(crate) fn fields<'a>(document: &'a Document, body: &Declared<'a>) -> Option<(View<'a>, Vec<(&'a str, &'a Value)>)> {
    let media = body.media.first()?;
    if body.chosen || media.kind == Kind::Bytes {
        return None;
    }
    let view = View::new(document, body.schema?);
    let properties = view.properties(document, Direction::Request);
    let open = match view.get("additionalProperties") {
        Some(Value::Bool(open)) => *open,
        Some(Value::Object(fields)) => !fields.is_empty(),
        _ => false,
    };
    let usable = view.is_object() && !view.nullable() && !open && !properties.is_empty();
    (usable && properties.len() <= MOST_FIELDS).then_some((view, properties))
}
