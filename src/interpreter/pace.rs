//! How long a round waits for a child that should end.

use std::time::Duration;

/// The waits of a round, beside its own limits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// How long a program has to end once it was told to, of its own time, which does not count while it waits for a processor;
    /// it is killed then. One that was told earlier before its limit, see [`Pace::lead`], has until its limit.
    pub stop: Duration,
    /// Whatever a program had to wait for, none of its times takes longer than this.
    pub starved: Duration,
    /// How long a program that ended after a limit has for its last words, of its own time. Those of wall and CPU time lie
    /// before the limit, see [`Pace::lead`].
    pub grace: Duration,
    /// How long a process has to end after its final frame, of its own time. It does at once.
    pub exit: Duration,
    /// The same where a machine is busy with other things: what the program did would be lost.
    pub late_exit: Duration,
    /// How long the zygote has to report a killed child. It frees its memory first, which may be much.
    pub reap: Duration,
    /// While others are waited for, the deadline is looked at no more often than this.
    pub look_again: Duration,
    /// How long host and child look for each other's next word before they sleep.
    pub spin: Duration,
}

impl Pace {
    /// How long before a limit of time a program is told: its last words end with the limit, and none gains time by saying that
    /// it ends. A tenth of the limit at most.
    pub fn lead(&self, limit: Duration) -> Duration {
        self.grace.min(limit / 10)
    }

    /// When it is told.
    pub fn tells_at(&self, limit: Duration) -> Duration {
        limit - self.lead(limit)
    }
}

/// The pace of every round.
pub(super) const PACE: Pace = Pace {
    stop: Duration::from_millis(40),
    starved: Duration::from_secs(2),
    grace: Duration::from_millis(200),
    exit: Duration::from_millis(200),
    late_exit: Duration::from_secs(3),
    reap: Duration::from_secs(5),
    look_again: Duration::from_millis(20),
    spin: Duration::from_micros(50),
};
