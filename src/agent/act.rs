//! Motion: a checked program runs as a round, and what came of it becomes segments.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{Agent, AgentError, Progress};
use crate::gate::{Attendant, ExecuteError, Executed, Order, execute};
use crate::program::Program;
use crate::record::Outcome;
use crate::segment::SegmentKind;
use crate::session::Session;

/// A round, as evaluation judges it.
pub(super) struct Acted {
    pub(super) round: u64,
    pub(super) outcome: Outcome,
    pub(super) output: String,
    pub(super) replied: bool,
    pub(super) finished: bool,
    pub(super) waiting: Option<String>,
    pub(super) refused: Option<String>,
    pub(super) calls: Vec<String>,
    pub(super) statements: Vec<String>,
    pub(super) hole: String,
}

impl Agent {
    /// Runs `program` and appends Code, Output and Reply segments.
    pub(super) async fn act(
        &self,
        session: &mut Session,
        progress: &Progress,
        program: Program,
        attendant: Arc<dyn Attendant>,
        cancel: &CancellationToken,
    ) -> Result<Acted, AgentError> {
        session.push(SegmentKind::Code, program.hole.clone());
        session.save().await?;
        let order = Order {
            goal: progress.goal.clone(),
            parents: Some(progress.last_round).filter(|round| *round > 0).into_iter().collect(),
            file_name: "<program>".to_owned(),
            limits: self.limits.clone(),
            prompt_tokens: progress.prompt_tokens,
            completion_tokens: progress.completion_tokens,
            trace: String::new(),
        };
        let executed =
            execute(&self.parts.gate, &self.interpreter, session, &program, order, attendant, cancel).await?;
        session.push(SegmentKind::Output, output_text(&executed));
        for (question, answer) in &executed.answers {
            session.push(SegmentKind::User, format!("{answer}\n(in answer to: {question})"));
        }
        for reply in &executed.replies {
            session.push(SegmentKind::Reply, reply.clone());
        }
        session.save().await?;
        Ok(Acted {
            round: executed.round,
            outcome: executed.outcome,
            output: executed.output,
            replied: !executed.replies.is_empty(),
            finished: executed.finished,
            waiting: executed.waiting,
            refused: executed.refused,
            calls: executed.calls,
            statements: crate::program::statements(&program.hole),
            hole: program.hole,
        })
    }
}

/// What the model reads of a round: prints, a last value, the traceback or the limit, and what was not carried.
fn output_text(executed: &Executed) -> String {
    let mut parts = vec![executed.output.trim_end().to_owned()];
    match &executed.outcome {
        Outcome::Finished { value: Some(value) } => parts.push(value.clone()),
        Outcome::Finished { value: None } if executed.output.is_empty() => {
            parts.push("(nothing was printed)".to_owned())
        }
        Outcome::Finished { value: None } => {}
        Outcome::Raised { traceback, .. } => parts.push(traceback.clone()),
        Outcome::Stopped { message, .. } => parts.push(format!("Stopped: {message}")),
        Outcome::Suspended { on, .. } => parts.push(format!("Waits for {on}.")),
    }
    for (name, reason) in &executed.not_carried {
        parts.push(format!("`{name}` is not kept for the next program: {reason}"));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

impl From<ExecuteError> for AgentError {
    fn from(error: ExecuteError) -> Self {
        match error {
            ExecuteError::Interpreter(error) => AgentError::Interpreter(error),
            ExecuteError::Store(error) => AgentError::Store(error),
        }
    }
}
