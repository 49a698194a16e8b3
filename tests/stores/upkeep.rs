//! The part of the contract that is about the whole store: counting, clearing, and carrying sessions elsewhere.

use std::sync::Arc;

use fimble::record::{Outcome, Round, SessionRecord};
use fimble::store::packing::content_hash;
use fimble::store::sqlite::Sqlite;
use fimble::store::transfer::{Imported, Limits, export, import};
use fimble::store::upkeep::{Statistics, Swept, Upkeep, Version, Whole, read};
use fimble::store::{RoundCommit, StoreError};

use super::branches::{FORK, back, fork, three_rounds};
use super::contract::{Place, everything};
use super::examples::{at, call, commit, event, event_kinds, round, segment, session, written};

/// All kinds of sessions: one of three rounds that went back, its fork that went on, one that waits, one that is empty.
pub async fn fill(store: &dyn Upkeep) {
    store.create_session(&session("s")).await.unwrap();
    for number in 1..=3 {
        store.open_round("s", &round(number)).await.unwrap();
        for (ordinal, name) in ["b", "a"].into_iter().enumerate() {
            let key = format!("{name}{number}");
            store.request_call("s", number, &call(&key, u32::try_from(ordinal).unwrap())).await.unwrap();
        }
        let session = SessionRecord { rounds: number, segments: number * 2, updated_at: at(number), ..session("s") };
        let written = vec![written("a", number, &format!("\"{number} é\\\"\0")), written("ü/1", number, "same")];
        let segments = vec![segment(number * 2 - 1), segment(number * 2)];
        let removed = if number == 3 { vec!["b".into()] } else { vec![] };
        let commit = RoundCommit { session: session.clone(), written, segments, removed, ..commit(&session, number) };
        store.commit_round(&RoundCommit { session, ..commit }).await.unwrap();
    }
    let before = store.session("s").await.unwrap().unwrap();
    let events: Vec<_> =
        (1..).zip(event_kinds()).map(|(seq, kind)| fimble::event::Event { kind, ..event("s", seq) }).collect();
    let before = SessionRecord { events: events.len() as u64, ..before };
    store.append(&before, &[], &events).await.unwrap();
    let mut order = back(&before);
    let again = written("a", 1, "\"1 é\\\"\0").variable;
    order.written = vec![fimble::record::Variable { round: 4, ..again }];
    order.removed = vec!["ü/1".into()];
    store.rewind_session(&order).await.unwrap();

    store.fork_session("s", &fork(FORK, 2, 2)).await.unwrap();
    store.open_round(FORK, &round(3)).await.unwrap();
    store.request_call(FORK, 3, &call("own", 0)).await.unwrap();
    let forked = fork(FORK, 2, 2);
    let own = RoundCommit {
        session: SessionRecord { events: 1, ..commit(&forked, 3).session },
        written: vec![written("own", 3, "own"), written("twin", 3, "same")],
        events: vec![event(FORK, 1)],
        ..commit(&forked, 3)
    };
    store.commit_round(&own).await.unwrap();

    let turn = Some(serde_json::json!({"goal": [1, {"deep": null}], "text": "\u{0}🙂"}));
    let title = "nul \0, ünïcode 🙂".to_owned();
    let waits = SessionRecord { turn, title, user: "eve".into(), rounds: 7, ..session("waits") };
    store.create_session(&waits).await.unwrap();
    store.open_round("waits", &round(5)).await.unwrap();
    store.open_round("waits", &round(7)).await.unwrap();
    let outcome = Some(Outcome::Suspended { on: "question".into(), call: "k".into() });
    let suspended = RoundCommit { round: Round { outcome, ..round(7) }, ..commit(&waits, 7) };
    store.commit_round(&suspended).await.unwrap();
    store.create_session(&SessionRecord { tenant: "other".into(), ..session("empty") }).await.unwrap();
}

const IDS: [&str; 4] = ["empty", "s", FORK, "waits"];

fn ids() -> Vec<String> {
    IDS.map(String::from).to_vec()
}

/// The file of all sessions of a store.
pub async fn file_of(store: &dyn Upkeep, ids: &[String]) -> String {
    let mut file = Vec::new();
    let sessions = export(store, ids, &mut file, Limits::default()).await.unwrap();
    assert_eq!(sessions, ids.len() as u64);
    String::from_utf8(file).unwrap()
}

pub async fn take_in(store: &dyn Upkeep, file: &str, replace: bool) -> Imported {
    import(store, &mut file.as_bytes(), replace, Limits::default()).await.unwrap()
}

pub async fn one_file_carries_sessions_there_and_back(place: &impl Place) {
    let first = Sqlite::in_memory().unwrap();
    fill(&first).await;
    let file = file_of(&first, &ids()).await;
    let contents = file.lines().filter(|line| line.starts_with("{\"content\"")).count();
    assert_eq!((contents, file.lines().next()), (5, Some("{\"fimble\":{\"version\":1}}")), "each once");

    let store = place.open().await;
    assert_eq!(take_in(store.as_ref(), &file, false).await, Imported { sessions: 4, refused: vec![] });
    let store = place.open().await;
    assert_eq!(file_of(store.as_ref(), &ids()).await, file);
    // And what was written there by itself is the same as what was carried.
    let last = Sqlite::in_memory().unwrap();
    take_in(&last, &file_of(store.as_ref(), &ids()).await, false).await;
    assert_eq!(file_of(&last, &ids()).await, file);
    for (one, other) in [(&first as &dyn Upkeep, &last as &dyn Upkeep), (&first, store.as_ref())] {
        for id in IDS {
            assert_eq!(one.variables(id).await.unwrap(), other.variables(id).await.unwrap(), "{id}");
            assert_eq!(one.variables_at(id, 2).await.unwrap(), other.variables_at(id, 2).await.unwrap(), "{id}");
        }
        assert_eq!(one.all_sessions().await.unwrap(), other.all_sessions().await.unwrap());
    }
    let listed = store.sessions("local", "ada", 10).await.unwrap();
    assert_eq!(listed.into_iter().map(|session| session.id).collect::<Vec<_>>(), ["s", FORK]);

    // What is there already is left alone, or replaced.
    assert_eq!(take_in(store.as_ref(), &file, false).await, Imported { sessions: 0, refused: ids() });
    store.open_round("s", &round(5)).await.unwrap();
    store.delete_session("empty").await.unwrap();
    let refused = ["s", FORK, "waits"].map(String::from).to_vec();
    assert_eq!(take_in(store.as_ref(), &file, false).await, Imported { sessions: 1, refused });
    assert_eq!(store.session("s").await.unwrap().unwrap().rounds, 5);
    assert_eq!(take_in(store.as_ref(), &file, true).await, Imported { sessions: 4, refused: vec![] });
    assert_eq!(file_of(store.as_ref(), &ids()).await, file);

    // They go on where they were, and only rounds that were open take calls.
    store.request_call("waits", 5, &call("new", 0)).await.unwrap();
    store.request_call("waits", 7, &call("new too", 0)).await.unwrap();
    let ended = store.request_call(FORK, 3, &call("late", 0)).await;
    assert!(matches!(ended, Err(StoreError::Failed(_))), "{ended:?}");
    let taken = store.request_call("waits", 7, &call("new", 0)).await;
    assert!(matches!(taken, Err(StoreError::AlreadyExists(_))), "{taken:?}");
    for id in ["s", "empty", "waits"] {
        store.delete_session(id).await.unwrap();
    }
    assert_eq!(everything(place, FORK).await.contents.len(), 4, "the fork keeps what it shares");
    store.delete_session(FORK).await.unwrap();
    assert_eq!((place.contents_stored().await, store.all_sessions().await.unwrap()), (0, vec![]));
}

/// A session `s` of one round with one variable.
pub fn small() -> Whole {
    let written = written("x", 1, "1");
    let version = Version { name: "x".into(), round: 1, variable: Some(written.variable) };
    Whole {
        session: SessionRecord { rounds: 1, segments: 1, events: 1, ..session("s") },
        segments: vec![segment(1)],
        events: vec![event("s", 1)],
        rounds: vec![super::examples::ended(1)],
        calls: vec![(1, call("k", 0))],
        versions: vec![version],
        contents: [(content_hash("1"), Arc::from("1"))].into(),
    }
}

pub async fn a_whole_session_is_stored_or_nothing(place: &impl Place) {
    let store = place.open().await;
    type Damage = fn(&mut Whole);
    let broken: [(&str, Damage); 17] = [
        ("an id that names another key", |whole| whole.session.id = "a}b".into()),
        ("an id that names another file", |whole| whole.session.id = "../x".into()),
        ("no id", |whole| whole.session.id = String::new()),
        ("a long id", |whole| whole.session.id = "x".repeat(129)),
        ("a segment too few", |whole| whole.session.segments = 2),
        ("a segment too many", |whole| whole.session.segments = 0),
        ("a segment of another number", |whole| whole.segments[0].id = 2),
        ("an event of another number", |whole| whole.events[0].seq = 2),
        ("a round beyond the last", |whole| whole.session.rounds = 0),
        ("a round twice", |whole| whole.rounds.push(super::examples::ended(1))),
        ("round 0", |whole| whole.rounds[0].number = 0),
        ("a call of no round", |whole| whole.calls[0].0 = 2),
        ("a call twice", |whole| whole.calls.push((1, call("k", 1)))),
        ("a version of no round", |whole| whole.versions[0].round = 2),
        ("a version twice", |whole| whole.versions.push(whole.versions[0].clone())),
        ("no content", |whole| whole.contents.clear()),
        ("another content", |whole| drop(whole.contents.insert(content_hash("1"), "2".into()))),
    ];
    for (name, damage) in broken {
        let mut whole = small();
        damage(&mut whole);
        let refused = store.put_session(whole, false).await;
        assert!(matches!(refused, Err(StoreError::Failed(_))), "{name}: {refused:?}");
        assert_eq!((store.all_sessions().await.unwrap(), place.contents_stored().await), (vec![], 0), "{name}");
    }
    store.put_session(small(), false).await.unwrap();
    let store = place.open().await;
    let stored = read(store.as_ref(), "s").await.unwrap();
    assert_eq!(stored, Some(Whole { contents: [].into(), ..small() }));
    assert_eq!(store.content("s", &content_hash("1")).await.unwrap().as_deref(), Some("1"));
    for (id, hash) in [("s", content_hash("2")), ("t", content_hash("1")), ("s", "no hash".into())] {
        assert_eq!(store.content(id, &hash).await.unwrap(), None);
    }
    assert_eq!(store.versions("t").await.unwrap(), []);
    assert_eq!(read(store.as_ref(), "t").await.unwrap(), None);
    let taken = store.put_session(small(), false).await;
    assert!(matches!(&taken, Err(StoreError::AlreadyExists(id)) if id == "s"), "{taken:?}");
}

pub async fn a_session_of_a_stranger_is_not_replaced(place: &impl Place) {
    let store = place.open().await;
    store.put_session(small(), false).await.unwrap();
    let before = everything(place, "s").await;
    for (tenant, user) in [("other", "ada"), ("local", "eve")] {
        let session = SessionRecord { tenant: tenant.into(), user: user.into(), ..small().session };
        let refused = store.put_session(Whole { session, ..small() }, true).await;
        assert!(matches!(&refused, Err(StoreError::UnknownSession(id)) if id == "s"), "{refused:?}");
    }
    assert_eq!(everything(place, "s").await, before);
    assert_eq!(store.sessions("local", "eve", 9).await.unwrap(), []);
}

pub async fn everything_is_counted(place: &impl Place) {
    let store = place.open().await;
    let nothing = store.statistics().await.unwrap();
    let expected = Statistics { schema: nothing.schema, bytes: nothing.bytes, ..Statistics::default() };
    assert_eq!(nothing, expected);
    fill(store.as_ref()).await;
    let store = place.open().await;
    let found = store.statistics().await.unwrap();
    let sizes = ["\"1 é\\\"\0", "\"2 é\\\"\0", "\"3 é\\\"\0", "same", "own"].map(|text| text.len() as u64 + 1);
    let events = event_kinds().len() as u64 + 1;
    let expected = Statistics {
        schema: nothing.schema,
        sessions: 4,
        forks: 1,
        segments: 2 + 2,
        rounds: 4 + 3 + 2,
        calls: 6 + 5,
        events,
        variables: 1 + 4,
        versions: 7 + 6,
        contents: 5,
        content_bytes: sizes.iter().sum(),
        shared: 3,
        unused: 0,
        bytes: found.bytes,
        free_bytes: found.free_bytes,
        oldest: Some(at(0)),
        newest: Some(at(99)),
    };
    assert_eq!(found, expected);
    assert!(found.bytes > nothing.bytes && found.free_bytes < found.bytes, "{found:?}");
}

pub async fn what_nothing_refers_to_is_swept(place: &impl Place) {
    let (store, _) = three_rounds(place).await;
    assert_eq!(store.sweep(false).await.unwrap().contents, 0);
    store.fork_session("s", &fork(FORK, 1, 2)).await.unwrap();
    store.delete_session("s").await.unwrap();
    let before = everything(place, FORK).await;
    // Where contents are counted one by one, what only the source had is gone already.
    let left = if place.shares_contents() { 0 } else { 2 };
    assert_eq!(place.contents_stored().await, 2 + left);
    let expected = Swept { contents: left, content_bytes: left * 2, file_bytes: 0 };
    let swept = |swept: Swept| Swept { file_bytes: 0, ..swept };
    assert_eq!(swept(store.sweep(true).await.unwrap()), expected);
    assert_eq!((place.contents_stored().await, store.statistics().await.unwrap().unused), (2 + left, left));
    assert_eq!(swept(store.sweep(false).await.unwrap()), expected);
    assert_eq!((place.contents_stored().await, store.statistics().await.unwrap().unused), (2, 0));
    assert_eq!(everything(place, FORK).await, before);
    store.open_round(FORK, &round(2)).await.unwrap();
    store.delete_session(FORK).await.unwrap();
    assert_eq!(swept(store.sweep(false).await.unwrap()), Swept::default());
    assert_eq!(place.contents_stored().await, 0);
}
