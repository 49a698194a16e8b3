//! Redis: the contract, and what only a server can promise.

use std::sync::Arc;
use std::time::Duration;

use fimble::record::SessionRecord;
use fimble::store::redis::{Address, Redis, Settings, VERSION};
use fimble::store::upkeep::{Swept, Upkeep};
use fimble::store::{RoundCommit, Store, StoreError};

use crate::contract::Place;
use crate::examples::{at, call, commit, event, round, segment, session, written};
use crate::server::Server;

impl Place for Server {
    async fn open(&self) -> Arc<dyn Upkeep> {
        Arc::new(self.store().await)
    }

    async fn contents_stored(&self) -> u64 {
        let keys = self.run(&["KEYS", "fimble:*:contents"]);
        keys.iter().map(|key| self.run(&["HLEN", key])[0].parse::<u64>().unwrap()).sum()
    }

    fn shares_contents(&self) -> bool {
        false
    }
}

mod on_a_server {
    use crate::contract_tests;

    crate::contract_names!(contract_tests!(super::Server::new()));
}

/// A session `s` with one of everything.
async fn filled(server: &Server) -> Redis {
    let store = server.store().await;
    store.create_session(&session("s")).await.unwrap();
    store.open_round("s", &round(1)).await.unwrap();
    store.request_call("s", 1, &call("k", 0)).await.unwrap();
    store.commit_round(&full_commit()).await.unwrap();
    store
}

fn full_commit() -> RoundCommit {
    RoundCommit {
        session: SessionRecord { segments: 1, events: 1, ..commit(&session("s"), 1).session },
        written: vec![written("x", 1, "1")],
        segments: vec![segment(1)],
        events: vec![event("s", 1)],
        ..commit(&session("s"), 1)
    }
}

#[tokio::test]
async fn a_damaged_key_is_corrupt_and_says_which() {
    let hash = written("x", 1, "1").variable.hash;
    let damages: [(&str, &[&str]); 13] = [
        ("segment", &["LSET", "fimble:{s}:segments", "0", "\u{7}"]),
        ("segment", &["LPUSH", "fimble:{s}:segments", "\0{}"]),
        ("event", &["XADD", "fimble:{s}:events", "9-0", "record", "\0{}"]),
        ("round", &["HSET", "fimble:{s}:rounds", "1", "\u{1}\u{2}\u{3}"]),
        ("round", &["HDEL", "fimble:{s}:rounds", "1"]),
        ("call", &["HSET", "fimble:{s}:calls", "r:1/1", "\0"]),
        ("call", &["HSET", "fimble:{s}:calls", "n:1", "2"]),
        ("variable", &["HSET", "fimble:{s}:contents", &hash, "\0"]),
        ("variable", &["HSET", "fimble:{s}:versions", "1/x", "short"]),
        ("variable", &["HDEL", "fimble:{s}:versions", "1/x"]),
        ("session", &["HSET", "fimble:{s}", "status", "asleep"]),
        ("session", &["HSET", "fimble:{s}", "segments", "-1"]),
        ("session", &["HDEL", "fimble:{s}", "schema"]),
    ];
    let server = Server::new();
    for (what, damage) in damages {
        let store = filled(&server).await;
        server.run(damage);
        let read = match what {
            "segment" => store.segments("s", 0, u32::MAX).await.map(drop),
            "event" => store.events("s", 0, 10).await.map(drop),
            "round" => store.rounds("s", 0).await.map(drop),
            "call" => store.calls("s", 1).await.map(drop),
            "variable" => store.contents("s", &["x".into()]).await.map(drop),
            _ => store.session("s").await.map(drop),
        };
        assert!(matches!(&read, Err(StoreError::Corrupt { what: said, .. }) if *said == what), "{damage:?}: {read:?}");
        server.run(&["FLUSHALL"]);
    }
}

#[tokio::test]
async fn a_key_of_another_program_is_corrupt_and_left_alone() {
    let server = Server::new();
    let store = server.store().await;
    server.run(&["SET", "fimble:{s}", "mail"]);
    let refused = [
        store.session("s").await.map(drop),
        store.create_session(&session("s")).await,
        store.delete_session("s").await,
    ];
    assert!(refused.iter().all(|refused| matches!(refused, Err(StoreError::Corrupt { .. }))), "{refused:?}");
    assert_eq!(server.run(&["GET", "fimble:{s}"]), ["mail"]);
}

#[tokio::test]
async fn a_newer_store_is_refused_untouched() {
    let server = Server::new();
    let newer = (VERSION + 1).to_string();
    server.run(&["SET", "fimble:schema", &newer]);
    let refused = Redis::open(&Address::parse(&server.url()).unwrap(), Settings::default()).await.err();
    let expected = VERSION + 1;
    assert!(
        matches!(refused, Some(StoreError::TooNew { found, supported: VERSION }) if found == expected),
        "{refused:?}"
    );
    assert_eq!(
        (server.run(&["KEYS", "*"]), server.run(&["GET", "fimble:schema"])),
        (vec!["fimble:schema".into()], vec![newer])
    );
}

#[tokio::test]
async fn a_session_that_a_newer_program_changed_meanwhile_is_read_and_written_no_more() {
    let server = Server::new();
    let store = filled(&server).await;
    server.run(&["HSET", "fimble:{s}", "schema", &(VERSION + 1).to_string()]);
    let before = server.run(&["HGETALL", "fimble:{s}"]);
    let refused = [
        store.session("s").await.map(drop),
        store.segments("s", 0, u32::MAX).await.map(drop),
        store.open_round("s", &round(2)).await,
        store.append(&full_commit().session, &[], &[]).await,
        store.create_session(&session("s")).await,
        store.delete_session("s").await,
    ];
    assert!(refused.iter().all(|refused| matches!(refused, Err(StoreError::TooNew { .. }))), "{refused:?}");
    assert_eq!(server.run(&["HGETALL", "fimble:{s}"]), before);
}

#[tokio::test]
async fn the_list_is_right_whatever_came_between_index_and_session() {
    let server = Server::new();
    let store = server.store().await;
    for number in 0..150 {
        let record = SessionRecord { updated_at: at(number * 7), ..session(&format!("s{number:03}")) };
        store.create_session(&record).await.unwrap();
    }
    let key = "fimble:sessions:{local/ada}";
    // Their writers died before the session was there, before it was written, and after it was deleted; one lies.
    let settled = "0190a5d4-0000-7000-8000-000000000000";
    server.run(&["ZADD", key, "9e12", "never-made", "8e12", "s001", "7e12", settled]);
    server.run(&["DEL", "fimble:{s149}"]);
    let ids = |sessions: Vec<SessionRecord>| sessions.into_iter().map(|session| session.id).collect::<Vec<_>>();
    let expected: Vec<String> = (0..149).rev().map(|number| format!("s{number:03}")).collect();
    for limit in [1, 3, 64, 149, 1_000] {
        let listed = store.sessions("local", "ada", u32::try_from(limit).unwrap()).await.unwrap();
        assert_eq!(ids(listed), expected[..limit.min(149)], "{limit}");
    }
    // What can be told from a session that is about to be made is forgotten, the others are kept.
    assert_eq!(server.run(&["ZCARD", key]), ["151"]);
    store.delete_session("s148").await.unwrap();
    assert_eq!(ids(store.sessions("local", "ada", 1).await.unwrap()), ["s147"]);
}

#[tokio::test]
async fn a_session_is_forgotten_when_its_time_is_over() {
    let server = Server::new();
    let settings = Settings { keep: Some(Duration::from_secs(5_000)), ..Settings::default() };
    let store = Redis::open(&Address::parse(&server.url()).unwrap(), settings).await.unwrap();
    store.create_session(&session("s")).await.unwrap();
    store.open_round("s", &round(1)).await.unwrap();
    store.request_call("s", 1, &call("k", 0)).await.unwrap();
    server.run(&["PEXPIRE", "fimble:{s}:calls", "9"]);
    store.commit_round(&full_commit()).await.unwrap();
    let keys = server.run(&["KEYS", "fimble:{s}*"]);
    // All ten but `open`, which is empty after its only round, and three marks of writes and one of the commit.
    assert_eq!(keys.len(), 9 + 4, "{keys:?}");
    let ends = |key: &String| server.run(&["PEXPIRETIME", key])[0].parse::<u64>().unwrap();
    let row = ends(&"fimble:{s}".into());
    let parts: Vec<u64> = keys.iter().filter(|key| !key.contains(":write:")).map(ends).collect();
    assert_eq!(parts, [row; 9], "all of a session ends at once");
    assert!(keys.iter().filter(|key| key.contains(":write:")).all(|key| ends(key) > 0));
    let left: u64 = server.run(&["TTL", "fimble:{s}"])[0].parse().unwrap();
    assert!((4_990..=5_000).contains(&left), "{left}");
    assert_eq!(server.run(&["TTL", "fimble:sessions:{local/ada}"]), ["-1"]);

    let keeping = server.store().await;
    keeping.open_round("s", &round(2)).await.unwrap();
    let keys = server.run(&["KEYS", "fimble:{s}*"]);
    let ends: Vec<_> =
        keys.iter().filter(|key| !key.contains(":write:")).map(|key| server.run(&["TTL", key])).collect();
    assert_eq!(ends, vec![["-1"]; 10], "who keeps sessions for ever keeps all of this one");
}

#[tokio::test]
async fn shared_contents_are_kept_as_long_as_one_of_the_family_needs_them() {
    let server = Server::new();
    let kept = async |seconds: Option<u64>| {
        let settings = Settings { keep: seconds.map(Duration::from_secs), ..Settings::default() };
        Redis::open(&Address::parse(&server.url()).unwrap(), settings).await.unwrap()
    };
    let ends = |key: &str| server.run(&["PEXPIRETIME", key])[0].parse::<i64>().unwrap();
    let both = || (ends("fimble:{s}:contents"), ends("fimble:{s}:family"));
    let fork = |id: &str| SessionRecord { rounds: 1, segments: 1, ..session(id) };
    let (short, long, ever) = (kept(Some(1_000)).await, kept(Some(9_000)).await, kept(None).await);
    short.create_session(&session("s")).await.unwrap();
    short.open_round("s", &round(1)).await.unwrap();
    short.commit_round(&full_commit()).await.unwrap();
    server.run(&["HSET", "fimble:{s}", "schema", "2"]);

    long.fork_session("s", &fork("s.0000000f")).await.unwrap();
    let (row, forked) = (ends("fimble:{s}"), ends("fimble:{s}.0000000f"));
    assert!(row > 0 && forked > row);
    assert_eq!(both(), (forked, forked));
    assert_eq!(server.run(&["HGET", "fimble:{s}", "schema"]), [VERSION.to_string()], "older programs keep off");
    for part in [":segments", ":rounds", ":numbers", ":versions", ":variables"] {
        assert_eq!(ends(&format!("fimble:{{s}}.0000000f{part}")), forked, "{part}");
        assert_eq!(ends(&format!("fimble:{{s}}{part}")), row, "{part}");
    }
    // The source goes on, and shortens nothing.
    short.open_round("s", &round(2)).await.unwrap();
    assert_eq!(both(), (forked, forked));
    ever.fork_session("s", &fork("s.0000000a")).await.unwrap();
    assert_eq!((both(), ends("fimble:{s}.0000000a:rounds")), ((-1, -1), -1));
    short.open_round("s", &round(3)).await.unwrap();
    long.open_round("s.0000000f", &round(2)).await.unwrap();
    assert_eq!(both(), (-1, -1));

    // The row of the one whose time is over goes by itself.
    server.run(&["DEL", "fimble:{s}", "fimble:{s}:versions"]);
    ever.delete_session("s.0000000a").await.unwrap();
    long.open_round("s.0000000f", &round(3)).await.unwrap();
    let forked = ends("fimble:{s}.0000000f");
    assert_eq!(both(), (forked, forked));
    let read = short.contents("s.0000000f", &["x".into()]).await.unwrap();
    assert_eq!(read, [written("x", 1, "1")]);
    long.delete_session("s.0000000f").await.unwrap();
    let left = server.run(&["KEYS", "fimble:{s}*"]);
    assert!(!left.iter().any(|key| key.ends_with(":contents") || key.ends_with(":family")), "{left:?}");
}

#[tokio::test]
async fn what_forks_left_behind_is_swept_and_other_keys_are_left_alone() {
    let server = Server::new();
    let store = filled(&server).await;
    let fork = SessionRecord { rounds: 1, segments: 1, ..session("s.0000000f") };
    store.fork_session("s", &fork).await.unwrap();
    // The time of one is over, another program has a key beside ours, and the contents of a third family are all that is left.
    server.run(&["DEL", "fimble:{s}.0000000f"]);
    server.run(&["SET", "fimble:{mail}", "x"]);
    server.run(&["HSET", "fimble:{mail}:other", "x", "y"]);
    server.run(&["HSET", "fimble:{t}:contents", &written("y", 1, "2").variable.hash, "12"]);
    let statistics = store.statistics().await.unwrap();
    assert_eq!((statistics.sessions, statistics.contents, statistics.unused), (1, 2, 1));
    assert_eq!(store.sweep(true).await.unwrap(), Swept { contents: 1, content_bytes: 2, file_bytes: 0 });
    assert_eq!(server.run(&["HLEN", "fimble:{s}:family"]), ["1"]);
    assert_eq!(store.sweep(false).await.unwrap(), Swept { contents: 1, content_bytes: 2, file_bytes: 0 });
    assert_eq!(server.run(&["EXISTS", "fimble:{s}:family", "fimble:{t}:contents"]), ["0"]);
    assert_eq!(server.run(&["EXISTS", "fimble:{mail}", "fimble:{mail}:other"]), ["2"]);
    assert_eq!(store.contents("s", &["x".into()]).await.unwrap(), [written("x", 1, "1")]);
    server.run(&["HSET", "fimble:{s}", "schema", &(VERSION + 1).to_string()]);
    let refused = store.sweep(false).await;
    assert!(matches!(refused, Err(StoreError::TooNew { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_commit_is_one_round_trip_once_its_session_is_listed() {
    let server = Server::new();
    let store = server.store().await;
    let mut requests = vec![store.requests()];
    let mut record = session("s");
    store.create_session(&record).await.unwrap();
    requests.push(store.requests());
    for number in 1..=3 {
        store.open_round("s", &round(number)).await.unwrap();
        record = SessionRecord { segments: number, events: number, ..commit(&record, number).session };
        let commit = RoundCommit {
            session: record.clone(),
            written: vec![written("x", number, "same"), written("y", number, "same")],
            segments: vec![segment(number)],
            events: vec![event("s", number)],
            ..commit(&record, number)
        };
        store.commit_round(&commit).await.unwrap();
        requests.push(store.requests());
    }
    let steps: Vec<u64> = requests.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // The first of each script is sent again with its text.
    assert_eq!((requests[0], steps), (3, vec![3, 4, 2, 2]));
}
