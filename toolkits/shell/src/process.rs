//! One command: started, fed, drained, and gone with all that it started when nobody waits for it any more.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest};
use tokio::process::{Child, Command};

use crate::family;
use crate::kept::Kept;

/// How long the pipes may stay open after everybody was killed, held by somebody who escaped.
const SETTLE: Duration = Duration::from_millis(500);

/// The variable that marks what a command starts.
const MARK: &str = "FIMBLE_COMMAND";

/// What is to be run.
pub(crate) struct Order {
    pub(crate) program: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) folder: PathBuf,
    pub(crate) variables: Vec<(OsString, OsString)>,
    pub(crate) stdin: Option<Vec<u8>>,
    /// Bytes that are kept of each output.
    pub(crate) output_bytes: usize,
}

/// What was run.
pub(crate) struct Finished {
    /// `None` if its time was over first.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stdout: Kept,
    pub(crate) stderr: Kept,
}

impl Order {
    /// Runs the command to its end. When its first process ends, what is left of its family is killed; so is everybody
    /// when the time is over or the future is dropped.
    ///
    /// # Errors
    /// The program cannot be started.
    pub(crate) async fn run(self, limit: Duration) -> io::Result<Finished> {
        let mark = mark();
        let stdin = if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() };
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).current_dir(&self.folder).env_clear().envs(self.variables).env(MARK, &mark);
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).kill_on_drop(true);
        let mut family = Family::new(command.spawn()?, format!("{MARK}={mark}"))?;
        let exit = exit_of(family.leader)?;
        let (stdin, stdout, stderr) =
            (family.child.stdin.take(), family.child.stdout.take(), family.child.stderr.take());
        let mut finished =
            Finished { status: None, stdout: Kept::new(self.output_bytes), stderr: Kept::new(self.output_bytes) };
        let mut drained = false;
        let in_time = {
            let streams = async {
                tokio::join!(
                    feed(stdin, self.stdin.unwrap_or_default()),
                    drain(stdout, &mut finished.stdout),
                    drain(stderr, &mut finished.stderr)
                );
            };
            tokio::pin!(streams);
            let ended = tokio::time::timeout(limit, async {
                tokio::select! {
                    // The pipes may be closed long before the end.
                    () = &mut streams => drained = true,
                    ended = exit.readable() => return ended.map(drop),
                }
                exit.readable().await.map(drop)
            });
            let ended = ended.await;
            family.kill();
            if !drained {
                // What was written before the end is still in the pipes.
                let _ = tokio::time::timeout(SETTLE, streams).await;
            }
            match ended {
                Ok(ended) => ended.map(|()| true)?,
                Err(_) => false,
            }
        };
        let status = family.reap().await?;
        finished.status = in_time.then_some(status);
        Ok(finished)
    }
}

/// A running command. It owns its processes: they die with it.
struct Family {
    child: Child,
    /// The first process, whose id is the group's. As long as it is not reaped nobody else can get that id.
    leader: Pid,
    mark: String,
    reaped: bool,
}

impl Family {
    fn new(child: Child, mark: String) -> io::Result<Self> {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let leader = leader.ok_or_else(|| io::Error::other("a process without an id"))?;
        Ok(Self { child, leader, mark, reaped: false })
    }

    fn kill(&self) {
        family::kill(self.leader, &self.mark);
    }

    async fn reap(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await;
        self.reaped = true;
        status
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        if !self.reaped {
            self.kill();
        }
    }
}

/// A text that no other command's environment has.
fn mark() -> String {
    static COMMANDS: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{}-{}-{now}", std::process::id(), COMMANDS.fetch_add(1, Ordering::Relaxed))
}

/// Becomes readable when the process has ended, and leaves it to be reaped.
fn exit_of(process: Pid) -> io::Result<AsyncFd<OwnedFd>> {
    let file = pidfd_open(process, PidfdFlags::NONBLOCK)?;
    // SAFETY: the descriptor is owned, is moved in here, and so stays open until its registration ends.
    let registered = unsafe { AsyncFd::register_with_interest(file, Interest::READABLE) };
    registered.map_err(|error| error.into_parts().1)
}

/// A command need not read what it is given, so that it closed its input is no failure.
async fn feed(pipe: Option<impl AsyncWrite + Unpin>, bytes: Vec<u8>) {
    if let Some(mut pipe) = pipe {
        let _ = pipe.write_all(&bytes).await;
    }
}

async fn drain(pipe: Option<impl AsyncRead + Unpin>, kept: &mut Kept) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        kept.push(buffer.get(..count).unwrap_or_default());
    }
}
