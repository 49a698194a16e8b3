//! The line that says how long the model has been at it, while nothing else moves on the terminal. It does not write.

use std::future::pending;
use std::io::IsTerminal;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::event::{Custom, EventKind};

/// A faster answer needs no such line.
const FIRST: Duration = Duration::from_secs(2);
/// From then on, the line says why it may take so long.
const LONG: Duration = Duration::from_secs(12);
/// Takes the line away.
const CLEAR: &str = "\r\x1b[2K";

/// Whether such a line stands on the terminal, and since when.
pub(super) struct Thinking {
    possible: bool,
    since: Option<Instant>,
    next: Instant,
    shown: bool,
}

impl Thinking {
    /// Nothing is thought yet. `wanted` is false where no person reads.
    pub(super) fn new(wanted: bool) -> Self {
        let is_dumb = std::env::var_os("TERM").is_none_or(|terminal| terminal == "dumb");
        let possible = wanted && std::io::stderr().is_terminal() && !is_dumb;
        Self { possible, since: None, next: Instant::now(), shown: false }
    }

    /// Follows the events; answers what must be written before this one is shown.
    pub(super) fn follow(&mut self, kind: &EventKind, now: Instant) -> Option<&'static str> {
        match kind {
            EventKind::StepStarted { step_name } if self.possible && step_name == "think" => {
                (self.since, self.next) = (Some(now), now + FIRST);
                None
            }
            EventKind::Custom(Custom::Statement { .. } | Custom::ModelUsage { .. }) => None,
            _ => self.end(),
        }
    }

    /// Ends it; answers what must be written.
    pub(super) fn end(&mut self) -> Option<&'static str> {
        self.since = None;
        std::mem::take(&mut self.shown).then_some(CLEAR)
    }

    /// Waits until there is something to say; for ever where there is not.
    pub(super) async fn due(next: Option<Instant>) {
        match next {
            Some(next) => sleep_until(next).await,
            None => pending().await,
        }
    }

    /// When to say something.
    pub(super) fn next(&self) -> Option<Instant> {
        self.since.map(|_| self.next)
    }

    /// What to write now.
    pub(super) fn tell(&mut self, now: Instant) -> Option<String> {
        let elapsed = now.duration_since(self.since?);
        self.next = now + Duration::from_secs(1);
        self.shown = true;
        let why = if elapsed < LONG { "" } else { "; the first answer takes longest, Ctrl-C stops it" };
        Some(format!("{CLEAR}thinking … {} s{why}", elapsed.as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(seconds: u64, start: Instant) -> Instant {
        start + Duration::from_secs(seconds)
    }

    fn started(start: Instant) -> Thinking {
        let mut thinking = Thinking { possible: true, since: None, next: start, shown: false };
        let step = EventKind::StepStarted { step_name: "think".to_owned() };
        assert_eq!((thinking.next(), thinking.tell(start), thinking.follow(&step, start)), (None, None, None));
        thinking
    }

    #[test]
    fn it_tells_the_seconds_until_something_else_is_shown() {
        let start = Instant::now();
        let mut thinking = started(start);
        assert_eq!(thinking.next(), Some(after(2, start)));
        assert_eq!(thinking.tell(after(2, start)).unwrap(), format!("{CLEAR}thinking … 2 s"));
        assert_eq!(thinking.next(), Some(after(3, start)));
        let delta = EventKind::Custom(Custom::ProgramDelta { text: "x".to_owned() });
        let now = after(3, start);
        assert_eq!((thinking.follow(&delta, now), thinking.follow(&delta, now)), (Some(CLEAR), None));
        assert_eq!(thinking.next(), None);
    }

    #[test]
    fn a_quick_answer_leaves_no_trace() {
        let start = Instant::now();
        let mut thinking = started(start);
        assert_eq!(thinking.follow(&EventKind::StepFinished { step_name: "think".to_owned() }, start), None);
        assert_eq!((thinking.end(), thinking.next()), (None, None));
    }
}
