//! A primary with a replica, and a sentinel that puts it in its place: what is there when the primary is gone.

use std::time::Duration;

use fimble::store::redis::{Address, Redis, Settings, TurnKind, TurnRequest, Turns};
use fimble::store::{RoundCommit, Store, StoreError};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::examples::{call, commit, done, ended, round, session, written};
use crate::server::{Node, Server, open, wait_until};

/// Longer than a busy machine takes.
const LONG: Duration = Duration::from_secs(15);

struct Pair {
    primary: Node,
    replica: Node,
    sentinel: Node,
}

impl Pair {
    fn new() -> Self {
        let primary = Node::with(&["--repl-diskless-sync-delay", "0"]);
        let replica = Node::with(&["--replicaof", "127.0.0.1", &primary.port.to_string()]);
        wait_until("the replica follows", || replica.text(&["INFO", "replication"]).contains("master_link_status:up"));
        let sentinel = Node::sentinel_of(&primary);
        wait_until("the sentinel knows the replica", || {
            let info = sentinel.text(&["INFO", "sentinel"]);
            info.contains("status=ok") && info.contains("slaves=1")
        });
        Self { primary, replica, sentinel }
    }

    fn url(&self) -> String {
        format!("redis+sentinel://127.0.0.1:{}/main", self.sentinel.port)
    }

    /// A store whose writes wait so long for the replica, each time that they are asked.
    async fn replicated(&self, patience: Duration, replicas_wait: Duration) -> Redis {
        let settings = Settings { replicas: 1, replicas_wait, patience, ..Settings::default() };
        Redis::open(&Address::parse(&self.url()).unwrap(), settings).await.unwrap()
    }

    fn signal_replica(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.replica.process.id()).unwrap()), signal).unwrap();
    }
}

fn large_commit(number: u64) -> RoundCommit {
    let before = session("s");
    let content = "0123456789abcdef".repeat(500);
    RoundCommit { written: vec![written("v", number, &format!("{number}-{content}"))], ..commit(&before, number) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_goes_on_at_the_server_that_the_sentinels_promote() {
    let mut pair = Pair::new();
    let store = open(&pair.url()).await;
    store.create_session(&session("s")).await.unwrap();
    store.open_round("s", &round(1)).await.unwrap();
    wait_until("the replica has it", || pair.replica.text(&["EXISTS", "fimble:{s}:rounds"]) == "1");
    pair.primary.process.kill().unwrap();
    let commit = large_commit(1);
    store.commit_round(&commit).await.unwrap();
    assert!(pair.replica.text(&["INFO", "replication"]).contains("role:master"));
    assert_eq!(store.session("s").await.unwrap(), Some(commit.session));
    assert_eq!(store.rounds("s", 0).await.unwrap(), [ended(1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_outlives_a_primary_that_is_killed_at_once() {
    const ROUNDS: u64 = 10;
    let mut pair = Pair::new();
    let store = pair.replicated(LONG, LONG).await;
    store.create_session(&session("s")).await.unwrap();
    for number in 1..=ROUNDS {
        store.open_round("s", &round(number)).await.unwrap();
        store.request_call("s", number, &call(&format!("k{number}"), 0)).await.unwrap();
        store.finish_call("s", number, &done(&format!("k{number}"), 0)).await.unwrap();
        if number < ROUNDS {
            store.commit_round(&large_commit(number)).await.unwrap();
        }
    }
    // The last write comes while the replica sleeps: it is not acknowledged before that has it.
    pair.signal_replica(Signal::SIGSTOP);
    let writing = tokio::spawn({
        let store = store.clone();
        async move { store.commit_round(&large_commit(ROUNDS)).await }
    });
    wait_until("the primary has it", || pair.primary.text(&["SISMEMBER", "fimble:{s}:open", "10"]) == "0");
    assert!(!writing.is_finished());
    pair.signal_replica(Signal::SIGCONT);
    writing.await.unwrap().unwrap();
    pair.primary.process.kill().unwrap();

    let promoted = open(&pair.url()).await;
    wait_until("the replica is the primary", || pair.replica.text(&["INFO", "replication"]).contains("role:master"));
    assert_eq!(promoted.session("s").await.unwrap(), Some(large_commit(ROUNDS).session));
    assert_eq!(promoted.rounds("s", 0).await.unwrap(), (1..=ROUNDS).map(ended).collect::<Vec<_>>());
    for number in 1..=ROUNDS {
        assert_eq!(promoted.calls("s", number).await.unwrap(), [done(&format!("k{number}"), 0)]);
    }
    assert_eq!(promoted.contents("s", &["v".to_owned()]).await.unwrap(), large_commit(ROUNDS).written);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_reaches_no_replica_in_time_is_an_error_and_happens_once() {
    let pair = Pair::new();
    let store = pair.replicated(Duration::from_secs(3), Duration::from_millis(200)).await;
    store.create_session(&session("s")).await.unwrap();
    pair.signal_replica(Signal::SIGSTOP);
    let refused = store.open_round("s", &round(1)).await;
    let Err(StoreError::Unreachable { message, .. }) = &refused else { panic!("{refused:?}") };
    assert!(message.contains("has reached 0 of 1 replicas (`store_replicas`)"), "{message}");
    let settings = Settings {
        replicas: 1,
        replicas_wait: Duration::from_millis(50),
        patience: Duration::from_millis(100),
        ..Settings::default()
    };
    let address = Address::parse(&pair.url()).unwrap();
    let turns = Turns::open(&address, &settings).await.unwrap();
    let text = "asked".to_owned();
    let request = TurnRequest {
        id: "t".to_owned(),
        session: "s".to_owned(),
        tenant: "local".to_owned(),
        user: "ada".to_owned(),
        kind: TurnKind::Message { text },
    };
    assert!(matches!(turns.push(&request).await, Err(StoreError::Unreachable { .. })));
    pair.signal_replica(Signal::SIGCONT);
    store.open_round("s", &round(2)).await.unwrap();
    assert_eq!(store.rounds("s", 0).await.unwrap(), [round(1), round(2)], "the server had the first one");
}

#[tokio::test]
async fn waiting_for_replicas_costs_no_round_trip_and_the_doctor_says_when_nobody_waits() {
    let pair = Pair::new();
    let plain = Server::new();
    let mut counts = Vec::new();
    for store in [plain.store().await, pair.replicated(LONG, LONG).await] {
        // Scripts are told the first time.
        for id in ["r", "s"] {
            let before = store.requests();
            store.create_session(&session(id)).await.unwrap();
            store.open_round(id, &round(1)).await.unwrap();
            store.request_call(id, 1, &call("k", 0)).await.unwrap();
            counts.push(store.requests() - before);
        }
    }
    assert_eq!(counts[..2], counts[2..]);
    let health = async |store: &Redis| store.health().await.unwrap().to_string();
    let told = health(&open(&pair.url()).await).await;
    assert!(told.contains("replicas: 1; a failover loses what has not reached them (`store_replicas = 1`"), "{told}");
    let told = health(&pair.replicated(LONG, LONG).await).await;
    assert!(told.contains("replicas: 1, every write waits for 1"), "{told}");
    assert!(!health(&plain.store().await).await.contains("replicas"));
}
