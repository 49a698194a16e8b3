//! Rounds and zygotes that end before their time.

use std::collections::HashSet;
use std::time::Instant;

use fimble::interpreter::Repeat;
use fimble::record::Readings;

use super::*;

/// Descriptors of this process.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Processes that have this process as an ancestor.
pub fn descendants() -> Vec<u32> {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
        let mut fields = rest.split(' ');
        if fields.next() != Some("Z")
            && let Some(parent) = fields.next().and_then(|parent| parent.parse::<u32>().ok())
        {
            parents.push((pid, parent));
        }
    }
    let mut found = vec![std::process::id()];
    let mut index = 0;
    while let Some(&parent) = found.get(index) {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        index += 1;
    }
    found.split_off(1)
}

/// Waits for something that another process does soon.
pub(super) async fn until(what: &str, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(10), "{what}: {:?}", descendants());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits for a round's first call.
async fn started(host: &Recorder) {
    tokio::time::timeout(Duration::from_secs(20), host.started.notified()).await.unwrap();
}

/// Kills the zygote itself, which is the only child of the process outside of its namespaces.
fn kill_zygote() {
    let pid = descendants()[1];
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid.try_into().unwrap()), nix::sys::signal::Signal::SIGKILL)
        .unwrap();
}

#[tokio::test]
async fn a_round_repeats_itself_in_the_first_child_however_it_imports() {
    // No module that an interpreter could see named.
    let mut run = program(
        "\
dates, numbers = __import__('date' + 'time'), __import__('ran' + 'dom')
print(getattr(dates, 'date' + 'time').now(dates.timezone.utc), numbers.Random().random(), getattr(numbers, 'ran' + 'dom')())
",
    );
    let readings = Readings { wall: vec![1_700_000_000_000_000_000], ..Readings::default() };
    run.repeat = Some(Repeat { seed: "00ff".to_owned(), readings });
    let interpreter = start().await;
    let mut printed = HashSet::new();
    for interpreter in [&start().await, &interpreter, &interpreter] {
        printed.insert(finish(interpreter, run.clone(), &Arc::default()).await.output);
    }
    assert!(printed.len() == 1 && printed.iter().all(|one| one.starts_with("2023-11-14 22:13:20")), "{printed:?}");
}

#[tokio::test]
async fn the_first_child_has_nothing_imported_that_its_program_does_not_use() {
    let source = "\
import sys
written_backwards = 'tsa emitetad lamiced mune tcepsni nosj ehcacenil bilhtap er ezinekot gnipyt'
print(*(name for name in written_backwards[::-1].split() if name in sys.modules))
";
    assert_eq!(output(&start().await, source).await, "\n");
    let source = "\
from pathlib import Path
import sys
def shout(text):
    return text.upper()
here, since = Path('a') / 'b', datetime.date(2026, 11, 22)
print(here, since, shout('x'))
";
    assert_eq!(output(&start().await, source).await, "a/b 2026-11-22 X\n");
}

#[tokio::test]
async fn a_round_can_be_cancelled() {
    let interpreter = start().await;
    let host = Arc::<Recorder>::default();
    let cancel = CancellationToken::new();
    let (run, token) = (program("print('begun')\nawait demo.forever()"), cancel.clone());
    let dynamic: Arc<dyn Host> = Arc::<Recorder>::clone(&host);
    let round = tokio::spawn(async move { interpreter.run(run, dynamic, token).await });
    started(&host).await;
    cancel.cancel();
    let finished = round.await.unwrap().unwrap();
    assert_eq!(finished.ending, Ending::Cancelled);
    assert_eq!(finished.output, "begun\n");
    assert_eq!(host.dropped.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_dropped_round_is_killed() {
    let interpreter = start().await;
    assert_eq!(output(&interpreter, "print(1)").await, "1\n");
    let host = Arc::<Recorder>::default();
    let dynamic: Arc<dyn Host> = Arc::<Recorder>::clone(&host);
    let round = interpreter.run(program("await demo.forever()"), dynamic, CancellationToken::new());
    tokio::select! {
        ended = round => panic!("it ended: {ended:?}"),
        () = started(&host) => {}
    }
    until("the call is dropped", || host.dropped.load(Ordering::SeqCst) == 1).await;
    // Left are the zygote, its outer process, and the spare.
    until("the child is gone", || descendants().len() <= 3).await;
    assert_eq!(output(&interpreter, "print(1)").await, "1\n");
}

#[tokio::test]
async fn everything_ends_with_the_interpreter() {
    let interpreter = start().await;
    assert_eq!(output(&interpreter, "print(1)").await, "1\n");
    assert!(!descendants().is_empty());
    drop(interpreter);
    until("no process is left", || descendants().is_empty()).await;
}

#[tokio::test]
async fn many_rounds_leave_nothing_behind() {
    let interpreter = start().await;
    for _ in 0..10 {
        run(&interpreter, "print(1)").await;
    }
    let before = descriptors();
    for number in 0..200 {
        let source = match number % 5 {
            0 => "import os\nos._exit(3)",
            1 => "open('file', 'w').write('x')",
            2 => "1 / 0",
            3 => "await demo.wait()",
            _ => "print(1)",
        };
        run(&interpreter, source).await;
    }
    // The spare's own are there or not at either moment; a leak would leave hundreds.
    until("no descriptor is left", || descriptors() <= before + 10).await;
    until("no process is left", || descendants().len() <= 3).await;
}

#[tokio::test]
async fn a_killed_zygote_is_replaced() {
    let interpreter = start().await;
    for _ in 0..3 {
        assert_eq!(output(&interpreter, "print(1)").await, "1\n");
        let old = interpreter.zygote_pid().await;
        kill_zygote();
        until("all its processes are gone", || descendants().is_empty()).await;
        assert_eq!(output(&interpreter, "print(2)").await, "2\n");
        assert_ne!(interpreter.zygote_pid().await, old);
    }
    until("the old ones are gone", || descendants().len() <= 3).await;
}

#[tokio::test]
async fn a_round_that_loses_its_zygote_says_so_and_the_next_one_works() {
    let interpreter = start().await;
    let host = Arc::<Recorder>::default();
    let (dynamic, runner): (Arc<dyn Host>, _) = (Arc::<Recorder>::clone(&host), interpreter.clone());
    let round =
        tokio::spawn(
            async move { runner.run(program("await demo.forever()"), dynamic, CancellationToken::new()).await },
        );
    started(&host).await;
    kill_zygote();
    let finished = round.await.unwrap().unwrap();
    assert!(crash(&finished).contains("lost"), "{finished:?}");
    assert_eq!(output(&interpreter, "print(1)").await, "1\n");
}

#[tokio::test]
async fn rounds_that_begin_while_the_zygote_dies_are_not_lost() {
    let interpreter = start().await;
    for _ in 0..5 {
        assert_eq!(output(&interpreter, "print(1)").await, "1\n");
        kill_zygote();
        // Of several sessions, before anybody can know. Some get the spare child, some a new one.
        let begun: Vec<_> = (0..4)
            .map(|number| {
                let interpreter = interpreter.clone();
                tokio::spawn(async move { run(&interpreter, &format!("{number} + 1")).await.ending })
            })
            .collect();
        for (number, round) in begun.into_iter().enumerate() {
            assert_eq!(round.await.unwrap(), Ending::Returned { value: Some((number + 1).to_string()) });
        }
    }
}

#[tokio::test]
async fn an_old_zygote_is_replaced_without_a_pause() {
    let interpreter = Interpreter::start(&Config { rounds_per_zygote: 5, ..config() }).await.unwrap();
    let first = interpreter.zygote_pid().await;
    for _ in 0..40 {
        assert_eq!(output(&interpreter, "print(1)").await, "1\n");
        if interpreter.zygote_pid().await != first {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the zygote was never replaced");
}

#[tokio::test]
async fn a_program_that_is_no_zygote_is_told_apart() {
    let error = Interpreter::start(&Config { executable: Some("/bin/true".into()), ..config() }).await.unwrap_err();
    assert!(error.to_string().contains("`fimble::interpreter::init()`"), "{error}");
    let error = Interpreter::start(&Config { executable: Some("/nothing/here".into()), ..config() }).await.unwrap_err();
    assert!(error.to_string().starts_with("the interpreter could not be started: /nothing/here: "), "{error}");
}

#[tokio::test]
async fn a_program_that_is_ended_by_a_signal_is_told_which_and_whose_it_was() {
    let interpreter = start().await;
    let asked = "the program sent that signal to itself or asked for it";
    for (source, how, why) in [
        ("import signal, time\nsignal.setitimer(signal.ITIMER_REAL, 0.01)\ntime.sleep(9)", "ended by SIGALRM", asked),
        ("import os\nos.kill(os.getpid(), 15)", "ended by SIGTERM", asked),
        ("import os, signal\nsignal.signal(2, signal.SIG_DFL)\nos.kill(os.getpid(), 2)", "ended by SIGINT", asked),
        ("import os\nos.kill(os.getpid(), 9)", "ended by SIGKILL", "the program sent it to itself"),
        ("import ctypes\nctypes.string_at(0)", "ended by SIGSEGV", "a crash in compiled code"),
        ("import os\nos.abort()", "ended by SIGABRT", "a crash in compiled code"),
        ("import os\nos._exit(1)", "exited with code 1 ", "do not call `os._exit`"),
    ] {
        let finished = run(&interpreter, source).await;
        let message = crash(&finished);
        assert!(message.contains(how) && message.contains(why), "{source}: {message}");
        assert!(message.contains("nothing was kept") && !message.contains("descriptor 3"), "{source}: {message}");
        assert_eq!(message.contains("crash in compiled code"), why.contains("crash"), "{source}: {message}");
    }
}

#[tokio::test]
async fn a_program_that_takes_the_runtimes_descriptor_away_is_told_so() {
    let interpreter = start().await;
    for lost in [
        "os.close(3)",
        "os.closerange(3, 256)",
        "os.dup2(os.open('file', os.O_CREAT | os.O_RDWR), 3)",
        "os.dup2(os.pipe()[1], 3)",
    ] {
        for goes_on in ["", "print('more')", "while True: pass", "import time\ntime.sleep(100)", "os._exit(0)"] {
            let finished = run(&interpreter, &format!("import os\n{lost}\n{goes_on}")).await;
            let message = crash(&finished);
            assert!(message.contains("descriptor 3, which belongs to the runtime"), "{lost}, {goes_on}: {message}");
            assert!(!message.contains("compiled code"), "{lost}, {goes_on}: {message}");
        }
    }
    let forged = "import os\nos.write(3, b'x' * 1000)\nwhile True: pass";
    assert!(crash(&run(&interpreter, forged).await).contains("descriptor 3 belongs to the runtime"));
}
