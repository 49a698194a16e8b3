//! `fimble ps` and `fimble kill`: real processes that run rounds, and others that look at them and end them.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A home of its own for every test.
struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("runtime")).unwrap();
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn fimble(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fimble"));
        command.args(arguments).current_dir(self.path()).env_clear();
        let folders =
            [("HOME", ""), ("XDG_DATA_HOME", "data"), ("XDG_CONFIG_HOME", "config"), ("XDG_RUNTIME_DIR", "runtime")];
        for (name, folder) in folders {
            command.env(name, self.path().join(folder));
        }
        command.env("USER", "tester").env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn output(&self, arguments: &[&str]) -> Output {
        self.fimble(arguments).output().unwrap()
    }

    /// Starts a program and waits until it said `begun`.
    fn start(&self, program: &str, arguments: &[&str]) -> Started {
        let mut command = self.fimble(&[&["run", "-"], arguments].concat());
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        stdout.read_line(&mut said).unwrap();
        assert_eq!(said, "begun\n");
        Started { child, stdout }
    }

    fn rounds(&self) -> Vec<Value> {
        let output = self.output(&["ps", "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Asks until the rounds are as they must become.
    #[track_caller]
    fn wait_for_rounds(&self, what: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let begun = Instant::now();
        loop {
            let rounds = self.rounds();
            if what(&rounds) {
                return rounds;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "{rounds:#?}");
        }
    }

    fn sockets(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.path().join("runtime/fimble/live")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

/// A program under way.
struct Started {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Started {
    /// The exit code, what was still printed, and standard error.
    fn end(mut self) -> (Option<i32>, String, String) {
        let mut stdout = String::new();
        self.stdout.read_to_string(&mut stdout).unwrap();
        let output = self.child.wait_with_output().unwrap();
        (output.status.code(), stdout, text(&output.stderr))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const SLEEPER: &str = "kept = 1\nprint('begun')\nawait system_toolkit.sleep(30)\n";

fn waits_for_a_call(rounds: &[Value]) -> bool {
    !rounds.is_empty() && rounds.iter().all(|round| round["waits"][0]["kind"] == "call")
}

#[test]
fn a_running_round_is_seen_by_another_process() {
    let home = Home::new();
    let started = home.start(SLEEPER, &["--timeout", "45"]);
    let rounds = home.wait_for_rounds(waits_for_a_call);
    let [round] = &rounds[..] else { panic!("{rounds:#?}") };
    assert_eq!(round["host_pid"], started.child.id());
    assert_eq!((&round["round"], &round["calls"], &round["goal"]), (&1.into(), &1.into(), &"run -".into()));
    assert_eq!((&round["waits"][0]["of"], &round["wall_limit_s"]), (&"system_toolkit.sleep".into(), &45.0.into()));
    let number = |name: &str| round[name].as_f64().unwrap_or_else(|| panic!("no {name}: {round:#}"));
    assert!(number("memory_kib") > 1_000.0 && number("cpu_s") >= 0.0 && number("pid") > 1.0, "{round:#}");
    // The wait is not its own time.
    assert!(number("age_s") > number("wall_s") && number("wall_s") > 0.0, "{round:#}");
    let session = round["session"].as_str().unwrap();
    let table = text(&home.output(&["ps"]).stdout);
    let line = table.lines().nth(1).unwrap();
    assert!(line.starts_with(&format!("{session}/1 ")) && line.contains("system_toolkit.sleep ("), "{table}");

    // What a script reads is what `kill` takes.
    assert_eq!(round["name"], format!("{session}/1"));
    assert_eq!(home.output(&["kill", round["name"].as_str().unwrap()]).status.code(), Some(0));
    assert_eq!(started.end().0, Some(3));
}

#[test]
fn a_computing_round_uses_more_and_more_cpu_time() {
    let home = Home::new();
    let started = home.start("print('begun')\nwhile True:\n    pass\n", &[]);
    let cpu = |rounds: &[Value]| rounds[0]["cpu_s"].as_f64().unwrap();
    let first = cpu(&home.wait_for_rounds(|rounds| cpu(rounds) > 0.0));
    let rounds = home.wait_for_rounds(|rounds| cpu(rounds) > first);
    assert_eq!(rounds[0]["waits"], serde_json::json!([]));
    assert_eq!(home.output(&["kill", rounds[0]["session"].as_str().unwrap()]).status.code(), Some(0));
    assert_eq!(started.end().0, Some(3));
}

#[test]
fn a_killed_round_says_so_and_its_session_goes_on() {
    let home = Home::new();
    let started = home.start(SLEEPER, &[]);
    let other = home.start(SLEEPER, &[]);
    let rounds = home.wait_for_rounds(|rounds| rounds.len() == 2 && waits_for_a_call(rounds));
    let session = rounds[0]["session"].as_str().unwrap();
    let killed = home.output(&["kill", &format!("{session}/1")]);
    let expected = (Some(0), String::new(), format!("ended {session}/1\n"));
    assert_eq!((killed.status.code(), text(&killed.stdout), text(&killed.stderr)), expected);
    let (code, stdout, stderr) = started.end();
    assert_eq!((code, stdout.as_str()), (Some(3), ""));
    let sentence = "a person ended the program with `fimble kill`; nothing that it assigned was kept";
    assert!(stderr.contains(sentence), "{stderr}");

    // The other process does not notice.
    let left = home.rounds();
    assert_eq!((left.len(), &left[0]["session"]), (1, &rounds[1]["session"]));
    let next = home.start("print('begun')\nprint('after')\n", &["--session", session]);
    assert_eq!(next.end(), (Some(0), "after\n".to_owned(), String::new()));
    let shown = text(&home.output(&["sessions", "show", session]).stdout);
    assert!(shown.contains("stopped: killed"), "{shown}");

    assert_eq!(home.output(&["kill", left[0]["session"].as_str().unwrap()]).status.code(), Some(0));
    assert_eq!(other.end().0, Some(3));
    assert_eq!(home.sockets(), Vec::<PathBuf>::new());
}

#[test]
fn where_nothing_runs_nothing_is_shown_and_nothing_can_be_killed() {
    let home = Home::new();
    let output = home.output(&["ps"]);
    let expected = (Some(0), String::new(), "no program runs\n".to_owned());
    assert_eq!((output.status.code(), text(&output.stdout), text(&output.stderr)), expected);
    let output = home.output(&["kill", "nothing/1"]);
    let expected = "error: no running round is called `nothing/1`\n\nhint: `fimble ps` shows those that run\n";
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(2), expected.to_owned()));
}

#[test]
fn what_a_dead_process_left_is_removed() {
    let home = Home::new();
    let mut started = home.start(SLEEPER, &[]);
    assert_eq!(home.sockets().len(), 1);
    started.child.kill().unwrap();
    started.child.wait().unwrap();
    assert_eq!(home.sockets().len(), 1, "a killed process removes nothing");
    assert_eq!(home.rounds(), Vec::<Value>::new());
    assert_eq!(home.sockets(), Vec::<PathBuf>::new());
}

#[test]
fn only_the_user_can_reach_the_sockets() {
    let home = Home::new();
    let mut started = home.start(SLEEPER, &[]);
    let socket = home.sockets().remove(0);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = socket.parent().unwrap();
    assert_eq!((mode(&socket), mode(folder)), (0o600, 0o700));
    started.child.kill().unwrap();

    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    let output = home.output(&["ps"]);
    assert_eq!(output.status.code(), Some(5));
    assert!(text(&output.stderr).contains("must be yours, and nobody else may enter it"), "{}", text(&output.stderr));
    // The round runs all the same, and says that it cannot be seen.
    let output = home.start("print('begun')\nprint('ran')\n", &[]).end();
    assert_eq!((output.0, output.1.as_str()), (Some(0), "ran\n"));
    assert!(output.2.contains("`fimble ps` will not see this process"), "{}", output.2);
}

#[test]
fn a_process_that_does_not_answer_is_named_and_hides_no_other() {
    let home = Home::new();
    let mut stopped = home.start(SLEEPER, &[]);
    let signal = |name: &str, child: &Child| {
        assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
    };
    // In the middle of a write it would hold the store.
    home.wait_for_rounds(waits_for_a_call);
    signal("-STOP", &stopped.child);
    let mut other = home.start(SLEEPER, &[]);
    home.wait_for_rounds(|rounds| rounds.len() == 1);
    let said = text(&home.output(&["ps", "--json"]).stderr);
    assert!(said.contains("it does not answer"), "{said}");
    assert_eq!(home.sockets().len(), 2);
    stopped.child.kill().unwrap();
    other.child.kill().unwrap();
}
