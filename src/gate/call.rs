//! Judging and running one call. A round's calls and a call by hand pass here alike.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use fimble_toolkit::{Call, ErrorKind, Operation, Poll, Preview, Risk, SessionContext, ToolError, Toolkit};
use futures_util::FutureExt;
use jiff::Timestamp;
use serde_json::{Map, Value};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::consent::{Caller, Consent};
use super::hooks::Subject;
use super::limits::Places;
use super::locks::Held;
use super::round::is_own;
use super::{Attendant, Decision, Gate, Judgement};
use crate::record::{CallRecord, CallStatus, Readings, Site};
use crate::registry::bind_call;

impl Gate {
    /// Makes one call that belongs to no round, for a person at a terminal. It is judged and masked like any other, and
    /// not journaled: there is no session.
    ///
    /// # Errors
    /// An unknown operation, wrong arguments, a refusal, or what the toolkit said.
    pub async fn call_by_hand(
        &self,
        toolkit: &str,
        operation: &str,
        keyword: Map<String, Value>,
        context: SessionContext,
        attendant: &dyn Attendant,
    ) -> Result<Value, ToolError> {
        let scope = self.scope(&context.tenant);
        let (found, declared) = self.registry.find_in(&scope, toolkit, operation)?;
        let called = format!("{toolkit}.{operation}");
        let mut arguments = bind_call(&called, &declared, Vec::new(), keyword)?;
        let key = uuid::Uuid::now_v7().simple().to_string();
        // Nobody follows: what hooks say to the user goes to the log.
        let tell = |kind| tracing::warn!("{kind:?}");
        let subject = Subject { called: &called, operation: &declared, key: &key, context: &context, tell: &tell };
        let hooked = self.hooks.before_call(&subject, &mut arguments).await.map_err(|turned_down| turned_down.error)?;
        let record = CallRecord {
            key: key.clone(),
            number: 1,
            site: Site::default(),
            ordinal: 0,
            toolkit: toolkit.to_owned(),
            operation: operation.to_owned(),
            arguments,
            risk: declared.risk,
            status: CallStatus::Requested,
            requested_at: Timestamp::now(),
            done_at: None,
            readings: Readings::default(),
        };
        let caller = Caller { tenant: &context.tenant, user: &context.user, program: "" };
        let judged = caller.subject(&record, &record.arguments);
        let judgement = self.judge(&judged);
        let judgement = Judgement { decision: hooked.over(judgement.decision), ..judgement };
        let refusal = || judgement.refusal(&self.policy(), &record);
        match judgement.decision {
            Decision::Allow => {}
            Decision::Deny => return Err(refusal()),
            Decision::Ask => match attendant.approve(&self.approval(&record, &judgement)).await {
                Some(Consent::Once) => {}
                Some(Consent::Always(extent)) => {
                    if let Err(error) = self.memory.remember(&judged, extent) {
                        tracing::warn!("this is not remembered: {error}");
                    }
                }
                Some(Consent::No) => return Err(refusal()),
                None => {
                    return Err(ToolError::new(
                        ErrorKind::Denied,
                        format!(
                            "{toolkit}.{operation} needs an approval and nobody is there to give it; it was not called"
                        ),
                    ));
                }
            },
        }
        let result = self.make(found.as_ref(), &declared, &record, &context).await;
        self.hooks.after_call(&subject, &record, &result).await;
        result
    }

    /// Makes a call that is in no journal, and waits for its task if it becomes one.
    async fn make(
        &self,
        toolkit: &dyn Toolkit,
        operation: &Operation,
        record: &CallRecord,
        context: &SessionContext,
    ) -> Result<Value, ToolError> {
        let _turn = self.turn(record, &record.arguments, context).await?;
        let mut poll = self.run(toolkit, operation, record, record.arguments.clone(), context).await?;
        loop {
            match poll {
                Poll::Ready(value) => return Ok(value),
                Poll::Pending(pending) => {
                    tokio::time::sleep(pending.look_in.max(self.config.task_look())).await;
                    poll = self.look(toolkit, operation, record, context, &pending.task).await?;
                }
            }
        }
    }

    /// Waits for the call's turn.
    pub(super) async fn turn(
        &self,
        record: &CallRecord,
        arguments: &Map<String, Value>,
        context: &SessionContext,
    ) -> Result<Turn, ToolError> {
        // The system toolkit acts on the session alone.
        if is_own(record) {
            return Ok(Turn::default());
        }
        let called = format!("{}.{}", record.toolkit, record.operation);
        let places = self.limits.pass(&called, context).await?;
        Ok(Turn { _places: places, resources: self.locks.take(&called, arguments).await? })
    }

    /// Runs the toolkit within its deadline, bounds the result and masks it.
    pub(super) async fn run(
        &self,
        toolkit: &dyn Toolkit,
        operation: &Operation,
        record: &CallRecord,
        arguments: Map<String, Value>,
        context: &SessionContext,
    ) -> Result<Poll, ToolError> {
        let cancellation = CancellationToken::new();
        // Whichever way this future ends, dropped or done, a task that the toolkit handed the token to learns of it.
        let _guard: DropGuard = cancellation.clone().drop_guard();
        let call = call_of(record, arguments, context, cancellation);
        let poll = self.bounded(operation, record, toolkit.begin(call)).await?;
        self.keepable(toolkit, record, context, poll).await
    }

    /// Looks how far the task of a call is, as [`run`](Self::run) does.
    pub(super) async fn look(
        &self,
        toolkit: &dyn Toolkit,
        operation: &Operation,
        record: &CallRecord,
        context: &SessionContext,
        task: &Value,
    ) -> Result<Poll, ToolError> {
        if self.is_overdue(record) {
            self.stop(toolkit, record, context, task).await;
            let (called, seconds) = (&record.operation, self.config.task_s);
            let message = format!("{called} is not done after {seconds} s and is not waited for any longer");
            return Err(ToolError::new(ErrorKind::Timeout, message));
        }
        let call = call_of(record, record.arguments.clone(), context, CancellationToken::new());
        let poll = self.bounded(operation, record, toolkit.poll(call, task)).await?;
        self.keepable(toolkit, record, context, poll).await
    }

    /// Tells the toolkit that nobody waits for the task of a call.
    pub(super) async fn abandon(
        &self,
        toolkit: &dyn Toolkit,
        record: &CallRecord,
        context: &SessionContext,
        task: &Value,
    ) {
        let call = call_of(record, record.arguments.clone(), context, CancellationToken::new());
        if AssertUnwindSafe(toolkit.abandon(call, task)).catch_unwind().await.is_err() {
            tracing::warn!("{}.{} panicked while its task was stopped", record.toolkit, record.operation);
        }
    }

    /// A task can be waited for if what it is found by can be kept.
    async fn keepable(
        &self,
        toolkit: &dyn Toolkit,
        record: &CallRecord,
        context: &SessionContext,
        poll: Poll,
    ) -> Result<Poll, ToolError> {
        let Poll::Pending(mut pending) = poll else { return Ok(poll) };
        let text = json_text(&pending.task);
        let limit = self.config.arguments_kib.saturating_mul(1_024);
        let problem = match text.len() as u64 {
            bytes if bytes > limit => format!("has {bytes} bytes, more than the {limit} allowed"),
            _ if self.secrets.finds(&text) => "holds the value of a secret, and those are kept nowhere".to_owned(),
            _ => {
                pending.what = self.secrets.mask(&pending.what);
                return Ok(Poll::Pending(pending));
            }
        };
        self.stop(toolkit, record, context, &pending.task).await;
        let message = format!("{} was stopped: what its task is found by {problem}", record.operation);
        Err(ToolError::failed(message).with_hint("tell the user, who can tell the toolkit's author"))
    }

    async fn bounded(
        &self,
        operation: &Operation,
        record: &CallRecord,
        asked: impl Future<Output = Result<Poll, ToolError>> + Send,
    ) -> Result<Poll, ToolError> {
        let limit = operation.timeout.unwrap_or_else(|| self.config.call_timeout());
        // A toolkit's defect must cost its call, not the conversation.
        let guarded = AssertUnwindSafe(asked).catch_unwind().map(|result| {
            result.unwrap_or_else(|_| {
                let name = format!("{}.{}", record.toolkit, record.operation);
                Err(ToolError::failed(format!("{name} panicked, which is a defect of the toolkit"))
                    .with_hint("do it another way"))
            })
        });
        let result = tokio::time::timeout(limit, guarded).await.unwrap_or_else(|_| Err(late(record, limit)));
        match result {
            Ok(Poll::Ready(mut value)) => {
                self.refuse_giant(&value)?;
                self.secrets.mask_value(&mut value);
                self.registry.observe(&record.toolkit, operation, &value);
                Ok(Poll::Ready(value))
            }
            Ok(pending) => Ok(pending),
            Err(error) => Err(self.told(error)),
        }
    }

    /// A toolkit's error as the program gets it: without secrets, and of no kind that is the gate's own.
    fn told(&self, error: ToolError) -> ToolError {
        let ToolError { kind, message, hint } = error;
        let kind = match kind {
            ErrorKind::Denied => ErrorKind::Forbidden,
            ErrorKind::Cancelled => ErrorKind::Failed,
            kind => kind,
        };
        ToolError { kind, message: self.secrets.mask(&message), hint: hint.map(|hint| self.secrets.mask(&hint)) }
    }

    /// What the toolkit says that the call would do; it does nothing. A toolkit that is late or panics does not say it.
    pub(super) async fn preview(
        &self,
        toolkit: &dyn Toolkit,
        operation: &Operation,
        record: &CallRecord,
        arguments: Map<String, Value>,
        context: &SessionContext,
    ) -> Result<Option<Preview>, ToolError> {
        let call = call_of(record, arguments, context, CancellationToken::new());
        let limit = operation.timeout.unwrap_or_else(|| self.config.call_timeout());
        let guarded = AssertUnwindSafe(toolkit.preview(&call)).catch_unwind();
        match tokio::time::timeout(limit, guarded).await {
            Ok(Ok(told)) => told.map_err(|error| self.told(error)),
            Ok(Err(_)) | Err(_) => Ok(None),
        }
    }

    fn refuse_giant(&self, value: &Value) -> Result<(), ToolError> {
        let bytes = json_text(value).len() as u64;
        let limit = self.config.result_kib.saturating_mul(1_024);
        if bytes <= limit {
            return Ok(());
        }
        Err(ToolError::failed(format!("the result has {bytes} bytes, more than the {limit} allowed"))
            .with_hint("ask for less: a limit, a range or a filter"))
    }

    /// Refuses arguments that would swell the journal.
    pub(super) fn refuse_giant_arguments(&self, called: &str, arguments: &Map<String, Value>) -> Result<(), ToolError> {
        let bytes = json_text(arguments).len() as u64;
        let limit = self.config.arguments_kib.saturating_mul(1_024);
        if bytes <= limit {
            return Ok(());
        }
        let message = format!("the arguments of {called} have {bytes} bytes, more than the {limit} allowed");
        Err(ToolError::invalid_argument(message).with_hint("pass less"))
    }
}

/// A call's turn, until this is dropped.
#[derive(Debug, Default)]
pub(super) struct Turn {
    _places: Places,
    resources: Held,
}

impl Turn {
    /// True if it has what others wait for.
    pub(super) fn has_resource(&self) -> bool {
        !self.resources.is_empty()
    }
}

/// The call as the toolkit gets it.
fn call_of(
    record: &CallRecord,
    arguments: Map<String, Value>,
    context: &SessionContext,
    cancellation: CancellationToken,
) -> Call {
    let (operation, key, context) = (record.operation.clone(), record.key.clone(), context.clone());
    Call { operation, arguments, key, context, cancellation }
}

/// The error of a call whose deadline has passed.
fn late(record: &CallRecord, limit: Duration) -> ToolError {
    let message = format!("{}.{} gave no answer within {} s", record.toolkit, record.operation, limit.as_secs_f64());
    let error = ToolError::new(ErrorKind::Timeout, message);
    match record.risk {
        Risk::Read => error,
        Risk::Write | Risk::Destructive => {
            error.with_hint("it may have acted all the same; look before you call it again")
        }
    }
}

/// `value` as JSON text.
pub(super) fn json_text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
