//! What a call would do, told without doing it.

use serde_json::Value;

/// What a call would do.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    /// What would be different afterwards, for the person who is to approve it: a command line, a value before and after, a count.
    pub effect: Value,
    /// What the call would return; `None` if that is not known.
    pub result: Option<Value>,
}

impl Preview {
    /// Of a call whose result is not known.
    pub fn of(effect: impl Into<Value>) -> Self {
        Self { effect: effect.into(), result: None }
    }

    /// The same, of a call that would return this.
    #[must_use]
    pub fn returning(self, result: impl Into<Value>) -> Self {
        Self { result: Some(result.into()), ..self }
    }
}
