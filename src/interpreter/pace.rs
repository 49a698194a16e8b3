//! How long a round waits for a child that should end.

use std::time::Duration;

/// The waits of a round, beside its own limits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// How long a program has to end after a limit; it is killed then.
    pub stop: Duration,
    /// A program that had to wait for a processor is given its time again, but not for longer than this.
    pub starved: Duration,
    /// How long a program that ended after a limit has for its last words.
    pub grace: Duration,
    /// How long a process has to end after its final frame. It does at once; but on a machine that is busy with other
    /// things, what the program did would be lost.
    pub exit: Duration,
    /// How long the zygote has to report a killed child. It frees its memory first, which may be much.
    pub reap: Duration,
    /// While others are waited for, the deadline is looked at no more often than this.
    pub look_again: Duration,
}

/// The pace of every round.
pub(super) const PACE: Pace = Pace {
    stop: Duration::from_millis(40),
    starved: Duration::from_secs(2),
    grace: Duration::from_millis(200),
    exit: Duration::from_secs(3),
    reap: Duration::from_secs(5),
    look_again: Duration::from_millis(20),
};
