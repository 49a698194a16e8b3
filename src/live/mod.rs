//! Who runs what on this machine: each process that runs rounds listens on a socket of its own in a folder of the user's,
//! and `fimble ps` and `fimble kill` ask them all. One JSON line there, one back, and the connection ends.
//!
//! It does not know what a round is for; `gate` keeps what is told here.

mod ask;
mod listen;

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use ask::{Found, kill, rounds};
pub use listen::{Listener, listen};

use crate::gate::RoundView;

/// How a socket's name ends.
const ENDING: &str = ".sock";

/// How long either side waits for the other's line.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a killed round may take to end. Its process may have much memory to free.
const KILLED_WITHIN: Duration = Duration::from_secs(15);

/// What can be asked.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
enum Request {
    /// The rounds that run.
    Rounds,
    /// Ends a round.
    Kill { session: String, round: u64 },
}

/// What is answered.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
enum Answer {
    Rounds {
        rounds: Vec<RoundView>,
    },
    /// `found` is false if the round had ended before.
    Killed {
        found: bool,
    },
    /// The request was not understood, or could not be done.
    Refused {
        reason: String,
    },
}

/// The folder of the sockets below `folder`, made if it is not there.
///
/// # Errors
/// It is somebody else's, or others may enter it.
fn open_folder(folder: &Path) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW).open(folder)?;
    let about = opened.metadata()?;
    if about.uid() != nix::unistd::geteuid().as_raw() || about.permissions().mode() & 0o077 != 0 {
        let reason = format!("{} must be yours, and nobody else may enter it", folder.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    Ok(opened)
}

/// A way to a file of an open folder that is short enough for a socket's address, which has 108 bytes.
fn within(folder: &File, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()))
}

/// How the names of this machine's sockets begin: a home may be shared by several machines, and a socket of another one
/// looks as if nobody listened.
fn machine() -> String {
    let name = nix::unistd::gethostname().unwrap_or_default();
    Sha256::digest(name.as_encoded_bytes()).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}
