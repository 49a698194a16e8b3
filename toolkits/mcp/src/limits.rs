//! How much of a server is believed, and for how long.

use std::time::Duration;

/// What one server may take. Everything that it says is from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long one attempt to start and to agree on the protocol may take; there are at most two. Default 30 s.
    pub start: Duration,
    /// How long it may take to list all its tools. Default 20 s.
    pub list: Duration,
    /// How long a call may take, with a restart of the server where it is needed. Default 60 s.
    pub call: Duration,
    /// Pages of the list of tools; what follows is left out. Default 50.
    pub pages: usize,
    /// Tools; what follows is left out. Default 1,000.
    pub tools: usize,
    /// Bytes of one message. A longer answer fails its call. Servers often send a result twice, as data and as text.
    /// Default 16,777,216.
    pub message_bytes: usize,
    /// Bytes of a result as JSON. Default 4,194,304.
    pub result_bytes: usize,
    /// Characters of a description or of an error's message; the rest is cut. Default 4,000.
    pub text_characters: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(30),
            list: Duration::from_secs(20),
            call: Duration::from_secs(60),
            pages: 50,
            tools: 1_000,
            message_bytes: 16 * 1024 * 1024,
            result_bytes: 4 * 1024 * 1024,
            text_characters: 4_000,
        }
    }
}

impl Limits {
    /// The text without control characters, cut to its limit.
    pub(crate) fn text(&self, text: &str) -> String {
        let kept = |character: &char| !character.is_control() || matches!(character, '\n' | '\t');
        let mut characters = text.trim().chars().filter(kept);
        let mut short: String = characters.by_ref().take(self.text_characters).collect();
        if characters.next().is_some() {
            short.push('…');
        }
        short
    }
}
