//! What this process has to clear up behind its zygotes, on threads of their own: it is left lying if the process ends
//! before them.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Zygotes that are not cleared up behind.
static LEFT: Mutex<usize> = Mutex::new(0);
static CLEARED: Condvar = Condvar::new();

/// A zygote from its start until nothing is left of it, which is when this is dropped.
#[derive(Debug)]
pub(super) struct Kept(());

impl Kept {
    pub fn begin() -> Self {
        *left() += 1;
        Self(())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        *left() -= 1;
        CLEARED.notify_all();
    }
}

fn left() -> MutexGuard<'static, usize> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until every [`Interpreter`](super::Interpreter) of this process that was dropped has left nothing behind, neither
/// processes nor control groups nor scratch folders, but at most `longest`. Answers whether that is so; it is false as long as
/// one is still in use. It blocks the thread, for some 10 ms as a rule: call it last, outside of any async runtime. Dropping an
/// interpreter does not wait, and what a process left that ended at once is removed by the next one.
pub fn leave(longest: Duration) -> bool {
    let waited = CLEARED.wait_timeout_while(left(), longest, |left| *left > 0);
    *waited.unwrap_or_else(PoisonError::into_inner).0 == 0
}
