//! The part of the contract about forks and the way back: what they take over, what they share, and what they refuse.

use std::sync::Arc;

use fimble::record::{Outcome, Round, SessionRecord, SessionStatus, Variable};
use fimble::store::upkeep::Upkeep;
use fimble::store::{Rewind, RoundCommit, Store, StoreError};

use super::contract::{Place, everything};
use super::examples::{at, call, commit, done, ended, event, round, segment, session, written};

pub const FORK: &str = "s.0000000f";
const OTHER: &str = "s.0000000a";

/// A session `s` of three rounds that have ended, with six segments, two events and a call in each round.
pub async fn three_rounds(place: &impl Place) -> (Arc<dyn Upkeep>, SessionRecord) {
    let store = place.open().await;
    store.create_session(&session("s")).await.unwrap();
    let mut record = session("s");
    type Changes = (&'static [(&'static str, &'static str)], &'static [&'static str]);
    let changes: [Changes; 3] =
        [(&[("a", "1"), ("b", "1"), ("c", "3")], &[]), (&[("a", "2")], &["b"]), (&[("b", "3"), ("d", "4")], &["c"])];
    for (number, (changed, removed)) in (1..).zip(changes) {
        store.open_round("s", &round(number)).await.unwrap();
        let key = format!("k{number}");
        store.request_call("s", number, &call(&key, 0)).await.unwrap();
        store.finish_call("s", number, &done(&key, 0)).await.unwrap();
        record = SessionRecord { segments: number * 2, events: number * 2, ..commit(&record, number).session };
        let commit = RoundCommit {
            session: record.clone(),
            written: changed.iter().map(|(name, content)| written(name, number, content)).collect(),
            removed: removed.iter().map(|&name| name.into()).collect(),
            segments: vec![segment(number * 2 - 1), segment(number * 2)],
            events: vec![event("s", number * 2 - 1), event("s", number * 2)],
            ..commit(&record, number)
        };
        store.commit_round(&commit).await.unwrap();
    }
    (store, record)
}

/// A fork of `s` after a round, with so many segments.
pub fn fork(id: &str, rounds: u64, segments: u64) -> SessionRecord {
    let status = SessionStatus::Idle;
    SessionRecord { rounds, segments, status, created_at: at(70), updated_at: at(80), ..session(id) }
}

/// Names, rounds and contents.
async fn variables(store: &dyn Store, id: &str) -> Vec<String> {
    let names: Vec<String> = store.variables(id).await.unwrap().into_iter().map(|variable| variable.name).collect();
    let contents = store.contents(id, &names).await.unwrap();
    contents.iter().map(|one| format!("{}{}={}", one.variable.name, one.variable.round, one.content)).collect()
}

pub async fn a_fork_is_as_its_source_was(place: &impl Place) {
    let (store, _) = three_rounds(place).await;
    let (source, stored) = (everything(place, "s").await, place.contents_stored().await);
    let record = SessionRecord { title: "nul \0, ünïcode 🙂".into(), ..fork(FORK, 2, 3) };
    store.fork_session("s", &record).await.unwrap();
    assert_eq!(place.contents_stored().await, stored, "contents are shared");
    assert_eq!(everything(place, "s").await, source);

    let store = place.open().await;
    assert_eq!(store.session(FORK).await.unwrap(), Some(record.clone()));
    assert_eq!(store.segments(FORK, 0, u32::MAX).await.unwrap(), [segment(1), segment(2), segment(3)]);
    assert_eq!(store.events(FORK, 0, 100).await.unwrap(), []);
    assert_eq!(store.rounds(FORK, 0).await.unwrap(), [ended(1), ended(2)]);
    for (number, calls) in [(1, vec![done("k1", 0)]), (2, vec![done("k2", 0)]), (3, vec![])] {
        assert_eq!(store.calls(FORK, number).await.unwrap(), calls);
    }
    assert_eq!(variables(store.as_ref(), FORK).await, ["a2=2", "c1=3"]);
    for at in 0..=2 {
        assert_eq!(store.variables_at(FORK, at).await.unwrap(), store.variables_at("s", at).await.unwrap(), "{at}");
    }
    let listed = store.sessions("local", "ada", 10).await.unwrap();
    assert_eq!(listed.into_iter().map(|session| session.id).collect::<Vec<_>>(), [FORK, "s"]);

    // It goes on by itself, with the numbers that its source has used.
    store.open_round(FORK, &round(3)).await.unwrap();
    store.request_call(FORK, 3, &call("k3", 0)).await.unwrap();
    let commit = RoundCommit {
        session: SessionRecord { segments: 4, events: 1, ..commit(&record, 3).session },
        written: vec![written("b", 3, "own")],
        removed: vec!["a".into()],
        segments: vec![segment(4)],
        events: vec![event(FORK, 1)],
        ..commit(&record, 3)
    };
    store.commit_round(&commit).await.unwrap();
    assert_eq!(variables(store.as_ref(), FORK).await, ["b3=own", "c1=3"]);
    assert_eq!(everything(place, "s").await, source);

    // The same of a fork, of the last round, and of the beginning.
    store.fork_session(FORK, &fork(OTHER, 3, 4)).await.unwrap();
    let again = store.rounds(OTHER, 0).await.unwrap();
    assert_eq!((variables(store.as_ref(), OTHER).await, again.len()), (variables(store.as_ref(), FORK).await, 3));
    assert_eq!(store.calls(OTHER, 3).await.unwrap(), [call("k3", 0)]);
    store.fork_session(FORK, &fork("s.00000000", 0, 0)).await.unwrap();
    let nothing = everything(place, "s.00000000").await;
    assert_eq!(nothing, everything_of(fork("s.00000000", 0, 0)));
}

fn everything_of(session: SessionRecord) -> super::contract::Everything {
    super::contract::Everything { session: Some(session), ..super::contract::Everything::default() }
}

pub async fn shared_contents_go_with_the_last_of_a_family(place: &impl Place) {
    for order in [["s", FORK, OTHER], [FORK, "s", OTHER], [OTHER, FORK, "s"]] {
        let (store, _) = three_rounds(place).await;
        store.fork_session("s", &fork(FORK, 3, 6)).await.unwrap();
        store.fork_session(FORK, &fork(OTHER, 3, 6)).await.unwrap();
        for (gone, id) in order.iter().enumerate() {
            for other in &order[gone..] {
                let read = variables(place.open().await.as_ref(), other).await;
                assert_eq!(read, ["a2=2", "b3=3", "d3=4"], "{other} after {gone} of {order:?}");
            }
            assert_eq!(place.contents_stored().await, 4);
            store.delete_session(id).await.unwrap();
            assert_eq!(everything(place, id).await, Default::default());
        }
        assert_eq!(place.contents_stored().await, 0, "{order:?}");
        assert_eq!(store.sessions("local", "ada", 10).await.unwrap(), []);
    }
    // One that was gone comes again, and takes nothing from its forks.
    let (store, _) = three_rounds(place).await;
    store.fork_session("s", &fork(FORK, 3, 6)).await.unwrap();
    store.delete_session("s").await.unwrap();
    store.create_session(&session("s")).await.unwrap();
    assert_eq!(variables(store.as_ref(), FORK).await, ["a2=2", "b3=3", "d3=4"]);
    store.delete_session(FORK).await.unwrap();
    assert_eq!(everything(place, "s").await, everything_of(session("s")));
}

pub async fn a_fork_that_cannot_be_is_refused(place: &impl Place) {
    let (store, _) = three_rounds(place).await;
    store.fork_session("s", &fork(OTHER, 1, 1)).await.unwrap();
    let before = (everything(place, "s").await, everything(place, OTHER).await);
    let user = "eve".to_owned();
    let unknown = [
        store.fork_session("t", &fork("t.0000000f", 1, 1)).await,
        store.fork_session("s", &SessionRecord { user, ..fork(FORK, 1, 1) }).await,
        store.fork_session("s", &SessionRecord { tenant: "other".into(), ..fork(FORK, 1, 1) }).await,
    ];
    assert!(unknown.iter().all(|write| matches!(write, Err(StoreError::UnknownSession(_)))), "{unknown:?}");
    let failed = [
        store.fork_session("s", &fork("t", 1, 1)).await,
        store.fork_session("s", &fork("s", 1, 1)).await,
        store.fork_session("s", &fork("t.0000000f", 1, 1)).await,
        store.fork_session("s", &SessionRecord { events: 1, ..fork(FORK, 1, 1) }).await,
        store.fork_session("s", &SessionRecord { turn: Some(1.into()), ..fork(FORK, 1, 1) }).await,
    ];
    assert!(failed.iter().all(|write| matches!(write, Err(StoreError::Failed(_)))), "{failed:?}");
    let stale = [store.fork_session("s", &fork(FORK, 4, 1)).await, store.fork_session("s", &fork(FORK, 1, 7)).await];
    assert!(stale.iter().all(|write| matches!(write, Err(StoreError::Stale(id)) if id == "s")), "{stale:?}");
    let taken = store.fork_session("s", &fork(OTHER, 1, 1)).await;
    assert!(matches!(&taken, Err(StoreError::AlreadyExists(id)) if id == OTHER), "{taken:?}");
    assert_eq!((everything(place, "s").await, everything(place, OTHER).await), before);
    assert_eq!(place.open().await.session(FORK).await.unwrap(), None);
}

/// Back to the end of round 1.
pub fn back(before: &SessionRecord) -> Rewind {
    let number = before.rounds + 1;
    let of = |name: &str, content: &str| Variable { round: number, ..written(name, 1, content).variable };
    Rewind {
        before: before.clone(),
        session: SessionRecord {
            rounds: number,
            segments: 2,
            status: SessionStatus::Idle,
            updated_at: at(99),
            ..before.clone()
        },
        round: Round { parents: vec![1], hole: String::new(), ..ended(number) },
        written: vec![of("a", "1"), of("b", "1"), of("c", "3")],
        removed: vec!["d".into(), "never_there".into()],
    }
}

pub async fn a_session_goes_back_in_place(place: &impl Place) {
    let (store, before) = three_rounds(place).await;
    let (stored, earlier) = (place.contents_stored().await, everything(place, "s").await);
    let order = back(&before);
    store.rewind_session(&order).await.unwrap();
    assert_eq!(place.contents_stored().await, stored);
    let store = place.open().await;
    assert_eq!(store.session("s").await.unwrap().as_ref(), Some(&order.session));
    assert_eq!(store.segments("s", 0, u32::MAX).await.unwrap(), [segment(1), segment(2)]);
    assert_eq!(store.events("s", 0, 100).await.unwrap().len(), 6);
    assert_eq!(variables(store.as_ref(), "s").await, ["a4=1", "b4=1", "c4=3"]);
    let rounds = store.rounds("s", 0).await.unwrap();
    assert_eq!(rounds, [ended(1), ended(2), ended(3), order.round.clone()]);
    assert_eq!(store.variables_at("s", 3).await.unwrap(), earlier.variables);
    assert_eq!(store.variables_at("s", 4).await.unwrap(), order.written);
    assert_eq!(store.calls("s", 3).await.unwrap(), [done("k3", 0)]);

    // Who had it open from before is told; who opens it now goes on.
    let stale = [
        store.append(&SessionRecord { segments: 7, ..before.clone() }, &[segment(7)], &[]).await,
        store.append(&before, &[], &[]).await,
        store.rewind_session(&order).await,
        store.rewind_session(&back(&SessionRecord { events: 5, ..order.session.clone() })).await,
        store.rewind_session(&back(&SessionRecord { segments: 3, ..order.session.clone() })).await,
    ];
    assert!(stale.iter().all(|write| matches!(write, Err(StoreError::Stale(id)) if id == "s")), "{stale:?}");
    let taken = store.open_round("s", &round(4)).await;
    assert!(matches!(taken, Err(StoreError::AlreadyExists(_))), "{taken:?}");
    let late = store.request_call("s", 4, &call("late", 0)).await;
    assert!(matches!(late, Err(StoreError::Failed(_))), "{late:?}");
    store.open_round("s", &round(5)).await.unwrap();
    let commit = RoundCommit {
        session: SessionRecord { rounds: 5, segments: 3, ..order.session.clone() },
        written: vec![written("a", 5, "5")],
        segments: vec![segment(3)],
        ..commit(&order.session, 5)
    };
    store.commit_round(&commit).await.unwrap();
    assert_eq!(variables(store.as_ref(), "s").await, ["a5=5", "b4=1", "c4=3"]);

    // To the beginning.
    let now = commit.session;
    let session = SessionRecord { rounds: 6, segments: 0, ..now.clone() };
    let removed = ["a", "b", "c"].map(String::from).to_vec();
    let order = Rewind { before: now, session, round: ended(6), written: vec![], removed };
    store.rewind_session(&order).await.unwrap();
    assert_eq!(
        (store.segments("s", 0, u32::MAX).await.unwrap(), variables(store.as_ref(), "s").await),
        (vec![], vec![])
    );
    store.append(&SessionRecord { segments: 1, ..order.session }, &[segment(1)], &[]).await.unwrap();
    assert_eq!(place.open().await.segments("s", 0, u32::MAX).await.unwrap(), [segment(1)]);
}

pub async fn a_way_back_that_does_not_fit_changes_nothing(place: &impl Place) {
    let (store, before) = three_rounds(place).await;
    store.create_session(&session("t")).await.unwrap();
    store.open_round("t", &round(1)).await.unwrap();
    let foreign = RoundCommit { written: vec![written("x", 1, "foreign")], ..commit(&session("t"), 1) };
    store.commit_round(&foreign).await.unwrap();
    let earlier = everything(place, "s").await;
    type Damage = fn(&mut Rewind);
    let broken: [(&str, Damage); 12] = [
        ("a round that is not the next", |order| (order.round.number, order.session.rounds) = (5, 5)),
        ("another count of rounds", |order| order.session.rounds = 5),
        ("a round that waits", |order| {
            order.round.outcome = Some(Outcome::Suspended { on: "sleep".into(), call: "k".into() });
        }),
        ("a round without an end", |order| order.round.outcome = None),
        ("more segments", |order| order.session.segments = 7),
        ("fewer events", |order| order.session.events = 5),
        ("a turn", |order| order.session.turn = Some(1.into())),
        ("a version of another round", |order| order.written[0].round = 1),
        ("a name twice", |order| order.removed.push("a".into())),
        ("content of nobody", |order| order.written[2].hash = written("x", 1, "nobody's").variable.hash),
        ("content of another session", |order| order.written[2].hash = written("x", 1, "foreign").variable.hash),
        ("no hash", |order| order.written[2].hash = "../../x".into()),
    ];
    for (name, damage) in broken {
        let mut order = back(&before);
        damage(&mut order);
        let refused = store.rewind_session(&order).await;
        assert!(matches!(refused, Err(StoreError::Failed(_))), "{name}: {refused:?}");
        assert_eq!(everything(place, "s").await, earlier, "{name}");
    }
    for record in [
        SessionRecord { id: "nobody".into(), ..before.clone() },
        SessionRecord { user: "eve".into(), ..before.clone() },
        SessionRecord { tenant: "other".into(), ..before.clone() },
    ] {
        let refused = store.rewind_session(&back(&record)).await;
        assert!(matches!(refused, Err(StoreError::UnknownSession(_))), "{refused:?}");
    }
    assert_eq!(everything(place, "s").await, earlier);
}
