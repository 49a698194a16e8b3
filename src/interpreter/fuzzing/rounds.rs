//! Whole rounds against a child that says what it likes, over a real socket: the host's side is the real one, the child is
//! a script in bytes. `judge` looks at what the host made of it.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use fimble_toolkit::ToolError;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::super::control::Exit;
use super::super::pace::Pace;
use super::super::round::{Driven, drive};
use super::super::spawn::{Child, Keeper, open_process};
use super::super::wire::Wire;
use super::super::{Ending, Host, HostCall, Limits, Run, frame};
use super::judge::{judge, look_at_calls, look_at_end};

/// A child that is waited for costs a run this much.
const PACE: Pace = Pace {
    stop: Duration::from_millis(2),
    starved: Duration::from_millis(4),
    grace: Duration::from_millis(4),
    exit: Duration::from_millis(20),
    late_exit: Duration::from_millis(20),
    reap: Duration::from_millis(20),
    look_again: Duration::from_millis(1),
    spin: Duration::from_micros(50),
};

/// A round that takes longer hangs. Far more than its limits, because machines are busy.
const HANGS: Duration = Duration::from_secs(60);

/// Calls that may run at the same time, and in all.
pub(super) const AT_ONCE: u32 = 3;
pub(super) const CALLS: u32 = 40;

/// Bytes of a frame, and of the output that is kept.
pub(super) const FRAME_BYTES: usize = 4096;
pub(super) const OUTPUT_BYTES: usize = 1024;

/// What the child does after its script.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Last {
    Exits(i32),
    /// It closes its socket and lives on.
    Closes,
    /// It holds its socket and lives on.
    Stays,
    /// Its zygote dies, and it with it.
    Orphaned,
}

/// A child by its script.
struct Actor {
    socket: UnixStream,
    keeper: Arc<Stage>,
    sent: Vec<u8>,
    last_frame: Vec<u8>,
}

/// Stands where a zygote stands.
#[derive(Debug, Default)]
struct Stage {
    dead: AtomicBool,
    killed: CancellationToken,
}

impl Keeper for Stage {
    fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    fn signal(&self, _process: &OwnedFd, signal: i32) {
        if signal == libc::SIGKILL {
            self.killed.cancel();
        }
    }
}

/// Answers by the names of methods, and writes down what reaches it.
#[derive(Default)]
pub(super) struct Toolkit {
    pub made: Mutex<Vec<u64>>,
    running: AtomicUsize,
    pub most: AtomicUsize,
    pub printed: Mutex<String>,
    pub statements: Mutex<Vec<u32>>,
    over: AtomicBool,
}

struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Host for Toolkit {
    async fn call(&self, call: HostCall) -> Result<Value, ToolError> {
        assert!(!self.over.load(Ordering::SeqCst), "the call {} after the round", call.id);
        assert_eq!(call.target, "demo");
        self.made.lock().unwrap_or_else(PoisonError::into_inner).push(call.id);
        let now = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        let _running = Running(&self.running);
        self.most.fetch_max(now, Ordering::SeqCst);
        match call.method.as_str() {
            "soon" => tokio::time::sleep(Duration::from_millis(1)).await,
            "never" => std::future::pending().await,
            "large" => return Ok(json!("x".repeat(FRAME_BYTES / 2))),
            "huge" => return Ok(json!("x".repeat(FRAME_BYTES * 2))),
            "fails" => return Err(ToolError::failed("it failed")),
            _ => {}
        }
        Ok(json!(call.id))
    }

    fn print(&self, text: &str) {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner).push_str(text);
    }

    fn statement(&self, number: u32, _of: u32) {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner).push(number);
    }
}

/// Reads a script, byte by byte; zeros after its end.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count.min(self.0.len())).map(|_| self.byte()).collect()
    }
}

impl Actor {
    async fn play(&mut self, script: &mut Script<'_>) -> std::io::Result<()> {
        while !script.0.is_empty() {
            match script.byte() % 16 {
                0 => self.call(u64::from(script.byte() % 16), script.byte()).await?,
                1 => self.say(frame::CANCEL, &json!({ "id": script.byte() % 16 })).await?,
                2 => self.say(frame::PRINT, &json!({ "text": "p".repeat(usize::from(script.byte()) * 8) })).await?,
                3 => {
                    let (number, of) = (script.byte() % 20, script.byte() % 20);
                    self.say(frame::STATEMENT, &json!({ "number": number, "of": of })).await?;
                }
                4 => self.say(frame::STOPPING, &json!({})).await?,
                5 => self.say(frame::DONE, &done_of(script.byte())).await?,
                // Also what only a host says: a program, answers to calls.
                6 => self.say(script.byte(), &json!({ "id": 1, "result": null })).await?,
                7 => {
                    let count = usize::from(script.byte());
                    let raw = script.bytes(count);
                    self.write(&raw).await?;
                }
                8 => {
                    let head = script.bytes(5);
                    self.write(&head).await?;
                }
                9 => self.read().await?,
                10 => tokio::time::sleep(Duration::from_millis(u64::from(script.byte() % 4))).await,
                11 => self.socket.shutdown().await?,
                12 => {
                    let (count, method) = (script.byte(), script.byte());
                    for id in 0..u64::from(count) {
                        self.call(1000 + id, method).await?;
                    }
                }
                13 => {
                    let again = self.last_frame.clone();
                    for _ in 0..script.byte() {
                        self.write(&again).await?;
                    }
                }
                14 => self.keeper.dead.store(true, Ordering::SeqCst),
                _ => tokio::task::yield_now().await,
            }
        }
        Ok(())
    }

    async fn call(&mut self, id: u64, how: u8) -> std::io::Result<()> {
        let target = if how >= 250 { "other" } else { "demo" };
        let methods = ["now", "soon", "never", "large", "huge", "fails"];
        let method = methods.get(usize::from(how) % methods.len());
        let call = json!({
            "id": id, "target": target, "method": method, "positional": ["x".repeat(usize::from(how) * 4)], "keyword": {},
            "line": 1, "column": 0, "ordinal": 0,
        });
        self.say(frame::CALL, &call).await
    }

    async fn say(&mut self, kind: u8, body: &Value) -> std::io::Result<()> {
        let body = body.to_string();
        let mut bytes = Vec::from((body.len() as u32).to_le_bytes());
        bytes.push(kind);
        bytes.extend(body.as_bytes());
        self.last_frame = bytes.clone();
        self.write(&bytes).await
    }

    async fn write(&mut self, mut bytes: &[u8]) -> std::io::Result<()> {
        while !bytes.is_empty() {
            let count = self.socket.write(bytes).await?;
            let (written, rest) = bytes.split_at(count);
            self.sent.extend(written);
            bytes = rest;
        }
        Ok(())
    }

    /// One frame of the host's, which is always whole and within its limit.
    async fn read(&mut self) -> std::io::Result<()> {
        let length = self.socket.read_u32_le().await? as usize;
        let kind = self.socket.read_u8().await?;
        assert!(length <= FRAME_BYTES, "a frame of {length} bytes");
        assert!(matches!(kind, frame::RUN | frame::RETURN | frame::ERROR), "a frame of kind {kind}");
        let mut body = vec![0; length];
        self.socket.read_exact(&mut body).await?;
        let read = serde_json::from_slice::<Value>(&body);
        assert!(read.is_ok(), "{:?}", String::from_utf8_lossy(&body));
        Ok(())
    }
}

fn done_of(variant: u8) -> Value {
    let captured = |name: &str| json!({ "name": name, "kind": "value", "content": "1", "type_name": "int", "preview": "1", "line": 1, "references": [] });
    let ending = match variant % 4 {
        0 => json!({ "kind": "returned", "value": "2" }),
        1 => json!({ "kind": "raised", "traceback": "T", "exception": "E", "statement": 1, "line": 1 }),
        2 => json!({ "kind": "limit", "limit": "memory", "message": "m" }),
        _ => json!({ "kind": "limit", "limit": "none", "message": "m" }),
    };
    let written = match variant / 4 % 4 {
        0 => vec![captured("x")],
        // A toolkit's name, and a name twice: no child of ours would.
        1 => vec![captured("demo")],
        2 => vec![captured("x"), captured("x")],
        _ => Vec::new(),
    };
    let statements = if variant >= 250 { 1000 } else { 3 };
    json!({
        "ending": ending, "written": written, "removed": [], "not_carried": [], "statements_done": 3, "statements": statements,
    })
}

fn run(wall_s: f64) -> Run {
    let limits = Limits {
        calls: CALLS,
        concurrent_calls: AT_ONCE,
        frame_kib: FRAME_BYTES as u64 / 1024,
        output_kib: OUTPUT_BYTES as u64 / 1024,
        wall_s,
        ..Limits::default()
    };
    Run { limits, ..super::run() }
}

/// Plays a script; asserts that the round ended as it had to. Answers how.
///
/// The first byte says what the child does after its script, the rest is the script.
pub fn round(script: &[u8]) -> Option<Ending> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    runtime.block_on(play(script, 0.02, PACE))
}

async fn play(script: &[u8], wall_s: f64, pace: Pace) -> Option<Ending> {
    let (ours, theirs) = UnixStream::pair().ok()?;
    let mut script = Script(script);
    let last = match script.byte() % 8 {
        0 => Last::Exits(3),
        1 => Last::Closes,
        2 => Last::Stays,
        3 => Last::Orphaned,
        _ => Last::Exits(0),
    };
    let keeper = Arc::<Stage>::default();
    let (ended, has_ended) = oneshot::channel();
    let wire = Wire::new(ours, FRAME_BYTES);
    let child = Child::new(wire, open_process(std::process::id()).ok()?, has_ended, Arc::<Stage>::clone(&keeper));
    let killed = keeper.killed.clone();
    let mut actor = Actor { socket: theirs, keeper: Arc::clone(&keeper), sent: Vec::new(), last_frame: Vec::new() };

    let acting = async {
        // An error is the host's end of the socket, closed.
        let _ = killed.run_until_cancelled(actor.play(&mut script)).await;
        let Actor { socket, sent, .. } = actor;
        let exit = |code, signal| Exit { code, signal, cpu_us: 0, peak_rss_kib: 0 };
        let exit = match last {
            Last::Exits(code) if !killed.is_cancelled() => Some(exit(Some(code), None)),
            Last::Orphaned if !killed.is_cancelled() => {
                keeper.dead.store(true, Ordering::SeqCst);
                None
            }
            _ => {
                let mut socket = Some(socket);
                if last == Last::Closes {
                    socket = None;
                }
                killed.cancelled().await;
                drop(socket);
                Some(exit(None, Some(libc::SIGKILL)))
            }
        };
        match exit.filter(|_| !keeper.is_dead()) {
            Some(exit) => drop(ended.send(exit)),
            None => drop(ended),
        }
        sent
    };
    let toolkit = Arc::<Toolkit>::default();
    let host: Arc<dyn Host> = Arc::<Toolkit>::clone(&toolkit);
    let (run, cancel) = (run(wall_s), CancellationToken::new());
    let driving = async {
        let driven = drive(child, &run, &host, &cancel, pace).await;
        toolkit.over.store(true, Ordering::SeqCst);
        driven
    };
    let ended = timeout(HANGS, async { tokio::join!(driving, acting) }).await;
    assert!(ended.is_ok(), "the round did not end");
    let (driven, sent) = ended.ok()?;
    assert!(driven.is_ok(), "{:?}", driven.err());
    let driven = driven.ok()?;
    assert_eq!(toolkit.running.load(Ordering::SeqCst), 0, "calls outlive their round");
    let judged = judge(&sent, &run);
    look_at_calls(&toolkit, &judged);
    match driven {
        Driven::Lost => {
            assert!(keeper.is_dead() && judged.done.is_none(), "a round that was heard is made twice");
            assert!(toolkit.made.lock().unwrap_or_else(PoisonError::into_inner).is_empty());
            None
        }
        Driven::Finished(finished) => {
            look_at_end(&finished, &toolkit, &judged, last, keeper.is_dead());
            Some(finished.ending)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::pace;
    use super::*;

    /// Steps of which most are allowed, so that rounds come far.
    fn steps() -> impl Strategy<Value = Vec<u8>> {
        let step = prop_oneof![
            4 => (0_u8..16, any::<u8>()).prop_map(|(id, how)| vec![0, id, how]),
            1 => (0_u8..16).prop_map(|id| vec![1, id]),
            2 => any::<u8>().prop_map(|size| vec![2, size]),
            1 => (1_u8..18).prop_map(|number| vec![3, number, 18]),
            1 => Just(vec![4]),
            1 => any::<u8>().prop_map(|variant| vec![5, variant]),
            3 => Just(vec![9]),
            1 => (0_u8..4).prop_map(|pause| vec![10, pause]),
            1 => (0_u8..50, 0_u8..6).prop_map(|(count, how)| vec![12, count, how]),
            1 => (0_u8..60).prop_map(|count| vec![2, 90, 13, count]),
        ];
        (any::<u8>(), prop::collection::vec(step, 0..20)).prop_map(|(last, steps)| {
            let mut script = vec![last];
            script.extend(steps.concat());
            script
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 96, ..ProptestConfig::default() })]

        #[test]
        fn a_round_with_any_child_ends_as_it_must(script in prop::collection::vec(any::<u8>(), 0..200)) {
            round(&script);
        }

        #[test]
        fn a_round_with_a_child_that_mostly_keeps_the_protocol_ends_as_it_must(script in steps()) {
            round(&script);
        }
    }

    /// How a script ends where time is no matter.
    fn ending(script: &[u8]) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        match runtime.block_on(play(script, 30.0, pace::PACE)) {
            None => "made again".to_owned(),
            Some(Ending::Returned { value }) => format!("returned {}", value.unwrap_or_default()),
            Some(Ending::Raised { exception, .. }) => format!("raised {exception}"),
            Some(Ending::Limit { limit, .. }) => format!("limit {limit}"),
            Some(Ending::Crashed { message } | Ending::Lost { message }) => message,
            Some(Ending::Cancelled) => "cancelled".to_owned(),
        }
    }

    #[rstest::rstest]
    #[case::a_call_and_its_answer(&[4, 0, 1, 0, 9, 9, 5, 0], "returned 2")]
    #[case::an_exception(&[4, 5, 13], "raised E")]
    #[case::the_first_last_word_counts(&[4, 5, 12, 5, 13], "returned 2")]
    #[case::a_call_after_the_last_word(&[4, 5, 0, 0, 1, 0], "returned 2")]
    #[case::nonsense_after_the_last_word(&[4, 5, 0, 6, 99, 7, 3, 1, 2, 3], "returned 2")]
    #[case::nonsense_before_it(&[4, 6, 99, 5, 0], "a message of kind 99")]
    #[case::a_forged_answer(&[4, 0, 1, 2, 6, 2, 5, 0], "a message of kind 2")]
    #[case::a_program_for_the_host(&[4, 6, 1], "a message of kind 1 ")]
    #[case::one_call_twice(&[4, 0, 1, 2, 0, 1, 0, 5, 0], "a second call with the id 1")]
    #[case::one_call_again_after_its_answer(&[4, 0, 1, 0, 9, 9, 0, 1, 0, 5, 0], "a second call with the id 1")]
    #[case::one_call_again_after_its_end(&[4, 0, 1, 2, 1, 1, 0, 1, 0, 5, 0], "a second call with the id 1")]
    #[case::a_cancellation_of_nothing(&[4, 1, 7, 5, 0], "a cancellation of the unknown call 7")]
    #[case::a_cancellation_twice(&[4, 0, 1, 2, 1, 1, 1, 1, 5, 0], "returned 2")]
    #[case::a_cancellation_of_a_call_that_waits(&[4, 12, 4, 2, 0, 1, 2, 1, 1, 5, 0], "returned 2")]
    #[case::an_unknown_toolkit(&[4, 0, 1, 255], "a call of the unknown name `other`")]
    #[case::more_calls_than_allowed(&[2, 12, 60, 0], "limit calls")]
    #[case::statements_backwards(&[4, 3, 2, 3, 3, 1, 3, 5, 0], "statement 1 of 3 after 2 of 3")]
    #[case::another_number_of_statements(&[4, 3, 1, 3, 3, 2, 4, 5, 0], "statement 2 of 4 after 1 of 3")]
    #[case::stopping_for_ever(&[2, 4, 4, 4, 4, 4], "it said 5 times that it stopped")]
    #[case::too_much_output(&[2, 2, 255, 13, 100], "limit output")]
    #[case::a_toolkit_as_variable(&[4, 5, 4], "a variable in place of `demo`")]
    #[case::a_variable_twice(&[4, 5, 8], "the variable `x` twice")]
    #[case::half_a_frame(&[4, 8, 10, 0, 0, 0, 21], "exited with code 0")]
    #[case::a_giant(&[4, 8, 255, 255, 255, 255, 21], "a message of 4294967295 bytes")]
    #[case::no_last_word(&[4], "exited with code 0")]
    #[case::a_last_word_and_a_bad_end(&[0, 5, 0], "exited with code 3")]
    #[case::a_last_word_and_no_end(&[2, 5, 0], "ended by SIGKILL")]
    #[case::a_closed_socket(&[1], "ended by SIGKILL")]
    #[case::half_a_closed_socket(&[2, 11], "ended by SIGKILL")]
    #[case::a_dead_zygote_before_anything(&[3], "made again")]
    #[case::a_dead_zygote_after_a_call(&[3, 0, 1, 0, 9, 9], "lost together with the interpreter")]
    #[case::a_dead_zygote_after_the_last_word(&[3, 5, 0], "returned 2")]
    fn a_script_ends(#[case] script: &[u8], #[case] expected: &str) {
        let ending = ending(script);
        assert!(ending.contains(expected), "{ending}");
    }
}
