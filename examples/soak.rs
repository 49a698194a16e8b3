//! Runs many rounds, among them ones that die, hang, eat memory or are cancelled, while children and zygotes are killed from
//! outside, and then looks for what is left. `cargo run --release --example soak [ROUNDS] [full|reduced] [SEED]`; default
//! 20,000 rounds in `full`. It ends with an error if anything grew.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use fimble::interpreter::{Config, Ending, Host, HostCall, Interpreter, Level, Limits, Run};
use fimble_toolkit::ToolError;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

type Failed = Box<dyn Error + Send + Sync>;

/// Rounds at the same time.
const AT_ONCE: u64 = 4;

/// How much the memory of this process may differ between two moments when nothing runs.
const ALLOWED_MIB: u64 = 32;

fn main() -> Result<(), Failed> {
    fimble::interpreter::init();
    let mut arguments = std::env::args().skip(1);
    let rounds = arguments.next().map_or(Ok(20_000), |text| text.parse())?;
    let level = match arguments.next().as_deref() {
        None | Some("full") => Level::Full,
        Some("reduced") => Level::Reduced,
        Some(other) => return Err(format!("no level of isolation: {other}").into()),
    };
    let seed = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let config = Config { isolation: level, ..Config::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    println!("{}", runtime.block_on(soak(config, rounds, seed))?);
    Ok(())
}

/// Answers calls at once, or never.
struct Answers;

#[async_trait]
impl Host for Answers {
    async fn call(&self, call: HostCall) -> Result<Value, ToolError> {
        if call.method == "forever" {
            std::future::pending::<()>().await;
        }
        Ok(json!(call.positional.len()))
    }
    fn print(&self, _text: &str) {}
    fn statement(&self, _number: u32, _of: u32) {}
}

/// What became of the rounds.
#[derive(Default)]
struct Counts {
    returned: AtomicU64,
    raised: AtomicU64,
    limit: AtomicU64,
    crashed: AtomicU64,
    cancelled: AtomicU64,
    dropped: AtomicU64,
    killed: AtomicU64,
    failed: AtomicU64,
    /// Why rounds were not run, each reason once.
    reasons: Mutex<BTreeSet<String>>,
}

/// What may not grow.
#[derive(Debug, Clone, Copy)]
struct Held {
    descriptors: usize,
    processes: usize,
    mounts: usize,
    zygote_mounts: usize,
    files: usize,
    memory_mib: u64,
}

/// Runs the rounds. An error says what grew.
pub async fn soak(config: Config, rounds: u64, seed: u64) -> Result<String, Failed> {
    let scratch = tempfile::Builder::new().prefix("soak-").tempdir_in("/tmp")?;
    std::fs::set_permissions(scratch.path(), std::os::unix::fs::PermissionsExt::from_mode(0o1777))?;
    let config = Config { scratch_folder: scratch.path().to_owned(), rounds_per_zygote: 300, ..config };
    let interpreter = Interpreter::start(&config).await?;
    let counts = Arc::<Counts>::default();
    let begun = Instant::now();
    // What is made once is made by then.
    let warm = rounds / 10;
    run_many(&interpreter, 0..warm, seed, &counts).await?;
    let before = settled(&interpreter, &config, scratch.path(), None).await?;
    run_many(&interpreter, warm..rounds, seed, &counts).await?;
    let after = settled(&interpreter, &config, scratch.path(), Some(&before)).await?;
    let grown = [
        ("descriptors", after.descriptors > before.descriptors),
        ("processes", after.processes > before.processes),
        ("mounts", after.mounts > before.mounts || after.zygote_mounts > before.zygote_mounts),
        ("files", after.files > before.files),
        ("memory", after.memory_mib > before.memory_mib + ALLOWED_MIB),
    ];
    let count = |one: &AtomicU64| one.load(Ordering::Relaxed);
    let report = format!(
        "{rounds} rounds ({}) in {:.0} s: {} returned, {} raised, {} limits, {} crashed, {} cancelled, {} dropped, {} processes \
         killed from outside, {} not run {:?}\nbefore {before:?}\nafter  {after:?}",
        config.isolation.as_str(),
        begun.elapsed().as_secs_f64(),
        count(&counts.returned),
        count(&counts.raised),
        count(&counts.limit),
        count(&counts.crashed),
        count(&counts.cancelled),
        count(&counts.dropped),
        count(&counts.killed),
        count(&counts.failed),
        counts.reasons.lock().unwrap_or_else(PoisonError::into_inner),
    );
    if let Some((what, _)) = grown.iter().find(|(_, grown)| *grown) {
        return Err(format!("{what} grew\n{report}").into());
    }
    drop(interpreter);
    let deadline = Instant::now() + Duration::from_secs(20);
    while !descendants().is_empty() || entries(scratch.path()) > 0 {
        if Instant::now() > deadline {
            return Err(format!("left: {:?}, {} files\n{report}", descendants(), entries(scratch.path())).into());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(report)
}

async fn run_many(
    interpreter: &Interpreter,
    numbers: std::ops::Range<u64>,
    seed: u64,
    counts: &Arc<Counts>,
) -> Result<(), Failed> {
    let mut running = JoinSet::new();
    for number in numbers {
        while running.len() as u64 >= AT_ONCE {
            running.join_next().await.transpose()?;
        }
        let (interpreter, counts) = (interpreter.clone(), Arc::clone(counts));
        running.spawn(async move { one(&interpreter, random(seed ^ random(number)), &counts).await });
    }
    while running.join_next().await.transpose()?.is_some() {}
    Ok(())
}

/// One round; which one, `chance` says.
async fn one(interpreter: &Interpreter, chance: u64, counts: &Counts) {
    let sources = [
        "print(sum(range(100)))",
        "x = [await demo.echo(n) for n in range(3)]\nx",
        "import os\nopen('file', 'w').write('x' * 10_000)\nos.makedirs('a/b')\nprint(os.listdir('.'))",
        "1 / 0",
        "import os\nos._exit(3)",
        "import os\nos.abort()",
        "import threading, time\nfor _ in range(20): threading.Thread(target=time.sleep, args=(9,), daemon=True).start()",
        "held = bytearray(10**9)",
        "import ctypes\nctypes.string_at(0)",
        "import json, os\nos.write(3, b'nonsense' * 100)\nimport time\ntime.sleep(5)",
        "import asyncio\nasyncio.create_task(demo.forever())\nprint(1)",
    ];
    let cancel = CancellationToken::new();
    let limits = Limits { wall_s: 10.0, memory_mib: 256, ..Limits::default() };
    let mut run = Run {
        source: String::new(),
        file_name: "<program>".to_owned(),
        variables: Vec::new(),
        proxies: vec!["demo".to_owned()],
        paging: Vec::new(),
        limits,
        repeat: None,
    };
    let within = Duration::from_micros(random(chance) % 20_000);
    match chance % 100 {
        // A limit in the middle of whatever runs.
        0..2 => {
            run.source = "while True: pass".to_owned();
            run.limits.wall_s = 0.05;
        }
        2..12 => {
            run.source = "await demo.forever()".to_owned();
            let cancel = cancel.clone();
            tokio::spawn(async move {
                tokio::time::sleep(within).await;
                cancel.cancel();
            });
        }
        12..17 => {
            run.source = "await demo.forever()".to_owned();
            let round = interpreter.run(run, Arc::new(Answers), cancel);
            let _ = tokio::time::timeout(within, round).await;
            counts.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        17..22 => {
            run.source = "import time\ntime.sleep(0.1)".to_owned();
            let pids = descendants();
            let after_zygote =
                if random(chance ^ 1).is_multiple_of(20) { 0 } else { 1 + random(chance ^ 2) as usize % 3 };
            if let Some(&pid) = pids.get(zygote_place(interpreter) + after_zygote) {
                counts.killed.fetch_add(1, Ordering::Relaxed);
                // SAFETY: a plain call; the number is that of a process below this one, or of none any more.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
        }
        other => run.source = sources[other as usize % sources.len()].to_owned(),
    }
    let counted = match interpreter.run(run, Arc::new(Answers), cancel).await {
        Err(error) => {
            counts.reasons.lock().unwrap_or_else(PoisonError::into_inner).insert(error.to_string());
            &counts.failed
        }
        Ok(finished) => match finished.ending {
            Ending::Returned { .. } => &counts.returned,
            Ending::Raised { .. } => &counts.raised,
            Ending::Limit { .. } => &counts.limit,
            Ending::Crashed { .. } | Ending::Lost { .. } => &counts.crashed,
            Ending::Cancelled => &counts.cancelled,
        },
    };
    counted.fetch_add(1, Ordering::Relaxed);
}

/// Where the zygote stands among the processes below this one: after the one that waits outside of its namespaces, if any.
fn zygote_place(interpreter: &Interpreter) -> usize {
    usize::from(interpreter.isolation().level == Level::Full)
}

/// What is held when nothing runs. It waits until it is no more than `before`, or for 20 seconds.
async fn settled(
    interpreter: &Interpreter,
    config: &Config,
    scratch: &Path,
    before: Option<&Held>,
) -> Result<Held, Failed> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        // One that surely was not disturbed, so that there is a zygote and a spare.
        let run = Run {
            source: "1".to_owned(),
            file_name: "<program>".to_owned(),
            variables: Vec::new(),
            proxies: Vec::new(),
            paging: Vec::new(),
            limits: Limits::default(),
            repeat: None,
        };
        interpreter.run(run, Arc::new(Answers), CancellationToken::new()).await?;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let now = held(interpreter, scratch)?;
        let enough = before.is_none_or(|before| {
            now.descriptors <= before.descriptors && now.processes <= before.processes && now.files <= before.files
        });
        if Instant::now() > deadline || enough && now.processes <= 3 {
            return Ok(now);
        }
        // Without mounts, what a killed zygote leaves goes when the next one starts, and that may have been too early.
        drop(Interpreter::start(config).await?);
    }
}

fn held(interpreter: &Interpreter, scratch: &Path) -> Result<Held, Failed> {
    let lines = |path: PathBuf| std::fs::read_to_string(path).map(|text| text.lines().count());
    let processes = descendants();
    let zygote = processes.get(zygote_place(interpreter)).ok_or("no zygote")?;
    let zygote_mounts = lines(format!("/proc/{zygote}/mountinfo").into())?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    let kib: u64 = resident.trim().trim_end_matches(" kB").parse()?;
    Ok(Held {
        descriptors: std::fs::read_dir("/proc/self/fd")?.count(),
        processes: processes.len(),
        mounts: lines("/proc/self/mountinfo".into())?,
        zygote_mounts,
        files: entries(scratch),
        memory_mib: kib / 1024,
    })
}

/// Files and folders in a folder, at any depth.
fn entries(folder: &Path) -> usize {
    let found: Vec<_> = std::fs::read_dir(folder).into_iter().flatten().flatten().collect();
    found.len() + found.iter().map(|entry| entries(&entry.path())).sum::<usize>()
}

/// The processes below this one that have not ended, parents before their children.
fn descendants() -> Vec<i32> {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
        let mut fields = rest.split(' ');
        if fields.next() != Some("Z")
            && let Some(parent) = fields.next().and_then(|parent| parent.parse::<i32>().ok())
        {
            parents.push((pid, parent));
        }
    }
    let mut found = vec![std::process::id() as i32];
    let mut index = 0;
    while let Some(&parent) = found.get(index) {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        index += 1;
    }
    found.split_off(1)
}

/// A number that looks random, of a number (splitmix64).
fn random(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
