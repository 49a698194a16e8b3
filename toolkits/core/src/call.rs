//! One call of an operation, as a toolkit receives it.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::{Person, Progress, ToolError};

/// One call, with its arguments bound to parameter names.
#[derive(Debug, Clone)]
pub struct Call {
    /// The operation's name.
    pub operation: String,
    /// The arguments by parameter name; optional ones that were not given are absent.
    pub arguments: Map<String, Value>,
    /// The idempotency key: the same when a round is executed again, different for every other call.
    pub key: String,
    /// On whose behalf.
    pub context: SessionContext,
    /// Cancelled when the program no longer waits for the result. Dropping the call's future says the same; the token
    /// is for toolkits that hand work to another task or process.
    pub cancellation: CancellationToken,
}

impl Call {
    /// The argument of that name as `T`; a missing optional argument reads as JSON `null`.
    ///
    /// # Errors
    /// `InvalidArgument` that names the parameter and what was wrong with the value.
    pub fn argument<T: DeserializeOwned>(&self, name: &str) -> Result<T, ToolError> {
        let value = self.arguments.get(name).cloned().unwrap_or(Value::Null);
        serde_json::from_value(value)
            .map_err(|error| ToolError::invalid_argument(format!("{}: argument `{name}`: {error}", self.operation)))
    }
}

/// On whose behalf a call is made. Every field but `session` may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionContext {
    /// The session's id.
    pub session: String,
    /// The round's number within the session, from 1.
    pub round: u64,
    /// The trace id of the turn.
    pub trace: String,
    /// The tenant.
    pub tenant: String,
    /// The user.
    pub user: String,
    /// Who answers if the system behind a toolkit asks something in the middle of a call. Default nobody.
    #[serde(skip)]
    pub person: Person,
    /// Who is told how far a call is, by its key. Default nobody.
    #[serde(skip)]
    pub progress: Progress,
}
