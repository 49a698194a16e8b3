//! Motion: a checked program runs as a round, and what came of it becomes segments.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{Agent, AgentError, Progress, Verdict};
use crate::crash;
use crate::gate::{Attendant, ExecuteError, Executed, Order, Stage, execute, resume};
use crate::program::Program;
use crate::record::Outcome;
use crate::segment::SegmentKind;
use crate::session::Session;

impl Agent {
    /// Runs `program`. The verdict is `None` if another round is needed.
    pub(super) async fn act(
        &self,
        session: &mut Session,
        progress: &mut Progress,
        program: Program,
        attendant: &Arc<dyn Attendant>,
        cancel: &CancellationToken,
    ) -> Result<Option<Verdict>, AgentError> {
        session.push(SegmentKind::Code, program.hole.clone());
        session.save().await?;
        crash::point("program kept");
        let order = Order {
            goal: progress.goal.clone(),
            parents: Some(progress.last_round).filter(|round| *round > 0).into_iter().collect(),
            prompt_tokens: progress.prompt_tokens,
            completion_tokens: progress.completion_tokens,
            ..self.order()
        };
        progress.trace = session.trace().to_owned();
        let stage = self.stage(attendant, cancel);
        let secrets = self.parts.gate.secrets();
        let doubts: Vec<String> = program.warnings.iter().map(|doubt| secrets.mask(&doubt.to_string())).collect();
        let mut settle = |session: &mut Session, executed: &Executed| settle(progress, session, executed, &doubts);
        execute(stage, session, &program, order, &mut settle).await?;
        Ok(progress.verdict.clone())
    }

    /// Goes on with the round that was cut off or waits, if there is one.
    pub(super) async fn act_again(
        &self,
        session: &mut Session,
        progress: &mut Progress,
        attendant: &Arc<dyn Attendant>,
        cancel: &CancellationToken,
    ) -> Result<Option<Verdict>, AgentError> {
        let stage = self.stage(attendant, cancel);
        let mut settle = |session: &mut Session, executed: &Executed| settle(progress, session, executed, &[]);
        resume(stage, session, self.order(), &mut settle).await?;
        Ok(progress.verdict.clone())
    }

    fn stage<'a>(&'a self, attendant: &'a Arc<dyn Attendant>, cancel: &'a CancellationToken) -> Stage<'a> {
        Stage { gate: &self.parts.gate, interpreter: &self.interpreter, attendant, cancel }
    }

    fn order(&self) -> Order {
        Order { file_name: "<program>".to_owned(), limits: self.limits.clone(), ..Order::default() }
    }
}

/// Appends Output and Reply segments of a round that ended, judges it, and leaves in the session what the turn must know to be
/// gone on with. All of it is stored together with the round's end. `doubts` is what the checker let pass and warned of.
fn settle(progress: &mut Progress, session: &mut Session, executed: &Executed, doubts: &[String]) {
    if let Outcome::Suspended { on, .. } = &executed.outcome {
        let question = executed.waiting.clone().unwrap_or_default();
        progress.verdict = Some(Verdict::Waiting { on: on.clone(), question });
    } else {
        session.push(SegmentKind::Output, output_text(executed, doubts));
        for (question, answer) in &executed.answers {
            session.push(SegmentKind::User, format!("{answer}\n(in answer to: {question})"));
        }
        for card in &executed.cards {
            session.push(SegmentKind::Card, card.text.clone());
            if let Some(answer) = &card.answer {
                session.push(SegmentKind::Event, format!("the user answered the card: {answer}"));
            }
        }
        for reply in &executed.replies {
            session.push(SegmentKind::Reply, reply.clone());
        }
        progress.verdict = progress.evaluate(session, executed);
    }
    progress.keep_in(session);
}

/// What the model reads of a round: prints, a last value, the traceback with what the checker had warned of, or the limit, and
/// what was not carried.
fn output_text(executed: &Executed, doubts: &[String]) -> String {
    let mut parts = vec![executed.output.trim_end().to_owned()];
    match &executed.outcome {
        Outcome::Finished { value: Some(value) } => parts.push(value.clone()),
        Outcome::Finished { value: None } if executed.output.is_empty() => {
            parts.push("(nothing was printed)".to_owned())
        }
        Outcome::Finished { value: None } => {}
        Outcome::Raised { traceback, .. } => {
            parts.push(traceback.clone());
            parts.extend(doubts.iter().map(|doubt| format!("(seen before it ran: {doubt})")));
        }
        Outcome::Stopped { message, .. } => parts.push(format!("Stopped: {message}")),
        Outcome::Suspended { on, .. } => parts.push(format!("Waits for {on}.")),
    }
    for (name, reason) in &executed.not_carried {
        parts.push(format!("`{name}` is not kept for the next program: {reason}"));
    }
    parts.extend(executed.contexts.iter().map(|context| format!("(a hook of the user's: {context})")));
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
