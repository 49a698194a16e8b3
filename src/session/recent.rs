//! Of a long conversation, only what is asked for is read: its end, and as much before it as a reader has room for.

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::{EVENTS_PAGE, Session};
use crate::event::{Event, EventKind};
use crate::segment::Segment;
use crate::store::StoreError;

/// Segments that are read when a session is opened: about as many as the context of a small model takes.
pub(super) const OPENED: u64 = 64;

/// Older segments that are read at once.
const PAGE: u64 = 512;

/// Events that are read first where the last ones are mostly enough.
const FIRST_EVENTS_PAGE: u64 = 100;

/// How far the clocks of machines that share a store may be apart. One hour.
const CLOCKS_DIFFER: SignedDuration = SignedDuration::from_hours(1);

impl Session {
    /// How many segments there are before [`segments`](Self::segments).
    pub fn earlier_segments(&self) -> u64 {
        self.earlier
    }

    /// Reads older segments until those that are read are enough, or there are no more.
    ///
    /// # Errors
    /// Those of the store; what was read until then stays. `Stale` if another process cut the session meanwhile.
    pub async fn reach_back(&mut self, enough: impl Fn(&[Segment]) -> bool) -> Result<(), StoreError> {
        while self.earlier > 0 && !enough(&self.segments) {
            let after = self.earlier.saturating_sub(PAGE);
            let wanted = self.earlier - after;
            let page = self.store.segments(&self.record.id, after, wanted as u32).await?;
            if page.len() as u64 != wanted {
                return Err(StoreError::Stale(self.record.id.clone()));
            }
            self.saved += page.len();
            self.segments.splice(0..0, page);
            self.earlier = after;
        }
        Ok(())
    }

    /// All segments in order, pending ones included.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn all_segments(&self) -> Result<Vec<Segment>, StoreError> {
        let earlier = u32::try_from(self.earlier).unwrap_or(u32::MAX);
        let mut segments = match earlier {
            0 => Vec::new(),
            _ => self.store.segments(&self.record.id, 0, earlier).await?,
        };
        segments.extend_from_slice(&self.segments);
        Ok(segments)
    }

    /// Whether a turn of that id has begun in this session. An id that is a UUID version 7 says when it was asked for, and only
    /// events from then on are read.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn has_begun(&self, turn: &str) -> Result<bool, StoreError> {
        let asked_at = asked_at(turn).and_then(|at| at.checked_sub(CLOCKS_DIFFER).ok());
        let (mut before, mut wanted) = (self.record.events, FIRST_EVENTS_PAGE);
        while before > 0 {
            let after = before.saturating_sub(wanted);
            let page = self.store.events(&self.record.id, after, (before - after) as u32).await?;
            let begins = |event: &Event| matches!(&event.kind, EventKind::RunStarted { run_id, .. } if run_id == turn);
            if page.iter().any(begins) {
                return Ok(true);
            }
            if asked_at.is_some_and(|asked_at| page.iter().all(|event| event.at < asked_at)) {
                return Ok(false);
            }
            (before, wanted) = (after, EVENTS_PAGE);
        }
        Ok(false)
    }
}

/// When an id was made that says it.
fn asked_at(turn: &str) -> Option<Timestamp> {
    let (seconds, nanoseconds) = Uuid::parse_str(turn).ok()?.get_timestamp()?.to_unix();
    Timestamp::new(i64::try_from(seconds).ok()?, i32::try_from(nanoseconds).ok()?).ok()
}
