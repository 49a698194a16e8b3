//! The time of a program that counts towards its wall limit.

use std::time::Duration;

/// What counts of the time since a program began: not what it waited for others, but never less than what it computed, which
/// it may have done beside a wait.
///
/// ```
/// # use std::time::Duration;
/// # use fimble::interpreter::counted;
/// let [one, two, three] = [1, 2, 3].map(Duration::from_secs);
/// assert_eq!(counted(three, two, Duration::ZERO), one);
/// assert_eq!(counted(three, three, two), two);
/// ```
pub fn counted(since: Duration, waited: Duration, computed: Duration) -> Duration {
    // Threads compute side by side.
    since.saturating_sub(waited).max(computed.min(since))
}
