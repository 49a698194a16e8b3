//! A round's hooks: what they say of its calls.

use fimble_toolkit::{ErrorKind, Operation, ToolError};
use serde_json::{Map, Value};

use super::{HookEvent, Hooked, Subject, TurnedDown};
use crate::event::EventKind;
use crate::gate::RoundGate;
use crate::gate::round::is_own;
use crate::record::{CallRecord, CallStatus};

impl RoundGate {
    /// Asks the hooks about a call, which may replace its arguments. A call that a person was asked about, or that may have
    /// acted, is the one that it was.
    pub(in crate::gate) async fn hooked(
        &self,
        mut record: CallRecord,
        is_journaled: bool,
        operation: &Operation,
        arguments: &mut Map<String, Value>,
    ) -> Result<(CallRecord, Hooked), ToolError> {
        if is_own(&record) || self.gate.hooks.is_silent(HookEvent::PreToolUse) {
            return Ok((record, Hooked::default()));
        }
        let called = format!("{}.{}", record.toolkit, record.operation);
        let may_have_acted = matches!(record.status, CallStatus::Requested);
        let not_called = |why: &str| match may_have_acted {
            true => format!("{called} was under way when the program was cut off and may have acted; {why}"),
            false => format!("{called} was not called; {why}"),
        };
        let tell = |kind| self.teller.emit(kind);
        let asked = self.gate.hooks.before_call(&self.subject(&record, &called, operation, &tell), arguments).await;
        let hooked = match asked {
            Ok(hooked) => hooked,
            Err(TurnedDown { mut error, ends_turn }) => {
                if may_have_acted {
                    error.message = not_called(&error.message);
                }
                self.end_unmade(&mut record, is_journaled, &error).await?;
                match ends_turn {
                    true => self.effects.refuse(error.message.clone()),
                    false => self.effects.turn_down(error.message.clone()),
                }
                return Err(error);
            }
        };
        let shown = self.masked(arguments);
        if is_journaled && shown != record.arguments {
            let sentence = not_called("a hook gives it other arguments than before the program was cut off");
            let error = ToolError::new(ErrorKind::Denied, sentence);
            return self.fail(&mut record, true, error).await.map(|record| (record, hooked));
        }
        record.arguments = shown;
        self.effects.add_contexts(hooked.contexts.clone());
        Ok((record, hooked))
    }

    pub(in crate::gate) fn subject<'a>(
        &'a self,
        record: &'a CallRecord,
        called: &'a str,
        operation: &'a Operation,
        tell: &'a (dyn Fn(EventKind) + Sync),
    ) -> Subject<'a> {
        Subject { called, operation, key: &record.key, context: &self.context, tell }
    }
}
