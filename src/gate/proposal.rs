//! A round whose plan is drawn up waits for a person's approval, or ends without it.

use std::sync::Arc;

use jiff::Timestamp;
use tokio_util::task::AbortOnDropHandle;

use super::execute::{ExecuteError, Executed, end_cut_off_calls};
use super::patience::End;
use super::performance::{Performance, Played, call_line};
use super::plan::{self, Mode, Plan};
use super::{Denial, answer};
use crate::crash;
use crate::event::{Custom, EventKind};
use crate::interpreter::Ending;
use crate::record::{CallStatus, Outcome, Round, SessionStatus};
use crate::store::StoreError;

impl Performance<'_, '_> {
    /// The plan, if that was what the run was for and it came to an end of its own.
    pub(super) fn drawn_up(&self, mode: &Mode, played: &Played) -> Option<Plan> {
        let Mode::Draw(draft) = mode else { return None };
        let effects = played.host.effects();
        if effects.ending().is_some() || played.was_killed {
            return None;
        }
        let mask = |text: &str| self.stage.gate.secrets().mask(text);
        match &played.finished.ending {
            Ending::Returned { .. } => Some(draft.finish(None)),
            Ending::Raised { traceback, .. } => {
                // What follows the exception's name tells values.
                let mut lines = traceback.lines().filter(|line| !line.starts_with("where "));
                let last = lines.next_back().unwrap_or_default();
                Some(draft.finish(Some(format!("the program raised {}", mask(last)))))
            }
            // Without effects it is the round's own end.
            Ending::Limit { message, .. } => {
                Some(draft.finish(Some(mask(message)))).filter(|plan| !plan.effects.is_empty())
            }
            Ending::Crashed { .. } | Ending::Lost { .. } | Ending::Cancelled => None,
        }
    }

    /// Puts a plan to the person. `None` once there is an answer in the journal; else the round waits for it.
    pub(super) async fn propose(&mut self, round: &mut Round, plan: Plan) -> Result<Option<Executed>, ExecuteError> {
        let mut record = plan::record(&self.session.record().id, round.number);
        let is_approved = plan.effects.is_empty() || self.stage.gate.policy().approves();
        plan::keep(&mut record, &plan, if is_approved { CallStatus::Approved } else { CallStatus::Waiting });
        self.session.journal(round.number).finish(&record).await?;
        crash::point("plan drawn up");
        self.session.emitter().emit(EventKind::Custom(Custom::Plan {
            hash: plan.hash(),
            text: plan.text(),
            effects: plan.effects.iter().filter_map(|effect| serde_json::to_value(effect).ok()).collect(),
        }));
        if is_approved {
            return Ok(None);
        }
        self.session.set_status(SessionStatus::AwaitingApproval);
        let outcome = Outcome::Suspended { on: answer::PLAN.to_owned(), call: record.key };
        let executed = self.halt(round, outcome, Some(format!("{} waits for an approval", plan.title())), None).await?;
        crash::point("plan proposed");
        let attendant = Arc::clone(self.stage.attendant);
        let asking = tokio::spawn(async move { attendant.approve_plan(&plan).await });
        if !self.comes(End::Answer(AbortOnDropHandle::new(asking))).await? {
            return Ok(Some(executed));
        }
        self.session.reopen_round();
        Ok(None)
    }

    /// Ends a round whose plan was not approved.
    pub(super) async fn reject(&mut self, mut round: Round, sentence: String) -> Result<Executed, ExecuteError> {
        end_cut_off_calls(self.session, Some(self.stage.gate), &round, &self.session.emitter(), None).await?;
        round.output.clear();
        round.ended_at = Some(Timestamp::now());
        let outcome = Outcome::Stopped { limit: "denied".to_owned(), message: sentence.clone() };
        Ok(self.halt(&mut round, outcome, None, Some(Denial { sentence, ends_turn: true })).await?)
    }

    /// Stores a round that did nothing but look, with nothing of what it assigned.
    async fn halt(
        &mut self,
        round: &mut Round,
        outcome: Outcome,
        waiting: Option<String>,
        refused: Option<Denial>,
    ) -> Result<Executed, StoreError> {
        round.outcome = Some(outcome.clone());
        let calls = self.session.calls(round.number).await?;
        let made = calls.iter().filter(|call| !plan::is_plan(call));
        let executed = Executed {
            round: round.number,
            hole: round.hole.clone(),
            outcome,
            output: String::new(),
            replies: Vec::new(),
            answers: Vec::new(),
            finished: false,
            contexts: Vec::new(),
            cards: Vec::new(),
            waiting,
            refused,
            calls: made.map(|call| call_line(self.stage.gate, call)).collect(),
            written: Vec::new(),
            not_carried: Vec::new(),
        };
        self.tell_end(round, &executed);
        (self.settle)(self.session, &executed);
        self.session.commit_round(round.clone(), Vec::new(), Vec::new()).await?;
        Ok(executed)
    }
}
