//! Calls that a system takes on and answers later: rounds that wait for them without a process, in this process and in
//! others. How often the system was asked to begin is counted by the system.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "agents/scripted.rs"]
mod scripted;

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use scripted::Agent;
use serde_json::Value;
use tempfile::TempDir;

const PROGRAM: &str = "\
answer = await cook_toolkit.send(message='bake', wait_s=3600)
print(answer.state, answer.text)
";

/// A folder with a store and a program, and an agent.
struct World {
    folder: TempDir,
    agent: Agent,
}

impl World {
    async fn new() -> Self {
        let (folder, agent) = (TempDir::new().unwrap(), Agent::start().await);
        agent.configure(&folder.path().join("config"));
        std::fs::write(folder.path().join("program.py"), PROGRAM).unwrap();
        Self { folder, agent }
    }

    fn fimble(&self, grace: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fimble"));
        command
            .current_dir(self.folder.path())
            .args(["-c", "store=\"store.db\"", "-c", "gate.flush_ms=20", "-c", &format!("gate.grace_s={grace}")])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .env("XDG_DATA_HOME", self.folder.path().join("data"))
            .env("XDG_CONFIG_HOME", self.folder.path().join("config"))
            .env("XDG_RUNTIME_DIR", self.folder.path());
        command
    }

    fn run(&self, grace: &str, arguments: &[&str]) -> Output {
        self.fimble(grace, arguments).output().unwrap()
    }

    fn start(&self, grace: &str) -> Child {
        self.fimble(grace, &["run", "program.py", "--yes"]).spawn().unwrap()
    }

    fn list(&self) -> String {
        text(&self.run("30", &["sessions", "list"]).stdout)
    }

    fn session(&self) -> String {
        self.list().split_whitespace().next().unwrap().to_owned()
    }

    /// The program goes on in another process and gets the result, though it was begun once.
    fn goes_on(&self, grace: &str) {
        self.agent.is_done();
        let resumed = self.run(grace, &["sessions", "resume", &self.session()]);
        assert_eq!(resumed.status.code(), Some(0), "{}", text(&resumed.stderr));
        assert_eq!(text(&resumed.stdout), "completed Bread.\n");
        assert_eq!(self.agent.asked("SendMessage"), 1, "the task was begun once");
        assert!(!self.list().contains('('), "{}", self.list());
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_round_that_waits_for_a_task_needs_no_process() {
    let world = World::new().await;
    let host = world.start("0.1");
    until("the suspension", || world.list().contains("(waits for a task)"));
    let shown = text(&world.run("30", &["ps"]).stdout);
    assert!(shown.trim_end().ends_with("  a task"), "{shown}");
    kill(host);
    let answered = world.run("30", &["sessions", "answer", &world.session(), "yes"]);
    assert_eq!(answered.status.code(), Some(2));
    let told = text(&answered.stderr);
    assert!(told.contains("it waits for cook_toolkit.send: the agent `cook` works at it"), "{told}");
    assert!(told.contains("hint: it goes on by itself when the time has come or the task is done"), "{told}");
    world.goes_on("0.1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_outlives_the_host_that_began_it() {
    let world = World::new().await;
    let host = world.start("30");
    until("a look at the task", || world.agent.asked("GetTask") > 1);
    let shown = text(&world.run("30", &["ps"]).stdout);
    assert!(shown.contains("the task of cook_toolkit.send"), "{shown}");
    kill(host);
    world.goes_on("30");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_process_that_suspended_the_round_goes_on_with_it() {
    let world = World::new().await;
    let host = world.fimble("0.1", &["run", "program.py", "--yes", "--json"]).spawn().unwrap();
    until("the suspension", || world.list().contains("(waits for a task)"));
    let looks = world.agent.asked("GetTask");
    until("two more looks", || world.agent.asked("GetTask") > looks + 1);
    world.agent.is_done();
    let ended = host.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    let events: Vec<Value> = text(&ended.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_kind = |kind: &str, name: &str| {
        events.iter().filter(|event| event["type"] == kind && (name.is_empty() || event["name"] == name)).count()
    };
    let told = (of_kind("TOOL_CALL_CHUNK", ""), of_kind("TOOL_CALL_RESULT", ""), of_kind("CUSTOM", "round_ended"));
    assert_eq!(told, (1, 1, 2), "the call is told once, and that the round was suspended and ended");
    assert_eq!(world.agent.asked("SendMessage"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_nobody_waits_for_any_more_is_cancelled() {
    let world = World::new().await;
    let host = world.start("30");
    until("a look at the task", || world.agent.asked("GetTask") > 0);
    let killed = world.run("30", &["kill", &world.session()]);
    assert_eq!(killed.status.code(), Some(0), "{}", text(&killed.stderr));
    let ended = host.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(3), "{}", text(&ended.stderr));
    assert_eq!(world.agent.asked("CancelTask"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn how_far_a_task_is_is_told_while_it_is_waited_for() {
    let world = World::new().await;
    let arguments = ["-c", "gate.progress_ms=0", "run", "program.py", "--yes"];
    let [host, json] =
        [&[][..], &["--json"]].map(|more| world.fimble("30", &[&arguments[..], more].concat()).spawn().unwrap());
    until("some looks", || world.agent.asked("GetTask") > 6);
    world.agent.is_done();
    let (shown, events) = (host.wait_with_output().unwrap(), json.wait_with_output().unwrap());
    assert_eq!((shown.status.code(), text(&shown.stdout).as_str()), (Some(0), "completed Bread.\n"));
    let lines: Vec<String> = text(&shown.stderr).lines().map(str::to_owned).collect();
    assert!(lines.iter().any(|line| line.starts_with("… cook_toolkit.send  step ")), "{lines:?}");
    let events: Vec<Value> = text(&events.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let call = events.iter().find(|event| event["type"] == "TOOL_CALL_CHUNK").unwrap();
    let steps: Vec<&Value> = events.iter().filter(|event| event["name"] == "progress").collect();
    assert!(!steps.is_empty());
    for step in steps {
        assert!(step["value"]["text"].as_str().unwrap().starts_with("step "), "{step}");
        assert_eq!(step["value"]["tool_call_id"], call["toolCallId"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_that_compete_for_a_resource_give_their_tasks_one_after_the_other() {
    let world = World::new().await;
    let file = world.folder.path().join("config/fimble/config.toml");
    let settings = std::fs::read_to_string(&file).unwrap();
    let lock = "[[gate.locks]]\noperations = \"cook_toolkit.send\"\nresource = \"agent/cook\"\n";
    std::fs::write(&file, format!("{settings}{lock}")).unwrap();
    // Without the resource, both would let their processes go.
    let run = ["-c", "gate.turn_s=60", "run", "program.py", "--yes"];
    let hosts = [(); 2].map(|()| world.fimble("0.1", &run).spawn().unwrap());
    until("one that has the resource and one that waits for it", || {
        let shown = text(&world.run("30", &["ps"]).stdout);
        shown.contains("the task of cook_toolkit.send") && shown.contains("  cook_toolkit.send")
    });
    let looks = world.agent.asked("GetTask");
    until("more looks", || world.agent.asked("GetTask") > looks + 2);
    assert_eq!(world.agent.asked("SendMessage"), 1, "the other one waits for its turn");
    world.agent.is_done();
    for host in hosts {
        let ended = host.wait_with_output().unwrap();
        assert_eq!((ended.status.code(), text(&ended.stdout).as_str()), (Some(0), "completed Bread.\n"), "{ended:?}");
    }
    assert_eq!(world.agent.asked("SendMessage"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_by_hand_waits_for_its_task() {
    let world = World::new().await;
    let host =
        world.fimble("0.1", &["toolkits", "call", "cook_toolkit", "send", "message=bake", "--yes"]).spawn().unwrap();
    until("a look at the task", || world.agent.asked("GetTask") > 0);
    world.agent.is_done();
    let ended = host.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    assert!(text(&ended.stdout).contains("Bread."), "{}", text(&ended.stdout));
    assert_eq!(world.agent.asked("SendMessage"), 1);
}
