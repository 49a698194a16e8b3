//! What a worker is told, by its command line and by hooks, holds for its turns.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{World, end, until};

#[tokio::test(flavor = "multi_thread")]
async fn the_sessions_of_a_worker_see_only_what_it_was_started_with() {
    let world = World::new("await count_toolkit.add(file='FOLDER/all')\n").await;
    let command = ["--only", "git_toolkit", "-c", "agent.max_refusals=1", "worker", "--lease", "2"];
    let worker = world.fimble(&command).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let id = world.send("Count");
    until("the end of the turn", || world.redis.run(&["XLEN", "fimble:turns"]) == ["0"]);
    end(worker);
    let told = String::from_utf8(world.run(&["sessions", "show", &id]).stdout).unwrap();
    assert!(told.contains("« I stopped because the model wrote 1 programs in a row that cannot run"), "{told}");
    assert_eq!(world.lines("all"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_a_hook_refuses_is_told_to_whoever_follows() {
    let world = World::new("await count_toolkit.add(file='FOLDER/all')\n").await;
    std::fs::create_dir_all(world.path("config/fimble")).unwrap();
    let hook = "[[gate.hooks.UserPromptSubmit]]\ncommand = ['sh', '-c', 'echo not today >&2; exit 2']\n";
    std::fs::write(world.path("config/fimble/config.toml"), hook).unwrap();
    let worker = world.worker();
    let id = world.send("Count");
    until("the end of the turn", || world.redis.run(&["XLEN", "fimble:turns"]) == ["0"]);
    end(worker);
    let followed = world.run(&["sessions", "follow", &id, "--until-idle"]);
    let text = String::from_utf8(followed.stdout).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap_or_default()).unwrap();
    assert_eq!((&last["type"], &last["code"]), (&json!("RUN_ERROR"), &json!("hook")), "{text}");
    assert!(last["message"].as_str().unwrap().contains("not today"), "{text}");
    assert_eq!(world.lines("all"), 0);
}

#[test]
fn a_worker_makes_at_least_one_turn_at_a_time() {
    let worker = Command::new(env!("CARGO_BIN_EXE_fimble")).args(["worker", "--turns", "0"]).output().unwrap();
    assert_eq!(worker.status.code(), Some(2));
    let told = String::from_utf8(worker.stderr).unwrap();
    assert!(told.contains("invalid value '0' for '--turns <N>': 0 is not in 1..=1024"), "{told}");
}
