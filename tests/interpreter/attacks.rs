//! Programs that attack, kept as Python in `attacks/*.py`, each under a line that says what must not happen. What happened
//! is judged from outside, in `world`, and never by a program's own words; after each, an observer must find everything as it
//! was. `users.rs` runs all of it again as another user, with less isolation, and with refusals in place of kills.
//!
//! A head is `#: what it tries | what must not happen | word key=value …`. Words: `bare`, it succeeds without a jail, which
//! proves the judge; `dies`, its process may crash; `full`, what it tries is not promised by less. Keys: `ends` is how it must
//! end; `memory` (MiB), `cpu` (s), `wall` (s), `scratch` (MiB) are its limits, `tasks` and `files` the most there may be;
//! `host` is by how many MiB the host may grow.
//!
//! What `reduced` promises, a group at a time: files, contents and all attributes are safe, names and sizes can be asked for;
//! processes, network, frames, memory, signals: all the same; limits: the same, but the scratch is bounded by a look
//! of the host now and then, and threads by memory alone unless the zygote has a user id of its own; rounds: the same.

mod world;

use std::time::Duration;

use super::*;
use world::{Sampler, World};

const PRELUDE: &str = include_str!("attacks/prelude.py");
const OBSERVER: &str = include_str!("attacks/observer.py");

/// Mistakes of a script, after which it has attacked nothing.
const MISTAKES: &[&str] =
    &["NameError", "SyntaxError", "IndentationError", "AttributeError", "TypeError", "ImportError", "KeyError"];

/// The most that a process has besides what its program asked for: CPython and its libraries.
const BASE_MIB: u64 = 64;

/// What an attack may get onto the disk before the host has looked, on a machine that is busy with other things. The attacks
/// try for several times as much.
const BETWEEN_LOOKS_MIB: u64 = 250;

struct Attack<'a> {
    title: &'a str,
    settings: Vec<&'a str>,
    source: String,
}

impl<'a> Attack<'a> {
    /// All in a file.
    fn all(text: &'a str) -> Vec<Self> {
        let mut found = Vec::<Self>::new();
        for line in text.lines() {
            if let Some(head) = line.strip_prefix("#: ") {
                let mut parts = head.splitn(3, '|').map(str::trim);
                let title = parts.next().unwrap();
                let settings = parts.nth(1).unwrap_or_default().split_whitespace().collect();
                found.push(Self { title, settings, source: String::new() });
            } else if let Some(last) = found.last_mut() {
                last.source.push_str(line);
                last.source.push('\n');
            }
        }
        found
    }

    fn has(&self, word: &str) -> bool {
        self.settings.contains(&word)
    }

    fn value<T: std::str::FromStr>(&self, key: &str) -> Option<T> {
        self.settings.iter().find_map(|one| one.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
    }

    fn run(&self, world: &World) -> Run {
        let mut run = program(&format!("{}{PRELUDE}{}", world.names(), self.source));
        run.limits = Limits {
            wall_s: self.value("wall").unwrap_or(5.0),
            cpu_s: self.value("cpu").unwrap_or(30),
            memory_mib: self.value("memory").unwrap_or(512),
            scratch_mib: self.value("scratch").unwrap_or(32),
            ..run.limits
        };
        run
    }
}

/// Runs a group and answers what went wrong.
async fn wrongs(attacks: &[Attack<'_>]) -> Vec<String> {
    let config = config();
    let reduced = config.isolation != Level::Full;
    let is_root = nix::unistd::geteuid().is_root();
    let mut most_scratch = 0;
    let sampler = Sampler::start();
    let mut world = World::new(config.uid);
    let interpreter = start().await;
    let usual = output(&interpreter, OBSERVER).await;
    let mut wrongs = Vec::new();
    for attack in attacks.iter().filter(|attack| !(reduced && attack.has("full"))) {
        let mut wrong = |what: String| wrongs.push(format!("{}: {what}", attack.title));
        let host = Arc::<Recorder>::default();
        let (dynamic, run): (Arc<dyn Host>, _) = (Arc::<Recorder>::clone(&host), attack.run(&world));
        let limits = run.limits.clone();
        let own = world::reset_own_peak();
        sampler.take();
        let round = interpreter.run(run, dynamic, CancellationToken::new());
        let Ok(finished) = tokio::time::timeout(Duration::from_secs(90), round).await else {
            wrong("the host still waits".to_owned());
            continue;
        };
        let finished = finished.unwrap();
        let (peak, grown) = (sampler.take(), world::own_peak().saturating_sub(own) / 1024);

        let calls = host.calls.lock().unwrap().clone();
        let prints = host.prints.lock().unwrap().concat();
        for harm in world.harm(&format!("{finished:?} {calls:?} {prints}")) {
            wrong(harm);
        }
        if let Some(ending) = wrong_ending(attack, &finished, config.spares_deadly_calls) {
            wrong(ending);
        }
        if calls.len() > limits.calls as usize || calls.iter().any(|call| call.target != "demo") {
            wrong(format!("{} calls", calls.len()));
        }
        if grown > attack.value("host").unwrap_or(200) {
            wrong(format!("the host grew by {grown} MiB"));
        }
        let most = limits.memory_mib + limits.scratch_mib + BASE_MIB;
        if finished.usage.peak_rss_kib / 1024 > most {
            wrong(format!("{} MiB resident, more than {most}", finished.usage.peak_rss_kib / 1024));
        }
        if finished.usage.cpu > Duration::from_secs(limits.cpu_s + 2) {
            wrong(format!("{:?} of processor time", finished.usage.cpu));
        }
        // Besides: the zygote, its outer process, spares.
        let most_tasks = attack.value("tasks").unwrap_or(64);
        if peak.tasks > most_tasks && (!reduced || is_root) {
            wrong(format!("{} tasks, more than {most_tasks}", peak.tasks));
        }
        most_scratch = most_scratch.max(peak.scratch_bytes);
        // Without a mount, what is written between two looks of the host comes on top.
        let most = (limits.scratch_mib + if reduced { BETWEEN_LOOKS_MIB } else { 0 }) * 1024 * 1024;
        if peak.scratch_bytes > most {
            wrong(format!("{} bytes in the scratch", peak.scratch_bytes));
        }
        let files = attack.value("files").map(|most: u64| if reduced { most * 3 } else { most });
        if files.is_some_and(|most| peak.scratch_files > most) {
            wrong(format!("{} files in the scratch", peak.scratch_files));
        }
        // Once in the child that was there during the attack, once in a new one.
        for _ in 0..2 {
            let seen = run_observer(&interpreter).await;
            if seen != usual {
                wrong(format!("afterwards a round finds\n{seen}and not\n{usual}"));
            }
        }
    }
    if is_root && attacks.iter().any(|attack| attack.value::<u64>("scratch").is_some()) && most_scratch == 0 {
        wrongs.push("the sampler saw no scratch".to_owned());
    }
    wrongs
}

async fn run_observer(interpreter: &Interpreter) -> String {
    let finished = run(interpreter, OBSERVER).await;
    match finished.ending {
        Ending::Returned { .. } => finished.output,
        other => format!("{other:?}\n{}", finished.output),
    }
}

/// What is wrong with how an attack ended, if anything is.
fn wrong_ending(attack: &Attack<'_>, finished: &Finished, spares: bool) -> Option<String> {
    let (name, text) = match &finished.ending {
        Ending::Returned { .. } => ("returned", String::new()),
        Ending::Raised { exception, traceback, .. } => {
            if MISTAKES.contains(&exception.as_str()) {
                return Some(format!("it is no program: {traceback}"));
            }
            ("raised", String::new())
        }
        Ending::Limit { .. } => ("limit", String::new()),
        Ending::Crashed { message } | Ending::Lost { message } => ("crashed", message.clone()),
        Ending::Cancelled => ("cancelled", String::new()),
    };
    // What CPython says of a thread that a limit ended before it had begun is no mistake of the script.
    let said = finished.output.split("Exception ignored in").next().unwrap_or_default();
    if let Some(mistake) = MISTAKES.iter().find(|mistake| {
        said.lines().any(|line| line.strip_prefix(**mistake).is_some_and(|rest| rest.starts_with(": ")))
    }) {
        return Some(format!("it is no program: {mistake}\n{}", finished.output));
    }
    if let Some(expected) = attack.value::<String>("ends") {
        let kept = !finished.written.is_empty() && name == "crashed";
        return (name != expected || kept).then(|| format!("{:?} {:?}", finished.ending, finished.written));
    }
    let may_crash = attack.has("dies") || text.contains("SIGSYS") && !spares;
    (name == "crashed" && !may_crash).then_some(text)
}

async fn all_fail(text: &str, least: usize) {
    let attacks = Attack::all(text);
    assert!(attacks.len() >= least, "{} attacks", attacks.len());
    let wrongs = wrongs(&attacks).await;
    assert!(wrongs.is_empty(), "{}", wrongs.join("\n\n"));
}

macro_rules! groups {
    ($($test:ident: $file:literal of $least:literal;)*) => {
        /// Every group, for the proof that the judge sees what succeeds.
        const GROUPS: &[&str] = &[$(include_str!(concat!("attacks/", $file, ".py"))),*];
        $(
            #[tokio::test]
            async fn $test() {
                all_fail(include_str!(concat!("attacks/", $file, ".py")), $least).await;
            }
        )*
    };
}

groups! {
    files_outside_stay_unread_and_unchanged: "files" of 36;
    processes_are_neither_made_nor_touched: "processes" of 28;
    nothing_leaves_by_a_socket: "network" of 16;
    what_the_kernel_counts_is_bounded: "limits" of 32;
    bytes_from_a_child_are_never_believed: "frames" of 39;
    a_round_leaves_nothing_for_the_next: "rounds" of 14;
    compiled_code_is_held_like_python: "memory" of 13;
    signals_reach_nobody_else: "signals" of 15;
}

#[tokio::test]
async fn ordinary_programs_work() {
    let reduced = config().isolation != Level::Full;
    let interpreter = start().await;
    let mut broken = Vec::new();
    for control in Attack::all(include_str!("attacks/control.py")) {
        if reduced && control.has("full") {
            continue;
        }
        let finished = run(&interpreter, &format!("import os, sys, time, ctypes\n{}", control.source)).await;
        if !matches!(finished.ending, Ending::Returned { .. }) || finished.output != "works\n" {
            broken.push(format!("{}: {:?}\n{}", control.title, finished.ending, finished.output));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
}

/// The judge must be able to find something: without a jail, what succeeds is seen. `users.rs` runs it as an ordinary user.
#[tokio::test]
async fn without_a_jail_the_judge_sees_the_harm() {
    if config().isolation != Level::None {
        return;
    }
    let mut unseen = Vec::new();
    let mut count = 0;
    for attack in GROUPS.iter().flat_map(|text| Attack::all(text)).filter(|attack| attack.has("bare")) {
        let mut world = World::new(config().uid);
        let host = Arc::<Recorder>::default();
        let finished = finish(&start().await, attack.run(&world), &host).await;
        count += 1;
        if world.harm(&format!("{finished:?}")).is_empty() {
            unseen.push(format!("{}: {finished:?}", attack.title));
        }
    }
    assert!(count >= 30, "{count}");
    assert!(unseen.is_empty(), "{}", unseen.join("\n\n"));
}
