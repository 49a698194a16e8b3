//! One port to every model. It does not know what a program or a toolkit is: text goes in, text comes out.
//!
//! In reading order: what may be set (`config`), who is asked (`endpoint`, `local`, `scripted`), how the question is
//! written and the answer read (`chat`, `fill`, `family`, `exchange`, `stop`), and what is done about a failure
//! (`refusal`, `retry`).

mod chat;
mod config;
mod detect;
mod endpoint;
mod exchange;
mod family;
mod fill;
pub mod local;
mod refusal;
mod retry;
pub mod scripted;
mod stop;
mod truncation;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

pub use config::{Config, FillFormat, Secret, Timeouts};
pub use endpoint::Endpoint;
pub use family::Family;

/// The configured endpoint if there is one, else the local model of this machine.
///
/// Asks an endpoint what it can do, so it fails early when the server is down, refuses the key or lacks the model. The
/// local model's load is shown on standard error.
pub async fn connect(config: &Config) -> Result<Arc<dyn Model>, LlmError> {
    if config.names_endpoint() {
        Ok(Arc::new(Endpoint::connect(config).await?))
    } else {
        local::LocalModel::start(config).await
    }
}

/// A model behind some wire format.
#[async_trait]
pub trait Model: Send + Sync {
    /// The model's name as the server knows it.
    fn name(&self) -> &str;

    /// Which requests it takes.
    fn abilities(&self) -> Abilities;

    /// Says what the next requests begin with, so that a model which is slow to read can do so once for all. `head` is
    /// a whole request whose end does not matter.
    async fn prepare(&self, _head: &Request) {}

    /// Completes a request. `on_text` gets every piece of text as it arrives; [`ControlFlow::Break`] stops the
    /// generation, which is then reported as [`Finish::Stopped`]. Dropping the future stops it too.
    async fn complete(&self, request: &Request, on_text: OnText<'_>) -> Result<Completion, LlmError>;
}

/// Takes the text as it arrives. An alias, because `async_trait` would bind the lifetime of a spelled-out `&str` to the
/// call, and no piece lives that long.
pub type OnText<'a> = &'a mut (dyn FnMut(&str) -> ControlFlow<()> + Send);

/// Which requests a model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    /// Takes [`Input::Fill`].
    pub fill: bool,
    /// Takes [`Input::Chat`].
    pub chat: bool,
    /// Tokens of prompt and completion together, if known.
    pub context_tokens: Option<u32>,
}

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// What to complete.
    pub input: Input,
    /// Most tokens to generate.
    pub max_tokens: u32,
    /// 0 is greedy.
    pub temperature: f32,
    /// Strings that end the generation; they are not part of the text.
    pub stop: Vec<String>,
}

/// What to complete.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A conversation; the model writes the next assistant message.
    Chat(Vec<Message>),
    /// A text with a hole between `prefix` and `suffix`.
    Fill {
        /// All before the hole.
        prefix: String,
        /// All after it.
        suffix: String,
    },
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: String,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The host's standing instructions.
    System,
    /// The user, or the host on the user's behalf.
    User,
    /// The model.
    Assistant,
}

/// What the model wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// The text, without stop strings.
    pub text: String,
    /// Why it ended.
    pub finish: Finish,
    /// Tokens, as the server counts them.
    pub usage: TokenUsage,
    /// How long the request took, retries included.
    pub duration: Duration,
}

/// Why a completion ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The model ended it, or a stop string did.
    Ended,
    /// It reached `max_tokens`.
    Length,
    /// `on_text` stopped it.
    Stopped,
}

/// Tokens of one request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// Tokens of the prompt.
    pub prompt: u32,
    /// Of those, how many the server had cached.
    pub cached: u32,
    /// Tokens generated.
    pub completion: u32,
}

/// Why there is no completion. The variant says who can act.
#[derive(Debug, thiserror::Error)]
pub enum LlmError {
    /// May work later; retries are used up.
    #[error("{message}")]
    Transient {
        /// One sentence.
        message: String,
        /// What to do.
        hint: String,
    },
    /// Will not work without a change: a wrong key, address, model name or request.
    #[error("{message}")]
    Permanent {
        /// One sentence.
        message: String,
        /// What to do.
        hint: String,
    },
    /// The prompt does not fit, or the server cut it silently.
    #[error("{message}")]
    Overflow {
        /// One sentence.
        message: String,
        /// Tokens of the prompt, if known.
        prompt_tokens: Option<u32>,
        /// Tokens that fit, if known.
        context_tokens: Option<u32>,
    },
    /// The turn's token budget is used up.
    #[error("{0}")]
    Budget(String),
}

impl LlmError {
    /// What the user can do about it; empty if there is nothing to add.
    pub fn hint(&self) -> &str {
        match self {
            LlmError::Transient { hint, .. } | LlmError::Permanent { hint, .. } => hint,
            LlmError::Overflow { .. } => "shorten the conversation, or use a model with a larger context",
            LlmError::Budget(_) => "",
        }
    }

    fn transient(message: impl Into<String>, hint: impl Into<String>) -> Self {
        LlmError::Transient { message: message.into(), hint: hint.into() }
    }

    fn permanent(message: impl Into<String>, hint: impl Into<String>) -> Self {
        LlmError::Permanent { message: message.into(), hint: hint.into() }
    }
}
