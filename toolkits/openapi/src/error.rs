//! Why a document is no toolkit, or a part of it no operation. It is read by the user.

use std::fmt;

/// Why there is no toolkit. One sentence; [`hint`](Error::hint) says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The document cannot be read or fetched.
    #[error("cannot read {document}: {problem}")]
    Read {
        /// Where it is.
        document: String,
        /// What happened.
        problem: String,
    },
    /// The document has more bytes or levels than the limit.
    #[error("{document} has more than {limit}")]
    TooLarge {
        /// Where it is.
        document: String,
        /// The limit, e.g. `64 MiB`.
        limit: String,
    },
    /// The document is no JSON or YAML, or no OpenAPI document.
    #[error("{document} is no OpenAPI document: {problem}")]
    NotOpenApi {
        /// Where it is.
        document: String,
        /// What is wrong.
        problem: String,
    },
    /// It is not known where the server is.
    #[error("{document} does not say where its server is: {problem}")]
    NoServer {
        /// Where it is.
        document: String,
        /// What is wrong.
        problem: String,
    },
    /// The document has nothing that can be called, or the filter leaves nothing.
    #[error("{document} has no operation that can be used{}", first.as_ref().map(|first| format!("; the first problem: {first}")).unwrap_or_default())]
    Empty {
        /// Where it is.
        document: String,
        /// The first problem, if there is one.
        first: Option<Problem>,
    },
    /// A setting cannot be used.
    #[error("{setting} cannot be used: {problem}")]
    Setting {
        /// Its name, e.g. `base_url`.
        setting: String,
        /// What is wrong.
        problem: String,
    },
}

impl Error {
    /// The step on the way to a toolkit that failed: `fetch`, `read`, `filter` or `credential`.
    pub fn step(&self) -> &'static str {
        match self {
            Self::Read { .. } | Self::TooLarge { .. } => "fetch",
            Self::NotOpenApi { .. } | Self::NoServer { .. } => "read",
            Self::Setting { setting, .. } if setting == "base_url" => "read",
            Self::Empty { .. } => "filter",
            Self::Setting { .. } => "credential",
        }
    }

    /// What the user can do.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Read { .. } => "give the path or the URL of an OpenAPI document, and look whether it can be opened",
            Self::TooLarge { .. } => "cut the document down to what is needed, or raise the limit",
            Self::NotOpenApi { .. } => "OpenAPI 3.0, 3.1 and Swagger 2.0 are read, as JSON or YAML",
            Self::NoServer { .. } => "give a `base_url`, e.g. https://api.example.org/v1",
            Self::Empty { .. } => {
                "look at the tags, `include` and `exclude`; problems of single operations are listed beside"
            }
            Self::Setting { .. } => "change it",
        }
    }
}

/// Why a part of a document is left out. It reads as `GET /pets: …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The part: an operation's method and path, or what is named in the sentence.
    pub place: String,
    /// What is wrong: one sentence without a full stop.
    pub reason: String,
}

impl Problem {
    /// A problem there.
    pub(crate) fn new(place: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { place: place.into(), reason: reason.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.reason)
    }
}
