//! A request's address: its host is the author's, values are pieces of its path and its query.

use fimble_toolkit::ToolError;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::body::Problem;
use crate::parameter::{Argument, Parameter, Text};
use crate::template::{self, Piece};
use crate::written::Kind;

/// All but RFC 3986's unreserved characters.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// An address with placeholders.
#[derive(Debug)]
pub(crate) struct Url {
    pieces: Vec<Piece>,
}

impl Url {
    /// # Errors
    /// No absolute address, a value within its host, a value that may be absent or is a list.
    pub(crate) fn new(text: &str, parameters: &[Parameter]) -> Result<Self, Problem> {
        let wrong = |reason: &str, hint| Err((reason.to_owned(), hint));
        if text.contains("${") {
            return wrong(
                "names a secret in its `url`",
                "put it into a header, as in `Authorization = 'Bearer ${NAME}'`",
            );
        }
        let pieces = template::pieces(text, false, parameters)?;
        let begun = match pieces.first() {
            Some(Piece::Text(text)) => text.as_str(),
            _ => "",
        };
        let whole = "write all of it, such as https://example.org/items/{id}";
        let Some(rest) = begun.strip_prefix("https://").or_else(|| begun.strip_prefix("http://")) else {
            return wrong("has a `url` that does not begin with https:// or http://", whole);
        };
        let host = authority(begun);
        if host.is_empty() || host.contains(|character: char| character == '@' || character.is_whitespace()) {
            return wrong("has a `url` without a plain host", whole);
        }
        if rest.len() == host.len() && pieces.len() > 1 {
            return wrong("takes the host of its `url` from a parameter", "name the host itself");
        }
        for index in template::values(&pieces) {
            let parameter = &parameters[index];
            if parameter.kind == Kind::List {
                return wrong("has a list in its `url`", "give it an entry of `query` alone");
            }
            if !parameter.declared.required && parameter.declared.default.is_none() {
                return wrong(
                    "has a value in its `url` that may be absent",
                    "give it a default, or move it to `query`",
                );
            }
        }
        Ok(Self { pieces })
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = usize> {
        template::values(&self.pieces)
    }

    /// The address with the values in place, encoded.
    ///
    /// # Errors
    /// `InvalidArgument`: a value that would lead to another path than the one that the author wrote.
    pub(crate) fn fill(&self, parameters: &[Parameter], arguments: &[Option<Argument>]) -> Result<String, ToolError> {
        let mut whole = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => whole.push_str(text),
                Piece::Value(index) => {
                    let argument = arguments.get(*index).and_then(Option::as_ref);
                    if let Some(Argument { text: Text::One(text), .. }) = argument {
                        if text.is_empty() && !whole.contains('?') {
                            let name = &parameters[*index].declared.name;
                            return Err(ToolError::invalid_argument(format!(
                                "argument `{name}` is empty, and it is a part of a path"
                            )));
                        }
                        whole.extend(utf8_percent_encode(text, ENCODED));
                    }
                }
            }
        }
        let path = whole.split(['?', '#']).next().unwrap_or_default();
        if path.split('/').any(|segment| matches!(segment, "." | "..")) {
            return Err(ToolError::invalid_argument("a value makes `.` or `..` a segment of the path")
                .with_hint("give the name of a thing, not a way to it"));
        }
        Ok(whole)
    }
}

/// Host and port of an absolute address.
pub(crate) fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}
