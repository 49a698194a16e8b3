//! What may be set about models. It does not know where the settings are written; `crate::config` reads them.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::family::Family;
use super::local;

/// The settings under `llm`. Without `base_url` and `api_key` the local model is used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The address of an OpenAI-compatible server, e.g. `https://api.openai.com/v1`. A bare host gets `/v1`. Default:
    /// none, or OpenAI's if only a key is set.
    pub base_url: Option<String>,
    /// The key that the server wants. Never printed.
    pub api_key: Option<Secret>,
    /// The model's name at the server. Default: the only one the server lists.
    pub model: Option<String>,
    /// How a hole is filled. Default `auto`: found out by asking the server.
    pub fill: FillFormat,
    /// Whose fill-in-the-middle tokens the model was trained on. Default: guessed from the model's name.
    pub template: Option<Family>,
    /// How long to wait.
    pub timeouts: Timeouts,
    /// How often a request is sent again after a failure that may pass. Default 2.
    pub retries: u32,
    /// Tokens of prompt and completion together. Default: what the server tells, if it does.
    pub context_tokens: Option<u32>,
    /// Most KiB of one answer, its wire format included. Default 65,536.
    pub response_kib: u64,
    /// The model that runs on this machine.
    pub local: local::Config,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            base_url: None,
            api_key: None,
            model: None,
            fill: FillFormat::Auto,
            template: None,
            timeouts: Timeouts::default(),
            retries: 2,
            context_tokens: None,
            response_kib: 65_536,
            local: local::Config::default(),
        }
    }
}

impl Config {
    /// True if an endpoint is configured, false if the local model is to be used.
    pub fn names_endpoint(&self) -> bool {
        self.base_url.is_some() || self.api_key.is_some()
    }
}

/// How a hole is filled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FillFormat {
    /// Found out by asking the server.
    #[default]
    Auto,
    /// The model's own tokens in the prompt of `/completions`.
    Tokens,
    /// llama.cpp's `/infill`.
    Infill,
    /// The `suffix` parameter of `/completions`.
    Suffix,
    /// Mistral's `/fim/completions`.
    Mistral,
    /// Not at all: only conversations.
    None,
}

/// How long to wait, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// For a connection. Default 10.
    pub connect_s: f64,
    /// From the request to the first token; a long prompt on a slow machine takes minutes. Default 300.
    pub first_token_s: f64,
    /// Between two tokens. Default 60.
    pub idle_s: f64,
    /// For the whole request, retries included. Default 900.
    pub total_s: f64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect_s: 10.0, first_token_s: 300.0, idle_s: 60.0, total_s: 900.0 }
    }
}

/// Seconds of the configuration as a duration. Nonsense (negative, not a number, longer than a day) becomes a day.
pub(super) fn seconds(value: f64) -> Duration {
    const DAY: Duration = Duration::from_secs(86_400);
    Duration::try_from_secs_f64(value).unwrap_or(DAY).min(DAY)
}

/// A word that is never shown: its `Debug` and its serialised form are `***`.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Hides `word`.
    pub fn new(word: impl Into<String>) -> Self {
        Self(word.into())
    }

    /// The word itself, for what must send or mask it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

impl Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("***")
    }
}
