//! What is left in Redis when something dies: the server, the connection, or one of two writers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fimble::record::SessionRecord;
use fimble::store::redis::{Address, Redis, Settings};
use fimble::store::upkeep::{Upkeep, Whole};
use fimble::store::{RoundCommit, Store, StoreError};
use tokio::sync::watch;

use crate::branches::{FORK, back, fork, three_rounds};
use crate::contract::everything;
use crate::examples::{call, commit, done, ended, event, round, segment, session, written};
use crate::proxy::Proxy;
use crate::server::{Server, open};
use crate::upkeep::small;

/// The end of a round that leaves something everywhere; large enough for several packets.
fn large_commit(before: &SessionRecord, number: u64) -> RoundCommit {
    let content = format!("{number}-{}", "0123456789abcdef".repeat(60)).repeat(8);
    RoundCommit {
        session: SessionRecord { segments: number, events: number, ..commit(before, number).session },
        written: (0..5).map(|name| written(&format!("v{name}"), number, &format!("{name}{content}"))).collect(),
        segments: vec![segment(number)],
        events: vec![event("s", number)],
        ..commit(before, number)
    }
}

async fn refused(url: &str, settings: Settings) -> (String, String) {
    let refused = Redis::open(&Address::parse(url).unwrap(), settings).await.err();
    let Some(StoreError::Unreachable { message, hint }) = refused else { panic!("{url}: {refused:?}") };
    (message, hint)
}

/// Without patience: one attempt.
fn impatient() -> Settings {
    Settings { patience: Duration::from_millis(100), ..Settings::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_outlives_a_killed_server_and_happens_once() {
    const ROUNDS: u64 = 120;
    let mut server = Server::with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let store = server.store().await;
    store.create_session(&session("s")).await.unwrap();
    let (acknowledge, mut acknowledged) = watch::channel(0);
    let writer = tokio::spawn(async move {
        let mut record = session("s");
        for number in 1..=ROUNDS {
            store.open_round("s", &round(number)).await.unwrap();
            let key = format!("k{number}");
            store.request_call("s", number, &call(&key, 0)).await.unwrap();
            store.finish_call("s", number, &done(&key, 0)).await.unwrap();
            let commit = large_commit(&record, number);
            store.commit_round(&commit).await.unwrap();
            record = commit.session;
            acknowledge.send_replace(number);
        }
        record
    });
    for killed_at in [20, 45, 70, 95] {
        acknowledged.wait_for(|number| *number >= killed_at).await.unwrap();
        server.kill();
        let number = *acknowledged.borrow();
        server.restart();
        let there = server.store().await.rounds("s", 0).await.unwrap();
        assert_eq!(there[..usize::try_from(number).unwrap()], (1..=number).map(ended).collect::<Vec<_>>());
    }
    let record = writer.await.unwrap();
    let store = server.store().await;
    assert_eq!(store.session("s").await.unwrap(), Some(record.clone()));
    assert_eq!(store.segments("s", 0, u32::MAX).await.unwrap(), (1..=ROUNDS).map(segment).collect::<Vec<_>>());
    assert_eq!(
        store.events("s", 0, u32::MAX).await.unwrap(),
        (1..=ROUNDS).map(|seq| event("s", seq)).collect::<Vec<_>>()
    );
    assert_eq!(store.rounds("s", 0).await.unwrap(), (1..=ROUNDS).map(ended).collect::<Vec<_>>());
    for number in 1..=ROUNDS {
        assert_eq!(store.calls("s", number).await.unwrap(), [done(&format!("k{number}"), 0)]);
    }
    let names: Vec<String> = (0..5).map(|name| format!("v{name}")).collect();
    assert_eq!(store.contents("s", &names).await.unwrap(), large_commit(&record, ROUNDS).written);
}

#[tokio::test]
async fn a_write_that_is_cut_off_happens_once() {
    let server = Server::new();
    let proxy = Proxy::start(server.folder.path().join("proxy.sock"), server.socket());
    let store = open(&proxy.url()).await;
    store.create_session(&session("s")).await.unwrap();
    let mut record = session("s");
    for (number, bytes) in (1..).zip([0, 1, 40, 200, 900, 2_000, 4_000, -1]) {
        let cut = |bytes: i64| if bytes < 0 { proxy.cut.before_answer() } else { proxy.cut.after(bytes) };
        cut(bytes);
        store.open_round("s", &round(number)).await.unwrap();
        cut(bytes.min(300));
        store.request_call("s", number, &call(&format!("k{number}"), 0)).await.unwrap();
        cut(bytes);
        let commit = large_commit(&record, number);
        store.commit_round(&commit).await.unwrap();
        proxy.cut.after(-1);
        record = commit.session.clone();
        assert!(proxy.cut.happened());
        let direct = server.store().await;
        assert_eq!(direct.session("s").await.unwrap(), Some(record.clone()), "cut after {bytes} bytes");
        assert_eq!(direct.rounds("s", number - 1).await.unwrap(), [ended(number)]);
        assert_eq!(direct.calls("s", number).await.unwrap(), [call(&format!("k{number}"), 0)]);
        assert_eq!(direct.segments("s", 0, u32::MAX).await.unwrap().len() as u64, number);
    }
}

#[tokio::test]
async fn a_fork_a_way_back_and_a_whole_session_that_are_cut_off_happen_once() {
    let server = Server::new();
    let proxy = Proxy::start(server.folder.path().join("proxy.sock"), server.socket());
    let store = open(&proxy.url()).await;
    let mut sizes = (0..=2_400).step_by(150).chain([-1]);
    // The first time nothing is cut, so that the server knows the scripts.
    let mut cut = None;
    loop {
        let (_, before) = three_rounds(&server).await;
        let cut_now = || match cut {
            None => {}
            Some(-1) => proxy.cut.before_answer(),
            Some(bytes) => proxy.cut.after(bytes),
        };
        cut_now();
        store.fork_session("s", &fork(FORK, 2, 3)).await.unwrap();
        cut_now();
        store.rewind_session(&back(&before)).await.unwrap();
        cut_now();
        store
            .put_session(Whole { session: SessionRecord { id: "t".into(), ..small().session }, ..small() }, false)
            .await
            .unwrap();
        proxy.cut.after(-1);
        let direct = server.store().await;
        let ids = direct.all_sessions().await.unwrap().into_iter().map(|session| session.id);
        assert_eq!(ids.collect::<Vec<_>>(), ["s", FORK, "t"], "{cut:?}");
        assert_eq!(direct.rounds("s", 0).await.unwrap().len(), 4, "{cut:?}");
        assert_eq!((direct.rounds(FORK, 0).await.unwrap().len(), direct.calls("t", 1).await.unwrap().len()), (2, 1));
        server.run(&["FLUSHALL"]);
        cut = sizes.next();
        if cut.is_none() {
            break;
        }
    }
    assert!(proxy.cut.happened());
}

#[tokio::test]
async fn a_connection_cut_for_good_leaves_the_old_state_or_the_new() {
    let (mut old, mut new) = (0, 0);
    for bytes in (0..=3_000).step_by(250).chain([-1]) {
        let server = Server::new();
        let proxy = Proxy::start(server.folder.path().join("proxy.sock"), server.socket());
        let address = Address::parse(&proxy.url()).unwrap();
        let store = Redis::open(&address, impatient()).await.unwrap();
        let direct = server.store().await;
        direct.create_session(&session("s")).await.unwrap();
        // The server knows the script, and the index the session, so that the cut is in the commit.
        let first = large_commit(&session("s"), 1);
        store.open_round("s", &round(1)).await.unwrap();
        store.commit_round(&first).await.unwrap();
        direct.open_round("s", &round(2)).await.unwrap();
        let before = everything(&server, "s").await;
        let second = large_commit(&SessionRecord { updated_at: first.session.updated_at, ..first.session }, 2);
        proxy.cut.for_good();
        if bytes < 0 {
            proxy.cut.before_answer()
        } else {
            proxy.cut.after(bytes)
        }
        let begun = Instant::now();
        let written = store.commit_round(&second).await;
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        let after = everything(&server, "s").await;
        match written {
            Err(StoreError::Unreachable { .. }) if after == before => old += 1,
            // What came before the cut was all of it.
            Ok(()) | Err(StoreError::Unreachable { .. }) => {
                new += 1;
                let names = second.written.iter().map(|written| written.variable.name.clone()).collect::<Vec<_>>();
                assert_eq!(direct.session("s").await.unwrap().as_ref(), Some(&second.session));
                assert_eq!(direct.contents("s", &names).await.unwrap(), second.written);
                assert_eq!(direct.rounds("s", 1).await.unwrap(), [ended(2)]);
                assert_eq!(direct.segments("s", 0, u32::MAX).await.unwrap(), [segment(1), segment(2)]);
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(old > 3 && new > 0, "{old} old, {new} new");
}

#[tokio::test]
async fn of_two_writers_from_the_same_state_one_is_stale() {
    let server = Server::new();
    let (one, other) = (server.store().await, server.store().await);
    one.create_session(&session("s")).await.unwrap();
    for seq in 1..=50 {
        let record = SessionRecord { segments: seq, events: seq, ..session("s") };
        let (segments, events) = ([segment(seq)], [event("s", seq)]);
        let (first, second) =
            tokio::join!(one.append(&record, &segments, &events), other.append(&record, &segments, &events));
        let answers = [first, second];
        let stale = answers.iter().filter(|answer| matches!(answer, Err(StoreError::Stale(_)))).count();
        assert!(stale == 1 && answers.iter().any(Result::is_ok), "{answers:?}");
    }
    assert_eq!(one.segments("s", 0, u32::MAX).await.unwrap(), (1..=50).map(segment).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_server_whose_memory_is_full_takes_nothing_of_a_commit() {
    let server = Server::new();
    let store = server.store().await;
    store.create_session(&session("s")).await.unwrap();
    store.open_round("s", &round(1)).await.unwrap();
    let before = everything(&server, "s").await;
    server.run(&["CONFIG", "SET", "maxmemory", "1"]);
    let commit = large_commit(&session("s"), 1);
    let refused = store.commit_round(&commit).await;
    assert!(matches!(&refused, Err(StoreError::Failed(said)) if said.contains("memory is full")), "{refused:?}");
    server.run(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(everything(&server, "s").await, before);
    store.commit_round(&commit).await.unwrap();
}

#[tokio::test]
async fn a_server_that_forgot_its_scripts_is_told_them_again() {
    let server = Server::new();
    let store = server.store().await;
    for id in ["a", "b"] {
        store.create_session(&session(id)).await.unwrap();
        server.run(&["SCRIPT", "FLUSH"]);
    }
    assert_eq!(store.session("b").await.unwrap(), Some(session("b")));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable_and_says_where() {
    let (message, hint) = refused("redis://ada:secret@127.0.0.1:1/2", impatient()).await;
    assert!(message.starts_with("`redis://127.0.0.1:1/2`: ") && message.contains("refused"), "{message}");
    assert!(hint.contains("start the server") && hint.contains("store = "), "{hint}");
    for url in ["redis+cluster://:secret@127.0.0.1:1,127.0.0.1:2", "redis+sentinel://:secret@127.0.0.1:1/main"] {
        let (message, hint) = refused(url, impatient()).await;
        assert!(!message.contains("secret") && message.contains("127.0.0.1:1"), "{message}");
        assert!(hint.contains("store = "), "{hint}");
    }
}

#[tokio::test]
async fn who_is_not_let_in_is_told_at_once() {
    let server = Server::with(&["--requirepass", "right"]);
    for password in ["", "?pass=wrong"] {
        let begun = Instant::now();
        let (message, hint) = refused(&format!("{}{password}", server.url()), Settings::default()).await;
        assert!(hint.contains("user and password") && !message.contains("wrong"), "{message} {hint}");
        assert!(begun.elapsed() < Duration::from_secs(2));
    }
    open(&format!("{}?pass=right", server.url())).await;
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_waited_for_and_not_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("silent.sock");
    let _silent = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let begun = Instant::now();
    refused(&format!("redis+unix://{}", socket.display()), impatient()).await;
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());

    let mut server = Server::with(&["--appendonly", "yes"]);
    let store = Arc::new(server.store().await);
    server.kill();
    let waiting = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.create_session(&session("s")).await }
    });
    tokio::task::yield_now().await;
    server.restart();
    waiting.await.unwrap().unwrap();
    assert_eq!(store.session("s").await.unwrap(), Some(session("s")));
}
