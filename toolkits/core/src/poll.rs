//! Calls whose result comes later: the system behind a toolkit takes them on, and is asked how far they are.

use std::time::Duration;

use serde_json::Value;

/// What a call came to so far.
#[derive(Debug, Clone, PartialEq)]
pub enum Poll {
    /// The result.
    Ready(Value),
    /// It goes on without us.
    Pending(Pending),
}

/// A task that the system behind a toolkit works at.
#[derive(Debug, Clone, PartialEq)]
pub struct Pending {
    /// What the task is found by, in another process too. It is stored as it is: no secret may be in it.
    pub task: Value,
    /// When it is worth to look again. A tenth of the task's age is a good pace: nobody waits long for nothing, and a task of
    /// days is not asked for every second.
    pub look_in: Duration,
    /// What works at it, for a person: a clause without a full stop, such as `the agent cook works at it`.
    pub what: String,
}
