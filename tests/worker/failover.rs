//! A worker that dies or sleeps, and the one that takes its turn.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use jiff::Timestamp;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::{PROGRAM, World, end, until};

/// Seconds, of `World::worker`.
const LEASE: i64 = 2;

fn signal(worker: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(worker.id()).unwrap()), signal).unwrap();
}

impl World {
    fn events(&self, id: &str) -> Vec<Value> {
        let told = self.run(&["sessions", "follow", id, "--until-idle"]);
        let text = String::from_utf8(told.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn is_done(&self) -> bool {
        self.redis.run(&["XLEN", "fimble:turns"]) == ["0"]
    }
}

fn at(event: &Value) -> Timestamp {
    event["at"].as_str().unwrap().parse().unwrap()
}

/// The turn is over: each call was made once, and no event is lost or told twice.
fn check(world: &World, id: &str) -> Vec<Value> {
    until("the end of the turn", || world.is_done());
    assert_eq!((world.lines("before"), world.lines("after")), (1, 1), "no call is made twice");
    let events = world.events(id);
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let replies = events.iter().filter(|event| event["delta"] == "counted").count();
    assert_eq!(replies, 1, "{events:?}");
    events
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_workers_turn_is_taken_soon_after_its_lease() {
    let world = World::new(PROGRAM).await;
    let first = world.worker();
    let id = world.send("Count");
    until("the call", || world.path("gate.begun").exists());
    // It is there before the first dies, and has no other work.
    let mut second = world.fimble(&["worker", "--lease", "2"]).stdout(Stdio::null()).spawn().unwrap();
    let mut said = BufReader::new(second.stderr.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap().starts_with("worker ")));
    let dies = Timestamp::now();
    end(first);
    std::fs::write(world.path("gate"), "").unwrap();
    let events = check(&world, &id);
    end(second);
    let taken = events.iter().map(at).find(|at| *at > dies).unwrap();
    let waited = taken.duration_since(dies).as_secs_f64();
    // One second beyond the lease on a machine that has nothing else to do.
    assert!(waited < LEASE as f64 + 8.0, "{waited} s");
}

/// A worker that sleeps for longer than its lease is no owner any more when it wakes.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_slept_writes_nothing_late() {
    let world = World::new(PROGRAM).await;
    let first = world.worker();
    let id = world.send("Count");
    until("the call", || world.path("gate.begun").exists());
    signal(&first, Signal::SIGSTOP);
    std::fs::remove_file(world.path("gate.begun")).unwrap();
    let second = world.worker();
    until("the second owner's call", || world.path("gate.begun").exists());
    signal(&first, Signal::SIGCONT);
    // The first one's call of `look` ends as well, and its program wants to go on.
    std::fs::write(world.path("gate"), "").unwrap();
    check(&world, &id);
    // It is alive and makes the next turn.
    end(second);
    std::fs::remove_file(world.path("gate")).unwrap();
    std::fs::remove_file(world.path("gate.begun")).unwrap();
    world.send("Count again");
    until("the next turn", || world.path("gate.begun").exists());
    std::fs::write(world.path("gate"), "").unwrap();
    until("its end", || world.is_done());
    assert_eq!((world.lines("before"), world.lines("after")), (2, 2));
    end(first);
}

/// One that nobody took over meanwhile goes on, and does not take its own turn for a dead worker's.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_slept_alone_goes_on_with_its_turn() {
    let world = World::new(PROGRAM).await;
    let worker = world.worker();
    let id = world.send("Count");
    until("the call", || world.path("gate.begun").exists());
    signal(&worker, Signal::SIGSTOP);
    let idle = "return redis.call('XPENDING', KEYS[1], 'workers', 'IDLE', ARGV[1], '-', '+', 1)[1] and 1 or 0";
    let longer = Duration::from_secs(LEASE.unsigned_abs() * 2).as_millis().to_string();
    until("its lease is over", || world.redis.run(&["EVAL", idle, "1", "fimble:turns", &longer]) == ["1"]);
    signal(&worker, Signal::SIGCONT);
    std::fs::write(world.path("gate"), "").unwrap();
    check(&world, &id);
    end(worker);
}
