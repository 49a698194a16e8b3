//! Of a long conversation, only what is asked for is read: its end, and as much before it as a reader has room for.

use super::Session;
use crate::segment::Segment;
use crate::store::StoreError;

/// Segments that are read when a session is opened: about as many as the context of a small model takes.
pub(super) const OPENED: u64 = 64;

/// Older segments that are read at once.
const PAGE: u64 = 512;

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
}
