//! The vocabulary of a conversation: an append-only list of segments, `[Kind]: content`.
//!
//! It is the only thing that prompt, session and memory share. It does not know how it is rendered for a model or
//! where it is stored.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One entry of a conversation. Never edited once appended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Unique within the session; grows by one with every append, from 1.
    pub id: u64,
    /// The round it belongs to; 0 before the first.
    pub round: u64,
    /// When it was made.
    pub at: Timestamp,
    /// What it is.
    pub kind: SegmentKind,
    /// Its text, as the model may read it.
    pub content: String,
    /// Estimated tokens of `content`, see [`estimate_tokens`].
    pub tokens: u32,
    /// True for what a condensation must keep.
    pub pinned: bool,
}

/// The kinds of segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SegmentKind {
    /// What the user said.
    User,
    /// Facts about the surroundings: language, page, attachments.
    Context,
    /// What the model thought before it acted.
    Thought,
    /// A plan of rounds.
    Plan,
    /// The hole that the model filled.
    Code,
    /// What the program printed, returned or raised.
    Output,
    /// The verdict on a round.
    Evaluation,
    /// The goal of the next round.
    NextGoal,
    /// The summary of a closed round.
    Round,
    /// What the program told the user.
    Reply,
    /// A card shown to the user.
    Card,
    /// Something that happened outside: a click, a sub-agent's return.
    Event,
    /// What memory gave back.
    Memory,
    /// A knowledge point.
    Knowledge,
    /// A past execution worth following or avoiding.
    Experience,
    /// An opened skill.
    Skill,
}

impl Segment {
    /// A segment with its token estimate; `id` is set by the session that appends it.
    pub fn new(kind: SegmentKind, round: u64, content: impl Into<String>) -> Self {
        let content = content.into();
        Self { id: 0, round, at: Timestamp::now(), kind, tokens: estimate_tokens(&content), content, pinned: false }
    }
}

/// Tokens of `text`, estimated without a tokenizer: one for every four bytes of ASCII and every two of other scripts.
///
/// Within 20 % of the Qwen2.5 tokenizer on English prose and Python; used for budgets, never for billing.
pub fn estimate_tokens(text: &str) -> u32 {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let other = text.len() - ascii;
    u32::try_from(ascii.div_ceil(4) + other.div_ceil(2)).unwrap_or(u32::MAX)
}
