//! The life of a forked child: it closes the jail behind itself, runs CPython's half of one round and ends. Nothing
//! untrusted is read before the jail is closed.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use super::control::Bounds;
use super::jail::ChildFilter;
use super::{frame, jail, python};

/// What a child adds to the zygote's layers.
#[derive(Debug)]
pub(super) struct Confinement {
    /// The version of Landlock to use.
    pub landlock: Option<u32>,
    /// None where programs are trusted.
    pub filter: Option<ChildFilter>,
    /// No process outside of this zygote counts as this user's.
    pub own_user: bool,
}

/// The descriptor of the round's socket in every child.
const SOCKET: RawFd = 3;

/// Closes the jail and runs. Never returns to the zygote's code.
pub(super) fn live(
    confinement: &Confinement,
    readable: &[PathBuf],
    scratch: &Path,
    bounds: &Bounds,
    socket: &OwnedFd,
) -> ! {
    let code = match take_descriptors(socket).and_then(|()| close(confinement, readable, scratch, bounds)) {
        Ok(()) => python::run(SOCKET),
        Err(reason) => {
            say_unjailed(&reason);
            1
        }
    };
    // SAFETY: the process ends here, without running anything that a program may have left behind.
    unsafe { libc::_exit(code) }
}

/// Keeps the round's socket and nothing else of the zygote's.
fn take_descriptors(socket: &OwnedFd) -> Result<(), String> {
    // SAFETY: plain descriptor calls; this process never uses the zygote's descriptors again.
    let failed = unsafe {
        let socket = libc::fcntl(socket.as_raw_fd(), libc::F_DUPFD, 16);
        socket < 0
            || libc::dup2(0, 1) < 0
            || libc::dup2(0, 2) < 0
            || libc::dup2(socket, SOCKET) < 0
            || libc::close_range(SOCKET as libc::c_uint + 1, libc::c_uint::MAX, 0) < 0
    };
    if failed { Err(format!("descriptors: {}", io::Error::last_os_error())) } else { Ok(()) }
}

fn close(confinement: &Confinement, readable: &[PathBuf], scratch: &Path, bounds: &Bounds) -> Result<(), String> {
    std::env::set_current_dir(scratch).map_err(|error| format!("scratch: {error}"))?;
    jail::die_with_parent().map_err(|missing| missing.reason)?;
    jail::forbid_inspection().map_err(|missing| missing.reason)?;
    jail::limit_resources(bounds, confinement.own_user).map_err(|error| format!("limits: {error}"))?;
    let Some(filter) = &confinement.filter else { return Ok(()) };
    jail::drop_capabilities().map_err(|error| format!("capabilities: {error}"))?;
    if let Some(version) = confinement.landlock {
        jail::confine_files(version, readable, scratch).map_err(|error| format!("landlock: {error}"))?;
    }
    filter.install().map_err(|error| format!("seccomp: {error}"))
}

/// Tells the host that the jail could not be closed.
fn say_unjailed(reason: &str) {
    let body = serde_json::json!({ "reason": reason }).to_string();
    let mut bytes = Vec::from((body.len() as u32).to_le_bytes());
    bytes.push(frame::UNJAILED);
    bytes.extend(body.as_bytes());
    // SAFETY: the buffer lives until the call returns. A short write leaves the host with a child that ended early.
    unsafe { libc::write(SOCKET, bytes.as_ptr().cast(), bytes.len()) };
}
