//! The child's end of the socket, where Python would be too slow.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use pyo3::prelude::*;

/// True once a read of `descriptor` would not block, false after `microseconds`. It does not sleep, nor let other threads
/// run.
#[pyfunction]
pub(super) fn comes(descriptor: i32, microseconds: u64) -> bool {
    let begun = Instant::now();
    // SAFETY: a number of a descriptor that is not open is an answer of `poll`.
    let socket = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let mut polled = [PollFd::new(socket, PollFlags::POLLIN)];
    while begun.elapsed() < Duration::from_micros(microseconds) {
        if poll(&mut polled, PollTimeout::ZERO).is_ok_and(|ready| ready > 0) {
            return true;
        }
        std::hint::spin_loop();
    }
    false
}
