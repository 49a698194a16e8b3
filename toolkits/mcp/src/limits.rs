//! How much of a server is believed, and for how long.

use std::time::Duration;

/// What one server may take. Everything that it says is from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long one attempt to start and to agree on the protocol may take; there are at most three. Default 30 s.
    pub start: Duration,
    /// How long [`connect`](crate::connect) waits for a server whose tools are not known yet. It goes on starting
    /// behind that, and its operations appear when it has. Default 15 s: a server that leaves the first question
    /// unanswered is asked another after ten.
    pub patience: Duration,
    /// How long it may take to list all its tools. Default 20 s.
    pub list: Duration,
    /// How long a call may take after its start or its last sign of progress. Default 60 s.
    pub call: Duration,
    /// How long a call that shows progress may take. Default 600 s.
    pub call_most: Duration,
    /// How long a person may think about one question of a server. Default 3,600 s.
    pub person: Duration,
    /// Questions that one call may ask a person. Default 16.
    pub questions: usize,
    /// How old a remembered list of tools may be; an older one is asked for again before it is used. Default 24 h.
    pub remembered: Duration,
    /// How long a server that failed is left alone before it is started again; twice as long each time, up to a
    /// minute. Default 1 s.
    pub restart: Duration,
    /// How long a server that is not needed any more may take to end after its input was closed, and again after `SIGTERM`;
    /// then it is killed. Default 2 s.
    pub stop: Duration,
    /// Pages of the list of tools; what follows is left out. Default 50.
    pub pages: usize,
    /// Tools; what follows is left out. Default 1,000.
    pub tools: usize,
    /// Parameters of one tool; a tool with more is left out. Default 200.
    pub parameters: usize,
    /// Bytes of the schema of one parameter or result, and of the definitions that it refers to; a larger one says
    /// nothing. Default 65,536.
    pub schema_bytes: usize,
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
            patience: Duration::from_secs(15),
            list: Duration::from_secs(20),
            call: Duration::from_secs(60),
            call_most: Duration::from_secs(600),
            person: Duration::from_secs(3_600),
            questions: 16,
            remembered: Duration::from_secs(24 * 3_600),
            restart: Duration::from_secs(1),
            stop: Duration::from_secs(2),
            pages: 50,
            tools: 1_000,
            parameters: 200,
            schema_bytes: 64 * 1024,
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
