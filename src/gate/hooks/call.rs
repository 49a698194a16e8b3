//! Hooks before and after a call.

use fimble_toolkit::{ErrorKind, Operation, SessionContext, ToolError};
use serde_json::{Map, Value};

use super::{HookEvent, Hooks, Wish};
use crate::event::EventKind;
use crate::gate::Decision;
use crate::record::CallRecord;
use crate::registry::bind_call;

/// The call that hooks are told of.
pub(in crate::gate) struct Subject<'a> {
    /// `toolkit.operation`.
    pub called: &'a str,
    pub operation: &'a Operation,
    /// The call's key.
    pub key: &'a str,
    pub context: &'a SessionContext,
    /// Shows events to the user.
    pub tell: &'a (dyn Fn(EventKind) + Sync),
}

/// What hooks made of a call.
#[derive(Debug, Default)]
pub(in crate::gate) struct Hooked {
    /// The strictest wish; never [`Wish::Deny`].
    pub wish: Wish,
    /// What the model is to know.
    pub contexts: Vec<String>,
    /// Nothing more is to be done in this round, and why.
    pub stop: Option<String>,
}

/// A call that hooks refused.
#[derive(Debug)]
pub(in crate::gate) struct TurnedDown {
    /// Of kind `Denied`.
    pub error: ToolError,
    /// True if the hook wants nothing more done in this turn.
    pub ends_turn: bool,
}

impl Hooked {
    /// What happens to the call: what policy denies stays denied.
    pub fn over(&self, policy: Decision) -> Decision {
        match (policy, self.wish) {
            (Decision::Deny, _) | (_, Wish::Deny) => Decision::Deny,
            (_, Wish::Ask) => Decision::Ask,
            (_, Wish::Allow) => Decision::Allow,
            (policy, Wish::None) => policy,
        }
    }
}

impl Hooks {
    /// Tells the hooks that a call is about to be judged, one after the other: each sees the arguments that the one before it
    /// left.
    ///
    /// # Errors
    /// A hook refused the call, or failed, or its arguments do not fit: the call is not made.
    pub async fn before_call(
        &self,
        subject: &Subject<'_>,
        arguments: &mut Map<String, Value>,
    ) -> Result<Hooked, TurnedDown> {
        let mut hooked = Hooked::default();
        if self.is_silent(HookEvent::PreToolUse) {
            return Ok(hooked);
        }
        let called = subject.called;
        for hook in self.of(HookEvent::PreToolUse, called) {
            let input = subject.input(arguments);
            let refused = |why: String| {
                let error = ToolError::new(ErrorKind::Denied, format!("{called} was not called: {why}"));
                TurnedDown { error, ends_turn: false }
            };
            let answer = self.consult(hook, HookEvent::PreToolUse, input, subject.tell).await;
            let answer = answer.map_err(|message| {
                let TurnedDown { error, ends_turn } = refused(message);
                TurnedDown { error: error.with_hint("tell the user"), ends_turn }
            })?;
            if let Some(reason) = answer.stop {
                let sentence = format!("the hook `{}` stopped the program before {called}: {reason}", hook.name());
                return Err(TurnedDown { error: ToolError::new(ErrorKind::Denied, sentence), ends_turn: true });
            }
            if answer.wish == Wish::Deny {
                return Err(refused(format!("a hook refused it: {}", answer.reason)));
            }
            if let Some(replaced) = answer.arguments {
                let bound = bind_call(called, subject.operation, Vec::new(), replaced);
                *arguments = bound.map_err(|error| {
                    refused(format!("the arguments that the hook `{}` gave do not fit: {error}", hook.name()))
                })?;
            }
            hooked.wish = hooked.wish.max(answer.wish);
            hooked.contexts.extend(answer.context);
        }
        Ok(hooked)
    }

    /// Tells the hooks that a call was made. What was done cannot be refused any more: a hook that tries to is heard by the
    /// model.
    pub async fn after_call(
        &self,
        subject: &Subject<'_>,
        record: &CallRecord,
        result: &Result<Value, ToolError>,
    ) -> Hooked {
        let mut hooked = Hooked::default();
        if self.is_silent(HookEvent::PostToolUse) {
            return hooked;
        }
        let called = subject.called;
        for hook in self.of(HookEvent::PostToolUse, called) {
            let mut input = subject.input(&record.arguments);
            match result {
                Ok(value) => input.insert("tool_response".to_owned(), value.clone()),
                Err(error) => input.insert("error".to_owned(), error.to_string().into()),
            };
            let Ok(answer) = self.consult(hook, HookEvent::PostToolUse, input, subject.tell).await else { continue };
            if answer.wish == Wish::Deny {
                hooked.contexts.push(format!("about {called}: {}", answer.reason));
            }
            hooked.contexts.extend(answer.context);
            let stop = answer
                .stop
                .map(|reason| format!("the hook `{}` stopped the program after {called}: {reason}", hook.name()));
            hooked.stop = hooked.stop.or(stop);
        }
        hooked
    }
}

impl Subject<'_> {
    fn input(&self, arguments: &Map<String, Value>) -> Map<String, Value> {
        let (context, text) = (self.context, |text: &str| Value::from(text));
        Map::from_iter([
            ("session_id".to_owned(), text(&context.session)),
            ("round".to_owned(), context.round.into()),
            ("trace".to_owned(), text(&context.trace)),
            ("tenant".to_owned(), text(&context.tenant)),
            ("user".to_owned(), text(&context.user)),
            ("tool_name".to_owned(), text(self.called)),
            ("tool_input".to_owned(), Value::Object(arguments.clone())),
            ("tool_use_id".to_owned(), text(self.key)),
            ("risk".to_owned(), self.operation.risk.to_string().into()),
        ])
    }
}
