//! A session over a store: one turn at a time. It numbers segments, rounds and events, knows which variables there are,
//! and writes what changed. It does not know what a round is for, nor who runs its program.
//!
//! Whoever asks for a session says on whose behalf; the session of another tenant or user does not exist for them.

mod branch;
mod carry;
mod cut;
mod emitter;
mod history;
mod journal;
mod limits;
mod not_kept;
mod raised;
mod recent;
mod shapes;
mod statistics;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use uuid::Uuid;

pub use branch::BranchError;
pub use emitter::Emitter;
pub use history::{Change, Origin};
pub use journal::{Journal, call_key};
pub use limits::{Config, written_variable};
pub use raised::{exception_class, exception_line};
pub use statistics::{OperationStatistics, RoundStatistics, call_statistics, round_statistics};

use crate::crash;
use crate::event::{Custom, Event, EventKind};
use crate::interpreter::Carried;
use crate::record::{CallRecord, Round, RoundUsage, SessionRecord, SessionStatus, Variable, WrittenVariable};
use crate::registry::View;
use crate::segment::{Segment, SegmentKind};
use crate::store::check::is_open;
use crate::store::{RoundCommit, Store, StoreError};

/// Events that are read at once, from the last one back.
const EVENTS_PAGE: u64 = 1_000;

/// Sessions among which [`Session::latest`] looks for one that was spoken in.
const LATEST_LOOKED_AT: u32 = 50;

/// An open session. What is pushed, set or emitted is pending until [`save`](Session::save) or
/// [`commit_round`](Session::commit_round) returned; after an error of either it still is. If the future of either is
/// dropped, the write may have happened: open the session again.
pub struct Session {
    store: Arc<dyn Store>,
    config: Config,
    record: SessionRecord,
    /// How many older segments are in the store only.
    earlier: u64,
    view: View,
    segments: Vec<Segment>,
    /// How many of `segments` are stored.
    saved: usize,
    /// Whether the record itself has changed since it was stored.
    changed: bool,
    variables: BTreeMap<String, Variable>,
    /// Names that could not be kept, with the reason.
    not_kept: BTreeMap<String, String>,
    /// The last round, as long as it can go on.
    open: Option<Round>,
    /// What rounds that begin are traced as.
    trace: String,
    emitter: Emitter,
}

impl Session {
    /// Opens a new session; it is stored when this returns.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn create(store: Arc<dyn Store>, tenant: &str, user: &str, title: &str) -> Result<Self, StoreError> {
        let now = Timestamp::now();
        let record = SessionRecord {
            id: Uuid::now_v7().to_string(),
            tenant: tenant.to_owned(),
            user: user.to_owned(),
            title: title.to_owned(),
            status: SessionStatus::Idle,
            created_at: now,
            updated_at: now,
            rounds: 0,
            segments: 0,
            events: 0,
            turn: None,
        };
        store.create_session(&record).await?;
        crash::point("session created");
        Ok(Self::over(store, record, 0, Vec::new(), Vec::new(), None))
    }

    /// Goes on with a stored session. Of a long conversation only the newest segments are read, see
    /// [`reach_back`](Self::reach_back).
    ///
    /// # Errors
    /// `UnknownSession` if there is none of that id, or it is somebody else's.
    pub async fn open(store: Arc<dyn Store>, id: &str, tenant: &str, user: &str) -> Result<Self, StoreError> {
        let record = owned(store.as_ref(), id, tenant, user).await?;
        let earlier = record.segments.saturating_sub(recent::OPENED);
        let last = async {
            match record.rounds.checked_sub(1) {
                Some(before) => Ok(store.rounds(id, before).await?.pop()),
                None => Ok(None),
            }
        };
        let (segments, variables, last) =
            tokio::try_join!(store.segments(id, earlier, u32::MAX), store.variables(id), last)?;
        Ok(Self::over(store, record, earlier, segments, variables, last))
    }

    /// Goes on with the user's most recently updated session; `None` if there is none.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn latest(store: Arc<dyn Store>, tenant: &str, user: &str) -> Result<Option<Self>, StoreError> {
        // One that was opened and never spoken in is nothing to go on with.
        let records = store.sessions(tenant, user, LATEST_LOOKED_AT).await?;
        match records.into_iter().find(|record| record.segments > 0) {
            Some(record) => Self::open(store, &record.id, tenant, user).await.map(Some),
            None => Ok(None),
        }
    }

    /// Removes a stored session and all that belongs to it.
    ///
    /// # Errors
    /// `UnknownSession` as for [`open`](Self::open).
    pub async fn delete(store: &dyn Store, id: &str, tenant: &str, user: &str) -> Result<(), StoreError> {
        owned(store, id, tenant, user).await?;
        store.delete_session(id).await
    }

    /// The same session with other limits than the default ones.
    #[must_use]
    pub fn with_config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// The same session, whose programs see only some of the toolkits. It holds as long as this value and is not stored: who opens
    /// the session says it again.
    #[must_use]
    pub fn with_view(mut self, view: View) -> Self {
        self.view = view;
        self
    }

    /// What of the toolkits its programs see.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The session's record: `rounds` and `segments` count what is pending too, `events` what is stored.
    pub fn record(&self) -> &SessionRecord {
        &self.record
    }

    /// The newest segments in order, pending ones included; those before them are in the store only, unless
    /// [`reach_back`](Self::reach_back) has read them.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The variables as of the last committed round, by name.
    pub fn variables(&self) -> &BTreeMap<String, Variable> {
        &self.variables
    }

    /// Appends a segment of the current round.
    pub fn push(&mut self, kind: SegmentKind, content: impl Into<String>) -> &Segment {
        self.append(Segment::new(kind, self.record.rounds, content))
    }

    /// Appends a segment that a condensation must keep.
    pub fn push_pinned(&mut self, kind: SegmentKind, content: impl Into<String>) -> &Segment {
        let segment = Segment::new(kind, self.record.rounds, content);
        self.append(Segment { pinned: true, ..segment })
    }

    /// Says what the session is doing.
    pub fn set_status(&mut self, status: SessionStatus) {
        self.changed |= self.record.status != status;
        self.record.status = status;
    }

    /// Keeps what the turn under way must know to be gone on with; `None` when it is over.
    pub fn set_turn(&mut self, turn: Option<serde_json::Value>) {
        self.changed |= self.record.turn != turn;
        self.record.turn = turn;
    }

    /// Names the session.
    pub fn set_title(&mut self, title: impl Into<String>) {
        let title = title.into();
        self.changed |= self.record.title != title;
        self.record.title = title;
    }

    /// The session's emitter.
    pub fn emitter(&self) -> Emitter {
        self.emitter.clone()
    }

    /// Every event from now on, as it is emitted.
    pub fn subscribe(&self) -> UnboundedReceiver<Event> {
        self.emitter.subscribe()
    }

    /// Sends every event from now on to `subscriber`, as it is emitted.
    pub fn subscribe_with(&self, subscriber: UnboundedSender<Event>) {
        self.emitter.subscribe_with(subscriber);
    }

    /// Stores what is pending; writes nothing if nothing is.
    ///
    /// # Errors
    /// `Stale` if another process went on with the session meanwhile: open it again.
    pub async fn save(&mut self) -> Result<(), StoreError> {
        let (record, events) = self.next_record();
        if !self.changed && events.is_empty() && self.saved == self.segments.len() {
            return Ok(());
        }
        self.store.append(&record, &self.segments[self.saved..], &events).await?;
        self.stored(record, events.len());
        Ok(())
    }

    /// Opens the next round in the store; events and segments belong to it from now on.
    ///
    /// # Errors
    /// `AlreadyExists` if another process went on with the session meanwhile.
    pub async fn begin_round(
        &mut self,
        goal: impl Into<String>,
        parents: Vec<u64>,
        prefix: impl Into<String>,
        hole: impl Into<String>,
        suffix: impl Into<String>,
    ) -> Result<Round, StoreError> {
        let round = Round {
            number: self.record.rounds + 1,
            parents,
            goal: goal.into(),
            prefix: prefix.into(),
            hole: hole.into(),
            suffix: suffix.into(),
            output: String::new(),
            written: Vec::new(),
            removed: Vec::new(),
            not_kept: self.not_kept.clone(),
            statements_done: 0,
            outcome: None,
            started_at: Timestamp::now(),
            ended_at: None,
            usage: RoundUsage::default(),
            seed: [Uuid::new_v4(), Uuid::new_v4()].map(|part| part.simple().to_string()).concat(),
            trace: self.trace.clone(),
        };
        self.store.open_round(&self.record.id, &round).await?;
        self.record.rounds = round.number;
        self.open = Some(round.clone());
        self.emitter.enter_round(round.number);
        Ok(round)
    }

    /// The store that it is in.
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// The last round if it can go on: its process was cut off, or it waits for something. Rounds before it cannot: others
    /// have built on what was there.
    pub fn open_round(&self) -> Option<&Round> {
        self.open.as_ref()
    }

    /// Goes on with that round; events and segments belong to it from now on.
    pub fn reopen_round(&mut self) -> Option<Round> {
        let round = self.open.clone()?;
        if !round.trace.is_empty() {
            self.trace.clone_from(&round.trace);
        }
        self.emitter.enter_round(round.number);
        Some(round)
    }

    /// What ties rounds that begin, their calls and what these cause elsewhere to one turn: its run id. A round that goes on
    /// keeps its own, and so do those after it. Default empty.
    pub fn set_trace(&mut self, trace: impl Into<String>) {
        self.trace = trace.into();
    }

    /// The last one set.
    pub fn trace(&self) -> &str {
        &self.trace
    }

    /// The events of the round that can go on, as far as they are known, in order.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn events_of_open_round(&self) -> Result<Vec<Event>, StoreError> {
        let Some(number) = self.open.as_ref().map(|round| round.number) else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        let mut before = self.record.events;
        // They are the last ones, however long the history is.
        while before > 0 {
            let after = before.saturating_sub(EVENTS_PAGE);
            let page = self.store.events(&self.record.id, after, (before - after) as u32).await?;
            // Between two runs of it there are events of no round.
            let is_before = |event: &Event| (1..number).contains(&event.round);
            let begins = |event: &Event| matches!(event.kind, EventKind::Custom(Custom::Program { .. }));
            let is_all = page.iter().any(|event| is_before(event) || event.round == number && begins(event));
            found.splice(0..0, page.into_iter().filter(|event| event.round == number));
            if is_all {
                break;
            }
            before = after;
        }
        found.extend(self.emitter.pending().into_iter().filter(|event| event.round == number));
        Ok(found)
    }

    /// The journal of a round's calls.
    pub fn journal(&self, round: u64) -> Journal {
        Journal::new(Arc::clone(&self.store), &self.record.id, round)
    }

    /// Splits what a round wrote into what the session may keep and the names of the rest, each with the reason.
    /// [`commit_round`](Self::commit_round) does the same; call this before it to tell the user.
    pub fn fit(
        &self,
        written: Vec<WrittenVariable>,
        removed: &[String],
    ) -> (Vec<WrittenVariable>, Vec<(String, String)>) {
        limits::fit(self.config, &self.variables, written, removed)
    }

    /// Ends a round: stores it with its variables and all that is pending, in one write. Sets the round's `written` and
    /// `removed`. A variable over a limit is kept out and named in the answer, with the reason; its older version is
    /// removed, because a program that went on with it would go on with something else than what it last saw.
    ///
    /// # Errors
    /// Nothing is stored and nothing here has changed. `Stale` and `AlreadyExists` if another process was faster.
    pub async fn commit_round(
        &mut self,
        mut round: Round,
        written: Vec<WrittenVariable>,
        removed: Vec<String>,
    ) -> Result<Vec<(String, String)>, StoreError> {
        let (written, kept_out) = self.fit(written, &removed);
        let mut removed = removed;
        // Deleted and assigned again is written.
        removed.retain(|name| !written.iter().any(|written| written.variable.name == *name));
        let outdated = kept_out.iter().map(|(name, _)| name).filter(|name| self.variables.contains_key(*name));
        let removed: BTreeSet<String> = removed.iter().chain(outdated).cloned().collect();
        let removed: Vec<String> = removed.into_iter().collect();
        round.written = written.iter().map(|written| written.variable.name.clone()).collect();
        round.removed.clone_from(&removed);
        let (session, events) = self.next_record();
        let segments = self.segments[self.saved..].to_vec();
        let commit = RoundCommit { session, round, written, removed, segments, events };
        self.store.commit_round(&commit).await?;
        for name in &commit.removed {
            self.variables.remove(name);
        }
        let variables = commit.written.into_iter().map(|written| written.variable);
        self.variables.extend(variables.map(|variable| (variable.name.clone(), variable)));
        self.stored(commit.session, commit.events.len());
        self.not_kept.clone_from(&commit.round.not_kept);
        self.open = Some(commit.round).filter(|round| is_open(round.outcome.as_ref()));
        self.emitter.enter_round(0);
        Ok(kept_out)
    }

    /// Stored rounds with `number > after`, in order.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn rounds(&self, after: u64) -> Result<Vec<Round>, StoreError> {
        self.store.rounds(&self.record.id, after).await
    }

    /// All stored events, in order.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn events(&self) -> Result<Vec<Event>, StoreError> {
        self.store.events(&self.record.id, 0, u32::MAX).await
    }

    /// The calls of a round, in the order they were requested.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn calls(&self, round: u64) -> Result<Vec<CallRecord>, StoreError> {
        self.store.calls(&self.record.id, round).await
    }

    /// The variables that a program with these names starts with: those it names and all that they need in turn, in an
    /// order in which they can be restored: imports; definitions, each after what its decorators, defaults, annotations,
    /// bases and class body need; values, each after the classes it has instances of. A value that a definition needs to
    /// be defined comes before it. Only their contents are read.
    ///
    /// # Errors
    /// `Stale` if another process changed one of them meanwhile.
    pub async fn carried(&self, names: &BTreeSet<String>) -> Result<Vec<Carried>, StoreError> {
        let mut found = BTreeMap::new();
        let mut wanted: BTreeSet<String> =
            names.iter().filter(|name| self.variables.contains_key(*name)).cloned().collect();
        while !wanted.is_empty() {
            let asked: Vec<String> = wanted.into_iter().collect();
            let contents = self.store.contents(&self.record.id, &asked).await?;
            let known =
                |written: &WrittenVariable| self.variables.get(&written.variable.name) == Some(&written.variable);
            if contents.len() != asked.len() || !contents.iter().all(known) {
                return Err(StoreError::Stale(self.record.id.clone()));
            }
            let mut next = BTreeSet::new();
            for written in contents {
                let reached = carry::reached(&written, &self.variables);
                next.extend(reached.iter().cloned());
                found.insert(written.variable.name.clone(), (written, reached));
            }
            next.retain(|name| !found.contains_key(name));
            wanted = next;
        }
        Ok(carry::in_order(found))
    }

    fn over(
        store: Arc<dyn Store>,
        record: SessionRecord,
        earlier: u64,
        segments: Vec<Segment>,
        variables: Vec<Variable>,
        last: Option<Round>,
    ) -> Self {
        Self {
            view: View::default(),
            not_kept: last.as_ref().map(|round| round.not_kept.clone()).unwrap_or_default(),
            open: last.filter(|round| is_open(round.outcome.as_ref())),
            store,
            config: Config::default(),
            trace: String::new(),
            emitter: Emitter::new(&record.id, record.events),
            record,
            earlier,
            saved: segments.len(),
            segments,
            changed: false,
            variables: variables.into_iter().map(|variable| (variable.name.clone(), variable)).collect(),
        }
    }

    fn append(&mut self, segment: Segment) -> &Segment {
        self.record.segments += 1;
        let at = self.segments.len();
        self.segments.push(Segment { id: self.record.segments, ..segment });
        &self.segments[at]
    }

    /// The record as it is to be stored, and the events that it counts.
    fn next_record(&self) -> (SessionRecord, Vec<Event>) {
        let events = self.emitter.pending();
        let last = events.last().map_or(self.record.events, |event| event.seq);
        // A clock that was set back must not make the session older than it was.
        let updated_at = Timestamp::now().max(self.record.updated_at);
        (SessionRecord { updated_at, events: last, ..self.record.clone() }, events)
    }

    fn stored(&mut self, record: SessionRecord, events: usize) {
        self.record = record;
        self.saved = self.segments.len();
        self.changed = false;
        self.emitter.saved(events);
    }
}

async fn owned(store: &dyn Store, id: &str, tenant: &str, user: &str) -> Result<SessionRecord, StoreError> {
    match store.session(id).await? {
        Some(record) if record.tenant == tenant && record.user == user => Ok(record),
        _ => Err(StoreError::UnknownSession(id.to_owned())),
    }
}
