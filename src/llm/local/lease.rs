//! A share in a running server: an open connection to its supervisor. The kernel closes it when its holder dies,
//! however that dies. Knows the supervisor's lines; does not know HTTP.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::time::{Instant, interval, timeout};

use super::place::Place;
use super::{Config, Progress, Step, setup};
use crate::llm::LlmError;
use crate::llm::config::seconds;

/// How long a supervisor may take to open its socket, or to answer a question.
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// How long a supervisor may take to follow its server.
const END_TIME: Duration = Duration::from_secs(1);
/// Most bytes of the log that are looked at.
const LOG_TAIL: u64 = 16 * 1024;

/// What the supervisor says about the server.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Told {
    pub state: String,
    pub pid: i32,
    pub uptime_s: f64,
    pub owners: u32,
    pub requests: u64,
    pub port: Option<u16>,
    pub key: Option<String>,
    pub message: Option<String>,
    pub cause: Option<String>,
}

/// A share in a running server.
pub(super) struct Lease {
    stream: UnixStream,
    pub told: Told,
}

/// A request under way; the supervisor counts no idle time meanwhile.
pub(super) struct Busy<'a>(&'a Lease);

impl Lease {
    /// Joins the running server, or starts it, and waits until the model is loaded.
    pub(super) async fn acquire(place: &Place, config: &Config, mut progress: Progress<'_>) -> Result<Self, LlmError> {
        place.make_run_folder()?;
        // A server may end between our connection and our first word; then the next round starts a new one.
        for _ in 0..3 {
            let (mut stream, is_mine) = match connect(place) {
                Some(stream) => (stream, false),
                None => match start(place, config, &mut *progress).await? {
                    Some(stream) => (stream, true),
                    None => continue,
                },
            };
            if stream.write_all(b"own\n").await.is_err() {
                continue;
            }
            match loaded(&mut stream, config, &mut progress).await? {
                Some(told) if told.state == "ready" => return Ok(Self { stream, told }),
                Some(told) => return Err(failed(place, config, &told)),
                None if is_mine => return Err(not_loaded(place, "the server ended")),
                None => {}
            }
        }
        Err(LlmError::transient("the local model's server ends as soon as it is started", "see `fimble model status`"))
    }

    /// True if the server is still there.
    pub(super) fn is_alive(&self) -> bool {
        // It says nothing after its first line, so readable means ended.
        matches!(self.stream.try_read(&mut [0; 64]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// True if the server ends now: after a broken connection it takes its supervisor a moment to see why.
    pub(super) async fn is_ending(&self) -> bool {
        let ended = async {
            while self.is_alive() {
                // An error is an end too, which the next look shows.
                let _ = self.stream.readable().await;
            }
        };
        timeout(END_TIME, ended).await.is_ok()
    }

    /// Tells that a request is under way until the return value is dropped.
    pub(super) fn busy(&self) -> Busy<'_> {
        self.say(b"begin\n");
        Busy(self)
    }

    fn say(&self, line: &[u8]) {
        if let Err(error) = self.stream.try_write(line) {
            tracing::debug!(%error, "the supervisor does not listen");
        }
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.say(b"end\n");
    }
}

/// What the supervisor says, or `None` if there is none.
pub(super) async fn ask_status(place: &Place) -> Option<Told> {
    let mut stream = connect(place)?;
    stream.write_all(b"status\n").await.ok()?;
    timeout(ANSWER_TIME, read_told(&mut stream)).await.ok()??.ok()
}

/// Ends the server, whoever uses it. False if there was none.
pub(super) async fn stop(place: &Place) -> Result<bool, LlmError> {
    let Some(mut stream) = connect(place) else { return Ok(false) };
    let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
    // An error here means that it is just ending, which the wait for the end of the stream shows.
    let _ = stream.write_all(b"stop\n").await;
    if timeout(ANSWER_TIME, read_told(&mut stream)).await.is_ok() {
        return Ok(true);
    }
    let killed = pid.is_some_and(|pid| {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).is_ok()
    });
    if killed {
        return Ok(true);
    }
    Err(LlmError::transient("the local model's server does not stop", "see `fimble model status` for its process"))
}

/// A connection to the supervisor, if there is one. Goes through the folder's descriptor: a socket's path must be
/// shorter than 108 bytes, a cache folder's need not.
fn connect(place: &Place) -> Option<UnixStream> {
    let folder = File::open(&place.run).ok()?;
    let path = format!("/proc/self/fd/{}/{}.sock", folder.as_raw_fd(), place.name);
    let stream = std::os::unix::net::UnixStream::connect(path).ok()?;
    stream.set_nonblocking(true).ok()?;
    UnixStream::from_std(stream).ok()
}

/// Starts a supervisor; one at a time, whatever its model. `None` if another one's was just there.
async fn start(place: &Place, config: &Config, progress: Progress<'_>) -> Result<Option<UnixStream>, LlmError> {
    setup::install_server(place, config, progress).await?;
    let _lock = setup::lock(&place.run.join("start")).await?;
    if let Some(stream) = connect(place) {
        return Ok(Some(stream));
    }
    let cannot = |error: io::Error| LlmError::permanent(format!("the model server cannot be started: {error}"), "");
    let log = File::create(place.log()).map_err(cannot)?;
    let mut command = Command::new(place.python());
    command
        .args(["-I".as_ref(), setup::server_script(place)?.as_os_str(), "supervise".as_ref()])
        .arg(settings(place, config).to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        // Keys and tokens of our surroundings are none of its business.
        .env_clear();
    for name in ["PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    let mut child = command.spawn().map_err(cannot)?;
    let stdout = child.stdout.take().ok_or_else(|| cannot(io::Error::other("it has no output")))?;
    let mut line = String::new();
    match timeout(ANSWER_TIME, BufReader::new(stdout).read_line(&mut line)).await {
        Ok(Ok(_)) if line == "open\n" => Ok(connect(place)),
        // It ends with success if another supervisor holds the lock.
        Ok(_) if child.wait().await.is_ok_and(|status| status.success()) => Ok(None),
        Ok(_) => Err(not_loaded(place, "its supervisor ended")),
        Err(_) => {
            // It may be gone already, which is what we want.
            let _ = child.start_kill();
            Err(not_loaded(place, "its supervisor does not answer"))
        }
    }
}

fn settings(place: &Place, config: &Config) -> serde_json::Value {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    json!({
        "directory": place.run,
        "name": place.name,
        "model": place.model,
        "context_tokens": config.context_tokens,
        "threads": if config.threads == 0 { cores } else { config.threads as usize },
        "port": config.port,
        "idle_s": seconds(config.idle_s).as_secs_f64(),
        "linger_s": seconds(config.linger_s).as_secs_f64(),
        "cache_mib": config.cache_mib,
        "heads": place.heads(),
    })
}

/// Waits for the supervisor's word that the model is loaded, or cannot be. `None` if it ends without one.
async fn loaded(
    stream: &mut UnixStream,
    config: &Config,
    progress: &mut Progress<'_>,
) -> Result<Option<Told>, LlmError> {
    let started = Instant::now();
    let limit = seconds(config.load_s);
    let mut ticks = interval(Duration::from_secs(1));
    // A server that is loaded answers at once; then there is nothing to show.
    ticks.reset();
    let mut told = std::pin::pin!(timeout(limit, read_told(stream)));
    loop {
        tokio::select! {
            answer = &mut told => return match answer {
                Err(_) => {
                    let message = format!("the local model is not loaded after {} s", limit.as_secs_f64());
                    Err(LlmError::transient(message, "`llm.local.load_s` is how long to wait"))
                }
                Ok(told) => Ok(told.transpose().ok().flatten()),
            },
            _ = ticks.tick() => progress(Step::Loading { elapsed: started.elapsed() }),
        }
    }
}

/// One line of the supervisor; `None` at the end of the stream. Nothing beyond the line is read: nothing follows it.
async fn read_told(stream: &mut UnixStream) -> Option<Result<Told, serde_json::Error>> {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).await.ok()?;
    if line.is_empty() { None } else { Some(serde_json::from_str(&line)) }
}

fn failed(place: &Place, config: &Config, told: &Told) -> LlmError {
    if told.cause.as_deref() == Some("port") {
        let message = format!("the local model cannot be served: port {} is taken", config.port);
        return LlmError::permanent(message, "set `llm.local.port` to 0 for any free one");
    }
    not_loaded(place, told.message.as_deref().unwrap_or("the server did not say why"))
}

/// The first complaint of the log says more than what the server's end does.
fn not_loaded(place: &Place, why: &str) -> LlmError {
    let why = complaint(place).unwrap_or_else(|| why.trim_end_matches('.').to_owned());
    let message = format!("the local model cannot be loaded: {why}");
    LlmError::permanent(message, format!("see {} for all it said", place.log().display()))
}

/// A line of llama.cpp's log reads `0.00.004.076 E where: what`.
fn complaint(place: &Place) -> Option<String> {
    let bytes = fs::read(place.log()).ok()?;
    let tail = bytes.len().saturating_sub(usize::try_from(LOG_TAIL).unwrap_or(usize::MAX));
    let text = String::from_utf8_lossy(&bytes[tail..]).into_owned();
    let complaints: Vec<&str> = text.lines().filter_map(|line| line.split_once(" E ")).map(|(_, rest)| rest).collect();
    let says_why = |line: &&&str| !line.contains("failed to load model");
    let best = complaints.iter().find(says_why).or_else(|| complaints.first());
    let line = best.copied().or_else(|| text.lines().rev().find(|line| !line.trim().is_empty()))?;
    let line = line.split_once("error loading model: ").map_or(line, |(_, rest)| rest);
    Some(
        line.split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .chars()
            .filter(|letter| !letter.is_control())
            .take(300)
            .collect(),
    )
}
