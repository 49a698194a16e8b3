//! Looking for the other side's next word for a moment before going to sleep. Two wake-ups across processors are the half of
//! a call that is answered at once; whoever looks has the word before a sleeper would be awake. It is done only where the
//! last word came as soon, and where a processor is left for it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::overtime::processors;

/// Rounds that run in this process.
static RUNNING: AtomicU32 = AtomicU32::new(0);

/// How long to look with this setting, in microseconds. Where there is one processor, it is what the other side needs.
pub(super) fn longest(spin_us: u64) -> Duration {
    if processors() < 2 { Duration::ZERO } else { Duration::from_micros(spin_us) }
}

/// One side's looking, while a round runs.
#[derive(Debug)]
pub(super) struct Spin {
    /// How long it looks at most.
    longest: Duration,
    processors: u32,
    /// When something was sent, until it is answered or was looked for.
    sent: Option<Instant>,
    /// The last answer came within `longest`.
    is_quick: bool,
}

impl Spin {
    /// That of a round which begins, at most for so long at a time, where there are so many processors.
    pub fn begin(longest: Duration, processors: u32) -> Self {
        RUNNING.fetch_add(1, Ordering::Relaxed);
        Self { longest, processors, sent: None, is_quick: false }
    }

    /// Something was sent.
    pub fn sent(&mut self) {
        self.sent = Some(Instant::now());
    }

    /// Something came, without looking for it.
    pub fn came(&mut self) {
        if let Some(sent) = self.sent.take() {
            self.is_quick = sent.elapsed() <= self.longest;
        }
    }

    /// Until when it is worth looking for an answer; `None` if it is not.
    pub fn until(&mut self) -> Option<Instant> {
        let sent = self.sent.filter(|_| self.is_quick)?;
        // The child looks on another processor.
        let has_room = RUNNING.load(Ordering::Relaxed).saturating_mul(2) <= self.processors;
        has_room.then(|| sent + self.longest)
    }

    /// It was looked for, and came or not.
    pub fn looked(&mut self, came: bool) {
        self.sent = None;
        self.is_quick = came;
    }
}

impl Drop for Spin {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    }
}
