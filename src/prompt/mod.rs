//! From segments, stubs and templates to one request to a model. Pure: no I/O, no clock.
//!
//! It does not know how a hole is checked, nor how a request travels. The head of a prompt (rules, stubs, example) stays the
//! same within a session and the rest grows at its end, so that a server's prompt cache serves most of it.

mod assemble;
mod budget;
mod chat;
mod described;
mod fill;
mod relevant;
mod stubs;
mod templates;

use std::sync::Arc;

use fimble_toolkit::Declaration;
use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

pub use assemble::{assemble, fills_context, recent};
pub use described::described;
pub use stubs::{Budget, stubs};
pub use templates::{TEMPLATE_NAMES, TemplateError, Templates};

use crate::segment::Segment;

/// How a program is shown to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// One Python file with a hole, for models trained to fill in the middle.
    Fill,
    /// A conversation whose last message shows the program and asks for its hole.
    Chat,
}

/// The settings of this module, under `prompt` in the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Tokens of prompt and answer together, where the model does not say. Default 8,192.
    pub context_tokens: u32,
    /// The most tokens of an answer. Default 768.
    pub max_tokens: u32,
    /// 0 is greedy. Default 0.
    pub temperature: f32,
    /// Tokens of toolkit stubs; toolkits beyond are told by name. Default 3,000.
    pub stub_tokens: u32,
    /// Of those, tokens of the names of operations that are told only by name; of large toolkits it is told how many begin
    /// with which word. Default 600.
    pub name_tokens: u32,
    /// Tokens of signatures that the user's words seem to need, of toolkits that are told by name; 0 for none. Default 400.
    pub likely_tokens: u32,
    /// Tokens of one round's output that are shown, its head and its tail. Default 600.
    pub output_tokens: u32,
    /// What programs can import besides the standard library, e.g. `numpy 2.1.0`. Not written: who starts the interpreter knows.
    #[serde(skip)]
    pub packages: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            context_tokens: 8_192,
            max_tokens: 768,
            temperature: 0.0,
            stub_tokens: 3_000,
            name_tokens: 600,
            likely_tokens: 400,
            output_tokens: 600,
            packages: Vec::new(),
        }
    }
}

/// What a prompt is made from.
#[derive(Debug, Clone, Copy)]
pub struct PromptInput<'a> {
    /// How the program is shown.
    pub encoding: Encoding,
    /// The toolkits, in an order that does not change within a session.
    pub declarations: &'a Arc<Vec<Declaration>>,
    /// The conversation so far, or its end.
    pub segments: &'a [Segment],
    /// How many segments there are before those.
    pub earlier: usize,
    /// The program before its hole; ends with a line end.
    pub prefix: &'a str,
    /// The program after its hole.
    pub suffix: &'a str,
    /// Holes of this round that were refused, in order.
    pub attempts: &'a [Attempt],
    /// Tokens of prompt and answer together, if the model says; else [`Config::context_tokens`].
    pub context_tokens: Option<u32>,
    /// The texts.
    pub templates: &'a Templates,
    /// The settings.
    pub config: &'a Config,
}

/// A hole that was refused before it ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Why it was refused, one sentence a finding, for the model.
    pub notes: Vec<String>,
}
