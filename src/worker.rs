//! A worker takes turns from the stream that all workers share, and makes them. One worker at a time owns a session; what the
//! owner of a dead worker's turn has done is not done again.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, AgentError, Message, tell_failure};
use crate::crash;
use crate::event::EventKind;
use crate::gate::{Approval, Attendant, Consent, waiting};
use crate::record::SessionRecord;
use crate::registry::View;
use crate::session::{self, Session};
use crate::store::redis::{TurnKind, TurnRequest, Turns};
use crate::store::{Store, StoreError};

/// How long one look into the stream waits for a new turn. After it, turns are looked for whose worker is not heard of: with
/// [`AGAIN`] it is what a dead worker's turn waits for beyond its lease.
const WAIT: Duration = Duration::from_millis(250);

/// After how long a turn comes again whose session is at work elsewhere, or whose user has too many sessions at work.
const AGAIN: Duration = Duration::from_millis(250);

/// How long a worker whose store is away waits before it looks again.
const PAUSE: Duration = Duration::from_secs(1);

/// How long a worker that is told to stop tries to give its turns back. Those that it could not, another one finds when their
/// lease is over.
const STOPPING: Duration = Duration::from_secs(10);

/// Longer than any lease: whoever looks for turns whose worker is not heard of takes one that is so old at once.
const LONG_AGO: Duration = Duration::from_secs(86_400);

/// Nobody is there, and nobody waits: what takes long is gone on with by whoever takes it then.
struct Nobody;

#[async_trait]
impl Attendant for Nobody {
    async fn approve(&self, _request: &Approval) -> Option<Consent> {
        None
    }

    async fn answer(&self, _question: &str, _choices: &[String]) -> Option<String> {
        None
    }

    fn waits_out_sleep(&self) -> bool {
        false
    }
}

/// Makes turns.
#[derive(Clone)]
pub struct Worker {
    /// Unique among the workers of a store.
    pub name: String,
    /// What answers.
    pub agent: Arc<Agent>,
    /// Where the sessions are; its leases are the worker's own.
    pub store: Arc<dyn Store>,
    /// Where the turns come from.
    pub turns: Arc<Turns>,
    /// How long a worker that is not heard of owns its session. Prolonged at a third of it.
    pub lease: Duration,
    /// Turns at the same time.
    pub at_once: usize,
    /// The limits of sessions.
    pub session: session::Config,
    /// What of the toolkits its sessions see.
    pub view: View,
}

impl Worker {
    /// Works until `cancel`; turns under way are then cut off and given back, so that another worker goes on with them at once.
    pub async fn work(self, cancel: &CancellationToken) {
        let places = Arc::new(Semaphore::new(self.at_once.max(1)));
        let at_work = AtWork::default();
        let mut under_way = JoinSet::new();
        // What is given back must not be taken again by this very worker, so that comes after its last look.
        let stop = CancellationToken::new();
        loop {
            let place = tokio::select! {
                biased;
                () = cancel.cancelled() => break,
                place = Arc::clone(&places).acquire_owned() => place,
            };
            // Not left in the middle: what the server has handed out must be given back.
            let Some(taken) = in_time(cancel, self.turns.take(&self.name, self.lease, WAIT)).await else { break };
            while under_way.try_join_next().is_some() {}
            match taken {
                Ok(Some(taken)) => {
                    let (worker, at_work, stop) = (self.clone(), at_work.clone(), stop.clone());
                    under_way.spawn(async move {
                        in_time(&stop, worker.make_all(taken, &at_work, &stop)).await;
                        drop(place);
                    });
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!("{error}");
                    tokio::select! {
                        () = cancel.cancelled() => break,
                        () = tokio::time::sleep(PAUSE) => {}
                    }
                }
            }
        }
        stop.cancel();
        while under_way.join_next().await.is_some() {}
    }

    /// Makes one turn, and those of its session that wait for it; at `stop`, gives them back.
    async fn make_all(&self, first: (String, TurnRequest), at_work: &AtWork, stop: &CancellationToken) {
        let mut next = Some(first);
        while let Some((entry, request)) = next {
            // A process that was stopped for a while is handed its own turns.
            let Some(_mark) = at_work.enter(&entry) else { return };
            crash::point("entry taken");
            next = match stop.is_cancelled() {
                true => self.give_back(&entry).await,
                false => self.make(&entry, &request, stop).await,
            };
        }
    }

    /// Makes one turn, or leaves it for later; then the session's next one, if it had to wait for this one.
    async fn make(
        &self,
        entry: &str,
        request: &TurnRequest,
        stop: &CancellationToken,
    ) -> Option<(String, TurnRequest)> {
        let TurnRequest { id, session, .. } = request;
        // Two turns of this very worker are not one owner.
        let owner = format!("{}/{entry}", self.name);
        match self.store.take_lease(session, &owner, self.lease).await {
            Ok(true) => {}
            // Its owner is at work in it, or will be found dead.
            Ok(false) => return self.put_off(entry).await,
            Err(error @ StoreError::UnknownSession(_)) => {
                tracing::warn!("turn {id}: {error}");
                return self.end(entry, request).await;
            }
            Err(error) => {
                tracing::warn!("turn {id}: {error}");
                return None;
            }
        }
        crash::point("lease taken");
        let record = match self.place(request).await {
            Ok(Some(record)) => record,
            // Its user has as many sessions at work as may be.
            Ok(None) => {
                self.release(session, &owner).await;
                return self.put_off(entry).await;
            }
            Err(error) => {
                tracing::warn!("turn {id}: {error}");
                self.release(session, &owner).await;
                return None;
            }
        };
        crash::point("place taken");
        let cut_off = CancellationToken::new();
        // One that is cut off is dropped where it is, as if its worker had died: its journal says how it goes on.
        let made = tokio::select! {
            made = self.turn(request, &cut_off) => Some(made),
            error = self.hold(entry, &owner, &record) => Some(Err(error.into())),
            () = stop.cancelled() => None,
        };
        crash::point("turn made");
        // That of a session that is lost is counted for whoever has it now.
        let is_lost = matches!(made, Some(Err(AgentError::Store(StoreError::NotOwner(_)))));
        if !is_lost && let Err(error) = self.store.release_place(&record).await {
            tracing::warn!("session {session}: {error}");
        }
        let ends = match made {
            // If it cannot be woken it is not done: another one finds it, and that it sleeps.
            Some(Ok(until)) => self.wake(request, until).await.map_err(AgentError::from),
            Some(Err(error)) => Err(error),
            None => {
                // Whoever takes the entry finds the session free.
                self.release(session, &owner).await;
                return self.give_back(entry).await;
            }
        };
        self.release(session, &owner).await;
        crash::point("lease released");
        match ends {
            Ok(()) => self.end(entry, request).await,
            // Another one goes on with it.
            Err(AgentError::Store(error @ (StoreError::NotOwner(_) | StoreError::Unreachable { .. }))) => {
                tracing::warn!("turn {id}: {error}");
                None
            }
            Err(error) => {
                tracing::warn!("turn {id}: {error}");
                self.end(entry, request).await
            }
        }
    }

    /// Counts the session as one of its user's that are at work; `None` if there are too many.
    async fn place(&self, request: &TurnRequest) -> Result<Option<SessionRecord>, StoreError> {
        let Some(record) = self.store.session(&request.session).await? else {
            return Err(StoreError::UnknownSession(request.session.clone()));
        };
        let is_placed = self.store.take_place(&record, self.session.at_once, self.lease).await?;
        Ok(is_placed.then_some(record))
    }

    async fn release(&self, session: &str, owner: &str) {
        if let Err(error) = self.store.release_lease(session, owner).await {
            tracing::warn!("session {session}: {error}");
        }
    }

    async fn put_off(&self, entry: &str) -> Option<(String, TurnRequest)> {
        self.leave(entry, self.lease, AGAIN).await
    }

    /// Leaves an entry for whoever looks next, however long a lease that one waits for.
    async fn give_back(&self, entry: &str) -> Option<(String, TurnRequest)> {
        self.leave(entry, LONG_AGO, Duration::ZERO).await
    }

    async fn leave(&self, entry: &str, abandoned: Duration, after: Duration) -> Option<(String, TurnRequest)> {
        if let Err(error) = self.turns.put_off(&self.name, entry, abandoned, after).await {
            tracing::warn!("{error}");
        }
        None
    }

    /// Makes the turn; when it goes on, if it sleeps or waits for a task.
    async fn turn(&self, request: &TurnRequest, cancel: &CancellationToken) -> Result<Option<Timestamp>, AgentError> {
        let TurnRequest { id, session, tenant, user, kind } = request;
        let session = Session::open(Arc::clone(&self.store), session, tenant, user).await?;
        let mut session = session.with_config(self.session).with_view(self.view.clone());
        let attendant = Arc::new(Nobody);
        match kind {
            TurnKind::Message { text } if !session.has_begun(id).await? => {
                let message = Message { id: id.clone(), text: text.clone() };
                let turned = self.agent.turn(&mut session, message, attendant, cancel).await;
                if let Err(error @ AgentError::Refused(_)) = &turned {
                    // Whoever sent it sees nothing but the session's events.
                    let (thread_id, run_id) = (session.record().id.clone(), id.clone());
                    session.emitter().emit(EventKind::RunStarted { thread_id, run_id });
                    tell_failure(&session, error);
                    session.save().await?;
                }
                turned?;
            }
            _ => drop(self.agent.resume(&mut session, attendant, cancel).await?),
        }
        let waiting = waiting(&session, &self.agent.parts.gate).await?;
        Ok(waiting.and_then(|waiting| waiting.until))
    }

    /// Has a turn that sleeps or waits for a task gone on with, by any worker, when the time has come.
    async fn wake(&self, request: &TurnRequest, until: Option<Timestamp>) -> Result<(), StoreError> {
        let Some(at) = until else { return Ok(()) };
        self.turns.push_at(at, &TurnRequest { kind: TurnKind::Resume, ..request.clone() }).await?;
        crash::point("turn put to sleep");
        Ok(())
    }

    /// Keeps the session and the entry; returns only when that is not possible any more.
    async fn hold(&self, entry: &str, owner: &str, record: &SessionRecord) -> StoreError {
        let session = record.id.as_str();
        let mut beat = tokio::time::interval(self.lease / 3);
        beat.tick().await;
        loop {
            beat.tick().await;
            match self.store.take_lease(session, owner, self.lease).await {
                Ok(true) => {}
                Ok(false) => return StoreError::NotOwner(session.to_owned()),
                Err(error) => return error,
            }
            if let Err(error) = self.store.take_place(record, self.session.at_once, self.lease).await {
                return error;
            }
            if let Err(error) = self.turns.keep(&self.name, entry).await {
                return error;
            }
        }
    }

    async fn end(&self, entry: &str, request: &TurnRequest) -> Option<(String, TurnRequest)> {
        let next = self.turns.end(&self.name, entry, &request.session).await;
        crash::point("entry taken off");
        next.unwrap_or_else(|error| {
            tracing::warn!("{error}");
            None
        })
    }
}

/// What `work` comes to; `None` if it does not end within [`STOPPING`] of `stop`.
async fn in_time<T>(stop: &CancellationToken, work: impl Future<Output = T>) -> Option<T> {
    let late = async {
        stop.cancelled().await;
        tokio::time::sleep(STOPPING).await;
    };
    tokio::select! {
        done = work => Some(done),
        () = late => None,
    }
}

/// The entries that a worker is at.
#[derive(Clone, Default)]
struct AtWork(Arc<Mutex<BTreeSet<String>>>);

/// An entry that a worker is at, as long as this lives.
struct Mark(AtWork, String);

impl AtWork {
    /// Marks an entry; `None` if it is marked.
    fn enter(&self, entry: &str) -> Option<Mark> {
        let is_new = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(entry.to_owned());
        is_new.then(|| Mark(self.clone(), entry.to_owned()))
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.1);
    }
}
