//! One message to one reply: perceive, think, act, evaluate, express, each taking the last stage's value.
//!
//! The only module that knows all the rooms. A simple request is one round, a task is many: one loop, two budgets.

mod act;
mod edit;
mod evaluate;
mod express;
mod hooks;
mod perceive;
mod think;
mod turn;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

pub use edit::{Edited, Pending};
pub use express::tell_failure;
pub use perceive::tell_isolation;
pub use turn::{Cause, Progress, Verdict};

use crate::event::{Custom, EventKind};
use crate::gate::{Attendant, Gate, abandon, answer, waiting};
use crate::interpreter::Interpreter;
use crate::llm::{LlmError, Model};
use crate::record::Outcome;
use crate::registry::Changes;
use crate::segment::SegmentKind;
use crate::session::Session;
use crate::store::StoreError;
use crate::{program, prompt};

/// The agent's settings, `[agent]` in the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Programs that one message may run. Default 8.
    pub max_rounds: u32,
    /// Refused programs in a row before the turn gives up. Default 4.
    pub max_refusals: u32,
    /// Tokens of all prompts and completions of one turn. Default 200,000.
    pub max_turn_tokens: u32,
    /// How the program is put to the model: `auto`, `fill` or `chat`. Default `auto`: measured, by the model's kind.
    pub encoding: EncodingChoice,
}

impl Default for Config {
    fn default() -> Self {
        Self { max_rounds: 8, max_refusals: 4, max_turn_tokens: 200_000, encoding: EncodingChoice::Auto }
    }
}

/// How the program is put to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EncodingChoice {
    /// By the model's abilities and the table in ARCHITECTURE.md; a refused program is tried in the other encoding.
    Auto,
    /// Native fill-in-the-middle only.
    Fill,
    /// Chat only.
    Chat,
}

/// What a user says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The id of the turn that answers it; unique.
    pub id: String,
    /// The text.
    pub text: String,
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Self { id: uuid::Uuid::now_v7().to_string(), text: text.to_owned() }
    }
}

/// Turns messages into replies.
pub struct Agent {
    /// The model.
    pub model: Arc<dyn Model>,
    /// Where programs run.
    pub interpreter: Arc<Interpreter>,
    /// The turn's settings.
    pub config: Config,
    /// What a request is made of.
    pub parts: PromptParts,
    /// What one program may use.
    pub limits: crate::interpreter::Limits,
}

/// What a request is made of, apart from the session.
pub struct PromptParts {
    /// The door for every effect, which knows the toolkits.
    pub gate: Arc<Gate>,
    /// What a program may be.
    pub program: program::Config,
    /// What the model reads.
    pub prompt: prompt::Config,
    /// The texts it is made of.
    pub templates: prompt::Templates,
}

/// Why a turn could not be made. What the model's code did wrong is a [`Verdict`], not an error.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The model failed.
    #[error(transparent)]
    Model(#[from] LlmError),
    /// A template of the user's cannot be rendered.
    #[error("{0}")]
    Template(prompt::TemplateError),
    /// A hook of the user's does not want the message answered.
    #[error("a hook refused the message: {0}")]
    Refused(String),
    /// The interpreter failed.
    #[error(transparent)]
    Interpreter(#[from] crate::interpreter::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Agent {
    /// Answers `message` within `session`. Everything visible leaves as the session's events; all that happened is
    /// stored when this returns, also when it returns an error. If the session's last program asked the user, the message is
    /// the answer, and that program goes on; any other that was cut off or waits is given up.
    ///
    /// Cancelling `cancel` stops the model or the program at once and ends the turn with [`Verdict::Cancelled`].
    ///
    /// # Errors
    /// The model, the interpreter or the store failed; what was done until then is stored, and
    /// [`resume`](Self::resume) goes on from there.
    pub async fn turn(
        &self,
        session: &mut Session,
        message: impl Into<Message>,
        attendant: Arc<dyn Attendant>,
        cancel: &CancellationToken,
    ) -> Result<Verdict, AgentError> {
        let message = message.into();
        let secrets = self.parts.gate.secrets();
        self.tell_hooks(session, &message).await?;
        if session.record().turn.is_some()
            && waiting(session, &self.parts.gate)
                .await?
                .is_some_and(|waiting| waiting.on == "question" || waiting.on == "card")
            && answer(session, &message.text, &self.parts.gate).await.is_ok()
            && let Some(verdict) = self.go_on(session, message.id.clone(), Arc::clone(&attendant), cancel).await?
        {
            return Ok(verdict);
        }
        if let Some(round) = abandon(session, Some(&self.parts.gate), "the user wrote something else").await?
            && let Some(Outcome::Stopped { message, .. }) = round.outcome
        {
            session.push(SegmentKind::Output, format!("Stopped: {message}"));
        }
        if session.record().rounds == 0 {
            self.parts.gate.registry().show_learnt();
        }
        // What is stored of the turn has no key in it either.
        let progress = Progress::of_message(&secrets.mask(&message.text), &self.config);
        let begun = perceive::perceive(session, &message, &progress, secrets, &self.interpreter).await?;
        self.look_for_toolkits(session).await;
        let verdict = self.rounds(session, progress, &attendant, cancel).await;
        express::express(session, &begun, verdict).await
    }

    /// Goes on with the session's turn if it was cut off or waits: its program runs again, answered from its journal as far as
    /// that reaches. `None` if no turn is under way.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    pub async fn resume(
        &self,
        session: &mut Session,
        attendant: Arc<dyn Attendant>,
        cancel: &CancellationToken,
    ) -> Result<Option<Verdict>, AgentError> {
        self.go_on(session, uuid::Uuid::now_v7().to_string(), attendant, cancel).await
    }

    /// The same under a name of the caller's: a message that is an answer is begun with once.
    async fn go_on(
        &self,
        session: &mut Session,
        run_id: String,
        attendant: Arc<dyn Attendant>,
        cancel: &CancellationToken,
    ) -> Result<Option<Verdict>, AgentError> {
        let Some(mut progress) = Progress::of_session(session)? else { return Ok(None) };
        let begun = perceive::begin(session, run_id, &self.interpreter).await?;
        if !progress.trace.is_empty() {
            session.set_trace(progress.trace.as_str());
        }
        self.look_for_toolkits(session).await;
        let verdict = match progress.verdict.clone() {
            // It was settled, and then its process ended.
            Some(verdict) if session.open_round().is_none() => Ok(verdict),
            _ => {
                progress.verdict = None;
                match self.act_again(session, &mut progress, &attendant, cancel).await {
                    Ok(Some(verdict)) if self.may_stop(session, &mut progress, &verdict).await => Ok(verdict),
                    Ok(_) => self.rounds(session, progress, &attendant, cancel).await,
                    Err(error) => Err(error),
                }
            }
        };
        express::express(session, &begun, verdict).await.map(Some)
    }

    /// Takes in the files of toolkits that came, changed or went, and says so.
    async fn look_for_toolkits(&self, session: &Session) {
        let changes = self.parts.gate.registry().look().await;
        if !changes.is_empty() {
            let Changes { added, changed, removed, problems } = changes;
            let problems = problems.iter().map(|problem| self.parts.gate.secrets().mask(problem)).collect();
            session.emitter().emit(EventKind::Custom(Custom::ToolkitsChanged { added, changed, removed, problems }));
        }
    }

    /// Rounds until one of them settles the matter or a budget ends.
    async fn rounds(
        &self,
        session: &mut Session,
        mut progress: Progress,
        attendant: &Arc<dyn Attendant>,
        cancel: &CancellationToken,
    ) -> Result<Verdict, AgentError> {
        self.parts.recollect(session, self.model.abilities().context_tokens).await?;
        loop {
            if let Some(verdict) = progress.exhausted() {
                return Ok(verdict);
            }
            step(session, "think", true);
            let thought = tokio::select! {
                thought = self.think(session, &mut progress) => thought?,
                () = cancel.cancelled() => return Ok(Verdict::Cancelled),
            };
            step(session, "think", false);
            let program = match thought {
                think::Thought::Program(program) => program,
                think::Thought::Refused(refusal) => {
                    progress.refused(&session.emitter(), refusal);
                    continue;
                }
            };
            step(session, "act", true);
            let verdict = self.act(session, &mut progress, program, attendant, cancel).await?;
            step(session, "act", false);
            if let Some(verdict) = verdict
                && self.may_stop(session, &mut progress, &verdict).await
            {
                return Ok(verdict);
            }
        }
    }
}

/// Says that a stage of the turn begins or ended.
fn step(session: &Session, name: &str, begins: bool) {
    let step_name = name.to_owned();
    session.emitter().emit(if begins {
        EventKind::StepStarted { step_name }
    } else {
        EventKind::StepFinished { step_name }
    });
}
