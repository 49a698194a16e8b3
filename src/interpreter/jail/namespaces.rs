//! Who the process is and what it sees of the machine: user id, capabilities, namespaces.

use std::fs;
use std::io;

use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{Gid, Uid, getegid, geteuid, getppid, setgroups, setresgid, setresuid};

use super::Missing;

const HINT: &str = "allow unprivileged user namespaces (sysctl `user.max_user_namespaces`, \
     `kernel.apparmor_restrict_unprivileged_userns=0`), or set `interpreter.isolation = \"reduced\"`";

/// The kernel kills this process when the thread that started it ends. Must be said again after a change of user.
pub(crate) fn die_with_parent() -> Result<(), Missing> {
    let parent = getppid();
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(|error| Missing::new("limits", error, "run `fimble doctor`"))?;
    if getppid() != parent {
        return Err(Missing::new("limits", "the parent process is gone", "start it again"));
    }
    Ok(())
}

/// Nobody of the same user may trace this process or read its memory.
pub(crate) fn forbid_inspection() -> Result<(), Missing> {
    prctl::set_dumpable(false).map_err(|error| Missing::new("limits", error, "run `fimble doctor`"))
}

/// Becomes `uid` for good if it is root now. True if it did.
pub(crate) fn drop_root(uid: u32) -> Result<bool, Missing> {
    if !geteuid().is_root() {
        return Ok(false);
    }
    let missing = |error| {
        Missing::new(
            "user",
            error,
            "set `interpreter.uid` to an id that exists in this container and belongs to no account",
        )
    };
    if uid == 0 {
        return Err(Missing::new("user", "`interpreter.uid` is root's", "set it to an id that belongs to no account"));
    }
    let (user, group) = (Uid::from_raw(uid), Gid::from_raw(uid));
    setgroups(&[]).map_err(missing)?;
    setresgid(group, group, group).map_err(missing)?;
    setresuid(user, user, user).map_err(missing)?;
    // A change of user makes `/proc/self/uid_map` root's, until the process is dumpable again.
    prctl::set_dumpable(true).map_err(missing)?;
    Ok(true)
}

/// Leaves all namespaces of the machine at once and keeps its own user id. The next fork is pid 1.
pub(crate) fn enter_namespaces() -> Result<(), Missing> {
    let (user, group) = (geteuid(), getegid());
    let all = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    unshare(all).map_err(|error| Missing::new("namespaces", error, HINT))?;
    let map = |file: &str, text: String| {
        fs::write(file, text).map_err(|error| Missing::new("namespaces", format!("{file}: {error}"), HINT))
    };
    map("/proc/self/setgroups", "deny".to_owned())?;
    map("/proc/self/uid_map", format!("{user} {user} 1"))?;
    map("/proc/self/gid_map", format!("{group} {group} 1"))?;
    nix::unistd::sethostname("fimble").map_err(|error| Missing::new("namespaces", error, HINT))
}

/// Gives up every capability, those over its own namespaces included.
pub(crate) fn drop_capabilities() -> io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    // Version 3 of the call has 64 bits in two halves: effective, permitted, inheritable.
    let header = Header { version: 0x2008_0522, pid: 0 };
    let none = [[0_u32; 3]; 2];
    // SAFETY: both pointers are to live values of the layout that version 3 asks for.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
