//! `fimble sessions answer` and `fimble sessions resume`: going on with what was cut off or waits.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use tokio_util::sync::CancellationToken;

use super::show::{Format, Screen};
use super::{Failure, open, policy, run};
use crate::agent::{Agent, Cause, Verdict};
use crate::config::Config;
use crate::gate::{AnswerError, Order, answer, waiting};
use crate::interpreter::Interpreter;
use crate::record::{Outcome, SessionRecord, SessionStatus};
use crate::session::Session;
use crate::store::Store;

/// How to go on.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct How {
    /// Print the events, one JSON object a line.
    #[arg(long)]
    pub(super) json: bool,
    /// Approve what policy would ask for.
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    policy: policy::Choice,
}

impl How {
    /// Puts it in place of what is configured.
    pub(super) fn apply(self, config: &mut Config) {
        self.policy.apply(config);
        if self.yes {
            config.gate.policy = std::mem::take(&mut config.gate.policy).approving();
        }
    }
}

/// Answers what the session's program waits for, and goes on with it.
pub(super) async fn answer_and_go_on(mut config: Config, id: &str, said: &str, how: How) -> Result<ExitCode, Failure> {
    how.apply(&mut config);
    let store = open::store(&config).await?;
    let session = open::session(&config, store, Some(id)).await?;
    let hold = open::hold_id(&config, session.store(), id).await?;
    let gate = open::gate(&config).await?;
    answer(&session, said, &gate).await?;
    drop(hold);
    perform(config, id, how.json).await
}

/// Goes on with the session's turn, or with its program if that belongs to no turn.
pub(super) async fn go_on(mut config: Config, id: &str, how: How) -> Result<ExitCode, Failure> {
    how.apply(&mut config);
    perform(config, id, how.json).await
}

async fn perform(config: Config, id: &str, json: bool) -> Result<ExitCode, Failure> {
    let store = open::store(&config).await?;
    let mut session = open::session(&config, Arc::clone(&store), Some(id)).await?;
    let hold = open::hold(&config, &session).await?;
    if session.record().turn.is_some() {
        let agent = open::agent(&config).await?;
        let mut events = session.subscribe();
        let format = if json { Format::Json } else { Format::Text };
        let mut screen = Screen::of_conversation(format);
        screen.recall(&session.events_of_open_round().await?);
        let cancel = CancellationToken::new();
        let stop = open::cancel_on_interrupt(&cancel);
        let _listener = open::listen(&agent.parts.gate);
        let attendant = Arc::new(screen.person());
        let work = agent.resume(&mut session, attendant, &cancel);
        let verdict = hold.while_held(screen.watch(&mut events, work)).await?;
        stop.abort();
        return Ok(verdict.map_or(ExitCode::SUCCESS, |verdict| turn_code(&session.record().id, &verdict)));
    }
    if session.open_round().is_none() {
        return Err(Failure::usage(format!("nothing was cut off and nothing waits in session `{id}`"))
            .with_hint("`fimble chat --resume` goes on with the conversation"));
    }
    let gate = open::gate(&config).await?;
    let interpreter = Interpreter::start(&config.interpreter).await?;
    let order =
        Order { file_name: "<program>".to_owned(), limits: config.interpreter.limits.clone(), ..Order::default() };
    hold.while_held(run::perform(&gate, &interpreter, session, None, order, json)).await
}

/// The exit code of a turn.
pub(super) fn turn_code(id: &str, verdict: &Verdict) -> ExitCode {
    ExitCode::from(match verdict {
        Verdict::Replied | Verdict::Relayed { .. } => 0,
        Verdict::Waiting { on, .. } => {
            tell_how_to_go_on(id, on);
            4
        }
        Verdict::Denied { .. } => 4,
        Verdict::GaveUp { cause: Cause::Stopped, .. } => 3,
        Verdict::GaveUp { .. } => 1,
        Verdict::Cancelled => 130,
    })
}

/// What the session's program waits for, or that it was cut off; `None` if there is nothing to go on with.
pub(super) async fn state(agent: &Agent, session: &Session) -> Result<Option<String>, Failure> {
    let waiting = waiting(session, &agent.parts.gate).await?;
    Ok(match waiting {
        Some(waiting) => Some(format!("round {} waits: {}", waiting.round, waiting.text)),
        None if session.record().turn.is_some() => Some("the last turn was cut off".to_owned()),
        None => None,
    })
}

/// True if the session's last round waits for a task; false if it sleeps, or waits for nothing.
pub(super) async fn awaits_task(store: &dyn Store, session: &SessionRecord) -> bool {
    if session.status != SessionStatus::AwaitingTask {
        return false;
    }
    let last = store.rounds(&session.id, session.rounds.saturating_sub(1)).await.unwrap_or_default().pop();
    let outcome = last.and_then(|round| round.outcome);
    matches!(outcome, Some(Outcome::Suspended { on, .. }) if on == "task")
}

/// Says on standard error what makes a program go on that waits.
pub(super) fn tell_how_to_go_on(id: &str, on: &str) {
    match on {
        "sleep" => note!("hint: it goes on when the time has come: fimble sessions resume {id}"),
        "task" => note!("hint: it goes on when the task is done: fimble sessions resume {id}"),
        "plan" => note!("hint: fimble sessions answer {id} yes|no|'strike 2 3'"),
        "approval" => {
            note!("hint: fimble sessions answer {id} yes|no|always; `fimble sessions edit {id}` changes the program")
        }
        "doubt" => note!("hint: fimble sessions answer {id} again|skip|stop"),
        _ => note!("hint: fimble sessions answer {id} TEXT"),
    }
}

impl From<AnswerError> for Failure {
    fn from(error: AnswerError) -> Self {
        let code = if matches!(error, AnswerError::Store(_)) { 5 } else { 2 };
        Self { code, hint: error.hint(), message: error.to_string() }
    }
}
