//! The stream of turns and the leases on a Redis Cluster of three primaries, where sessions and turns lie on different nodes.

use std::time::Duration;

use fimble::store::redis::{Address, Settings, TurnKind, TurnRequest, Turns};
use fimble::store::{Store, StoreError};
use jiff::Timestamp;

use super::server::{Node, open, wait_until};
use super::{PROGRAM, World, end, until};

fn url(nodes: &[Node]) -> String {
    format!("redis+cluster://127.0.0.1:{},127.0.0.1:{}", nodes[0].port, nodes[1].port)
}

async fn turns(url: &str) -> Turns {
    Turns::open(&Address::parse(url).unwrap(), &Settings::default()).await.unwrap()
}

fn request(id: &str, session: &str) -> TurnRequest {
    let (tenant, user) = ("local".to_owned(), "ada".to_owned());
    TurnRequest {
        id: id.to_owned(),
        session: session.to_owned(),
        tenant,
        user,
        kind: TurnKind::Message { text: id.to_owned() },
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_are_handed_out_in_order_and_leases_fence_on_a_cluster() {
    const LONG: Duration = Duration::from_secs(600);
    let nodes = Node::cluster();
    let url = url(&nodes);
    let (turns, other) = (turns(&url).await, turns(&url).await);
    for (id, session) in [("1", "s"), ("2", "s"), ("3", "t"), ("4", "s")] {
        turns.push(&request(id, session)).await.unwrap();
    }
    let take = async |turns: &Turns, worker: &str| {
        let mut looks = 0;
        loop {
            let taken = turns.take(worker, LONG, Duration::from_millis(10)).await.unwrap();
            looks += 1;
            // What has to wait for another one is passed over.
            if taken.is_some() || looks == 3 {
                return taken;
            }
        }
    };
    let (first, taken) = take(&turns, "a").await.unwrap();
    assert_eq!(taken, request("1", "s"));
    let (third, taken) = take(&other, "b").await.unwrap();
    assert_eq!(taken, request("3", "t"));
    assert_eq!(take(&other, "b").await, None, "the others wait for the first");
    let (second, taken) = turns.end("a", &first, "s").await.unwrap().unwrap();
    assert_eq!(taken, request("2", "s"));
    // Asked again, as after a lost answer, it is the same.
    assert_eq!(turns.end("a", &first, "s").await.unwrap().unwrap().0, second);
    assert_eq!(other.end("b", &third, "t").await.unwrap(), None);
    // One that its worker cannot make is somebody else's.
    turns.put_off("a", &second, LONG, Duration::ZERO).await.unwrap();
    let (again, taken) = take(&other, "b").await.unwrap();
    assert_eq!((again.as_str(), taken), (second.as_str(), request("2", "s")));
    let (fourth, taken) = other.end("b", &second, "s").await.unwrap().unwrap();
    assert_eq!(taken, request("4", "s"));
    assert_eq!(other.end("b", &fourth, "s").await.unwrap(), None);
    assert_eq!(turns.length().await.unwrap(), 0);
    turns.push_at(Timestamp::now(), &request("5", "s")).await.unwrap();
    let mut later = None;
    while later.is_none() {
        later = take(&turns, "a").await;
    }
    assert_eq!(later.unwrap().1, request("5", "s"));

    let (old, new) = (open(&url).await, open(&url).await);
    let store = std::sync::Arc::new(old.clone());
    for _ in 0..6 {
        let mut session = fimble::session::Session::create(store.clone(), "local", "ada", "").await.unwrap();
        let id = session.record().id.clone();
        assert!(old.take_lease(&id, "old", Duration::from_millis(20)).await.unwrap());
        let mut taken = false;
        wait_until("the lease is over", || {
            taken = tokio::task::block_in_place(|| {
                tokio::runtime::Handle::current().block_on(new.take_lease(&id, "new", LONG)).unwrap()
            });
            taken
        });
        session.set_title("late");
        let late = session.save().await;
        assert!(matches!(late, Err(StoreError::NotOwner(_))), "{late:?}");
        assert!(!old.take_lease(&id, "old", LONG).await.unwrap());
        new.release_lease(&id, "new").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_share_turns_and_take_over_on_a_cluster() {
    let nodes = Node::cluster();
    let mut world = World::new(PROGRAM).await;
    world.url = url(&nodes);
    let turns = turns(&world.url).await;
    let first = world.worker();
    // Six sessions are hardly on one node.
    let mut sessions = vec![world.send("Count")];
    until("the call", || world.path("gate.begun").exists());
    end(first);
    sessions.extend((0..5).map(|_| world.send("Count")));
    std::fs::write(world.path("gate"), "").unwrap();
    let workers = [world.worker(), world.worker()];
    let all_done = async {
        while turns.length().await.unwrap() > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), all_done).await.expect("all turns are made");
    workers.into_iter().for_each(end);
    assert_eq!((world.lines("before"), world.lines("after")), (6, 6));
    for id in sessions {
        let told = String::from_utf8(world.run(&["sessions", "show", &id]).stdout).unwrap();
        assert_eq!(told.matches("« counted").count(), 1, "{told}");
    }
}
