//! What a program would do, before it does it. A first run of the program only looks: what changes something is simulated and
//! collected. A person approves the collection, or a part of it, and the round runs again: what it read the first time comes from
//! its journal, what it changes must be what was approved, and everything else stops it.
//!
//! The plan lies in the round's journal, as a call of number 0 that no program makes; so it outlives the process.

mod stand_in;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use fimble_toolkit::{ErrorKind, Risk, ToolError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{Secrets, call, system};
use crate::record::{CallRecord, CallStatus, Readings, Site};
use crate::session::call_key;

pub(super) use stand_in::stand_in;

/// The name that the journal has for it.
const OPERATION: &str = "plan";
/// Bytes of JSON of one preview.
const PREVIEW_BYTES: usize = 8 * 1024;
/// Characters of arguments, and of a preview, that a line shows.
const SHOWN_CHARACTERS: usize = 300;
/// Characters of a hash.
const HASH: usize = 12;

/// What becomes of a plan that is not what its hash is of.
const UNREADABLE: &str = "the plan in the journal cannot be read; nothing was done";

/// What a person may say to a plan.
pub const PLAN_ANSWERS: &str = "yes, no, or strike and the numbers of those that are not to be made, e.g. strike 2 3";

/// What a program would do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// In the order in which they would be made.
    pub effects: Vec<PlannedEffect>,
    /// Why more may come after them; `None` if the program ran to its end.
    pub ends: Option<String>,
    /// What clocks said before calls that are in no journal, by the numbers of the calls: the real run is told the same.
    #[serde(default)]
    pub readings: Vec<(u64, Readings)>,
}

/// One call that would change something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedEffect {
    /// Its number among the round's calls.
    pub number: u64,
    /// Its key, which tells it from every other call.
    pub key: String,
    /// The toolkit's name.
    pub toolkit: String,
    /// The operation's name.
    pub operation: String,
    /// The bound arguments, masked.
    pub arguments: Map<String, Value>,
    /// The declared risk.
    pub risk: Risk,
    /// What the toolkit says that it would do, masked; `None` if it does not say.
    pub preview: Option<Value>,
    /// What the program was answered in the first run.
    pub answer: Result<Value, ToolError>,
    /// What the analysers and the rules say of it.
    pub reason: Option<String>,
    /// True if it is not to be made: the program is answered as in the first run.
    pub struck: bool,
}

/// What a person says to a plan.
#[derive(Debug, Clone, PartialEq)]
pub enum PlanConsent {
    /// Nothing of it.
    No,
    /// This, in which some effects may be struck out.
    Yes(Plan),
}

impl Plan {
    /// What tells it from every other plan: what is called with which arguments, in which order, and what is struck out.
    pub fn hash(&self) -> String {
        let mut hash = Sha256::new();
        for effect in &self.effects {
            let call = call_key("", 0, Site::default(), 0, &effect.toolkit, &effect.operation, &effect.arguments);
            hash.update(format!("{call} {} {}\n", effect.risk, effect.struck));
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>().chars().take(HASH).collect()
    }

    /// Its first line.
    pub fn title(&self) -> String {
        let struck = self.effects.iter().filter(|effect| effect.struck).count();
        let struck = if struck == 0 { String::new() } else { format!(", {struck} struck out") };
        match self.effects.len() {
            0 => format!("plan {}: nothing would be changed", self.hash()),
            1 => format!("plan {}: 1 effect{struck}", self.hash()),
            count => format!("plan {}: {count} effects{struck}", self.hash()),
        }
    }

    /// All of it, for a person.
    pub fn text(&self) -> String {
        let mut lines = vec![self.title()];
        for (index, effect) in self.effects.iter().enumerate() {
            let mark = if effect.struck { "struck out: " } else { "" };
            let arguments = clipped(&call::json_text(&effect.arguments));
            let name = format!("{}.{}({arguments})", effect.toolkit, effect.operation);
            lines.push(format!("{:>3}. {mark}{:<11} {name}", index + 1, effect.risk.to_string()));
            lines.push(match (&effect.preview, &effect.answer) {
                (_, Err(error)) => format!("       fails: {error}"),
                (Some(preview), _) => format!("       {}", clipped(&call::json_text(preview))),
                (None, _) => "       unknown: the toolkit does not say what it would do".to_owned(),
            });
            lines.extend(effect.reason.as_ref().map(|reason| format!("       {reason}")));
        }
        lines.extend(self.ends.as_ref().map(|ends| format!("     what comes after that is not known: {ends}")));
        lines.join("\n")
    }

    /// The same with these effects struck out, by their numbers in [`text`](Self::text), and no others.
    ///
    /// # Errors
    /// A number that none has.
    pub fn striking(&self, numbers: &BTreeSet<usize>) -> Result<Self, String> {
        if let Some(wrong) = numbers.iter().find(|number| !(1..=self.effects.len()).contains(*number)) {
            return Err(format!("there is no effect {wrong}; the plan has {}", self.effects.len()));
        }
        let mut plan = self.clone();
        for (index, effect) in plan.effects.iter_mut().enumerate() {
            effect.struck = numbers.contains(&(index + 1));
        }
        Ok(plan)
    }

    /// What a person's words mean: `yes`, `no` or `strike N …`, the first and the last with the hash of the plan that they mean
    /// if they like.
    ///
    /// # Errors
    /// Why they are no answer, or mean another plan.
    pub fn read(&self, said: &str) -> Result<PlanConsent, String> {
        let said = said.to_lowercase().replace(',', " ");
        let mut words: Vec<&str> = said.split_whitespace().collect();
        let meant = words.last().copied().filter(|word| words.len() > 1 && word.len() == HASH);
        if meant.is_some() {
            words.pop();
        }
        let plan = match words.split_first() {
            Some((&("n" | "no"), [])) => return Ok(PlanConsent::No),
            Some((&("y" | "yes"), [])) => self.clone(),
            Some((&"strike", numbers)) if !numbers.is_empty() => self.striking(&read_numbers(numbers)?)?,
            _ => return Err(format!("`{}` is none of {PLAN_ANSWERS}", said.trim())),
        };
        match meant.filter(|meant| *meant != plan.hash()) {
            Some(meant) => Err(format!("the plan is {} and not {meant}: look at it again", plan.hash())),
            None => Ok(PlanConsent::Yes(plan)),
        }
    }

    /// The words with which this plan is approved, as [`read`](Self::read) reads them.
    pub fn approving_words(&self) -> String {
        let struck = self.effects.iter().enumerate().filter(|(_, effect)| effect.struck);
        let struck: Vec<String> = struck.map(|(index, _)| (index + 1).to_string()).collect();
        match struck.is_empty() {
            true => format!("yes {}", self.hash()),
            false => format!("strike {} {}", struck.join(" "), self.hash()),
        }
    }

    /// The effect that is made by the call of that key.
    pub(super) fn effect(&self, key: &str) -> Option<&PlannedEffect> {
        self.effects.iter().find(|effect| effect.key == key)
    }

    /// What the model must know: what the program believes and is not so.
    pub(super) fn notes(&self) -> Vec<String> {
        let struck = self.effects.iter().filter(|effect| effect.struck);
        struck
            .map(|effect| {
                let arguments = clipped(&call::json_text(&effect.arguments));
                let name = format!("{}.{}({arguments})", effect.toolkit, effect.operation);
                format!("note: the user struck {name} out of the plan: it was not made, though the program went on as if it was")
            })
            .collect()
    }
}

fn read_numbers(words: &[&str]) -> Result<BTreeSet<usize>, String> {
    words.iter().map(|word| word.parse().map_err(|_| format!("`{word}` is no number of an effect"))).collect()
}

fn clipped(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}… ({} more characters)", &text[..end], text[end..].chars().count()),
        None => text.to_owned(),
    }
}

/// A preview as it is kept: masked, and not too large to be read.
pub(super) fn kept_preview(mut preview: Value, secrets: &Secrets) -> Value {
    // Before it is cut: a half of a secret is none that the mask knows.
    secrets.mask_value(&mut preview);
    let text = call::json_text(&preview);
    if text.len() <= PREVIEW_BYTES {
        return preview;
    }
    let end = text.floor_char_boundary(PREVIEW_BYTES);
    Value::String(format!("{}… ({} bytes in all)", &text[..end], text.len()))
}

/// What a run of a program is for.
#[derive(Debug, Clone)]
pub(super) enum Mode {
    /// To do what it does.
    Act,
    /// To find out what it would do.
    Draw(Draft),
    /// To do what was approved, and nothing else.
    Carry(Arc<Plan>),
    /// Nothing yet: a person is to approve the plan.
    Proposed(Plan),
    /// Nothing: a person did not approve the plan.
    Rejected(String),
}

/// A plan that is being drawn up.
#[derive(Debug, Clone, Default)]
pub(super) struct Draft {
    collected: Arc<Mutex<Collected>>,
}

#[derive(Debug, Default)]
struct Collected {
    effects: Vec<PlannedEffect>,
    readings: Vec<(u64, Readings)>,
    /// Of their JSON.
    bytes: u64,
}

impl Draft {
    /// Adds an effect, if there are not `most` yet and all take no more than `most_bytes`.
    pub fn add(&self, effect: PlannedEffect, most: u32, most_bytes: u64) -> bool {
        let mut collected = self.collected.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = collected.bytes.saturating_add(call::json_text(&effect).len() as u64);
        let has_room = collected.effects.len() < most as usize && bytes <= most_bytes;
        if has_room {
            collected.bytes = bytes;
            collected.effects.push(effect);
        }
        has_room
    }

    /// Notes what clocks said before a call that is in no journal.
    pub fn note(&self, number: u64, readings: Readings) {
        if readings.is_empty() {
            return;
        }
        let mut collected = self.collected.lock().unwrap_or_else(PoisonError::into_inner);
        collected.bytes = collected.bytes.saturating_add(call::json_text(&readings).len() as u64);
        collected.readings.push((number, readings));
    }

    /// What was collected, in the order of the program's calls.
    pub fn finish(&self, ends: Option<String>) -> Plan {
        let collected = self.collected.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut effects, readings) = (collected.effects.clone(), collected.readings.clone());
        effects.sort_by_key(|effect| effect.number);
        Plan { effects, ends, readings }
    }
}

impl Mode {
    /// By what is in the round's journal.
    pub fn of(calls: &[CallRecord]) -> Self {
        let Some(record) = calls.iter().find(|call| is_plan(call)) else { return Mode::Act };
        match &record.status {
            // A plan is no toolkit's: it has no task.
            CallStatus::Requested | CallStatus::Pending { .. } => Mode::Draw(Draft::default()),
            CallStatus::Approved | CallStatus::Done { .. } => match of_record(record) {
                Some(plan) => Mode::Carry(Arc::new(plan)),
                None => Mode::Rejected(UNREADABLE.to_owned()),
            },
            CallStatus::Waiting => match of_record(record) {
                Some(plan) => Mode::Proposed(plan),
                None => Mode::Rejected(UNREADABLE.to_owned()),
            },
            CallStatus::Failed { error } => Mode::Rejected(error.message.clone()),
        }
    }
}

/// True for the journal's entry that holds the plan.
pub(super) fn is_plan(record: &CallRecord) -> bool {
    record.number == 0 && record.toolkit == system::NAME && record.operation == OPERATION
}

/// The journal's entry of a plan that is still to be drawn up.
pub(super) fn record(session: &str, round: u64) -> CallRecord {
    let arguments = Map::new();
    CallRecord {
        key: call_key(session, round, Site::default(), 0, system::NAME, OPERATION, &arguments),
        number: 0,
        site: Site::default(),
        ordinal: 0,
        toolkit: system::NAME.to_owned(),
        operation: OPERATION.to_owned(),
        arguments,
        risk: Risk::Read,
        status: CallStatus::Requested,
        requested_at: Timestamp::now(),
        done_at: None,
        readings: Readings::default(),
    }
}

/// The plan in the journal's entry; `None` if there is none, or it is not the one that its hash is of.
pub(super) fn of_record(record: &CallRecord) -> Option<Plan> {
    let plan: Plan = serde_json::from_value(record.arguments.get("plan")?.clone()).ok()?;
    (record.arguments.get("hash")?.as_str()? == plan.hash()).then_some(plan)
}

/// Puts a plan into its entry.
pub(super) fn keep(record: &mut CallRecord, plan: &Plan, status: CallStatus) {
    record.arguments.insert("hash".to_owned(), Value::from(plan.hash()));
    record.arguments.insert("plan".to_owned(), serde_json::to_value(plan).unwrap_or_default());
    record.status = status;
}

/// The refusal of a plan.
pub(super) fn rejection() -> ToolError {
    ToolError::new(ErrorKind::Denied, "the user did not approve the plan; nothing of it was done")
}

/// What is journaled of a struck call.
pub(super) fn struck() -> ToolError {
    ToolError::new(ErrorKind::Denied, "the user struck it out of the plan; it was not made")
}

#[cfg(test)]
mod tests;
