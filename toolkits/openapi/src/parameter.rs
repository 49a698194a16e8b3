//! A parameter of an operation as its document has it.

use serde_json::{Map, Value};

use crate::document::{Document, is_true, items, text};
use crate::encode::Style;

/// Where a parameter stands in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Location {
    /// A piece of the path.
    Path,
    /// A part of the query.
    Query,
    /// A header.
    Header,
    /// A cookie.
    Cookie,
}

/// How an argument becomes a part of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The server's name for it.
    pub(crate) name: String,
    /// Where it stands.
    pub(crate) location: Location,
    /// How lists and objects are written.
    pub(crate) style: Style,
    /// True if each item or field stands for itself.
    pub(crate) explode: bool,
    /// True if it is written as JSON.
    pub(crate) json: bool,
    /// True if characters such as `/` stay as they are.
    pub(crate) allow_reserved: bool,
}

/// A parameter, its schema still in the document.
#[derive(Debug)]
pub(crate) struct Declared<'a> {
    /// How it is sent.
    pub(crate) place: Place,
    /// Its schema; `None` says nothing.
    pub(crate) schema: Option<&'a Value>,
    /// Its description, or empty.
    pub(crate) description: &'a str,
    /// True if a call without it is refused.
    pub(crate) required: bool,
}

/// The parameters of an operation with those of its path; of two with the same name and place the operation's counts.
///
/// # Errors
/// One sentence: a parameter that cannot be read.
pub(crate) fn declared<'a>(
    document: &'a Document,
    path_item: &'a Map<String, Value>,
    operation: &'a Map<String, Value>,
) -> Result<Vec<Declared<'a>>, String> {
    let mut all: Vec<Declared<'a>> = Vec::new();
    for value in items(path_item, "parameters").iter().chain(items(operation, "parameters")) {
        let fields = document.object(value).map_err(|problem| format!("a parameter cannot be read: {problem}"))?;
        let one = read(fields)?;
        let same =
            |other: &Declared<'_>| other.place.name == one.place.name && other.place.location == one.place.location;
        match all.iter().position(same) {
            Some(index) => {
                if let Some(slot) = all.get_mut(index) {
                    *slot = one;
                }
            }
            None => all.push(one),
        }
    }
    Ok(all)
}

fn read(fields: &Map<String, Value>) -> Result<Declared<'_>, String> {
    let name = fields.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
    let name = name.ok_or("a parameter has no name")?;
    let (location, usual) = match text(fields, "in") {
        Some("path") => (Location::Path, Style::Simple),
        Some("query") => (Location::Query, Style::Form),
        Some("header") => (Location::Header, Style::Simple),
        Some("cookie") => (Location::Cookie, Style::Form),
        other => return Err(format!("the parameter `{name}` is in `{}`", other.unwrap_or_default())),
    };
    let style = match (text(fields, "style"), location) {
        (Some("label"), Location::Path) => Style::Label,
        (Some("matrix"), Location::Path) => Style::Matrix,
        (Some("spaceDelimited"), Location::Query) => Style::SpaceDelimited,
        (Some("pipeDelimited"), Location::Query) => Style::PipeDelimited,
        (Some("deepObject"), Location::Query) => Style::DeepObject,
        _ => usual,
    };
    let explode =
        fields.get("explode").and_then(Value::as_bool).unwrap_or(matches!(style, Style::Form | Style::DeepObject));
    let content = fields.get("content").and_then(Value::as_object).and_then(|content| content.iter().next());
    let schema = fields.get("schema").or_else(|| content.and_then(|(_, media)| media.get("schema")));
    Ok(Declared {
        place: Place {
            name: name.to_owned(),
            location,
            style,
            explode,
            json: content.is_some_and(|(kind, _)| kind.contains("json")),
            allow_reserved: is_true(fields, "allowReserved"),
        },
        schema,
        description: text(fields, "description").unwrap_or_default(),
        required: is_true(fields, "required") || location == Location::Path,
    })
}

/// A piece of a path: its text as it is sent, or the name of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Text.
    Text(String),
    /// A parameter.
    Name(String),
}

/// The pieces of a path such as `/pets/{id}`.
pub(crate) fn pieces(path: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        if !before.is_empty() {
            pieces.push(Piece::Text(before.to_owned()));
        }
        pieces.push(Piece::Name(name.to_owned()));
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    pieces
}

/// The parameter of a name in the path that the document forgot to declare.
pub(crate) fn undeclared(name: &str) -> Declared<'static> {
    Declared {
        place: Place {
            name: name.to_owned(),
            location: Location::Path,
            style: Style::Simple,
            explode: false,
            json: false,
            allow_reserved: false,
        },
        schema: None,
        description: "",
        required: true,
    }
}
