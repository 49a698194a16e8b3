//! The toolkit with real commands and the processes that they leave.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use fimble_shell::{Config, Shell};
use fimble_toolkit::{Call, ErrorKind, Risk, SessionContext, ToolError, Toolkit};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn shell(folder: &Path) -> Shell {
    Shell::new(Config { roots: vec![folder.to_owned()], ..Config::default() }).unwrap()
}

fn request(arguments: Value) -> Call {
    Call {
        operation: "run".into(),
        arguments: arguments.as_object().cloned().unwrap(),
        key: String::new(),
        context: SessionContext::default(),
        cancellation: CancellationToken::new(),
    }
}

async fn run(shell: &Shell, arguments: Value) -> Result<Value, ToolError> {
    shell.call(request(arguments)).await
}

/// Looks again until it is so, for 30 s at most.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "not yet so: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The process ids that a command wrote into the file `ids`, once there are `count`.
async fn ids(folder: &Path, count: usize) -> Vec<i32> {
    let file = folder.join("ids");
    let read = || -> Vec<i32> {
        let text = fs::read_to_string(&file).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    };
    until("all processes have written their ids", || read().len() == count).await;
    read()
}

fn is_alive(id: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, fields)| !fields.trim_start().starts_with(['Z', 'X']))
}

#[test]
fn the_declaration_says_what_it_can_do() {
    let declaration = shell(Path::new("/")).declaration();
    let run = declaration.operation("run").unwrap();
    assert_eq!((run.risk, run.idempotent), (Risk::Destructive, false));
    assert_eq!(
        fimble_toolkit::signature(run),
        "run(command: list[str], cwd: str = \".\", timeout_s: float = None, stdin: str = None) -> Completed"
    );
}

#[tokio::test]
async fn a_command_runs_and_says_how_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let shell = shell(folder.path());
    let result = run(&shell, json!({"command": ["printf", "%s|%s", "a  b", "$HOME *"]})).await.unwrap();
    assert_eq!((&result["exit_code"], &result["stdout"]), (&json!(0), &json!("a  b|$HOME *")), "no shell reads it");
    assert_eq!((&result["stderr"], &result["cut"]), (&json!(""), &json!(false)));
    assert!(result["duration_s"].as_f64().unwrap() > 0.0);

    let result = run(&shell, json!({"command": ["sh", "-c", "echo out; echo err >&2; exit 3"]})).await.unwrap();
    assert_eq!(
        (&result["exit_code"], &result["stdout"], &result["stderr"]),
        (&json!(3), &json!("out\n"), &json!("err\n"))
    );
    let result = run(&shell, json!({"command": ["sh", "-c", "kill -9 $$"]})).await.unwrap();
    assert_eq!(result["exit_code"], json!(-9));

    let result = run(&shell, json!({"command": ["tr", "a-z", "A-Z"], "stdin": "größer"})).await.unwrap();
    assert_eq!(result["stdout"], "GRößER");
    let result = run(&shell, json!({"command": ["cat"]})).await.unwrap();
    assert_eq!(result["stdout"], "", "there is no input unless it is given");
    // More than a pipe holds, to a program that reads none of it.
    let result = run(&shell, json!({"command": ["true"], "stdin": "x".repeat(1024 * 1024)})).await.unwrap();
    assert_eq!(result["exit_code"], 0);
    let result = run(&shell, json!({"command": ["wc", "-c"], "stdin": "x".repeat(1024 * 1024)})).await.unwrap();
    assert_eq!(result["stdout"].as_str().unwrap().trim(), "1048576");
}

#[tokio::test]
async fn the_environment_is_empty_but_for_what_was_named() {
    let folder = tempfile::tempdir().unwrap();
    let names = |result: Value| {
        let text = result["stdout"].as_str().unwrap().to_owned();
        let mut names: Vec<String> = text.lines().map(|line| line.split('=').next().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    let there: Vec<&str> =
        ["HOME", "LANG", "PATH"].into_iter().filter(|name| std::env::var_os(name).is_some()).collect();
    let result = run(&shell(folder.path()), json!({"command": ["env"]})).await.unwrap();
    assert_eq!(names(result), [&["FIMBLE_COMMAND"], there.as_slice()].concat());
    // Cargo sets this one for its tests.
    let config = Config {
        roots: vec![folder.path().to_owned()],
        environment: vec!["CARGO_PKG_NAME".into(), "FIMBLE_NO_SUCH".into()],
        ..Config::default()
    };
    let result = run(&Shell::new(config).unwrap(), json!({"command": ["printenv", "CARGO_PKG_NAME"]})).await.unwrap();
    assert_eq!(result["stdout"], "fimble-shell\n");
}

#[tokio::test]
async fn a_command_starts_in_and_below_the_roots_only() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    for made in [first.join("sub"), second.clone(), folder.path().join("other")] {
        fs::create_dir_all(made).unwrap();
    }
    fs::write(first.join("file"), "").unwrap();
    std::os::unix::fs::symlink(folder.path(), first.join("up")).unwrap();
    let roots = vec![first.clone(), second.clone()];
    let shell = Shell::new(Config { roots, ..Config::default() }).unwrap();
    let place = async |cwd: &str| run(&shell, json!({"command": ["pwd"], "cwd": cwd})).await;
    for (cwd, expected) in [
        (".", first.clone()),
        ("sub", first.join("sub")),
        ("sub/..", first.clone()),
        (second.to_str().unwrap(), second.clone()),
    ] {
        let expected = format!("{}\n", expected.canonicalize().unwrap().display());
        assert_eq!(place(cwd).await.unwrap()["stdout"], json!(expected), "{cwd}");
    }
    for cwd in ["..", "up", "up/other", "/", "/no/such", "../nowhere"] {
        assert_eq!(place(cwd).await.unwrap_err().kind, ErrorKind::Forbidden, "{cwd}");
    }
    assert_eq!(place("gone").await.unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(place("file").await.unwrap_err().message, "`cwd` is no folder: `file`");
}

#[tokio::test]
async fn a_long_output_keeps_head_and_tail_and_the_command_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config { roots: vec![folder.path().to_owned()], output_bytes: 20, ..Config::default() };
    let command = json!({"command": ["sh", "-c", "seq 100000; seq 100000 >&2; echo ran > done"]});
    let result = run(&Shell::new(config).unwrap(), command).await.unwrap();
    let expected = "1\n2\n3\n4\n5\n\n[… 588875 bytes left out …]\n99\n100000\n";
    assert_eq!((&result["stdout"], &result["stderr"]), (&json!(expected), &json!(expected)));
    assert_eq!((&result["cut"], &result["exit_code"]), (&json!(true), &json!(0)));
    assert_eq!(fs::read_to_string(folder.path().join("done")).unwrap(), "ran\n");
}

/// Starts one process in the group, one in a session of its own, one more whose parent ends, and one without the mark.
const FAMILY: &str = "\
echo $$ >> ids
sh -c 'echo $$ >> ids; exec sleep 1000' &
setsid sh -c 'echo $$ >> ids; exec sleep 1000' &
(setsid sh -c 'echo $$ >> ids; exec sleep 1000' >/dev/null 2>&1 &)
env -i /usr/bin/setsid /bin/sh -c 'echo $$ >> ids; exec /bin/sleep 1000' &
";

#[tokio::test]
async fn when_nobody_waits_any_more_everybody_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let shell = shell(folder.path());
    let started = {
        let call = run(&shell, json!({"command": ["sh", "-c", format!("{FAMILY}wait")]}));
        tokio::pin!(call);
        tokio::select! {
            result = &mut call => panic!("it ended: {result:?}"),
            started = ids(folder.path(), 5) => started,
        }
    };
    // The future is dropped by now, and what it dropped was killed before that came back.
    until("all are dead", || started.iter().all(|id| !is_alive(*id))).await;
}

#[tokio::test]
async fn when_the_call_is_cancelled_everybody_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let shell = shell(folder.path());
    let call = request(json!({"command": ["sh", "-c", format!("{FAMILY}wait")]}));
    let cancellation = call.cancellation.clone();
    let (result, started) = tokio::join!(shell.call(call), async {
        let started = ids(folder.path(), 5).await;
        cancellation.cancel();
        started
    });
    assert_eq!(result.unwrap_err().message, "`sh` was stopped: the call was cancelled");
    until("all are dead", || started.iter().all(|id| !is_alive(*id))).await;
}

#[tokio::test]
async fn when_its_time_is_over_everybody_is_killed_and_its_last_words_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let shell = shell(folder.path());
    let command = json!({"command": ["sh", "-c", format!("echo begun\n{FAMILY}wait")], "timeout_s": 10});
    let (result, started) = tokio::join!(run(&shell, command), ids(folder.path(), 5));
    let error = result.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout);
    assert_eq!(error.message, "`sh` did not end within 10 s and was killed; its last words: begun");
    until("all are dead", || started.iter().all(|id| !is_alive(*id))).await;
}

#[tokio::test]
async fn what_is_left_in_the_background_is_killed_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let shell = shell(folder.path());
    // The shell waits until all have written, and ends. It is the one whose parent is alive, so nobody is unmarked.
    let marked: Vec<&str> = FAMILY.lines().filter(|line| !line.starts_with("env -i")).collect();
    let script = format!("{}\nuntil [ $(wc -l < ids) = 4 ]; do :; done; echo bye", marked.join("\n"));
    let result = run(&shell, json!({"command": ["sh", "-c", script]})).await.unwrap();
    assert_eq!((&result["exit_code"], &result["stdout"]), (&json!(0), &json!("bye\n")));
    let started = ids(folder.path(), 4).await;
    until("all are dead", || started.iter().all(|id| !is_alive(*id))).await;
}

#[tokio::test]
async fn what_cannot_run_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let shell = shell(folder.path());
    fs::write(folder.path().join("plain"), "text").unwrap();
    for (arguments, kind, message) in [
        (
            json!({"command": []}),
            ErrorKind::InvalidArgument,
            "`command` names no program (hint: write command=[\"ls\", \"-l\"])",
        ),
        (
            json!({"command": ["ls -l"]}),
            ErrorKind::NotFound,
            "there is no program `ls -l` (hint: no shell splits it: write each argument as an item of its own, such as [\"ls\", \"-l\"])",
        ),
        (
            json!({"command": ["cd", "x"]}),
            ErrorKind::NotFound,
            "the program `cd` is not on this machine (hint: shell words such as `cd` are no programs; use `cwd` for the folder)",
        ),
        (json!({"command": ["./plain"]}), ErrorKind::Forbidden, "the user may not run `./plain`, or it is no program"),
        (
            json!({"command": ["echo", "a\u{0}b"]}),
            ErrorKind::InvalidArgument,
            "an argument of a command cannot have a NUL character in it",
        ),
        (
            json!({"command": ["true"], "timeout_s": 0}),
            ErrorKind::InvalidArgument,
            "`timeout_s` is above 0 and at most 3600, not 0",
        ),
        (
            json!({"command": ["true"], "stdin": "x".repeat(1024 * 1024 + 1)}),
            ErrorKind::InvalidArgument,
            "`stdin` has more than 1048576 bytes (hint: pass less, in several calls)",
        ),
        (
            json!({"command": ["echo", "x".repeat(4 * 1024 * 1024)]}),
            ErrorKind::InvalidArgument,
            "the arguments are longer than `echo` can be started with (hint: pass them as `stdin`, or in several calls)",
        ),
    ] {
        let error = run(&shell, arguments).await.unwrap_err();
        assert_eq!((error.kind, error.to_string().as_str()), (kind, message));
    }
}

#[test]
fn wrong_settings_are_refused_with_a_hint() {
    for (config, message) in [
        (Config { timeout_s: 4_000.0, ..Config::default() }, "`toolkits.shell.timeout_s`: 4000 is out of range"),
        (
            Config { environment: vec!["A=b".into()], ..Config::default() },
            "`A=b` in `environment` of the shell is no name of a variable",
        ),
        (
            Config { roots: vec!["/no/such".into()], ..Config::default() },
            "the folder `/no/such` in `roots` of the shell is not there: No such file or directory (os error 2)",
        ),
    ] {
        let error = Shell::new(config).unwrap_err();
        assert_eq!(error.message, message);
        assert!(error.hint.is_some());
    }
}
