//! What a request carries: a value whose texts have placeholders, or one text.

use serde_json::{Map, Value};

use crate::parameter::{Argument, Parameter};
use crate::request::text;
use crate::template::{self, Piece};
use crate::written::Kind;

/// The end of a sentence about the request, and a hint.
pub(crate) type Problem = (String, &'static str);

/// A request's body.
#[derive(Debug)]
pub(crate) enum Body {
    None,
    Json(Json),
    Text(Vec<Piece>),
}

/// A value with placeholders.
#[derive(Debug)]
pub(crate) enum Json {
    Plain(Value),
    /// A placeholder alone: the argument as it is, a number as a number.
    Value(usize),
    Text(Vec<Piece>),
    List(Vec<Json>),
    Table(Vec<(String, Json)>),
}

impl Body {
    /// # Errors
    /// A placeholder without parameter, a list within a text.
    pub(crate) fn json(value: &Value, parameters: &[Parameter]) -> Result<Self, Problem> {
        Json::new(value, parameters).map(Self::Json)
    }

    pub(crate) fn values(&self) -> Vec<usize> {
        match self {
            Self::None => Vec::new(),
            Self::Json(json) => json.values(),
            Self::Text(pieces) => template::values(pieces).collect(),
        }
    }
}

impl Json {
    fn new(value: &Value, parameters: &[Parameter]) -> Result<Self, Problem> {
        Ok(match value {
            Value::String(text) => {
                let mut pieces = template::pieces(text, false, parameters)?;
                if let [Piece::Value(index)] = pieces.as_slice() {
                    return Ok(Self::Value(*index));
                }
                if template::values(&pieces).any(|index| parameters[index].kind == Kind::List) {
                    return Err(("has a list within a text".to_owned(), "let the placeholder be the whole text"));
                }
                match pieces.pop() {
                    Some(Piece::Text(text)) if pieces.is_empty() => Self::Plain(Value::from(text)),
                    last => {
                        pieces.extend(last);
                        Self::Text(pieces)
                    }
                }
            }
            Value::Array(items) => {
                Self::List(items.iter().map(|item| Self::new(item, parameters)).collect::<Result<_, _>>()?)
            }
            Value::Object(fields) => {
                let field = |(name, value): (&String, &Value)| Ok((name.clone(), Self::new(value, parameters)?));
                Self::Table(fields.iter().map(field).collect::<Result<_, Problem>>()?)
            }
            other => Self::Plain(other.clone()),
        })
    }

    fn values(&self) -> Vec<usize> {
        match self {
            Self::Plain(_) => Vec::new(),
            Self::Value(index) => vec![*index],
            Self::Text(pieces) => template::values(pieces).collect(),
            Self::List(items) => items.iter().flat_map(Self::values).collect(),
            Self::Table(fields) => fields.iter().flat_map(|(_, value)| value.values()).collect(),
        }
    }

    /// The value with arguments in place. An entry that mentions an absent one is left out.
    pub(crate) fn fill(&self, arguments: &[Option<Argument>]) -> Option<Value> {
        match self {
            Self::Plain(value) => Some(value.clone()),
            Self::Value(index) => Some(arguments.get(*index)?.as_ref()?.value.clone()),
            Self::Text(pieces) => text(pieces, arguments).map(Value::from),
            Self::List(items) => Some(items.iter().filter_map(|item| item.fill(arguments)).collect()),
            Self::Table(fields) => {
                let field = |(name, value): &(String, Self)| Some((name.clone(), value.fill(arguments)?));
                Some(Value::Object(fields.iter().filter_map(field).collect::<Map<_, _>>()))
            }
        }
    }
}
