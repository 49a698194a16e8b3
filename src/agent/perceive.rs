//! Perception: what came in becomes segments, stored before anything is done about it.

use std::time::Instant;

use super::{AgentError, Message, Progress};
use crate::crash;
use crate::event::{Custom, EventKind};
use crate::gate::Secrets;
use crate::interpreter::{Interpreter, Level};
use crate::record::SessionStatus;
use crate::segment::SegmentKind;
use crate::session::Session;

/// Characters of the first message that become the session's title.
const TITLE_CHARACTERS: usize = 60;

/// A turn that has begun.
pub(super) struct Begun {
    pub(super) run_id: String,
    pub(super) at: Instant,
}

pub(super) async fn perceive(
    session: &mut Session,
    message: &Message,
    progress: &Progress,
    secrets: &Secrets,
    interpreter: &Interpreter,
) -> Result<Begun, AgentError> {
    // A key in a message is one that the model must not read.
    let text = secrets.mask(&message.text);
    if session.record().title.is_empty() {
        let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
        session.set_title(line.chars().take(TITLE_CHARACTERS).collect::<String>());
    }
    session.push(SegmentKind::User, text.as_str());
    progress.keep_in(session);
    begin(session, message.id.clone(), interpreter).await
}

/// Says, as an event of the session, which layers of the jail are active. A turn says so by itself where nobody did: as the
/// session's first event, and in every process whose jail is not complete.
pub fn tell_isolation(session: &Session, interpreter: &Interpreter) {
    let isolation = interpreter.isolation();
    session.emitter().emit(EventKind::Custom(Custom::Isolation {
        level: isolation.level.as_str().to_owned(),
        layers: isolation.layers.clone(),
        missing: isolation.missing.clone(),
        warning: isolation.warning().map(str::to_owned),
    }));
}

/// Begins a turn, or goes on with one.
pub(super) async fn begin(
    session: &mut Session,
    run_id: String,
    interpreter: &Interpreter,
) -> Result<Begun, AgentError> {
    let emitter = session.emitter();
    let is_whole = interpreter.isolation().level == Level::Full;
    if !emitter.has_told_isolation() && (emitter.is_at_beginning() || !is_whole) {
        tell_isolation(session, interpreter);
    }
    let begun = Begun { run_id, at: Instant::now() };
    session.set_trace(begun.run_id.as_str());
    let (thread_id, run_id) = (session.record().id.clone(), begun.run_id.clone());
    session.emitter().emit(EventKind::RunStarted { thread_id, run_id });
    session.set_status(SessionStatus::Running);
    crash::point("turn begins");
    session.save().await?;
    crash::point("turn begun");
    Ok(begun)
}
