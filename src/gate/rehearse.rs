//! Calls of a round with a plan: simulated while it is drawn up, and held to it afterwards.

use std::ops::ControlFlow;
use std::time::Instant;

use fimble_toolkit::{ErrorKind, Operation, Preview, Risk, ToolError, Toolkit};
use serde_json::{Map, Value};

use super::plan::{self, Draft, Plan, PlannedEffect};
use super::round::{Start, is_own, not_journaled};
use super::{Decision, RoundGate};
use crate::record::{CallRecord, CallStatus};

/// The way of a call that goes on, or its answer.
pub(super) type Way<T> = ControlFlow<Result<Value, ToolError>, T>;

/// What a program does to its own session while its plan is drawn up is done when it is carried out.
const LATER: [&str; 3] = ["finish", "send_message", "sleep"];

impl RoundGate {
    /// Answers a call that would change something without making it, and notes it in the plan. What only looks goes on.
    pub(super) async fn rehearse(
        &self,
        draft: &Draft,
        mut record: CallRecord,
        toolkit: &dyn Toolkit,
        operation: &Operation,
        arguments: &Map<String, Value>,
    ) -> Way<CallRecord> {
        if is_own(&record) {
            return match LATER.contains(&record.operation.as_str()) {
                true => {
                    draft.note(record.number, record.readings);
                    ControlFlow::Break(Ok(Value::Null))
                }
                false => ControlFlow::Continue(record),
            };
        }
        if record.risk == Risk::Read {
            return ControlFlow::Continue(record);
        }
        let policy = self.gate.policy();
        let judgement = self.gate.judge(&self.caller().subject(&record, arguments));
        if judgement.decision == Decision::Deny {
            let error = judgement.refusal(&policy, &record);
            return ControlFlow::Break(self.fail(&mut record, false, error).await.map(|_| Value::Null));
        }
        let previewed = self.gate.preview(toolkit, operation, &record, arguments.clone(), &self.context).await;
        let secrets = self.gate.secrets();
        let (preview, answer) = match previewed {
            Ok(Some(Preview { effect, result })) => {
                let mut result = result.unwrap_or_else(|| plan::stand_in(&operation.returns));
                secrets.mask_value(&mut result);
                (Some(plan::kept_preview(effect, secrets)), Ok(result))
            }
            Ok(None) => (None, Ok(plan::stand_in(&operation.returns))),
            Err(error) => (None, Err(error)),
        };
        let reason = judgement.reason(&policy).map(|reason| secrets.mask(&reason));
        let CallRecord { number, key, toolkit, operation, arguments, risk, readings, .. } = record.clone();
        draft.note(number, readings);
        let effect = PlannedEffect {
            number,
            key,
            toolkit,
            operation,
            arguments,
            risk,
            preview,
            answer: answer.clone(),
            reason,
            struck: false,
        };
        let (most, most_kib) = (self.gate.config.plan_effects, self.gate.config.plan_kib);
        if !draft.add(effect, most, most_kib.saturating_mul(1_024)) {
            let message = format!("a plan has at most {most} effects and {most_kib} KiB, so this program was stopped");
            let error = ToolError::new(ErrorKind::Denied, message).with_hint("do it in several programs");
            return ControlFlow::Break(self.fail(&mut record, false, error).await.map(|_| Value::Null));
        }
        ControlFlow::Break(answer)
    }

    /// Lets a call pass that was approved with the plan, and stops one that changes something and was not.
    pub(super) async fn carry(&self, plan: &Plan, start: Start, arguments: &Map<String, Value>) -> Way<Start> {
        let (record, is_new) = match &start {
            Start::Again(record) => (record, false),
            Start::New(record) => (record, true),
        };
        if is_own(record) {
            return ControlFlow::Continue(start);
        }
        match plan.effect(&record.key) {
            Some(effect) if effect.struck => ControlFlow::Break(self.pass_over(effect, record.clone(), is_new).await),
            Some(_) if is_new => {
                let mut record = record.clone();
                let judgement = self.gate.judge(&self.caller().subject(&record, arguments));
                // An approval answers what would be asked. What is refused by now was approved under another policy.
                if judgement.decision == Decision::Deny {
                    let error = judgement.refusal(&self.gate.policy(), &record);
                    return ControlFlow::Break(self.fail(&mut record, false, error).await.map(|_| Value::Null));
                }
                record.status = CallStatus::Approved;
                match self.journal.request(&record).await {
                    Ok(()) => ControlFlow::Continue(Start::Again(record)),
                    Err(error) => ControlFlow::Break(Err(not_journaled(error))),
                }
            }
            None if is_new && record.risk != Risk::Read => {
                let sentence = format!(
                    "the program would call {}.{} at line {} with arguments that are not in the approved plan; it was \
                     stopped before that",
                    record.toolkit, record.operation, record.site.line
                );
                self.effects.diverge(sentence.clone());
                ControlFlow::Break(Err(ToolError::new(ErrorKind::Denied, sentence)))
            }
            _ => ControlFlow::Continue(start),
        }
    }

    /// Answers a struck call as in the first run; the journal says that it was not made.
    async fn pass_over(
        &self,
        effect: &PlannedEffect,
        mut record: CallRecord,
        is_new: bool,
    ) -> Result<Value, ToolError> {
        if is_new {
            record.status = CallStatus::Failed { error: plan::struck() };
            record.done_at = Some(self.replay.end());
            self.journal.request(&record).await.map_err(not_journaled)?;
        }
        self.tell_request(&record);
        self.tell_result(&record, Instant::now());
        effect.answer.clone()
    }
}
