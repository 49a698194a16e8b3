//! How much of an agent is believed, and for how long.

use std::time::Duration;

/// What one agent may take. Everything that it says is from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long fetching the agent's card, and connecting, may take. Default 20 s.
    pub connect: Duration,
    /// How long `send` waits for an answer if its caller does not say; the task goes on after that. Default 120 s.
    pub wait: Duration,
    /// The most that a caller of `send` can have it wait. Default 604,800 s, a week.
    pub longest_wait: Duration,
    /// How long the answer to a single question, such as the state of a task, may take. Default 30 s.
    pub request: Duration,
    /// Bytes of the card. Default 1,048,576.
    pub card_bytes: usize,
    /// Bytes of all that the agent says to one call. Default 8,388,608.
    pub answer_bytes: usize,
    /// Bytes of a result as JSON. Default 4,194,304.
    pub result_bytes: usize,
    /// Questions of one task that a person is asked; the program gets further ones. Default 8.
    pub questions: u32,
    /// Skills that the toolkit's description names. Default 20.
    pub skills: usize,
    /// Characters of the card's description and of each skill's; the rest is cut. Default 300.
    pub description_characters: usize,
    /// Characters of an error's message; the rest is cut. Default 1,000.
    pub message_characters: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(20),
            wait: Duration::from_secs(120),
            longest_wait: Duration::from_secs(604_800),
            request: Duration::from_secs(30),
            card_bytes: 1024 * 1024,
            answer_bytes: 8 * 1024 * 1024,
            result_bytes: 4 * 1024 * 1024,
            questions: 8,
            skills: 20,
            description_characters: 300,
            message_characters: 1_000,
        }
    }
}

/// The text in one line, without control characters, cut to `most` characters.
pub(crate) fn line(text: &str, most: usize) -> String {
    let words = text.split(|character: char| character.is_whitespace() || character.is_control());
    let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let mut short: String = line.chars().take(most).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}
