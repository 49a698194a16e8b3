//! A task that an agent works at for a call of `send`, and what it is found by. It does no I/O.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fimble_toolkit::{Pending, ToolError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::answer::Answer;

/// The bounds of the pause between two questions for a task's state, a tenth of its age.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(3_600)];

/// What a task is found by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Task {
    /// The agent's id of it.
    pub(crate) id: String,
    /// When the call was made, in seconds since 1970-01-01 UTC.
    begun: f64,
    /// When its caller waits no longer, likewise.
    until: f64,
    /// True if it was there before the call: it is its own program's to cancel.
    pub(crate) is_own: bool,
    /// How many of the agent's questions a person has answered.
    #[serde(default)]
    pub(crate) answers: u32,
    /// The last one of those, which the agent may show until it has heard the answer.
    #[serde(default)]
    pub(crate) answered: Option<String>,
}

impl Task {
    /// A task whose call is made now and waits for that long.
    pub(crate) fn new(id: String, wait: Duration, is_own: bool) -> Self {
        let begun = now();
        Self { id, begun, until: begun + wait.as_secs_f64(), is_own, answers: 0, answered: None }
    }

    /// # Errors
    /// It is none of ours.
    pub(crate) fn read(kept: &Value) -> Result<Self, ToolError> {
        Self::deserialize(kept)
            .map_err(|error| ToolError::failed(format!("what a task was found by is unknown: {error}")))
    }

    /// True if nothing more comes before somebody does something, and they have not.
    pub(crate) fn is_settled(&self, answer: &Answer) -> bool {
        answer.is_over() && !(answer.asks() && self.answered.is_some() && self.answered == answer.question())
    }

    /// The same task, one of whose questions was answered.
    pub(crate) fn with_answer(&self, question: Option<String>) -> Self {
        Self { answers: self.answers + 1, answered: question, ..self.clone() }
    }

    /// True if its caller waits no longer.
    pub(crate) fn is_over(&self) -> bool {
        now() >= self.until
    }

    /// For how long its caller waits still.
    pub(crate) fn left(&self) -> Duration {
        Duration::try_from_secs_f64(self.until - now()).unwrap_or_default()
    }

    /// The same task, to be asked for again.
    pub(crate) fn pending(&self, agent: &str) -> Pending {
        let [shortest, longest] = PAUSES;
        let tenth = Duration::try_from_secs_f64((now() - self.begun) / 10.0).unwrap_or_default();
        let look_in = tenth.min(self.left()).clamp(shortest, longest);
        let task = serde_json::to_value(self).unwrap_or_default();
        Pending { task, look_in, what: format!("the agent `{agent}` works at it") }
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_task_is_asked_for_less_often_and_not_after_its_time() {
        let aged = |age: f64, left: f64| {
            let new = Task::new("t".to_owned(), Duration::ZERO, false);
            let task = Task { begun: now() - age, until: now() + left, ..new };
            task.pending("cook").look_in.as_secs_f64()
        };
        assert!((aged(0.0, 60.0), aged(1e9, 1e9)) == (0.05, 3_600.0));
        assert!((50.0..60.0).contains(&aged(500.0, 1e9)) && aged(500.0, 2.0) <= 2.0);
    }
}
