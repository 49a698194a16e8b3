//! The interpreter: a zygote that is replaced when it ended or grew old, and a spare child ahead of the next round.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::config::{Config, Isolation};
use super::control::Bounds;
use super::pace::{PACE, Pace};
use super::round::{Driven, drive};
use super::spawn::{Child, Zygote};
use super::spin;
use super::{Error, Finished, Host, Limits, Run};

/// Runs programs. Clones share the same processes, which end with the last clone. It belongs to the runtime that it was
/// started in.
#[derive(Debug, Clone)]
pub struct Interpreter {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: Config,
    isolation: Isolation,
    state: Mutex<State>,
    /// When a round ended last.
    ended: std::sync::Mutex<Option<Instant>>,
}

#[derive(Debug)]
struct State {
    zygote: Arc<Zygote>,
    spare: Option<Spare>,
}

/// The next round's child, or what will be it.
#[derive(Debug)]
struct Spare {
    bounds: Bounds,
    zygote: Arc<Zygote>,
    /// It was forked from a warm zygote.
    warm: bool,
    child: JoinHandle<Result<Child, Error>>,
}

impl Spare {
    fn fork(zygote: &Arc<Zygote>, bounds: Bounds, warm: bool) -> Self {
        let forking = Arc::clone(zygote);
        let child = tokio::spawn(async move { forking.fork(bounds).await });
        Self { bounds, zygote: Arc::clone(zygote), warm, child }
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        self.child.abort();
    }
}

/// How long a round may keep the machine for itself before the next one's child is forked.
const AHEAD: Duration = Duration::from_millis(10);

/// A round that comes so soon after another one is not the last: the next one's child is forked while it runs.
const BUSY: Duration = Duration::from_millis(5);

impl Interpreter {
    /// Starts the process that programs are forked from, and waits until it is locked in.
    ///
    /// # Errors
    ///
    /// [`Error::Isolation`] names the layer of the jail that this machine lacks; nothing runs without it.
    pub async fn start(config: &Config) -> Result<Self, Error> {
        let zygote = Zygote::start(config).await?;
        let inner = Arc::new(Inner {
            config: config.clone(),
            isolation: zygote.isolation().clone(),
            state: Mutex::new(State { zygote: Arc::clone(&zygote), spare: None }),
            ended: std::sync::Mutex::default(),
        });
        inner.adopt(&mut *inner.state.lock().await, zygote);
        Ok(Self { inner })
    }

    /// Which layers confine its programs.
    pub fn isolation(&self) -> &Isolation {
        &self.inner.isolation
    }

    /// The process id of the zygote, for display.
    pub async fn zygote_pid(&self) -> u32 {
        self.inner.state.lock().await.zygote.pid()
    }

    /// Runs a program in a fresh process. Cancelling ends it with [`Ending::Cancelled`](super::Ending::Cancelled); dropping
    /// the future kills it, a moment later. Calls that still run are dropped either way.
    ///
    /// # Errors
    ///
    /// What the program did is in the result. An error means that it did not run.
    pub async fn run(&self, run: Run, host: Arc<dyn Host>, cancel: CancellationToken) -> Result<Finished, Error> {
        let bounds = bounds(&run.limits);
        let run = Arc::new(run);
        let ahead = if self.inner.is_busy() { Duration::ZERO } else { AHEAD };
        // Whoever lost its zygote before anything happened gets another one, once.
        for _ in 0..2 {
            let child = self.inner.take(bounds).await?;
            let (over, is_over) = oneshot::channel::<()>();
            let inner = Arc::downgrade(&self.inner);
            tokio::spawn(async move {
                let _ = timeout(ahead, is_over).await;
                if let Some(inner) = inner.upgrade() {
                    inner.refill(bounds).await;
                }
            });
            // A task of its own runs where its socket is watched; what waits here may be on a thread that is woken from there.
            let (run, host, cancel) = (Arc::clone(&run), Arc::clone(&host), cancel.clone());
            let pace = Pace { spin: spin::longest(self.inner.config.spin_us), ..PACE };
            let driven =
                AbortOnDropHandle::new(tokio::spawn(async move { drive(child, &run, &host, &cancel, pace).await }));
            let driven = driven.await;
            drop(over);
            *self.inner.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            match driven.map_err(Error::spawn)?? {
                Driven::Finished(finished) => return Ok(*finished),
                Driven::Lost => {}
            }
        }
        Err(Error::spawn("its process ended twice before the program began"))
    }
}

impl Inner {
    /// Goes on with a zygote that has just started. Its first child is forked at once, before it warms up.
    fn adopt(self: &Arc<Self>, state: &mut State, zygote: Arc<Zygote>) {
        let bounds = bounds(&self.config.limits);
        state.spare = Some(Spare::fork(&zygote, bounds, false));
        let (warmed, inner) = (zygote.warmed(), Arc::downgrade(self));
        state.zygote = zygote;
        tokio::spawn(async move {
            if warmed.await
                && let Some(inner) = inner.upgrade()
            {
                inner.refill(bounds).await;
            }
        });
    }

    fn is_busy(&self) -> bool {
        let ended = *self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.is_some_and(|ended| ended.elapsed() < BUSY)
    }

    /// A child with these bounds: the spare one, or a new one.
    async fn take(self: &Arc<Self>, bounds: Bounds) -> Result<Child, Error> {
        for attempt in 0..2 {
            let (zygote, spare) = {
                let mut state = self.state.lock().await;
                if state.zygote.is_dead() {
                    let zygote = Zygote::start(&self.config).await?;
                    self.adopt(&mut state, zygote);
                }
                (Arc::clone(&state.zygote), state.spare.take_if(|spare| spare.bounds == bounds))
            };
            if let Some(mut spare) = spare
                && let Ok(Ok(mut child)) = (&mut spare.child).await
                && !child.has_ended()
            {
                return Ok(child);
            }
            match zygote.fork(bounds).await {
                Ok(child) => return Ok(child),
                // One that was killed before its program began is made again, once, as is a zygote.
                Err(Error::Spawn { .. }) if attempt == 0 => {}
                Err(error) if attempt > 0 || !zygote.is_dead() => return Err(error),
                Err(_) => {}
            }
        }
        Err(Error::spawn("the zygote ended twice"))
    }

    /// Forks the next round's child ahead, and replaces a zygote that made enough of them. What fails here is tried again,
    /// and reported, by the next round.
    async fn refill(self: &Arc<Self>, bounds: Bounds) {
        let old = {
            let mut state = self.state.lock().await;
            let zygote = Arc::clone(&state.zygote);
            let fits = |spare: &Spare| spare.warm && spare.bounds == bounds && Arc::ptr_eq(&spare.zygote, &zygote);
            // One that is not warm yet is busy with that; whoever needs a child meanwhile gets it first.
            if zygote.is_warm() && !zygote.is_dead() && !state.spare.as_ref().is_some_and(fits) {
                state.spare = Some(Spare::fork(&zygote, bounds, true));
            }
            (zygote.rounds() >= self.config.rounds_per_zygote && !zygote.grows_old()).then_some(zygote)
        };
        let Some(old) = old else { return };
        let Ok(new) = Zygote::start(&self.config).await else { return old.stays() };
        let mut state = self.state.lock().await;
        if Arc::ptr_eq(&state.zygote, &old) {
            self.adopt(&mut state, new);
        }
    }
}

fn bounds(limits: &Limits) -> Bounds {
    Bounds { memory_mib: limits.memory_mib, cpu_s: limits.cpu_s, scratch_mib: limits.scratch_mib }
}
