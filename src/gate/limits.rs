//! How many calls may be made: a rate, and how many at once, by operation and on whose behalf. A call that is over waits a
//! bounded time. It does not know what the calls do.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fimble_toolkit::{SessionContext, ToolError};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::glob;

/// A limit of calls, `[[gate.limits]]` in the configuration. All that match an operation hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallLimit {
    /// Which operations, as in `github_toolkit.*|http_toolkit.get`; they share it. Default all.
    pub operations: String,
    /// Whose calls are counted together. Default `tenant`.
    pub per: Per,
    /// Calls a minute, evenly; at least 1. Default none: as many as come.
    pub per_minute: Option<NonZeroU32>,
    /// How many may come at once after a pause. Default: `per_minute`.
    pub burst: Option<NonZeroU32>,
    /// How many may be under way at once; at least 1. Default none: as many as come.
    pub at_once: Option<NonZeroU32>,
}

impl Default for CallLimit {
    fn default() -> Self {
        Self { operations: "*".to_owned(), per: Per::Tenant, per_minute: None, burst: None, at_once: None }
    }
}

/// Whose calls are counted together, within one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Per {
    /// All of the process's.
    Process,
    /// Those of one tenant.
    Tenant,
    /// Those of one session.
    Session,
}

/// Counts that are kept; above it those that nobody uses are forgotten.
const MOST_COUNTS: usize = 10_000;

/// The limits of one gate.
#[derive(Default)]
pub(super) struct Limits {
    limits: Vec<CallLimit>,
    wait: Duration,
    counts: Mutex<HashMap<(usize, String), Arc<Count>>>,
}

/// What one limit counts for one whom it counts for.
struct Count {
    rate: Option<DefaultDirectRateLimiter>,
    places: Option<Arc<Semaphore>>,
}

/// A call's place among those under way, until this is dropped.
#[derive(Debug, Default)]
pub(super) struct Places {
    _permits: Vec<OwnedSemaphorePermit>,
}

impl Limits {
    /// `wait` is how long a call waits at most for all of them together.
    pub fn new(limits: Vec<CallLimit>, wait: Duration) -> Self {
        Self { limits, wait, counts: Mutex::default() }
    }

    /// Lets a call pass once no limit is against it.
    ///
    /// # Errors
    /// It would have to wait for too long; the model reads what it can do.
    pub async fn pass(&self, called: &str, context: &SessionContext) -> Result<Places, ToolError> {
        let mut permits = Vec::new();
        if self.limits.is_empty() {
            return Ok(Places::default());
        }
        let until = Instant::now() + self.wait;
        for (number, limit) in
            self.limits.iter().enumerate().filter(|(_, limit)| glob::matches(&limit.operations, called))
        {
            let count = self.count(number, limit, context);
            if let Some(places) = &count.places {
                let waiting = Arc::clone(places).acquire_owned();
                match tokio::time::timeout_at(until, waiting).await {
                    Ok(permit) => permits.extend(permit.ok()),
                    Err(_) => {
                        return Err(self.refusal(
                            called,
                            &limit.many(called),
                            "await the ones that you have started before you start more",
                        ));
                    }
                }
            }
            if let Some(rate) = &count.rate {
                let clock = DefaultClock::default();
                while let Err(early) = rate.check() {
                    let at = Instant::now() + early.wait_time_from(clock.now());
                    if at > until {
                        return Err(self.refusal(
                            called,
                            &limit.often(called),
                            "make fewer calls, or ask for more with each",
                        ));
                    }
                    tokio::time::sleep_until(at).await;
                }
            }
        }
        Ok(Places { _permits: permits })
    }

    fn refusal(&self, called: &str, limit: &str, hint: &str) -> ToolError {
        let seconds = self.wait.as_secs_f64();
        ToolError::unavailable(format!("{called} was not called: {limit}, and it waited {seconds} s for its turn"))
            .with_hint(hint)
    }

    fn count(&self, number: usize, limit: &CallLimit, context: &SessionContext) -> Arc<Count> {
        let whose = match limit.per {
            Per::Process => String::new(),
            Per::Tenant => context.tenant.clone(),
            Per::Session => context.session.clone(),
        };
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() >= MOST_COUNTS {
            counts.retain(|_, count| count.is_used());
        }
        Arc::clone(counts.entry((number, whose)).or_insert_with(|| Arc::new(Count::of(limit))))
    }
}

impl Count {
    fn of(limit: &CallLimit) -> Self {
        let quota = limit.per_minute.map(|calls| Quota::per_minute(calls).allow_burst(limit.burst.unwrap_or(calls)));
        let places =
            limit.at_once.map(|most| Arc::new(Semaphore::new(usize::try_from(most.get()).unwrap_or(usize::MAX))));
        Self { rate: quota.map(RateLimiter::direct), places }
    }

    /// False if nothing would change were it forgotten, but for a rate that is not whole again yet.
    fn is_used(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 1 || self.places.as_ref().is_some_and(|places| Arc::strong_count(places) > 1)
    }
}

impl CallLimit {
    fn what(&self, called: &str) -> String {
        if self.operations == called { "it".to_owned() } else { format!("`{}`", self.operations) }
    }

    fn often(&self, called: &str) -> String {
        let calls = self.per_minute.map_or(0, NonZeroU32::get);
        format!("{} may be called {calls} times a minute", self.what(called))
    }

    fn many(&self, called: &str) -> String {
        let calls = self.at_once.map_or(0, NonZeroU32::get);
        let verb = if calls == 1 { "call" } else { "calls" };
        format!("{} may have {calls} {verb} under way at once", self.what(called))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(text: &str, wait: f64) -> Limits {
        #[derive(Deserialize)]
        struct Written {
            limits: Vec<CallLimit>,
        }
        let written: Written = toml::from_str(text).unwrap();
        Limits::new(written.limits, Duration::from_secs_f64(wait))
    }

    fn of(session: &str, tenant: &str) -> SessionContext {
        SessionContext { session: session.to_owned(), tenant: tenant.to_owned(), ..SessionContext::default() }
    }

    #[tokio::test]
    async fn calls_over_the_rate_are_refused_if_their_turn_is_too_far_away() {
        let limits = limits("[[limits]]\noperations = 'api_toolkit.*'\nper_minute = 1\nburst = 2\n", 0.1);
        let call = async |called: &str, tenant: &str| {
            limits.pass(called, &of("s", tenant)).await.map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(call("api_toolkit.a", "one").await, Ok(()));
        assert_eq!(call("api_toolkit.b", "one").await, Ok(()));
        let refusal = "api_toolkit.a was not called: `api_toolkit.*` may be called 1 times a minute, and it waited 0.1 s for its \
                       turn (hint: make fewer calls, or ask for more with each)";
        assert_eq!(call("api_toolkit.a", "one").await, Err(refusal.to_owned()));
        assert_eq!((call("api_toolkit.a", "two").await, call("git_toolkit.log", "one").await), (Ok(()), Ok(())));
    }

    #[tokio::test]
    async fn a_call_whose_turn_comes_soon_waits_for_it() {
        let limits = limits("[[limits]]\nper_minute = 6000\nburst = 1\n", 20.0);
        for _ in 0..5 {
            limits.pass("a_toolkit.a", &of("s", "t")).await.unwrap();
        }
    }

    #[tokio::test]
    async fn only_so_many_are_under_way_at_once() {
        let limits = Arc::new(limits("[[limits]]\nper = 'session'\nat_once = 1\n", 0.05));
        let first = limits.pass("a_toolkit.a", &of("s", "t")).await.unwrap();
        let refusal = limits.pass("a_toolkit.b", &of("s", "t")).await.unwrap_err().to_string();
        assert!(refusal.contains("`*` may have 1 call under way at once, and it waited 0.05 s"), "{refusal}");
        limits.pass("a_toolkit.a", &of("other", "t")).await.unwrap();
        drop(first);
        limits.pass("a_toolkit.a", &of("s", "t")).await.unwrap();
    }

    #[tokio::test]
    async fn counts_that_nobody_uses_are_forgotten() {
        let limits = limits("[[limits]]\nper = 'session'\nat_once = 1\n", 0.05);
        let held = limits.pass("a_toolkit.a", &of("held", "t")).await.unwrap();
        for number in 0..MOST_COUNTS + 10 {
            limits.pass("a_toolkit.a", &of(&number.to_string(), "t")).await.unwrap();
        }
        assert!(limits.counts.lock().unwrap().len() <= MOST_COUNTS);
        assert!(limits.pass("a_toolkit.a", &of("held", "t")).await.is_err());
        drop(held);
    }
}
