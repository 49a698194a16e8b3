//! The gate of one round: the [`Host`] that answers a program's calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use fimble_toolkit::{Answers, ErrorKind, Operation, Person, SessionContext, ToolError, Toolkit};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::call::json_text;
use super::live::{Running, WaitKind};
use super::patience::Patience;
use super::system::{self, System};
use super::{Attendant, Gate};
use crate::event::{Custom, EventKind};
use crate::interpreter::{Host, HostCall, Process};
use crate::record::{CallRecord, CallStatus, Variable};
use crate::registry::{bind_call, unknown_operation};
use crate::session::{Emitter, Journal, call_key};

/// Answers the calls of one round.
pub struct RoundGate {
    gate: Arc<Gate>,
    journal: Journal,
    emitter: Emitter,
    context: SessionContext,
    running: Arc<Running>,
    patience: Arc<Patience>,
    system: Arc<System>,
    effects: Arc<Effects>,
}

/// What a round did to its conversation, apart from its calls.
#[derive(Debug, Default)]
pub struct Effects {
    state: Mutex<EffectsState>,
}

#[derive(Debug, Default)]
struct EffectsState {
    replies: Vec<String>,
    answers: Vec<(String, String)>,
    waiting: Option<String>,
    finished: bool,
    refused: Option<String>,
    failures: Vec<ToolError>,
}

impl RoundGate {
    /// The gate of a round of `context`'s session.
    pub(super) fn new(
        gate: Arc<Gate>,
        journal: Journal,
        emitter: Emitter,
        context: SessionContext,
        running: Arc<Running>,
        attendant: Arc<dyn Attendant>,
        variables: BTreeMap<String, Variable>,
    ) -> Self {
        let effects = Arc::<Effects>::default();
        let patience = Arc::new(Patience::new(attendant, Arc::clone(&running)));
        let system = Arc::new(System {
            effects: Arc::clone(&effects),
            emitter: emitter.clone(),
            attendant: Arc::clone(&patience) as Arc<dyn Attendant>,
            declarations: gate.declarations(),
            variables,
            secrets: gate.secrets.clone(),
            longest_sleep: Duration::try_from_secs_f64(gate.config.sleep_s).unwrap_or_default(),
        });
        // What a toolkit asks in the middle of a call is asked like the program's own questions.
        let context = SessionContext { person: Person::new(Arc::clone(&system) as Arc<dyn Answers>), ..context };
        Self { gate, journal, emitter, context, running, patience, system, effects }
    }

    /// What the round did to its conversation.
    pub fn effects(&self) -> &Effects {
        &self.effects
    }

    /// Binds, judges, journals and runs one call.
    async fn pass(&self, call: HostCall) -> Result<Value, ToolError> {
        // A bare `except:` may have caught the end of the round; nothing more is done in it all the same.
        if let Some(sentence) = self.effects.ending() {
            return Err(ToolError::new(ErrorKind::Denied, sentence));
        }
        let (toolkit, operation) = self.find(&call.target, &call.method)?;
        let called = format!("{}.{}", call.target, call.method);
        let arguments = bind_call(&called, &operation, call.positional, call.keyword)?;
        self.gate.refuse_giant_arguments(&called, &arguments)?;
        let key = call_key(
            &self.context.session,
            self.context.round,
            call.site,
            call.ordinal,
            &call.target,
            &call.method,
            &arguments,
        );
        // The journal is kept and shown: what must not be seen is not in it. The toolkit gets the arguments themselves.
        let mut shown = Value::Object(arguments.clone());
        self.gate.secrets().mask_value(&mut shown);
        let shown = match shown {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let mut record = CallRecord {
            key: key.clone(),
            site: call.site,
            ordinal: call.ordinal,
            toolkit: call.target,
            operation: call.method,
            arguments: shown,
            risk: operation.risk,
            status: CallStatus::Requested,
            requested_at: Timestamp::now(),
            done_at: None,
        };
        // The system toolkit acts on the session alone; policy is about the world.
        let is_own = record.toolkit == system::NAME;
        if !is_own && let Err(refusal) = self.gate.judge(&record, self.patience.as_ref()).await {
            self.effects.refuse(refusal.message.clone());
            return Err(refusal);
        }
        self.journal.request(&record).await.map_err(|error| {
            // An effect without a record must not happen.
            ToolError::new(ErrorKind::Denied, format!("the call cannot be journaled, so it was not made: {error}"))
        })?;
        self.tell_request(&record);
        let begun = Instant::now();
        let waiting = self.running.wait(WaitKind::Call, &called);
        let result = self.gate.run(toolkit.as_ref(), &operation, &record, arguments, &self.context).await;
        drop(waiting);
        record.done_at = Some(Timestamp::now());
        record.status = match &result {
            Ok(value) => CallStatus::Done { result: value.clone() },
            Err(error) => CallStatus::Failed { error: error.clone() },
        };
        self.journal.finish(&record).await.map_err(|error| {
            ToolError::new(ErrorKind::Denied, format!("the call was made, but its result cannot be journaled: {error}"))
        })?;
        self.tell_result(&record, begun);
        result
    }

    fn find(&self, toolkit: &str, operation: &str) -> Result<(Arc<dyn Toolkit>, Operation), ToolError> {
        if toolkit != system::NAME {
            return self.gate.registry.find(toolkit, operation);
        }
        let declaration = self.system.declaration();
        match declaration.operation(operation) {
            Some(found) => Ok((Arc::clone(&self.system) as Arc<dyn Toolkit>, found.clone())),
            None => Err(unknown_operation(&declaration, operation)),
        }
    }

    /// Bytes of a call's arguments or result that an event shows.
    fn event_bytes(&self) -> usize {
        usize::try_from(self.gate.config.event_result_kib.saturating_mul(1_024)).unwrap_or(usize::MAX)
    }

    fn tell_request(&self, record: &CallRecord) {
        self.emitter.emit(EventKind::ToolCallChunk {
            tool_call_id: record.key.clone(),
            tool_call_name: format!("{}.{}", record.toolkit, record.operation),
            delta: cut(&json_text(&record.arguments), self.event_bytes()),
        });
    }

    fn tell_result(&self, record: &CallRecord, begun: Instant) {
        let (content, failed) = match &record.status {
            CallStatus::Failed { error } => {
                self.effects.fail(error.clone());
                (error.to_string(), true)
            }
            CallStatus::Done { result } => (cut(&json_text(result), self.event_bytes()), false),
            CallStatus::Requested => (String::new(), false),
        };
        self.emitter.emit(EventKind::ToolCallResult {
            message_id: format!("{}-result", record.key),
            tool_call_id: record.key.clone(),
            content,
            role: "tool".to_owned(),
            failed,
            duration_ms: begun.elapsed().as_secs_f64() * 1_000.0,
        });
    }
}

#[async_trait]
impl Host for RoundGate {
    async fn call(&self, call: HostCall) -> Result<Value, ToolError> {
        self.running.count_call();
        self.pass(call).await
    }

    fn begins(&self, process: Process) {
        self.running.begins(process);
    }

    fn waits_for_person(&self) -> Duration {
        self.running.waited_for_person()
    }

    fn print(&self, text: &str) {
        self.emitter.emit(EventKind::Custom(Custom::Print { text: self.gate.secrets.mask(text) }));
    }

    fn statement(&self, number: u32, of: u32) {
        self.emitter.emit(EventKind::Custom(Custom::Statement { number, of }));
    }
}

impl Effects {
    /// What was said to the user, in order.
    pub fn replies(&self) -> Vec<String> {
        self.read(|state| state.replies.clone())
    }

    /// Questions that were answered, with the answers.
    pub fn answers(&self) -> Vec<(String, String)> {
        self.read(|state| state.answers.clone())
    }

    /// The question that the user answers with the next message.
    pub fn waiting(&self) -> Option<String> {
        self.read(|state| state.waiting.clone())
    }

    /// True if the program called `finish`.
    pub fn finished(&self) -> bool {
        self.read(|state| state.finished)
    }

    /// The sentence of a call that policy or the user refused.
    pub fn refused(&self) -> Option<String> {
        self.read(|state| state.refused.clone())
    }

    /// Why nothing more is done in this round, if so.
    pub(super) fn ending(&self) -> Option<String> {
        self.read(|state| {
            let waiting = state.waiting.as_ref().map(|_| "the round ended when it asked the user".to_owned());
            state.refused.clone().or(waiting)
        })
    }

    /// The errors of calls that failed, in order.
    pub fn failures(&self) -> Vec<ToolError> {
        self.read(|state| state.failures.clone())
    }

    /// Adds a reply and returns its number within the round, from 1.
    pub(super) fn add_reply(&self, text: String) -> usize {
        self.write(|state| {
            state.replies.push(text);
            state.replies.len()
        })
    }

    pub(super) fn add_answer(&self, question: &str, answer: &str) {
        self.write(|state| state.answers.push((question.to_owned(), answer.to_owned())));
    }

    pub(super) fn wait_for_user(&self, question: String) {
        self.write(|state| state.waiting = Some(question));
    }

    pub(super) fn finish(&self) {
        self.write(|state| state.finished = true);
    }

    fn refuse(&self, sentence: String) {
        self.write(|state| state.refused = Some(sentence));
    }

    fn fail(&self, error: ToolError) {
        self.write(|state| state.failures.push(error));
    }

    fn read<T>(&self, look: impl FnOnce(&EffectsState) -> T) -> T {
        look(&self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, change: impl FnOnce(&mut EffectsState) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The first `limit` bytes of `text`, with a mark if something was cut.
fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(limit);
    format!("{}… ({} bytes in all)", &text[..end], text.len())
}
