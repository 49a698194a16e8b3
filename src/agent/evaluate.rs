//! Self-evaluation: what a round came to, and what the next one is for.
//!
//! Judged by facts (did it raise, did it reply), never by asking a model.

use super::turn::{Cause, Failed, Progress, Verdict};
use crate::gate::{Denial, Executed};
use crate::program::statements;
use crate::record::Outcome;
use crate::segment::SegmentKind;
use crate::session::Session;

/// Rounds that may end clean and silent before what they printed is passed on as the answer.
const SILENT_ROUNDS: u32 = 2;

impl Progress {
    /// The verdict, or `None` if another round is needed; its goal is then set.
    pub(super) fn evaluate(&mut self, session: &mut Session, executed: &Executed) -> Option<Verdict> {
        self.rounds += 1;
        self.attempts.clear();
        (self.prompt_tokens, self.completion_tokens) = (0, 0);
        self.last_round = executed.round;
        let replied = !executed.replies.is_empty() || executed.cards.iter().any(|card| card.replies);
        self.replied |= replied;
        let told =
            |call: &String| !call.starts_with("system_toolkit.send_message") && !call.starts_with("card_toolkit.");
        self.calls.extend(executed.calls.iter().filter(|call| told(call)).cloned());
        if let Some(Denial { sentence, ends_turn: true }) = executed.refused.clone() {
            self.trouble = sentence.clone();
            return Some(Verdict::Denied { account: self.account(&format!("because {sentence}")) });
        }
        match executed.outcome.clone() {
            Outcome::Finished { .. } if replied || executed.finished => return Some(Verdict::Replied),
            Outcome::Finished { value } => {
                self.done.clear();
                self.failed = None;
                self.silent += 1;
                self.cause = Cause::Unsettled;
                self.forget_failure();
                self.trouble.clear();
                let shown = [executed.output.trim(), value.as_deref().unwrap_or_default()].join("\n").trim().to_owned();
                if self.silent >= SILENT_ROUNDS && !shown.is_empty() {
                    return Some(Verdict::Relayed { text: shown });
                }
                self.next(session, "Tell the user the answer with system_toolkit.send_message.");
            }
            Outcome::Raised { traceback, statement, .. } => {
                self.silent = 0;
                self.failed_hole.clone_from(&executed.hole);
                let statements = statements(&executed.hole);
                self.fail(Cause::Raised, traceback.clone());
                let ran = usize::try_from(statement.saturating_sub(1)).unwrap_or(usize::MAX);
                self.done.extend(statements.iter().take(ran).cloned());
                let failed = statements.get(ran).cloned().unwrap_or_default();
                self.failed = Some(Failed { statement: failed, traceback });
            }
            Outcome::Stopped { limit, message } if limit == "cancelled" => {
                self.trouble = message;
                return Some(Verdict::Cancelled);
            }
            // Whoever ended it from outside does not want to see it again.
            Outcome::Stopped { limit, message } if limit == "killed" => {
                self.cause = Cause::Stopped;
                return Some(Verdict::GaveUp {
                    account: self.account(&format!("because {message}")),
                    cause: Cause::Stopped,
                });
            }
            Outcome::Stopped { message, .. } | Outcome::Suspended { on: message, .. } => {
                self.done.clear();
                self.failed = None;
                self.failed_hole.clone_from(&executed.hole);
                self.fail(Cause::Stopped, message);
                self.next(session, "Reach the goal in a way that does not hit this limit.");
            }
        }
        None
    }

    pub(super) fn next(&mut self, session: &mut Session, goal: &str) {
        session.push(SegmentKind::NextGoal, goal);
        self.goal = format!("{} — {goal}", self.request);
    }
}
