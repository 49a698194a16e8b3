//! The person behind a stopwatch: the time that a program waits for a person is not the program's.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;

use super::live::{Running, WaitKind};
use super::{Approval, Attendant};

/// Runs while at least one question is open.
#[derive(Debug, Default)]
pub(super) struct Stopwatch {
    watch: Mutex<Watch>,
}

#[derive(Debug, Default)]
struct Watch {
    total: Duration,
    open: u32,
    since: Option<Instant>,
}

impl Stopwatch {
    /// The time so far, the wait under way included.
    pub(super) fn total(&self) -> Duration {
        let watch = self.watch();
        watch.total + watch.since.map(|since| since.elapsed()).unwrap_or_default()
    }

    /// A question was asked.
    pub(super) fn start(&self) {
        let mut watch = self.watch();
        watch.open += 1;
        watch.since.get_or_insert_with(Instant::now);
    }

    /// The wait for one question ended.
    pub(super) fn stop(&self) {
        let mut watch = self.watch();
        watch.open = watch.open.saturating_sub(1);
        if watch.open == 0
            && let Some(since) = watch.since.take()
        {
            watch.total += since.elapsed();
        }
    }

    fn watch(&self) -> MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The person whom a round asks.
pub(super) struct Patience {
    attendant: Arc<dyn Attendant>,
    running: Arc<Running>,
}

impl Patience {
    pub(super) fn new(attendant: Arc<dyn Attendant>, running: Arc<Running>) -> Self {
        Self { attendant, running }
    }
}

#[async_trait]
impl Attendant for Patience {
    async fn approve(&self, request: &Approval) -> Option<bool> {
        let _waiting = self.running.wait(WaitKind::Approval, &request.operation);
        self.attendant.approve(request).await
    }

    async fn answer(&self, question: &str, choices: &[String]) -> Option<String> {
        let _waiting = self.running.wait(WaitKind::Answer, question);
        self.attendant.answer(question, choices).await
    }
}
