//! A manifest as its author wrote it, each part with its place in the text. It knows the format and checks no meaning.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use fimble_toolkit::Risk;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use toml::Spanned;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Toolkit {
    pub(crate) name: Spanned<String>,
    pub(crate) description: String,
    /// Names of environment variables that the commands get beside `PATH`, `HOME` and `LANG`.
    #[serde(default)]
    pub(crate) environment: Vec<Spanned<String>>,
    #[serde(default, rename = "operation")]
    pub(crate) operations: Vec<Operation>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Operation {
    pub(crate) name: Spanned<String>,
    pub(crate) description: String,
    pub(crate) command: Option<Spanned<Vec<Spanned<String>>>>,
    pub(crate) request: Option<Request>,
    pub(crate) risk: Risk,
    pub(crate) idempotent: Option<bool>,
    pub(crate) timeout_s: Option<Spanned<f64>>,
    #[serde(default)]
    pub(crate) result: ResultKind,
    pub(crate) pattern: Option<Spanned<String>>,
    pub(crate) cwd: Option<Spanned<PathBuf>>,
    pub(crate) output_kib: Option<Spanned<u64>>,
    pub(crate) paging: Option<Paging>,
    #[serde(default)]
    pub(crate) params: Parameters,
}

/// How results follow one another.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Paging {
    pub(crate) argument: Spanned<String>,
    pub(crate) token: Spanned<String>,
    #[serde(default)]
    pub(crate) items: String,
}

/// An HTTP request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    #[serde(default)]
    pub(crate) method: Method,
    pub(crate) url: Spanned<String>,
    #[serde(default)]
    pub(crate) query: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, Spanned<String>>,
    pub(crate) json: Option<Spanned<Value>>,
    pub(crate) body: Option<Spanned<String>>,
}

/// How a request acts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Method {
    #[default]
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// What the output is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ResultKind {
    #[default]
    Text,
    Lines,
    Json,
    Table,
    /// With its place, since it needs a pattern.
    Regex(Range<usize>),
}

impl<'de> Deserialize<'de> for ResultKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Word {
            Text,
            Lines,
            Json,
            Table,
            Regex,
        }

        let word = Spanned::<Word>::deserialize(deserializer)?;
        Ok(match word.get_ref() {
            Word::Text => Self::Text,
            Word::Lines => Self::Lines,
            Word::Json => Self::Json,
            Word::Table => Self::Table,
            Word::Regex => Self::Regex(word.span()),
        })
    }
}

/// The types that a parameter can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Str,
    Int,
    Float,
    Bool,
    /// Of strings.
    List,
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Kind::Str => "str",
            Kind::Int => "int",
            Kind::Float => "float",
            Kind::Bool => "bool",
            Kind::List => "list",
        })
    }
}

/// The parameters in the order in which they were written, which is the order in which arguments bind.
#[derive(Debug, Default)]
pub(crate) struct Parameters(pub(crate) Vec<(Spanned<String>, Parameter)>);

#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) kind: Kind,
    pub(crate) description: String,
    pub(crate) default: Option<Spanned<Value>>,
    pub(crate) required: Option<bool>,
    pub(crate) choices: Option<Spanned<Vec<Value>>>,
    pub(crate) allow_dash: bool,
}

impl<'de> Deserialize<'de> for Parameters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Parameters;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a table of parameters by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parameters, A::Error> {
                let mut parameters = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    parameters.push(entry);
                }
                Ok(Parameters(parameters))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

impl<'de> Deserialize<'de> for Parameter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Table {
            #[serde(rename = "type")]
            kind: Kind,
            #[serde(default)]
            description: String,
            default: Option<Spanned<Value>>,
            required: Option<bool>,
            choices: Option<Spanned<Vec<Value>>>,
            #[serde(default)]
            allow_dash: bool,
        }

        struct TypeOrTable;

        // Not an untagged enum: that would say of every mistake only that no variant matched.
        impl<'de> Visitor<'de> for TypeOrTable {
            type Value = Parameter;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a type such as \"str\", or a table with `type`")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Parameter, E> {
                let kind = Kind::deserialize(StrDeserializer::new(text))?;
                let description = String::new();
                Ok(Parameter { kind, description, default: None, required: None, choices: None, allow_dash: false })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Parameter, A::Error> {
                let Table { kind, description, default, required, choices, allow_dash } =
                    Table::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Parameter { kind, description, default, required, choices, allow_dash })
            }
        }

        deserializer.deserialize_any(TypeOrTable)
    }
}
