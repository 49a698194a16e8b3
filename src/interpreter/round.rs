//! One round, from the program to its end. Everything that the child says is hostile: what is malformed, forged or too
//! much ends it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use fimble_toolkit::ToolError;
use futures_util::future::{AbortHandle, Abortable, BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::Value;
use tokio::task::coop::unconstrained;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::control::Exit;
use super::done::{self, Done};
use super::ending::{self, Seen, Stop};
use super::message::{self, Cancelled, Opening, Printed, StatementDone};
use super::output::{CUT, Output};
use super::overtime::{Overtime, computed_in};
use super::pace::Pace;
use super::scratch::Watch;
use super::spawn::Child;
use super::wall::counted;
use super::wire::{Frame, Incoming};
use super::{Error, Finished, Host, HostCall, Run, Usage, frame};

/// A program is told to stop once by the host, and by the kernel each second from its CPU limit to its end.
const STOPS: u32 = 4;

/// A program that prints this many times what is kept is stopped.
const OUTPUT_FACTOR: u64 = 64;

/// A program that prints this many times is stopped, however little it prints.
const PRINTS: u64 = 1_000_000;

/// The first prints of a round are shown one by one. Later ones that arrived together are shown together.
const SINGLE_PRINTS: u64 = 1_000;

/// A result of more bytes takes as long to free as to write: not while the child waits for the rest of it.
const LARGE: usize = 64 * 1024;

/// Bytes of prints that are shown together.
const TOGETHER: usize = 32 * 1024;

/// Bytes that are taken from the child after its time: more than fits into its socket, so that it cannot go on by talking.
const WAITING: usize = 1024 * 1024;

const YEAR: Duration = Duration::from_secs(31_536_000);

/// What came of it.
pub(super) enum Driven {
    Finished(Box<Finished>),
    /// The zygote ended before the program called or printed anything: nobody saw it, so it can be run again.
    Lost,
}

/// An answer to a call, and the bytes that the call held.
type Answer = (u64, usize, Result<Result<Value, ToolError>, futures_util::future::Aborted>);

struct Round<'a> {
    child: Child,
    pace: Pace,
    /// Of its files.
    watch: Watch,
    run: &'a Run,
    host: &'a Arc<dyn Host>,
    output: Output,
    prints: u64,
    /// Output that the host did not see yet.
    unseen: String,
    /// Every id that the child used.
    used: HashSet<u64>,
    running: HashMap<u64, AbortHandle>,
    answers: FuturesUnordered<BoxFuture<'a, Answer>>,
    queued: VecDeque<(HostCall, usize)>,
    /// Bytes of all calls that run or are queued.
    held: usize,
    statements: (u32, u32),
    stop: Option<Stop>,
    done: Option<Done>,
    lost_socket: bool,
    started: Instant,
    /// The wall limit.
    wall: Duration,
    /// When to look at the time again, or to kill a program that was told to stop.
    deadline: Instant,
    /// When to look at its CPU time, which is over no sooner.
    cpu_at: Instant,
    /// What it has left since it was told to stop.
    told: Option<Overtime>,
    /// How often it said that it stopped.
    stops: u32,
    frame_bytes: usize,
    /// True once it called or printed something.
    heard: bool,
}

/// Whether the round goes on.
enum Flow {
    On,
    /// The child has nothing more to say.
    Ended,
    /// It is to be killed.
    Kill(Stop),
}

/// Runs a program in a child. Dropping the future kills the child and drops the calls.
pub(super) async fn drive(
    mut child: Child,
    run: &Run,
    host: &Arc<dyn Host>,
    cancel: &CancellationToken,
    pace: Pace,
) -> Result<Driven, Error> {
    let limits = &run.limits;
    let frame_bytes =
        usize::try_from(limits.frame_kib.saturating_mul(1024)).unwrap_or(usize::MAX).min(u32::MAX as usize);
    let opening = serde_json::to_vec(&Opening::of(run, pace.spin)).map_err(Error::protocol)?;
    if opening.len() > frame_bytes {
        return Err(Error::Oversize { size_kib: opening.len() as u64 / 1024, limit_kib: limits.frame_kib });
    }
    let started = Instant::now();
    // A limit of more than a year is none.
    let wall = Duration::try_from_secs_f64(limits.wall_s).unwrap_or(YEAR).min(YEAR);
    let watch = child.watch_scratch(limits.scratch_mib);
    let mut round = Round {
        child,
        pace,
        watch,
        run,
        host,
        output: Output::new(usize::try_from(limits.output_kib.saturating_mul(1024)).unwrap_or(usize::MAX)),
        prints: 0,
        unseen: String::new(),
        used: HashSet::new(),
        running: HashMap::new(),
        answers: FuturesUnordered::new(),
        queued: VecDeque::new(),
        held: 0,
        statements: (0, 0),
        stop: None,
        done: None,
        lost_socket: false,
        started,
        wall,
        deadline: started + pace.tells_at(wall),
        cpu_at: started + pace.tells_at(wall),
        told: None,
        stops: 0,
        frame_bytes,
        heard: false,
    };
    round.child.wire.begin(frame_bytes, pace.spin);
    round.plan_cpu_look(pace.tells_at(limits.cpu()));
    host.begins(round.child.process());
    round.child.wire.send(frame::RUN, &opening);
    let ended = round.talk(cancel).await?;
    round.show();
    if let Some(stop) = ended {
        round.child.signal(libc::SIGKILL);
        round.stop = Some(stop);
    }
    round.drop_calls();
    let exit = round.wait_for_exit().await;
    let wall = started.elapsed();
    let is_unseen = !round.heard && round.done.is_none();
    if exit.is_none() && is_unseen && round.stop.is_none() && round.child.is_orphan() {
        return Ok(Driven::Lost);
    }
    Ok(Driven::Finished(Box::new(round.finish(exit, wall))))
}

impl Round<'_> {
    /// Speaks with the child until its last word. Answers why it must be killed, if it must.
    async fn talk(&mut self, cancel: &CancellationToken) -> Result<Option<Stop>, Error> {
        loop {
            let room = self.has_room();
            let reads = self.reads();
            if !reads || !self.child.wire.has_frame() {
                self.show();
            }
            let flow = tokio::select! {
                biased;
                () = cancel.cancelled() => Flow::Kill(Stop::Cancelled),
                () = sleep_until(self.deadline) => match self.take_waiting() {
                    Flow::On => self.pass_deadline(),
                    last => last,
                },
                () = self.watch.exceeded(), if self.stop.is_none() => self.tell_to_stop(Stop::Limit("scratch")),
                Some(answer) = self.answers.next(), if room && !self.answers.is_empty() => self.answer(answer),
                incoming = self.child.wire.next(reads) => self.take(incoming),
            };
            match flow {
                Flow::On => {}
                Flow::Ended => return Ok(None),
                Flow::Kill(stop) => return Ok(Some(stop)),
            }
        }
    }

    /// What the host holds for a child is bounded: a child that sends faster than it is served has to wait.
    fn reads(&self) -> bool {
        self.held <= self.frame_bytes && self.has_room()
    }

    fn has_room(&self) -> bool {
        self.child.wire.unsent() <= self.frame_bytes
    }

    /// Takes what the child said before its time was over, and this host was too busy to hear.
    fn take_waiting(&mut self) -> Flow {
        let mut taken = 0;
        while taken <= WAITING && self.reads() {
            let Some(incoming) = unconstrained(self.child.wire.next(true)).now_or_never() else { break };
            if let Ok(Incoming::Frame(frame)) = &incoming {
                taken += frame.body.len().max(1);
            }
            match self.take(incoming) {
                Flow::On => {}
                last => return last,
            }
        }
        Flow::On
    }

    /// The first time, the program is told; the second time, it is killed. What it waited for others is given back before.
    fn pass_deadline(&mut self) -> Flow {
        if let Some(stop) = self.stop.take() {
            let Some(left) = self.told.as_ref().and_then(|told| told.left(self.pace.starved)) else {
                return Flow::Kill(stop);
            };
            self.stop = Some(stop);
            self.deadline = Instant::now() + left;
            return Flow::On;
        }
        if Instant::now() >= self.cpu_at {
            let limit = self.run.limits.cpu();
            match self.cpu_left(self.pace.tells_at(limit)) {
                Some(left) if left.is_zero() => {
                    return self.tell(Stop::Limit("cpu"), libc::SIGXCPU, self.cpu_left(limit).unwrap_or_default());
                }
                left => self.plan_cpu_look(left.unwrap_or(YEAR)),
            }
        }
        let counted = self.counted();
        let left = self.pace.tells_at(self.wall).saturating_sub(counted);
        if left.is_zero() {
            return self.tell(Stop::Limit("wall"), libc::SIGUSR1, self.wall.saturating_sub(counted));
        }
        self.deadline = (Instant::now() + left.max(self.pace.look_again)).min(self.cpu_at);
        Flow::On
    }

    /// How much of its wall time the program has used.
    fn counted(&self) -> Duration {
        let (since, waited) = (self.started.elapsed(), self.host.waited());
        if waited.is_zero() {
            return since;
        }
        counted(since, waited, self.child.process().cpu().unwrap_or_default())
    }

    /// What it may still compute until it has computed for so long; `None` once it has ended.
    fn cpu_left(&self, until: Duration) -> Option<Duration> {
        Some(until.saturating_sub(self.child.process().cpu()?))
    }

    /// Looks when it can have computed for so long, were all processors its own.
    fn plan_cpu_look(&mut self, left: Duration) {
        self.cpu_at = Instant::now() + computed_in(left).clamp(self.pace.stop / 8, YEAR);
        self.deadline = self.deadline.min(self.cpu_at);
    }

    fn tell_to_stop(&mut self, stop: Stop) -> Flow {
        self.tell(stop, libc::SIGUSR1, Duration::ZERO)
    }

    /// Tells it by a signal that it is to stop, `ahead` of the time when it must; it has a moment all the same if that is less.
    fn tell(&mut self, stop: Stop, signal: i32, ahead: Duration) -> Flow {
        if self.stop.is_none() {
            self.give(stop, self.pace.stop.max(ahead));
            self.child.signal(signal);
        }
        Flow::On
    }

    /// Gives the child that much time to end.
    fn give(&mut self, stop: Stop, allowed: Duration) {
        self.stop = Some(stop);
        self.told = Some(Overtime::begin(self.child.process(), allowed));
        self.deadline = Instant::now() + allowed;
    }

    /// A program that was told to stop has ended.
    fn stopped(&mut self) -> Result<Flow, String> {
        self.stops += 1;
        if self.stops > STOPS {
            return Err(format!("it said {} times that it stopped", self.stops));
        }
        // What is told ahead of its time has its last words in that.
        let is_sudden = |stop: &mut Stop| !matches!(stop, Stop::Limit("wall" | "cpu"));
        if self.stops == 1
            && let Some(stop) = self.stop.take_if(is_sudden)
        {
            self.give(stop, self.pace.grace);
        }
        Ok(Flow::On)
    }

    fn take(&mut self, incoming: io::Result<Incoming>) -> Flow {
        match incoming {
            Ok(Incoming::Frame(frame)) => self.take_frame(frame),
            Ok(Incoming::Closed) | Err(_) => {
                self.lost_socket = self.done.is_none() && !self.child.process().is_exiting();
                Flow::Ended
            }
            Ok(Incoming::Oversize(bytes)) => Flow::Kill(Stop::Nonsense(format!("a message of {bytes} bytes"))),
        }
    }

    fn take_frame(&mut self, Frame { kind, body }: Frame) -> Flow {
        self.heard |= matches!(kind, frame::PRINT | frame::CALL);
        if kind != frame::PRINT {
            self.show();
        }
        let taken = match kind {
            frame::PRINT => message::read::<Printed>(&body).map(|printed| self.print(&printed.text)),
            frame::STATEMENT => message::read::<StatementDone>(&body).and_then(|done| self.count(&done)),
            frame::CALL => message::read_call(&body).and_then(|call| self.call(call, body.len())),
            frame::CANCEL => message::read::<Cancelled>(&body).and_then(|cancelled| self.cancel(cancelled.id)),
            frame::STOPPING => self.stopped(),
            frame::DONE => message::read::<Done>(&body).and_then(|done| self.end(done)),
            _ => Err(format!("a message of kind {kind}")),
        };
        taken.unwrap_or_else(|reason| Flow::Kill(Stop::Nonsense(reason)))
    }

    fn print(&mut self, text: &str) -> Flow {
        self.prints += 1;
        let (shown, cut) = self.output.push(text);
        self.unseen.push_str(shown);
        if cut {
            self.unseen.push_str(CUT);
        }
        if self.prints <= SINGLE_PRINTS || self.unseen.len() >= TOGETHER {
            self.show();
        }
        let most = self.run.limits.output_kib.saturating_mul(1024 * OUTPUT_FACTOR);
        if self.prints > PRINTS || self.output.total() > most {
            return self.tell_to_stop(Stop::Limit("output"));
        }
        Flow::On
    }

    fn show(&mut self) {
        if !self.unseen.is_empty() {
            self.host.print(&self.unseen);
            self.unseen.clear();
        }
    }

    /// Each statement is told once, in order; a statement is a byte at least.
    fn count(&mut self, done: &StatementDone) -> Result<Flow, String> {
        let StatementDone { number, of } = *done;
        let (last, known) = self.statements;
        let known = if last == 0 { of } else { known };
        if number <= last || number > of || of != known || of as usize > self.run.source.len() {
            return Err(format!("statement {number} of {of} after {last} of {known}"));
        }
        self.statements = (number, of);
        self.host.statement(number, of);
        Ok(Flow::On)
    }

    fn call(&mut self, call: HostCall, bytes: usize) -> Result<Flow, String> {
        if !self.run.proxies.contains(&call.target) {
            return Err(format!("a call of the unknown name `{}`", call.target.escape_debug()));
        }
        if self.used.contains(&call.id) {
            return Err(format!("a second call with the id {}", call.id));
        }
        if self.used.len() >= self.run.limits.calls as usize {
            return Ok(self.tell_to_stop(Stop::Limit("calls")));
        }
        self.used.insert(call.id);
        self.held += bytes;
        self.queued.push_back((call, bytes));
        self.start_calls();
        Ok(Flow::On)
    }

    /// Starts queued calls as far as they may run at the same time.
    fn start_calls(&mut self) {
        while self.running.len() < self.run.limits.concurrent_calls.max(1) as usize {
            let Some((call, bytes)) = self.queued.pop_front() else { return };
            let id = call.id;
            let host = Arc::clone(self.host);
            let (handle, registration) = AbortHandle::new_pair();
            self.running.insert(id, handle);
            let answer = Abortable::new(async move { host.call(call).await }, registration);
            self.answers.push(Box::pin(async move { (id, bytes, answer.await) }));
        }
    }

    fn answer(&mut self, (id, bytes, result): Answer) -> Flow {
        self.running.remove(&id);
        self.held = self.held.saturating_sub(bytes);
        if let Ok(result) = result {
            let (kind, body) = message::write_answer(id, &result, self.frame_bytes);
            self.child.wire.send(kind, &body);
            if body.len() > LARGE {
                spawn_blocking(move || drop(result));
            }
        }
        self.start_calls();
        Flow::On
    }

    fn cancel(&mut self, id: u64) -> Result<Flow, String> {
        if !self.used.contains(&id) {
            return Err(format!("a cancellation of the unknown call {id}"));
        }
        if let Some(running) = self.running.get(&id) {
            self.host.let_go(id);
            running.abort();
        } else if let Some(index) = self.queued.iter().position(|(call, _)| call.id == id) {
            // Otherwise its answer is on its way.
            if let Some((_, bytes)) = self.queued.remove(index) {
                self.held = self.held.saturating_sub(bytes);
            }
        }
        Ok(Flow::On)
    }

    fn end(&mut self, done: Done) -> Result<Flow, String> {
        self.done = Some(done::check(done, self.run)?);
        Ok(Flow::Ended)
    }

    fn drop_calls(&mut self) {
        self.answers.clear();
        self.running.clear();
        self.queued.clear();
    }

    /// A child that closed its socket, or said its last word, has a moment to end.
    async fn wait_for_exit(&mut self) -> Option<Exit> {
        let by_itself = self.stop.is_none() || self.done.is_some();
        let after_done = self.stop.is_none() && self.done.is_some();
        let longest = if after_done { self.pace.late_exit } else { self.pace.grace };
        // It mostly ends at once, and looking costs time.
        let (mut left, mut overtime) = (by_itself.then_some(self.pace.stop), None);
        while let Some(within) = left {
            if let Ok(exit) = timeout(within, self.child.ended()).await {
                return exit;
            }
            let begun = overtime.get_or_insert_with(|| Overtime::begin(self.child.process(), self.pace.exit));
            left = begun.left(longest);
        }
        self.child.signal(libc::SIGKILL);
        timeout(self.pace.reap, self.child.ended()).await.ok().flatten()
    }

    fn finish(self, exit: Option<Exit>, wall: Duration) -> Finished {
        let usage = Usage {
            wall,
            cpu: Duration::from_micros(exit.map_or(0, |exit| exit.cpu_us)),
            peak_rss_kib: exit.map_or(0, |exit| exit.peak_rss_kib),
            calls: u32::try_from(self.used.len()).unwrap_or(u32::MAX),
        };
        // Without its zygote, nobody can tell the exit code; but then the process is certainly at its end.
        let clean = exit.map_or(self.child.is_orphan(), |exit| exit.code == Some(0));
        let said_its_end = self.done.is_some();
        let done = self.done.filter(|_| clean && !matches!(self.stop, Some(Stop::Cancelled | Stop::Nonsense(_))));
        let (stop, lost_socket, statements) = (self.stop, self.lost_socket, self.statements);
        let seen_done = done.as_ref().map(|done| &done.ending);
        let seen = Seen { stop, done: seen_done, said_its_end, lost_socket, exit, statements };
        let ending = ending::decide(&seen, &self.run.limits);
        let (statements_done, statements) =
            done.as_ref().map_or(statements, |done| (done.statements_done, done.statements));
        let (written, removed, not_carried) = done.map_or_else(Default::default, |done| {
            let (written, surplus) = done::within_limits(done.written, &self.run.limits);
            (written, done.removed, done.not_carried.into_iter().chain(surplus).collect())
        });
        let output = self.output.finish();
        Finished { ending, output, written, removed, not_carried, statements_done, statements, usage }
    }
}
