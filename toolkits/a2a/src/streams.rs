//! The streams of tasks that somebody looks at from time to time. Who looks reads on where the last one stopped.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::answer::Answer;
use crate::client::Results;

/// Streams that are kept; the oldest is closed for one more. Its task can be asked for all the same.
const MOST: usize = 16;

/// What an agent told of a task so far, and where it tells the rest.
pub(crate) struct Stream {
    pub(crate) results: Results,
    pub(crate) answer: Answer,
}

/// The open streams, by the task's id.
#[derive(Default)]
pub(crate) struct Streams(Mutex<Vec<(String, Stream)>>);

impl Streams {
    pub(crate) fn keep(&self, task: &str, stream: Stream) {
        let mut open = self.lock();
        if open.len() >= MOST {
            open.remove(0);
        }
        open.push((task.to_owned(), stream));
    }

    pub(crate) fn take(&self, task: &str) -> Option<Stream> {
        let mut open = self.lock();
        let place = open.iter().position(|(known, _)| known == task)?;
        Some(open.remove(place).1)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(String, Stream)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
