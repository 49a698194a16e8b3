//! The same turn, made by workers: the first dies at a point, another one goes on.

use std::collections::BTreeSet;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use fimble::crash::{self, VARIABLE};

use super::server::Server;
use super::{DEADLINE, World};

/// What a worker passes besides what every turn does.
pub const ENTRIES: [&str; 6] = crash::WORKER;

impl World {
    fn worker(&self, point: Option<&str>) -> Child {
        let mut command = self.fimble(&["-c", "gate.grace_s=0.1", "worker", "--lease", "1", "--turns", "2"]);
        command.envs(point.map(|point| (VARIABLE, point)));
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn send(&self, arguments: &[&str]) -> String {
        let sent = self.run(&[&["sessions", "send"], arguments].concat());
        assert!(sent.status.success(), "{sent:?}");
        String::from_utf8(sent.stdout).unwrap().trim().to_owned()
    }

    /// True if no turn waits for a worker, or is made.
    fn all_done(&self) -> bool {
        let server = self.redis.as_ref().unwrap();
        server.run(&["XLEN", "fimble:turns"]) == ["0"] && server.run(&["ZCARD", "{fimble:turns}:later"]) == ["0"]
    }
}

/// Waits until something is so; false if the worker died first.
fn until(worker: &mut Child, what: &str, is_so: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        if worker.try_wait().unwrap().is_some() {
            return false;
        }
        if is_so() {
            return true;
        }
        assert!(begun.elapsed() < DEADLINE, "{what} does not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Kills a worker at each point; it is over at most of them when the turn waits for its question, else in the second half.
async fn survives_a_worker(points: &[&'static str]) {
    let mut died = BTreeSet::new();
    for point in points {
        for passed in [1, 2] {
            tokio::task::yield_now().await;
            let world = World::new(Some(Server::new())).await;
            let at = format!("worker, {point}#{passed}");
            let mut first = world.worker(Some(&format!("{point}#{passed}")));
            let id = world.send(&["Paint"]);
            let mut lives = until(&mut first, &at, || world.all_done());
            if lives {
                world.send(&["red", "--session", &id]);
                lives = until(&mut first, &at, || world.all_done());
            }
            let _ = first.kill();
            first.wait().unwrap();
            if !lives {
                died.insert(*point);
            }
            let mut second = world.worker(None);
            let begun = Instant::now();
            loop {
                assert!(until(&mut second, &at, || world.all_done()), "{at}: a healthy worker died");
                assert!(begun.elapsed() < DEADLINE, "{at}: {:?}", world.session());
                let (_, line) = world.session().unwrap();
                if line.contains("(waits for an answer)") {
                    world.send(&["red", "--session", &id]);
                } else if line.contains("(waits for an approval)") {
                    world.consent(&id).map(|consent| world.run(&["sessions", "answer", &id, consent]));
                } else {
                    break;
                }
            }
            second.kill().unwrap();
            second.wait().unwrap();
            world.check(&id, &at);
        }
    }
    assert_eq!(died, points.iter().copied().collect(), "every point is passed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_survives_its_worker_at_every_point_of_its_own() {
    survives_a_worker(&ENTRIES).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_survives_its_worker_at_every_point_of_a_turn() {
    // A session is made by whoever sends, and held by who is at a terminal; workers are told answers as messages.
    let of_others = ["session created", "session held"];
    let points: Vec<&str> = crash::TURN.into_iter().filter(|point| !of_others.contains(point)).collect();
    survives_a_worker(&points).await;
}

/// One that dies when it has put the turn to sleep: it wakes once.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_sleeps_survives_its_worker() {
    for point in crash::WAKING {
        let mut world = World::new(Some(Server::new())).await;
        world
            .programs_are(
                "await count_toolkit.add(file='FOLDER/acts', text='1')\nawait system_toolkit.sleep(1)\n\
                            await count_toolkit.add(file='FOLDER/acts', text='2')\n\
                            await system_toolkit.send_message('slept')\n",
            )
            .await;
        let mut first = world.worker(Some(point));
        let id = world.send(&["Sleep"]);
        assert!(!until(&mut first, point, || world.all_done()), "it died");
        let mut second = world.worker(None);
        assert!(until(&mut second, point, || world.all_done()));
        second.kill().unwrap();
        second.wait().unwrap();
        assert_eq!(world.acts(), ["1", "2"]);
        let replies = world.events(&id).iter().filter(|event| event["delta"] == "slept").count();
        assert_eq!(replies, 1);
    }
}
