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
