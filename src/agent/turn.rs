//! What a turn knows between its rounds, and how it may end.

use serde::{Deserialize, Serialize};

use super::Config;
use crate::event::{Custom, EventKind};
use crate::llm::Completion;
use crate::program::{Finding, Program, Refusal};
use crate::prompt::Attempt;
use crate::session::{Emitter, Session};
use crate::store::StoreError;

/// Calls that an account lists.
const ACCOUNT_LINES: usize = 20;

/// Rounds in a row that may fail in the same way before the turn gives up.
const SAME_TROUBLE: u32 = 3;

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// A program ran clean and replied.
    Replied,
    /// No program replied, but one printed what looks like the answer; it is passed on.
    Relayed {
        /// What was printed.
        text: String,
    },
    /// The program waits for what may take long. The next message answers a question.
    Waiting {
        /// `approval`, `plan`, `question`, `card`, `doubt`, `task` or `sleep`.
        on: String,
        /// The question, until when it sleeps, or what works at its task.
        question: String,
    },
    /// A call was refused.
    Denied {
        /// What was refused and what had been done.
        account: String,
    },
    /// A budget ended it.
    GaveUp {
        /// What was done and what is missing.
        account: String,
        /// What the last round died of.
        cause: Cause,
    },
    /// The user stopped it.
    Cancelled,
}

/// What the last round of a turn that gave up died of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It ran clean, but nothing was settled.
    Unsettled,
    /// It raised.
    Raised,
    /// A limit or a crash.
    Stopped,
    /// No program could be run.
    Refused,
}

/// What a turn knows between its rounds. It is stored with each round's end, so that whoever finds the session can go on.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// What the next round is to reach.
    pub goal: String,
    /// The last round's number; 0 before the first of this turn.
    pub last_round: u64,
    /// Statements of the failed round that ran, oldest first.
    pub done: Vec<String>,
    /// The statement that raised and its traceback.
    pub failed: Option<Failed>,
    /// Programs run.
    pub rounds: u32,
    /// Programs in a row that could not run.
    pub attempts: Vec<Attempt>,
    /// Rounds in a row that ran clean and said nothing to the user.
    pub silent: u32,
    /// Tokens used.
    pub tokens: u32,
    pub(super) request: String,
    pub(super) calls: Vec<String>,
    pub(super) trouble: String,
    pub(super) cause: Cause,
    pub(super) replied: bool,
    /// The last hole that raised or was stopped.
    pub(super) failed_hole: String,
    /// The sentence that the last round failed with.
    failure: String,
    /// Rounds in a row that failed with it.
    pub(super) same_trouble: u32,
    pub(super) prompt_tokens: u32,
    pub(super) completion_tokens: u32,
    /// How often a hook has sent the model back to work.
    #[serde(default)]
    pub(super) sent_back: u32,
    /// What its rounds are traced as; empty before the first.
    #[serde(default)]
    pub(super) trace: String,
    /// How the last round settles the turn, if it does.
    pub(super) verdict: Option<Verdict>,
    max_rounds: u32,
    max_refusals: u32,
    max_tokens: u32,
}

/// A statement that raised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// Its source.
    pub statement: String,
    /// The traceback.
    pub traceback: String,
}

impl Progress {
    pub(super) fn of_message(message: &str, config: &Config) -> Self {
        let request = message.to_owned();
        Self {
            goal: request.clone(),
            last_round: 0,
            done: Vec::new(),
            failed: None,
            rounds: 0,
            silent: 0,
            tokens: 0,
            attempts: Vec::new(),
            request,
            calls: Vec::new(),
            trouble: String::new(),
            cause: Cause::Unsettled,
            replied: false,
            failed_hole: String::new(),
            failure: String::new(),
            same_trouble: 0,
            prompt_tokens: 0,
            completion_tokens: 0,
            sent_back: 0,
            trace: String::new(),
            verdict: None,
            max_rounds: config.max_rounds,
            max_refusals: config.max_refusals,
            max_tokens: config.max_turn_tokens,
        }
    }

    /// What was kept of the turn under way; `None` if there is none.
    ///
    /// # Errors
    /// `Corrupt` for what another program, or another version of this one, has kept.
    pub(super) fn of_session(session: &Session) -> Result<Option<Self>, StoreError> {
        let Some(kept) = session.record().turn.clone() else { return Ok(None) };
        serde_json::from_value(kept)
            .map(Some)
            .map_err(|error| StoreError::Corrupt { what: "turn", message: error.to_string() })
    }

    /// Keeps it in the session; stored with whatever is stored next.
    pub(super) fn keep_in(&self, session: &mut Session) {
        session.set_turn(serde_json::to_value(self).ok());
    }

    /// The verdict if a budget is used up.
    pub(super) fn exhausted(&self) -> Option<Verdict> {
        let reason = if self.rounds >= self.max_rounds {
            format!("after {} rounds, the most a turn may have (`agent.max_rounds`)", self.rounds)
        } else if self.attempts.len() >= self.max_refusals as usize {
            format!("because the model wrote {} programs in a row that cannot run", self.attempts.len())
        } else if self.same_trouble >= SAME_TROUBLE {
            format!("because {SAME_TROUBLE} rounds in a row failed in the same way")
        } else if self.tokens >= self.max_tokens {
            format!("after {} tokens, the most a turn may use (`agent.max_turn_tokens`)", self.tokens)
        } else {
            return None;
        };
        Some(Verdict::GaveUp { account: self.account(&reason), cause: self.cause })
    }

    /// What was done and what is missing, in the host's own words.
    pub(super) fn account(&self, reason: &str) -> String {
        let mut text = format!("I stopped {reason}.");
        if self.calls.is_empty() {
            text.push_str("\n\nDone: no call was made.");
        } else {
            text.push_str("\n\nDone:");
            let hidden = self.calls.len().saturating_sub(ACCOUNT_LINES);
            if hidden > 0 {
                text.push_str(&format!("\n- {hidden} earlier calls"));
            }
            for call in &self.calls[hidden..] {
                text.push_str("\n- ");
                text.push_str(call);
            }
        }
        let missing = if self.replied { "the rest of" } else { "an answer to" };
        let request = self.request.lines().next().unwrap_or_default();
        text.push_str(&format!("\n\nMissing: {missing} “{request}”."));
        if !self.trouble.is_empty() {
            text.push_str("\n\nThe last trouble was:\n");
            text.push_str(&self.trouble);
        }
        text
    }

    /// Notes a program that could not run: the model reads why when it is asked again.
    pub(super) fn refused(&mut self, emitter: &Emitter, refusal: Refusal) {
        let message = refusal.to_string();
        emitter.emit(EventKind::Custom(Custom::Refused { hole: refusal.hole, message: message.clone() }));
        let notes = refusal.findings.into_iter().map(|finding| finding.message).collect();
        self.attempts.push(Attempt { notes });
        self.trouble = message;
        self.cause = Cause::Refused;
    }

    /// Notes what a round failed of.
    pub(super) fn fail(&mut self, cause: Cause, trouble: String) {
        // The last line that names the exception; what follows it tells values.
        let mut lines = trouble.lines().filter(|line| !line.starts_with("where "));
        let sentence = lines.next_back().unwrap_or_default().to_owned();
        self.same_trouble = if sentence == self.failure { self.same_trouble + 1 } else { 1 };
        self.failure = sentence;
        self.cause = cause;
        self.trouble = trouble;
    }

    /// A clean round: what failed before does not count any more.
    pub(super) fn forget_failure(&mut self) {
        self.failure.clear();
        self.same_trouble = 0;
    }

    /// Refuses a program that failed just now: it would fail again.
    pub(super) fn refuse_repetition(&self, program: Program) -> Result<Program, Refusal> {
        if program.hole != self.failed_hole {
            return Ok(program);
        }
        let message = "this is the program that failed just now; write it differently".to_owned();
        Err(Refusal { hole: program.hole, findings: vec![Finding { line: 1, message }] })
    }

    /// Counts what a request cost.
    pub(super) fn spend(&mut self, completion: &Completion) {
        // A server's numbers are its own; absurd ones must not bring the turn down.
        let (prompt, generated) = (completion.usage.prompt, completion.usage.completion);
        self.prompt_tokens = self.prompt_tokens.saturating_add(prompt);
        self.completion_tokens = self.completion_tokens.saturating_add(generated);
        self.tokens = self.tokens.saturating_add(prompt).saturating_add(generated);
    }
}
