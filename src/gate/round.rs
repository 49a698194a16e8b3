//! The gate of one round: the [`Host`] that answers a program's calls.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use fimble_toolkit::{ErrorKind, Operation, SessionContext, ToolError, Toolkit};
use jiff::Timestamp;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::answer::{self, Doubt};
use super::call::json_text;
use super::cards::{self, Cards};
use super::consent::{Caller, Consent};
use super::effects::Effects;
use super::hooks::{HookEvent, Hooked};
use super::let_go::{self, LetGo};
use super::live::Running;
use super::patience::{Patience, Suspension};
use super::plan::Mode;
use super::replay::{Replay, Teller};
use super::system::{self, System};
use super::{Decision, Extent, Gate, Judgement, Lifted, MaskedStream};
use crate::crash;
use crate::event::{Custom, EventKind};
use crate::interpreter::{Host, HostCall, Process};
use crate::record::{CallRecord, CallStatus};
use crate::registry::{Scope, bind_call, unknown_operation};
use crate::session::{Journal, call_key};
use crate::store::StoreError;

/// Answers the calls of one round.
pub struct RoundGate {
    pub(super) gate: Arc<Gate>,
    pub(super) journal: Journal,
    pub(super) teller: Teller,
    pub(super) context: SessionContext,
    /// What runs.
    pub(super) program: Arc<str>,
    pub(super) running: Arc<Running>,
    pub(super) patience: Arc<Patience>,
    pub(super) system: Arc<System>,
    pub(super) cards: Arc<Cards>,
    pub(super) effects: Arc<Effects>,
    pub(super) replay: Replay,
    /// What this run of the program is for.
    pub(super) mode: Mode,
    /// What of the toolkits its program sees.
    pub(super) scope: Scope,
    pub(super) let_go: LetGo,
    /// How many toolkits act now.
    pub(super) acting: watch::Sender<usize>,
    /// What the program prints, on its way to the events.
    pub(super) prints: Mutex<MaskedStream>,
}

/// Where a call's way through the gate begins.
pub(super) enum Start {
    /// It was made before.
    Again(CallRecord),
    /// It is new; its record is in no journal yet.
    New(CallRecord),
}

impl RoundGate {
    /// What the round did to its conversation.
    pub fn effects(&self) -> &Effects {
        &self.effects
    }

    /// How the program differs from its earlier run if it ends here.
    pub(super) fn missing(&self) -> Option<String> {
        self.replay.missing()
    }

    /// Cancelled once the round waits for what may take long.
    pub(super) fn suspending(&self) -> &CancellationToken {
        self.patience.suspending()
    }

    /// Shows what was held back of the prints because it might have been the beginning of a secret.
    pub(super) fn end_prints(&self) {
        let shown = self.prints.lock().unwrap_or_else(PoisonError::into_inner).finish();
        self.tell_print(shown);
    }

    fn tell_print(&self, text: String) {
        if !text.is_empty() {
            self.teller.emit(EventKind::Custom(Custom::Print { text }));
        }
    }

    /// Returns once no toolkit acts any more.
    pub(super) async fn quiet(&self) {
        // The sender lives in here: an error cannot be.
        let _ = self.acting.subscribe().wait_for(|acting| *acting == 0).await;
    }

    /// Binds, judges, journals and runs one call, or answers it from the journal.
    async fn pass(&self, call: HostCall) -> Result<Value, ToolError> {
        // A bare `except:` may have caught the end of the round; nothing more is done in it all the same.
        if let Some(sentence) = self.effects.ending() {
            return Err(ToolError::new(ErrorKind::Denied, sentence));
        }
        if self.suspending().is_cancelled() {
            return std::future::pending().await;
        }
        let (toolkit, operation) = self.find(&call.target, &call.method)?;
        let called = format!("{}.{}", call.target, call.method);
        let arguments = bind_call(&called, &operation, call.positional, call.keyword)?;
        self.gate.refuse_giant_arguments(&called, &arguments)?;
        let (number, site, ordinal) = (call.id, call.site, call.ordinal);
        let SessionContext { session, round, .. } = &self.context;
        let key = call_key(session, *round, site, ordinal, &call.target, &call.method, &arguments);
        let start = match self.replay.take(call.id, &key, &called) {
            Ok(Some(record)) => Start::Again(record),
            Ok(None) => Start::New(CallRecord {
                key,
                number: call.id,
                site,
                ordinal,
                toolkit: call.target,
                operation: call.method,
                arguments: self.masked(&arguments),
                risk: operation.risk,
                status: CallStatus::Waiting,
                requested_at: Timestamp::now(),
                done_at: None,
                readings: call.readings,
            }),
            Err(sentence) => {
                self.effects.diverge(sentence.clone());
                return Err(ToolError::new(ErrorKind::Denied, sentence));
            }
        };
        let way = match (&self.mode, start) {
            (Mode::Draw(draft), Start::New(record)) => {
                let rehearsed = self.rehearse(draft, record, toolkit.as_ref(), &operation, &arguments);
                rehearsed.await.map_continue(Start::New)
            }
            (Mode::Carry(plan), start) => self.carry(plan, start, &arguments).await,
            (_, start) => ControlFlow::Continue(start),
        };
        let start = match way {
            ControlFlow::Continue(start) => start,
            ControlFlow::Break(answer) => return answer,
        };
        let mut arguments = arguments;
        let mut record = match start {
            Start::Again(record) if record.done_at.is_some() => return self.answered(record).await,
            // It was made, and hooks and policy had their say.
            Start::Again(record) if matches!(record.status, CallStatus::Pending { .. }) => record,
            Start::Again(record) => {
                let (record, hooked) = self.hooked(record, true, &operation, &mut arguments).await?;
                self.go_on(record, &operation, &arguments, &hooked).await?
            }
            Start::New(record) => {
                let (record, hooked) = self.hooked(record, false, &operation, &mut arguments).await?;
                self.admit(record, &arguments, false, &hooked).await?
            }
        };
        self.tell_request(&record);
        self.let_go.begun(number, &record);
        let begun = Instant::now();
        let is_own = is_own(&record);
        let (result, acting) = self.act(&mut record, toolkit.as_ref(), &operation, arguments).await;
        self.let_go.answered(number);
        crash::point("call acted");
        self.finish(&mut record, &result).await.map_err(|error| {
            ToolError::new(ErrorKind::Denied, format!("the call was made, but its result cannot be journaled: {error}"))
        })?;
        crash::point("call done");
        drop(acting);
        self.tell_result(&record, begun);
        if !is_own && !self.gate.hooks.is_silent(HookEvent::PostToolUse) {
            let tell = |kind| self.teller.emit(kind);
            let subject = self.subject(&record, &called, &operation, &tell);
            let hooked = self.gate.hooks.after_call(&subject, &record, &result).await;
            self.effects.add_contexts(hooked.contexts);
            hooked.stop.into_iter().for_each(|sentence| self.effects.refuse(sentence));
        }
        result
    }

    /// A call that was answered before.
    async fn answered(&self, record: CallRecord) -> Result<Value, ToolError> {
        self.replay.in_turn(record.number).await;
        self.tell_request(&record);
        self.tell_result(&record, Instant::now());
        if record.toolkit == system::NAME {
            self.system.repeat(&record);
        }
        if record.toolkit == cards::NAME {
            self.cards.repeat(&record);
        }
        match record.status {
            // The program lets go of it again.
            CallStatus::Failed { error } if error.kind == ErrorKind::Cancelled => std::future::pending().await,
            CallStatus::Failed { error } => {
                if error.kind == ErrorKind::Denied {
                    self.effects.refuse(error.message.clone());
                }
                Err(error)
            }
            CallStatus::Done { result } => Ok(result),
            // Only those two have an end.
            CallStatus::Waiting | CallStatus::Approved | CallStatus::Requested | CallStatus::Pending { .. } => {
                Ok(Value::Null)
            }
        }
    }

    /// A call that was made before and not answered: it may go on if nothing is done twice.
    async fn go_on(
        &self,
        record: CallRecord,
        operation: &Operation,
        arguments: &Map<String, Value>,
        hooked: &Hooked,
    ) -> Result<CallRecord, ToolError> {
        match record.status {
            CallStatus::Waiting => self.admit(record, arguments, true, hooked).await,
            CallStatus::Requested if !operation.idempotent => self.resolve(record).await,
            CallStatus::Approved => self.request(record, true).await,
            _ => Ok(record),
        }
    }

    /// A call that may or may not have been made: a person knows, or can look.
    async fn resolve(&self, mut record: CallRecord) -> Result<CallRecord, ToolError> {
        let question = answer::doubt(&record, self.gate.secrets());
        let said = match self.patience.answer(&question, &answer::DOUBTS.map(str::to_owned)).await {
            Ok(said) => said,
            Err(end) => {
                let call = record.key.clone();
                self.patience.suspend(Suspension { on: answer::DOUBT, call, text: question, end }).await
            }
        };
        // Whatever is no clear word must not act again.
        let error = match Doubt::of(&said).unwrap_or(Doubt::Stop) {
            Doubt::Again => return Ok(record),
            doubt => doubt.error(&record),
        };
        self.fail(&mut record, true, error).await
    }

    /// Lets a call pass that policy or the person allows, and journals it.
    async fn admit(
        &self,
        mut record: CallRecord,
        arguments: &Map<String, Value>,
        is_journaled: bool,
        hooked: &Hooked,
    ) -> Result<CallRecord, ToolError> {
        // They act on the session alone; policy is about the world.
        if is_own(&record) {
            return self.request(record, is_journaled).await;
        }
        let judgement = self.gate.judge(&self.caller().subject(&record, arguments));
        let judgement = Judgement { decision: hooked.over(judgement.decision), ..judgement };
        match judgement.decision {
            Decision::Allow => {
                if let Some(Lifted::ByMemory(remembered)) = &judgement.lifted {
                    self.tell_allowed(&record, &remembered.id);
                }
                return self.request(record, is_journaled).await;
            }
            Decision::Deny => {}
            Decision::Ask => {
                let approval = self.gate.approval(&record, &judgement);
                let text = approval.question();
                match self.patience.approve(approval).await {
                    Ok(Consent::Once) => return self.request(record, is_journaled).await,
                    Ok(Consent::Always(extent)) => {
                        self.remember(&record, extent);
                        return self.request(record, is_journaled).await;
                    }
                    Ok(Consent::No) => {}
                    Err(end) => {
                        if !is_journaled {
                            self.journal.request(&record).await.map_err(not_journaled)?;
                            crash::point("call waiting");
                        }
                        self.tell_request(&record);
                        let call = record.key.clone();
                        self.patience.suspend(Suspension { on: answer::APPROVAL, call, text, end }).await
                    }
                }
            }
        }
        let error = judgement.refusal(&self.gate.policy(), &record);
        self.fail(&mut record, is_journaled, error).await
    }

    pub(super) fn caller(&self) -> Caller<'_> {
        Caller { tenant: &self.context.tenant, user: &self.context.user, program: &self.program }
    }

    /// Keeps what a person said `always` to. The call itself is approved all the same.
    fn remember(&self, record: &CallRecord, extent: Extent) {
        match self.gate.memory.remember(&self.caller().subject(record, &record.arguments), extent) {
            Ok(remembered) => {
                let (id, arguments) = (remembered.id, remembered.arguments.to_string());
                self.teller.emit(EventKind::Custom(Custom::Remembered {
                    id,
                    operation: remembered.operation,
                    arguments,
                }));
            }
            Err(error) => tracing::warn!("this is not remembered: {error}"),
        }
    }

    fn tell_allowed(&self, record: &CallRecord, by: &str) {
        let (tool_call_id, operation) = (record.key.clone(), answer::name(record));
        self.teller.emit(EventKind::Custom(Custom::Allowed { tool_call_id, operation, by: by.to_owned() }));
    }

    /// Journals that the toolkit is about to act; an effect without a record must not happen.
    async fn request(&self, mut record: CallRecord, is_journaled: bool) -> Result<CallRecord, ToolError> {
        record.status = CallStatus::Requested;
        record.requested_at = Timestamp::now();
        crash::point("call admitted");
        let journaled = match is_journaled {
            true => self.journal.finish(&record).await,
            false => self.journal.request(&record).await,
        };
        journaled.map_err(not_journaled)?;
        crash::point("call requested");
        Ok(record)
    }

    /// Journals and tells the end of a call that is not made.
    pub(super) async fn end_unmade(
        &self,
        record: &mut CallRecord,
        is_journaled: bool,
        error: &ToolError,
    ) -> Result<(), ToolError> {
        if !is_journaled {
            self.journal.request(record).await.map_err(not_journaled)?;
        }
        self.tell_request(record);
        self.finish(record, &Err(error.clone())).await.map_err(not_journaled)?;
        self.tell_result(record, Instant::now());
        Ok(())
    }

    /// Ends a call that is not made, and the turn if it was refused.
    pub(super) async fn fail(
        &self,
        record: &mut CallRecord,
        is_journaled: bool,
        error: ToolError,
    ) -> Result<CallRecord, ToolError> {
        self.end_unmade(record, is_journaled, &error).await?;
        if error.kind == ErrorKind::Denied {
            self.effects.refuse(error.message.clone());
        }
        Err(error)
    }

    async fn finish(&self, record: &mut CallRecord, result: &Result<Value, ToolError>) -> Result<(), StoreError> {
        record.done_at = Some(self.replay.end());
        record.status = match result {
            Ok(value) => CallStatus::Done { result: value.clone() },
            Err(error) => CallStatus::Failed { error: error.clone() },
        };
        self.journal.finish(record).await
    }

    /// Arguments for the journal, which is kept and shown: what must not be seen is not in it.
    pub(super) fn masked(&self, arguments: &Map<String, Value>) -> Map<String, Value> {
        let mut shown = Value::Object(arguments.clone());
        self.gate.secrets().mask_value(&mut shown);
        match shown {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }

    fn find(&self, toolkit: &str, operation: &str) -> Result<(Arc<dyn Toolkit>, Operation), ToolError> {
        if toolkit == cards::NAME && self.gate.cards && self.scope.shows(toolkit, operation) {
            let declaration = self.cards.declaration();
            return match declaration.operation(operation) {
                Some(found) => Ok((Arc::clone(&self.cards) as Arc<dyn Toolkit>, found.clone())),
                None => Err(unknown_operation(&declaration, operation)),
            };
        }
        if toolkit != system::NAME {
            return self.gate.registry.find_in(&self.scope, toolkit, operation);
        }
        let declaration = system::declaration();
        match declaration.operation(operation) {
            Some(found) => Ok((Arc::clone(&self.system) as Arc<dyn Toolkit>, found.clone())),
            None => Err(unknown_operation(declaration, operation)),
        }
    }

    pub(super) fn tell_request(&self, record: &CallRecord) {
        self.teller.emit(let_go::request(record, &self.program, self.gate.event_bytes()));
    }

    pub(super) fn tell_result(&self, record: &CallRecord, begun: Instant) {
        let (content, failed) = match &record.status {
            CallStatus::Failed { error } => {
                self.effects.fail(error.clone());
                (error.to_string(), true)
            }
            CallStatus::Done { result } => (cut(&json_text(result), self.gate.event_bytes()), false),
            CallStatus::Waiting | CallStatus::Approved | CallStatus::Requested | CallStatus::Pending { .. } => return,
        };
        self.teller.emit(EventKind::ToolCallResult {
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

    fn waited(&self) -> Duration {
        self.running.waited()
    }

    fn let_go(&self, call: u64) {
        self.end_let_go(call);
    }

    fn print(&self, text: &str) {
        let shown = self.prints.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        self.tell_print(shown);
    }

    fn statement(&self, number: u32, of: u32) {
        self.teller.emit(EventKind::Custom(Custom::Statement { number, of }));
    }
}

/// True for a call of the conversation's own toolkits.
pub(super) fn is_own(record: &CallRecord) -> bool {
    [system::NAME, cards::NAME].contains(&record.toolkit.as_str())
}

pub(super) fn not_journaled(error: StoreError) -> ToolError {
    ToolError::new(ErrorKind::Denied, format!("the call cannot be journaled, so it was not made: {error}"))
}

/// A toolkit that acts, until this is dropped.
pub(super) struct Acting<'a> {
    count: &'a watch::Sender<usize>,
}

impl<'a> Acting<'a> {
    pub(super) fn new(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|acting| *acting += 1);
        Self { count }
    }
}

impl Drop for Acting<'_> {
    fn drop(&mut self) {
        self.count.send_modify(|acting| *acting -= 1);
    }
}

/// The first `limit` bytes of `text`, with a mark if something was cut.
pub(super) fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(limit);
    format!("{}… ({} bytes in all)", &text[..end], text.len())
}
