//! What a child makes of the time that it is given to end. That it waits for a processor is no fault of its own; that it
//! computes is, in whichever of its threads.

use std::sync::LazyLock;
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::time::Instant;

use super::Process;

/// The least after which it is worth looking again.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// To ask costs more than a small round.
static PROCESSORS: LazyLock<u32> =
    LazyLock::new(|| available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX)));

/// How many processors this process may use.
pub(super) fn processors() -> u32 {
    *PROCESSORS
}

/// The least time in which so much can be computed, with a thread on every processor.
pub(super) fn computed_in(cpu: Duration) -> Duration {
    cpu / *PROCESSORS
}

/// Time that a child has from now on.
pub(super) struct Overtime {
    process: Process,
    began: Instant,
    /// What it may take of its own time.
    allowed: Duration,
    /// What it had waited for a processor, and what it had computed, when it began; `None` where that cannot be seen.
    before: Option<(Duration, Duration)>,
}

impl Overtime {
    pub fn begin(process: Process, allowed: Duration) -> Self {
        let before = process.waited().zip(process.cpu());
        Self { process, began: Instant::now(), allowed, before }
    }

    /// How much it has left, and at most until `longest` after its beginning; `None` if that is nothing.
    pub fn left(&self, longest: Duration) -> Option<Duration> {
        let elapsed = self.began.elapsed();
        let now = self.process.waited().zip(self.process.cpu());
        let own = match self.before.zip(now) {
            Some(((waited, computed), (waited_now, computed_now))) => {
                let without_waiting = elapsed.saturating_sub(waited_now.saturating_sub(waited));
                without_waiting.max(computed_now.saturating_sub(computed))
            }
            None => elapsed,
        };
        let left = self.allowed.checked_sub(own).filter(|left| !left.is_zero())?;
        let end = longest.checked_sub(elapsed).filter(|left| !left.is_zero())?;
        Some(left.max(LOOK_AGAIN).min(end))
    }
}
