//! What is left of a turn whose process dies: at every point that it passes, with either store. The judge is a file that the
//! toolkit writes, outside of all processes. After each death: no call made twice, nothing lost that was stored, and the turn
//! goes on to its reply.

#![cfg(feature = "crash")]
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop at the first surprise")]

#[path = "stores/server.rs"]
#[expect(dead_code, reason = "the stores' own tests use more of it")]
mod server;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use fimble::crash::{POINTS, VARIABLE};
use serde_json::{Value, json};
use server::Server;
use tempfile::TempDir;
use wiremock::matchers::{method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

const MANIFEST: &str = r#"
name = "count_toolkit"
description = "Counts in files."

[[operation]]
name = "add"
description = "Adds a line."
command = ["sh", "-c", "echo \"$1\" >> \"$0\"", "{file}", "{text}"]
risk = "write"
idempotent = false
params = { file = "str", text = "str" }

[[operation]]
name = "look"
description = "Reads a file."
command = ["cat", "{file}"]
risk = "read"
params = { file = "str" }
"#;

/// Two rounds: the first looks and keeps a variable, the second acts on it, asks, and replies. Whoever says that a call was
/// made does not want it again.
const PROGRAMS: [&str; 2] = [
    "kept = [1, 2]\nprint('looked', len(kept))\n",
    "
import random
for number in kept:
    try:
        await count_toolkit.add(file='FOLDER/acts', text=f'{number} {random.random()}')
    except ToolError as error:
        print(error)
seen = await count_toolkit.look(file='FOLDER/acts')
colour = await system_toolkit.ask_user('Which colour?')
await count_toolkit.add(file='FOLDER/acts', text=colour)
await system_toolkit.send_message(f'painted {colour}')
",
];

struct World {
    redis: Option<Server>,
    model: MockServer,
    folder: TempDir,
}

impl World {
    async fn new(redis: Option<Server>) -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::create_dir(folder.path().join("toolkits")).unwrap();
        std::fs::write(folder.path().join("toolkits/count.toml"), MANIFEST).unwrap();
        let model = MockServer::start().await;
        // The model has the transcript before it: a program that has run is not written again.
        let place = folder.path().to_str().unwrap().to_owned();
        let answer = move |request: &wiremock::Request| {
            let asked = String::from_utf8_lossy(&request.body).into_owned();
            let program = PROGRAMS[usize::from(asked.contains("looked 2"))].replace("FOLDER", &place);
            let chunk =
                |delta: Value, end: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": end}]});
            let text = chunk(json!({ "content": program }), Value::Null);
            let body = format!("data: {text}\n\ndata: {}\n\ndata: [DONE]\n\n", chunk(json!({}), json!("stop")));
            ResponseTemplate::new(200).set_body_raw(body, "text/event-stream")
        };
        Mock::given(method("POST")).and(path("/v1/chat/completions")).respond_with(answer).mount(&model).await;
        Self { redis, model, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn fimble(&self, arguments: &[&str]) -> Command {
        let store = match &self.redis {
            Some(server) => server.url(),
            None => self.path("store.db").display().to_string(),
        };
        let mut command = Command::new(env!("CARGO_BIN_EXE_fimble"));
        command
            .current_dir(self.folder.path())
            .args(["-c", &format!("store={store}"), "-c", "gate.policy.write=\"allow\"", "-c", "gate.flush_ms=1"])
            .args(["-c", "agent.encoding=\"chat\"", "-c", "llm.model=\"scripted\"", "--toolkits", "toolkits"])
            .args(arguments)
            .stdin(Stdio::null())
            .env("OPENAI_BASE_URL", format!("{}/v1", self.model.uri()))
            .env("OPENAI_API_KEY", "sk-none")
            .env("XDG_DATA_HOME", self.path("data"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("XDG_RUNTIME_DIR", self.folder.path())
            .env_remove(VARIABLE);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.fimble(arguments).output().unwrap()
    }

    /// Forgets the dead process's lease, as time would.
    fn forget_lease(&self) {
        if let Some(server) = &self.redis {
            for key in server.run(&["KEYS", "fimble:*:lease"]) {
                server.run(&["DEL", &key]);
            }
        }
    }

    fn session(&self) -> Option<(String, String)> {
        let list = String::from_utf8(self.run(&["sessions", "list"]).stdout).unwrap();
        let line = list.lines().next()?;
        Some((line.split_whitespace().next().unwrap().to_owned(), line.to_owned()))
    }

    fn acts(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("acts")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn events(&self, id: &str) -> Vec<Value> {
        let told = self.run(&["sessions", "follow", id, "--until-idle"]);
        let text = String::from_utf8(told.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Brings the turn to its reply, however it stands; the answers are those of a person who looks first.
    fn bring_to_an_end(&self) -> String {
        for _ in 0..6 {
            self.forget_lease();
            let Some((id, line)) = self.session() else {
                self.run(&["chat", "--ask", "Paint"]);
                continue;
            };
            let step = if line.contains("(waits for an answer)") {
                self.run(&["sessions", "answer", &id, "red"])
            } else if line.contains("(waits for an approval)") {
                // A call that may have been made: which one is in the question.
                let told = String::from_utf8(self.run(&["sessions", "resume", &id]).stderr).unwrap();
                let acts = self.acts();
                let number = ["\"1 ", "\"2 ", "\"red"].into_iter().find(|text| told.contains(*text)).unwrap();
                let made = acts.iter().any(|act| act.starts_with(number.trim_start_matches('"')));
                self.run(&["sessions", "answer", &id, if made { "skip" } else { "again" }])
            } else if line.contains("(at work, or cut off)") {
                self.run(&["sessions", "resume", &id])
            } else if self.events(&id).iter().any(|event| event["type"] == "TEXT_MESSAGE_CHUNK") {
                return id;
            } else {
                self.run(&["chat", "--resume", &id, "--ask", "Paint"])
            };
            assert!(step.status.code().is_some(), "{step:?}");
        }
        panic!("the turn does not end: {:?}, {:?}", self.session(), self.acts());
    }
}

/// Kills a turn at each point, so many times later than when it is passed first.
async fn survives(redis: impl Fn() -> Option<Server>, times: u32) {
    let mut died = BTreeSet::new();
    for point in POINTS {
        for passed in 1..=times {
            // A task that never yields is refused what it waits for after a while, and the model's server waits when it ends.
            tokio::task::yield_now().await;
            let world = World::new(redis()).await;
            let at = format!("{point}#{passed}");
            // A turn that waits for its answer is killed in either half.
            let first = world.fimble(&["chat", "--ask", "Paint"]).env(VARIABLE, &at).output().unwrap();
            let mut dead = first.status.code().is_none();
            if !dead && let Some((id, _)) = world.session() {
                let second = world.fimble(&["sessions", "answer", &id, "red"]).env(VARIABLE, &at).output().unwrap();
                dead |= second.status.code().is_none();
            }
            if dead {
                died.insert(point);
            }
            let id = world.bring_to_an_end();
            let acts = world.acts();
            let begins: Vec<&str> = acts.iter().filter_map(|act| act.split(' ').next()).collect();
            assert_eq!(begins, ["1", "2", "red"], "{at}: each call is made once");
            let events = world.events(&id);
            let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
            assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "{at}");
            let replies: Vec<&str> = events.iter().filter_map(|event| event["delta"].as_str()).collect();
            let replies = replies.into_iter().filter(|text| text.starts_with("painted")).collect::<Vec<_>>();
            assert_eq!(replies, ["painted red"], "{at}");
            let variables = String::from_utf8(world.run(&["sessions", "vars", &id]).stdout).unwrap();
            for kept in ["kept: list[int] = [1, 2]", "colour: str = 'red'"] {
                assert!(variables.contains(kept), "{at}: {variables}");
            }
        }
    }
    assert_eq!(died, BTreeSet::from(POINTS), "every point is passed");
}

/// The library that gives a process another clock.
fn other_clock() -> PathBuf {
    let library = std::fs::read_dir("/usr/lib").unwrap().filter_map(|folder| {
        Some(folder.ok()?.path().join("faketime/libfaketimeMT.so.1")).filter(|library| library.exists())
    });
    library.into_iter().next().expect("libfaketime is installed: make setup")
}

/// The clock of the host is set back by a day while a program runs, the host dies, and goes on two days later, or two days
/// before.
async fn survives_other_clocks(redis: impl Fn() -> Option<Server>) {
    for later in ["+2d", "-2d"] {
        tokio::task::yield_now().await;
        let world = World::new(redis()).await;
        let clock = world.path("clock");
        let run = |arguments: &[&str], point: Option<&str>| {
            let mut command = world.fimble(arguments);
            command.env("LD_PRELOAD", other_clock()).env("FAKETIME_TIMESTAMP_FILE", &clock);
            command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
            command.envs(point.map(|point| (VARIABLE, point))).output().unwrap()
        };
        std::fs::write(&clock, "+0").unwrap();
        std::fs::write(world.path("toolkits/clock.toml"), CLOCK.replace("CLOCK", clock.to_str().unwrap())).unwrap();
        let program = "
first = await clock_toolkit.turn_back()
for number in [1, 2]:
    await count_toolkit.add(file='FOLDER/acts', text=str(number))
await system_toolkit.sleep(0.5)
colour = await system_toolkit.ask_user('Which colour?')
await count_toolkit.add(file='FOLDER/acts', text=colour)
";
        std::fs::write(world.path("program.py"), program.replace("FOLDER", world.folder.path().to_str().unwrap()))
            .unwrap();
        let killed = run(&["run", "program.py"], Some("call done#3"));
        assert_eq!(killed.status.code(), None, "{killed:?}");
        assert_eq!(std::fs::read_to_string(&clock).unwrap().trim(), "-1d");
        let (id, before) = (world.session().unwrap().0, world.acts());
        std::fs::write(&clock, later).unwrap();
        world.forget_lease();
        let waits = run(&["sessions", "resume", &id], None);
        assert_eq!(waits.status.code(), Some(4), "{waits:?}");
        std::fs::write(&clock, "-5d").unwrap();
        let answered = run(&["sessions", "answer", &id, "red"], None);
        assert_eq!(answered.status.code(), Some(0), "{answered:?}");
        assert_eq!((before.len(), world.acts()), (2, ["1", "2", "red"].map(str::to_owned).to_vec()), "{later}");
        let events = world.events(&id);
        let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "{later}");
        std::fs::write(world.path("program.py"), "print(colour)\n").unwrap();
        let latest = run(&["run", "program.py", "--session", &id], None);
        assert_eq!(latest.status.code(), Some(0), "the session goes on: {latest:?}");
    }
}

const CLOCK: &str = r#"
name = "clock_toolkit"
description = "Sets the clock of its host."

[[operation]]
name = "turn_back"
description = "By a day."
command = ["sh", "-c", "printf %s -1d > CLOCK"]
risk = "write"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_round_survives_a_clock_that_is_set_with_a_file() {
    survives_other_clocks(|| None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_round_survives_a_clock_that_is_set_with_redis() {
    survives_other_clocks(|| Some(Server::new())).await;
}

const WAIT: &str = r#"
name = "wait_toolkit"
description = "Waits."

[[operation]]
name = "for_file"
description = "Waits for a file."
command = ["sh", "-c", "touch FOLDER/begun; while [ ! -e FOLDER/gate ]; do sleep 0.02; done"]
risk = "write"
idempotent = false
timeout_s = 60
"#;

/// The server is killed while a toolkit acts. Whether it is back before patience ends or after, nothing is done twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_round_survives_a_server_that_is_killed_while_a_toolkit_acts() {
    for comes_back_in_time in [true, false] {
        tokio::task::yield_now().await;
        let redis = Server::with(&["--appendonly", "yes", "--appendfsync", "always"]);
        let mut world = World::new(Some(redis)).await;
        let folder = world.folder.path().to_str().unwrap().to_owned();
        let program = "
await count_toolkit.add(file='FOLDER/acts', text='1')
await wait_toolkit.for_file()
await count_toolkit.add(file='FOLDER/acts', text='2')
print('end')
";
        std::fs::write(world.path("toolkits/wait.toml"), WAIT.replace("FOLDER", &folder)).unwrap();
        std::fs::write(world.path("program.py"), program.replace("FOLDER", &folder)).unwrap();
        let mut command = world.fimble(&["run", "program.py"]);
        let mut run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        server::wait_until("the toolkit acts", || world.path("begun").exists());
        world.redis.as_mut().unwrap().kill();
        std::fs::write(world.path("gate"), "").unwrap();
        if comes_back_in_time {
            world.redis.as_mut().unwrap().restart();
            let ran = run.wait_with_output().unwrap();
            assert_eq!((ran.status.code(), ran.stdout.as_slice()), (Some(0), &b"end\n"[..]), "{ran:?}");
        } else {
            assert_eq!(run.wait().unwrap().code(), Some(5), "the store is not reached");
            world.redis.as_mut().unwrap().restart();
            world.forget_lease();
            let (id, line) = world.session().unwrap();
            assert!(line.contains("(at work, or cut off)"), "{line}");
            let asks = world.run(&["sessions", "resume", &id]);
            assert_eq!(asks.status.code(), Some(4), "nobody knows whether the call acted: {asks:?}");
            let ended = world.run(&["sessions", "answer", &id, "again"]);
            assert!(ended.stdout.ends_with(b"end\n"), "{ended:?}");
        }
        assert_eq!(world.acts(), ["1", "2"], "in time: {comes_back_in_time}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_survives_its_process_at_every_point_with_a_file() {
    survives(|| None, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_survives_its_process_at_every_point_with_redis() {
    survives(|| Some(Server::new()), 1).await;
}
