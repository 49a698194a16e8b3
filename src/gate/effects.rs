//! What a round did to its conversation, apart from its calls.

use std::sync::{Mutex, PoisonError};

use fimble_toolkit::ToolError;
use tokio_util::sync::CancellationToken;

use super::patience::Suspension;

/// What a round did to its conversation. Shared by all that answers its calls.
#[derive(Debug, Default)]
pub struct Effects {
    state: Mutex<State>,
    /// Cancelled once nothing more is done in this round.
    over: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    replies: Vec<String>,
    answers: Vec<(String, String)>,
    finished: bool,
    refused: Option<Denial>,
    diverged: Option<String>,
    suspension: Option<Suspension>,
    failures: Vec<ToolError>,
    questions: u32,
    contexts: Vec<String>,
    cards: Vec<ShownCard>,
}

/// A call that was refused. No further call is made in its round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// Which, and why.
    pub sentence: String,
    /// True if policy or a person refused it, or a hook wants no more: the turn ends as well. Otherwise a hook refused it,
    /// and the model reads why.
    pub ends_turn: bool,
}

/// A card that was shown, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownCard {
    /// Its text form.
    pub text: String,
    /// What a person did with it, if it asked.
    pub answer: Option<String>,
    /// True if it says something to the user, as a message does.
    pub replies: bool,
}

impl Effects {
    /// What was said to the user, in order.
    pub fn replies(&self) -> Vec<String> {
        self.read(|state| state.replies.clone())
    }

    /// Questions that were answered, with the answers.
    pub fn answers(&self) -> Vec<(String, String)> {
        self.read(|state| state.answers.clone())
    }

    /// The cards that were shown, those that ask once they are answered, in order.
    pub fn cards(&self) -> Vec<ShownCard> {
        self.read(|state| state.cards.clone())
    }

    pub(super) fn add_card(&self, card: ShownCard) {
        self.write(|state| state.cards.push(card));
    }

    /// True if the program called `finish`.
    pub fn finished(&self) -> bool {
        self.read(|state| state.finished)
    }

    /// The call that was refused, if one was.
    pub fn refused(&self) -> Option<Denial> {
        self.read(|state| state.refused.clone())
    }

    /// Returns once nothing more is done in this round: a call was refused, or differs from what it was.
    pub(super) async fn over(&self) {
        self.over.cancelled().await;
    }

    /// How the program's second run differed from its first, if it did.
    pub fn diverged(&self) -> Option<String> {
        self.read(|state| state.diverged.clone())
    }

    /// Why nothing more is done in this round, if so.
    pub(super) fn ending(&self) -> Option<String> {
        let refused = |state: &State| state.refused.as_ref().map(|denial| denial.sentence.clone());
        self.read(|state| refused(state).or_else(|| state.diverged.clone()))
    }

    /// The errors of calls that failed, in order.
    pub fn failures(&self) -> Vec<ToolError> {
        self.read(|state| state.failures.clone())
    }

    /// What hooks want the model to know, in order.
    pub fn contexts(&self) -> Vec<String> {
        self.read(|state| state.contexts.clone())
    }

    pub(super) fn add_contexts(&self, contexts: Vec<String>) {
        if !contexts.is_empty() {
            self.write(|state| state.contexts.extend(contexts));
        }
    }

    /// Adds a reply and returns its number within the round, from 1.
    pub(super) fn add_reply(&self, text: String) -> usize {
        self.write(|state| {
            state.replies.push(text);
            state.replies.len()
        })
    }

    pub(super) fn add_answer(&self, question: &str, answer: &str) {
        self.write(|state| state.answers.push((question.to_owned(), answer.to_owned())));
    }

    /// The number of a question that a toolkit asks, from 1.
    pub(super) fn count_question(&self) -> u32 {
        self.write(|state| {
            state.questions += 1;
            state.questions
        })
    }

    pub(super) fn finish(&self) {
        self.write(|state| state.finished = true);
    }

    /// A call was refused, and the turn ends.
    pub(super) fn refuse(&self, sentence: String) {
        self.write(|state| state.refused = Some(Denial { sentence, ends_turn: true }));
        self.over.cancel();
    }

    /// A hook refused a call.
    pub(super) fn turn_down(&self, sentence: String) {
        self.write(|state| state.refused = state.refused.take().or(Some(Denial { sentence, ends_turn: false })));
        self.over.cancel();
    }

    pub(super) fn diverge(&self, sentence: String) {
        self.write(|state| state.diverged = state.diverged.take().or(Some(sentence)));
        self.over.cancel();
    }

    /// The round waits; what it waited for first stays what it waits for.
    pub(super) fn suspend(&self, suspension: Suspension) {
        self.write(|state| state.suspension = state.suspension.take().or(Some(suspension)));
    }

    /// What the round waits for, once.
    pub(super) fn take_suspension(&self) -> Option<Suspension> {
        self.write(|state| state.suspension.take())
    }

    pub(super) fn fail(&self, error: ToolError) {
        self.write(|state| state.failures.push(error));
    }

    fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
