//! Changes to source text at places that the parser found, and from such a place to its line.

use ruff_text_size::{Ranged, TextRange, TextSize};

/// Replacements in one text. Those that overlap an earlier one are left out.
#[derive(Debug, Default)]
pub(super) struct Edits {
    edits: Vec<(TextRange, String)>,
    /// What was done, one sentence each.
    pub(super) repairs: Vec<String>,
}

impl Edits {
    /// Puts text before a place.
    pub(super) fn insert(&mut self, at: TextSize, text: impl Into<String>) {
        self.replace(TextRange::empty(at), text);
    }

    /// Puts text in place of other text.
    pub(super) fn replace(&mut self, range: TextRange, text: impl Into<String>) {
        self.edits.push((range, text.into()));
    }

    /// Says what was done. The same sentence is said once.
    pub(super) fn say(&mut self, repair: String) {
        if !self.repairs.contains(&repair) {
            self.repairs.push(repair);
        }
    }

    /// True if the text stays as it is.
    pub(super) fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// The changed text.
    pub(super) fn apply(mut self, source: &str) -> String {
        // Stable: insertions at one place stay in the order in which they were made.
        self.edits.sort_by_key(|(range, _)| (range.start(), !range.is_empty()));
        let mut changed = String::with_capacity(source.len() + 16 * self.edits.len());
        let mut position = TextSize::new(0);
        for (range, text) in self.edits {
            if range.start() < position {
                continue;
            }
            changed.push_str(slice(source, TextRange::new(position, range.start())));
            changed.push_str(&text);
            position = range.end();
        }
        changed.push_str(source.get(position.to_usize()..).unwrap_or_default());
        changed
    }
}

/// The text of a place.
pub(super) fn slice(source: &str, range: TextRange) -> &str {
    source.get(range.start().to_usize()..range.end().to_usize()).unwrap_or_default()
}

/// The line of a place, from 1.
pub(super) fn line_of(source: &str, node: impl Ranged) -> u32 {
    let before = source.get(..node.start().to_usize()).unwrap_or(source);
    u32::try_from(before.matches('\n').count() + 1).unwrap_or(u32::MAX)
}
