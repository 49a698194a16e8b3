//! `system_toolkit`: what a program does with its own session and the user. One per round.
//!
//! It acts on nothing outside the process; what it changes leaves as [`Effects`] and events.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use fimble_toolkit::{Answers, Call, Declaration, ToolError, Toolkit, toolkit};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Serialize;

use super::Secrets;
use super::answer;
use super::effects::Effects;
use super::patience::{Patience, Suspension};
use super::replay::Teller;
use crate::event::{Custom, EventKind};
use crate::record::{CallRecord, CallStatus, Variable};

/// The name that programs call it by.
pub const NAME: &str = "system_toolkit";

/// The toolkit of one round.
pub(super) struct System {
    pub(super) effects: Arc<Effects>,
    pub(super) teller: Teller,
    /// `None` where nothing is called.
    pub(super) patience: Option<Arc<Patience>>,
    pub(super) declarations: Arc<Vec<Declaration>>,
    /// The tokens of one description.
    pub(super) describe_tokens: u32,
    pub(super) variables: BTreeMap<String, Variable>,
    pub(super) secrets: Secrets,
    pub(super) longest_sleep: Duration,
    /// When calls were made first, by key.
    pub(super) begun: Mutex<BTreeMap<String, Timestamp>>,
}

/// The declaration, which is the same in every round. Its schemas are made once.
pub(super) fn declaration() -> &'static Declaration {
    &DECLARATION
}

static DECLARATION: LazyLock<Declaration> = LazyLock::new(|| {
    System {
        effects: Arc::default(),
        teller: Teller::detached(),
        patience: None,
        declarations: Arc::default(),
        describe_tokens: 0,
        variables: BTreeMap::new(),
        secrets: Secrets::default(),
        longest_sleep: Duration::ZERO,
        begun: Mutex::default(),
    }
    .declaration()
});

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

impl System {
    /// Notes when a call was made first.
    pub(super) fn begun(&self, record: &CallRecord) {
        if record.toolkit == NAME && record.operation == SLEEP {
            let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
            begun.insert(record.key.clone(), record.requested_at);
        }
    }

    /// Does to the conversation what a call did that is answered from the journal.
    pub(super) fn repeat(&self, record: &CallRecord) {
        let CallStatus::Done { result } = &record.status else { return };
        let text = |name: &str| record.arguments.get(name).and_then(serde_json::Value::as_str);
        match record.operation.as_str() {
            "send_message" => self.say(text("text").unwrap_or_default().to_owned()),
            "ask_user" => {
                let answer = result.as_str().unwrap_or_default();
                self.effects.add_answer(text("question").unwrap_or_default(), answer);
            }
            "finish" => {
                if let Some(summary) = text("summary").filter(|summary| !summary.trim().is_empty()) {
                    self.say(summary.to_owned());
                }
                self.effects.finish();
            }
            _ => {}
        }
    }

    fn say(&self, text: String) {
        let number = self.effects.add_reply(text.clone());
        self.teller.emit(EventKind::TextMessageChunk {
            message_id: format!("{}-{number}", self.teller.round()),
            role: "assistant".to_owned(),
            delta: text,
        });
    }
}

/// The operation that waits.
const SLEEP: &str = "sleep";

/// Talks to the user and looks at this session.
#[toolkit(name = "system_toolkit")]
impl System {
    /// Say something to the user. This is the only way the user hears anything.
    #[operation(risk = "read")]
    async fn send_message(&self, text: String) -> Result<(), ToolError> {
        if text.trim().is_empty() {
            return Err(ToolError::invalid_argument("the message is empty").with_hint("say what you found"));
        }
        self.say(self.secrets.mask(&text));
        Ok(())
    }

    /// Ask the user and wait for the answer.
    #[operation(risk = "read", timeout_s = 86400)]
    async fn ask_user(&self, call: &Call, question: String, choices: Option<Vec<String>>) -> Result<String, ToolError> {
        let Some(patience) = &self.patience else { return Err(ToolError::unavailable("nobody can be asked here")) };
        let choices = choices.unwrap_or_default();
        let question = self.secrets.mask(&question);
        self.teller.emit(EventKind::Custom(Custom::Question {
            id: call.key.clone(),
            text: question.clone(),
            choices: choices.clone(),
        }));
        let answer = match patience.answer(&question, &choices).await {
            Ok(answer) => answer,
            Err(end) => {
                let (call, text) = (call.key.clone(), question);
                return patience.suspend(Suspension { on: answer::QUESTION, call, text, end }).await;
            }
        };
        self.effects.add_answer(&question, &answer);
        Ok(answer)
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
    async fn sleep(&self, call: &Call, seconds: f64) -> Result<(), ToolError> {
        let Some(patience) = &self.patience else { return Err(ToolError::unavailable("nothing can wait here")) };
        let longest = self.longest_sleep.as_secs_f64();
        let refuse = || ToolError::invalid_argument(format!("seconds must be between 0 and {longest}"));
        let wait = Duration::try_from_secs_f64(seconds).map_err(|_| refuse())?;
        if wait > self.longest_sleep {
            return Err(refuse());
        }
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner).get(&call.key).copied();
        let until = begun.unwrap_or_else(Timestamp::now).checked_add(wait).map_err(|_| refuse())?;
        match patience.wait_until(until, wait).await {
            Ok(()) => Ok(()),
            Err(end) => {
                let (call, text) = (call.key.clone(), answer::until(until));
                patience.suspend(Suspension { on: answer::SLEEP, call, text, end }).await
            }
        }
    }

    /// Signatures by name ("git_toolkit", "git_toolkit.log", several parted by commas) or by words ("create an issue").
    #[operation(risk = "read")]
    async fn describe(&self, name: String) -> Result<String, ToolError> {
        if let Some(text) = crate::prompt::described(&self.declarations, &name, self.describe_tokens) {
            return Ok(text);
        }
        let toolkit = name.split_once('.').map_or(name.as_str(), |(toolkit, _)| toolkit);
        if self.declarations.iter().any(|declaration| declaration.name == toolkit) {
            return Err(ToolError::not_found(format!("there is no operation `{name}`"))
                .with_hint(format!("call system_toolkit.describe(\"{toolkit}\")")));
        }
        let names: Vec<&str> = self.declarations.iter().map(|declaration| declaration.name.as_str()).collect();
        Err(ToolError::not_found(format!("nothing fits `{name}`")).with_hint(format!("there are {}", names.join(", "))))
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
        let number = self.effects.count_question();
        self.teller.emit(EventKind::Custom(Custom::Question {
            id: format!("{}-question-{number}", self.teller.round()),
            text: question.clone(),
            choices: choices.to_vec(),
        }));
        let answer = self.patience.as_ref()?.answer_now(&question, choices).await?;
        self.effects.add_answer(&question, &answer);
        Some(answer)
    }
}
