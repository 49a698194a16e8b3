//! Which system calls there are. The long list is the zygote's and all its children inherit it: what is not on it fails
//! with EPERM, so that a program reads `PermissionError`; calls that only an attack makes kill. The short list takes away
//! from a child what the zygote still needs.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Is, SeccompCondition as Condition,
    SeccompFilter, SeccompRule as Rule, apply_filter,
};

use super::Missing;
use super::root::PIDFD_GET_MNT_NAMESPACE;

type Rules = BTreeMap<i64, Vec<Rule>>;
type Built<T> = Result<T, seccompiler::Error>;

const HINT: &str = "use a kernel with seccomp filters on x86_64 or aarch64, or set `interpreter.isolation = \"none\"` for programs \
     that you trust";

/// Confines this process and all it will fork to the long list. With `spares`, what kills is only refused: the first deadly
/// call of an attack hides those after it, so its tests are run both ways.
pub(crate) fn filter_zygote(spares: bool) -> Result<(), Missing> {
    let install = || -> Built<()> {
        if !spares {
            apply_filter(&build(deadly_calls(), SeccompAction::Allow, SeccompAction::KillProcess)?)?;
        }
        apply_filter(&build(allowed_calls()?, SeccompAction::Errno(libc::EPERM as u32), SeccompAction::Allow)?)?;
        // The last filter wins among errors: these two must look unknown, or glibc does not fall back.
        let unknown = plain(&[libc::SYS_clone3, libc::SYS_openat2]);
        apply_filter(&build(unknown, SeccompAction::Allow, SeccompAction::Errno(libc::ENOSYS as u32))?)
    };
    install().map_err(|error| Missing::new("seccomp", error, HINT))
}

/// What takes away from a child what the zygote's list allows. The last layer: it forbids the calls that make the others.
/// The zygote builds it once, for all of them.
#[derive(Debug)]
pub(crate) struct ChildFilter {
    /// In the order in which they are installed; [`OWN`] stands for the child's process id in the last one.
    programs: Vec<BpfProgram>,
}

/// The place of a process id that is not known yet; no process has so high a one, and no other number of a filter is it.
const OWN: u32 = 0x7fff_ffff;

/// The calls that take it.
const TAKING_OWN: usize = 2;

impl ChildFilter {
    /// `own_root` says that the children see no files but those of their jail.
    pub(crate) fn build(own_root: bool) -> Result<Self, Missing> {
        let programs = || -> Built<Vec<BpfProgram>> {
            let ignored = || build(ignored_in_children()?, SeccompAction::Allow, SeccompAction::Errno(0));
            let denied = SeccompAction::Errno(libc::EPERM as u32);
            let denied = build(denied_to_children(own_root)?, SeccompAction::Allow, denied)?;
            Ok(if own_root { vec![denied] } else { vec![ignored()?, denied] })
        };
        programs().map(|programs| Self { programs }).map_err(|error| Missing::new("seccomp", error, HINT))
    }

    /// Confines this process.
    pub(crate) fn install(&self) -> Result<(), String> {
        let Some((last, others)) = self.programs.split_last() else { return Err("there is no filter".to_owned()) };
        let mut last = last.clone();
        let places = last.iter_mut().filter(|instruction| instruction.k == OWN);
        let filled = places.map(|instruction| instruction.k = std::process::id()).count();
        if filled != TAKING_OWN {
            return Err(format!("{filled} calls take the own process id, not {TAKING_OWN}"));
        }
        others.iter().chain([&last]).try_for_each(|program| apply_filter(program)).map_err(|error| error.to_string())
    }
}

fn build(rules: Rules, otherwise: SeccompAction, matched: SeccompAction) -> Built<BpfProgram> {
    let target = std::env::consts::ARCH.try_into()?;
    Ok(SeccompFilter::new(rules, otherwise, matched, target)?.try_into()?)
}

fn plain(calls: &[i64]) -> Rules {
    calls.iter().map(|&call| (call, Vec::new())).collect()
}

fn when(argument: u8, length: Length, is: Is, value: u64) -> Built<Condition> {
    Ok(Condition::new(argument, length, is, value)?)
}

/// One rule for each value that one argument may have.
fn one_of(argument: u8, values: &[i64]) -> Built<Vec<Rule>> {
    values
        .iter()
        .map(|&value| Ok(Rule::new(vec![when(argument, Length::Dword, Is::Eq, u64::from(value as u32))?])?))
        .collect()
}

/// Calls that no program makes by accident.
fn deadly_calls() -> Rules {
    plain(&[
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_bpf,
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
        libc::SYS_execveat,
        libc::SYS_userfaultfd,
        libc::SYS_perf_event_open,
        libc::SYS_keyctl,
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_delete_module,
        libc::SYS_kexec_load,
        libc::SYS_kexec_file_load,
        libc::SYS_pidfd_getfd,
    ])
}

/// The long list.
fn allowed_calls() -> Built<Rules> {
    let mut rules = plain(FILES);
    rules.extend(plain(PROCESS));
    rules.extend(plain(ZYGOTE));
    #[cfg(target_arch = "x86_64")]
    rules.extend(plain(LEGACY));

    let namespaces = (libc::CLONE_NEWNS
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP) as u32;
    rules.insert(
        libc::SYS_clone,
        vec![Rule::new(vec![when(0, Length::Qword, Is::MaskedEq(u64::from(namespaces)), 0)?])?],
    );
    // No new code, and no shared anonymous memory or second stacks, which RLIMIT_DATA does not count, nor the machine's
    // huge pages.
    let executable = Is::MaskedEq(libc::PROT_EXEC as u64);
    let mut mappings = Vec::new();
    for flag in [libc::MAP_SHARED, libc::MAP_ANONYMOUS] {
        let never = flag | libc::MAP_GROWSDOWN | libc::MAP_HUGETLB;
        mappings.push(Rule::new(vec![
            when(2, Length::Dword, executable.clone(), 0)?,
            when(3, Length::Dword, Is::MaskedEq(never as u64), 0)?,
        ])?);
    }
    rules.insert(libc::SYS_mmap, mappings);
    rules.insert(libc::SYS_mprotect, vec![Rule::new(vec![when(2, Length::Dword, executable, 0)?])?]);
    // A pair for the event loop's wake-up. A pair of datagram sockets could send to any named socket.
    let flags = (libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) as u32;
    rules.insert(
        libc::SYS_socketpair,
        vec![Rule::new(vec![
            when(0, Length::Dword, Is::Eq, libc::AF_UNIX as u64)?,
            when(1, Length::Dword, Is::MaskedEq(u64::from(!flags)), libc::SOCK_STREAM as u64)?,
        ])?],
    );
    rules.insert(libc::SYS_sendto, vec![Rule::new(vec![when(4, Length::Qword, Is::Eq, 0)?])?]);
    // What a socket is, and not who holds its other end.
    let options = [libc::SO_TYPE, libc::SO_ERROR, libc::SO_DOMAIN, libc::SO_PROTOCOL, libc::SO_SNDBUF, libc::SO_RCVBUF];
    rules.insert(libc::SYS_getsockopt, one_of(2, &options.map(i64::from))?);
    // The zygote gives each round mounts of its own.
    for (call, flags) in [(libc::SYS_unshare, 0), (libc::SYS_setns, 1)] {
        rules.insert(call, one_of(flags, &[i64::from(libc::CLONE_NEWNS)])?);
    }
    let fcntl = [
        libc::F_DUPFD,
        libc::F_DUPFD_CLOEXEC,
        libc::F_GETFD,
        libc::F_SETFD,
        libc::F_GETFL,
        libc::F_SETFL,
        libc::F_GETLK,
        libc::F_SETLK,
        libc::F_SETLKW,
    ];
    rules.insert(libc::SYS_fcntl, one_of(1, &fcntl.map(i64::from))?);
    let ioctl = [
        libc::TCGETS,
        libc::TIOCGWINSZ,
        libc::FIONREAD,
        libc::FIONBIO,
        libc::FIOCLEX,
        libc::FIONCLEX,
        PIDFD_GET_MNT_NAMESPACE,
    ];
    rules.insert(libc::SYS_ioctl, one_of(1, &ioctl.map(|value| value as i64))?);
    Ok(rules)
}

/// The short list.
fn denied_to_children(own_root: bool) -> Built<Rules> {
    let mut rules = plain(ZYGOTE);
    if !own_root {
        rules.insert(libc::SYS_utimensat, vec![Rule::new(vec![when(2, Length::Qword, Is::Eq, 0)?])?]);
        #[cfg(target_arch = "x86_64")]
        rules.extend(plain(&[libc::SYS_utime, libc::SYS_utimes]));
    }
    if !own_root {
        // A mapping keeps a file that has no name any more, and no quota counts it.
        let anonymous = libc::MAP_ANONYMOUS as u64;
        rules.insert(libc::SYS_mmap, vec![Rule::new(vec![when(3, Length::Dword, Is::MaskedEq(anonymous), 0)?])?]);
    }
    rules.insert(libc::SYS_ioctl, one_of(1, &[PIDFD_GET_MNT_NAMESPACE as i64])?);
    let not_own = || -> Built<Vec<Rule>> { Ok(vec![Rule::new(vec![when(0, Length::Dword, Is::Ne, OWN.into())?])?]) };
    rules.insert(libc::SYS_kill, not_own()?);
    rules.insert(libc::SYS_tgkill, not_own()?);
    // Threads only.
    let mut processes = Vec::new();
    for flag in [libc::CLONE_THREAD, libc::CLONE_VM] {
        processes.push(Rule::new(vec![when(0, Length::Qword, Is::MaskedEq(flag as u64), 0)?])?);
    }
    rules.insert(libc::SYS_clone, processes);
    rules.insert(
        libc::SYS_prctl,
        vec![Rule::new(vec![
            when(0, Length::Dword, Is::Ne, libc::PR_SET_NAME as u64)?,
            when(0, Length::Dword, Is::Ne, libc::PR_GET_NAME as u64)?,
        ])?],
    );
    // Landlock does not ask when a file is opened only as a place.
    let path = libc::O_PATH as u64;
    let place = |flags: u8| -> Built<Vec<Rule>> {
        Ok(vec![Rule::new(vec![when(flags, Length::Dword, Is::MaskedEq(path), path)?])?])
    };
    rules.insert(libc::SYS_openat, place(2)?);
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_open, place(1)?);
    // Limits can be read, not set.
    rules.insert(libc::SYS_prlimit64, vec![Rule::new(vec![when(2, Length::Qword, Is::Ne, 0)?])?]);
    Ok(rules)
}

/// Modes and times of files. Landlock does not hold these back, so that without a root of its own a program could change
/// them for every file of its user. They do nothing and are no error, as on a file system that has no modes: what copies a
/// file goes on to set them. Times of now are an error, which `touch` takes as a file that is not there yet.
fn ignored_in_children() -> Built<Rules> {
    let mut rules = plain(&[libc::SYS_fchmod, libc::SYS_fchmodat]);
    #[cfg(target_arch = "x86_64")]
    rules.extend(plain(&[libc::SYS_chmod]));
    rules.insert(libc::SYS_utimensat, vec![Rule::new(vec![when(2, Length::Qword, Is::Ne, 0)?])?]);
    Ok(rules)
}

/// What only the zygote and the way into the jail need.
const ZYGOTE: &[i64] = &[
    libc::SYS_mount,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_capset,
    libc::SYS_setrlimit,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_restrict_self,
    libc::SYS_seccomp,
    libc::SYS_prctl,
    libc::SYS_prlimit64,
];

/// Files below what Landlock and the mounts leave. No links, devices, owners, contents of extended
/// attributes.
const FILES: &[i64] = &[
    libc::SYS_openat,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlinkat,
    libc::SYS_getcwd,
    libc::SYS_chdir,
    libc::SYS_fchdir,
    libc::SYS_getdents64,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_truncate,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_flock,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    libc::SYS_utimensat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_umask,
    libc::SYS_sendfile,
    libc::SYS_copy_file_range,
    libc::SYS_fadvise64,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    libc::SYS_flistxattr,
    libc::SYS_shutdown,
    libc::SYS_recvfrom,
    libc::SYS_getsockname,
];

/// Memory, threads, time, signals to itself and questions about itself.
const PROCESS: &[i64] = &[
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_msync,
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_get_robust_list,
    libc::SYS_rseq,
    libc::SYS_set_tid_address,
    libc::SYS_membarrier,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getcpu,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_restart_syscall,
    libc::SYS_getrandom,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getresuid,
    libc::SYS_getresgid,
    libc::SYS_getgroups,
    libc::SYS_getpgid,
    libc::SYS_getsid,
    libc::SYS_getpriority,
    libc::SYS_getrusage,
    libc::SYS_times,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_sigsuspend,
    libc::SYS_sigaltstack,
    libc::SYS_kill,
    libc::SYS_tgkill,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_setitimer,
    libc::SYS_getitimer,
    libc::SYS_pselect6,
    libc::SYS_ppoll,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
];

/// Older names of the same calls, which glibc and CPython still use on this architecture.
#[cfg(target_arch = "x86_64")]
const LEGACY: &[i64] = &[
    libc::SYS_open,
    libc::SYS_creat,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_dup2,
    libc::SYS_pipe,
    libc::SYS_chmod,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_getrlimit,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_time,
    libc::SYS_alarm,
    libc::SYS_pause,
    libc::SYS_getpgrp,
];
