//! Rounds that go on: after their host was killed, after a wait, in another process. What toolkits did is counted outside.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

mod in_time;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use in_time::{ended, in_time};
use serde_json::Value;
use tempfile::TempDir;
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, ResponseTemplate};

/// A folder with a store, and a toolkit that counts in files.
struct Home {
    folder: TempDir,
}

const MANIFEST: &str = r#"
name = "count_toolkit"
description = "Counts in files."

[[operation]]
name = "add"
description = "Adds a line."
command = ["sh", "-c", "echo \"$1\" >> \"$0\"; if [ -n \"$2\" ]; then touch \"$2.begun\"; while [ ! -e \"$2\" ]; do sleep 0.02; done; fi", "{file}", "{text}", "{gate}"]
risk = "write"
idempotent = false
timeout_s = 60
params = { file = "str", text = "str", gate = { type = "str", default = "" } }

[[operation]]
name = "look"
description = "Waits for a file, and reads it."
command = ["sh", "-c", "touch \"$0.begun\"; while [ ! -e \"$0\" ]; do sleep 0.02; done; cat \"$0\"", "{gate}"]
risk = "read"
timeout_s = 60
params = { gate = "str" }

[[operation]]
name = "pages"
description = "Numbers in pages: tells each that is asked for, and waits for a file before the second."
command = ["sh", "-c", """
echo "page $2" >> "$0"
case "$2" in
"") echo '{"rows": [1, 2], "meta": {"next": "b"}}' ;;
b) touch "$1.begun"; while [ ! -e "$1" ]; do sleep 0.02; done; echo '{"rows": [3], "meta": {"next": "c"}}' ;;
c) echo '{"rows": [4], "meta": {"next": null}}' ;;
esac
""", "{file}", "{gate}", "{page}"]
risk = "read"
timeout_s = 60
result = "json"
paging = { argument = "page", token = "meta.next", items = "rows" }
[operation.params]
file = "str"
gate = "str"
page = { type = "str", required = false }
"#;

/// Nobody listens there: nothing may ask a model.
const NO_MODEL: &str = "http://127.0.0.1:9/v1";

impl Home {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::create_dir(folder.path().join("toolkits")).unwrap();
        std::fs::write(folder.path().join("toolkits/count.toml"), MANIFEST).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn fimble(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fimble"));
        command
            .current_dir(self.folder.path())
            .args(["-c", "store=\"store.db\"", "-c", "gate.flush_ms=20", "--toolkits", "toolkits"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .env("XDG_DATA_HOME", self.path("data"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("XDG_RUNTIME_DIR", self.folder.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        in_time(&mut self.fimble(arguments))
    }

    /// Starts a program and waits until it is in the call that waits for `gate`.
    fn start(&self, program: &str, gate: &str) -> Child {
        std::fs::write(self.path("program.py"), program.replace("FOLDER", self.folder.path().to_str().unwrap()))
            .unwrap();
        let child = self.fimble(&["run", "program.py", "--yes"]).spawn().unwrap();
        wait_for(&self.path(&format!("{gate}.begun")));
        child
    }

    fn session(&self) -> String {
        let list = self.run(&["sessions", "list"]);
        text(&list.stdout).split_whitespace().next().unwrap().to_owned()
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

fn wait_for(file: &Path) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !file.exists() {
        assert!(Instant::now() < deadline, "{} does not come", file.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_round_whose_host_was_killed_repeats_no_call_and_draws_the_same_chance() {
    let home = Home::new();
    let program = "\
import datetime, random, time, uuid
lines = [random.random(), uuid.uuid4().hex, time.time(), datetime.datetime.now().isoformat(), random.Random().random()]
lines += [random.choice(sorted({'a', 'b', 'c'})), str({'x', 'y', 'z', 'w'}), time.monotonic(), time.perf_counter()]
await count_toolkit.add(file='FOLDER/first', text=repr(lines))
print('between')
seen = await count_toolkit.look(gate='FOLDER/gate')
await count_toolkit.add(file='FOLDER/second', text=repr(lines))
assert time.time() >= lines[2] and time.monotonic() >= lines[7]
print('end', seen.strip())
";
    kill(home.start(program, "gate"));
    assert_eq!((home.lines("first").len(), home.lines("second").len()), (1, 0));

    std::fs::write(home.path("gate"), "open").unwrap();
    let id = home.session();
    let resumed = home.run(&["sessions", "resume", &id, "--yes"]);
    assert!(text(&resumed.stdout).ends_with("end open\n"), "{resumed:?}");
    assert_eq!(resumed.status.code(), Some(0), "{}", text(&resumed.stderr));
    assert_eq!(home.lines("first").len(), 1, "what was done is not done again");
    assert_eq!(home.lines("first"), home.lines("second"), "chance and clocks say the same again");

    let variables = text(&home.run(&["sessions", "vars", &id]).stdout);
    assert!(variables.contains("seen: str = 'open'"), "{variables}");
    let again = home.run(&["sessions", "resume", &id]);
    assert_eq!(again.status.code(), Some(2), "{}", text(&again.stderr));
    assert!(text(&again.stderr).contains("nothing was cut off"), "{}", text(&again.stderr));
}

#[test]
fn a_call_that_may_have_acted_is_made_again_only_if_a_person_says_so() {
    for (said, code, lines) in [("again", 0, 2), ("skip", 1, 1), ("stop", 4, 1)] {
        let home = Home::new();
        kill(home.start(
            "await count_toolkit.add(file='FOLDER/first', text='x', gate='FOLDER/gate')\nprint('end')\n",
            "gate",
        ));
        std::fs::write(home.path("gate"), "").unwrap();
        let id = home.session();
        let asked = home.run(&["sessions", "resume", &id]);
        assert_eq!(asked.status.code(), Some(4), "{}", text(&asked.stderr));
        let told = text(&asked.stderr);
        assert!(told.contains("nobody knows whether it acted") && told.contains("count_toolkit.add"), "{told}");
        assert!(told.contains(&format!("fimble sessions answer {id} again|skip|stop")), "{told}");
        assert_eq!(home.lines("first").len(), 1);

        let wrong = home.run(&["sessions", "answer", &id, "perhaps"]);
        assert_eq!(wrong.status.code(), Some(2));
        assert!(text(&wrong.stderr).contains("answer again or skip or stop"), "{}", text(&wrong.stderr));

        let answered = home.run(&["sessions", "answer", &id, said]);
        assert_eq!(answered.status.code(), Some(code), "{said}: {}", text(&answered.stderr));
        assert_eq!(home.lines("first").len(), lines, "{said}");
    }
}

#[test]
fn a_program_that_does_not_repeat_itself_is_stopped_before_it_does_more() {
    let home = Home::new();
    let program = "\
import time
await count_toolkit.add(file='FOLDER/first', text=str(time.process_time_ns()))
await count_toolkit.look(gate='FOLDER/gate')
await count_toolkit.add(file='FOLDER/second', text='x')
";
    kill(home.start(program, "gate"));
    std::fs::write(home.path("gate"), "").unwrap();
    let resumed = home.run(&["sessions", "resume", &home.session(), "--yes"]);
    assert_eq!(resumed.status.code(), Some(3), "{}", text(&resumed.stderr));
    assert!(text(&resumed.stderr).contains("did not repeat itself"), "{}", text(&resumed.stderr));
    assert_eq!((home.lines("first").len(), home.lines("second").len()), (1, 0));
}

#[test]
fn an_approval_given_later_goes_on_at_the_same_call() {
    for (said, code, lines) in [("yes", 0, 1), ("no", 4, 0)] {
        let home = Home::new();
        let program =
            format!("await count_toolkit.add(file='{}', text='x')\nprint('end')\n", home.path("first").display());
        std::fs::write(home.path("program.py"), program).unwrap();
        let waits = home.run(&["run", "program.py"]);
        assert_eq!(waits.status.code(), Some(4), "{}", text(&waits.stderr));
        assert!(text(&waits.stderr).contains("May this write operation be called?"), "{}", text(&waits.stderr));
        let id = home.session();
        let list = text(&home.run(&["sessions", "list"]).stdout);
        assert!(list.contains("(waits for an approval)"), "{list}");
        let answered = home.run(&["sessions", "answer", &id, said]);
        assert_eq!(answered.status.code(), Some(code), "{}", text(&answered.stderr));
        assert_eq!(home.lines("first").len(), lines);
        let list = text(&home.run(&["sessions", "list"]).stdout);
        assert!(!list.contains('('), "{list}");
    }
}

#[test]
fn another_policy_holds_for_what_is_left_of_a_program() {
    let program = "\
for text in ['one', 'two']:
    await count_toolkit.add(file='FOLDER/counted', text=text)
";
    for (arguments, code, expected) in [
        (&["answer", "ID", "yes"][..], 4, &["one"][..]),
        (&["answer", "ID", "yes", "--policy", "auto"], 0, &["one", "two"]),
        (&["resume", "ID", "--policy", "auto"], 0, &["one", "two"]),
        (&["resume", "ID", "--policy", "read-only"], 4, &[]),
        (&["answer", "ID", "yes", "--policy", "read-only"], 4, &["one"]),
    ] {
        let home = Home::new();
        let program = program.replace("FOLDER", home.folder.path().to_str().unwrap());
        std::fs::write(home.path("program.py"), program).unwrap();
        assert_eq!(home.run(&["run", "program.py"]).status.code(), Some(4));
        let id = home.session();
        let given: Vec<&str> = arguments.iter().map(|word| if *word == "ID" { &*id } else { word }).collect();
        let went_on = home.run(&[&["sessions"], &given[..]].concat());
        assert_eq!(went_on.status.code(), Some(code), "{arguments:?}: {}", text(&went_on.stderr));
        assert_eq!(home.lines("counted"), expected, "{arguments:?}: {}", text(&went_on.stderr));
    }
}

#[test]
fn a_question_is_answered_from_another_process() {
    let home = Home::new();
    let program = "\
answers = [await system_toolkit.ask_user('Which?', choices=['red', 'blue']) for _ in range(2)]
await system_toolkit.send_message(' and '.join(answers))
";
    std::fs::write(home.path("program.py"), program).unwrap();
    assert_eq!(home.run(&["run", "program.py"]).status.code(), Some(4));
    let id = home.session();
    let shown = text(&home.run(&["ps"]).stdout);
    assert!(shown.contains(&format!("{id}/1 ")) && shown.trim_end().ends_with("  an answer"), "{shown}");
    let shown: Value = serde_json::from_slice(&home.run(&["ps", "--json"]).stdout).unwrap();
    assert_eq!(
        (shown["session"].as_str(), &shown["round"], &shown["suspended"]),
        (Some(&*id), &1.into(), &"an answer".into())
    );
    assert_eq!(shown["name"], format!("{id}/1"));
    assert_eq!(home.run(&["sessions", "answer", &id, "2"]).status.code(), Some(4), "it asks a second time");
    let answered = home.run(&["sessions", "answer", &id, "green", "--json"]);
    assert_eq!(answered.status.code(), Some(0), "{}", text(&answered.stderr));
    let events: Vec<Value> = text(&answered.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let replies: Vec<&str> = events.iter().filter_map(|event| event["delta"].as_str()).collect();
    assert!(replies.contains(&"blue and green"), "{events:?}");
    assert_eq!(text(&home.run(&["ps"]).stderr), "no program runs\n");
    let none = home.run(&["sessions", "answer", &id, "x"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).contains("nothing waits for an answer"), "{}", text(&none.stderr));
}

#[test]
fn what_is_left_of_a_program_is_edited_in_another_process() {
    let home = Home::new();
    let program = "x = 1\nawait count_toolkit.add(file='FOLDER/first', text='x')\nprint('end')\n";
    std::fs::write(home.path("program.py"), program.replace("FOLDER", home.folder.path().to_str().unwrap())).unwrap();
    assert_eq!(home.run(&["run", "program.py"]).status.code(), Some(4));
    let id = home.session();
    let editor = |script: &str| {
        std::fs::write(home.path("editor"), script).unwrap();
        let mut command = home.fimble(&["-c", "llm.model=none", "-c", "llm.fill=none", "sessions", "edit", &id]);
        command.env("EDITOR", "sh editor").env_remove("VISUAL").env("OPENAI_BASE_URL", NO_MODEL).output().unwrap()
    };
    let unchanged = editor("cp \"$1\" seen");
    assert_eq!((unchanged.status.code(), text(&unchanged.stderr).as_str()), (Some(0), "nothing was changed\n"));
    let seen = home.lines("seen").join("\n");
    assert!(
        seen.starts_with("#: What is left of the program of round 1.") && seen.contains("\n#:     x = 1\nawait "),
        "{seen}"
    );
    let failed = editor("exit 3");
    assert_eq!(failed.status.code(), Some(2));
    assert!(text(&failed.stderr).contains("the editor ended with exit status: 3"), "{}", text(&failed.stderr));

    let wrong = editor("sed -i 's/count_toolkit.add/count_toolkit.sub/' \"$1\"; cp \"$1\" seen");
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong.stderr));
    assert!(text(&wrong.stderr).contains("The program was not run\n- line 1: "), "{}", text(&wrong.stderr));
    assert!(
        home.lines("seen").iter().any(|line| line.starts_with("#: It cannot run: line 1: ")),
        "{:?}",
        home.lines("seen")
    );

    std::fs::write(home.path("rest.py"), "await system_toolkit.send_message(f'x is {x}')\n").unwrap();
    let mut command = home.fimble(&["-c", "llm.model=none", "-c", "llm.fill=none", "sessions", "edit", &id, "rest.py"]);
    let edited = command.env("OPENAI_BASE_URL", NO_MODEL).output().unwrap();
    assert_eq!(edited.status.code(), Some(0), "{}", text(&edited.stderr));
    assert!(text(&edited.stdout).contains("x is 1"), "{}", text(&edited.stdout));
    assert!(home.lines("first").is_empty(), "the call that waited was not made");
    let none = home.run(&["sessions", "edit", &id, "rest.py"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).contains("there is no program to edit"), "{}", text(&none.stderr));
}

#[test]
fn a_long_sleep_lets_the_process_go_and_outlives_its_host() {
    let home = Home::new();
    let program = format!(
        "await count_toolkit.add(file='{}', text='x')\nawait system_toolkit.sleep(seconds=3)\nprint('slept')\n",
        home.path("first").display()
    );
    std::fs::write(home.path("program.py"), program).unwrap();
    let begun = Instant::now();
    let mut sleeper = home.fimble(&["-c", "gate.grace_s=0.1", "run", "program.py", "--yes"]).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while !text(&home.run(&["sessions", "list"]).stdout).contains("(sleeps)") {
        assert!(Instant::now() < deadline);
    }
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    let resumed = home.run(&["-c", "gate.grace_s=0.1", "sessions", "resume", &home.session()]);
    assert_eq!(resumed.status.code(), Some(0), "{}", text(&resumed.stderr));
    assert!(begun.elapsed() >= Duration::from_secs(3));
    assert_eq!(text(&resumed.stdout), "slept\n");
    assert_eq!(home.lines("first").len(), 1);
}

#[test]
fn a_full_disk_loses_no_call_and_the_round_goes_on_when_there_is_room() {
    let home = Home::new();
    let disk = home.path("disk");
    std::fs::create_dir(&disk).unwrap();
    let program = "\
import random
await count_toolkit.add(file='FOLDER/first', text='x')
large = random.randbytes(3_000_000).hex()
print('end')
";
    let program = program.replace("FOLDER", home.folder.path().to_str().unwrap());
    std::fs::write(home.path("program.py"), program).unwrap();
    let script = r#"
        mount -t tmpfs -o size=1500k tmpfs disk || exit 99
        fimble="$1 -c store=disk/store.db --toolkits toolkits $2"
        $fimble run program.py --yes; echo "first $?"
        id=$($fimble sessions list | cut -d ' ' -f 1)
        mount -o remount,size=64m disk
        $fimble sessions resume $id --yes; echo "second $?"
        $fimble sessions vars $id
    "#;
    // An ordinary user may mount where it is alone, and cannot drop its only user there.
    let is_root = nix::unistd::geteuid().is_root();
    let (unshare, jail) = if is_root { ("-m", "") } else { ("-rm", "-c interpreter.isolation=\"none\"") };
    let ran = Command::new("unshare")
        .args([unshare, "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_fimble"), jail])
        .current_dir(home.folder.path())
        .env("XDG_DATA_HOME", home.path("data"))
        .env("XDG_CONFIG_HOME", home.path("config"))
        .output()
        .unwrap();
    let (out, told) = (text(&ran.stdout), text(&ran.stderr));
    assert!(out.contains("first 5\n") && told.contains("the disk is full"), "{out}{told}");
    assert!(out.contains("second 0\n") && out.contains("large: str"), "{out}{told}");
    assert_eq!(out.matches("end\n").count(), 1, "nothing is told twice: {out}{told}");
    assert_eq!(home.lines("first").len(), 1);
}

#[test]
fn a_session_beyond_the_limit_waits_for_its_turn_as_long_as_it_is_told() {
    let home = Home::new();
    let first = home.start("await count_toolkit.look(gate='FOLDER/gate')\nprint('first')\n", "gate");
    std::fs::write(home.path("other.py"), "print('other')\n").unwrap();
    let one_at_a_time = |wait: &str| {
        home.fimble(&["-c", "session.at_once=1", "-c", &format!("session.wait_s={wait}"), "run", "other.py"])
    };
    let mut waits = one_at_a_time("60").spawn().unwrap();
    for wait in ["0", "1"] {
        let refused = in_time(&mut one_at_a_time(wait));
        assert_eq!(refused.status.code(), Some(5), "{refused:?}");
        assert!(text(&refused.stderr).contains("1 of your sessions are at work"), "{}", text(&refused.stderr));
    }
    assert!(waits.try_wait().unwrap().is_none(), "it waits");
    std::fs::write(home.path("gate"), "").unwrap();
    assert_eq!(text(&ended(first).stdout), "first\n");
    let waited = ended(waits);
    assert_eq!((waited.status.code(), text(&waited.stdout).as_str()), (Some(0), "other\n"), "{waited:?}");
}

/// A payment that may have arrived is asked for again with the key of the first time: who is paid knows that it is the same.
#[tokio::test(flavor = "multi_thread")]
async fn an_idempotent_call_that_was_cut_off_is_made_again_with_the_same_key() {
    let home = Home::new();
    let server = MockServer::start().await;
    let never = ResponseTemplate::new(200).set_delay(Duration::from_secs(600));
    Mock::given(method("POST")).respond_with(never).up_to_n_times(1).mount(&server).await;
    let paid = ResponseTemplate::new(200).set_body_json(serde_json::json!({"paid": true}));
    Mock::given(method("POST")).respond_with(paid).mount(&server).await;
    let document = serde_json::json!({
        "openapi": "3.0.3",
        "info": {"title": "Payments", "version": "1"},
        "servers": [{"url": server.uri()}],
        "paths": {"/payments": {"post": {
            "operationId": "pay",
            "parameters": [{"name": "Idempotency-Key", "in": "header", "schema": {"type": "string"}}],
            "responses": {"200": {"description": "Paid.", "content": {"application/json": {"schema": {"type": "object"}}}}}
        }}}
    });
    std::fs::write(home.path("pay.json"), document.to_string()).unwrap();
    std::fs::write(home.path("pay.py"), "print((await pay_toolkit.pay())['paid'])\n").unwrap();
    let with = ["-c", "toolkits.openapi=[{name=\"pay\",document=\"pay.json\"}]"];
    let mut first = home.fimble(&with).args(["run", "pay.py", "--yes"]).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while server.received_requests().await.unwrap().is_empty() {
        assert!(Instant::now() < deadline && first.try_wait().unwrap().is_none(), "no request comes");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    kill(first);
    let resumed = in_time(home.fimble(&with).args(["sessions", "resume", &home.session(), "--yes"]));
    assert_eq!((resumed.status.code(), text(&resumed.stdout).as_str()), (Some(0), "True\n"), "{resumed:?}");
    let requests = server.received_requests().await.unwrap();
    let keys: Vec<&str> = requests.iter().map(|request| request.headers["idempotency-key"].to_str().unwrap()).collect();
    assert!(keys.len() == 2 && keys[0] == keys[1] && keys[0].len() == 32, "{keys:?}");
}

#[test]
fn a_session_that_is_at_work_is_not_deleted() {
    let home = Home::new();
    let first = home.start("await count_toolkit.look(gate='FOLDER/gate')\nprint('first')\n", "gate");
    let id = home.session();
    let refused = home.run(&["sessions", "delete", &id]);
    let told = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(5), "{told}");
    assert!(told.contains("another fimble is at work in this session") && told.contains("hint: "), "{told}");
    std::fs::write(home.path("gate"), "").unwrap();
    assert_eq!(text(&ended(first).stdout), "first\n");
    assert_eq!(home.run(&["sessions", "delete", &id]).status.code(), Some(0));
    assert_eq!(text(&home.run(&["sessions", "list"]).stdout), "");
}

/// Each page is a call in the journal: what came before the end of the host is not asked for again, and no item comes twice.
#[test]
fn a_loop_over_pages_goes_on_with_the_page_that_was_cut_off() {
    let home = Home::new();
    let program = "\
async for number in count_toolkit.pages('FOLDER/asked', 'FOLDER/gate'):
    await count_toolkit.add(file='FOLDER/kept', text=str(number))
print('end')
";
    kill(home.start(program, "gate"));
    assert_eq!(
        (home.lines("asked"), home.lines("kept")),
        (vec!["page ".to_owned(), "page b".to_owned()], lines("1 2"))
    );
    std::fs::write(home.path("gate"), "").unwrap();
    let resumed = home.run(&["sessions", "resume", &home.session(), "--yes"]);
    assert_eq!(
        (resumed.status.code(), text(&resumed.stdout).as_str()),
        (Some(0), "end\n"),
        "{}",
        text(&resumed.stderr)
    );
    assert_eq!(home.lines("asked"), ["page ", "page b", "page b", "page c"]);
    assert_eq!(home.lines("kept"), lines("1 2 3 4"));
}

fn lines(words: &str) -> Vec<String> {
    words.split(' ').map(str::to_owned).collect()
}
