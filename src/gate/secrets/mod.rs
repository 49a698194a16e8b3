//! Values that no output may show, and the mask that replaces them.

mod forms;
mod mask;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value;

pub use stream::MaskedStream;

use mask::Mask;

/// What a secret is replaced by.
pub(in crate::gate) const MASK: &str = "********";

/// Bytes of the shortest value that is masked: shorter ones would blot out ordinary text.
pub const SHORTEST: usize = 6;

/// Bytes of a value that are looked for at once.
const LONGEST: usize = 4_096;

/// Values that live in the host and are masked in results, prints, events, logs and prompts, also in the ways in which they
/// may be encoded. Clones are the same secrets.
///
/// Not found: a value that was cut, reversed, encrypted, compressed or encoded twice, or Base64 that was broken into lines.
#[derive(Clone, Default)]
pub struct Secrets {
    state: Arc<RwLock<State>>,
}

struct State {
    values: BTreeSet<String>,
    mask: Arc<Mask>,
}

impl Default for State {
    fn default() -> Self {
        let values = BTreeSet::new();
        Self { mask: Arc::new(Mask::new(&values)), values }
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        write!(formatter, "Secrets({})", state.values.len())
    }
}

impl Secrets {
    /// Secrets of these values; those of fewer than [`SHORTEST`] bytes are left out.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let secrets = Self::default();
        secrets.add(values);
        secrets
    }

    /// Masks these values too, from now on. Those that are known cost nothing.
    pub fn add(&self, values: impl IntoIterator<Item = String>) {
        let long = values.into_iter().filter(|value| value.trim().len() >= SHORTEST);
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let before = state.values.len();
        state.values.extend(long);
        if state.values.len() > before {
            state.mask = Arc::new(Mask::new(&state.values));
        }
    }

    /// `text` with every secret replaced.
    pub fn mask(&self, text: &str) -> String {
        self.current().masked(text).unwrap_or_else(|| text.to_owned())
    }

    /// True if a secret stands in `text`.
    pub fn finds(&self, text: &str) -> bool {
        self.current().finds(text)
    }

    /// Replaces every secret in the strings, keys and numbers of `value`.
    pub fn mask_value(&self, value: &mut Value) {
        let mask = self.current();
        if !mask.is_empty() {
            mask.mask_value(value);
        }
    }

    fn current(&self) -> Arc<Mask> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner).mask)
    }
}
