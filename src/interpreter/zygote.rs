//! The process that programs are forked from: one thread, CPython warm, locked in. It does not know what a round says;
//! it forks a child for each, hands it its socket, and reports how it ended.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::exit;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::SockType;
use nix::sys::socket::{getsockopt, sockopt};

use super::child::{self, Confinement};
use super::config::Level;
use super::control::{Bounds, Command, Exit, Report, Start, receive, send};
use super::jail::{self, Folders, Missing, Scratch};
use super::packages;
use super::python::{self, Forked, Home, TIME_ZONES, Warming};

/// The hidden command that a zygote is started with.
pub(super) const ARGUMENT: &str = "zygote";

/// Call this first in `main`, before any thread is started: when the process was started as a zygote, it becomes one and
/// never returns. Otherwise it does nothing.
pub fn init() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|argument| argument == ARGUMENT) && arguments.next().is_none() {
        exit(serve());
    }
}

/// A child that has not been reaped.
struct Child {
    round: u64,
    pid: libc::pid_t,
    pidfd: OwnedFd,
    scratch: Scratch,
}

/// How long the first child may have the machine for itself, in milliseconds.
const ALONE: u8 = 50;

/// The first child is for somebody who waits for this process to start: what makes the next ones quicker comes after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    /// There is none yet.
    Awaited,
    /// It may run its program now.
    Alone,
    /// It ended, or is not waited for any more.
    Over,
}

/// Why a zygote cannot serve.
enum Refusal {
    Layer(Missing),
    Other { reason: String, hint: &'static str },
}

impl From<Missing> for Refusal {
    fn from(missing: Missing) -> Self {
        Refusal::Layer(missing)
    }
}

fn serve() -> i32 {
    let Some(control) = take_control() else {
        let text = "`fimble zygote` is started by fimble itself\n\nhint: use `fimble chat` or `fimble run`";
        let _ = writeln!(io::stderr(), "{text}");
        return 2;
    };
    let Ok(Some((Command::Start(start), _))) = receive::<Command>(control.as_fd()) else { return 1 };
    match prepare(&start, &control) {
        // Not returned: the socket was closed there, and must not be closed again.
        Ok(Prepared::Outer(code)) => exit(code),
        Ok(Prepared::Zygote(zygote)) => python::attached(|| zygote.serve(&control)),
        Err(refusal) => {
            let report = match refusal {
                Refusal::Layer(Missing { layer, reason, hint }) => {
                    Report::Refused { layer: Some(layer.to_owned()), reason, hint: hint.to_owned() }
                }
                Refusal::Other { reason, hint } => Report::Refused { layer: None, reason, hint: hint.to_owned() },
            };
            // If the host is gone, nobody is left to tell.
            let _ = send(control.as_fd(), &report, None);
            1
        }
    }
}

/// The host's socket, which is this process's standard input. All other inherited descriptors are closed, and the three
/// standard ones lead nowhere but for errors.
fn take_control() -> Option<OwnedFd> {
    let input = io::stdin();
    if getsockopt(&input.as_fd(), sockopt::SockType).ok()? != SockType::SeqPacket {
        return None;
    }
    let null = File::options().read(true).write(true).open("/dev/null").ok()?;
    // SAFETY: plain descriptor calls; the descriptors from 3 up belong to nobody in this new process but `null`, which is
    // not used after them.
    unsafe {
        let null = std::os::fd::IntoRawFd::into_raw_fd(null);
        let kept = libc::fcntl(0, libc::F_DUPFD, 64);
        if kept < 0 || libc::dup2(null, 0) < 0 || libc::dup2(null, 1) < 0 || libc::dup2(kept, 3) < 0 {
            return None;
        }
        libc::close_range(4, libc::c_uint::MAX, 0);
        libc::fcntl(3, libc::F_SETFD, libc::FD_CLOEXEC);
        libc::setsid();
        Some(OwnedFd::from_raw_fd(3))
    }
}

enum Prepared {
    /// This process only waits for the zygote, which is the first of its own process namespace.
    Outer(i32),
    Zygote(Box<Zygote>),
}

/// Locks this process in, layer by layer, and starts CPython between them.
fn prepare(start: &Start, control: &OwnedFd) -> Result<Prepared, Refusal> {
    let mut layers = Vec::new();
    if start.level != Level::None && jail::drop_root(start.uid)? {
        layers.push("user".to_owned());
    }
    if start.level == Level::Full {
        // Otherwise the end of the socket tells, and leaves the time to remove what was written.
        jail::die_with_parent()?;
    }
    let landlock = match start.level {
        Level::None => None,
        level => Some(jail::landlock_version(level == Level::Full)?),
    };
    if threads() != Some(1) {
        return Err(Refusal::Other {
            reason: "the process has more than one thread".to_owned(),
            hint: "call `fimble::interpreter::init()` first in `main`, outside of any runtime",
        });
    }
    if start.level == Level::Full {
        jail::enter_namespaces()?;
        // SAFETY: there is one thread; the child goes on as the zygote, the parent only waits.
        match unsafe { libc::fork() } {
            0 => jail::die_with_parent()?,
            pid if pid > 0 => {
                // If the host is gone, the zygote learns it as well.
                let _ = send(control.as_fd(), &Report::Inside { pid: pid.unsigned_abs() }, None);
                return Ok(Prepared::Outer(wait_outside(pid)));
            }
            _ => {
                return Err(Refusal::Other {
                    reason: io::Error::last_os_error().to_string(),
                    hint: "run `fimble doctor`",
                });
            }
        }
        layers.push("namespaces".to_owned());
    }
    if start.packages.is_some() {
        packages::forbid_threads();
    }
    let home = Home::find(start.python_home.as_deref(), start.packages.clone());
    python::start(&home).map_err(|reason| Refusal::Other {
        reason: format!("CPython: {reason}"),
        hint: "install the CPython that fimble was built with, where every user may read it, or set `interpreter.python_home`",
    })?;
    if threads() != Some(1) {
        return Err(Refusal::Other {
            reason: "an imported module started a thread".to_owned(),
            hint: "leave out of `interpreter.packages` what starts threads when it is imported",
        });
    }
    let warming = Warming::begin(&home);
    let site = home.site();
    let readable: Vec<PathBuf> = [home.library, home.extensions, PathBuf::from(TIME_ZONES)]
        .into_iter()
        .chain(site)
        .filter(|folder| folder.is_dir())
        .collect();
    let folders = match start.level {
        Level::Full => {
            layers.push("root".to_owned());
            jail::change_root(outermost(readable))?
        }
        Level::Reduced | Level::None => {
            let parent = &start.scratch_folder;
            Folders::unmounted(outermost(readable), parent).map_err(|error| Refusal::Other {
                reason: format!("{}: {error}", parent.display()),
                hint: "set `interpreter.scratch_folder` to a folder that every user may write",
            })?
        }
    };
    jail::ignore_deadly_signals()?;
    jail::forbid_inspection()?;
    let mut filter = None;
    if start.level != Level::None {
        filter = Some(jail::ChildFilter::build(start.level == Level::Full)?);
        jail::filter_zygote(start.spares_deadly_calls)?;
        layers.push("seccomp".to_owned());
    }
    if let Some(version) = landlock {
        layers.push(format!("landlock {version}"));
    }
    layers.push("limits".to_owned());
    // Nobody else's processes are counted in a user namespace of its own, nor for a user id that belongs to no account.
    let own_user = layers.iter().any(|layer| layer == "namespaces" || layer == "user");
    let confinement = Confinement { filter, landlock, own_user };
    Ok(Prepared::Zygote(Box::new(Zygote {
        layers,
        folders,
        confinement,
        children: Vec::new(),
        sweepers: Vec::new(),
        first: First::Awaited,
        warming: Some(warming),
    })))
}

struct Zygote {
    layers: Vec<String>,
    folders: Folders,
    confinement: Confinement,
    children: Vec<Child>,
    /// Processes that remove what rounds left behind.
    sweepers: Vec<libc::pid_t>,
    first: First,
    /// What is left to import.
    warming: Option<Warming>,
}

impl Zygote {
    /// Forks and reaps until the host is gone. With namespaces, all children end with this process.
    fn serve(mut self, control: &OwnedFd) -> i32 {
        let mut step = send(control.as_fd(), &Report::Ready { layers: self.layers.clone() }, None).map(|()| true);
        let code = loop {
            match step {
                Ok(true) => {}
                Ok(false) => break 0,
                Err(_) => break 1,
            }
            step = self.step(control);
        };
        for child in std::mem::take(&mut self.children) {
            // SAFETY: the process is not reaped yet, so the number is still its own.
            unsafe { libc::kill(child.pid, libc::SIGKILL) };
            let _ = reap(&child);
            let _ = child.scratch.remove();
        }
        for pid in self.sweepers {
            // SAFETY: a child that is not reaped yet; no status is asked for. Two cannot sweep the same folder.
            unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
        }
        if self.folders.mounted.is_none() {
            let _ = jail::sweep(&self.folders.scratch);
        }
        code
    }

    /// Waits for one thing to happen. False when the host is gone.
    fn step(&mut self, control: &OwnedFd) -> io::Result<bool> {
        let mut polled: Vec<PollFd<'_>> = vec![PollFd::new(control.as_fd(), PollFlags::POLLIN)];
        polled.extend(self.children.iter().map(|child| PollFd::new(child.pidfd.as_fd(), PollFlags::POLLIN)));
        let timeout = match self.first {
            First::Alone => PollTimeout::from(ALONE),
            First::Over if self.warming.is_some() => PollTimeout::ZERO,
            First::Awaited | First::Over => PollTimeout::NONE,
        };
        match poll(&mut polled, timeout) {
            Err(nix::errno::Errno::EINTR) => return Ok(true),
            Ok(0) => {
                self.first = First::Over;
                return self.warm(control).map(|()| true);
            }
            result => result?,
        };
        // SAFETY: each is a child that is not reaped yet; no status is asked for.
        self.sweepers.retain(|&pid| unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) } == 0);
        let ready: Vec<bool> = polled.iter().map(|polled| polled.any().unwrap_or(true)).collect();
        for index in (0..self.children.len()).rev() {
            if ready.get(index + 1) == Some(&true) {
                self.first = First::Over;
                let child = self.children.swap_remove(index);
                let exit = reap(&child)?;
                send(control.as_fd(), &Report::Ended { round: child.round, exit }, None)?;
                // Nobody waits for it. What cannot be removed is left.
                if let Ok(Some(sweeper)) = child.scratch.remove() {
                    self.sweepers.push(sweeper);
                }
            }
        }
        if ready.first() == Some(&true) {
            return match receive::<Command>(control.as_fd())? {
                Some((Command::Fork { round, bounds }, Some(socket))) => {
                    match self.fork(round, &bounds, socket) {
                        Ok(()) => {
                            let pidfd = self.children.last().map(|child| child.pidfd.as_fd());
                            send(control.as_fd(), &Report::Forked { round }, pidfd)?;
                        }
                        Err(error) => {
                            send(control.as_fd(), &Report::NotForked { round, reason: error.to_string() }, None)?;
                        }
                    }
                    Ok(true)
                }
                Some((Command::Grow { round, grows }, None)) => {
                    if let Some(child) = self.children.iter().find(|child| child.round == round) {
                        jail::let_files_grow(child.pid, grows)?;
                    }
                    Ok(true)
                }
                _ => Ok(false),
            };
        }
        Ok(true)
    }

    /// Imports one more module, and tells when it was the last one.
    fn warm(&mut self, control: &OwnedFd) -> io::Result<()> {
        if let Some(warming) = &mut self.warming
            && !warming.step()
        {
            let problem = warming.problem.take();
            self.warming = None;
            send(control.as_fd(), &Report::Warm { problem }, None)?;
        }
        Ok(())
    }

    fn fork(&mut self, round: u64, bounds: &Bounds, socket: OwnedFd) -> io::Result<()> {
        if self.first == First::Awaited {
            self.first = First::Alone;
        }
        let scratch = Scratch::make(&self.folders, round, bounds.scratch_mib)?;
        let forked = match python::fork() {
            Ok(Forked::Child) => child::live(&self.confinement, &self.folders.readable, &scratch.path, bounds, &socket),
            Ok(Forked::Parent(pid)) => Ok(pid),
            Err(error) => Err(error),
        };
        let left = Scratch::leave(&self.folders);
        let pid = match forked {
            Ok(pid) => pid,
            Err(error) => {
                let _ = scratch.remove();
                return Err(error);
            }
        };
        // SAFETY: the child is ours and not reaped, so the number is its own and the new descriptor is nobody else's.
        let pidfd = unsafe {
            let pidfd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
            if pidfd < 0 {
                let error = io::Error::last_os_error();
                libc::kill(pid, libc::SIGKILL);
                libc::waitpid(pid, std::ptr::null_mut(), 0);
                return Err(error);
            }
            OwnedFd::from_raw_fd(pidfd as i32)
        };
        self.children.push(Child { round, pid, pidfd, scratch });
        left
    }
}

/// Waits for a child that has ended and tells what it used.
fn reap(child: &Child) -> io::Result<Exit> {
    let mut status = 0;
    // SAFETY: zero is a valid value of this plain structure.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live values.
        if unsafe { libc::wait4(child.pid, &raw mut status, 0, &raw mut usage) } == child.pid {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let micros = |time: libc::timeval| u64::try_from(time.tv_sec * 1_000_000 + time.tv_usec).unwrap_or(0);
    Ok(Exit {
        code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
        signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
        cpu_us: micros(usage.ru_utime) + micros(usage.ru_stime),
        peak_rss_kib: u64::try_from(usage.ru_maxrss).unwrap_or(0),
    })
}

/// The life of the process outside the namespaces: it ends as the zygote ends.
fn wait_outside(zygote: libc::pid_t) -> i32 {
    // SAFETY: this process uses no descriptor any more; the zygote has its own.
    unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
    let mut status = 0;
    // SAFETY: the pointer is to a live value.
    while unsafe { libc::waitpid(zygote, &raw mut status, 0) } != zygote {
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return 1;
        }
    }
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 1 }
}

/// How many threads this process has.
fn threads() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/task").ok()?.count())
}

/// Folders without those that lie inside another one.
fn outermost(folders: Vec<PathBuf>) -> Vec<PathBuf> {
    let all = folders.clone();
    folders.into_iter().filter(|folder| !all.iter().any(|other| other != folder && folder.starts_with(other))).collect()
}
