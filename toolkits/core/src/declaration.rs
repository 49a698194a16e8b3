//! What a toolkit says about itself. Plain data; knows nothing about how it is shown to a model.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A toolkit's name, description and operations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Declaration {
    /// The Python name of the toolkit object, e.g. `git_toolkit`. A Python identifier.
    pub name: String,
    /// One sentence, or a short paragraph.
    pub description: String,
    /// The operations, in the order the author wrote them.
    pub operations: Vec<Operation>,
}

impl Declaration {
    /// The operation of that name, if there is one and it is enabled.
    pub fn operation(&self, name: &str) -> Option<&Operation> {
        self.operations.iter().find(|operation| operation.enabled && operation.name == name)
    }
}

/// One operation of a toolkit: a method of its Python class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// The Python name of the method.
    pub name: String,
    /// The docstring. Its first paragraph is what the stub shows.
    pub description: String,
    /// The parameters, in the order in which positional arguments bind.
    pub parameters: Vec<Parameter>,
    /// JSON Schema (2020-12) of the result; `true` where nothing is known.
    pub returns: Value,
    /// What the operation can do to the world.
    pub risk: Risk,
    /// True if repeating the call with the same idempotency key has no further effect.
    pub idempotent: bool,
    /// How long one call may take; `None` is the gate's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// False hides the operation from the model and refuses calls to it.
    pub enabled: bool,
    /// How the pages of its results follow one another; `None`: a result is all there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paging: Option<Paging>,
}

/// How the pages of an operation's results follow one another. `async for` over a call then goes through the items of all pages:
/// the next page is the same call with the token of the page before.
///
/// ```
/// # use fimble_toolkit::Paging;
/// let paging = Paging::new("cursor", "metadata.next", "rows");
/// assert_eq!((paging.argument.as_str(), paging.token), ("cursor", vec!["metadata".to_owned(), "next".to_owned()]));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paging {
    /// The parameter that takes the token of the page that is wanted; a call without it gets the first one.
    pub argument: String,
    /// The names of the fields that lead from a result to the token of the page after it. On the last page it is not there, null,
    /// an empty text, or the token that asked for that page.
    pub token: Vec<String>,
    /// The names of the fields that lead from a result to the list of its items. Empty: the result is that list.
    pub items: Vec<String>,
}

impl Paging {
    /// Paging by `argument`, with paths as programs write them: `metadata.next`. An empty one is the result itself.
    pub fn new(argument: &str, token: &str, items: &str) -> Self {
        let path = |path: &str| path.split('.').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        Self { argument: argument.to_owned(), token: path(token), items: path(items) }
    }
}

/// One parameter of an operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// The Python name.
    pub name: String,
    /// One sentence, or empty.
    pub description: String,
    /// JSON Schema (2020-12) of the value.
    pub schema: Value,
    /// True if a call without it is refused.
    pub required: bool,
    /// The value a call without it gets; shown in the stub. `None` is Python's `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// What an operation can do to the world. Ordered from harmless to harmful.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    /// Looks, changes nothing.
    Read,
    /// Changes something that can be changed back.
    Write,
    /// Loses or interrupts something.
    Destructive,
}

impl std::fmt::Display for Risk {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Risk::Read => "read",
            Risk::Write => "write",
            Risk::Destructive => "destructive",
        })
    }
}
