//! The layers that the kernel holds a program with, each in its own file. It does not know Python nor frames.
//!
//! The zygote enters the namespaces, builds the root and takes the long list of system calls; a child adds its limits,
//! Landlock and the short list before its first untrusted byte. No single layer is enough.

mod landlock;
mod limits;
mod namespaces;
mod root;
mod seccomp;

pub(super) use landlock::{confine_files, landlock_version};
pub(super) use limits::{OPEN_FILES, ignore_deadly_signals, let_files_grow, limit_resources};
pub(super) use namespaces::{die_with_parent, drop_capabilities, drop_root, enter_namespaces, forbid_inspection};
pub(super) use root::{Folders, SCRATCH_INODES, Scratch, change_root, scratch_of, sweep, sweep_left};
pub(super) use seccomp::{ChildFilter, filter_zygote};

/// A layer that could not be put in place.
#[derive(Debug)]
pub(super) struct Missing {
    /// Its name, e.g. `namespaces`.
    pub layer: &'static str,
    /// What the system said.
    pub reason: String,
    /// What the user can do.
    pub hint: &'static str,
}

impl Missing {
    fn new(layer: &'static str, reason: impl std::fmt::Display, hint: &'static str) -> Self {
        Self { layer, reason: reason.to_string(), hint }
    }
}
