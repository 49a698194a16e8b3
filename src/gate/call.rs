//! Judging and running one call. A round's calls and a call by hand pass here alike.

use std::panic::AssertUnwindSafe;

use fimble_toolkit::{Call, ErrorKind, Operation, SessionContext, ToolError, Toolkit};
use futures_util::FutureExt;
use jiff::Timestamp;
use serde_json::{Map, Value};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Attendant, Decision, Gate, answer};
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
        let arguments = bind_call(&format!("{toolkit}.{operation}"), &declared, Vec::new(), keyword)?;
        let record = CallRecord {
            key: uuid::Uuid::now_v7().simple().to_string(),
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
        let (decision, mut refusal) = self.judge(&record);
        let allowed = match decision {
            Decision::Allow => true,
            Decision::Deny => false,
            Decision::Ask => {
                let answer = attendant.approve(&answer::approval(&record, &self.secrets)).await;
                if answer.is_none() {
                    refusal = format!(
                        "{toolkit}.{operation} needs an approval and nobody is there to give it; it was not called"
                    );
                }
                answer == Some(true)
            }
        };
        if !allowed {
            return Err(ToolError::new(ErrorKind::Denied, refusal));
        }
        self.run(found.as_ref(), &declared, &record, record.arguments.clone(), &context).await
    }

    /// What policy says of a call, and the sentence of its refusal.
    pub(super) fn judge(&self, record: &CallRecord) -> (Decision, String) {
        let name = format!("{}.{}", record.toolkit, record.operation);
        let decision = self.config.policy.decide(record.risk);
        let refusal = match decision {
            Decision::Deny => format!("policy denies {} operations, so {name} was not called", record.risk),
            Decision::Ask | Decision::Allow => format!("the user did not approve {name}; it was not called"),
        };
        (decision, refusal)
    }

    /// Runs the toolkit within the call's deadline, bounds the result and masks it.
    pub(super) async fn run(
        &self,
        toolkit: &dyn Toolkit,
        operation: &Operation,
        record: &CallRecord,
        arguments: Map<String, Value>,
        context: &SessionContext,
    ) -> Result<Value, ToolError> {
        let cancellation = CancellationToken::new();
        // Whichever way this future ends, dropped or done, a task that the toolkit handed the token to learns of it.
        let _guard: DropGuard = cancellation.clone().drop_guard();
        let call = Call {
            operation: record.operation.clone(),
            arguments,
            key: record.key.clone(),
            context: context.clone(),
            cancellation,
        };
        let limit = operation.timeout.unwrap_or_else(|| self.config.call_timeout());
        // A toolkit's defect must cost its call, not the conversation.
        let guarded = AssertUnwindSafe(toolkit.call(call)).catch_unwind().map(|result| {
            result.unwrap_or_else(|_| {
                let name = format!("{}.{}", record.toolkit, record.operation);
                Err(ToolError::failed(format!("{name} panicked, which is a defect of the toolkit"))
                    .with_hint("do it another way"))
            })
        });
        let result = tokio::time::timeout(limit, guarded).await.unwrap_or_else(|_| {
            let seconds = limit.as_secs_f64();
            Err(ToolError::new(ErrorKind::Timeout, format!("{} gave no answer within {seconds} s", record.operation)))
        });
        match result {
            Ok(mut value) => {
                self.refuse_giant(&value)?;
                self.secrets.mask_value(&mut value);
                Ok(value)
            }
            Err(mut error) => {
                error.message = self.secrets.mask(&error.message);
                error.hint = error.hint.map(|hint| self.secrets.mask(&hint));
                Err(error)
            }
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

/// `value` as JSON text.
pub(super) fn json_text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
