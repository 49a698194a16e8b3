//! Measures how long a program waited for a person: that time is not the program's.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;

use super::{Approval, Attendant};

/// The person behind a stopwatch, which runs while at least one question is open.
pub(super) struct Patience {
    attendant: Arc<dyn Attendant>,
    watch: Mutex<Watch>,
}

#[derive(Default)]
struct Watch {
    total: Duration,
    open: u32,
    since: Option<Instant>,
}

impl Patience {
    pub(super) fn new(attendant: Arc<dyn Attendant>) -> Self {
        Self { attendant, watch: Mutex::default() }
    }

    /// The time so far, the wait under way included.
    pub(super) fn total(&self) -> Duration {
        let watch = self.watch();
        watch.total + watch.since.map(|since| since.elapsed()).unwrap_or_default()
    }

    fn watch(&self) -> MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self) -> Asking<'_> {
        let mut watch = self.watch();
        watch.open += 1;
        watch.since.get_or_insert_with(Instant::now);
        Asking(self)
    }
}

/// An open question; ends when dropped, however the wait ended.
struct Asking<'a>(&'a Patience);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut watch = self.0.watch();
        watch.open -= 1;
        if watch.open == 0
            && let Some(since) = watch.since.take()
        {
            watch.total += since.elapsed();
        }
    }
}

#[async_trait]
impl Attendant for Patience {
    async fn approve(&self, request: &Approval) -> Option<bool> {
        let _asking = self.ask();
        self.attendant.approve(request).await
    }

    async fn answer(&self, question: &str, choices: &[String]) -> Option<String> {
        let _asking = self.ask();
        self.attendant.answer(question, choices).await
    }
}
