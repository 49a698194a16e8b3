//! `system_toolkit`: what a program does with its own session and the user. One per round.
//!
//! It acts on nothing outside the process; what it changes leaves as [`Effects`] and events.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fimble_toolkit::{Answers, Declaration, ErrorKind, ToolError, Toolkit, toolkit};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Serialize;

use super::round::Effects;
use super::{Attendant, Secrets};
use crate::event::{Custom, EventKind};
use crate::record::Variable;
use crate::session::Emitter;

/// The name that programs call it by.
pub const NAME: &str = "system_toolkit";

/// The toolkit of one round.
pub(super) struct System {
    pub(super) effects: Arc<Effects>,
    pub(super) emitter: Emitter,
    pub(super) attendant: Arc<dyn Attendant>,
    pub(super) declarations: Vec<Declaration>,
    pub(super) variables: BTreeMap<String, Variable>,
    pub(super) secrets: Secrets,
    pub(super) longest_sleep: Duration,
}

/// The declaration, which is the same in every round.
pub(super) fn declaration() -> Declaration {
    System {
        effects: Arc::default(),
        emitter: Emitter::detached(),
        attendant: Arc::new(super::Unattended),
        declarations: Vec::new(),
        variables: BTreeMap::new(),
        secrets: Secrets::default(),
        longest_sleep: Duration::ZERO,
    }
    .declaration()
}

/// The current time.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Now {
    /// ISO 8601 with offset.
    iso: String,
    /// The date, YYYY-MM-DD.
    date: String,
    /// The time of day, HH:MM:SS.
    time: String,
    /// The day of the week.
    weekday: String,
    /// Seconds since 1970-01-01 UTC.
    unix: f64,
    /// The time zone's name.
    timezone: String,
}

/// A variable of the session.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct VariableLine {
    /// Its name.
    name: String,
    /// Its type.
    #[serde(rename = "type")]
    type_name: String,
    /// A short form of its value.
    preview: String,
    /// The round that wrote it.
    round: u64,
}

/// Talks to the user and looks at this session.
#[toolkit(name = "system_toolkit")]
impl System {
    /// Say something to the user. This is the only way the user hears anything.
    #[operation(risk = "read")]
    async fn send_message(&self, text: String) -> Result<(), ToolError> {
        if text.trim().is_empty() {
            return Err(ToolError::invalid_argument("the message is empty").with_hint("say what you found"));
        }
        let text = self.secrets.mask(&text);
        let number = self.effects.add_reply(text.clone());
        self.emitter.emit(EventKind::TextMessageChunk {
            message_id: format!("{}-{number}", self.emitter.round()),
            role: "assistant".to_owned(),
            delta: text,
        });
        Ok(())
    }

    /// Ask the user and wait for the answer.
    #[operation(risk = "read", timeout_s = 86400)]
    async fn ask_user(&self, question: String, choices: Option<Vec<String>>) -> Result<String, ToolError> {
        match self.answer(&question, &choices.unwrap_or_default()).await {
            Some(answer) => Ok(answer),
            None => {
                self.effects.wait_for_user(self.secrets.mask(&question));
                Err(ToolError::new(ErrorKind::Denied, "the user answers with the next message; this round ends here"))
            }
        }
    }

    /// The current time, in the machine's zone or a named one such as Europe/Berlin.
    #[operation(risk = "read")]
    async fn now(&self, timezone: Option<String>) -> Result<Now, ToolError> {
        let zone = match &timezone {
            None => TimeZone::system(),
            Some(name) => TimeZone::get(name).map_err(|_| {
                ToolError::invalid_argument(format!("there is no time zone `{name}`"))
                    .with_hint("use an IANA name such as Europe/Berlin, or UTC")
            })?,
        };
        let now = Timestamp::now().to_zoned(zone);
        Ok(Now {
            iso: now.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            date: now.strftime("%Y-%m-%d").to_string(),
            time: now.strftime("%H:%M:%S").to_string(),
            weekday: now.strftime("%A").to_string(),
            unix: now.timestamp().as_millisecond() as f64 / 1_000.0,
            timezone: timezone
                .or_else(|| now.time_zone().iana_name().map(str::to_owned))
                .unwrap_or_else(|| "UTC".to_owned()),
        })
    }

    /// Wait that many seconds.
    #[operation(risk = "read", timeout_s = 86400)]
    async fn sleep(&self, seconds: f64) -> Result<(), ToolError> {
        let longest = self.longest_sleep.as_secs_f64();
        match Duration::try_from_secs_f64(seconds) {
            Ok(duration) if duration <= self.longest_sleep => tokio::time::sleep(duration).await,
            _ => {
                return Err(ToolError::invalid_argument(format!("seconds must be between 0 and {longest}")));
            }
        }
        Ok(())
    }

    /// The operations of a toolkit, with parameters, results and notes.
    #[operation(risk = "read")]
    async fn describe(&self, name: String) -> Result<String, ToolError> {
        let (toolkit, operation) = match name.split_once('.') {
            Some((toolkit, operation)) => (toolkit, Some(operation)),
            None => (name.as_str(), None),
        };
        let Some(declaration) = self.declarations.iter().find(|declaration| declaration.name == toolkit) else {
            let names: Vec<&str> = self.declarations.iter().map(|declaration| declaration.name.as_str()).collect();
            return Err(ToolError::not_found(format!("there is no toolkit `{toolkit}`"))
                .with_hint(format!("there are {}", names.join(", "))));
        };
        let mut declaration = declaration.clone();
        if let Some(name) = operation {
            declaration.operations.retain(|operation| operation.name == name);
            if declaration.operations.is_empty() {
                return Err(ToolError::not_found(format!("`{toolkit}` has no operation `{name}`"))
                    .with_hint(format!("call system_toolkit.describe(\"{toolkit}\")")));
            }
        }
        Ok(crate::prompt::stubs(&[declaration], u32::MAX))
    }

    /// The variables that earlier rounds left.
    #[operation(risk = "read")]
    async fn variables(&self) -> Result<Vec<VariableLine>, ToolError> {
        Ok(self
            .variables
            .values()
            .map(|variable| VariableLine {
                name: variable.name.clone(),
                type_name: variable.type_name.clone(),
                preview: variable.preview.clone(),
                round: variable.round,
            })
            .collect())
    }

    /// End the task. The summary, if given, is said to the user.
    #[operation(risk = "read")]
    async fn finish(&self, summary: Option<String>) -> Result<(), ToolError> {
        if let Some(summary) = summary.filter(|summary| !summary.trim().is_empty()) {
            self.send_message(summary).await?;
        }
        self.effects.finish();
        Ok(())
    }
}

/// The user, for whoever asks on the program's behalf.
#[async_trait]
impl Answers for System {
    async fn answer(&self, question: &str, choices: &[String]) -> Option<String> {
        let question = self.secrets.mask(question);
        self.emitter.emit(EventKind::Custom(Custom::Question {
            id: format!("{}-question", self.emitter.round()),
            text: question.clone(),
            choices: choices.to_vec(),
        }));
        let answer = self.attendant.answer(&question, choices).await;
        if let Some(answer) = &answer {
            self.effects.add_answer(&question, answer);
        }
        answer
    }
}
