//! Where the user's hooks take part in a turn: before it begins, and before it ends.

use super::{Agent, AgentError, Message, Progress, Verdict};
use crate::segment::SegmentKind;
use crate::session::Session;

/// How often hooks may send the model back to work in one turn.
const MOST_SENT_BACK: u32 = 3;

impl Agent {
    /// Tells hooks that this process begins to work in the session, and what the user said. What they want the model to know
    /// stands before the message.
    ///
    /// # Errors
    /// A hook does not want the message answered; nothing of it is stored.
    pub(super) async fn tell_hooks(&self, session: &mut Session, message: &Message) -> Result<(), AgentError> {
        let gate = &self.parts.gate;
        let mut contexts = gate.session_starts(session).await;
        contexts.extend(gate.prompt_comes(session, &message.text).await.map_err(AgentError::Refused)?);
        for context in contexts {
            session.push(SegmentKind::Context, context);
        }
        Ok(())
    }

    /// True if the turn may end with this verdict. Otherwise a hook sends the model back to work, which then reads why.
    pub(super) async fn may_stop(&self, session: &mut Session, progress: &mut Progress, verdict: &Verdict) -> bool {
        if !matches!(verdict, Verdict::Replied | Verdict::Relayed { .. }) || progress.sent_back >= MOST_SENT_BACK {
            return true;
        }
        let replies = session.segments().iter().rev().find(|segment| segment.kind == SegmentKind::Reply);
        let reply = match verdict {
            Verdict::Relayed { text } => text.clone(),
            _ => replies.map(|segment| segment.content.clone()).unwrap_or_default(),
        };
        let reason = self.parts.gate.turn_stops(session, &reply, progress.sent_back > 0).await;
        let Some(reason) = reason else { return true };
        progress.sent_back += 1;
        progress.verdict = None;
        progress.next(session, &format!("A hook of the user's says that it is not done: {reason}"));
        progress.keep_in(session);
        false
    }
}
