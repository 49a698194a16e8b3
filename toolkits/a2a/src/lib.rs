//! A2A agents as toolkits: another agent is given messages with `send`, and answers with a message or a task.
//!
//! A2A 1.0 over JSON-RPC is spoken. A task that needs more input comes back as a state with the agent's question; the
//! program goes on with `send(…, task_id=…)`. An agent that works at a task is asked for it from time to time, by whoever goes on
//! with the call. A program that stops waiting cancels its task. What an agent says is from
//! outside and bounded. What is not protected: what it says reaches the model as it said it, and nobody but the agent knows
//! what it does with a message. Credentials go to the origin of the card only.
//!
//! It does not know the registry, the gate or the programs that call.

mod answer;
mod card;
mod client;
mod error;
mod limits;
mod streams;
mod task;
mod toolkit;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use fimble_toolkit::Toolkit;

pub use error::Error;
pub use limits::Limits;

/// Where an agent is. Its `Debug` form hides what may be secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Agent {
    /// The toolkit is named after it. Empty is the name that the card says.
    pub name: String,
    /// The agent's address, or its card's if that ends with `.json`.
    pub url: String,
    /// Sent as bearer token. Default none.
    pub token: Option<String>,
    /// Headers of every request, e.g. an API key's.
    pub headers: BTreeMap<String, String>,
}

impl fmt::Debug for Agent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Agent")
            .field("name", &self.name)
            .field("url", &self.url)
            .field("token", &self.token.as_ref().map(|_| "…"))
            .field("headers", &self.headers.keys())
            .finish()
    }
}

/// Fetches the agent's card. Needs a tokio runtime.
///
/// # Errors
/// The agent cannot be reached, has no card, or speaks no A2A 1.0 over JSON-RPC.
pub async fn connect(agent: Agent, limits: Limits) -> Result<Arc<dyn Toolkit>, Error> {
    Ok(Arc::new(toolkit::AgentToolkit::connect(agent, limits).await?))
}
