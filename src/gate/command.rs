//! A program that the user configured, asked once: text in, text out, within limits. It does not know what it is asked.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, Interest};
use tokio::process::Child;

/// How long the pipes may stay open after the program has ended, held by someone who left its group.
const SETTLE: Duration = Duration::from_millis(500);

/// What a program may use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CommandLimits {
    /// How long it may take.
    pub time: Duration,
    /// Bytes of its standard output, and of its standard error.
    pub bytes: usize,
}

/// What a program said.
#[derive(Debug)]
pub struct Said {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub output: Vec<u8>,
    /// Its standard error.
    pub errors: Vec<u8>,
}

/// Why a program said nothing of use.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// There is no name of a program.
    #[error("the command is empty")]
    Empty,
    /// It is not there, or cannot be run.
    #[error("`{program}` cannot be started: {error}")]
    NotStarted {
        /// Its name.
        program: String,
        /// What the system said.
        error: io::Error,
    },
    /// It was killed because it took too long.
    #[error("`{program}` did not end within {seconds} s and was killed")]
    TooSlow {
        /// Its name.
        program: String,
        /// The limit.
        seconds: f64,
    },
    /// It was killed because it wrote too much.
    #[error("`{program}` wrote more than {bytes} bytes and was killed")]
    TooMuch {
        /// Its name.
        program: String,
        /// The limit.
        bytes: usize,
    },
    /// The system failed.
    #[error("`{program}` was lost: {error}")]
    Lost {
        /// Its name.
        program: String,
        /// What the system said.
        error: io::Error,
    },
}

/// Runs the argument vector `command` as a process group of its own, writes `input` to its standard input, and reads what it
/// says. The group is killed when its first process ends, at a limit, and when the future is dropped. It has the host's
/// environment and rights.
///
/// # Errors
/// It could not be started or went over a limit; how it ended is no error here.
pub async fn ask(command: &[String], input: &[u8], limits: CommandLimits) -> Result<Said, CommandError> {
    let (program, arguments) = command.split_first().ok_or(CommandError::Empty)?;
    let name = || program.clone();
    let mut prepared = tokio::process::Command::new(program);
    prepared.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    prepared.process_group(0).kill_on_drop(true);
    let child = prepared.spawn().map_err(|error| CommandError::NotStarted { program: name(), error })?;
    let lost = |error| CommandError::Lost { program: name(), error };
    let mut group = Group::new(child).map_err(lost)?;
    let asked = tokio::time::timeout(limits.time, group.converse(input, limits.bytes)).await;
    match asked {
        Err(_) => Err(CommandError::TooSlow { program: name(), seconds: limits.time.as_secs_f64() }),
        Ok(Err(error)) => Err(lost(error)),
        Ok(Ok(None)) => Err(CommandError::TooMuch { program: name(), bytes: limits.bytes }),
        Ok(Ok(Some(said))) => Ok(said),
    }
}

/// A running program. It owns its processes: they die with it.
struct Group {
    child: Child,
    /// The first process, whose id is the group's. As long as it is not reaped nobody else can get that id.
    leader: Pid,
    reaped: bool,
}

impl Group {
    fn new(child: Child) -> io::Result<Self> {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let leader = leader.ok_or_else(|| io::Error::other("a process without an id"))?;
        Ok(Self { child, leader, reaped: false })
    }

    /// `None` if it wrote too much.
    async fn converse(&mut self, input: &[u8], most: usize) -> io::Result<Option<Said>> {
        let exit = exit_of(self.leader)?;
        let (stdin, stdout, stderr) = (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take());
        let writing = async {
            if let Some(mut stdin) = stdin {
                // It need not read what it is told.
                let _ = stdin.write_all(input).await;
            }
            Ok(())
        };
        let talking = async { tokio::try_join!(read(stdout, most), read(stderr, most), writing) };
        tokio::pin!(talking);
        let said = tokio::select! {
            said = &mut talking => {
                let said = said?;
                // The pipes may be closed long before the end; what writes too much is not waited for.
                if said.0.is_some() && said.1.is_some() {
                    drop(exit.readable().await?);
                }
                said
            }
            ended = exit.readable() => {
                drop(ended?);
                // Those it left behind hold the pipes open.
                let _ = kill_process_group(self.leader, Signal::KILL);
                match tokio::time::timeout(SETTLE, &mut talking).await {
                    Ok(said) => said?,
                    Err(_) => return Err(io::Error::other("a process that it left behind holds its output open")),
                }
            }
        };
        let (Some(output), Some(errors), ()) = said else { return Ok(None) };
        let _ = kill_process_group(self.leader, Signal::KILL);
        let status = self.child.wait().await;
        self.reaped = true;
        Ok(Some(Said { status: status?, output, errors }))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.reaped {
            // The only failure is that there is nobody left to kill.
            let _ = kill_process_group(self.leader, Signal::KILL);
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

/// All that comes, `None` if that is more than `most` bytes.
async fn read(pipe: Option<impl AsyncRead + Unpin>, most: usize) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(most as u64 + 1).read_to_end(&mut bytes).await?;
    }
    Ok(Some(bytes).filter(|bytes| bytes.len() <= most))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: CommandLimits = CommandLimits { time: Duration::from_secs(20), bytes: 1_000 };

    async fn shell(script: &str, limits: CommandLimits) -> Result<Said, CommandError> {
        ask(&["sh", "-c", script].map(str::to_owned), b"hello", limits).await
    }

    #[tokio::test]
    async fn a_program_is_asked_and_answers() {
        let said = shell("cat; echo oops >&2; exit 3", LIMITS).await.unwrap();
        assert_eq!((said.status.code(), said.output, said.errors), (Some(3), b"hello".into(), b"oops\n".into()));
    }

    #[tokio::test]
    async fn what_goes_over_a_limit_is_killed_and_named() {
        let short = CommandLimits { time: Duration::from_millis(50), ..LIMITS };
        let slow = shell("sleep 1000", short).await.unwrap_err().to_string();
        assert_eq!(slow, "`sh` did not end within 0.05 s and was killed");
        let large = shell("while :; do echo yes; done", LIMITS).await.unwrap_err().to_string();
        assert_eq!(large, "`sh` wrote more than 1000 bytes and was killed");
        let gone = ask(&["no-such-program".to_owned()], b"", LIMITS).await.unwrap_err().to_string();
        assert!(gone.starts_with("`no-such-program` cannot be started"), "{gone}");
        assert_eq!(ask(&[], b"", LIMITS).await.unwrap_err().to_string(), "the command is empty");
    }

    #[tokio::test]
    async fn what_it_leaves_behind_ends_with_it() {
        let said = shell("sleep 1000 & echo $!", LIMITS).await.unwrap();
        let left: i32 = String::from_utf8(said.output).unwrap().trim().parse().unwrap();
        // It was told to end and may need a moment; a test that waits here for ever has failed.
        let state = || std::fs::read_to_string(format!("/proc/{left}/stat")).unwrap_or_default();
        while !(state().is_empty() || state().contains(") Z ")) {
            tokio::task::yield_now().await;
        }
    }
}
