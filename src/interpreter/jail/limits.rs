//! What the kernel counts for a process, and the signals that must not end it by default.

use std::io;

use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigHandler, Signal, signal};

use super::super::control::Bounds;
use super::Missing;

const MIB: u64 = 1024 * 1024;

/// Seconds between the CPU limit's signal, which the program may answer, and the kernel's kill.
const CPU_GRACE_S: u64 = 1;

/// Threads of all children of a zygote together, or without namespaces of all zygotes: the kernel counts them per user and
/// user namespace. What is above it still runs; only new ones are refused, and to children alone.
const THREADS: u64 = 512;

/// Files that a program may have open.
pub(crate) const OPEN_FILES: u64 = 64;

/// Holds this process to its bounds for good. `own_user` says that nobody else's processes count as its own.
pub(crate) fn limit_resources(bounds: &Bounds, own_user: bool) -> nix::Result<()> {
    let memory = bounds.memory_mib.saturating_mul(MIB);
    // Address space is only a backstop: thread stacks and arenas reserve far more than they use.
    let space = memory.saturating_mul(2).saturating_add(256 * MIB);
    let same = [
        (Resource::RLIMIT_DATA, memory),
        (Resource::RLIMIT_AS, space),
        (Resource::RLIMIT_FSIZE, bounds.scratch_mib.saturating_mul(MIB)),
        (Resource::RLIMIT_NOFILE, OPEN_FILES),
        (Resource::RLIMIT_STACK, 8 * MIB),
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_MEMLOCK, 0),
        (Resource::RLIMIT_MSGQUEUE, 0),
        (Resource::RLIMIT_SIGPENDING, 128),
        (Resource::RLIMIT_RTPRIO, 0),
    ];
    for (resource, value) in same {
        setrlimit(resource, value, value)?;
    }
    if own_user {
        setrlimit(Resource::RLIMIT_NPROC, THREADS, THREADS)?;
    }
    setrlimit(Resource::RLIMIT_CPU, bounds.cpu_s, bounds.cpu_s.saturating_add(CPU_GRACE_S))
}

/// Lets the files of a child, which is not reaped yet, grow up to their limit again, or no more.
pub(crate) fn let_files_grow(child: libc::pid_t, grows: bool) -> io::Result<()> {
    let mut bound = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both pointers are to live values; the process is our child, so the number is its own.
    unsafe {
        if libc::prlimit(child, libc::RLIMIT_FSIZE, std::ptr::null(), &raw mut bound) < 0 {
            return Err(io::Error::last_os_error());
        }
        bound.rlim_cur = if grows { bound.rlim_max } else { 0 };
        if libc::prlimit(child, libc::RLIMIT_FSIZE, &raw const bound, std::ptr::null_mut()) < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// A closed socket and a full file are errors of the call, not deadly signals.
pub(crate) fn ignore_deadly_signals() -> Result<(), Missing> {
    for name in [Signal::SIGPIPE, Signal::SIGXFSZ] {
        // SAFETY: no handler is installed.
        unsafe { signal(name, SigHandler::SigIgn) }
            .map_err(|error| Missing::new("limits", error, "run `fimble doctor`"))?;
    }
    Ok(())
}
