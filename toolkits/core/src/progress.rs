//! How far a call is, told while it runs. A toolkit whose system says so passes it on; it does not know who looks.

use std::fmt;
use std::sync::Arc;

/// How far a call is, as the system behind the toolkit tells it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    /// How much is done, in a unit of the system's own.
    pub done: Option<f64>,
    /// How much there is to do, in the same unit.
    pub total: Option<f64>,
    /// What is being done, for a person; may be empty.
    pub text: String,
}

/// Somebody who looks how far calls are.
pub trait Watches: Send + Sync {
    /// The call of that key is so far. Returns at once; steps that come faster than anybody reads are passed over.
    fn watch(&self, key: &str, step: Step);
}

/// Where steps are told; by default to nobody.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<dyn Watches>>);

impl Progress {
    /// Steps are told to `watches`.
    pub fn new(watches: Arc<dyn Watches>) -> Self {
        Self(Some(watches))
    }

    /// The call of that key is so far.
    pub fn tell(&self, key: &str, step: Step) {
        if let Some(watches) = &self.0 {
            watches.watch(key, step);
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() { "Watched" } else { "Unwatched" })
    }
}

/// Two are the same if they are told at the same place.
impl PartialEq for Progress {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(another)) => Arc::ptr_eq(one, another),
            (None, None) => true,
            _ => false,
        }
    }
}

impl Eq for Progress {}
