//! A worker takes turns from the stream that all workers share, and makes them. One worker at a time owns a session; what the
//! owner of a dead worker's turn has done is not done again.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, AgentError, Message};
use crate::gate::{Approval, Attendant, Consent, waiting};
use crate::record::SessionRecord;
use crate::session::{self, Session};
use crate::store::redis::{TurnKind, TurnRequest, Turns};
use crate::store::{Store, StoreError};

/// How long one look into the stream waits for a new turn.
const WAIT: Duration = Duration::from_secs(1);

/// How long a worker whose store is away waits before it looks again.
const PAUSE: Duration = Duration::from_secs(1);

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
}

impl Worker {
    /// Works until `cancel`; turns under way are then cut off, and go on wherever they are taken next.
    pub async fn work(self, cancel: &CancellationToken) {
        let places = Arc::new(Semaphore::new(self.at_once.max(1)));
        let mut under_way = JoinSet::new();
        loop {
            let place = tokio::select! {
                () = cancel.cancelled() => break,
                place = Arc::clone(&places).acquire_owned() => place,
            };
            let taken = tokio::select! {
                () = cancel.cancelled() => break,
                taken = self.turns.take(&self.name, self.lease, WAIT) => taken,
            };
            while under_way.try_join_next().is_some() {}
            match taken {
                Ok(Some((entry, request))) => {
                    let worker = self.clone();
                    under_way.spawn(async move {
                        worker.make(&entry, request).await;
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
        under_way.shutdown().await;
    }

    /// Makes one turn, or leaves it to whoever owns its session.
    async fn make(&self, entry: &str, request: TurnRequest) {
        match self.store.take_lease(&request.session, &self.name, self.lease).await {
            Ok(true) => {}
            // Its owner is at work in it, or will be found dead; then this comes again.
            Ok(false) => return,
            Err(error @ StoreError::UnknownSession(_)) => {
                tracing::warn!("turn {}: {error}", request.id);
                return self.done(entry).await;
            }
            Err(error) => return tracing::warn!("turn {}: {error}", request.id),
        }
        let record = match self.place(&request).await {
            Ok(Some(record)) => record,
            // Its user has as many sessions at work as may be: it stays in the stream, and comes again.
            Ok(None) => return self.release(&request.session).await,
            Err(error) => {
                tracing::warn!("turn {}: {error}", request.id);
                return self.release(&request.session).await;
            }
        };
        let cut_off = CancellationToken::new();
        let made = tokio::select! {
            made = self.turn(&request, &cut_off) => made,
            error = self.hold(entry, &record) => Err(error.into()),
        };
        if let Err(error) = self.store.release_place(&record).await {
            tracing::warn!("session {}: {error}", request.session);
        }
        match made {
            Ok(until) => {
                if let Err(error) = self.wake(&request, until).await {
                    // It is not done: another one finds it, and that it sleeps.
                    return tracing::warn!("turn {}: {error}", request.id);
                }
                self.done(entry).await;
            }
            // Another one goes on with it.
            Err(AgentError::Store(StoreError::NotOwner(_) | StoreError::Unreachable { .. })) => return,
            Err(error) => {
                tracing::warn!("turn {}: {error}", request.id);
                self.done(entry).await;
            }
        }
        self.release(&request.session).await;
    }

    /// Counts the session as one of its user's that are at work; `None` if there are too many.
    async fn place(&self, request: &TurnRequest) -> Result<Option<SessionRecord>, StoreError> {
        let Some(record) = self.store.session(&request.session).await? else {
            return Err(StoreError::UnknownSession(request.session.clone()));
        };
        let is_placed = self.store.take_place(&record, self.session.at_once, self.lease).await?;
        Ok(is_placed.then_some(record))
    }

    async fn release(&self, session: &str) {
        if let Err(error) = self.store.release_lease(session, &self.name).await {
            tracing::warn!("session {session}: {error}");
        }
    }

    /// Makes the turn; when it goes on, if it sleeps or waits for a task.
    async fn turn(&self, request: &TurnRequest, cancel: &CancellationToken) -> Result<Option<Timestamp>, AgentError> {
        let TurnRequest { id, session, tenant, user, kind } = request;
        let mut session =
            Session::open(Arc::clone(&self.store), session, tenant, user).await?.with_config(self.session);
        let attendant = Arc::new(Nobody);
        match kind {
            TurnKind::Message { text } if !session.has_begun(id).await? => {
                let message = Message { id: id.clone(), text: text.clone() };
                self.agent.turn(&mut session, message, attendant, cancel).await?;
            }
            _ => drop(self.agent.resume(&mut session, attendant, cancel).await?),
        }
        let waiting = waiting(&session, &self.agent.parts.gate).await?;
        Ok(waiting.and_then(|waiting| waiting.until))
    }

    /// Has a turn that sleeps or waits for a task gone on with, by any worker, when the time has come.
    async fn wake(&self, request: &TurnRequest, until: Option<Timestamp>) -> Result<(), StoreError> {
        let Some(at) = until else { return Ok(()) };
        self.turns.push_at(at, &TurnRequest { kind: TurnKind::Resume, ..request.clone() }).await
    }

    /// Keeps the session and the entry; returns only when that is not possible any more.
    async fn hold(&self, entry: &str, record: &SessionRecord) -> StoreError {
        let session = record.id.as_str();
        let mut beat = tokio::time::interval(self.lease / 3);
        beat.tick().await;
        loop {
            beat.tick().await;
            match self.store.take_lease(session, &self.name, self.lease).await {
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

    async fn done(&self, entry: &str) {
        if let Err(error) = self.turns.done(entry).await {
            tracing::warn!("{error}");
        }
    }
}
