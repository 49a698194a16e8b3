//! Rounds: a checked program runs as one, one that was cut off goes on, one that is not wanted any more is given up.
//! `fimble run` and the agent share it.

use std::sync::Arc;

use fimble_toolkit::ErrorKind;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::let_go::{self, LetGo, cut_off};
use super::performance::Performance;
use super::{Attendant, Denial, Gate, ShownCard, plan};
use crate::crash;
use crate::event::{Custom, Event, EventKind};
use crate::interpreter::{self, Interpreter, Limits};
use crate::program::{Known, Program, reopened};
use crate::record::{CallStatus, Outcome, Round};
use crate::session::{Emitter, Session};
use crate::store::StoreError;

/// What a round is for and what it may use.
#[derive(Debug, Clone, Default)]
pub struct Order {
    /// What it is to reach.
    pub goal: String,
    /// The rounds it goes on from.
    pub parents: Vec<u64>,
    /// What tracebacks call the program, e.g. `<program>`.
    pub file_name: String,
    /// What it may use.
    pub limits: Limits,
    /// Tokens of the prompts that led to it.
    pub prompt_tokens: u32,
    /// Tokens the model generated for it.
    pub completion_tokens: u32,
}

/// What a round came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Executed {
    /// Its number.
    pub round: u64,
    /// The hole that ran.
    pub hole: String,
    /// How it ended.
    pub outcome: Outcome,
    /// What it printed, masked and cut to the limit.
    pub output: String,
    /// What was said to the user.
    pub replies: Vec<String>,
    /// Questions that were answered, with the answers.
    pub answers: Vec<(String, String)>,
    /// The cards that were shown, those that ask once they are answered.
    pub cards: Vec<ShownCard>,
    /// True if it called `finish`.
    pub finished: bool,
    /// What a suspended round waits for, in words.
    pub waiting: Option<String>,
    /// The call that was refused, if one was.
    pub refused: Option<Denial>,
    /// What hooks want the model to know of the round's calls.
    pub contexts: Vec<String>,
    /// One line a call: what was called and whether it failed.
    pub calls: Vec<String>,
    /// The names that were written.
    pub written: Vec<String>,
    /// The names that could not be carried, with the reason.
    pub not_carried: Vec<(String, String)>,
}

/// Why a round could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// The interpreter failed.
    #[error(transparent)]
    Interpreter(#[from] interpreter::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a round's end means for its session: called right before the end is stored, so that both are stored in one write. A
/// round that is suspended ends more than once.
pub type Settle<'a> = &'a mut (dyn FnMut(&mut Session, &Executed) + Send);

/// What rounds need from outside, apart from their session.
#[derive(Clone, Copy)]
pub struct Stage<'a> {
    /// The door to all effects.
    pub gate: &'a Arc<Gate>,
    /// Where programs run.
    pub interpreter: &'a Interpreter,
    /// Who approves and answers.
    pub attendant: &'a Arc<dyn Attendant>,
    /// Ends the round when it is cancelled.
    pub cancel: &'a CancellationToken,
}

/// Runs `program` as the session's next round, and stores all that came of it.
///
/// # Errors
/// The interpreter could not start a process, or the store failed. What the program did wrong is an [`Outcome`].
pub async fn execute(
    stage: Stage<'_>,
    session: &mut Session,
    program: &Program,
    order: Order,
    settle: Settle<'_>,
) -> Result<Executed, ExecuteError> {
    abandon(session, Some(stage.gate), "another program was run in its place").await?;
    let Program { prefix, hole, suffix, .. } = program;
    let (goal, parents) = (order.goal.clone(), order.parents.clone());
    let mut round = session.begin_round(goal, parents, prefix.clone(), hole.clone(), suffix.clone()).await?;
    crash::point("round opened");
    round.usage.prompt_tokens = order.prompt_tokens;
    round.usage.completion_tokens = order.completion_tokens;
    session.emitter().emit(EventKind::Custom(Custom::Program {
        prefix: stage.gate.secrets().mask(prefix),
        hole: stage.gate.secrets().mask(hole),
        suffix: suffix.clone(),
        repairs: program.repairs.clone(),
    }));
    let mut calls = Vec::new();
    if stage.gate.policy().plans() {
        let drawn_up = plan::record(&session.record().id, round.number);
        session.journal(round.number).request(&drawn_up).await?;
        crash::point("plan journaled");
        calls.push(drawn_up);
    }
    Performance { stage, session, program, order, settle }.until_it_ends(round, calls, Vec::new()).await
}

/// Goes on with the session's last round if it was cut off or waits for something: its program runs again, and its calls are
/// answered from the journal up to the first that has no answer there. `None` if there is no such round. Of `order` only the
/// file name and the limits matter.
///
/// # Errors
/// As [`execute`].
pub async fn resume(
    stage: Stage<'_>,
    session: &mut Session,
    order: Order,
    settle: Settle<'_>,
) -> Result<Option<Executed>, ExecuteError> {
    let told = session.events_of_open_round().await?;
    let Some(round) = session.reopen_round() else { return Ok(None) };
    crash::point("round reopened");
    let carried: Vec<_> = session.variables().values().cloned().collect();
    let known = Known {
        declarations: &stage.gate.declarations_of(session),
        carried: &carried,
        shapes: &Default::default(),
        not_kept: session.not_kept(),
        finish_length: false,
        config: &Default::default(),
    };
    let program = reopened(&round.prefix, &round.hole, &round.suffix, &known);
    let order = Order { goal: round.goal.clone(), ..order };
    let calls = session.calls(round.number).await?;
    let performance = Performance { stage, session, program: &program, order, settle };
    performance.until_it_ends(round, calls, told).await.map(Some)
}

/// Gives up a round that was cut off or waits: it is stored as stopped, with nothing carried. Its calls stay in the journal; tasks
/// that it waits for are stopped by their toolkits, or go on without a gate.
///
/// # Errors
/// Those of the store.
pub async fn abandon(session: &mut Session, gate: Option<&Gate>, why: &str) -> Result<Option<Round>, StoreError> {
    let Some(mut round) = session.reopen_round() else { return Ok(None) };
    end_cut_off_calls(session, gate, &round, &session.emitter(), None).await?;
    let message = format!("the program was cut off and given up: {why}; nothing that it assigned was kept");
    round.outcome = Some(Outcome::Stopped { limit: "abandoned".to_owned(), message });
    round.ended_at = Some(Timestamp::now());
    session.commit_round(round.clone(), Vec::new(), Vec::new()).await?;
    crash::point("round given up");
    Ok(Some(round))
}

/// Ends the calls that the program, or its end, left unanswered: their toolkits were told to stop. `let_go` has those that the
/// program did not wait for any more while it went on.
pub(super) async fn end_cut_off_calls(
    session: &Session,
    gate: Option<&Gate>,
    round: &Round,
    emitter: &Emitter,
    let_go: Option<&LetGo>,
) -> Result<(), StoreError> {
    let journal = session.journal(round.number);
    for mut call in session.calls(round.number).await? {
        if matches!(call.status, CallStatus::Done { .. } | CallStatus::Failed { .. }) {
            continue;
        }
        if plan::is_plan(&call) {
            // Carried out, or given up: it is no call that anybody waits for.
            call.status = CallStatus::Done { result: call.arguments.get("hash").cloned().unwrap_or_default() };
            call.done_at = Some(Timestamp::now());
            journal.finish(&call).await?;
            continue;
        }
        if let (Some(gate), CallStatus::Pending { task, .. }) = (gate, &call.status) {
            gate.abandon_task(session, &call, task).await;
        }
        let ended = let_go.and_then(|let_go| let_go.of(&call));
        let error = cut_off(if ended.is_some() { ErrorKind::Cancelled } else { ErrorKind::Failed });
        let (done_at, is_told) = ended.unwrap_or_else(|| (Timestamp::now(), false));
        call.status = CallStatus::Failed { error: error.clone() };
        call.done_at = Some(done_at);
        journal.finish(&call).await?;
        crash::point("call ended");
        if is_told {
            continue;
        }
        let is_begin = |event: &Event| matches!(&event.kind, EventKind::ToolCallChunk { tool_call_id, .. } if *tool_call_id == call.key);
        // It may have been cut off between the journal and the front ends.
        if !session.events_of_open_round().await?.iter().any(is_begin) {
            let bytes = gate.map_or(usize::MAX, Gate::event_bytes);
            emitter.emit(let_go::request(&call, &round.hole, bytes));
        }
        let duration = done_at.duration_since(call.requested_at);
        emitter.emit(let_go::failed(call.key, &error, duration.as_secs_f64() * 1_000.0));
    }
    Ok(())
}
