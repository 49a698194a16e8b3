//! The binary at a terminal, and at pipes that close early or are read slowly.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop at the first surprise")]

#[path = "terminal/cards.rs"]
mod cards;
#[path = "terminal/hot_plug.rs"]
mod hot_plug;
#[path = "terminal/lost.rs"]
mod lost;
#[path = "terminal/policy.rs"]
mod policy;
#[path = "stores/server.rs"]
#[expect(dead_code, reason = "the stores' own tests use more of it")]
mod server;
#[path = "terminal/servers.rs"]
mod servers;
#[path = "terminal/waiting.rs"]
mod waiting;

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use nix::pty::{OpenptyResult, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A home of its own for every test.
struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// `fimble` in this home, with nothing of the caller's settings; a program is `program.py`.
    fn fimble(&self, arguments: &[&str], program: &str) -> Command {
        std::fs::write(self.folder.path().join("program.py"), program).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_fimble"));
        command.args(arguments).current_dir(self.folder.path()).env_clear();
        for (name, folder) in [("HOME", ""), ("XDG_DATA_HOME", "data"), ("XDG_CONFIG_HOME", "config")] {
            command.env(name, self.folder.path().join(folder));
        }
        command.env("USER", "tester").env("NO_COLOR", "1").env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn output(&self, arguments: &[&str], program: &str) -> Output {
        self.fimble(arguments, program).output().unwrap()
    }
}

/// A running `fimble` whose standard input and error are a terminal; standard output is a pipe.
struct Terminal {
    child: Child,
    keys: File,
    screen: File,
    seen: String,
    home: Home,
}

impl Terminal {
    fn run(settings: &[&str], program: &str) -> Self {
        let home = Home::new();
        let command = home.fimble(&[settings, &["run", "program.py"]].concat(), program);
        Self::of(home, command, false)
    }

    /// A conversation, whose standard output is the terminal too.
    fn chat(settings: &[&str]) -> Self {
        let home = Home::new();
        let command = home.fimble(&[settings, &["chat"]].concat(), "");
        Self::of(home, command, true)
    }

    fn of(home: Home, mut command: Command, is_whole: bool) -> Self {
        let OpenptyResult { master, slave } = openpty(None, None).unwrap();
        if is_whole {
            command.stdout(slave.try_clone().unwrap());
        }
        command.stdin(slave.try_clone().unwrap()).stderr(slave);
        let child = command.spawn().unwrap();
        // The command holds the other end of the terminal until it is dropped.
        drop(command);
        let keys = File::from(master);
        Self { child, screen: keys.try_clone().unwrap(), keys, seen: String::new(), home }
    }

    /// Waits until the screen shows `text` after what was waited for before.
    #[track_caller]
    fn wait_for(&mut self, text: &str) {
        self.read_until(text);
    }

    /// The same; what the screen showed until then.
    #[track_caller]
    fn read_until(&mut self, text: &str) -> String {
        let mut bytes = [0; 4096];
        loop {
            if let Some(at) = self.seen.find(text) {
                return self.seen.drain(..at + text.len()).collect();
            }
            let count = self.screen.read(&mut bytes).unwrap_or(0);
            assert!(count > 0, "`{text}` did not appear, but {:?}", self.seen);
            self.seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// The exit code, standard output and the rest of the screen.
    fn end(mut self) -> (Option<i32>, String, String) {
        let mut stdout = String::new();
        if let Some(mut pipe) = self.child.stdout.take() {
            pipe.read_to_string(&mut stdout).unwrap();
        }
        let code = self.child.wait().unwrap().code();
        // A terminal without a program at its other end is an error, not an end.
        let mut rest = Vec::new();
        let _ = self.screen.read_to_end(&mut rest);
        self.seen.push_str(&String::from_utf8_lossy(&rest));
        (code, stdout, std::mem::take(&mut self.seen))
    }
}

/// A test that fails leaves nobody behind who waits for keys.
impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_reader_of_a_list_that_goes_away_is_no_failure() {
    let home = Home::new();
    home.output(&["run", "program.py"], "1\n");
    for arguments in [&["sessions", "list"][..], &["toolkits", "list"], &["completion", "bash"], &["run", "program.py"]]
    {
        let mut child = home.fimble(arguments, "print('x' * 100)\n").spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{arguments:?}");
    }
}

#[test]
fn a_reader_of_standard_error_that_goes_away_does_not_lose_the_round() {
    let home = Home::new();
    let program = "kept = 1\ntry:\n    host_toolkit.cpu()\nfinally:\n    pass\nraise ValueError('x')\n";
    let mut child = home.fimble(&["run", "program.py"], program).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let list = text(&home.output(&["sessions", "list"], "").stdout);
    let id = list.split_whitespace().next().unwrap();
    let variables = text(&home.output(&["sessions", "vars", id], "").stdout);
    assert_eq!(variables.split("  (").next(), Some("kept: int = 1"));
}

#[test]
fn prints_reach_a_pipe_unchanged_and_errors_are_cleaned() {
    let program = "print('\\x1b[31mred\\u202e')\nraise ValueError('\\x1b]0;title\\x07\\u202eend')\n";
    let output = Home::new().output(&["run", "program.py"], program);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), "\u{1b}[31mred\u{202e}\n".to_owned()));
    let stderr = text(&output.stderr);
    assert!(stderr.contains("ValueError: ]0;titleend"), "{stderr:?}");
    assert!(!stderr.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{stderr:?}");
}

#[test]
fn a_stored_session_is_cleaned_when_it_is_shown() {
    let home = Home::new();
    home.output(&["run", "program.py"], "name = '\\u202e\\x9b2J'\nraise ValueError('\\x1b[2J\\u2066')\n");
    let list = text(&home.output(&["sessions", "list"], "").stdout);
    let id = list.split_whitespace().next().unwrap();
    for command in ["show", "vars"] {
        let shown = text(&home.output(&["sessions", command, id], "").stdout);
        assert!(!shown.is_empty() && !shown.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\u{2066}']), "{shown:?}");
    }
}

#[test]
fn a_slow_reader_costs_the_program_no_time() {
    let lines = 20_000;
    let program = format!("for n in range({lines}):\n    print('0123456789')\n");
    let arguments = ["-c", "interpreter.limits.output_kib=1024", "run", "program.py", "--timeout", "2"];
    let home = Home::new();
    let mut child = home.fimble(&arguments, &program).spawn().unwrap();
    // A reader that is slower than the program's time is what is tested.
    std::thread::sleep(Duration::from_secs(3));
    let mut stdout = String::new();
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    assert!(stdout == "0123456789\n".repeat(lines), "{} bytes", stdout.len());
}

#[test]
fn ctrl_c_gives_up_on_a_reader_that_does_not_read() {
    let home = Home::new();
    let arguments = ["-c", "interpreter.limits.output_kib=1024", "run", "program.py"];
    let mut child = home.fimble(&arguments, "print('0' * 500_000)\nraise ValueError('end')\n").spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 10]).unwrap();
    // The first may stop the program, the second ends the waiting for the reader; both may be needed.
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    let status = loop {
        kill(pid, Signal::SIGINT).unwrap();
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        std::thread::yield_now();
    };
    assert!(matches!(status.code(), Some(1 | 130)), "{status}");
}

#[test]
fn a_question_is_answered_by_the_person_at_the_terminal() {
    let mut terminal = Terminal::run(&[], "print(await system_toolkit.ask_user('Colour?', ['red', 'blue']))\n");
    terminal.wait_for("? Colour? [red / blue]\r\n› ");
    terminal.press("2\n");
    let (code, stdout, rest) = terminal.end();
    assert_eq!((code, stdout.as_str()), (Some(0), "blue\n"), "{rest}");
    assert!(!rest.contains("? Colour"), "the question is shown once: {rest:?}");
}

#[test]
fn gathered_questions_are_asked_one_after_the_other() {
    let program = "\
import asyncio
print(await asyncio.gather(system_toolkit.ask_user('First?'), system_toolkit.ask_user('Second?')))
";
    let mut terminal = Terminal::run(&[], program);
    terminal.wait_for("? First?\r\n› ");
    assert!(!terminal.seen.contains("Second"), "{:?}", terminal.seen);
    terminal.press("one\n");
    terminal.wait_for("? Second?\r\n› ");
    terminal.press("two\n");
    let (code, stdout, rest) = terminal.end();
    assert_eq!((code, stdout.as_str()), (Some(0), "['one', 'two']\n"), "{rest}");
    // What the first call came to is shown after the second answer, not between question and answer.
    assert!(rest.starts_with("two\r\n→ system_toolkit.ask_user("), "{rest:?}");
}

#[test]
fn ctrl_c_ends_a_question() {
    let mut terminal = Terminal::run(&[], "await system_toolkit.ask_user('Colour?')\n");
    terminal.wait_for("› ");
    kill(Pid::from_raw(i32::try_from(terminal.child.id()).unwrap()), Signal::SIGINT).unwrap();
    let (code, stdout, rest) = terminal.end();
    assert_eq!((code, stdout.as_str()), (Some(130), ""), "{rest}");
}

#[test]
fn keys_pressed_before_an_approval_do_not_approve() {
    let program = "await host_toolkit.cpu()\nprint('one')\nawait host_toolkit.memory()\nprint('two')\n";
    let mut terminal = Terminal::run(&["-c", "gate.policy.read=\"ask\""], program);
    terminal.wait_for("? May this read operation be called? host_toolkit.cpu({})\r\n[y/N/always/?] ");
    terminal.press("y\ny\n");
    terminal.wait_for("? May this read operation be called? host_toolkit.memory({})\r\n[y/N/always/?] ");
    terminal.press("n\n");
    let (code, stdout, rest) = terminal.end();
    assert_eq!((code, stdout.as_str()), (Some(4), "one\n"), "{rest}");
}

#[test]
fn always_is_said_once_and_what_cannot_be_meant_is_asked_again() {
    let program = "for _ in range(2):\n    await host_toolkit.cpu()\nprint('one')\nawait host_toolkit.memory()\n";
    let mut terminal = Terminal::run(&["-c", "gate.policy.read=\"ask\""], program);
    terminal.wait_for("host_toolkit.cpu({})\r\n[y/N/always/?] ");
    terminal.press("?\n");
    terminal.wait_for("? yes, no, always (these arguments), always any (any arguments), always NAME=PATTERN …\r\n");
    terminal.wait_for("[y/N/always/?] ");
    terminal.press("always path=x\n");
    terminal.wait_for("this call has no argument `path`");
    terminal.wait_for("[y/N/always/?] ");
    terminal.press("always\n");
    terminal.wait_for("~ host_toolkit.cpu({}) is allowed from now on (`fimble policy revoke ");
    terminal.wait_for("host_toolkit.memory({})\r\n[y/N/always/?] ");
    terminal.press("\n");
    let (code, stdout, rest) = terminal.end();
    assert_eq!((code, stdout.as_str()), (Some(4), "one\n"), "{rest}");
}

#[test]
fn a_plan_is_looked_at_struck_out_from_and_approved() {
    let home = Home::new();
    let manifest = "name = 'say_toolkit'\ndescription = 'Says.'\n[[operation]]\nname = 'say'\ndescription = 'Says it.'\n\
                    command = ['echo', '{text}']\nrisk = 'write'\nparams = { text = 'str' }\n";
    std::fs::create_dir(home.folder.path().join("toolkits")).unwrap();
    std::fs::write(home.folder.path().join("toolkits/say.toml"), manifest).unwrap();
    let program =
        "one = await say_toolkit.say(text='one')\ntwo = await say_toolkit.say(text='two')\nprint([one, two])\n";
    let command = home.fimble(&["--toolkits", "toolkits", "run", "program.py", "--dry-run"], program);
    let mut terminal = Terminal::of(home, command, false);
    terminal.wait_for(
        "  2. write       say_toolkit.say({\"text\":\"two\"})\r\n       {\"command\":[\"echo\",\"two\"]}\r\n",
    );
    terminal.wait_for("[y/N/numbers to strike out] ");
    terminal.press("7\n");
    terminal.wait_for("there is no effect 7; the plan has 2");
    terminal.press("1\n");
    terminal.wait_for("2 effects, 1 struck out\r\n    1. struck out: write       say_toolkit.say({\"text\":\"one\"})");
    terminal.wait_for("[y/N/numbers to strike out] ");
    terminal.press("y\n");
    let (code, stdout, rest) = terminal.end();
    assert_eq!((code, stdout.as_str()), (Some(0), "['', 'two']\n"), "{rest}");
}

#[test]
fn a_round_that_waits_for_an_approval_can_be_seen_and_killed() {
    let program = "await host_toolkit.cpu()\n";
    let mut terminal = Terminal::run(&["-c", "gate.policy.read=\"ask\""], program);
    terminal.wait_for("[y/N/always/?] ");
    let shown = text(&terminal.home.output(&["ps", "--json"], program).stdout);
    let round: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        (&round["waits"][0]["kind"], &round["waits"][0]["of"]),
        (&"approval".into(), &"host_toolkit.cpu".into())
    );
    // The wait is the person's time, not the program's.
    assert!(round["age_s"].as_f64() > round["wall_s"].as_f64(), "{round:#}");
    let killed = terminal.home.output(&["kill", round["session"].as_str().unwrap()], program);
    assert_eq!(killed.status.code(), Some(0), "{}", text(&killed.stderr));
    let (code, stdout, rest) = terminal.end();
    assert_eq!((code, stdout.as_str()), (Some(3), ""), "{rest}");
    assert!(rest.contains("a person ended the program with `fimble kill`"), "{rest}");
}

#[test]
fn the_system_toolkit_cannot_be_called_by_hand() {
    let output = Home::new().output(&["toolkits", "call", "system_toolkit", "now"], "");
    let expected = "error: `system_toolkit` belongs to a running program\n\nhint: write `await system_toolkit.now(…)` \
                    in a program and use `fimble run`\n";
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(2), expected.to_owned()));
}

#[test]
fn an_unknown_toolkit_is_still_named() {
    let output = Home::new().output(&["toolkits", "call", "nope_toolkit", "now"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("nope_toolkit"), "{}", text(&output.stderr));
}

/// The address of a server that answers every question with the name of a model.
fn naming_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let body = r#"{"data":[{"id":"m"}]}"#;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length:";
            let _ = write!(stream, "{head} {}\r\n\r\n{body}", body.len());
        }
    });
    address
}

#[test]
fn a_conversation_ends_when_it_is_told_to_or_its_terminal_is_closed() {
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGHUP, 129)] {
        let address = format!("llm.base_url={}", naming_server());
        let mut terminal = Terminal::chat(&["-c", &address, "-c", "llm.model=m", "-c", "llm.fill=none"]);
        // The editor asks where the cursor is, and is at work once it has shown its prompt.
        terminal.wait_for("\x1b[6n");
        terminal.press("\x1b[2;1R");
        terminal.wait_for("fimble");
        kill(Pid::from_raw(terminal.child.id() as i32), signal).unwrap();
        assert_eq!(terminal.end().0, Some(code));
    }
}

#[test]
fn a_conversation_in_which_nothing_was_said_does_not_end_for_hooks() {
    let home = Home::new();
    let folder = home.folder.path().join("config/fimble");
    std::fs::create_dir_all(&folder).unwrap();
    let hook = "[[gate.hooks.SessionEnd]]\ncommand = ['sh', '-c', 'cat > end.json']\n";
    std::fs::write(folder.join("config.toml"), hook).unwrap();
    let address = format!("llm.base_url={}", naming_server());
    let command = home.fimble(&["-c", &address, "-c", "llm.model=m", "-c", "llm.fill=none", "chat"], "");
    let told = home.folder.path().join("end.json");
    let mut terminal = Terminal::of(home, command, true);
    terminal.wait_for("\x1b[6n");
    terminal.press("\x1b[2;1R");
    terminal.wait_for("fimble");
    terminal.press("/quit\r");
    let home = std::mem::replace(&mut terminal.home, Home::new());
    assert_eq!(terminal.end().0, Some(0));
    assert!(!told.exists(), "nothing began that could end");
    drop(home);
}

#[test]
fn a_test_that_ends_early_takes_its_process_along() {
    let terminal = Terminal::run(&[], "await system_toolkit.ask_user('Colour?')\n");
    let process = Pid::from_raw(i32::try_from(terminal.child.id()).unwrap());
    assert_eq!(kill(process, None), Ok(()));
    drop(terminal);
    assert_eq!(kill(process, None), Err(nix::errno::Errno::ESRCH));
}
