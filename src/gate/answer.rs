//! What a suspended round waits for, in words, and how a person's answer is written into its journal.

use fimble_toolkit::{ErrorKind, ToolError};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::consent::{ALWAYS, Approval, Caller, Consent};
use super::plan::{self, PLAN_ANSWERS, Plan, PlanConsent};
use super::replay::end_after;
use super::{Gate, MemoryError, Secrets, cards, task};
use crate::crash;
use crate::record::{CallRecord, CallStatus, Outcome};
use crate::session::Session;
use crate::store::StoreError;

/// A call waits for a person's approval.
pub(super) const APPROVAL: &str = "approval";
/// `ask_user` waits for its answer.
pub(super) const QUESTION: &str = "question";
/// A card waits for what a person does with it.
pub(super) const CARD: &str = "card";
/// Nobody knows whether a call was made.
pub(super) const DOUBT: &str = "doubt";
/// A plan waits for a person's approval.
pub(super) const PLAN: &str = "plan";
/// The program sleeps.
pub(super) const SLEEP: &str = "sleep";
/// The system behind a toolkit works at a task.
pub(super) const TASK: &str = "task";

/// What a suspended round waits for.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiting {
    /// The round's number.
    pub round: u64,
    /// `approval`, `plan`, `question`, `card`, `doubt`, `task` or `sleep`.
    pub on: String,
    /// The question, until when it sleeps, or what works at its task.
    pub text: String,
    /// Answers that make sense; empty if any does, or none.
    pub choices: Vec<String>,
    /// When it goes on by itself, if it does, or its tasks are looked at.
    pub until: Option<Timestamp>,
    call: CallRecord,
    /// When the round's last call ended.
    ended: Option<Timestamp>,
}

/// Why an answer was not taken.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// The session's last round waits for nothing.
    #[error("nothing waits for an answer in session `{0}`")]
    NothingWaits(String),
    /// The answer is none of those that make sense.
    #[error("`{answer}` is no answer to: {question}")]
    NotAnAnswer {
        /// What was said.
        answer: String,
        /// What was asked.
        question: String,
        /// What makes sense.
        choices: Vec<String>,
    },
    /// The answer to an approval cannot be read, or cannot be given to this call.
    #[error("{reason}\n\nthe question is: {question}")]
    NotAnApproval {
        /// What is wrong with it.
        reason: String,
        /// What was asked.
        question: String,
        /// What can be said.
        hint: String,
    },
    /// It cannot be remembered.
    #[error("what is said `always` to cannot be remembered: {0}")]
    Memory(#[from] MemoryError),
    /// It does not fit the card that was shown.
    #[error("`{answer}` does not fit: {problem}")]
    DoesNotFit {
        /// What was said.
        answer: String,
        /// How to answer.
        problem: String,
        /// The card.
        card: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AnswerError {
    /// What the user can do.
    pub fn hint(&self) -> Option<String> {
        match self {
            AnswerError::NothingWaits(id) => Some(format!("`fimble sessions show {id}` shows how it stands")),
            AnswerError::NotAnAnswer { choices, .. } if choices.is_empty() => {
                Some("it goes on by itself when the time has come or the task is done; `fimble sessions resume` waits for it".to_owned())
            }
            AnswerError::NotAnAnswer { choices, .. } => Some(format!("answer {}", choices.join(" or "))),
            AnswerError::NotAnApproval { hint, .. } => Some(hint.clone()),
            AnswerError::Memory(error) => Some(format!("answer `yes` to approve it once; {}", error.hint())),
            AnswerError::DoesNotFit { card, .. } => Some(card.clone()),
            AnswerError::Store(error) => error.hint().map(str::to_owned),
        }
    }
}

/// What the session's last round waits for, if it does.
///
/// # Errors
/// Those of the store.
pub async fn waiting(session: &Session, gate: &Gate) -> Result<Option<Waiting>, StoreError> {
    let Some((round, on, key)) = session.open_round().and_then(|round| match &round.outcome {
        Some(Outcome::Suspended { on, call }) => Some((round.number, on.clone(), call.clone())),
        _ => None,
    }) else {
        return Ok(None);
    };
    let calls = session.calls(round).await?;
    let ended = calls.iter().filter_map(|call| call.done_at).max();
    let next_look = calls.iter().filter(|call| is_pending(call)).map(task::look_at).min();
    let call = calls.into_iter().find(|call| call.key == key).ok_or_else(|| StoreError::Corrupt {
        what: "round",
        message: format!("round {round} waits for the call `{key}`, which is not in its journal"),
    })?;
    let argument = |name: &str| call.arguments.get(name);
    let (mut choices, mut until) = (Vec::new(), None);
    let text = match on.as_str() {
        QUESTION => {
            let given = argument("choices").and_then(Value::as_array).into_iter().flatten();
            choices = given.filter_map(Value::as_str).map(str::to_owned).collect();
            argument("question").and_then(Value::as_str).unwrap_or_default().to_owned()
        }
        PLAN => {
            choices = vec![PLAN_ANSWERS.to_owned()];
            plan_of(&call)?.text()
        }
        CARD => {
            let card = cards::card_of(&call.operation, &call.arguments, gate.secrets());
            let card = card.map_err(|error| StoreError::Corrupt { what: "card", message: error.to_string() })?;
            choices = card.choices();
            card.text()
        }
        DOUBT => {
            choices = DOUBTS.map(str::to_owned).into();
            doubt(&call, gate.secrets())
        }
        SLEEP => {
            let seconds = argument("seconds").and_then(Value::as_f64).unwrap_or_default();
            let wait = std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default();
            let at = call.requested_at.checked_add(wait).unwrap_or(Timestamp::MAX);
            until = Some(at);
            self::until(at)
        }
        TASK => {
            until = next_look;
            self::task(&call)
        }
        _ => {
            choices = ["yes", "no", ALWAYS].map(str::to_owned).into();
            approval(session, gate, &call).question()
        }
    };
    Ok(Some(Waiting { round, on, text, choices, until, call, ended }))
}

/// Writes a person's answer into the journal of the round that waits for it; the round goes on with it when it is resumed.
///
/// # Errors
/// Nothing waits for an answer, or this is none.
pub async fn answer(session: &Session, said: &str, gate: &Gate) -> Result<(), AnswerError> {
    let Some(waiting) = waiting(session, gate).await? else {
        return Err(AnswerError::NothingWaits(session.record().id.clone()));
    };
    let said = said.trim();
    let no_answer = || AnswerError::NotAnAnswer {
        answer: said.to_owned(),
        question: waiting.text.clone(),
        choices: waiting.choices.clone(),
    };
    let mut call = waiting.call.clone();
    match waiting.on.as_str() {
        QUESTION => {
            let number = said.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            let picked = number.and_then(|index| waiting.choices.get(index)).cloned();
            let text = gate.secrets().mask(&picked.unwrap_or_else(|| said.to_owned()));
            call.status = CallStatus::Done { result: Value::from(text) };
        }
        PLAN => {
            let plan = plan_of(&call)?;
            match plan.read(said) {
                Ok(PlanConsent::Yes(plan)) => plan::keep(&mut call, &plan, CallStatus::Approved),
                Ok(PlanConsent::No) => call.status = CallStatus::Failed { error: plan::rejection() },
                Err(reason) => {
                    let hint = format!("answer {PLAN_ANSWERS}");
                    return Err(AnswerError::NotAnApproval { reason, question: plan.text(), hint });
                }
            }
        }
        CARD => {
            let card = cards::card_of(&call.operation, &call.arguments, gate.secrets());
            let card = card.map_err(|error| StoreError::Corrupt { what: "card", message: error.to_string() })?;
            let does_not_fit = |problem| AnswerError::DoesNotFit {
                answer: gate.secrets().mask(said),
                problem,
                card: waiting.text.clone(),
            };
            let result = cards::reply(&card, &call.key, said, gate.secrets()).map_err(does_not_fit)?;
            call.status = CallStatus::Done { result };
        }
        DOUBT => match Doubt::of(said).ok_or_else(no_answer)? {
            Doubt::Again => call.status = CallStatus::Approved,
            doubt => call.status = CallStatus::Failed { error: doubt.error(&call) },
        },
        SLEEP | TASK => return Err(no_answer()),
        _ => match approval(session, gate, &call).read(said) {
            Ok(Consent::Once) => call.status = CallStatus::Approved,
            Ok(Consent::Always(scope)) => {
                let caller = caller(session);
                gate.memory().remember(&caller.subject(&call, &call.arguments), scope)?;
                call.status = CallStatus::Approved;
            }
            Ok(Consent::No) => {
                let refusal = format!("the user did not approve {}; it was not called", name(&call));
                call.status = CallStatus::Failed { error: ToolError::new(ErrorKind::Denied, refusal) };
            }
            Err(reason) => {
                let hint = format!("answer yes, no, {ALWAYS}");
                return Err(AnswerError::NotAnApproval { reason, question: waiting.text.clone(), hint });
            }
        },
    }
    if !matches!(call.status, CallStatus::Approved) {
        call.done_at = Some(end_after(waiting.ended));
    }
    session.journal(waiting.round).finish(&call).await?;
    crash::point("answer written");
    Ok(())
}

/// Takes back the call that the session's last round waits with: it is not made, and the program ends there once it is resumed.
///
/// # Errors
/// The round waits for nothing, or the store failed.
pub async fn withdraw(session: &Session, gate: &Gate) -> Result<(), AnswerError> {
    let Some(Waiting { round, on, mut call, ended, .. }) = waiting(session, gate).await? else {
        return Err(AnswerError::NothingWaits(session.record().id.clone()));
    };
    let error = match on.as_str() {
        DOUBT => Doubt::Stop.error(&call),
        TASK => {
            let sentence = format!("the user edited the program from here on; the task of {} was stopped", name(&call));
            ToolError::new(ErrorKind::Denied, sentence)
        }
        _ => {
            let sentence = format!("the user edited the program from here on; {} was not called", name(&call));
            ToolError::new(ErrorKind::Denied, sentence)
        }
    };
    if let CallStatus::Pending { task, .. } = &call.status {
        gate.abandon_task(session, &call, task).await;
    }
    call.status = CallStatus::Failed { error };
    call.done_at = Some(end_after(ended));
    session.journal(round).finish(&call).await?;
    crash::point("call withdrawn");
    Ok(())
}

/// What to do about a call of which nobody knows whether it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// Make it, with the same key.
    Again,
    /// Go on without it; the program reads that it failed.
    Skip,
    /// End the round.
    Stop,
}

/// The words for them.
pub(super) const DOUBTS: [&str; 3] = ["again", "skip", "stop"];

impl Doubt {
    pub(super) fn of(said: &str) -> Option<Self> {
        match said.trim().to_lowercase().as_str() {
            "again" => Some(Doubt::Again),
            "skip" => Some(Doubt::Skip),
            "stop" => Some(Doubt::Stop),
            _ => None,
        }
    }

    /// What the program reads in place of a result.
    pub(super) fn error(self, record: &CallRecord) -> ToolError {
        let name = name(record);
        match self {
            Doubt::Stop => ToolError::new(
                ErrorKind::Denied,
                format!("the user stopped the round: {name} may or may not have acted"),
            ),
            Doubt::Again | Doubt::Skip => {
                ToolError::failed(format!("{name} was cut off and may or may not have acted; it is not called again"))
                    .with_hint("look whether it has acted")
            }
        }
    }
}

/// The question about a call that was cut off.
pub(super) fn doubt(record: &CallRecord, secrets: &Secrets) -> String {
    format!(
        "{}({}) was under way when the program was cut off: nobody knows whether it acted. Make it again, go on without it, or \
         stop?",
        name(record),
        secrets.mask(&super::call::json_text(&record.arguments))
    )
}

/// The question whether a call of the session's last round may be made.
fn approval(session: &Session, gate: &Gate, record: &CallRecord) -> Approval {
    let judgement = gate.judge(&caller(session).subject(record, &record.arguments));
    gate.approval(record, &judgement)
}

fn plan_of(call: &CallRecord) -> Result<Plan, StoreError> {
    let corrupt = || StoreError::Corrupt { what: "plan", message: "it is not the one that its hash is of".to_owned() };
    plan::of_record(call).ok_or_else(corrupt)
}

fn caller(session: &Session) -> Caller<'_> {
    let program = session.open_round().map(|round| round.hole.as_str()).unwrap_or_default();
    Caller { tenant: &session.record().tenant, user: &session.record().user, program }
}

/// Until when a program sleeps, in words.
pub(super) fn until(at: Timestamp) -> String {
    format!("it sleeps until {}", at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S"))
}

/// What a program waits for whose call became a task, in words.
pub(super) fn task(call: &CallRecord) -> String {
    let what = match &call.status {
        CallStatus::Pending { what, .. } if !what.is_empty() => format!(": {what}"),
        _ => String::new(),
    };
    format!("it waits for {}{what}", name(call))
}

fn is_pending(call: &CallRecord) -> bool {
    matches!(call.status, CallStatus::Pending { .. })
}

pub(super) fn name(record: &CallRecord) -> String {
    format!("{}.{}", record.toolkit, record.operation)
}
