//! A failure that the model reads as a Python exception.

use serde::{Deserialize, Serialize};

/// Why a call failed. The message says what to do differently; the hint, if any, follows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}{}", hint.as_deref().map(|hint| format!(" (hint: {hint})")).unwrap_or_default())]
pub struct ToolError {
    /// What went wrong, for programs.
    pub kind: ErrorKind,
    /// What went wrong, for the model: one sentence without a full stop.
    pub message: String,
    /// What to try instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The kinds of failure. Each but `Cancelled` is a Python exception class in the program, a subclass of `ToolError`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// No such toolkit or operation.
    UnknownOperation,
    /// A missing, surplus or wrong argument.
    InvalidArgument,
    /// The thing asked for is not there.
    NotFound,
    /// The gate refused: policy, a hook or the user. A program does not outlive it. Toolkits have no use for it: from
    /// them it becomes `Forbidden`.
    Denied,
    /// The system behind the toolkit refused, or what was asked for is outside of what the toolkit may reach.
    Forbidden,
    /// The deadline passed.
    Timeout,
    /// The system behind the toolkit could not be reached, or is not on this machine.
    Unavailable,
    /// The operation ran and failed.
    Failed,
    /// The program let go of the call before it was answered. It is in the journal alone: no program sees it, and from
    /// toolkits it becomes `Failed`.
    Cancelled,
}

impl ToolError {
    /// An error of that kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    /// The same error with a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// A missing, surplus or wrong argument.
    pub fn invalid_argument(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// The thing asked for is not there.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// The operation ran and failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    /// The system behind the toolkit is not there.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }
}
