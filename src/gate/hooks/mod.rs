//! Hooks: programs of the user's that are told what is about to happen, or has, and may say something about it. The shapes of
//! what they read and answer are those that hooks of other agents have.

mod answer;
mod call;
mod round;
mod session;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(super) use answer::Wish;
pub(super) use call::{Hooked, Subject, TurnedDown};

use answer::Answer;

use super::command::{CommandLimits, ask};
use super::{Secrets, glob};
use crate::event::{Custom, EventKind};

/// The hooks by the event that they are told of, `[[gate.hooks.PreToolUse]]` and so on in the configuration. Default none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "PascalCase")]
pub struct HookConfig {
    /// Before a call: may refuse it, which ends the program, have a person asked, or replace its arguments. One that fails refuses the call.
    pub pre_tool_use: Vec<Hook>,
    /// After a call that was made: may tell the model something, or end the round.
    pub post_tool_use: Vec<Hook>,
    /// Before a message is answered: may refuse it, or tell the model something.
    pub user_prompt_submit: Vec<Hook>,
    /// Before the first message that a process answers in a session, or the first program that it runs there: may tell the
    /// model something.
    pub session_start: Vec<Hook>,
    /// When a conversation or `fimble run` leaves a session in which it told `session_start`; a worker ends turns and leaves no
    /// conversation. Nobody listens to it.
    pub session_end: Vec<Hook>,
    /// When a message has been answered: may send the model back to work.
    pub stop: Vec<Hook>,
}

/// A program that is told of an event as JSON on its standard input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hook {
    /// Of which operations, as in `shell_toolkit.*|git_toolkit.log`; only before and after calls. Default all.
    pub matcher: String,
    /// The program and its arguments; must be given. No shell reads them.
    pub command: Vec<String>,
    /// Seconds that it may take. Default 10.
    pub timeout_s: f64,
    /// KiB that it may write. Default 64.
    pub output_kib: u64,
}

impl Default for Hook {
    fn default() -> Self {
        Self { matcher: "*".to_owned(), command: Vec::new(), timeout_s: 10.0, output_kib: 64 }
    }
}

impl Hook {
    /// Its program, as it is named in messages.
    pub fn name(&self) -> &str {
        self.command.first().map_or("", String::as_str)
    }

    fn limits(&self) -> CommandLimits {
        CommandLimits {
            time: Duration::try_from_secs_f64(self.timeout_s).unwrap_or(Duration::from_secs(10)),
            bytes: usize::try_from(self.output_kib.saturating_mul(1_024)).unwrap_or(usize::MAX),
        }
    }
}

/// When hooks are told something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookEvent {
    /// A call is about to be judged.
    PreToolUse,
    /// A call was made.
    PostToolUse,
    /// A message came.
    UserPromptSubmit,
    /// A process begins to work in a session.
    SessionStart,
    /// It leaves the session.
    SessionEnd,
    /// A message has been answered.
    Stop,
}

impl HookEvent {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::PreToolUse, Self::PostToolUse, Self::UserPromptSubmit, Self::SessionStart, Self::SessionEnd, Self::Stop];

    /// Its name in settings and in what hooks read.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::SessionStart => "SessionStart",
            Self::SessionEnd => "SessionEnd",
            Self::Stop => "Stop",
        }
    }
}

impl HookConfig {
    /// The hooks of an event.
    pub fn of(&self, event: HookEvent) -> &[Hook] {
        match event {
            HookEvent::PreToolUse => &self.pre_tool_use,
            HookEvent::PostToolUse => &self.post_tool_use,
            HookEvent::UserPromptSubmit => &self.user_prompt_submit,
            HookEvent::SessionStart => &self.session_start,
            HookEvent::SessionEnd => &self.session_end,
            HookEvent::Stop => &self.stop,
        }
    }
}

/// The hooks of one gate.
#[derive(Debug, Default)]
pub(super) struct Hooks {
    config: HookConfig,
    secrets: Secrets,
    /// Sessions whose start was told in this process.
    started: Mutex<BTreeSet<String>>,
}

/// Sessions that are remembered as started; what is told twice after that does no harm.
const MOST_STARTED: usize = 10_000;

impl Hooks {
    pub fn new(config: HookConfig, secrets: Secrets) -> Self {
        Self { config, secrets, started: Mutex::default() }
    }

    /// True if nobody is told of `event`.
    pub fn is_silent(&self, event: HookEvent) -> bool {
        self.config.of(event).is_empty()
    }

    /// The hooks that are told of `event` for an operation.
    fn of(&self, event: HookEvent, operation: &str) -> impl Iterator<Item = &Hook> {
        self.config.of(event).iter().filter(move |hook| glob::matches(&hook.matcher, operation))
    }

    /// Tells one hook and reads its answer, without secrets both ways.
    ///
    /// # Errors
    /// Why there is no answer: one sentence that names the hook.
    async fn consult(
        &self,
        hook: &Hook,
        event: HookEvent,
        mut input: Map<String, Value>,
        tell: &(dyn Fn(EventKind) + Sync),
    ) -> Result<Answer, String> {
        let folder = std::env::current_dir().map(|folder| folder.display().to_string()).unwrap_or_default();
        input.insert("cwd".to_owned(), folder.into());
        input.insert("hook_event_name".to_owned(), event.as_str().into());
        let mut input = Value::Object(input);
        self.secrets.mask_value(&mut input);
        let text = input.to_string();
        let said = ask(&hook.command, text.as_bytes(), hook.limits()).await;
        let read = match said {
            Ok(said) => answer::read(event, &said).map_err(|what| format!("`{}` {what}", hook.name())),
            Err(error) => Err(error.to_string()),
        };
        let mask = |text: String| self.secrets.mask(&text);
        let mut answer = match read {
            Ok(answer) => answer,
            Err(what) => {
                let message = mask(format!("the {} hook failed: {what}", event.as_str()));
                tell(notice(event, hook, &message));
                return Err(message);
            }
        };
        answer.reason = mask(answer.reason);
        answer.context = answer.context.map(mask);
        answer.stop = answer.stop.map(mask);
        if let Some(message) = answer.message.take().map(mask) {
            tell(notice(event, hook, &message));
        }
        Ok(answer)
    }

    /// True the first time that a session is named.
    fn starts(&self, session: &str) -> bool {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        if started.len() >= MOST_STARTED {
            started.clear();
        }
        started.insert(session.to_owned())
    }

    fn forget(&self, session: &str) -> bool {
        self.started.lock().unwrap_or_else(PoisonError::into_inner).remove(session)
    }
}

/// What a hook says to the user, as an event.
fn notice(event: HookEvent, hook: &Hook, message: &str) -> EventKind {
    EventKind::Custom(Custom::Hook {
        event: event.as_str().to_owned(),
        hook: hook.name().to_owned(),
        message: message.to_owned(),
    })
}
