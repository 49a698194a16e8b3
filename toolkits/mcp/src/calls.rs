//! The calls that wait for an answer: their deadlines, and the person whom the server asks on their behalf. It does not
//! know how a call is sent.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fimble_toolkit::{SessionContext, Step};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::Limits;

/// The calls of one conversation that wait now.
#[derive(Default)]
pub(crate) struct Calls(Mutex<Vec<Arc<Waiting>>>);

/// One call that waits.
pub(crate) struct Waiting {
    key: String,
    context: SessionContext,
    limits: Limits,
    token: Mutex<Option<ProgressToken>>,
    clock: watch::Sender<Clock>,
    questions: Mutex<Questions>,
}

#[derive(Default)]
struct Questions {
    asked: usize,
    /// Those that nobody answered.
    unanswered: Vec<String>,
}

/// When a call is over at the latest.
#[derive(Debug, Clone, Copy)]
struct Clock {
    /// Its start, or its last sign of life.
    alive: Instant,
    /// Whatever signs of life there are.
    last: Instant,
    /// Questions that a person thinks about: the clock stands still then.
    open: usize,
}

/// A call's place among the others; dropping it takes the call away.
pub(crate) struct Place<'a> {
    calls: &'a Calls,
    /// The call.
    pub(crate) waiting: Arc<Waiting>,
}

impl Calls {
    /// A call begins to wait.
    pub(crate) fn enter(&self, key: &str, context: &SessionContext, limits: &Limits) -> Place<'_> {
        let now = Instant::now();
        let waiting = Arc::new(Waiting {
            key: key.to_owned(),
            context: context.clone(),
            limits: *limits,
            token: Mutex::default(),
            clock: watch::Sender::new(Clock { alive: now, last: now + limits.call_most, open: 0 }),
            questions: Mutex::default(),
        });
        self.list().push(Arc::clone(&waiting));
        Place { calls: self, waiting }
    }

    /// A call shows progress.
    pub(crate) fn progressed(&self, told: ProgressNotificationParam) {
        let is_it = |waiting: &&Arc<Waiting>| lock(&waiting.token).as_ref() == Some(&told.progress_token);
        let found = self.list().iter().find(is_it).map(Arc::clone);
        if let Some(waiting) = found {
            waiting.clock.send_modify(|clock| clock.alive = Instant::now());
            let step = Step { done: Some(told.progress), total: told.total, text: told.message.unwrap_or_default() };
            waiting.context.progress.tell(&waiting.key, step);
        }
    }

    /// The call that a question belongs to, which the server does not say: there is one only if all that wait are one
    /// session's. Another session's person must not be asked.
    pub(crate) fn only(&self) -> Option<Arc<Waiting>> {
        let calls = self.list();
        let first = calls.first()?;
        let same = calls.iter().all(|waiting| waiting.context == first.context);
        same.then(|| Arc::clone(first))
    }

    fn list(&self) -> MutexGuard<'_, Vec<Arc<Waiting>>> {
        lock(&self.0)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.calls.list().retain(|waiting| !Arc::ptr_eq(waiting, &self.waiting));
    }
}

impl Waiting {
    /// What the server calls it when it shows progress.
    pub(crate) fn known_as(&self, token: ProgressToken) {
        *lock(&self.token) = Some(token);
    }

    /// Ends when the call's time is over; how long it was given since its start or its last sign of life.
    pub(crate) async fn overdue(&self) -> Duration {
        let mut clock = self.clock.subscribe();
        loop {
            let now = *clock.borrow_and_update();
            let given = if now.alive + self.limits.call <= now.last { self.limits.call } else { self.limits.call_most };
            let deadline = (now.alive + self.limits.call).min(now.last);
            tokio::select! {
                () = tokio::time::sleep_until(deadline), if now.open == 0 => return given,
                changed = clock.changed() => if changed.is_err() { return given },
            }
        }
    }

    /// Asks the person. `None` if nobody is there or the questions are too many; `question` is remembered then.
    pub(crate) async fn ask(&self, question: &str, choices: &[String]) -> Option<String> {
        let asked = {
            let mut questions = lock(&self.questions);
            questions.asked += 1;
            questions.asked
        };
        if asked > self.limits.questions {
            return None;
        }
        let _still = Standstill::begin(&self.clock);
        let answer = timeout(self.limits.person, self.context.person.ask(question, choices)).await.ok().flatten();
        if answer.is_none() {
            lock(&self.questions).unanswered.push(question.to_owned());
        }
        answer
    }

    /// The questions that nobody answered.
    pub(crate) fn unanswered(&self) -> Vec<String> {
        lock(&self.questions).unanswered.clone()
    }

    /// A question that cannot be put to a person.
    pub(crate) fn leave(&self, question: String) {
        lock(&self.questions).unanswered.push(question);
    }
}

/// A call's clock stands still while this lives.
struct Standstill<'a> {
    clock: &'a watch::Sender<Clock>,
    since: Instant,
}

impl<'a> Standstill<'a> {
    fn begin(clock: &'a watch::Sender<Clock>) -> Self {
        clock.send_modify(|clock| clock.open += 1);
        Self { clock, since: Instant::now() }
    }
}

impl Drop for Standstill<'_> {
    fn drop(&mut self) {
        self.clock.send_modify(|clock| {
            clock.open = clock.open.saturating_sub(1);
            clock.alive = Instant::now();
            clock.last += self.since.elapsed();
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
