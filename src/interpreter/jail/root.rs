//! What of the file system there is: a read-only root with the standard library and a scratch folder a round. No `/proc`,
//! no `/sys`, no `/dev`.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::{chdir, pivot_root};

use super::Missing;

const HINT: &str = "allow mounts in user namespaces (an AppArmor or SELinux profile of the container may forbid them), \
     or set `interpreter.isolation = \"reduced\"`";

/// Files and folders of one round's scratch.
const SCRATCH_INODES: u64 = 4_096;

/// Where rounds have their scratch inside the new root.
const SCRATCH: &str = "/scratch";

/// The folders a program can reach.
#[derive(Debug)]
pub(crate) struct Folders {
    /// Readable, at the same place as outside.
    pub readable: Vec<PathBuf>,
    /// The folder of all rounds' scratch folders.
    pub scratch: PathBuf,
    /// Whether scratch folders are mounts of their own, with a quota.
    pub mounted: bool,
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
    mount(Some("scratch"), "scratch", Some("tmpfs"), flags, Some("size=64k,nr_inodes=16k,mode=711"))
        .map_err(|error| missing("mounting the scratch folder", &error))?;
    pivot_root(".", ".").map_err(|error| missing("changing the root", &error))?;
    // The old root now lies over the new one at the same place; without it, nothing of the machine can be named.
    umount2(".", MntFlags::MNT_DETACH).map_err(|error| missing("leaving the old root", &error))?;
    chdir("/").map_err(|error| missing("entering the root", &error))?;
    let read_only = flags | MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
    mount(None::<&str>, "/", None::<&str>, read_only, None::<&str>)
        .map_err(|error| missing("making the root read-only", &error))?;
    Ok(Folders { readable, scratch: PathBuf::from(SCRATCH), mounted: true })
}

/// One round's scratch folder.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// Where it is.
    pub path: PathBuf,
    mounted: bool,
}

impl Scratch {
    /// Makes an empty folder, with a quota where it can be mounted.
    pub(crate) fn make(folders: &Folders, round: u64, mib: u64) -> io::Result<Self> {
        let path = folders.scratch.join(round.to_string());
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        if folders.mounted {
            let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
            let options = format!("size={mib}m,nr_inodes={SCRATCH_INODES},mode=700");
            mount(Some("scratch"), &path, Some("tmpfs"), flags, Some(options.as_str()))?;
        }
        Ok(Self { path, mounted: folders.mounted })
    }

    /// Removes it with all that is in it.
    pub(crate) fn remove(self) -> io::Result<()> {
        if self.mounted {
            umount2(&self.path, MntFlags::MNT_DETACH)?;
            return fs::remove_dir(&self.path);
        }
        sweep(&self.path)
    }
}

/// Removes a folder whose content a program made, however deep it is: folders are moved up and emptied one by one, where
/// recursion would run out of stack or descriptors.
pub(crate) fn sweep(folder: &Path) -> io::Result<()> {
    let mut moved = 0_u64;
    loop {
        let mut inner = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                inner.push(entry.path());
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        if inner.is_empty() {
            return fs::remove_dir(folder);
        }
        for path in inner {
            // A program may have taken its own rights away.
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
            for entry in fs::read_dir(&path)? {
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
