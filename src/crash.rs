//! Points at which a test lets this process die, as if the machine had been switched off. Without the feature `crash` none of
//! them does anything.

/// Those of a turn with a question, in the order in which it passes them.
pub const TURN: [&str; 18] = [
    "session created",
    "session held",
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
    "answer written",
    "round reopened",
];

/// Those that a turn passes besides where a person approves its calls.
pub const APPROVAL: [&str; 1] = ["call waiting"];

/// Those that it passes besides where a person approves its plan.
pub const PLAN: [&str; 3] = ["plan journaled", "plan drawn up", "plan proposed"];

/// Those that a worker passes besides.
pub const WORKER: [&str; 6] =
    ["entry taken", "lease taken", "place taken", "turn made", "lease released", "entry taken off"];

/// Those of who takes a turn up that sleeps.
pub const WAKING: [&str; 1] = ["turn put to sleep"];

/// Those of a person who changes what was.
pub const CHANGES: [&str; 5] = ["call withdrawn", "call ended", "round given up", "session rewound", "session forked"];

/// All lists of points.
pub fn lists() -> [&'static [&'static str]; 6] {
    [&TURN, &APPROVAL, &PLAN, &WORKER, &WAKING, &CHANGES]
}

/// The variable that names the point, and after `#` how often it is passed before, e.g. `call acted#2`; default: the first time.
pub const VARIABLE: &str = "CRASH_FIMBLE_AT";

/// A point of the lists above.
#[cfg(not(feature = "crash"))]
#[inline]
pub fn point(_name: &'static str) {}

/// A point of the lists above. Does not return if it is the one that [`VARIABLE`] names.
#[cfg(feature = "crash")]
pub fn point(name: &'static str) {
    use std::sync::atomic::{AtomicU32, Ordering};
    static PASSED: AtomicU32 = AtomicU32::new(0);
    debug_assert!(lists().iter().any(|list| list.contains(&name)), "{name}");
    let Ok(asked) = std::env::var(VARIABLE) else { return };
    let (asked, before) = asked.split_once('#').unwrap_or((&asked, "1"));
    if asked == name && PASSED.fetch_add(1, Ordering::Relaxed) + 1 == before.parse().unwrap_or(1) {
        // No destructor, no flush, no farewell.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::this(), nix::sys::signal::Signal::SIGKILL);
        std::process::abort();
    }
}
