//! What of the file system there is: a read-only root with the standard library and a scratch folder a round. No `/proc`,
//! no `/sys`, no `/dev`.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{chdir, pivot_root};

use super::Missing;

const HINT: &str = "allow mounts in user namespaces (an AppArmor or SELinux profile of the container may forbid them), \
     or set `interpreter.isolation = \"reduced\"`";

/// Files and folders of one round's scratch.
pub(crate) const SCRATCH_INODES: u64 = 4_096;

/// Where every round has its scratch inside the new root.
const SCRATCH: &str = "/scratch";

/// Asks a pidfd for the mount namespace of its process: `_IO(0xFF, 3)` of `linux/pidfd.h`, since Linux 6.11.
pub(super) const PIDFD_GET_MNT_NAMESPACE: libc::c_ulong = 0xFF03;

/// The folders a program can reach.
#[derive(Debug)]
pub(crate) struct Folders {
    /// Readable, at the same place as outside.
    pub readable: Vec<PathBuf>,
    /// With mounts, where each round sees its own scratch folder; else the folder of all of them.
    pub scratch: PathBuf,
    /// Whether scratch folders are mounts of their own, with a quota, in namespaces of their own.
    pub mounted: Option<Mounts>,
    /// Held as long as `scratch` is in use, so that nobody takes it for left behind.
    #[expect(dead_code, reason = "holding it is its use")]
    pub in_use: Option<Flock<fs::File>>,
}

/// The zygote's hand on mount namespaces: its own one, and itself to ask for the one that it is in.
#[derive(Debug)]
pub(crate) struct Mounts {
    home: OwnedFd,
    this: OwnedFd,
}

/// Makes a root of only the readable folders and moves into it. Needs namespaces.
pub(crate) fn change_root(readable: Vec<PathBuf>) -> Result<Folders, Missing> {
    let missing = |what: &str, error: &dyn std::fmt::Display| Missing::new("root", format!("{what}: {error}"), HINT);
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
        .map_err(|error| missing("making mounts private", &error))?;
    let mut trees = Vec::new();
    for folder in &readable {
        trees.push(copy_tree(folder).map_err(|error| missing(&format!("copying {}", folder.display()), &error))?);
    }
    // The copies are taken, so any folder will do to hang the new root on; this one exists for certain.
    let stage = readable.first().ok_or_else(|| missing("root", &"no standard library"))?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("root"), stage, Some("tmpfs"), flags, Some("size=256k,nr_inodes=256,mode=755"))
        .map_err(|error| missing("mounting the root", &error))?;
    chdir(stage).map_err(|error| missing("entering the root", &error))?;
    for (folder, tree) in readable.iter().zip(&trees) {
        let inside = folder.strip_prefix("/").unwrap_or(folder);
        fs::create_dir_all(inside).map_err(|error| missing("making folders", &error))?;
        attach_tree(tree, inside).map_err(|error| missing(&format!("mounting {}", folder.display()), &error))?;
    }
    fs::create_dir("scratch").map_err(|error| missing("making the scratch folder", &error))?;
    pivot_root(".", ".").map_err(|error| missing("changing the root", &error))?;
    // The old root now lies over the new one at the same place; without it, nothing of the machine can be named.
    umount2(".", MntFlags::MNT_DETACH).map_err(|error| missing("leaving the old root", &error))?;
    chdir("/").map_err(|error| missing("entering the root", &error))?;
    let read_only = flags | MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
    mount(None::<&str>, "/", None::<&str>, read_only, None::<&str>)
        .map_err(|error| missing("making the root read-only", &error))?;
    let mounts = Mounts::here().map_err(|error| missing("asking for the mount namespace", &error))?;
    Ok(Folders { readable, scratch: PathBuf::from(SCRATCH), mounted: Some(mounts), in_use: None })
}

impl Folders {
    /// Makes a folder of this process's own below `parent`, and removes what killed zygotes left there. `parent` may be
    /// everybody's, e.g. `/tmp`, and shared with zygotes that this one cannot see.
    pub(crate) fn unmounted(readable: Vec<PathBuf>, parent: &Path) -> io::Result<Self> {
        for entry in fs::read_dir(parent)?.flatten() {
            if entry.file_name().to_str().is_some_and(is_own_name) {
                // What cannot be locked or removed is in use, or another user's.
                let _ = lock(&entry.path(), FlockArg::LockExclusiveNonblock).and_then(|_held| sweep(&entry.path()));
            }
        }
        let scratch = parent.join(format!("{OWN_NAME}{}", std::process::id()));
        loop {
            fs::DirBuilder::new().mode(0o700).create(&scratch)?;
            let held = lock(&scratch, FlockArg::LockExclusive)?;
            // Another zygote may have swept it before it was locked.
            if held.metadata()?.nlink() > 0 {
                return Ok(Self { readable, scratch, mounted: None, in_use: Some(held) });
            }
        }
    }
}

/// Removes what a zygote with that process id left in `parent`, where its scratch folders were not mounted. Only once none of
/// its programs lives: one could lead this process elsewhere while it removes.
pub(crate) fn sweep_left(parent: &Path, pid: u32) -> io::Result<()> {
    sweep(&parent.join(format!("{OWN_NAME}{pid}")))
}

/// The scratch folder of a round of the zygote with that process id, where it is not mounted.
pub(crate) fn scratch_of(parent: &Path, pid: u32, round: u64) -> PathBuf {
    parent.join(format!("{OWN_NAME}{pid}")).join(round.to_string())
}

/// Followed by a process id.
const OWN_NAME: &str = "fimble-";

fn is_own_name(name: &str) -> bool {
    name.strip_prefix(OWN_NAME).is_some_and(|id| id.parse::<u32>().is_ok())
}

/// Locks a folder of this user.
fn lock(folder: &Path, how: FlockArg) -> io::Result<Flock<fs::File>> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let opened = fs::File::options().read(true).custom_flags(flags).open(folder)?;
    if opened.metadata()?.uid() != nix::unistd::geteuid().as_raw() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Flock::lock(opened, how).map_err(|(_, error)| error.into())
}

impl Mounts {
    fn here() -> io::Result<Self> {
        // SAFETY: the number is this process's own, and the new descriptor is nobody else's.
        let this = unsafe {
            let this = check(libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0))?;
            OwnedFd::from_raw_fd(RawFd::try_from(this).map_err(io::Error::other)?)
        };
        Ok(Self { home: namespace_of(&this)?, this })
    }

    /// Moves this process into a new mount namespace with an empty scratch of `mib` MiB.
    fn enter_scratch(&self, mib: u64) -> io::Result<OwnedFd> {
        unshare(CloneFlags::CLONE_NEWNS)?;
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        let options = format!("size={mib}m,nr_inodes={SCRATCH_INODES},mode=700");
        mount(Some("scratch"), SCRATCH, Some("tmpfs"), flags, Some(options.as_str()))?;
        namespace_of(&self.this)
    }
}

/// The mount namespace of a process.
fn namespace_of(process: &OwnedFd) -> io::Result<OwnedFd> {
    // SAFETY: the call takes no pointer, and the new descriptor is nobody else's.
    unsafe {
        let namespace = libc::ioctl(process.as_raw_fd(), PIDFD_GET_MNT_NAMESPACE, 0);
        check(namespace.into())?;
        Ok(OwnedFd::from_raw_fd(namespace))
    }
}

/// One round's scratch folder.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// Where it is.
    pub path: PathBuf,
    /// Where it is mounted, and nowhere else: no other round can name it. The mounts go with the last that holds this; when
    /// it is the zygote, the end of a round does not wait for that.
    namespace: Option<OwnedFd>,
}

impl Scratch {
    /// Makes an empty folder, with a quota where it can be mounted. Then this process is where the folder can be seen, until
    /// [`leave`](Self::leave).
    pub(crate) fn make(folders: &Folders, round: u64, mib: u64) -> io::Result<Self> {
        if let Some(mounts) = &folders.mounted {
            let entered = mounts.enter_scratch(mib);
            if entered.is_err() {
                Self::leave(folders)?;
            }
            let namespace = entered?;
            return Ok(Self { path: folders.scratch.clone(), namespace: Some(namespace) });
        }
        let path = folders.scratch.join(round.to_string());
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self { path, namespace: None })
    }

    /// Goes back to where no round's scratch can be seen.
    pub(crate) fn leave(folders: &Folders) -> io::Result<()> {
        match &folders.mounted {
            Some(mounts) => Ok(setns(&mounts.home, CloneFlags::CLONE_NEWNS)?),
            None => Ok(()),
        }
    }

    /// Removes it with all that is in it. What takes long is left to a process, whose id is answered: other rounds wait for
    /// this one.
    pub(crate) fn remove(self) -> io::Result<Option<libc::pid_t>> {
        if self.namespace.is_some() || sweep_some(&self.path, SWEPT_AT_ONCE)? {
            return Ok(None);
        }
        // SAFETY: there is one thread; the child uses no descriptor of its parent, and ends here.
        unsafe {
            match libc::fork() {
                0 => {
                    libc::close_range(3, libc::c_uint::MAX, 0);
                    let _ = sweep(&self.path);
                    libc::_exit(0)
                }
                pid if pid > 0 => Ok(Some(pid)),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }
}

/// Files and folders that are removed without a process of their own.
const SWEPT_AT_ONCE: usize = 200;

/// Removes a folder whose content a program made.
pub(crate) fn sweep(folder: &Path) -> io::Result<()> {
    sweep_some(folder, usize::MAX).map(drop)
}

/// Removes a folder whose content a program made, however deep it is: folders are moved up and emptied one by one, where
/// recursion would run out of stack or descriptors. False if there is more in it than `most`, a part of which is left.
fn sweep_some(folder: &Path, most: usize) -> io::Result<bool> {
    let (mut moved, mut seen) = (0_u64, 0_usize);
    loop {
        let mut inner = Vec::new();
        for entry in fs::read_dir(folder)? {
            seen += 1;
            if seen > most {
                return Ok(false);
            }
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                inner.push(entry.path());
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        if inner.is_empty() {
            return fs::remove_dir(folder).map(|()| true);
        }
        for path in inner {
            // A program may have taken its own rights away.
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
            for entry in fs::read_dir(&path)? {
                seen += 1;
                if seen > most {
                    return Ok(false);
                }
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    fs::set_permissions(entry.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
                    let target = loop {
                        moved = moved.wrapping_add(1);
                        let target = folder.join(format!("swept-{moved}"));
                        if fs::symlink_metadata(&target).is_err() {
                            break target;
                        }
                    };
                    fs::rename(entry.path(), target)?;
                } else {
                    fs::remove_file(entry.path())?;
                }
            }
            fs::remove_dir(&path)?;
        }
    }
}

/// A detached, read-only copy of the mounts at and below a folder.
fn copy_tree(folder: &Path) -> io::Result<OwnedFd> {
    let path = CString::new(folder.as_os_str().as_bytes())?;
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | libc::AT_RECURSIVE as libc::c_uint;
    // SAFETY: the path is a live C string; the call keeps no pointer.
    let tree = unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags) };
    let tree = RawFd::try_from(check(tree)?).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made this descriptor for us, and nothing else knows it.
    let tree = unsafe { OwnedFd::from_raw_fd(tree) };
    let set = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOEXEC;
    let attributes = libc::mount_attr { attr_set: set, attr_clr: 0, propagation: 0, userns_fd: 0 };
    // SAFETY: the attributes live until the call returns and their size is told.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    check(result)?;
    Ok(tree)
}

/// Hangs a detached tree on a folder.
fn attach_tree(tree: &OwnedFd, folder: &Path) -> io::Result<()> {
    let path = CString::new(folder.as_os_str().as_bytes())?;
    // SAFETY: both paths are live C strings; the call keeps no pointer.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::MOVE_MOUNT_F_EMPTY_PATH,
        )
    };
    check(result).map(drop)
}

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
