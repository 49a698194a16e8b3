//! Names that programs left and the session could not keep, with the reason: a later program that uses one is told.

use std::collections::BTreeMap;

use super::Session;
use crate::record::WrittenVariable;

/// Names of which the reason is known; the newest come first.
const MOST: usize = 100;

/// In place of a name: what is said of more names than are listed.
const MORE_NAMES: &str = "*";

impl Session {
    /// The names that rounds left and that could not be kept, with the reason, as of the last committed round.
    pub fn not_kept(&self) -> &BTreeMap<String, String> {
        &self.not_kept
    }

    /// Those as they are after a round that wrote something and left something else that could not be kept.
    pub fn not_kept_after(
        &self,
        written: &[WrittenVariable],
        not_carried: &[(String, String)],
    ) -> BTreeMap<String, String> {
        let new = not_carried.iter().filter(|(name, _)| name != MORE_NAMES).take(MOST);
        let mut names: BTreeMap<String, String> = new.cloned().collect();
        let is_written = |name: &String| written.iter().any(|written| written.variable.name == *name);
        for (name, reason) in self.not_kept.iter().filter(|(name, _)| !is_written(name)) {
            if names.len() < MOST {
                names.entry(name.clone()).or_insert_with(|| reason.clone());
            }
        }
        names
    }
}
