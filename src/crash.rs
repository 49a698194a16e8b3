//! Points at which a test lets this process die, as if the machine had been switched off. Without the feature `crash` none of
//! them does anything.

/// All points, in the order in which a turn passes them.
pub const POINTS: [&str; 14] = [
    "turn begins",
    "turn begun",
    "model answered",
    "program kept",
    "round opened",
    "call admitted",
    "call requested",
    "call acted",
    "call done",
    "round ended",
    "round committed",
    "round suspended",
    "turn settled",
    "turn ended",
];

/// The variable that names the point, and after `#` how often it is passed before, e.g. `call acted#2`; default: the first time.
pub const VARIABLE: &str = "CRASH_FIMBLE_AT";

/// A point of [`POINTS`].
#[cfg(not(feature = "crash"))]
#[inline]
pub fn point(_name: &'static str) {}

/// A point of [`POINTS`]. Does not return if it is the one that [`VARIABLE`] names.
#[cfg(feature = "crash")]
pub fn point(name: &'static str) {
    use std::sync::atomic::{AtomicU32, Ordering};
    static PASSED: AtomicU32 = AtomicU32::new(0);
    debug_assert!(POINTS.contains(&name), "{name}");
    let Ok(asked) = std::env::var(VARIABLE) else { return };
    let (asked, before) = asked.split_once('#').unwrap_or((&asked, "1"));
    if asked == name && PASSED.fetch_add(1, Ordering::Relaxed) + 1 == before.parse().unwrap_or(1) {
        // No destructor, no flush, no farewell.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::this(), nix::sys::signal::Signal::SIGKILL);
        std::process::abort();
    }
}
