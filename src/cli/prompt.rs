//! `fimble prompt`: what the model would read.

use std::process::ExitCode;
use std::sync::Arc;

use clap::{Subcommand, ValueEnum};

use super::output::write_data;
use super::{Failure, open};
use crate::agent::AgentError;
use crate::config::Config;
use crate::llm::{Input, Role};
use crate::prompt::Encoding;
use crate::store::sqlite::Sqlite;

/// Show what the model would read.
#[derive(Debug, Subcommand)]
pub(super) enum Prompt {
    /// The whole request for a message, without asking any model.
    Show {
        /// The message.
        message: String,
        /// Go on in this session.
        #[arg(long, value_name = "ID")]
        resume: Option<String>,
        /// How the program is put to the model.
        #[arg(long, default_value = "chat")]
        encoding: Shape,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Shape {
    /// A conversation that asks for the hole.
    Chat,
    /// A text with a hole.
    Fill,
}

impl Prompt {
    pub(super) async fn execute(self, config: Config) -> Result<ExitCode, Failure> {
        let Prompt::Show { message, resume, encoding } = self;
        let mut session = match resume {
            Some(id) => open::session(&config, open::store(&config).await?, Some(&id)).await?,
            None => open::session(&config, Arc::new(Sqlite::in_memory()?), None).await?,
        };
        let encoding = match encoding {
            Shape::Chat => Encoding::Chat,
            Shape::Fill => Encoding::Fill,
        };
        let parts = open::prompt_parts(&config).await?;
        parts.recollect(&mut session, None).await?;
        let request = parts.first_request(&mut session, &message, encoding).map_err(AgentError::Template)?;
        match request.input {
            Input::Chat(messages) => {
                for message in messages {
                    let role = match message.role {
                        Role::System => "system",
                        Role::User => "user",
                        Role::Assistant => "assistant",
                    };
                    write_data(&format!("=== {role}\n{}\n", message.content.trim_end()));
                }
            }
            Input::Fill { prefix, suffix } => write_data(&format!("=== prefix\n{prefix}\n=== suffix\n{suffix}\n")),
        }
        Ok(ExitCode::SUCCESS)
    }
}
