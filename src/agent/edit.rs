//! A person's hand in place of the model's: what is left of a program is written by them, and takes the same way. What ran is
//! not run again.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::turn::Failed;
use super::{Agent, AgentError, Progress, Verdict, express, perceive};
use crate::gate::{AnswerError, Attendant, abandon, withdraw};
use crate::program::{Refusal, after_statements, statements};
use crate::record::{Outcome, Round};
use crate::segment::SegmentKind;
use crate::session::Session;
use crate::store::StoreError;

/// What the next programs read of it.
const NOTE: &str = "The user wrote the program below.";

/// What is left of a session's last program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// The round's number.
    pub round: u64,
    /// Its statements that ran, whose variables are kept, in order.
    pub done: Vec<String>,
    /// What has not run, as it stands.
    pub rest: String,
}

/// What became of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edited {
    /// It ran, and the turn went on from there.
    Ran(Verdict),
    /// It cannot run; nothing was done but that the old program has ended.
    Refused(Refusal),
}

impl Pending {
    /// What is left of the session's last program: it waits, it raised, or a limit ended it. `None` if it ran to its end, if it
    /// was cut off and has to be resumed first, or if there is none.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn of(session: &Session) -> Result<Option<Self>, StoreError> {
        let Some(before) = session.record().rounds.checked_sub(1) else { return Ok(None) };
        Ok(session.rounds(before).await?.pop().and_then(|round| Self::of_round(&round)))
    }

    fn of_round(round: &Round) -> Option<Self> {
        let ran = match round.outcome.as_ref()? {
            Outcome::Finished { .. } => return None,
            Outcome::Suspended { .. } => round.statements_done,
            Outcome::Raised { statement, .. } => statement.saturating_sub(1),
            // Nothing of it was kept.
            Outcome::Stopped { .. } => 0,
        };
        let ran = usize::try_from(ran).unwrap_or(usize::MAX);
        let rest = after_statements(&round.hole, ran).to_owned();
        let done = statements(&round.hole).into_iter().take(ran).collect();
        Some(Self { round: round.number, done, rest }).filter(|pending| !pending.rest.trim().is_empty())
    }
}

impl Agent {
    /// Runs `hole` in place of what is left of the session's last program, see [`Pending`], and goes on with the turn. A call
    /// that it waits with is not made. `None` if nothing is left.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    pub async fn edit(
        &self,
        session: &mut Session,
        hole: &str,
        attendant: Arc<dyn Attendant>,
        cancel: &CancellationToken,
    ) -> Result<Option<Edited>, AgentError> {
        let Some(pending) = Pending::of(session).await? else { return Ok(None) };
        let goal = match session.rounds(pending.round.saturating_sub(1)).await?.pop() {
            Some(round) => round.goal,
            None => return Ok(None),
        };
        if session.open_round().is_some() {
            self.end_before_its_call(session, &goal, &attendant, cancel).await?;
        }
        let mut progress = Progress::of_message(&goal, &self.config);
        progress.last_round = pending.round;
        let failed = statements(&pending.rest).into_iter().next();
        progress.failed = failed.map(|statement| Failed { statement, traceback: "edited by the user".to_owned() });
        progress.done = pending.done;
        let program = match self.parts.splice(session, &progress, hole, false).await {
            Ok(program) => program,
            Err(refusal) => return Ok(Some(Edited::Refused(refusal))),
        };
        session.push(SegmentKind::Context, NOTE);
        progress.keep_in(session);
        let begun = perceive::begin(session, uuid::Uuid::now_v7().to_string(), &self.interpreter).await?;
        let verdict = match self.act(session, &mut progress, program, &attendant, cancel).await {
            Ok(None) => self.rounds(session, progress, &attendant, cancel).await,
            Ok(Some(verdict)) => Ok(verdict),
            Err(error) => Err(error),
        };
        express::express(session, &begun, verdict).await.map(|verdict| Some(Edited::Ran(verdict)))
    }

    /// Runs a program that waits up to its call, which is taken back, so that what it assigned is kept.
    async fn end_before_its_call(
        &self,
        session: &mut Session,
        goal: &str,
        attendant: &Arc<dyn Attendant>,
        cancel: &CancellationToken,
    ) -> Result<(), AgentError> {
        match withdraw(session, &self.parts.gate).await {
            Ok(()) => {}
            Err(AnswerError::Store(error)) => return Err(error.into()),
            // It does not wait any more.
            Err(_) => return Ok(()),
        }
        let kept = Progress::of_session(session)?;
        let mut progress = kept.unwrap_or_else(|| Progress::of_message(goal, &self.config));
        progress.verdict = None;
        self.act_again(session, &mut progress, attendant, cancel).await?;
        abandon(session, Some(&self.parts.gate), "the user edited it").await?;
        Ok(())
    }
}
