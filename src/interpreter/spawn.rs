//! The host's hand on a zygote: starting it, asking it for children, learning how they ended. Closing its socket ends it.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::path::PathBuf;
use std::process::{Command as Program, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socketpair, sockopt};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::cgroup::{Ceiling, Group};
use super::config::{Config, Isolation, Level};
use super::control::{Bounds, Command, Exit, Report, Start, receive, send};
use super::error::Error;
use super::leaving::Kept;
use super::process::Process;
use super::scratch::{Scratch, Watch};
use super::wire::{Frame, Incoming, Wire};
use super::{frame, jail, packages, zygote};

/// The most bytes of a child's first frame.
const FIRST_FRAME_BYTES: usize = 64 * 1024;

/// Bytes that the kernel takes for a child before it reads them.
const SEND_BYTES: usize = 1024 * 1024;

/// A running zygote. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Zygote {
    control: Arc<AsyncFd<OwnedFd>>,
    shared: Arc<Shared>,
    reader: AbortHandle,
    process: OwnedFd,
    pid: u32,
    isolation: Isolation,
    start_within: Duration,
    /// Where its children's scratch folders are, if they have no quota by themselves and programs are not trusted.
    scratch_folder: Option<PathBuf>,
    rounds: AtomicU64,
    old: AtomicBool,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<HashMap<u64, Waiting>>,
    dead: AtomicBool,
    /// True once it is warm; closed when it ended before.
    warm: watch::Sender<bool>,
}

#[derive(Debug)]
struct Waiting {
    forked: Option<oneshot::Sender<Result<OwnedFd, String>>>,
    ended: Option<oneshot::Sender<Exit>>,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A child that is locked in and waits for its program. It is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Child {
    pub wire: Wire,
    process: Arc<OwnedFd>,
    ended: oneshot::Receiver<Exit>,
    /// Its zygote, which lives as long as its children.
    keeper: Arc<dyn Keeper>,
    /// Its folder, if that has no quota by itself.
    scratch: Option<Scratch>,
}

/// Whoever makes children, reaps them, and takes them along at its end.
pub(super) trait Keeper: std::fmt::Debug + Send + Sync {
    /// True once it ended, and its children with it.
    fn is_dead(&self) -> bool;

    /// Sends a signal to a child of its own; nothing happens if that has ended.
    fn signal(&self, process: &OwnedFd, signal: i32) {
        kill(process, signal);
    }
}

impl Keeper for Zygote {
    fn is_dead(&self) -> bool {
        Self::is_dead(self)
    }
}

impl Zygote {
    /// Starts one and waits until it is locked in. With its first child, it begins to warm up.
    pub async fn start(config: &Config) -> Result<Arc<Self>, Error> {
        let (ours, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).map_err(Error::spawn)?;
        let executable = config.executable.clone().unwrap_or_else(|| "/proc/self/exe".into());
        let ceiling = (config.isolation != Level::None).then_some(Ceiling {
            memory_mib: config.zygote_memory_mib,
            tasks: config.zygote_tasks,
            cpus: config.zygote_cpus,
        });
        let scratch_folder = (config.isolation != Level::Full).then(|| config.scratch_folder.clone());
        let Spawned { pid, process, join, joined } = spawn(executable, theirs, ceiling, scratch_folder).await?;
        nix::fcntl::fcntl(&ours, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK)).map_err(Error::spawn)?;
        // SAFETY: the descriptor is owned by the registration and is never replaced or closed before it.
        let control = Arc::new(unsafe { AsyncFd::register(ours) }.map_err(Error::spawn)?);
        let start_within = Duration::try_from_secs_f64(config.start_s).unwrap_or(Duration::from_secs(30));
        let shared = Arc::new(Shared::default());
        let start = Start {
            level: config.isolation,
            uid: config.uid,
            python_home: config.python_home.clone(),
            packages: packages::find(config)?.map(|prepared| prepared.folder),
            scratch_folder: config.scratch_folder.clone(),
            spares_deadly_calls: config.spares_deadly_calls,
        };
        // The group takes as long to join as CPython to start. Nothing is forked in between.
        let opening = async {
            tell(&control, &Command::Start(start), None).await.map_err(Error::spawn)?;
            let mut join = Some(join);
            if config.isolation != Level::Full
                && let Some(join) = join.take()
            {
                let _ = join.send(vec![pid]);
            }
            let mut layers = None;
            // Two processes speak, and either may be the first.
            while layers.is_none() || join.is_some() {
                let report = listen(&control).await.map_err(Error::spawn)?;
                match (report, join.take()) {
                    (Some((Report::Inside { pid: inside }, _)), Some(join)) => {
                        let _ = join.send(vec![pid, inside]);
                    }
                    (report, left) => {
                        layers = Some(read_opening(report)?);
                        join = left;
                    }
                }
            }
            let layers = layers.unwrap_or_default();
            Ok((layers, joined.await.ok().flatten()))
        };
        let opened = timeout(start_within, opening).await.map_err(|_| Error::spawn("it did not answer in time"))?;
        let (mut layers, in_group) = opened?;
        let reader = tokio::spawn(read_reports(Arc::clone(&control), Arc::clone(&shared))).abort_handle();
        if let Some(holds_cpus) = in_group {
            layers.insert(0, if holds_cpus { "cgroup cpu" } else { "cgroup" }.to_owned());
        }
        if config.zygote_cpus.is_some() && in_group != Some(true) {
            tracing::warn!(
                "`interpreter.zygote_cpus` is not held: no control group with the controller `cpu` can be made"
            );
        }
        let isolation = Isolation::of(config.isolation, layers, nix::unistd::geteuid().is_root());
        Ok(Arc::new(Self {
            control,
            shared,
            reader,
            process,
            pid,
            isolation,
            start_within,
            scratch_folder: (config.isolation == Level::Reduced).then(|| config.scratch_folder.clone()),
            rounds: AtomicU64::new(0),
            old: AtomicBool::new(false),
        }))
    }

    pub fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    /// The process id of the started process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// True once it ended; nothing can be asked of it any more.
    pub fn is_dead(&self) -> bool {
        self.shared.dead.load(Ordering::Acquire)
    }

    /// How many children it was asked for.
    pub fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Relaxed)
    }

    /// True from the second time on that this is asked: its replacement is under way.
    pub fn grows_old(&self) -> bool {
        self.old.swap(true, Ordering::Relaxed)
    }

    /// Its replacement could not be started; another try may be made.
    pub fn stays(&self) {
        self.old.store(false, Ordering::Relaxed);
    }

    /// True once it has imported what programs use.
    pub fn is_warm(&self) -> bool {
        *self.shared.warm.borrow()
    }

    /// Waits until it is warm; false if it ended before.
    pub fn warmed(&self) -> impl Future<Output = bool> + use<> {
        let mut warm = self.shared.warm.subscribe();
        async move { warm.wait_for(|warm| *warm).await.is_ok_and(|warm| *warm) }
    }

    /// Lets the files of a child grow, or not.
    pub async fn let_files_grow(&self, round: u64, grows: bool) -> io::Result<()> {
        tell(&self.control, &Command::Grow { round, grows }, None).await
    }

    /// Forks a child and waits until it is locked in.
    pub async fn fork(self: &Arc<Self>, bounds: Bounds) -> Result<Child, Error> {
        timeout(self.start_within, self.fork_now(bounds))
            .await
            .map_err(|_| Error::spawn("a child was not ready in time"))?
    }

    async fn fork_now(self: &Arc<Self>, bounds: Bounds) -> Result<Child, Error> {
        let round = self.rounds.fetch_add(1, Ordering::Relaxed);
        let (ours, theirs) = StdStream::pair().map_err(Error::spawn)?;
        ours.set_nonblocking(true).map_err(Error::spawn)?;
        // Of use for large results alone; the kernel may give less.
        let _ = setsockopt(&ours, sockopt::SndBuf, &SEND_BYTES);
        let stream = UnixStream::from_std(ours).map_err(Error::spawn)?;
        let (forked, was_forked) = oneshot::channel();
        let (ended, has_ended) = oneshot::channel();
        self.shared.waiting().insert(round, Waiting { forked: Some(forked), ended: Some(ended) });
        if self.is_dead() {
            self.shared.waiting().remove(&round);
        }
        let told = tell(&self.control, &Command::Fork { round, bounds }, Some(theirs.into())).await;
        if let Err(error) = told {
            // Known before the reader of its reports knows.
            self.shared.dead.store(true, Ordering::Release);
            return Err(Error::spawn(error));
        }
        let process = match was_forked.await {
            Ok(Ok(process)) => process,
            Ok(Err(reason)) => return Err(Error::spawn(reason)),
            Err(_) => return Err(Error::spawn("the zygote ended")),
        };
        let wire = Wire::new(stream, FIRST_FRAME_BYTES);
        let mut child = Child::new(wire, process, has_ended, Arc::<Self>::clone(self));
        child.scratch = self.scratch_folder.as_deref().map(|parent| Scratch {
            folder: jail::scratch_of(parent, self.pid, round),
            round,
            zygote: Arc::clone(self),
        });
        match child.wire.next(true).await.map_err(Error::spawn)? {
            Incoming::Frame(Frame { kind: frame::READY, .. }) => Ok(child),
            Incoming::Frame(Frame { kind: frame::UNJAILED, body }) => Err(Error::Isolation {
                layer: "child".to_owned(),
                reason: String::from_utf8_lossy(&body).into_owned(),
                hint: "run `fimble doctor`".to_owned(),
            }),
            Incoming::Frame(Frame { kind, .. }) => Err(Error::protocol(format!("a first frame of kind {kind}"))),
            Incoming::Closed | Incoming::Oversize(_) => {
                child.signal(libc::SIGKILL);
                // Afterwards it is known whether the zygote ended with it.
                child.ended().await;
                Err(Error::spawn("a child ended before it was ready"))
            }
        }
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        self.reader.abort();
        // SAFETY: a plain call on a live descriptor. The zygote reads the end, kills its children and leaves.
        unsafe { libc::shutdown(self.control.get_ref().as_raw_fd(), libc::SHUT_RDWR) };
        // With mounts of its own, nothing is left behind when it is killed, and it cannot be slow.
        if self.isolation.level == Level::Full {
            kill(&self.process, libc::SIGKILL);
        }
    }
}

impl Child {
    pub fn new(wire: Wire, process: OwnedFd, ended: oneshot::Receiver<Exit>, keeper: Arc<dyn Keeper>) -> Self {
        Self { wire, process: Arc::new(process), ended, keeper, scratch: None }
    }

    /// Holds its files to `mib` MiB together, where they have no quota by themselves.
    pub fn watch_scratch(&mut self, mib: u64) -> Watch {
        Watch::start(self.scratch.take(), self.process(), mib)
    }

    /// Its process, to be looked at.
    pub fn process(&self) -> Process {
        Process::new(Arc::clone(&self.process))
    }

    /// Sends a signal; nothing happens if the child has ended.
    pub fn signal(&self, signal: i32) {
        self.keeper.signal(&self.process, signal);
    }

    /// Waits until the process has ended and was reaped; `None` if its zygote ended with it.
    pub async fn ended(&mut self) -> Option<Exit> {
        (&mut self.ended).await.ok()
    }

    /// True once the process has ended.
    pub fn has_ended(&mut self) -> bool {
        self.is_orphan() || !matches!(self.ended.try_recv(), Err(oneshot::error::TryRecvError::Empty))
    }

    /// True once its zygote has ended, and it with it.
    pub fn is_orphan(&self) -> bool {
        self.keeper.is_dead()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.signal(libc::SIGKILL);
    }
}

fn kill(process: &OwnedFd, signal: i32) {
    // SAFETY: the descriptor is a live pidfd; no information is attached. That the process may be gone is fine.
    unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), signal, std::ptr::null::<libc::siginfo_t>(), 0)
    };
}

/// The layers that a zygote says it has.
fn read_opening(report: Option<(Report, Option<OwnedFd>)>) -> Result<Vec<String>, Error> {
    match report {
        Some((Report::Ready { layers }, _)) => Ok(layers),
        Some((Report::Refused { layer: Some(layer), reason, hint }, _)) => {
            Err(Error::Isolation { layer, reason, hint })
        }
        Some((Report::Refused { layer: None, reason, hint }, _)) => Err(Error::Spawn { reason, hint }),
        Some((other, _)) => Err(Error::protocol(format!("{other:?}"))),
        None => Err(Error::spawn("the zygote ended before it was ready")),
    }
}

/// A process that was started and waits for its first message.
struct Spawned {
    pid: u32,
    process: OwnedFd,
    /// Takes the processes that are to be put into a control group, this one first.
    join: oneshot::Sender<Vec<u32>>,
    /// Whether a control group holds them, and if so, whether it bounds their processors.
    joined: oneshot::Receiver<Option<bool>>,
}

/// Starts the program from a thread that lives as long as it: the kernel ends the zygote when the thread that started it
/// ends, and a thread of the runtime may end at any time.
///
/// `scratch_folder` is where it makes its scratch folders, if it does not mount them.
async fn spawn(
    executable: PathBuf,
    control: OwnedFd,
    ceiling: Option<Ceiling>,
    scratch_folder: Option<PathBuf>,
) -> Result<Spawned, Error> {
    let (started, has_started) = oneshot::channel();
    let (join, joins) = oneshot::channel::<Vec<u32>>();
    let (tell_joined, joined) = oneshot::channel();
    let kept = Kept::begin();
    let body = move || {
        let _kept = kept;
        let spawned = Program::new(&executable)
            .arg(zygote::ARGUMENT)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(control))
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn();
        let mut process = match spawned {
            Ok(process) => process,
            Err(error) => {
                let _ = started.send(Err(format!("{}: {error}", executable.display())));
                return;
            }
        };
        let pid = process.id();
        let opened = open_process(pid).map(|process| (pid, process));
        let _ = started.send(opened.map_err(|error| error.to_string()));
        // Without them it was not started after all.
        let pids = joins.blocking_recv().ok();
        let group = ceiling.zip(pids).and_then(|(ceiling, pids)| Group::around(&pids, ceiling));
        let _ = tell_joined.send(group.as_ref().map(|group| group.holds_cpus));
        let _ = process.wait();
        if let Some(group) = group
            && group.remove()
            && let Some(parent) = scratch_folder
        {
            // There is nothing unless it was killed.
            let _ = jail::sweep_left(&parent, pid);
        }
    };
    std::thread::Builder::new().name("fimble-zygote".to_owned()).spawn(body).map_err(Error::spawn)?;
    let (pid, process) = has_started.await.map_err(Error::spawn)?.map_err(Error::spawn)?;
    Ok(Spawned { pid, process, join, joined })
}

/// A descriptor of a process that is not reaped yet.
pub(super) fn open_process(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: the process is our child and not reaped, so the number is its own; the new descriptor is nobody else's.
    unsafe {
        let descriptor = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(std::os::fd::FromRawFd::from_raw_fd(descriptor as i32))
    }
}

async fn tell(control: &AsyncFd<OwnedFd>, command: &Command, attached: Option<OwnedFd>) -> io::Result<()> {
    let attached = attached.as_ref();
    control.async_io(Interest::WRITABLE, |socket| send(socket.as_fd(), command, attached.map(AsFd::as_fd))).await
}

async fn listen(control: &AsyncFd<OwnedFd>) -> io::Result<Option<(Report, Option<OwnedFd>)>> {
    control.async_io(Interest::READABLE, |socket| receive(socket.as_fd())).await
}

/// Hands each report to whoever waits for it, until the zygote ends.
async fn read_reports(control: Arc<AsyncFd<OwnedFd>>, shared: Arc<Shared>) {
    while let Ok(Some((report, attached))) = listen(&control).await {
        match (report, attached) {
            (Report::Forked { round }, Some(process)) => {
                let forked = shared.waiting().get_mut(&round).and_then(|waiting| waiting.forked.take());
                // Nobody waits for it any more: it is not to stay.
                if let Some(Err(Ok(process))) = forked.map(|forked| forked.send(Ok(process))) {
                    kill(&process, libc::SIGKILL);
                }
            }
            (Report::NotForked { round, reason }, None) => {
                if let Some(forked) = shared.waiting().remove(&round).and_then(|waiting| waiting.forked) {
                    let _ = forked.send(Err(reason));
                }
            }
            (Report::Ended { round, exit }, None) => {
                if let Some(ended) = shared.waiting().remove(&round).and_then(|waiting| waiting.ended) {
                    let _ = ended.send(exit);
                }
            }
            (Report::Warm { problem }, None) => {
                if let Some(problem) = problem {
                    tracing::warn!(problem, "programs begin slower than they could");
                }
                shared.warm.send_replace(true);
            }
            _ => break,
        }
    }
    shared.dead.store(true, Ordering::Release);
    shared.waiting().clear();
}
