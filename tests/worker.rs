//! Workers that share a Redis: real processes, a real server, a model that is scripted behind its real wire format. What the
//! programs did is counted outside of all of them.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop at the first surprise")]

#[path = "worker/cluster.rs"]
mod cluster;
#[path = "worker/failover.rs"]
mod failover;
mod in_time;
#[path = "worker/lost.rs"]
mod lost;
#[path = "worker/order.rs"]
mod order;
#[path = "agents/scripted.rs"]
mod scripted;
#[path = "stores/server.rs"]
#[expect(dead_code, reason = "the stores' own tests use more of it")]
mod server;
#[path = "worker/settings.rs"]
mod settings;
#[path = "worker/stop.rs"]
mod stop;

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use fimble::event::{Event, EventKind};
use fimble::record::{Outcome, Round, SessionRecord};
use fimble::store::redis::Redis;
use fimble::store::{Store, StoreError};
use in_time::{ended, in_time};
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
command = ["sh", "-c", "echo x >> \"$0\"", "{file}"]
risk = "write"
idempotent = false
params = { file = "str" }

[[operation]]
name = "look"
description = "Waits for a file."
command = ["sh", "-c", "touch \"$0.begun\"; while [ ! -e \"$0\" ]; do sleep 0.02; done", "{gate}"]
risk = "read"
timeout_s = 60
params = { gate = "str" }
"#;

/// A Redis, a model that always writes the same program, and a folder.
struct World {
    redis: Server,
    /// The store that commands are told.
    url: String,
    model: MockServer,
    folder: TempDir,
}

impl World {
    async fn new(program: &str) -> Self {
        let program = program.to_owned();
        Self::answering(move |_| program.clone()).await
    }

    /// One whose model writes the program for what it is asked.
    async fn answering(program: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::create_dir(folder.path().join("toolkits")).unwrap();
        std::fs::write(folder.path().join("toolkits/count.toml"), MANIFEST).unwrap();
        let model = MockServer::start().await;
        let place = folder.path().to_str().unwrap().to_owned();
        let answer = move |request: &wiremock::Request| {
            let text = program(&String::from_utf8_lossy(&request.body)).replace("FOLDER", &place);
            let chunk =
                |delta: Value, end: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": end}]});
            let body = format!(
                "data: {}\n\ndata: {}\n\ndata: [DONE]\n\n",
                chunk(json!({ "content": text }), Value::Null),
                chunk(json!({}), json!("stop"))
            );
            ResponseTemplate::new(200).set_body_raw(body, "text/event-stream")
        };
        Mock::given(method("POST")).and(path("/v1/chat/completions")).respond_with(answer).mount(&model).await;
        let redis = Server::new();
        Self { url: redis.url(), redis, model, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn fimble(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fimble"));
        command
            .current_dir(self.folder.path())
            .args(["-c", "gate.policy.write=\"allow\"", "-c", "gate.flush_ms=20", "-c", "agent.encoding=\"chat\""])
            .args(["-c", "llm.model=\"scripted\"", "--toolkits", "toolkits"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .env("REDIS_URL", &self.url)
            .env("OPENAI_BASE_URL", format!("{}/v1", self.model.uri()))
            .env("OPENAI_API_KEY", "sk-none")
            .env("XDG_DATA_HOME", self.path("data"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("XDG_RUNTIME_DIR", self.folder.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        in_time(&mut self.fimble(arguments))
    }

    fn worker(&self) -> Child {
        let mut command = self.fimble(&["worker", "--lease", "2", "--turns", "2"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn send(&self, text: &str) -> String {
        let sent = self.run(&["sessions", "send", text]);
        assert!(sent.status.success(), "{sent:?}");
        String::from_utf8(sent.stdout).unwrap().trim().to_owned()
    }

    fn lines(&self, name: &str) -> usize {
        std::fs::read_to_string(self.path(name)).unwrap_or_default().lines().count()
    }
}

/// Waits until something is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn end(mut worker: Child) {
    worker.kill().unwrap();
    worker.wait().unwrap();
}

const PROGRAM: &str = "\
await count_toolkit.add(file='FOLDER/before')
await count_toolkit.look(gate='FOLDER/gate')
await count_toolkit.add(file='FOLDER/after')
await system_toolkit.send_message('counted')
";

#[tokio::test(flavor = "multi_thread")]
async fn the_turn_of_a_worker_that_was_killed_is_gone_on_with_by_another() {
    let world = World::new(PROGRAM).await;
    let first = world.worker();
    let id = world.send("Count");
    until("the call", || world.path("gate.begun").exists());
    end(first);
    std::fs::write(world.path("gate"), "").unwrap();
    let second = world.worker();
    until("the second call", || world.lines("after") > 0);
    let followed = world.run(&["sessions", "follow", &id, "--until-idle"]);
    end(second);
    assert_eq!((world.lines("before"), world.lines("after")), (1, 1), "no call is made twice");

    let text = String::from_utf8(followed.stdout).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "no event is lost or told twice");
    let of_type = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!((of_type("TEXT_MESSAGE_CHUNK"), of_type("RUN_FINISHED")), (1, 1), "{text}");
    let again = world.run(&["sessions", "follow", &id, "--until-idle", "--from", &numbers.len().to_string()]);
    assert_eq!(String::from_utf8(again.stdout).unwrap(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_share_the_turns_and_make_each_once() {
    let world =
        World::new("await count_toolkit.add(file='FOLDER/all')\nawait system_toolkit.send_message('ok')\n").await;
    let workers = [world.worker(), world.worker()];
    for turn in 0..8 {
        world.send(&format!("Turn {turn}"));
    }
    until("the last turn", || world.lines("all") >= 8);
    let left = || world.redis.run(&["XLEN", "fimble:turns"]) != ["0"];
    until("the end of the last turn", || !left());
    workers.into_iter().for_each(end);
    assert_eq!(world.lines("all"), 8);
    let list = String::from_utf8(world.run(&["sessions", "list"]).stdout).unwrap();
    assert_eq!((list.lines().count(), list.matches('(').count()), (8, 0), "{list}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_event_says_what_confines_the_programs_and_every_turn_without_a_jail_warns() {
    let world =
        World::new("await count_toolkit.add(file='FOLDER/all')\nawait system_toolkit.send_message('ok')\n").await;
    let told = |worker: Child, id: &str, from: usize, turns: usize| {
        until("the turn", || world.lines("all") == turns);
        let followed = world.run(&["sessions", "follow", id, "--until-idle", "--from", &from.to_string()]);
        end(worker);
        let text = String::from_utf8(followed.stdout).unwrap();
        let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let is_isolation = |event: &&Value| event["name"] == "isolation";
        (events[0].clone(), events.iter().filter(is_isolation).count(), from + events.len())
    };
    let id = world.send("One");
    let worker = world.worker();
    let (first, times, last) = told(worker, &id, 0, 1);
    assert_eq!((&first["name"], &first["value"]["level"], times), (&json!("isolation"), &json!("full"), 1), "{first}");
    let send = world.run(&["sessions", "send", "--session", &id, "Two"]);
    assert!(send.status.success(), "{send:?}");
    let bare = ["-c", "interpreter.isolation=\"none\"", "worker", "--lease", "2"];
    let worker = world.fimble(&bare).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let (first, times, _) = told(worker, &id, last, 2);
    let warning = first["value"]["warning"].as_str().unwrap_or_default();
    assert!(warning.starts_with("isolation is none: a program can read") && times == 1, "{first}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_owned_a_session_before_writes_nothing_more() {
    let server = Server::new();
    let (old, new): (Redis, Redis) = (server.store().await, server.store().await);
    let store = std::sync::Arc::new(old.clone());
    let mut session = fimble::session::Session::create(store, "local", "ada", "").await.unwrap();
    let id = session.record().id.clone();
    let period = Duration::from_millis(50);
    assert!(old.take_lease(&id, "old", period).await.unwrap());
    assert!(!new.take_lease(&id, "new", period).await.unwrap(), "one at a time");
    assert!(old.take_lease(&id, "old", Duration::from_millis(200)).await.unwrap(), "an owner stays one");
    let round = session.begin_round("goal", vec![], "", "x = 1\n", "").await.unwrap();
    // As long as nobody else has it, a lease that ran out harms nothing.
    until("the end of the lease", || server.run(&["EXISTS", &format!("fimble:{{{id}}}:lease")]) == ["0"]);
    session.set_title("mine");
    session.save().await.unwrap();
    assert!(new.take_lease(&id, "new", Duration::from_secs(60)).await.unwrap());

    session.set_title("late");
    let refused =
        |result: Result<(), StoreError>| assert!(matches!(result, Err(StoreError::NotOwner(_))), "{result:?}");
    refused(session.save().await);
    refused(session.begin_round("goal", vec![], "", "x = 2\n", "").await.map(drop));
    let ended = Round { outcome: Some(Outcome::Finished { value: None }), ..round };
    refused(session.commit_round(ended, vec![], vec![]).await.map(drop));
    // One that never had a lease is no owner either.
    let stranger = server.store().await;
    refused(stranger.append(session.record(), &[], &[]).await);
    assert_eq!(new.session(&id).await.unwrap().unwrap().title, "mine");
    new.release_lease(&id, "new").await.unwrap();
    stranger.append(&new.session(&id).await.unwrap().unwrap(), &[], &[]).await.unwrap();
    let kept = new.session(&id).await.unwrap().unwrap();
    assert_eq!((kept.title.as_str(), kept.rounds), ("mine", 1));
}

/// Nobody takes a session from under its owner.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_at_work_is_not_deleted() {
    let world = World::new(PROGRAM).await;
    let worker = world.worker();
    let id = world.send("Count");
    until("the call", || world.path("gate.begun").exists());
    let refused = world.run(&["sessions", "delete", &id]);
    let told = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(5), "{told}");
    assert!(told.contains("another fimble is at work in this session") && told.contains("hint: "), "{told}");
    let stranger = world.redis.store().await.delete_session(&id).await;
    assert!(matches!(stranger, Err(StoreError::NotOwner(_))), "{stranger:?}");
    std::fs::write(world.path("gate"), "").unwrap();
    until("the end of the turn", || world.redis.run(&["XLEN", "fimble:turns"]) == ["0"]);
    assert_eq!(world.lines("after"), 1);
    let deleted = world.run(&["sessions", "delete", &id]);
    assert_eq!(deleted.status.code(), Some(0), "{deleted:?}");
    assert_eq!(world.redis.run(&["EXISTS", &format!("fimble:{{{id}}}"), &format!("fimble:{{{id}}}:lease")]), ["0"]);
    end(worker);
}

/// Whether a message was begun with is known without the session's history.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_looked_for_among_the_events_since_it_was_asked_for() {
    let server = Server::new();
    let store = std::sync::Arc::new(server.store().await);
    let session = fimble::session::Session::create(store.clone(), "local", "ada", "").await.unwrap();
    let id = session.record().id.clone();
    let now = jiff::Timestamp::now();
    let ago = |minutes: u64| now - Duration::from_secs(60 * minutes);
    let turn_of = |at: jiff::Timestamp| {
        let (seconds, nanoseconds) = (at.as_second().unsigned_abs(), at.subsec_nanosecond().unsigned_abs());
        let at = uuid::Timestamp::from_unix(uuid::NoContext, seconds, nanoseconds);
        uuid::Uuid::new_v7(at).to_string()
    };
    // Ten thousand events of the day before yesterday, then one turn that was asked for two hours ago and began on a machine
    // whose clock is behind, and two thousand events since.
    let (old, recent) = (turn_of(ago(3_000)), turn_of(ago(120)));
    let event = |seq: u64, at: jiff::Timestamp, begun: Option<&String>| {
        let kind = match begun {
            Some(turn) => EventKind::RunStarted { thread_id: id.clone(), run_id: turn.clone() },
            None => EventKind::StepStarted { step_name: "think".to_owned() },
        };
        Event { seq, session: id.clone(), round: 0, at, kind }
    };
    let mut events: Vec<Event> =
        (1..=10_000).map(|seq| event(seq, ago(2_880), Some(&old).filter(|_| seq == 7))).collect();
    events.push(event(10_001, ago(150), Some(&recent)));
    events.extend((10_002..=12_000).map(|seq| event(seq, ago(90), None)));
    for page in events.chunks(1_000) {
        let record = SessionRecord { events: page.last().unwrap().seq, ..session.record().clone() };
        store.append(&record, &[], page).await.unwrap();
    }
    let session = fimble::session::Session::open(store.clone(), &id, "local", "ada").await.unwrap();
    let asked = async |turn: &str| {
        let before = store.requests();
        (session.has_begun(turn).await.unwrap(), store.requests() - before)
    };
    // The first time the server is told the script.
    assert!(!asked(&turn_of(now)).await.0);
    assert_eq!(asked(&turn_of(now)).await, (false, 1), "one page of a hundred events");
    assert!(asked(&recent).await.0);
    let (is_known, requests) = asked(&turn_of(ago(120))).await;
    assert!(!is_known && requests < 12, "{requests} requests");
    assert!(asked(&old).await.0);
    assert!(!asked("no-time-in-it").await.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_so_many_sessions_of_one_user_are_at_work_and_none_of_them_is_disturbed() {
    let server = Server::new();
    let store = server.store().await;
    let mut records = Vec::new();
    for (user, count) in [("ada", 3), ("bob", 1)] {
        for _ in 0..count {
            let shared = std::sync::Arc::new(store.clone());
            let session = fimble::session::Session::create(shared, "local", user, "").await.unwrap();
            records.push(session.record().clone());
        }
    }
    let long = Duration::from_secs(60);
    let places = async |number: usize, period: Duration| store.take_place(&records[number], 2, period).await.unwrap();
    assert!(places(0, long).await && places(1, long).await);
    assert!(!places(2, long).await, "two are at work");
    assert!(places(0, long).await && places(3, long).await, "those go on, and another user has places of their own");
    store.release_place(&records[1]).await.unwrap();
    assert!(places(2, Duration::from_millis(50)).await);
    let key = "fimble:sessions:{local/ada}:places";
    let taken = "local time = redis.call('TIME')
        return redis.call('ZCOUNT', KEYS[1], time[1] * 1000 + math.floor(time[2] / 1000), '+inf')";
    until("the end of its time", || server.run(&["EVAL", taken, "1", key]) == ["1"]);
    assert!(places(1, long).await, "who is not heard of has none");
    assert!(server.run(&["PTTL", key])[0].parse::<i64>().unwrap() > 50_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_of_a_user_with_too_many_sessions_wait() {
    let world = World::new(
        "await count_toolkit.add(file='FOLDER/before')\nawait count_toolkit.look(gate='FOLDER/gate')\n\
         await system_toolkit.send_message('ok')\n",
    )
    .await;
    let worker = world.fimble(&["-c", "session.at_once=1", "worker", "--lease", "2", "--turns", "4"]);
    let mut worker = { worker }.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    world.send("One");
    until("the first turn", || world.path("gate.begun").exists());
    world.send("Two");
    let pending = "return redis.call('XPENDING', KEYS[1], 'workers')[1]";
    until("a look at the second turn", || world.redis.run(&["EVAL", pending, "1", "fimble:turns"]) == ["2"]);
    let refused = world.run(&["-c", "session.at_once=1", "chat", "--ask", "Three"]);
    assert_eq!(refused.status.code(), Some(5));
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(told.contains("1 of your sessions are at work, as many as may be at a time"), "{told}");
    let patient = ["-c", "session.at_once=1", "-c", "session.wait_s=60", "chat", "--ask", "Four"];
    let mut waits = world.fimble(&patient).spawn().unwrap();
    assert_eq!(world.lines("before"), 1);
    assert!(waits.try_wait().unwrap().is_none());
    std::fs::write(world.path("gate"), "").unwrap();
    until("the turn that waited for its place", || waits.try_wait().unwrap().is_some());
    let waited = ended(waits);
    assert!(waited.status.success() && waited.stdout.starts_with(b"ok"), "{waited:?}");
    until("the end of the second turn", || world.redis.run(&["XLEN", "fimble:turns"]) == ["0"]);
    assert_eq!(world.lines("before"), 3);
    worker.kill().unwrap();
    worker.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_sleeps_leaves_its_worker_and_goes_on_with_any() {
    let world = World::new(
        "await count_toolkit.add(file='FOLDER/before')\nawait system_toolkit.sleep(4)\n\
         await count_toolkit.add(file='FOLDER/after')\nawait system_toolkit.send_message('slept')\n",
    )
    .await;
    let worker = || {
        let mut command = world.fimble(&["-c", "gate.grace_s=0.1", "worker", "--lease", "60", "--turns", "1"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let first = worker();
    let sent = [world.send("Sleep"), world.send("Sleep again")];
    until("both sleep, though there is one place", || world.redis.run(&["ZCARD", "{fimble:turns}:later"]) == ["2"]);
    until("the turns are off the stream", || world.redis.run(&["XLEN", "fimble:turns"]) == ["0"]);
    end(first);
    let second = worker();
    until("both went on", || world.lines("after") == 2 && world.redis.run(&["XLEN", "fimble:turns"]) == ["0"]);
    end(second);
    assert_eq!(world.lines("before"), 2);
    for id in sent {
        let told = String::from_utf8(world.run(&["sessions", "show", &id]).stdout).unwrap();
        assert!(told.contains("« slept"), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_waits_for_a_task_leaves_its_worker_and_goes_on_with_any() {
    let world = World::new(
        "await count_toolkit.add(file='FOLDER/before')\nanswer = await cook_toolkit.send(message='bake', wait_s=3600)\n\
         await count_toolkit.add(file='FOLDER/after')\nawait system_toolkit.send_message(answer.text)\n",
    )
    .await;
    let agent = scripted::Agent::start().await;
    agent.configure(&world.path("config"));
    let worker = || {
        let mut command = world.fimble(&["-c", "gate.grace_s=0.1", "worker", "--lease", "2", "--turns", "1"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let first = worker();
    let id = world.send("Bake");
    until("a look by a later turn", || agent.asked("GetTask") > 3 && world.lines("before") == 1);
    until("the turn is off the stream", || world.redis.run(&["ZCARD", "{fimble:turns}:later"]) == ["1"]);
    end(first);
    agent.is_done();
    let second = worker();
    until("it went on", || world.lines("after") == 1 && world.redis.run(&["XLEN", "fimble:turns"]) == ["0"]);
    end(second);
    assert_eq!((agent.asked("SendMessage"), world.lines("before")), (1, 1), "nothing is begun twice");
    let told = String::from_utf8(world.run(&["sessions", "show", &id]).stdout).unwrap();
    assert!(told.contains("« Bread."), "{told}");
}

#[test]
fn workers_need_a_store_that_can_be_shared() {
    let folder = TempDir::new().unwrap();
    let worker = Command::new(env!("CARGO_BIN_EXE_fimble"))
        .current_dir(folder.path())
        .args(["-c", "store=\"store.db\"", "worker"])
        .env_remove("REDIS_URL")
        .env("XDG_CONFIG_HOME", folder.path())
        .output()
        .unwrap();
    assert_eq!(worker.status.code(), Some(2));
    let told = String::from_utf8(worker.stderr).unwrap();
    assert!(told.contains("workers share a Redis") && told.contains("hint: name one: `--store redis://"), "{told}");
}
