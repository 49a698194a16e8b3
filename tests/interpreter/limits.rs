//! What a program may use, and that the host is back in time whatever it does.

use std::time::Instant;

use super::*;

fn within(wall_s: f64, source: &str) -> Run {
    Run { limits: Limits { wall_s, ..limits() }, ..program(source) }
}

#[tokio::test]
async fn the_wall_limit_ends_whatever_runs() {
    let interpreter = start().await;
    let hazards = [
        ("a Python loop", "while True: pass"),
        ("a C loop", "sum(range(10**12))"),
        ("a big integer", "len(str(7 ** (10 ** 8)))"),
        ("a regular expression", "import re\nre.match('(a+)+b', 'a' * 64)"),
        ("sleep", "import time\ntime.sleep(100)"),
        ("an await", "await demo.forever()"),
        ("blocked signals", "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass"),
        ("ignored exceptions", "while True:\n    try:\n        while True: pass\n    except BaseException: pass"),
        ("stopped", "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)"),
    ];
    for (what, source) in hazards {
        let begun = Instant::now();
        let finished = finish(&interpreter, within(0.5, source), &Arc::default()).await;
        assert_eq!(limit(&finished), "wall", "{what}");
        // The limit, 2 s more for a program that waits for a processor, its end, and a machine that does other things.
        assert!(begun.elapsed() < Duration::from_secs(10), "{what}: {:?}", begun.elapsed());
        assert_eq!(output(&interpreter, "print(1)").await, "1\n", "{what}");
    }
}

#[tokio::test]
async fn a_program_that_runs_too_long_keeps_its_output_and_variables() {
    let interpreter = start().await;
    let finished =
        finish(&interpreter, within(0.5, "kept = [1, 2]\nprint('before')\nwhile True: pass"), &Arc::default()).await;
    assert_eq!(
        finished.ending,
        Ending::Limit {
            limit: "wall",
            message:
                "the program ran longer than 0.5 s and was stopped; split the work or raise interpreter.limits.wall_s (at line 3, statement 3 of 3)"
                    .to_owned(),
        }
    );
    assert_eq!(finished.output, "before\n");
    assert_eq!(finished.written.iter().map(|one| &*one.name).collect::<Vec<_>>(), vec!["kept"]);
    assert_eq!((finished.statements_done, finished.statements), (2, 3));
}

#[tokio::test]
async fn last_words_may_take_longer_than_the_program_has_to_end() {
    let interpreter = start().await;
    // To look at so many values takes about as long.
    let large = "kept = [{'number': number, 'square': [number ** 2]} for number in range(8_000)]\nwhile True: pass";
    let finished = finish(&interpreter, within(2.0, large), &Arc::default()).await;
    assert_eq!(limit(&finished), "wall");
    assert_eq!(finished.written.iter().map(|one| &*one.name).collect::<Vec<_>>(), vec!["kept"]);
    let stubborn = "kept = 1\ntry:\n    await demo.forever()\nfinally:\n    while True: pass";
    let finished = finish(&interpreter, within(0.5, stubborn), &Arc::default()).await;
    assert_eq!((limit(&finished), finished.written.len()), ("wall", 0));
}

/// Answers every call after a while, which it says.
#[derive(Default)]
struct Slow {
    takes: Duration,
    /// How long it was waited for earlier, and since when it is now.
    waits: Mutex<(Duration, Option<Instant>)>,
}

#[async_trait]
impl Host for Slow {
    async fn call(&self, _: HostCall) -> Result<Value, ToolError> {
        let asked = Instant::now();
        self.waits.lock().unwrap().1 = Some(asked);
        tokio::time::sleep(self.takes).await;
        *self.waits.lock().unwrap() = (asked.elapsed(), None);
        Ok(json!("yes"))
    }

    fn print(&self, _: &str) {}

    fn statement(&self, _: u32, _: u32) {}

    fn waited(&self) -> Duration {
        let (earlier, asked) = *self.waits.lock().unwrap();
        earlier + asked.map(|asked| asked.elapsed()).unwrap_or_default()
    }
}

#[tokio::test]
async fn the_time_that_others_take_is_not_the_programs() {
    let interpreter = start().await;
    let slow = || Arc::new(Slow { takes: Duration::from_secs(2), ..Slow::default() });
    let run = within(1.0, "print(await demo.ask())");
    let finished = interpreter.run(run, slow(), CancellationToken::new()).await.unwrap();
    assert_eq!((&finished.ending, &*finished.output), (&Ending::Returned { value: None }, "yes\n"));
    assert!(finished.usage.wall > Duration::from_secs(2), "{:?}", finished.usage);

    let run = within(1.0, "await demo.ask()\nwhile True: pass");
    let finished = interpreter.run(run, slow(), CancellationToken::new()).await.unwrap();
    assert_eq!(limit(&finished), "wall");
    let own = finished.usage.wall - Duration::from_secs(2);
    assert!(own > Duration::from_millis(900) && own < Duration::from_millis(2_500), "{own:?}");
}

#[tokio::test]
async fn what_a_program_computes_beside_a_call_is_its_own_time() {
    let interpreter = start().await;
    let slow = Arc::new(Slow { takes: Duration::from_secs(100), ..Slow::default() });
    let source = "\
import asyncio
asked = asyncio.ensure_future(demo.ask())
await asyncio.sleep(0.1)
while True: pass
";
    let finished = interpreter.run(within(1.0, source), slow, CancellationToken::new()).await.unwrap();
    assert_eq!(limit(&finished), "wall");
    assert!(finished.usage.wall < Duration::from_secs(50), "{:?}", finished.usage);
}

#[tokio::test]
async fn a_program_that_ended_in_time_is_believed_by_a_host_that_was_late() {
    let interpreter = start().await;
    let host = Arc::<Recorder>::default();
    let round = finish(&interpreter, within(1.0, "print('begun')\nimport time\ntime.sleep(0.3)"), &host);
    let busy = async {
        host.printed.notified().await;
        // Nothing else runs on this thread: the end of the program and of its time are found together.
        std::thread::sleep(Duration::from_millis(1_200));
    };
    let (finished, ()) = tokio::join!(round, busy);
    assert_eq!(finished.ending, Ending::Returned { value: None });
    assert_eq!((finished.statements_done, finished.statements), (3, 3));
}

/// What the kernel counts for a program until it has ended, at most: what it was given, and what a host that shares the machine
/// with others may come too late by. By the kernel alone it would be 2 s.
const CPU: Duration = Duration::from_millis(1_800);

#[tokio::test]
async fn the_cpu_limit_ends_whatever_computes() {
    let interpreter = start().await;
    let hazards = [
        ("a Python loop", "while True: pass"),
        ("a C loop", "sum(range(10**12))"),
        ("a big integer", "len(str(7 ** (10 ** 8)))"),
        ("a regular expression", "import re\nre.match('(a+)+b', 'a' * 64)"),
        ("an ignored signal", "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"),
        ("blocked signals", "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass"),
        ("ignored exceptions", "while True:\n    try:\n        while True: pass\n    except BaseException: pass"),
        ("a forged end", FORGED_END),
    ];
    for (what, source) in hazards {
        let mut run = program(source);
        run.limits.cpu_s = 1;
        let finished = finish(&interpreter, run, &Arc::default()).await;
        assert_eq!(limit(&finished), "cpu", "{what}");
        assert!(finished.usage.cpu < CPU, "{what}: {:?}", finished.usage);
        assert_eq!(output(&interpreter, "print(1)").await, "1\n", "{what}");
    }
    // What ends by itself keeps what it has.
    let mut run = program("kept = 1\nwhile True: pass");
    run.limits.cpu_s = 1;
    let finished = finish(&interpreter, run, &Arc::default()).await;
    assert_eq!((limit(&finished), finished.written.len()), ("cpu", 1));
}

/// Says that it stops, when it is told to and before, and goes on.
const FORGED_END: &str = "\
import os, signal, struct
def stopping(*_):
    os.write(3, struct.pack('<IB', 2, 23) + b'{}')
signal.signal(signal.SIGUSR1, stopping)
signal.signal(signal.SIGXCPU, stopping)
while True: pass
";

#[tokio::test]
async fn a_program_that_only_says_that_it_ends_gains_little() {
    let interpreter = start().await;
    let before = format!("import os\nos.write(3, b'\\x02\\0\\0\\0\\x17{{}}')\n{FORGED_END}");
    let threads = "\
import hashlib, threading
def work():
    block = bytes(1 << 24)
    while True: hashlib.blake2b(block)
for _ in range(8): threading.Thread(target=work).start()
";
    let threads = format!("{threads}{FORGED_END}");
    for source in [FORGED_END, &before, &threads] {
        let mut run = within(0.5, source);
        run.limits.cpu_s = 60;
        let finished = finish(&interpreter, run, &Arc::default()).await;
        assert_eq!(limit(&finished), "wall", "{source}");
        let most = if source == threads { 4 * CPU } else { CPU };
        assert!(finished.usage.cpu < most, "{source}: {:?}", finished.usage);
    }
}

#[tokio::test]
async fn a_program_that_goes_on_after_its_last_word_is_killed() {
    let interpreter = start().await;
    for goes_on in ["while True: pass", "import time\ntime.sleep(1000)"] {
        let source = format!(
            "\
import json, os, struct
done = dict(ending=dict(kind='returned', value=None), written=[], removed=[], not_carried=[], statements_done=1, statements=1)
body = json.dumps(done).encode()
os.write(3, struct.pack('<IB', len(body), 21) + body)
{goes_on}
"
        );
        let finished = finish(&interpreter, program(&source), &Arc::default()).await;
        assert!(crash(&finished).contains("SIGKILL"), "{:?}", finished.ending);
        // It had 200 ms; once it was 3 s.
        assert!(finished.usage.cpu < CPU, "{:?}", finished.usage);
    }
}

#[tokio::test]
async fn memory_is_limited() {
    let interpreter = start().await;
    for source in [
        "x = bytearray(10**9)",
        "x = []\nwhile True: x.append(bytes(10**6))",
        "import mmap\nx = []\nwhile True: x.append(mmap.mmap(-1, 10**8, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))",
    ] {
        let mut run = program(source);
        run.limits.memory_mib = 128;
        let finished = finish(&interpreter, run, &Arc::default()).await;
        let told = matches!(&finished.ending, Ending::Limit { limit: "memory", .. })
            || ["MemoryError", "OSError"].contains(&&*exception(&finished));
        assert!(told, "{source}: {finished:?}");
        assert!(finished.usage.peak_rss_kib < 200 * 1024, "{source}: {:?}", finished.usage);
    }
    assert_eq!(exception(&run(&interpreter, "import mmap\nmmap.mmap(-1, 4096)").await), "PermissionError");
}

#[tokio::test]
async fn a_recursion_without_end_uses_memory_up() {
    let interpreter = start().await;
    let source =
        "import sys\nsys.setrecursionlimit(10**9)\ndef deep(level):\n    return deep(level + 1)\nkept = 1\ndeep(0)";
    // How much is left when it ends differs with the limit.
    for memory_mib in [64, 80, 96, 104, 128] {
        let mut run = program(source);
        run.limits.memory_mib = memory_mib;
        let finished = finish(&interpreter, run, &Arc::default()).await;
        assert!(matches!(finished.ending, Ending::Limit { limit: "memory", .. }), "{memory_mib}: {finished:?}");
        let written: Vec<_> = finished.written.iter().map(|variable| variable.name.as_str()).collect();
        assert_eq!(written, ["sys", "deep", "kept"]);
    }
}

#[tokio::test]
async fn output_is_cut_with_a_mark() {
    let interpreter = start().await;
    let mut run = program("print('begin')\nfor n in range(20_000): print(n)\nprint('end')");
    run.limits.output_kib = 8;
    let finished = finish(&interpreter, run, &Arc::default()).await;
    assert_eq!(finished.ending, Ending::Returned { value: None });
    assert!(finished.output.starts_with("begin\n0\n1\n"), "{}", finished.output);
    assert!(finished.output.contains("cut"), "{}", finished.output);
    assert!(finished.output.len() < 8 * 1024 + 200, "{}", finished.output.len());
}

#[tokio::test]
async fn a_gigabyte_of_output_costs_the_host_nothing() {
    let interpreter = start().await;
    let host = Arc::<Recorder>::default();
    let finished =
        finish(&interpreter, program("line = 'x' * 1_000_000\nfor _ in range(1_000): print(line)"), &host).await;
    assert!(finished.output.len() < 300 * 1024, "{}", finished.output.len());
    assert!(finished.output.contains("cut"), "{:?}", finished.ending);
    assert!(host.prints.lock().unwrap().concat().len() < 300 * 1024);
    assert!(
        matches!(finished.ending, Ending::Returned { .. } | Ending::Limit { limit: "output", .. }),
        "{:?}",
        finished.ending
    );
}

#[tokio::test]
async fn a_program_that_never_stops_talking_is_stopped_in_time() {
    let interpreter = start().await;
    let mut run = program("while True:\n    print('x' * 1_000)");
    run.limits = Limits { wall_s: 0.5, output_kib: 100_000, ..run.limits };
    let begun = Instant::now();
    let finished = finish(&interpreter, run, &Arc::default()).await;
    assert_eq!(limit(&finished), "wall");
    assert!(begun.elapsed() < Duration::from_millis(2_500), "{:?}", begun.elapsed());
}

/// Sends prints by itself, `letters` in each.
fn flood(letters: &str, count: u32) -> Run {
    program(&format!(
        "\
import json, os, struct, time
body = json.dumps(dict(text='{letters}')).encode()
frame = struct.pack('<IB', len(body), 17) + body
for _ in range({count} // 1_000):
    left = memoryview(frame * 1_000)
    while left:
        left = left[os.write(3, left):]
"
    ))
}

#[tokio::test]
async fn tiny_prints_are_shown_together() {
    let interpreter = start().await;
    let host = Arc::<Recorder>::default();
    let finished = finish(&interpreter, flood("x", 100_000), &host).await;
    assert_eq!(finished.ending, Ending::Returned { value: None });
    let prints = host.prints.lock().unwrap();
    assert_eq!((prints.concat(), &finished.output), ("x".repeat(100_000), &"x".repeat(100_000)));
    assert!(prints.len() < 20_000, "{}", prints.len());
    assert!(prints[..1_000].iter().all(|print| print == "x"));
}

#[tokio::test]
async fn prints_of_nothing_come_to_an_end() {
    let interpreter = start().await;
    let finished = finish(&interpreter, flood("", 1_000_000_000), &Arc::default()).await;
    assert_eq!(limit(&finished), "output");
    assert_eq!(finished.output, "");
}

/// The last line of the traceback, after the class of the exception.
fn hinted(finished: &Finished) -> (&str, &str) {
    match &finished.ending {
        Ending::Raised { traceback, exception, .. } => (exception, traceback.lines().last().unwrap_or_default()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn each_limit_of_the_host_has_its_own_sentence() {
    let interpreter = start().await;
    let forever = "while True: pass";
    for (source, name, sentence, change) in [
        (
            forever,
            "wall",
            "the program ran longer than 0.3 s and was stopped; split the work",
            |limits: &mut Limits| {
                limits.wall_s = 0.3;
            },
        ),
        (forever, "cpu", "the program used more than 1 s of CPU time and was stopped; do less at once", |limits| {
            limits.cpu_s = 1;
        }),
        (
            "x = bytearray(10**9)",
            "memory",
            "the program used more than 128 MiB of memory and was stopped; work on smaller pieces",
            |limits| limits.memory_mib = 128,
        ),
        (
            "while True: print('x' * 10_000)",
            "output",
            "the program printed far more than 1 KiB and was stopped; print a summary",
            |limits| limits.output_kib = 1,
        ),
        (
            "while True: await demo.echo(1)",
            "calls",
            "the program made more than 3 calls and was stopped; ask for more with each call",
            |limits| limits.calls = 3,
        ),
    ] as [(&str, &str, &str, fn(&mut Limits)); 5]
    {
        let mut run = program(source);
        change(&mut run.limits);
        let finished = finish(&interpreter, run, &Arc::default()).await;
        let Ending::Limit { limit, message } = &finished.ending else { panic!("{name}: {finished:?}") };
        let setting = format!("or raise interpreter.limits.{name}");
        assert!(*limit == name && message.starts_with(sentence), "{name}: {message}");
        assert!(message.contains(&setting) || name == "wall", "{name}: {message}");
        assert!(finished.written.iter().all(|one| one.name == "x"), "{name}: {finished:?}");
    }
}

#[tokio::test]
async fn open_files_threads_and_processes_are_limited() {
    let interpreter = start().await;
    for (source, expected) in [
        (
            "import os\nopened = []\nwhile True: opened.append(os.dup(0))",
            ("OSError", "hint: a program may have 64 files open at the same time; close each one, e.g. with `with`"),
        ),
        (
            "import threading\nfor _ in range(5_000):\n    threading.Thread(target=threading.Event().wait, daemon=True).start()",
            (
                "RuntimeError",
                "hint: no more threads can be started; use a pool of a few, or `asyncio.gather` for calls",
            ),
        ),
        ("import os\nos.fork()", ("PermissionError", "hint: a program cannot start a process; call a toolkit")),
        (
            "import socket\nsocket.create_connection(('127.0.0.1', 80))",
            ("PermissionError", "hint: a program has no network; call a toolkit"),
        ),
    ] {
        assert_eq!(hinted(&run(&interpreter, source).await), expected, "{source}");
    }
}

#[tokio::test]
async fn a_full_scratch_is_an_error_of_the_write() {
    let interpreter = start().await;
    let full =
        "hint: the scratch folder holds 8 MiB and 4,096 files; remove what is not needed, or keep data in variables";
    let large = "file = open('big', 'wb')\nwhile True: file.write(bytes(10**6))";
    let many = "for n in range(10_000): open(str(n), 'w').close()";
    let together = "for n in range(100): open(str(n), 'wb').write(bytes(10**6))";
    for source in [large, many, together] {
        // Without a mount of its own, only the size of each file is limited.
        if config().isolation == Level::Reduced && source != large {
            continue;
        }
        let mut run = program(source);
        run.limits.scratch_mib = 8;
        assert_eq!(hinted(&finish(&interpreter, run, &Arc::default()).await), ("OSError", full), "{source}");
    }
    assert_eq!(output(&interpreter, "import os\nopen('a', 'w').close()\nprint(os.listdir())").await, "['a']\n");
}

#[tokio::test]
async fn a_limit_that_kills_says_how_far_the_program_came_and_that_nothing_was_kept() {
    let interpreter = start().await;
    let endless = "sum(range(10**12))";
    let blocked = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass\nx = 1";
    // As the kernel ends it where the group of all programs has no more.
    let memory = "\
import os
held = []
try:
    while True: held.append(b'x' * (1 << 20))
except MemoryError: pass
os.kill(os.getpid(), 9)";
    let wall: fn(&mut Limits) = |limits| limits.wall_s = 0.5;
    let cpu: fn(&mut Limits) = |limits| limits.cpu_s = 1;
    for (source, change, name, place) in [
        (endless.to_owned(), wall, "wall", "in statement 1"),
        (format!("kept = 1\n{endless}\nx = 1"), wall, "wall", "in statement 2 of 3"),
        (format!("kept = 1\n{endless}\nx = 1"), cpu, "cpu", "in statement 2 of 3"),
        (blocked.to_owned(), wall, "wall", "in statement 3 of 4"),
        (blocked.to_owned(), cpu, "cpu", "in statement 3 of 4"),
        (memory.to_owned(), |limits| limits.memory_mib = 512, "memory", "in statement 4 of 4"),
    ] {
        let mut run = program(&source);
        change(&mut run.limits);
        let finished = finish(&interpreter, run, &Arc::default()).await;
        let Ending::Limit { limit, message } = &finished.ending else { panic!("{source}: {finished:?}") };
        let rest = format!("interpreter.limits.{name}{} ({place}); nothing that it assigned was kept", unit(name));
        assert!(*limit == name && message.ends_with(&rest), "{source}: {message}");
        assert!(finished.written.is_empty(), "{source}: {finished:?}");
    }
}

/// What follows a limit's name in the name of its setting.
fn unit(limit: &str) -> &str {
    if limit == "memory" { "_mib" } else { "_s" }
}
