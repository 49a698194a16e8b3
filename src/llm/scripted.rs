//! A model that answers from a list, for tests of everything above this room. It knows no server and no time.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use super::{Abilities, Completion, Finish, LlmError, Model, OnText, Request, TokenUsage};
use crate::llm::Input;
use crate::segment::estimate_tokens;

/// Letters of a streamed piece.
const PIECE: usize = 7;

/// A model that answers from a list.
pub struct Scripted {
    abilities: Abilities,
    answers: Mutex<VecDeque<Result<String, LlmError>>>,
    requests: Mutex<Vec<Request>>,
}

impl Scripted {
    /// Takes both kinds of request and answers them with `texts`, in order.
    pub fn new<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::with_answers(texts.into_iter().map(|text| Ok(text.into())))
    }

    /// Like [`new`](Self::new), with errors among the answers.
    pub fn with_answers(answers: impl IntoIterator<Item = Result<String, LlmError>>) -> Self {
        Self {
            abilities: Abilities { fill: true, chat: true, context_tokens: None },
            answers: Mutex::new(answers.into_iter().collect()),
            requests: Mutex::default(),
        }
    }

    /// The same model with other abilities. It refuses requests that it does not take.
    #[must_use]
    pub fn with_abilities(self, abilities: Abilities) -> Self {
        Self { abilities, ..self }
    }

    /// The requests it got so far.
    pub fn requests(&self) -> Vec<Request> {
        locked(&self.requests).clone()
    }

    /// Answers that nobody asked for yet.
    pub fn left(&self) -> usize {
        locked(&self.answers).len()
    }
}

#[async_trait]
impl Model for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn abilities(&self) -> Abilities {
        self.abilities
    }

    /// Streams the next answer in pieces of seven letters, cut at a stop string and at `max_tokens` (estimated).
    async fn complete(&self, request: &Request, on_text: OnText<'_>) -> Result<Completion, LlmError> {
        locked(&self.requests).push(request.clone());
        let (takes, prompt) = match &request.input {
            Input::Chat(messages) => (
                self.abilities.chat,
                messages.iter().map(|message| estimate_tokens(&message.content)).fold(0, u32::saturating_add),
            ),
            Input::Fill { prefix, suffix } => {
                (self.abilities.fill, estimate_tokens(prefix).saturating_add(estimate_tokens(suffix)))
            }
        };
        if !takes {
            return Err(LlmError::permanent(
                "the scripted model does not take this kind of request",
                "change the test",
            ));
        }
        let answer = locked(&self.answers).pop_front();
        let mut answer = answer
            .unwrap_or_else(|| Err(LlmError::permanent("the scripted model has no answer left", "change the test")))?;
        if let Some(end) = request.stop.iter().filter_map(|stop| answer.find(stop.as_str())).min() {
            answer.truncate(end);
        }
        let mut text = String::new();
        let mut finish = Finish::Ended;
        let letters: Vec<char> = answer.chars().collect();
        for piece in letters.chunks(PIECE) {
            let piece: String = piece.iter().collect();
            if estimate_tokens(&text).saturating_add(estimate_tokens(&piece)) > request.max_tokens {
                finish = Finish::Length;
                break;
            }
            text.push_str(&piece);
            if on_text(&piece).is_break() {
                finish = Finish::Stopped;
                break;
            }
        }
        let usage = TokenUsage { prompt, cached: 0, completion: estimate_tokens(&text) };
        Ok(Completion { text, finish, usage, duration: Duration::ZERO })
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
