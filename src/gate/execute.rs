//! One round from a checked program to a stored outcome. `fimble run` and the agent share it.

use std::collections::BTreeMap;
use std::sync::Arc;

use fimble_toolkit::{ErrorKind, SessionContext, ToolError};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::{Attendant, Gate, RoundGate};
use crate::event::{Custom, EventKind};
use crate::interpreter::{self, Ending, Finished, Interpreter, Limits, Run};
use crate::program::Program;
use crate::record::{CallStatus, Outcome, Round, RoundUsage};
use crate::session::{Emitter, Session, written_variable};
use crate::store::StoreError;

/// Characters of a call's arguments in [`Executed::calls`].
const LINE_CHARACTERS: usize = 100;

/// What a round is for and what it may use.
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
    /// The trace id of the turn.
    pub trace: String,
}

/// What a round came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Executed {
    /// Its number.
    pub round: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// What it printed, masked and cut to the limit.
    pub output: String,
    /// What was said to the user.
    pub replies: Vec<String>,
    /// Questions that were answered, with the answers.
    pub answers: Vec<(String, String)>,
    /// True if it called `finish`.
    pub finished: bool,
    /// The question that the next message answers.
    pub waiting: Option<String>,
    /// The sentence of a refused call.
    pub refused: Option<String>,
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

/// Runs `program` as the session's next round, and stores all that came of it.
///
/// # Errors
/// The interpreter could not start a process, or the store failed. What the program did wrong is an [`Outcome`].
pub async fn execute(
    gate: &Arc<Gate>,
    interpreter: &Interpreter,
    session: &mut Session,
    program: &Program,
    order: Order,
    attendant: Arc<dyn Attendant>,
    cancel: &CancellationToken,
) -> Result<Executed, ExecuteError> {
    let Program { prefix, hole, suffix, .. } = program;
    let goal = gate.secrets().mask(&order.goal);
    let mut round =
        session.begin_round(order.goal, order.parents, prefix.clone(), hole.clone(), suffix.clone()).await?;
    let emitter = session.emitter();
    emitter.emit(EventKind::Custom(Custom::Program {
        prefix: prefix.clone(),
        hole: hole.clone(),
        suffix: suffix.clone(),
        repairs: program.repairs.clone(),
    }));
    let context = SessionContext {
        session: session.record().id.clone(),
        round: round.number,
        trace: order.trace,
        tenant: session.record().tenant.clone(),
        user: session.record().user.clone(),
        ..SessionContext::default()
    };
    let variables: BTreeMap<_, _> = session.variables().clone();
    let killed = cancel.child_token();
    let entered = gate.live().enter(&context.session, round.number, &goal, order.limits.wall_s, killed.clone());
    let host = Arc::new(RoundGate::new(
        Arc::clone(gate),
        session.journal(round.number),
        emitter.clone(),
        context,
        Arc::clone(&entered.running),
        attendant,
        variables,
    ));
    let run = Run {
        source: hole.clone(),
        file_name: order.file_name,
        variables: session.carried(&program.names).await?,
        proxies: gate.declarations().into_iter().map(|declaration| declaration.name).collect(),
        limits: order.limits,
    };
    let ran = interpreter.run(run, Arc::clone(&host) as Arc<dyn interpreter::Host>, killed.clone()).await;
    drop(entered);
    let was_killed = killed.is_cancelled() && !cancel.is_cancelled();
    let finished = match ran {
        Ok(finished) => finished,
        Err(error) => {
            // A round that was opened is ended, whatever happened: nothing may look as if it still ran.
            let stopped = Outcome::Stopped { limit: "crash".to_owned(), message: error.to_string() };
            round.outcome = Some(stopped);
            round.ended_at = Some(Timestamp::now());
            session.commit_round(round, Vec::new(), Vec::new()).await?;
            return Err(error.into());
        }
    };
    end_cut_off_calls(session, &round, &emitter).await?;

    let effects = host.effects();
    round.outcome = Some(outcome(gate, &finished, was_killed));
    round.output = gate.secrets().mask(&finished.output);
    round.statements_done = finished.statements_done;
    round.ended_at = Some(Timestamp::now());
    round.usage = RoundUsage {
        wall_ms: finished.usage.wall.as_secs_f64() * 1_000.0,
        cpu_ms: finished.usage.cpu.as_secs_f64() * 1_000.0,
        peak_rss_kib: finished.usage.peak_rss_kib,
        prompt_tokens: order.prompt_tokens,
        completion_tokens: order.completion_tokens,
    };
    // A name that holds what cannot be kept must not read as its older value in the next round.
    let mut removed = finished.removed;
    let outdated =
        finished.not_carried.iter().map(|(name, _)| name).filter(|name| session.variables().contains_key(*name));
    removed.extend(outdated.cloned());
    let written = finished.written.into_iter().map(|mut captured| {
        captured.preview = gate.secrets().mask(&captured.preview);
        written_variable(captured, round.number)
    });
    let written = written.collect();
    let (written, too_large) = session.fit(written, &removed);
    let outdated = too_large.iter().map(|(name, _)| name).filter(|name| session.variables().contains_key(*name));
    removed.extend(outdated.cloned().collect::<Vec<_>>());
    removed.sort();
    removed.dedup();
    let mut not_carried = finished.not_carried;
    not_carried.extend(too_large);
    round.written = written.iter().map(|written| written.variable.name.clone()).collect();
    round.removed = removed.clone();
    let outcome = round.outcome.clone().unwrap_or(Outcome::Finished { value: None });
    let (kind, message) = ending_words(&outcome);
    let value = match &outcome {
        Outcome::Finished { value } => value.clone(),
        _ => None,
    };
    emitter.emit(EventKind::Custom(Custom::RoundEnded {
        outcome: kind.to_owned(),
        message,
        value,
        written: round.written.clone(),
        removed: round.removed.clone(),
        not_carried: not_carried.clone(),
        wall_ms: round.usage.wall_ms,
        cpu_ms: round.usage.cpu_ms,
    }));
    let executed = Executed {
        round: round.number,
        outcome,
        output: round.output.clone(),
        replies: effects.replies(),
        answers: effects.answers(),
        finished: effects.finished(),
        waiting: effects.waiting(),
        refused: effects.refused(),
        calls: Vec::new(),
        written: round.written.clone(),
        not_carried,
    };
    session.commit_round(round, written, removed).await?;
    let calls = session.calls(executed.round).await?.iter().map(|call| call_line(gate, call)).collect();
    Ok(Executed { calls, ..executed })
}

/// Ends the calls that the program, or its end, left unanswered: their toolkits were told to stop.
async fn end_cut_off_calls(session: &Session, round: &Round, emitter: &Emitter) -> Result<(), StoreError> {
    let journal = session.journal(round.number);
    for mut call in session.calls(round.number).await? {
        if call.status != CallStatus::Requested {
            continue;
        }
        let error = ToolError::new(ErrorKind::Failed, "cut off: the program no longer waited for the answer");
        let content = error.to_string();
        call.status = CallStatus::Failed { error };
        call.done_at = Some(Timestamp::now());
        journal.finish(&call).await?;
        let duration = Timestamp::now().duration_since(call.requested_at);
        emitter.emit(EventKind::ToolCallResult {
            message_id: format!("{}-result", call.key),
            tool_call_id: call.key,
            content,
            role: "tool".to_owned(),
            failed: true,
            duration_ms: duration.as_secs_f64() * 1_000.0,
        });
    }
    Ok(())
}

fn outcome(gate: &Gate, finished: &Finished, was_killed: bool) -> Outcome {
    match &finished.ending {
        Ending::Returned { value } => {
            Outcome::Finished { value: value.as_deref().map(|value| gate.secrets().mask(value)) }
        }
        Ending::Raised { traceback, statement, .. } => {
            Outcome::Raised { traceback: gate.secrets().mask(traceback), statement: *statement }
        }
        Ending::Limit { limit, message } => Outcome::Stopped { limit: (*limit).to_owned(), message: message.clone() },
        Ending::Crashed { message } => Outcome::Stopped { limit: "crash".to_owned(), message: message.clone() },
        Ending::Cancelled if was_killed => Outcome::Stopped {
            limit: "killed".to_owned(),
            message: "a person ended the program with `fimble kill`; nothing that it assigned was kept".to_owned(),
        },
        Ending::Cancelled => {
            Outcome::Stopped { limit: "cancelled".to_owned(), message: "the user stopped the program".to_owned() }
        }
    }
}

fn ending_words(outcome: &Outcome) -> (&'static str, String) {
    match outcome {
        Outcome::Finished { .. } => ("finished", String::new()),
        Outcome::Raised { traceback, .. } => ("raised", traceback.clone()),
        Outcome::Suspended { on, .. } => ("suspended", on.clone()),
        Outcome::Stopped { message, .. } => ("stopped", message.clone()),
    }
}

/// `git_toolkit.log(limit=5)`, with what went wrong if it failed.
fn call_line(gate: &Gate, call: &crate::record::CallRecord) -> String {
    let arguments: Vec<String> = call.arguments.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut arguments = arguments.join(", ");
    if let Some((end, _)) = arguments.char_indices().nth(LINE_CHARACTERS) {
        arguments.truncate(end);
        arguments.push('…');
    }
    let line = format!("{}.{}({arguments})", call.toolkit, call.operation);
    let line = match &call.status {
        CallStatus::Done { .. } => line,
        CallStatus::Failed { error } => format!("{line} failed: {error}"),
        CallStatus::Requested => format!("{line} was cut off"),
    };
    gate.secrets().mask(&line)
}
