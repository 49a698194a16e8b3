//! The binary, run as a user would: exit code, standard output, standard error.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "cli/authoring.rs"]
mod authoring;
#[path = "cli/branch.rs"]
mod branch;
#[path = "cli/checked.rs"]
mod checked;
#[path = "cli/doctor.rs"]
mod doctor;
#[path = "cli/hooks.rs"]
mod hooks;
#[path = "cli/kubernetes.rs"]
mod kubernetes;
#[path = "cli/limits.rs"]
mod limits;
#[path = "cli/paging.rs"]
mod paging;
#[path = "cli/plan.rs"]
mod plan;
#[path = "cli/policy.rs"]
mod policy;
#[path = "cli/secrets.rs"]
mod secrets;
#[path = "cli/servers.rs"]
mod servers;
#[path = "cli/store.rs"]
mod store;
#[path = "cli/toolkits.rs"]
mod toolkits;
#[path = "cli/tracebacks.rs"]
mod tracebacks;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use std::io::Write;

/// A home of its own for every test.
struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// `fimble` in this home, with nothing of the caller's settings.
    fn fimble(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fimble"));
        command.args(arguments).current_dir(self.path()).env_clear();
        for (name, folder) in [("HOME", ""), ("XDG_DATA_HOME", "data"), ("XDG_CONFIG_HOME", "config")] {
            command.env(name, self.path().join(folder));
        }
        command.env("USER", "tester").env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    fn output(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = self.fimble(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        if let Err(error) = child.stdin.take().unwrap().write_all(input.as_bytes()) {
            // Whoever has no use for its input may have ended.
            assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
        }
        child.wait_with_output().unwrap()
    }

    /// Runs a program and checks exit code, standard output and standard error whole.
    #[track_caller]
    fn check_run(&self, program: &str, code: i32, stdout: &str, stderr: &str) {
        let output = self.output(&["run", "-"], program);
        assert_eq!(described(&output), (Some(code), stdout.to_owned(), stderr.to_owned()));
    }
}

fn described(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_clean_program_prints_to_standard_output() {
    Home::new().check_run("print('hello')\nprint(1 + 1)\n", 0, "hello\n2\n", "");
}

#[test]
fn a_last_expression_is_shown_like_in_a_notebook() {
    Home::new().check_run("[n * n for n in range(3)]\n", 0, "[0, 1, 4]\n", "");
}

#[test]
fn a_program_that_raises_exits_with_one_and_shows_its_own_lines() {
    let output = Home::new().output(&["run", "-"], "print('before')\nx = 0\nprint(1 / x)\n");
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), "before\n"));
    let stderr = stderr(&output);
    assert!(stderr.contains("ZeroDivisionError: division by zero"), "{stderr}");
    assert!(stderr.contains("print(1 / x)"), "{stderr}");
    assert!(!stderr.contains("_fimble"), "{stderr}");
}

#[test]
fn an_endless_loop_exits_with_three_and_names_the_limit() {
    let output = Home::new().output(&["run", "-", "--timeout", "1"], "print('begun')\nwhile True:\n    pass\n");
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(3), "begun\n"));
    assert!(stderr(&output).contains("1 s"), "{}", stderr(&output));
}

#[test]
fn a_process_that_exits_behind_our_back_exits_with_three() {
    let output = Home::new().output(&["run", "-"], "import os\nos._exit(1)\n");
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
}

#[test]
fn an_unknown_operation_is_refused_before_anything_runs() {
    let output = Home::new().output(&["run", "-"], "print('never')\nawait host_toolkit.cpus()\n");
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""));
    let stderr = stderr(&output);
    assert!(stderr.contains("cpus") && stderr.contains("cpu"), "{stderr}");
}

#[test]
fn toolkit_calls_work_with_and_without_await() {
    let program = "\
import asyncio
first = await host_toolkit.cpu()
second = host_toolkit.cpu()
third, fourth = await asyncio.gather(host_toolkit.cpu(), host_toolkit.memory())
print(first.count == second['count'] == third.count, fourth.total_bytes > 0)
";
    let output = Home::new().output(&["run", "-"], program);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "True True\n"), "{}", stderr(&output));
}

#[test]
fn the_last_session_s_variables_and_functions_are_there_in_the_next_run() {
    let home = Home::new();
    let first = "import math\nnumbers = {1, 2, 3}\ndef area(r):\n    return math.pi * r * r\n";
    assert_eq!(home.output(&["run", "-"], first).status.code(), Some(0));
    let list = stdout(&home.output(&["sessions", "list"], ""));
    let id = list.split_whitespace().next().unwrap();
    let output = home.output(&["run", "-", "--session", id], "print(numbers, round(area(2), 2))\n");
    assert_eq!(described(&output), (Some(0), "{1, 2, 3} 12.57\n".to_owned(), String::new()));
}

#[test]
fn a_session_tells_what_its_variables_were_and_what_wrote_them() {
    let home = Home::new();
    std::fs::write(home.path().join("a.txt"), "one\n").unwrap();
    let first = "limit = 3\nread = await files_toolkit.read(\n    path='a.txt',\n)\ntext = read.text\n";
    assert_eq!(home.output(&["run", "-"], first).status.code(), Some(0));
    let list = stdout(&home.output(&["sessions", "list"], ""));
    let id = list.split_whitespace().next().unwrap();
    let second = home.output(&["run", "-", "--session", id], "limit += 1\ndel text\nshort = read.text[:1]\n");
    assert_eq!(second.status.code(), Some(0), "{}", stderr(&second));
    let ask = |arguments: &[&str]| described(&home.output(&[&["sessions"], arguments].concat(), ""));

    let names = |said: &str| said.lines().map(|line| line.split(':').next().unwrap().to_owned()).collect::<Vec<_>>();
    let then = ask(&["vars", id, "--at", "1"]);
    assert_eq!((then.0, names(&then.1)), (Some(0), ["limit", "read", "text"].map(String::from).to_vec()));
    assert_eq!(names(&ask(&["vars", id]).1), ["limit", "read", "short"]);

    let changed = "- limit: int = 3  (round 1, 1 bytes)\n+ limit: int = 4  (round 2, 1 bytes)\n\
                   + short: str = 'o'  (round 2, 3 bytes)\n- text: str = 'one\\n'  (round 1, 7 bytes)\n";
    assert_eq!(ask(&["diff", id, "1", "2"]), (Some(0), changed.to_owned(), String::new()));
    assert_eq!(ask(&["diff", id, "2", "2"]).1, "");

    let (code, blamed, _) = ask(&["blame", id, "read"]);
    assert_eq!(code, Some(0));
    let lines: Vec<&str> = blamed.lines().collect();
    assert!(lines[0].starts_with("read: dict = {") && lines[1].starts_with("round 1  20"), "{blamed}");
    let source = ["line 2:", "    read = await files_toolkit.read(", "        path='a.txt',", "    )"];
    assert_eq!(lines[3..7], source, "{blamed}");
    assert!(lines[7].starts_with("call files_toolkit.read(path=\"a.txt\"") && lines.len() == 8, "{blamed}");
    assert!(ask(&["blame", id, "limit", "--at", "1"]).1.contains("line 1:\n    limit = 3\n"));
    // A part of a result came of the same call.
    let part = ask(&["blame", id, "text", "--at", "1"]).1;
    assert!(part.contains("line 5:\n    text = read.text\ncall files_toolkit.read("), "{part}");

    let missing = format!(
        "error: there is no variable `text` after round 2\n\nhint: `fimble sessions vars {id} --at 2` lists those there were\n"
    );
    assert_eq!(ask(&["blame", id, "text"]), (Some(2), String::new(), missing));
    let beyond = format!(
        "error: there is no round 3\n\nhint: the session has 2 rounds; `fimble sessions show {id}` lists them\n"
    );
    assert_eq!(ask(&["diff", id, "1", "3"]), (Some(2), String::new(), beyond));
}

#[test]
fn an_unknown_session_is_refused_with_a_hint() {
    let output = Home::new().output(&["run", "-", "--session", "nope"], "1\n");
    let expected = "error: there is no session `nope`\n\nhint: `fimble sessions list` shows the sessions there are\n";
    assert_eq!(described(&output), (Some(2), String::new(), expected.to_owned()));
}

#[test]
fn json_prints_numbered_events() {
    let output = Home::new().output(&["run", "-", "--json"], "print('hi')\n");
    let events: Vec<serde_json::Value> =
        stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let prints: Vec<&str> = events
        .iter()
        .filter(|event| event["name"] == "print")
        .map(|event| event["value"]["text"].as_str().unwrap())
        .collect();
    assert_eq!(prints.concat(), "hi\n");
}

fn events(output: &Output) -> Vec<serde_json::Value> {
    stdout(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_first_event_of_a_session_says_what_isolates_it() {
    let first = events(&Home::new().output(&["run", "-", "--json"], "1\n")).remove(0);
    assert_eq!((&first["name"], &first["value"]["level"]), (&"isolation".into(), &"full".into()), "{first}");
    assert_eq!(first["value"]["missing"], serde_json::json!([]));
    let first = events(&Home::new().output(&["run", "-", "--json", "--isolation", "reduced"], "1\n")).remove(0);
    assert_eq!(first["value"]["missing"], serde_json::json!(["namespaces", "root"]));
}

#[test]
fn every_session_without_isolation_begins_with_a_warning() {
    let home = Home::new();
    for _ in 0..2 {
        let output = home.output(&["run", "-", "--isolation", "none"], "print(1)\n");
        let expected = "warning: isolation is none: a program can read, change and send whatever you can; run only programs \
                        that you trust\n";
        assert_eq!(described(&output), (Some(0), "1\n".to_owned(), expected.to_owned()));
    }
    let output = home.output(&["run", "-", "--isolation", "reduced"], "print(1)\n");
    let said = stderr(&output);
    assert!(said.starts_with("isolation is reduced: ") && said.contains("not there: namespaces, root\n"), "{said}");
}

#[test]
fn a_program_that_is_refused_is_an_event_in_and_outside_of_a_session() {
    let home = Home::new();
    let output = home.output(&["run", "-", "--json"], "await host_toolkit.cpus()\n");
    let refused = events(&output);
    assert_eq!((output.status.code(), refused.len()), (Some(1), 1), "{}", stderr(&output));
    assert_eq!((&refused[0]["name"], &refused[0]["seq"]), (&"refused".into(), &0.into()));
    assert!(refused[0]["value"]["message"].as_str().unwrap().contains("cpus"), "{}", refused[0]);

    assert_eq!(home.output(&["run", "-"], "x = 1\n").status.code(), Some(0));
    let list = stdout(&home.output(&["sessions", "list"], ""));
    let id = list.split_whitespace().next().unwrap();
    let refused = events(&home.output(&["run", "-", "--json", "--session", id], "await host_toolkit.cpus()\n"));
    assert_eq!((refused.len(), &refused[0]["session"]), (1, &id.into()));
    // The numbers go on: it is stored.
    let next = events(&home.output(&["run", "-", "--json", "--session", id], "x\n")).remove(0);
    assert_eq!(next["seq"].as_u64(), refused[0]["seq"].as_u64().map(|seq| seq + 1));
}

#[test]
fn a_file_that_is_not_there_has_a_hint() {
    let output = Home::new().output(&["run", "nothing.py"], "");
    let expected = "error: cannot read `nothing.py`: No such file or directory (os error 2)\n\nhint: name a Python file, or `-` \
                    to read the program from standard input\n";
    assert_eq!(described(&output), (Some(2), String::new(), expected.to_owned()));
}

#[test]
fn a_toolkit_can_be_called_by_hand() {
    let home = Home::new();
    std::fs::write(home.path().join("a.txt"), "one\ntwo\n").unwrap();
    let output = home.output(&["toolkits", "call", "files_toolkit", "read", "path=a.txt"], "");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["text"], "one\ntwo\n");
}

#[test]
fn calls_of_all_sessions_are_counted_by_operation_and_kind_of_error() {
    let home = Home::new();
    let nothing = home.output(&["toolkits", "stats", "nope", "--days", "2"], "");
    assert_eq!((nothing.status.code(), stdout(&nothing)), (Some(0), String::new()));
    let told = String::from_utf8(nothing.stderr).unwrap();
    assert!(told.starts_with("the journal has no calls of `nope` in the last 2 days\n\nhint: "), "{told}");
    std::fs::write(home.path().join("a.txt"), "one\n").unwrap();
    let program = "await files_toolkit.read('a.txt')\ntry:\n    await files_toolkit.read('none.txt')\nexcept ToolError:\n    pass\n";
    for _ in 0..2 {
        assert_eq!(home.output(&["run", "-"], program).status.code(), Some(0));
    }
    assert_eq!(home.output(&["run", "-"], "await system_toolkit.now()\n").status.code(), Some(0));
    assert_eq!(home.output(&["run", "-"], "{}['a']\n").status.code(), Some(1));
    let mut counted = events(&home.output(&["toolkits", "stats", "--json"], ""));
    let rounds = counted.pop().unwrap();
    assert_eq!((&rounds["rounds"], &rounds["finished"], &rounds["success_rate"]), (&4.into(), &3.into(), &0.75.into()));
    assert_eq!(rounds["errors"], serde_json::json!({"KeyError": 1}), "{rounds}");
    let lines = stdout(&home.output(&["toolkits", "stats"], ""));
    let said = "rounds: 4, 75 % of those that ended ran to their end, 1 did not: KeyError 1; median ";
    assert!(lines.lines().last().unwrap().starts_with(said), "{lines}");
    let named: Vec<_> = counted.iter().map(|one| (&one["toolkit"], &one["operation"], &one["calls"])).collect();
    let (files, system) = ("files_toolkit".into(), "system_toolkit".into());
    assert_eq!(named, vec![(&files, &"read".into(), &4.into()), (&system, &"now".into(), &1.into())]);
    assert_eq!(counted[0]["errors"], serde_json::json!({"not_found": 2}));
    assert!(counted[0]["longest_ms"].as_f64() >= counted[0]["median_ms"].as_f64(), "{}", counted[0]);
    let table = stdout(&home.output(&["toolkits", "stats", "files_toolkit", "--days", "1"], ""));
    assert_eq!(table.lines().count(), 2, "{table}");
    assert!(table.contains("files_toolkit.read") && table.contains("not_found 2"), "{table}");
}

#[test]
fn a_program_of_a_few_lines_embeds_the_interpreter() {
    // Built with all tests; one alone does not build it.
    let example = Path::new(env!("CARGO_BIN_EXE_fimble")).with_file_name("examples").join("embed");
    assert!(example.is_file(), "build it first: `cargo build --example embed`");
    let output = Command::new(example).output().unwrap();
    let expected = "hello from the jail\nReturned { value: Some(\"285\") }\n";
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), expected), "{}", stderr(&output));
}

#[test]
fn a_wrong_argument_by_hand_names_the_right_ones() {
    let output = Home::new().output(&["toolkits", "call", "git_toolkit", "log", "count=5"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("count") && stderr(&output).contains("limit"), "{}", stderr(&output));
}

#[test]
fn an_unknown_setting_exits_with_two_and_names_it() {
    let output = Home::new().output(&["-c", "agent.max_round=3", "sessions", "list"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).starts_with("error: the setting `agent.max_round`: unknown field `max_round`"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_limit_cannot_be_switched_off_by_a_strange_number() {
    let output = Home::new().output(&["run", "-", "--timeout=-5"], "1\n");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).starts_with("error: interpreter.limits.wall_s: -5"), "{}", stderr(&output));
}

#[test]
fn a_cancelled_call_is_ended_in_the_journal_and_for_front_ends() {
    let program = "import asyncio\ntry:\n    await asyncio.wait_for(system_toolkit.sleep(5), 0.05)\nexcept TimeoutError:\n    \
                   print('gave up')\n";
    let output = Home::new().output(&["run", "-", "--json"], program);
    let events: Vec<serde_json::Value> =
        stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ends: Vec<_> = events.iter().filter(|event| event["type"] == "TOOL_CALL_RESULT").collect();
    assert_eq!(ends.len(), 1, "{}", stdout(&output));
    assert_eq!(ends[0]["failed"], true);
    assert!(ends[0]["content"].as_str().unwrap().starts_with("cut off"), "{}", ends[0]);
    let is_named = |event: &&serde_json::Value| event["toolCallId"] == ends[0]["toolCallId"];
    assert_eq!(events.iter().find(is_named).unwrap()["toolCallName"], "system_toolkit.sleep");
}

#[test]
fn secrets_of_the_environment_are_masked_in_what_a_program_says() {
    let home = Home::new();
    let mut command = home.fimble(&["run", "-"]);
    command.env("SHOP_API_KEY", "sk-very-secret").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let program = b"await system_toolkit.send_message('sk-very-secret')\nprint('sk-very-secret')\n";
    child.stdin.take().unwrap().write_all(program).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(stdout(&output), "********\n********\n", "{}", stderr(&output));
}

#[test]
fn two_processes_cannot_work_in_one_session() {
    let home = Home::new();
    assert_eq!(home.output(&["run", "-"], "x = 1\n").status.code(), Some(0));
    let list = stdout(&home.output(&["sessions", "list"], ""));
    let id = list.split_whitespace().next().unwrap();
    let mut command = home.fimble(&["run", "-", "--session", id]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut first = command.spawn().unwrap();
    first.stdin.take().unwrap().write_all(b"print('begun')\nawait system_toolkit.sleep(20)\n").unwrap();
    let mut said = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(first.stdout.take().unwrap()), &mut said).unwrap();
    assert_eq!(said, "begun\n");
    let third = home.output(&["-c", "session.at_once=1", "run", "-"], "1\n");
    let told = "error: 1 of your sessions are at work, as many as may be at a time";
    assert_eq!((third.status.code(), stderr(&third).lines().next()), (Some(5), Some(told)));
    assert_eq!(home.output(&["run", "-"], "1\n").status.code(), Some(0), "there are more places");
    let second = home.output(&["run", "-", "--session", id], "1\n");
    assert_eq!(second.status.code(), Some(5));
    assert!(stderr(&second).contains("another fimble is at work in this session"), "{}", stderr(&second));
    // A process that is told to end stores what it has done.
    Command::new("kill").args(["-TERM", &first.id().to_string()]).status().unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(130));
    let shown = stdout(&home.output(&["sessions", "show", id], ""));
    assert!(shown.contains("stopped: cancelled"), "{shown}");
}

#[test]
fn a_redis_that_is_down_exits_with_five_and_shows_no_password() {
    let home = Home::new();
    let output =
        home.fimble(&["sessions", "list"]).env("REDIS_URL", "redis://ada:secret@127.0.0.1:1/2").output().unwrap();
    let expected = "error: the store cannot be opened: `redis://127.0.0.1:1/2`: Connection refused (os error 111)\n\n\
                    hint: start the server, or name another store with `store = …`; `fimble doctor` tries it\n";
    assert_eq!(described(&output), (Some(5), String::new(), expected.to_owned()));
    let output = home.output(&["-c", "store=mysql://ada:secret@host", "sessions", "list"], "");
    assert!(output.status.code() == Some(2) && !stderr(&output).contains("secret"), "{}", stderr(&output));
}

#[test]
fn an_endpoint_that_is_down_exits_with_five_and_a_hint() {
    let home = Home::new();
    let arguments = ["-c", "llm.base_url=http://127.0.0.1:9/v1", "-c", "llm.model=any", "-c", "llm.retries=0"];
    let output = home.output(&[&arguments[..], &["chat", "--ask", "hello"]].concat(), "");
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(5), ""), "{}", stderr(&output));
    assert!(stderr(&output).contains("127.0.0.1:9") && stderr(&output).contains("\nhint: "), "{}", stderr(&output));
    // Nothing was said, so nothing is kept.
    assert_eq!(stdout(&home.output(&["sessions", "list"], "")), "");
}

#[test]
fn chat_without_a_terminal_says_what_to_do() {
    let output = Home::new().output(&["chat"], "");
    let expected = "error: standard input is not a terminal\n\nhint: use `fimble chat --ask TEXT`, or `fimble chat -` to \
                    read one message from standard input\n";
    assert_eq!(described(&output), (Some(2), String::new(), expected.to_owned()));
}
