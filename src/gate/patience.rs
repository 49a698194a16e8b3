//! The person whom a round asks. Time that it waits for others is not its own, and a wait for a person that takes long lets its
//! process go: the round is suspended, and runs again once there is an answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::Attendant;
use super::consent::{Approval, Consent};
use super::effects::Effects;
use super::live::{Running, WaitKind};

/// Runs while at least one wait is under way.
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

    /// A wait began.
    pub(super) fn start(&self) {
        let mut watch = self.watch();
        watch.open += 1;
        watch.since.get_or_insert_with(Instant::now);
    }

    /// A wait ended.
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

/// What a suspended round waits for.
#[derive(Debug)]
pub(super) struct Suspension {
    /// The word of [`Outcome::Suspended`](crate::record::Outcome::Suspended).
    pub on: &'static str,
    /// The key of the call that waits.
    pub call: String,
    /// The question, for a person.
    pub text: String,
    /// How it may end while this process lives.
    pub end: End,
}

/// How a suspension may end by itself.
#[derive(Debug)]
pub(super) enum End {
    /// By somebody else.
    Elsewhere,
    /// By the person who was asked and has not answered yet.
    Answer(AbortOnDropHandle<Option<String>>),
    /// By time.
    After(Duration),
    /// By a task that is looked at from time to time.
    Task,
}

/// The person whom a round asks.
pub(super) struct Patience {
    attendant: Arc<dyn Attendant>,
    running: Arc<Running>,
    effects: Arc<Effects>,
    /// How long the round's process is kept for an answer.
    grace: Duration,
    suspending: CancellationToken,
}

impl Patience {
    pub(super) fn new(
        attendant: Arc<dyn Attendant>,
        running: Arc<Running>,
        effects: Arc<Effects>,
        grace: Duration,
    ) -> Self {
        Self { attendant, running, effects, grace, suspending: CancellationToken::new() }
    }

    /// Cancelled once the round waits for what may take long. No call is answered any more.
    pub(super) fn suspending(&self) -> &CancellationToken {
        &self.suspending
    }

    /// May this call be made? Otherwise why nobody has said so yet.
    pub(super) async fn approve(&self, request: Approval) -> Result<Consent, End> {
        let _waiting = self.running.wait(WaitKind::Approval, &request.operation);
        let (attendant, asked) = (Arc::clone(&self.attendant), request.clone());
        // In words: an answer that comes after the process was let go goes through the journal.
        let answer = async move { Some(attendant.approve(&asked).await?.words()) };
        // What cannot be read is no consent.
        self.within_grace(answer).await.map(|said| request.read(&said).unwrap_or(Consent::No))
    }

    /// The answer to a question; otherwise why there is none yet.
    pub(super) async fn answer(&self, question: &str, choices: &[String]) -> Result<String, End> {
        let _waiting = self.running.wait(WaitKind::Answer, question);
        let (attendant, question, choices) = (Arc::clone(&self.attendant), question.to_owned(), choices.to_vec());
        self.within_grace(async move { attendant.answer(&question, &choices).await }).await
    }

    /// The answer to a question that a toolkit asks in the middle of its call, which cannot be taken up later: the process is
    /// kept for it. `None` if nobody is there.
    pub(super) async fn answer_now(&self, question: &str, choices: &[String]) -> Option<String> {
        let _waiting = self.running.wait(WaitKind::Answer, question);
        self.attendant.answer(question, choices).await
    }

    /// Returns at that time, if it comes while the process is kept; after `most` in any case, where the clock was set back.
    pub(super) async fn wait_until(&self, at: Timestamp, most: Duration) -> Result<(), End> {
        let left = Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default().min(most);
        if left > self.grace {
            return Err(End::After(left));
        }
        tokio::time::sleep(left).await;
        Ok(())
    }

    /// Returns when a task is to be looked at again, if that is while the process is kept for the call that was made at `since`.
    /// That time may have come. Whoever has what others wait for keeps its process: nobody else could have it meanwhile.
    pub(super) async fn wait_for_task(&self, at: Timestamp, since: Timestamp, keeps: bool) -> Result<(), End> {
        let now = Timestamp::now();
        let left = Duration::try_from(at.duration_since(now)).unwrap_or_default();
        let age = Duration::try_from(now.duration_since(since)).unwrap_or_default();
        if !keeps && !left.is_zero() && age + left > self.grace {
            return Err(End::Task);
        }
        tokio::time::sleep(left).await;
        Ok(())
    }

    /// The round goes no further in this process. Never returns: its process is about to be let go.
    pub(super) async fn suspend<T>(&self, suspension: Suspension) -> T {
        self.effects.suspend(suspension);
        self.suspending.cancel();
        std::future::pending().await
    }

    async fn within_grace(&self, answer: impl Future<Output = Option<String>> + Send + 'static) -> Result<String, End> {
        // A task of its own, so that the question stays open when the process is let go.
        let mut asking = AbortOnDropHandle::new(tokio::spawn(answer));
        match timeout(self.grace, &mut asking).await {
            Ok(Ok(Some(answer))) => Ok(answer),
            Ok(_) => Err(End::Elsewhere),
            Err(_) => Err(End::Answer(asking)),
        }
    }
}
