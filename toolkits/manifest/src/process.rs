//! One command as a process group of its own: started, drained, and gone when nobody waits for it any more.
//!
//! It does not know manifests. What it does not protect: a descendant that makes a session of its own leaves the group
//! and is not stopped.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncReadExt, Interest};
use tokio::process::{Child, Command};

/// What is kept of the standard error, in bytes: its end.
pub(crate) const ERROR_BYTES: usize = 8 * 1024;

/// How long the pipes may stay open after the group has ended, held by someone who left it.
const SETTLE: Duration = Duration::from_millis(500);

/// A command that ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) output: Vec<u8>,
    /// The end of the standard error.
    pub(crate) errors: Vec<u8>,
    /// How many bytes the command wrote to its standard output, kept or not.
    pub(crate) written: u64,
}

/// What happens when a command writes more than is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excess {
    /// It is stopped: it only looks at things.
    Stop,
    /// It goes on, so that what it changes is not left half done; the rest is read and forgotten.
    Drain,
}

/// Why there is no [`Finished`].
#[derive(Debug)]
pub(crate) enum Unfinished {
    NotStarted(io::Error),
    /// It was stopped because it wrote too much.
    Excess,
    Lost(io::Error),
}

/// Runs the command to its end and keeps the first `limit` bytes of its output. When its first process ends, what is
/// left of its group is killed; so is the whole group when the future is dropped.
pub(crate) async fn run(mut command: Command, limit: usize, excess: Excess) -> Result<Finished, Unfinished> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    let mut group = Group::new(command.spawn().map_err(Unfinished::NotStarted)?)?;
    let exit = exit_of(group.leader).map_err(Unfinished::Lost)?;
    let (stdout, stderr) = (group.child.stdout.take(), group.child.stderr.take());
    let (mut output, mut written, mut errors) = (Vec::new(), 0, VecDeque::new());
    {
        let reading = async {
            tokio::try_join!(
                read_first(stdout, &mut output, &mut written, limit, excess),
                read_last(stderr, &mut errors)
            )
        };
        tokio::pin!(reading);
        let read = tokio::select! {
            read = &mut reading => Some(read?),
            ended = exit.readable() => { drop(ended.map_err(Unfinished::Lost)?); None }
        };
        match read {
            // The pipes may be closed long before the end.
            Some(_) => drop(exit.readable().await.map_err(Unfinished::Lost)?),
            None => {
                group.kill();
                if let Ok(read) = tokio::time::timeout(SETTLE, reading).await {
                    read?;
                }
            }
        }
    }
    let status = group.reap().await.map_err(Unfinished::Lost)?;
    Ok(Finished { status, output, errors: errors.into(), written })
}

/// A running command. It owns its processes: they die with it.
struct Group {
    child: Child,
    /// The first process, whose id is the group's. As long as it is not reaped nobody else can get that id.
    leader: Pid,
    reaped: bool,
}

impl Group {
    fn new(child: Child) -> Result<Self, Unfinished> {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let leader = leader.ok_or_else(|| Unfinished::Lost(io::Error::other("a process without an id")))?;
        Ok(Self { child, leader, reaped: false })
    }

    fn kill(&self) {
        // The only failure is that there is nobody left to kill.
        let _ = kill_process_group(self.leader, Signal::KILL);
    }

    /// Kills what is left and takes the first process's status, which gives its id free.
    async fn reap(&mut self) -> io::Result<ExitStatus> {
        self.kill();
        let status = self.child.wait().await;
        self.reaped = true;
        status
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.reaped {
            self.kill();
        }
    }
}

/// Becomes readable when the process has ended, and leaves it to be reaped.
fn exit_of(process: Pid) -> io::Result<AsyncFd<OwnedFd>> {
    let file = pidfd_open(process, PidfdFlags::NONBLOCK)?;
    // SAFETY: the descriptor is owned, is moved in here, and so stays open until its registration ends.
    let registered = unsafe { AsyncFd::register_with_interest(file, Interest::READABLE) };
    registered.map_err(|error| error.into_parts().1)
}

async fn read_first(
    pipe: Option<impl AsyncRead + Unpin>,
    kept: &mut Vec<u8>,
    written: &mut u64,
    limit: usize,
    excess: Excess,
) -> Result<(), Unfinished> {
    each_chunk(pipe, |chunk| {
        *written += chunk.len() as u64;
        let room = limit.saturating_sub(kept.len());
        kept.extend_from_slice(chunk.get(..room).unwrap_or(chunk));
        if chunk.len() > room && excess == Excess::Stop { Err(Unfinished::Excess) } else { Ok(()) }
    })
    .await
}

async fn read_last(pipe: Option<impl AsyncRead + Unpin>, kept: &mut VecDeque<u8>) -> Result<(), Unfinished> {
    each_chunk(pipe, |chunk| {
        kept.extend(chunk);
        kept.drain(..kept.len().saturating_sub(ERROR_BYTES));
        Ok(())
    })
    .await
}

async fn each_chunk(
    pipe: Option<impl AsyncRead + Unpin>,
    mut take: impl FnMut(&[u8]) -> Result<(), Unfinished>,
) -> Result<(), Unfinished> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    let mut buffer = vec![0; 16 * 1024];
    loop {
        match pipe.read(&mut buffer).await.map_err(Unfinished::Lost)? {
            0 => return Ok(()),
            count => take(buffer.get(..count).unwrap_or_default())?,
        }
    }
}
