//! Expression: how the turn ended becomes a reply, events and a stored session.

use super::perceive::Begun;
use super::{AgentError, Verdict};
use crate::crash;
use crate::event::EventKind;
use crate::llm::LlmError;
use crate::record::SessionStatus;
use crate::segment::SegmentKind;
use crate::session::Session;

pub(super) async fn express(
    session: &mut Session,
    begun: &Begun,
    result: Result<Verdict, AgentError>,
) -> Result<Verdict, AgentError> {
    match &result {
        Ok(verdict) => {
            if let Some(text) = host_reply(verdict) {
                session.push(SegmentKind::Reply, text);
                session.emitter().emit(EventKind::TextMessageChunk {
                    message_id: begun.run_id.clone(),
                    role: "assistant".to_owned(),
                    delta: text.to_owned(),
                });
            }
            session.set_status(match verdict {
                // The round has said what it waits for.
                Verdict::Waiting { .. } => session.record().status,
                _ => SessionStatus::Idle,
            });
            if !matches!(verdict, Verdict::Waiting { .. }) {
                session.set_turn(None);
            }
            let mut result = serde_json::to_value(verdict).unwrap_or_default();
            if let Some(fields) = result.as_object_mut() {
                fields.insert("durationMs".to_owned(), (begun.at.elapsed().as_millis() as u64).into());
            }
            session.emitter().emit(EventKind::RunFinished {
                thread_id: session.record().id.clone(),
                run_id: begun.run_id.clone(),
                result,
            });
        }
        // The turn stays: it can be gone on with once what failed is there again.
        Err(error) => {
            session.set_status(SessionStatus::Idle);
            tell_failure(session, error);
        }
    }
    crash::point("turn settled");
    // The turn's own failure is the one to report; a store that fails here failed before, too.
    let saved = session.save().await;
    crash::point("turn ended");
    match (result, saved) {
        (Err(error), _) => Err(error),
        (Ok(_), Err(error)) => Err(error.into()),
        (Ok(verdict), Ok(())) => Ok(verdict),
    }
}

/// What the host itself says, where no program could.
fn host_reply(verdict: &Verdict) -> Option<&str> {
    match verdict {
        Verdict::Replied | Verdict::Waiting { .. } => None,
        Verdict::Denied { account } | Verdict::GaveUp { account, .. } | Verdict::Relayed { text: account } => {
            Some(account)
        }
        Verdict::Cancelled => Some("Stopped."),
    }
}

/// Says, as an event of the session, why a turn came to nothing.
pub fn tell_failure(session: &Session, error: &AgentError) {
    let message = match error.hint() {
        Some(hint) => format!("{error}\n\nhint: {hint}"),
        None => error.to_string(),
    };
    session.emitter().emit(EventKind::RunError { message, code: error.code().to_owned() });
}

impl AgentError {
    /// A stable word for programs: `model`, `template`, `hook`, `interpreter` or `store`.
    pub fn code(&self) -> &'static str {
        match self {
            AgentError::Model(_) => "model",
            AgentError::Template(_) => "template",
            AgentError::Refused(_) => "hook",
            AgentError::Interpreter(_) => "interpreter",
            AgentError::Store(_) => "store",
        }
    }

    /// What the user can do, if there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            AgentError::Model(LlmError::Transient { hint, .. } | LlmError::Permanent { hint, .. }) => {
                Some(hint.clone()).filter(|hint| !hint.is_empty())
            }
            AgentError::Model(LlmError::Overflow { .. }) => {
                Some("start a new session with /new, or use a model with a longer context".to_owned())
            }
            AgentError::Model(LlmError::Budget(_)) => Some("raise `agent.max_turn_tokens`".to_owned()),
            AgentError::Template(error) => Some(error.hint()),
            AgentError::Refused(_) => Some("say it differently, or see `gate.hooks` in your configuration".to_owned()),
            // Its text has the hint.
            AgentError::Interpreter(_) => None,
            AgentError::Store(error) => error.hint().map(str::to_owned),
        }
    }
}
