//! Which files a child may touch, whatever is mounted: the standard library for reading, its own scratch folder.

use std::path::{Path, PathBuf};

use ::landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};

use super::Missing;

/// The first version that also holds signals and abstract sockets back.
const WITH_SCOPES: u32 = 6;
/// The first version that holds truncation back: without it there is no protection of what was there before.
const LEAST: u32 = 3;

/// The kernel's version of Landlock, if it is enough. `complete` asks for all that this file uses.
pub(crate) fn landlock_version(complete: bool) -> Result<u32, Missing> {
    // SAFETY: with this flag the call takes no attributes and only answers a number.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, 1_u32) };
    let version = u32::try_from(version).map_err(|_| {
        Missing::new(
            "landlock",
            std::io::Error::last_os_error(),
            "enable Landlock in the kernel (`lsm=landlock,…` on its command line), or set `interpreter.isolation = \"none\"` \
             for programs that you trust",
        )
    })?;
    if complete && version < WITH_SCOPES {
        return Err(Missing::new(
            "landlock",
            format!("the kernel has version {version}, version {WITH_SCOPES} is needed"),
            "use Linux 6.12 or later, or set `interpreter.isolation = \"reduced\"`",
        ));
    }
    if version < LEAST {
        return Err(Missing::new(
            "landlock",
            format!("the kernel has version {version}, version {LEAST} is needed"),
            "use Linux 6.2 or later",
        ));
    }
    Ok(version)
}

/// Confines this process for good.
pub(crate) fn confine_files(version: u32, readable: &[PathBuf], scratch: &Path) -> Result<(), String> {
    let abi = match version {
        0..=2 => return Err(format!("Landlock has only version {version}")),
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        _ => ABI::V6,
    };
    confine(abi, readable, scratch).map_err(|error| error.to_string()).and_then(|status| match status {
        RulesetStatus::FullyEnforced => Ok(()),
        other => Err(format!("Landlock is {other:?}")),
    })
}

fn confine(abi: ABI, readable: &[PathBuf], scratch: &Path) -> Result<RulesetStatus, Box<dyn std::error::Error>> {
    let mut rules =
        Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(AccessFs::from_all(abi))?;
    if abi >= ABI::V4 {
        rules = rules.handle_access(AccessNet::from_all(abi))?;
    }
    if abi >= ABI::V6 {
        rules = rules.scope(Scope::AbstractUnixSocket | Scope::Signal)?;
    }
    let read: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::ReadDir;
    let write = read
        | AccessFs::WriteFile
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir
        | AccessFs::Truncate
        // Without it, a file cannot be renamed into another folder of the scratch.
        | AccessFs::Refer;
    let mut rules = rules.create()?;
    for folder in readable {
        rules = rules.add_rule(PathBeneath::new(PathFd::new(folder)?, read))?;
    }
    let rules = rules.add_rule(PathBeneath::new(PathFd::new(scratch)?, write))?;
    Ok(rules.restrict_self()?.ruleset)
}
