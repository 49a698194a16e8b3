//! What host and zygote say to each other: one JSON datagram a message, with at most one descriptor. Both ends are ours;
//! no child ever holds this socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, UnixAddr, recvmsg, sendmsg};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::config::Level;

/// The most bytes of one message.
const MESSAGE_BYTES: usize = 64 * 1024;

/// Host to zygote.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Command {
    /// The first message.
    Start(Start),
    /// Fork a child; the attached descriptor is its end of the round's socket.
    Fork {
        /// Unique within the zygote.
        round: u64,
        /// What the kernel holds the child to.
        bounds: Bounds,
    },
    /// Lets the files of a child grow up to their limit, or not at all. Nothing happens if it has ended.
    Grow { round: u64, grows: bool },
}

/// How the zygote locks itself in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Start {
    /// Which layers must be there.
    pub level: Level,
    /// The user id to drop to when root.
    pub uid: u32,
    /// The prefix of the CPython to use.
    pub python_home: Option<PathBuf>,
    /// The prepared folder of packages, if there are any.
    pub packages: Option<PathBuf>,
    /// Where scratch folders are made when they cannot be mounted.
    pub scratch_folder: PathBuf,
    /// See [`Config::spares_deadly_calls`](super::Config::spares_deadly_calls).
    pub spares_deadly_calls: bool,
}

/// What the kernel holds a child to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Bounds {
    pub memory_mib: u64,
    pub cpu_s: u64,
    pub scratch_mib: u64,
}

/// Zygote to host.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Report {
    /// In its own process namespace, it is the child of the started process and has this process id outside.
    Inside { pid: u32 },
    /// It is locked in.
    Ready {
        /// The active layers.
        layers: Vec<String>,
    },
    /// It has imported what programs use. Children from before are whole, and slower.
    Warm {
        /// What of it failed.
        problem: Option<String>,
    },
    /// It cannot start. `layer` is `None` if no layer of the jail is at fault.
    Refused { layer: Option<String>, reason: String, hint: String },
    /// A child runs; its pidfd is attached.
    Forked { round: u64 },
    /// No child was made.
    NotForked { round: u64, reason: String },
    /// A child ended and was reaped.
    Ended { round: u64, exit: Exit },
}

/// How a child's process ended and what it used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Exit {
    /// The exit code, if it exited.
    pub code: Option<i32>,
    /// The signal, if one ended it.
    pub signal: Option<i32>,
    pub cpu_us: u64,
    pub peak_rss_kib: u64,
}

/// Sends one message. A non-blocking socket may answer [`io::ErrorKind::WouldBlock`]; nothing is sent then.
pub(super) fn send(
    socket: BorrowedFd<'_>,
    message: &impl Serialize,
    attached: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    let descriptors: Vec<RawFd> = attached.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&descriptors)];
    let rights: &[ControlMessage<'_>] = if descriptors.is_empty() { &[] } else { &rights };
    sendmsg::<UnixAddr>(socket.as_raw_fd(), &[IoSlice::new(&body)], rights, MsgFlags::MSG_NOSIGNAL, None)?;
    Ok(())
}

/// Receives one message with its descriptor; `None` when the other end is gone.
pub(super) fn receive<T: DeserializeOwned>(socket: BorrowedFd<'_>) -> io::Result<Option<(T, Option<OwnedFd>)>> {
    let mut body = vec![0; MESSAGE_BYTES];
    let mut space = nix::cmsg_space!([RawFd; 1]);
    let (length, attached) = {
        let mut slices = [IoSliceMut::new(&mut body)];
        let received = loop {
            match recvmsg::<UnixAddr>(socket.as_raw_fd(), &mut slices, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC) {
                Err(Errno::EINTR) => {}
                result => break result?,
            }
        };
        let mut attached = None;
        for message in received.cmsgs()? {
            if let ControlMessageOwned::ScmRights(descriptors) = message {
                for descriptor in descriptors {
                    // SAFETY: the kernel has just made this descriptor for us, and nothing else knows it.
                    attached = Some(unsafe { OwnedFd::from_raw_fd(descriptor) });
                }
            }
        }
        (received.bytes, attached)
    };
    if length == 0 {
        return Ok(None);
    }
    let message = serde_json::from_slice(body.get(..length).unwrap_or_default())?;
    Ok(Some((message, attached)))
}
