//! Calls that the system behind a toolkit takes on and answers later. What their tasks are found by is in the journal before
//! they are waited for, so that nothing is begun twice, whoever goes on with the round.

use std::sync::Arc;
use std::time::Duration;

use fimble_toolkit::{ErrorKind, Operation, Pending, Poll, Progress, SessionContext, ToolError, Toolkit};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use super::execute::ExecuteError;
use super::live::WaitKind;
use super::patience::{End, Suspension};
use super::performance::Performance;
use super::progress::Steps;
use super::replay::Teller;
use super::round::{Acting, RoundGate, is_own};
use super::{Gate, answer};
use crate::record::{CallRecord, CallStatus};
use crate::session::Session;

impl RoundGate {
    /// Has a toolkit act, or goes on with the task of one that has, and waits for the result. With it comes what says that a
    /// toolkit acts, which must be kept until the result is in the journal.
    pub(super) async fn act(
        &self,
        record: &mut CallRecord,
        toolkit: &dyn Toolkit,
        operation: &Operation,
        arguments: Map<String, Value>,
    ) -> (Result<Value, ToolError>, Option<Acting<'_>>) {
        let called = answer::name(record);
        let acting = (!is_own(record)).then(|| Acting::new(&self.acting));
        if let CallStatus::Pending { look_at, .. } = &mut record.status {
            // Whoever goes on wants to know.
            *look_at = Timestamp::now();
        }
        let turn = self.gate.turn(record, &arguments, &self.context);
        let turn = match &record.status {
            CallStatus::Pending { .. } => {
                drop(acting);
                // It is under way, whoever has its resources now.
                turn.await.unwrap_or_default()
            }
            _ => {
                let _waiting = self.running.wait(WaitKind::Call, &called);
                self.system.begun(record);
                let turn = match turn.await {
                    Ok(turn) => turn,
                    Err(error) => return (Err(error), acting),
                };
                match self.gate.run(toolkit, operation, record, arguments, &self.context).await {
                    Ok(Poll::Ready(value)) => return (Ok(value), acting),
                    Err(error) => return (Err(error), acting),
                    Ok(Poll::Pending(pending)) => record.status = status(pending, self.gate.config.task_look()),
                }
                if let Err(error) = self.journal.finish(record).await {
                    if let CallStatus::Pending { task, .. } = &record.status {
                        self.gate.stop(toolkit, record, &self.context, task).await;
                    }
                    let sentence =
                        format!("the call was made and stopped, because its task cannot be journaled: {error}");
                    return (Err(ToolError::new(ErrorKind::Denied, sentence)), acting);
                }
                // Its toolkit does nothing more by itself.
                drop(acting);
                turn
            }
        };
        let _waiting = self.running.wait(WaitKind::Task, &called);
        loop {
            tokio::select! {
                // Another call has the round suspended; this one's task is in the journal.
                () = self.suspending().cancelled() => std::future::pending().await,
                kept = self.patience.wait_for_task(look_at(record), record.requested_at, turn.has_resource()) => {
                    if let Err(end) = kept {
                        return self.suspend_for_task(record, end).await;
                    }
                }
            }
            let acting = Some(Acting::new(&self.acting));
            let CallStatus::Pending { task, .. } = &record.status else { return (Ok(Value::Null), acting) };
            match self.gate.look(toolkit, operation, record, &self.context, task).await {
                Ok(Poll::Ready(value)) => return (Ok(value), acting),
                Err(error) => return (Err(error), acting),
                Ok(Poll::Pending(pending)) => {
                    let is_another = *task != pending.task;
                    record.status = status(pending, self.gate.config.task_look());
                    // A failure is that of the next write too, which tells it.
                    if is_another && let Err(error) = self.journal.finish(record).await {
                        tracing::warn!("the task of {called} is not kept: {error}");
                    }
                }
            }
        }
    }

    async fn suspend_for_task<T>(&self, record: &mut CallRecord, end: End) -> T {
        let not_before = Timestamp::now() + self.gate.config.task_suspended();
        if let CallStatus::Pending { look_at, .. } = &mut record.status {
            *look_at = (*look_at).max(not_before);
        }
        if let Err(error) = self.journal.finish(record).await {
            tracing::warn!("when the task of {} is to be looked at is not kept: {error}", answer::name(record));
        }
        let (call, text) = (record.key.clone(), answer::task(record));
        self.patience.suspend(Suspension { on: answer::TASK, call, text, end }).await
    }
}

impl Performance<'_, '_> {
    /// Looks at the tasks that the suspended round waits for, without its program, until there is news of one.
    pub(super) async fn until_a_task_moves(&mut self) -> Result<(), ExecuteError> {
        let gate = self.stage.gate;
        // What is told of the tasks belongs to it.
        let Some(round) = self.session.reopen_round().map(|round| round.number) else { return Ok(()) };
        let mut tasks: Vec<CallRecord> = self.session.calls(round).await?;
        tasks.retain(|call| matches!(call.status, CallStatus::Pending { .. }));
        let steps = Steps::new(Teller::new(self.session.emitter(), &[]), gate.secrets.clone(), &gate.config);
        let context = SessionContext { progress: Progress::new(Arc::new(steps)), ..context(self.session) };
        while let Some(call) = tasks.iter_mut().min_by_key(|call| look_at(call)) {
            tokio::time::sleep(left(look_at(call))).await;
            match gate.look_outside(self.session, call, &context).await {
                Some(Ok(Poll::Pending(pending))) => call.status = status(pending, gate.config.task_suspended()),
                // The program's next run asks the same again, and is told.
                _ => return Ok(()),
            }
            self.session.save().await?;
        }
        Ok(())
    }
}

impl Gate {
    /// Looks at a task of a call of a session's suspended round. `None` if that needs the program: its toolkit is not there, or
    /// the time of its call is over.
    async fn look_outside(
        &self,
        session: &Session,
        call: &CallRecord,
        context: &SessionContext,
    ) -> Option<Result<Poll, ToolError>> {
        let (toolkit, operation) =
            self.registry.find_in(&self.scope_of(session), &call.toolkit, &call.operation).ok()?;
        let CallStatus::Pending { task, .. } = &call.status else { return None };
        if self.is_overdue(call) {
            return None;
        }
        Some(self.look(toolkit.as_ref(), &operation, call, context, task).await)
    }

    /// Has a task stopped whose call nobody waits for any more.
    pub(super) async fn abandon_task(&self, session: &Session, call: &CallRecord, task: &Value) {
        if let Ok((toolkit, _)) = self.registry.find_in(&self.scope_of(session), &call.toolkit, &call.operation) {
            self.stop(toolkit.as_ref(), call, &context(session), task).await;
        }
    }

    /// Tells a toolkit that nobody waits for a task, and waits a little for it.
    pub(super) async fn stop(&self, toolkit: &dyn Toolkit, call: &CallRecord, context: &SessionContext, task: &Value) {
        let stopping = self.abandon(toolkit, call, context, task);
        if tokio::time::timeout(self.config.task_stop(), stopping).await.is_err() {
            tracing::warn!("{} was not told in time that nobody waits for its task", answer::name(call));
        }
    }

    /// True if a call has waited for its task for as long as one may.
    pub(super) fn is_overdue(&self, call: &CallRecord) -> bool {
        let longest = SignedDuration::try_from_secs_f64(self.config.task_s).unwrap_or(SignedDuration::MAX);
        Timestamp::now().duration_since(call.requested_at) > longest
    }
}

/// On whose behalf a task is looked at while its program does not run.
fn context(session: &Session) -> SessionContext {
    let record = session.record();
    SessionContext {
        session: record.id.clone(),
        round: record.rounds,
        tenant: record.tenant.clone(),
        user: record.user.clone(),
        ..SessionContext::default()
    }
}

fn status(pending: Pending, shortest: Duration) -> CallStatus {
    let Pending { task, look_in, what } = pending;
    let look_at = Timestamp::now().checked_add(look_in.max(shortest)).unwrap_or(Timestamp::MAX);
    CallStatus::Pending { task, what, look_at }
}

/// When the task of a call is looked at next; at once if it has none.
pub(super) fn look_at(call: &CallRecord) -> Timestamp {
    match &call.status {
        CallStatus::Pending { look_at, .. } => *look_at,
        _ => Timestamp::MIN,
    }
}

/// How long it is until then.
fn left(at: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default()
}
