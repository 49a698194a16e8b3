//! Numbers a session's events, keeps them until the next save and shows them live. It does not know who looks at them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::event::{Custom, Event, EventKind};

/// Emits events of one session. Clones are the same emitter; they may be used from concurrent tasks.
///
/// A subscriber gets events before they are stored. If the process dies in between, their numbers are given again to
/// the first events of the process that goes on.
#[derive(Clone)]
pub struct Emitter {
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    session: String,
    round: u64,
    last: u64,
    pending: Vec<Event>,
    told_isolation: bool,
    subscribers: Vec<UnboundedSender<Event>>,
}

impl Emitter {
    /// An emitter whose first event has the number after `last`.
    pub(super) fn new(session: &str, last: u64) -> Self {
        let shared = Shared {
            session: session.to_owned(),
            round: 0,
            last,
            pending: Vec::new(),
            told_isolation: false,
            subscribers: Vec::new(),
        };
        Self { shared: Arc::new(Mutex::new(shared)) }
    }

    /// An emitter of no session: what it is given goes nowhere.
    pub fn detached() -> Self {
        Self::new("", 0)
    }

    /// Numbers an event, keeps it for the next save and sends it to the subscribers, who get the numbers in order. A
    /// transient event has number 0 and is only sent.
    pub fn emit(&self, kind: EventKind) {
        let mut shared = self.lock();
        let transient = kind.is_transient();
        shared.told_isolation |= matches!(kind, EventKind::Custom(Custom::Isolation { .. }));
        if !transient {
            shared.last += 1;
        }
        let event = Event {
            seq: if transient { 0 } else { shared.last },
            session: shared.session.clone(),
            round: shared.round,
            at: Timestamp::now(),
            kind,
        };
        // Who no longer listens is forgotten.
        shared.subscribers.retain(|subscriber| subscriber.send(event.clone()).is_ok());
        if !transient {
            shared.pending.push(event);
        }
    }

    /// True if no event of the session has a number yet.
    pub fn is_at_beginning(&self) -> bool {
        self.lock().last == 0
    }

    /// True if this emitter said which layers of the jail are active.
    pub fn has_told_isolation(&self) -> bool {
        self.lock().told_isolation
    }

    /// The round that events carry now; 0 outside rounds.
    pub fn round(&self) -> u64 {
        self.lock().round
    }

    /// A subscriber for every event from now on.
    pub(super) fn subscribe(&self) -> UnboundedReceiver<Event> {
        let (sender, receiver) = unbounded_channel();
        self.lock().subscribers.push(sender);
        receiver
    }

    /// Sends every event from now on to `subscriber` too.
    pub(super) fn subscribe_with(&self, subscriber: UnboundedSender<Event>) {
        self.lock().subscribers.push(subscriber);
    }

    /// The round of the events from now on.
    pub(super) fn enter_round(&self, round: u64) {
        self.lock().round = round;
    }

    /// What is not stored yet.
    pub(crate) fn pending(&self) -> Vec<Event> {
        self.lock().pending.clone()
    }

    /// The first `count` pending events are stored now.
    pub(super) fn saved(&self, count: usize) {
        self.lock().pending.drain(..count);
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // Nothing in here panics half-way; a poisoned lock guards sound data.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
