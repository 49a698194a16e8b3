//! Hooks of a session: its start and end, a message, and the end of a turn.

use serde_json::{Map, Value};

use super::{HookEvent, Wish};
use crate::gate::Gate;
use crate::session::Session;

impl Gate {
    /// Tells hooks that this process begins to work in a session, once. Answers what the model is to know.
    pub async fn session_starts(&self, session: &Session) -> Vec<String> {
        // Kept in mind though nobody listens: who leaves must have come.
        if !self.hooks.starts(&session.record().id) || self.hooks.is_silent(HookEvent::SessionStart) {
            return Vec::new();
        }
        let is_new = session.segments().is_empty() && session.record().rounds == 0;
        let source = if is_new { "startup" } else { "resume" };
        let input = Map::from_iter([("source".to_owned(), Value::from(source))]);
        let mut contexts = Vec::new();
        for answer in self.consult_all(session, HookEvent::SessionStart, &input).await.into_iter().flatten() {
            contexts.extend(answer.context);
        }
        contexts
    }

    /// Tells hooks that this process leaves a session, if it has begun to work there. `reason` is `exit`, `clear` or `resume`.
    pub async fn session_ends(&self, session: &Session, reason: &str) {
        if !self.hooks.forget(&session.record().id) {
            return;
        }
        let input = Map::from_iter([("reason".to_owned(), Value::from(reason))]);
        self.consult_all(session, HookEvent::SessionEnd, &input).await;
    }

    /// Tells hooks what the user said. Answers what the model is to know beside it.
    ///
    /// # Errors
    /// Why a hook does not want it answered.
    pub async fn prompt_comes(&self, session: &Session, text: &str) -> Result<Vec<String>, String> {
        let input = Map::from_iter([("prompt".to_owned(), Value::from(text))]);
        let mut contexts = Vec::new();
        for answer in self.consult_all(session, HookEvent::UserPromptSubmit, &input).await.into_iter().flatten() {
            if let Some(reason) = answer.stop.or_else(|| (answer.wish == Wish::Deny).then_some(answer.reason)) {
                return Err(reason);
            }
            contexts.extend(answer.context);
        }
        Ok(contexts)
    }

    /// Tells hooks that a message has been answered. `is_again`: one of them has sent the model back to work before. Answers why
    /// it must go on, if it must.
    pub async fn turn_stops(&self, session: &Session, reply: &str, is_again: bool) -> Option<String> {
        let input = Map::from_iter([
            ("stop_hook_active".to_owned(), Value::from(is_again)),
            ("last_assistant_message".to_owned(), Value::from(reply)),
        ]);
        let answers = self.consult_all(session, HookEvent::Stop, &input).await;
        let answers: Vec<_> = answers.into_iter().flatten().collect();
        if answers.iter().any(|answer| answer.stop.is_some()) {
            return None;
        }
        answers.into_iter().find(|answer| answer.wish == Wish::Deny).map(|answer| answer.reason)
    }

    /// Tells all hooks of an event; one that fails is told to the user and passed over.
    async fn consult_all(
        &self,
        session: &Session,
        event: HookEvent,
        input: &Map<String, Value>,
    ) -> Vec<Result<super::Answer, String>> {
        let mut answers = Vec::new();
        if self.hooks.is_silent(event) {
            return answers;
        }
        let (record, emitter) = (session.record(), session.emitter());
        let mut input = input.clone();
        input.insert("session_id".to_owned(), record.id.as_str().into());
        input.insert("tenant".to_owned(), record.tenant.as_str().into());
        input.insert("user".to_owned(), record.user.as_str().into());
        for hook in self.hooks.config.of(event) {
            answers.push(self.hooks.consult(hook, event, input.clone(), &|kind| emitter.emit(kind)).await);
        }
        answers
    }
}
