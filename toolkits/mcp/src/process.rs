//! A server's process: in a group of its own, ended with all that it started when this is dropped, and also when this
//! program dies in whatever way. It may end by itself first, once its input is closed. It does not know what is said over its
//! pipes.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::time::timeout;

/// A running server.
pub(crate) struct Process {
    /// Its process group.
    group: Option<Pid>,
    /// How it ended, once it did.
    status: watch::Receiver<Option<ExitStatus>>,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    /// Closed when its standard error is.
    closed: watch::Receiver<()>,
    /// The end of this tells the guard to end the group; without a guard we do it.
    guarded: Option<ChildStdin>,
}

impl Process {
    /// Starts the program. Of our environment it gets [`INHERITED`] and nothing else: a key of ours is not its business.
    pub(crate) fn spawn<'a>(
        command: &str,
        args: &[String],
        env: impl IntoIterator<Item = (&'a String, &'a String)>,
        cwd: Option<&Path>,
        stop: Duration,
    ) -> io::Result<(Self, ChildStdin, ChildStdout)> {
        let mut process = Command::new(command);
        let inherited = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_inherited));
        process.args(args).env_clear().envs(inherited).envs(env);
        process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Not killed with our runtime: its guard gives it the time to end by itself.
        process.process_group(0);
        if let Some(cwd) = cwd {
            process.current_dir(cwd);
        }
        let mut child = process.spawn()?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let (open, closed) = watch::channel(());
        let (ended, status) = watch::channel(None);
        let mut guard = group.and_then(|group| guard(group, stop));
        let guarded = guard.as_mut().and_then(|guard| guard.stdin.take());
        let process = Self { group, status, stderr: Arc::default(), closed, guarded };
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(io::Error::other("it has no pipes"));
        };
        tokio::spawn(keep_tail(stderr, Arc::clone(&process.stderr), open));
        tokio::spawn(reap(child, group, guard, ended));
        Ok((process, stdin, stdout))
    }

    /// The end of what it wrote to its standard error, in one line. It is meant for a process that ends.
    pub(crate) async fn last_words(&self) -> String {
        // A grandchild that left the group may hold the pipe.
        let _ = timeout(LAST_MOMENT, self.closed.clone().changed()).await;
        let bytes: Vec<u8> = self.stderr.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<String> = text.lines().map(plain).filter(|line| !line.is_empty()).collect();
        lines.get(lines.len().saturating_sub(STDERR_LINES)..).unwrap_or_default().join(" | ")
    }

    /// Ends a moment after the process, when all that it wrote should have been read.
    pub(crate) fn gone(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut status = self.status.clone();
        async move {
            // An error says that nobody waits for the process any more, which is no end of it.
            if status.wait_for(Option::is_some).await.is_err() {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(LAST_MOMENT).await;
        }
    }

    /// How it ended, if it does so within a moment, with the end of its standard error. It is killed otherwise.
    pub(crate) async fn end(mut self) -> (Option<ExitStatus>, String) {
        let status = match timeout(LAST_MOMENT, self.status.wait_for(Option::is_some)).await {
            Ok(Ok(status)) => *status,
            _ => None,
        };
        self.kill();
        (status, self.last_words().await)
    }

    /// Kills the group, unless its first process was waited for: its number may be another's by then.
    pub(crate) fn kill(&self) {
        if self.status.borrow().is_none() {
            kill_group(self.group);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.guarded.take().is_none() {
            self.kill();
        }
    }
}

/// Waits for the process, and kills what it leaves behind: a server whose first process ended is none any more.
async fn reap(mut child: Child, group: Option<Pid>, guard: Option<Child>, ended: watch::Sender<Option<ExitStatus>>) {
    let status = child.wait().await.ok();
    kill_group(group);
    ended.send_replace(status);
    // It was killed with the group.
    if let Some(mut guard) = guard {
        let _ = guard.wait().await;
    }
}

/// A member of the group that ends it when it is not needed any more, or when this program is gone. The kernel's own signal
/// for that reaches only one process, and comes too early: at the end of the thread that started it.
fn guard(group: Pid, stop: Duration) -> Option<Child> {
    let (leader, steps) = (group.as_raw_nonzero().get().to_string(), (stop.as_millis() / 100).max(1).to_string());
    let mut shell = Command::new("/bin/sh");
    // Its input ends with the server's, and no earlier: nothing is ever written to it.
    shell.args(["-c", GUARD, "guard", &leader, &steps]).env_clear().stdin(Stdio::piped());
    shell.stdout(Stdio::null()).stderr(Stdio::null()).process_group(group.as_raw_nonzero().get());
    let guard = shell.spawn();
    // The server may have ended by now, and its group with it.
    guard.inspect_err(|error| tracing::debug!(%error, "an MCP server has no guard")).ok()
}

/// `$1` is the server, and `$2` how many tenths of a second it has for each step.
const GUARD: &str = "\
trap '' TERM
read -r nothing
ended() { left=$2; while [ $left -gt 0 ] && kill -0 $1; do sleep 0.1; left=$((left - 1)); done; }
ended $1 $2
kill -TERM 0
ended $1 $2
kill -KILL 0
";

fn kill_group(group: Option<Pid>) {
    if let Some(group) = group {
        // It fails where nothing of the group is left.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Bytes of standard error that are kept.
const STDERR_BYTES: usize = 8 * 1024;

/// Lines of standard error that an error shows.
const STDERR_LINES: usize = 6;

/// How long a process that closed its output may take to end.
const LAST_MOMENT: Duration = Duration::from_millis(300);

/// What a program needs to run as the user, to find its files and to reach the network.
const INHERITED: [&str; 24] = [
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "SYSTEMROOT",
    "PYTHONUTF8",
];

pub(crate) fn is_inherited(name: &str) -> bool {
    INHERITED.contains(&name) || name.starts_with("LC_") || name.starts_with("XDG_")
}

/// `_open` is dropped at the end of the output.
async fn keep_tail(mut stderr: ChildStderr, tail: Arc<Mutex<VecDeque<u8>>>, _open: watch::Sender<()>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(buffer.iter().take(count));
        let surplus = tail.len().saturating_sub(STDERR_BYTES);
        tail.drain(..surplus);
    }
}

/// The line without colours and other control sequences, cut to a width that can be read.
fn plain(line: &str) -> String {
    let mut text = String::new();
    let mut characters = line.trim().chars();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            // `ESC [ … letter`; the letter ends it.
            let _ = characters.find(char::is_ascii_alphabetic);
        } else if !character.is_control() {
            text.push(character);
        }
        if text.len() >= STDERR_WIDTH {
            break;
        }
    }
    text
}

/// Bytes of one line of standard error that an error shows.
const STDERR_WIDTH: usize = 400;
