//! A conversation as chat messages: the assistant's turns are the holes it wrote, the user's are words and outputs.

use crate::llm::{Message, Role};
use crate::segment::{Segment, SegmentKind};

/// Adds a message, or lengthens the last one if the same side speaks.
pub(super) fn say(messages: &mut Vec<Message>, role: Role, content: &str) {
    match messages.last_mut() {
        Some(last) if last.role == role => {
            last.content.push_str("\n\n");
            last.content.push_str(content);
        }
        _ => messages.push(Message { role, content: content.to_owned() }),
    }
}

/// Who says a segment, and its text; `content` is what of it is shown.
pub(super) fn turn(segment: &Segment, content: &str) -> (Role, String) {
    match segment.kind {
        SegmentKind::User => (Role::User, content.to_owned()),
        SegmentKind::Code => (Role::Assistant, content.trim_end().to_owned()),
        kind => (Role::User, format!("[{}]: {}", title(kind), content.trim_end())),
    }
}

/// The kind as it is written.
pub(super) fn title(kind: SegmentKind) -> &'static str {
    match kind {
        SegmentKind::User => "User",
        SegmentKind::Context => "Context",
        SegmentKind::Thought => "Thought",
        SegmentKind::Plan => "Plan",
        SegmentKind::Code => "Code",
        SegmentKind::Output => "Output",
        SegmentKind::Evaluation => "Evaluation",
        SegmentKind::NextGoal => "NextGoal",
        SegmentKind::Round => "Round",
        SegmentKind::Reply => "Reply",
        SegmentKind::Card => "Card",
        SegmentKind::Event => "Event",
        SegmentKind::Memory => "Memory",
        SegmentKind::Knowledge => "Knowledge",
        SegmentKind::Experience => "Experience",
        SegmentKind::Skill => "Skill",
    }
}
