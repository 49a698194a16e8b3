//! What is left of a turn whose process dies: at every point that it passes, with either store. The judge is a file that the
//! toolkit writes, outside of all processes. After each death: no call made twice, nothing lost that was stored, and the turn
//! goes on to its reply.

#![cfg(feature = "crash")]
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop at the first surprise")]

#[path = "durability/changes.rs"]
mod changes;
#[path = "durability/faults.rs"]
mod faults;
mod in_time;
#[path = "stores/proxy.rs"]
#[expect(dead_code, reason = "the stores' own tests use more of it")]
mod proxy;
#[path = "durability/worker.rs"]
mod worker;

#[path = "stores/server.rs"]
#[expect(dead_code, reason = "the stores' own tests use more of it")]
mod server;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use fimble::crash::{self, VARIABLE};
use in_time::{DEADLINE, ended, in_time};
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

/// What a model answers that writes a program.
fn written(program: &str) -> ResponseTemplate {
    let chunk = |delta: Value, end: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": end}]});
    let text = chunk(json!({ "content": program }), Value::Null);
    let body = format!("data: {text}\n\ndata: {}\n\ndata: [DONE]\n\n", chunk(json!({}), json!("stop")));
    ResponseTemplate::new(200).set_body_raw(body, "text/event-stream")
}

struct World {
    redis: Option<Server>,
    /// The store that commands are told.
    store: String,
    /// What may happen unasked.
    policy: &'static str,
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
            written(&program)
        };
        Mock::given(method("POST")).and(path("/v1/chat/completions")).respond_with(answer).mount(&model).await;
        let store = match &redis {
            Some(server) => server.url(),
            None => folder.path().join("store.db").display().to_string(),
        };
        Self { redis, store, policy: ALLOW, model, folder }
    }

    /// From now on the model writes this one.
    async fn programs_are(&mut self, program: &str) {
        self.model.reset().await;
        let program = program.replace("FOLDER", self.folder.path().to_str().unwrap());
        let answer = written(&program);
        Mock::given(method("POST")).and(path("/v1/chat/completions")).respond_with(answer).mount(&self.model).await;
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn fimble(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fimble"));
        command
            .current_dir(self.folder.path())
            .args(["-c", &format!("store={}", self.store), "-c", self.policy, "-c", "gate.flush_ms=1"])
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
        in_time(&mut self.fimble(arguments))
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

    /// One more step of a person who looks before they answer, on the way to the turn's reply; the session once it is there.
    fn step(&self) -> Option<String> {
        let Some((id, line)) = self.session() else {
            self.run(&["chat", "--ask", "Paint"]);
            return None;
        };
        let step = if line.contains("(waits for an answer)") {
            self.run(&["sessions", "answer", &id, "red"])
        } else if line.contains("(waits for an approval)") {
            let consent = self.consent(&id)?;
            self.run(&["sessions", "answer", &id, consent])
        } else if line.contains("(at work, or cut off)") {
            self.run(&["sessions", "resume", &id])
        } else if self.events(&id).iter().any(|event| event["type"] == "TEXT_MESSAGE_CHUNK") {
            return Some(id);
        } else {
            self.run(&["chat", "--resume", &id, "--ask", "Paint"])
        };
        assert!(step.status.code().is_some(), "{step:?}");
        None
    }

    /// The answer to what is asked: a plan or a call is approved, and a call that may have been made is made again if it was not.
    /// `None` if there was an answer, and the turn went on with it.
    fn consent(&self, id: &str) -> Option<&'static str> {
        let told = String::from_utf8(self.run(&["sessions", "resume", id]).stderr).unwrap();
        if !self.session().unwrap().1.contains("(waits for an approval)") {
            return None;
        }
        if !told.contains("nobody knows whether it acted") {
            return Some("yes");
        }
        // Which one it is is in the question.
        let number = ["\"1 ", "\"2 ", "\"red"].into_iter().find(|text| told.contains(*text)).unwrap();
        let made = self.acts().iter().any(|act| act.starts_with(number.trim_start_matches('"')));
        Some(if made { "skip" } else { "again" })
    }

    /// Brings the turn to its reply, however it stands.
    fn bring_to_an_end(&self) -> String {
        for _ in 0..14 {
            self.forget_lease();
            if let Some(id) = self.step() {
                return id;
            }
        }
        panic!("the turn does not end: {:?}, {:?}", self.session(), self.acts());
    }

    /// The turn is over, no call was made twice, and nothing is lost that was stored.
    fn check(&self, id: &str, at: &str) {
        let acts = self.acts();
        let begins: Vec<&str> = acts.iter().filter_map(|act| act.split(' ').next()).collect();
        assert_eq!(begins, ["1", "2", "red"], "{at}: each call is made once");
        let events = self.events(id);
        let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "{at}");
        let replies: Vec<&str> = events.iter().filter_map(|event| event["delta"].as_str()).collect();
        let replies = replies.into_iter().filter(|text| text.starts_with("painted")).collect::<Vec<_>>();
        assert_eq!(replies, ["painted red"], "{at}");
        let variables = String::from_utf8(self.run(&["sessions", "vars", id]).stdout).unwrap();
        for kept in ["kept: list[int] = [1, 2]", "colour: str = 'red'"] {
            assert!(variables.contains(kept), "{at}: {variables}");
        }
    }
}

/// Kills a turn at each of the points, so many times later than when it is passed first.
async fn survives(points: &[&'static str], policy: &'static str, redis: impl Fn() -> Option<Server>, times: u32) {
    let mut died = BTreeSet::new();
    for point in points {
        for passed in 1..=times {
            // A task that never yields is refused what it waits for after a while, and the model's server waits when it ends.
            tokio::task::yield_now().await;
            let world = World { policy, ..World::new(redis()).await };
            let at = format!("{point}#{passed}");
            // A turn that waits for a person is killed in either part, in the process that it is passed in first.
            let mut dead =
                in_time(world.fimble(&["chat", "--ask", "Paint"]).env(VARIABLE, &at)).status.code().is_none();
            for _ in 0..5 {
                let Some((id, line)) = world.session().filter(|_| !dead) else { break };
                let said = match line {
                    line if line.contains("(waits for an answer)") => Some("red"),
                    line if line.contains("(waits for an approval)") => world.consent(&id),
                    _ => None,
                };
                let Some(said) = said else { break };
                let answered = in_time(world.fimble(&["sessions", "answer", &id, said]).env(VARIABLE, &at));
                dead |= answered.status.code().is_none();
            }
            if dead {
                died.insert(*point);
            }
            let id = world.bring_to_an_end();
            world.check(&id, &at);
        }
    }
    assert_eq!(died, points.iter().copied().collect(), "every point is passed");
}

const ALLOW: &str = "gate.policy.write=\"allow\"";
const ASK: &str = "gate.policy.write=\"ask\"";
const PLAN: &str = "gate.policy.profile=\"plan\"";

/// Those at which a person's answer matters.
const AROUND_AN_APPROVAL: [&str; 9] = [
    "call waiting",
    "round suspended",
    "turn settled",
    "turn ended",
    "answer written",
    "round reopened",
    "call admitted",
    "call requested",
    "call done",
];

/// Those of a plan's way from its drawing up to its end.
const AROUND_A_PLAN: [&str; 9] = [
    "plan journaled",
    "plan drawn up",
    "plan proposed",
    "answer written",
    "round reopened",
    "call requested",
    "call done",
    "round ended",
    "round committed",
];

#[test]
fn no_point_is_left_out() {
    let lists =
        [&crash::TURN[..], &AROUND_AN_APPROVAL, &AROUND_A_PLAN, &worker::ENTRIES, &crash::WAKING, &changes::ALL];
    let tested: BTreeSet<&str> = lists.concat().into_iter().collect();
    let all: BTreeSet<&str> = crash::lists().concat().into_iter().collect();
    assert_eq!(tested, all);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_survives_its_process_at_every_point_with_a_file() {
    survives(&crash::TURN, ALLOW, || None, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_survives_its_process_at_every_point_with_redis() {
    survives(&crash::TURN, ALLOW, || Some(Server::new()), 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_with_approvals_survives_its_process() {
    survives(&AROUND_AN_APPROVAL, ASK, || None, 1).await;
    survives(&crash::APPROVAL, ASK, || Some(Server::new()), 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_with_plans_survives_its_process() {
    survives(&AROUND_A_PLAN, PLAN, || None, 1).await;
    survives(&crash::PLAN, PLAN, || Some(Server::new()), 1).await;
}
