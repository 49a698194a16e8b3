//! A quota for scratch folders that are no mounts of their own: the host looks at what is there, again and again, and lets
//! no file grow while it is too much. It is no wall: what is written between two looks comes on top.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::jail::SCRATCH_INODES;
use super::process::Process;
use super::spawn::Zygote;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// The scratch folder of a child, where it has no quota by itself.
#[derive(Debug)]
pub(super) struct Scratch {
    pub folder: PathBuf,
    /// The child's number, and who holds it to its limits.
    pub round: u64,
    pub zygote: Arc<Zygote>,
}

/// A look at a folder every [`LOOK`], until this is dropped.
#[derive(Debug)]
pub(super) struct Watch {
    exceeded: CancellationToken,
    #[expect(dead_code, reason = "holding it is its use")]
    task: Option<AbortOnDropHandle<()>>,
}

impl Watch {
    /// Holds the folder to `mib` MiB and [`SCRATCH_INODES`] files and folders. Without one, there is nothing to hold.
    pub fn start(scratch: Option<Scratch>, process: Process, mib: u64) -> Self {
        let exceeded = CancellationToken::new();
        let task = scratch.map(|scratch| {
            AbortOnDropHandle::new(tokio::spawn(watch(
                scratch,
                process,
                mib.saturating_mul(1024 * 1024),
                exceeded.clone(),
            )))
        });
        Self { exceeded, task }
    }

    /// Waits until there is more than any file's growth can be held back for: too many files, or a folder that hides them.
    pub async fn exceeded(&self) {
        self.exceeded.cancelled().await;
    }
}

async fn watch(scratch: Scratch, process: Process, limit: u64, exceeded: CancellationToken) {
    // What was there when files were held, if they are.
    let mut held: Option<u64> = None;
    loop {
        sleep(LOOK).await;
        let (folder, process) = (scratch.folder.clone(), process.clone());
        let measured = spawn_blocking(move || measure(&folder).map(|bytes| bytes + unnamed(&process))).await;
        let bytes = match measured {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(Hidden)) => {
                let _ = scratch.zygote.let_files_grow(scratch.round, false).await;
                return exceeded.cancel();
            }
            Err(_) => return,
        };
        let result = match held {
            None if bytes > limit => {
                held = Some(bytes);
                scratch.zygote.let_files_grow(scratch.round, false).await
            }
            Some(_) if bytes <= limit => {
                held = None;
                scratch.zygote.let_files_grow(scratch.round, true).await
            }
            // A write that was under way may end after the first look.
            Some(before) if bytes > before.saturating_add(limit) => return exceeded.cancel(),
            _ => Ok(()),
        };
        if result.is_err() {
            return exceeded.cancel();
        }
    }
}

/// There is more than is looked at, or something that cannot be looked at.
#[derive(Debug, PartialEq, Eq)]
struct Hidden;

/// Bytes on the disk of all that has a name. The program may change it meanwhile; it can make no links, so that no path leads
/// out of the folder.
fn measure(folder: &Path) -> Result<u64, Hidden> {
    let (mut bytes, mut seen) = (0_u64, 0_u64);
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Some(entries) = there(fs::read_dir(&folder))? else { continue };
        for entry in entries {
            let Some(entry) = there(entry)? else { continue };
            let Some(about) = there(entry.metadata())? else { continue };
            seen += 1;
            if seen > SCRATCH_INODES {
                return Err(Hidden);
            }
            bytes = bytes.saturating_add(about.blocks().saturating_mul(512));
            if about.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    Ok(bytes)
}

/// What was removed meanwhile is nothing; what cannot be looked at is hidden: a folder without rights, a path too long.
fn there<T>(found: io::Result<T>) -> Result<Option<T>, Hidden> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(_) => Err(Hidden),
    }
}

/// Bytes of files that are open and have no name any more. Only root may ask; for others they are as many as a process may
/// have open, each as large as the limit.
fn unnamed(process: &Process) -> u64 {
    let Some(pid) = process.pid() else { return 0 };
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let files = descriptors.filter_map(|entry| fs::metadata(entry.path()).ok());
    files.filter(|about| about.is_file() && about.nlink() == 0).map(|about| about.blocks().saturating_mul(512)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_name_is_measured_and_holes_are_not() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(measure(folder.path()), Ok(0));
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::write(folder.path().join("a/b"), vec![1; 100_000]).unwrap();
        fs::File::create(folder.path().join("hole")).unwrap().set_len(1 << 30).unwrap();
        let bytes = measure(folder.path()).unwrap();
        assert!((100_000..1_000_000).contains(&bytes), "{bytes}");
        assert_eq!(measure(&folder.path().join("gone")), Ok(0));
    }

    #[test]
    fn too_many_files_and_too_long_paths_are_more_than_is_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..=SCRATCH_INODES {
            fs::write(folder.path().join(number.to_string()), "").unwrap();
        }
        assert_eq!(measure(folder.path()), Err(Hidden));

        let folder = tempfile::tempdir().unwrap();
        let mut inner = folder.path().to_owned();
        while inner.as_os_str().len() < 3_800 {
            inner.push("d".repeat(200));
        }
        fs::create_dir_all(&inner).unwrap();
        assert!(measure(folder.path()).is_ok());
        // Past what a path may have: by its place, not its name.
        let place = fs::File::open(&inner).unwrap();
        nix::sys::stat::mkdirat(&place, "e".repeat(255).as_str(), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let deeper = nix::fcntl::openat(
            &place,
            "e".repeat(255).as_str(),
            nix::fcntl::OFlag::O_DIRECTORY,
            nix::sys::stat::Mode::empty(),
        )
        .unwrap();
        nix::sys::stat::mkdirat(&deeper, "f".repeat(255).as_str(), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(measure(folder.path()), Err(Hidden));
        nix::unistd::unlinkat(&deeper, "f".repeat(255).as_str(), nix::unistd::UnlinkatFlags::RemoveDir).unwrap();
    }
}
