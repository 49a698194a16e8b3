//! What every store promises, as functions over a place where one is kept. Each writes through one handle and reads
//! through another that was opened afterwards.

use std::future::Future;
use std::sync::Arc;

use fimble::record::{Outcome, SessionRecord, SessionStatus};
use fimble::segment::{Segment, SegmentKind};
use fimble::store::upkeep::Upkeep;
use fimble::store::{RoundCommit, StoreError};

pub use super::branches::{
    a_fork_is_as_its_source_was, a_fork_that_cannot_be_is_refused, a_session_goes_back_in_place,
    a_way_back_that_does_not_fit_changes_nothing, shared_contents_go_with_the_last_of_a_family,
};
use super::examples::{at, call, commit, done, ended, event, round, segment, session, written};
pub use super::upkeep::{
    a_session_of_a_stranger_is_not_replaced, a_whole_session_is_stored_or_nothing, everything_is_counted,
    one_file_carries_sessions_there_and_back, what_nothing_refers_to_is_swept,
};

/// Somewhere that a store is kept.
pub trait Place {
    /// A new handle to it.
    fn open(&self) -> impl Future<Output = Arc<dyn Upkeep>>;
    /// How many contents are stored there, whoever refers to them.
    fn contents_stored(&self) -> impl Future<Output = u64>;
    /// Whether equal contents of different sessions are one there.
    fn shares_contents(&self) -> bool;
}

/// All that a session reads as, to compare before and after.
#[derive(Debug, Default, PartialEq)]
pub struct Everything {
    pub session: Option<SessionRecord>,
    pub segments: Vec<Segment>,
    pub events: Vec<fimble::event::Event>,
    pub rounds: Vec<fimble::record::Round>,
    pub calls: Vec<fimble::record::CallRecord>,
    pub variables: Vec<fimble::record::Variable>,
    pub contents: Vec<fimble::record::WrittenVariable>,
}

pub async fn everything(place: &impl Place, id: &str) -> Everything {
    let store = place.open().await;
    let rounds = store.rounds(id, 0).await.unwrap();
    let mut calls = vec![];
    for round in &rounds {
        calls.extend(store.calls(id, round.number).await.unwrap());
    }
    let variables = store.variables(id).await.unwrap();
    let names: Vec<String> = variables.iter().map(|variable| variable.name.clone()).collect();
    Everything {
        session: store.session(id).await.unwrap(),
        segments: store.segments(id, 0, u32::MAX).await.unwrap(),
        events: store.events(id, 0, u32::MAX).await.unwrap(),
        rounds,
        calls,
        variables,
        contents: store.contents(id, &names).await.unwrap(),
    }
}

/// A session `s` with one segment, one event, and round 1 open with one call.
async fn begun(place: &impl Place) -> (Arc<dyn Upkeep>, SessionRecord) {
    let store = place.open().await;
    store.create_session(&session("s")).await.unwrap();
    let begun = SessionRecord { segments: 1, events: 1, ..session("s") };
    store.append(&begun, &[segment(1)], &[event("s", 1)]).await.unwrap();
    store.open_round("s", &round(1)).await.unwrap();
    store.request_call("s", 1, &call("k", 0)).await.unwrap();
    (store, SessionRecord { rounds: 1, ..begun })
}

pub async fn a_session_reads_as_it_was_written(place: &impl Place) {
    let (store, begun) = begun(place).await;
    store.finish_call("s", 1, &done("k", 0)).await.unwrap();
    let commit = RoundCommit {
        session: SessionRecord {
            status: SessionStatus::AwaitingUser,
            title: "nul \0, ünïcode 🙂".into(),
            updated_at: at(9),
            segments: 3,
            events: 2,
            ..begun
        },
        round: ended(1),
        written: vec![written("z", 1, "[1]"), written("ä\0", 1, "\0🙂")],
        removed: vec!["never_there".into()],
        segments: vec![segment(2), Segment { content: "nul \0 ".repeat(1_000), ..segment(3) }],
        events: vec![event("s", 2)],
    };
    store.commit_round(&commit).await.unwrap();
    let expected = Everything {
        session: Some(commit.session.clone()),
        segments: vec![segment(1), segment(2), commit.segments[1].clone()],
        events: vec![event("s", 1), event("s", 2)],
        rounds: vec![ended(1)],
        calls: vec![done("k", 0)],
        variables: commit.written.iter().map(|written| written.variable.clone()).collect(),
        contents: commit.written.clone(),
    };
    assert_eq!(everything(place, "s").await, expected);
}

pub async fn an_unknown_session_reads_as_nothing_and_takes_no_write(place: &impl Place) {
    let store = place.open().await;
    store.create_session(&session("known")).await.unwrap();
    let nothing = Everything::default();
    assert_eq!(everything(place, "s").await, nothing);
    assert_eq!(store.contents("s", &["x".into()]).await.unwrap(), []);
    let writes = [
        store.append(&session("s"), &[], &[]).await,
        store.open_round("s", &round(1)).await,
        store.request_call("s", 1, &call("k", 0)).await,
        store.finish_call("s", 1, &done("k", 0)).await,
        store.commit_round(&commit(&session("s"), 1)).await,
        store.append(&SessionRecord { user: "eve".into(), ..session("known") }, &[], &[]).await,
        store.append(&SessionRecord { tenant: "other".into(), ..session("known") }, &[], &[]).await,
    ];
    for (number, write) in writes.into_iter().enumerate() {
        assert!(matches!(write, Err(StoreError::UnknownSession(_))), "write {number}: {write:?}");
    }
    store.delete_session("s").await.unwrap();
    assert_eq!(everything(place, "s").await, nothing);
    assert_eq!(place.open().await.session("known").await.unwrap(), Some(session("known")));
}

pub async fn a_taken_id_is_refused(place: &impl Place) {
    let (store, _) = begun(place).await;
    let before = everything(place, "s").await;
    let writes = [
        (store.create_session(&SessionRecord { user: "eve".into(), ..session("s") }).await, "s"),
        (store.open_round("s", &round(1)).await, "round 1"),
        (store.request_call("s", 1, &done("k", 4)).await, "k"),
    ];
    for (write, name) in writes {
        assert!(matches!(&write, Err(StoreError::AlreadyExists(taken)) if taken == name), "{name}: {write:?}");
    }
    assert_eq!(everything(place, "s").await, before);
}

pub async fn sessions_are_listed_by_user_and_last_update(place: &impl Place) {
    let store = place.open().await;
    for (id, updated) in [("a", 5), ("b", 9), ("c", 7), ("d", 9)] {
        store.create_session(&SessionRecord { updated_at: at(updated), ..session(id) }).await.unwrap();
    }
    store.create_session(&SessionRecord { user: "eve".into(), ..session("e") }).await.unwrap();
    store.create_session(&SessionRecord { tenant: "other".into(), ..session("f") }).await.unwrap();
    store.append(&SessionRecord { updated_at: at(20), ..session("a") }, &[], &[]).await.unwrap();
    let store = place.open().await;
    let listed = |sessions: Vec<SessionRecord>| sessions.into_iter().map(|session| session.id).collect::<Vec<_>>();
    assert_eq!(listed(store.sessions("local", "ada", 10).await.unwrap()), ["a", "d", "b", "c"]);
    assert_eq!(listed(store.sessions("local", "ada", 2).await.unwrap()), ["a", "d"]);
    assert_eq!(listed(store.sessions("other", "ada", 10).await.unwrap()), ["f"]);
    assert_eq!(listed(store.sessions("local", "nobody", 10).await.unwrap()), [""; 0]);
}

pub async fn events_are_read_from_where_a_reader_stopped(place: &impl Place) {
    let store = place.open().await;
    store.create_session(&session("s")).await.unwrap();
    let events: Vec<_> = (1..=7).map(|seq| event("s", seq)).collect();
    store.append(&SessionRecord { events: 7, ..session("s") }, &[], &events).await.unwrap();
    let store = place.open().await;
    assert_eq!(store.events("s", 2, 3).await.unwrap(), events[2..5]);
    assert_eq!(store.events("s", 6, 100).await.unwrap(), events[6..]);
    assert_eq!(store.events("s", 7, 100).await.unwrap(), []);
    assert_eq!(store.events("s", u64::MAX, 100).await.unwrap(), []);
}

pub async fn calls_keep_the_order_of_their_requests(place: &impl Place) {
    let (store, _) = begun(place).await;
    store.open_round("s", &round(2)).await.unwrap();
    for (ordinal, key) in ["z", "a", "m"].into_iter().enumerate() {
        store.request_call("s", 2, &call(key, u32::try_from(ordinal).unwrap())).await.unwrap();
    }
    store.finish_call("s", 2, &done("m", 2)).await.unwrap();
    let store = place.open().await;
    assert_eq!(store.calls("s", 1).await.unwrap(), [call("k", 0)]);
    assert_eq!(store.calls("s", 2).await.unwrap(), [call("z", 0), call("a", 1), done("m", 2)]);
    assert_eq!(store.calls("s", 3).await.unwrap(), []);
}

pub async fn the_journal_takes_only_calls_of_rounds_that_run(place: &impl Place) {
    let (store, begun) = begun(place).await;
    let refused = [store.request_call("s", 2, &call("a", 0)).await, store.finish_call("s", 1, &done("b", 0)).await];
    assert!(refused.iter().all(|write| matches!(write, Err(StoreError::Failed(_)))), "{refused:?}");
    let suspended = Some(Outcome::Suspended { on: "approval".into(), call: "k".into() });
    let mut commit = commit(&begun, 1);
    commit.round.outcome = suspended;
    store.commit_round(&commit).await.unwrap();
    store.request_call("s", 1, &call("after the answer", 1)).await.unwrap();
    commit.round = ended(1);
    store.commit_round(&commit).await.unwrap();
    let late = store.request_call("s", 1, &call("late", 2)).await;
    assert!(matches!(late, Err(StoreError::Failed(_))), "{late:?}");
    store.finish_call("s", 1, &done("k", 0)).await.unwrap();
    assert_eq!(place.open().await.calls("s", 1).await.unwrap(), [done("k", 0), call("after the answer", 1)]);
}

pub async fn a_refused_commit_leaves_nothing(place: &impl Place) {
    let (store, begun) = begun(place).await;
    let before = everything(place, "s").await;
    let sound = RoundCommit {
        session: SessionRecord { status: SessionStatus::Idle, segments: 2, events: 2, updated_at: at(50), ..begun },
        written: vec![written("x", 1, "1")],
        removed: vec!["y".into()],
        segments: vec![segment(2)],
        events: vec![event("s", 2)],
        ..commit(&session("s"), 1)
    };
    type Damage = fn(&mut RoundCommit);
    let broken: [(&str, Damage); 14] = [
        ("no outcome", |commit| commit.round.outcome = None),
        ("round never opened", |commit| commit.round.number = 2),
        ("segment taken", |commit| commit.segments[0].id = 1),
        ("segment gap", |commit| commit.segments[0].id = 3),
        ("event taken", |commit| commit.events[0].seq = 1),
        ("event twice", |commit| commit.events.push(commit.events[0].clone())),
        ("transient event", |commit| commit.events[0].seq = 0),
        ("counter too high", |commit| commit.session.events = 3),
        ("rounds too low", |commit| commit.session.rounds = 0),
        ("hash of something else", |commit| commit.written[0].content = "2".into()),
        ("not a hash", |commit| commit.written[0].variable.hash = "../../x".into()),
        ("written twice", |commit| commit.written.push(commit.written[0].clone())),
        ("written and removed", |commit| commit.removed.push("x".into())),
        ("number too large", |commit| commit.written[0].variable.round = u64::MAX),
    ];
    for (name, damage) in broken {
        let mut commit = sound.clone();
        damage(&mut commit);
        let refused = store.commit_round(&commit).await;
        assert!(matches!(refused, Err(StoreError::Failed(_) | StoreError::Stale(_))), "{name}: {refused:?}");
        assert_eq!(everything(place, "s").await, before, "{name}");
        assert_eq!(place.contents_stored().await, 0, "{name}");
    }
    // These two are found out only after their segments and events were written.
    let mut unopened = RoundCommit { written: vec![written("x", 2, "1")], ..sound.clone() };
    (unopened.round.number, unopened.session.rounds) = (2, 2);
    let refused = store.commit_round(&unopened).await;
    assert!(matches!(refused, Err(StoreError::Failed(_))), "{refused:?}");
    assert_eq!((everything(place, "s").await, place.contents_stored().await), (before, 0));

    store.commit_round(&sound).await.unwrap();
    let after = everything(place, "s").await;
    let again = RoundCommit {
        session: SessionRecord { segments: 3, events: 3, title: "again".into(), ..sound.session.clone() },
        written: vec![written("x", 1, "2"), written("new", 1, "3")],
        segments: vec![segment(3)],
        events: vec![event("s", 3)],
        ..sound
    };
    let refused = store.commit_round(&again).await;
    assert!(matches!(&refused, Err(StoreError::AlreadyExists(name)) if name == "round 1"), "{refused:?}");
    assert_eq!((everything(place, "s").await, place.contents_stored().await), (after, 1));
}

pub async fn a_write_from_an_old_state_is_stale(place: &impl Place) {
    let (first, begun) = begun(place).await;
    let second = place.open().await;
    let ahead = SessionRecord { segments: 2, events: 2, ..begun.clone() };
    second.append(&ahead, &[segment(2)], &[event("s", 2)]).await.unwrap();
    let before = everything(place, "s").await;
    let stale = [
        first.append(&SessionRecord { segments: 2, events: 1, ..begun.clone() }, &[segment(2)], &[]).await,
        first.append(&SessionRecord { segments: 1, events: 2, ..begun.clone() }, &[], &[event("s", 2)]).await,
        first.append(&begun, &[], &[]).await,
        first.append(&SessionRecord { events: 1, ..ahead.clone() }, &[], &[]).await,
        first.append(&ahead, &[], &[event("s", 2)]).await,
        first.append(&SessionRecord { segments: 1, ..ahead.clone() }, &[], &[]).await,
        first.append(&ahead, &[segment(2)], &[]).await,
        first.append(&SessionRecord { rounds: 0, ..ahead }, &[], &[]).await,
        first.commit_round(&commit(&begun, 1)).await,
    ];
    for (number, write) in stale.into_iter().enumerate() {
        assert!(matches!(&write, Err(StoreError::Stale(id)) if id == "s"), "write {number}: {write:?}");
    }
    assert_eq!(everything(place, "s").await, before);
}

pub async fn variables_are_those_of_the_last_round_that_changed_them(place: &impl Place) {
    let (store, begun) = begun(place).await;
    type Written = &'static [(&'static str, &'static str)];
    let rounds: [(Written, &[&str]); 4] = [
        (&[("a", "1"), ("b", "1"), ("c", "1")], &[]),
        (&[("a", "2")], &["b"]),
        (&[("b", "3")], &["c", "never_there"]),
        (&[("a", "1")], &["b"]),
    ];
    for (number, (changed, removed)) in (1..).zip(rounds) {
        if number > 1 {
            store.open_round("s", &round(number)).await.unwrap();
        }
        let commit = RoundCommit {
            written: changed.iter().map(|(name, content)| written(name, number, content)).collect(),
            removed: removed.iter().map(|&name| name.into()).collect(),
            ..commit(&begun, number)
        };
        store.commit_round(&commit).await.unwrap();
        let expected = match number {
            1 => vec![written("a", 1, "1"), written("b", 1, "1"), written("c", 1, "1")],
            2 => vec![written("a", 2, "2"), written("c", 1, "1")],
            3 => vec![written("a", 2, "2"), written("b", 3, "3")],
            _ => vec![written("a", 4, "1")],
        };
        assert_eq!(everything(place, "s").await.contents, expected, "after round {number}");
    }
    let store = place.open().await;
    let mut history = vec![];
    for round in [0, 1, 2, 3, 4, 9, u64::MAX] {
        let variables = store.variables_at("s", round).await.unwrap();
        let names: Vec<String> = variables.iter().map(|one| format!("{}{}", one.name, one.round)).collect();
        history.push(names.join(" "));
    }
    assert_eq!(history, ["", "a1 b1 c1", "a2 c1", "a2 b3", "a4", "a4", "a4"]);
    assert_eq!(store.variables_at("nobody", 1).await.unwrap(), []);
    let asked = ["c", "a", "nothing", "a"].map(String::from);
    assert_eq!(place.open().await.contents("s", &asked).await.unwrap(), [written("a", 4, "1"), written("a", 4, "1")]);
}

pub async fn equal_contents_are_stored_once_and_go_with_their_last_session(place: &impl Place) {
    let store = place.open().await;
    for id in ["s", "t"] {
        store.create_session(&session(id)).await.unwrap();
        store.open_round(id, &round(1)).await.unwrap();
        let own = format!("only {id}");
        let commit = RoundCommit {
            written: vec![written("x", 1, "same"), written("y", 1, "same"), written("z", 1, &own)],
            ..commit(&session(id), 1)
        };
        store.commit_round(&commit).await.unwrap();
    }
    assert_eq!(place.contents_stored().await, if place.shares_contents() { 3 } else { 4 });
    let other = everything(place, "t").await;
    store.delete_session("s").await.unwrap();
    assert_eq!((place.contents_stored().await, everything(place, "t").await), (2, other));
    store.delete_session("t").await.unwrap();
    assert_eq!((place.contents_stored().await, everything(place, "t").await.session), (0, None));
    store.create_session(&session("s")).await.unwrap();
    let fresh = everything(place, "s").await;
    assert_eq!((fresh.session, fresh.rounds, fresh.segments), (Some(session("s")), vec![], vec![]));
}

pub async fn a_variable_of_eight_mebibytes_comes_back(place: &impl Place) {
    let (store, begun) = begun(place).await;
    // Neither constant nor random: what compresses a little.
    let mut state = 7_u32;
    let content: String = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'a' + u8::try_from(state >> 28).unwrap())
    })
    .take(8 * 1024 * 1024)
    .collect();
    let commit = RoundCommit { written: vec![written("big", 1, &content)], ..commit(&begun, 1) };
    store.commit_round(&commit).await.unwrap();
    let read = place.open().await.contents("s", &["big".into()]).await.unwrap();
    assert!(read == commit.written, "8 MiB differ");
}

pub async fn ten_thousand_rounds_are_listed_in_order(place: &impl Place) {
    let store = place.open().await;
    store.create_session(&session("s")).await.unwrap();
    for number in 1..=10_000 {
        store.open_round("s", &round(number)).await.unwrap();
    }
    let store = place.open().await;
    let expected: Vec<_> = (1..=10_000).map(round).collect();
    assert!(store.rounds("s", 0).await.unwrap() == expected);
    assert_eq!(store.rounds("s", 9_998).await.unwrap(), expected[9_998..]);
    assert_eq!(store.session("s").await.unwrap(), Some(SessionRecord { rounds: 10_000, ..session("s") }));
}

pub async fn writers_on_two_handles_lose_nothing(place: &impl Place) {
    let handles = [place.open().await, place.open().await];
    let mut tasks = tokio::task::JoinSet::new();
    for (number, store) in handles.into_iter().enumerate() {
        for writer in 0..4 {
            let (store, id) = (Arc::clone(&store), format!("{number}-{writer}"));
            tasks.spawn(async move {
                let mut record = session(&id);
                store.create_session(&record).await.unwrap();
                store.open_round(&id, &round(1)).await.unwrap();
                record.rounds = 1;
                for seq in 1..=25 {
                    let key = format!("{id}-{seq}");
                    store.request_call(&id, 1, &call(&key, 0)).await.unwrap();
                    (record.segments, record.events) = (seq, seq);
                    store.append(&record, &[segment(seq)], &[event(&id, seq)]).await.unwrap();
                    store.finish_call(&id, 1, &done(&key, 0)).await.unwrap();
                }
                store.commit_round(&RoundCommit { written: vec![written("x", 1, &id)], ..commit(&record, 1) }).await
            });
        }
    }
    while let Some(finished) = tasks.join_next().await {
        finished.unwrap().unwrap();
    }
    for (number, writer) in [0, 1].into_iter().flat_map(|number| (0..4).map(move |writer| (number, writer))) {
        let id = format!("{number}-{writer}");
        let expected = Everything {
            session: Some(commit(&SessionRecord { segments: 25, events: 25, ..session(&id) }, 1).session),
            segments: (1..=25).map(segment).collect(),
            events: (1..=25).map(|seq| event(&id, seq)).collect(),
            rounds: vec![ended(1)],
            calls: (1..=25).map(|seq| done(&format!("{id}-{seq}"), 0)).collect(),
            variables: vec![written("x", 1, &id).variable],
            contents: vec![written("x", 1, &id)],
        };
        assert_eq!(everything(place, &id).await, expected);
    }
}

pub async fn one_refused_write_leaves_those_beside_it_alone(place: &impl Place) {
    let (store, _) = begun(place).await;
    let keys: Vec<String> = (0..40).map(|number| format!("key {}", number / 2)).collect();
    let records: Vec<_> = keys.iter().map(|key| call(key, 0)).collect();
    let requests = records.iter().map(|record| store.request_call("s", 1, record));
    let answers = futures_util::future::join_all(requests).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 20, "{answers:?}");
    assert_eq!(place.open().await.calls("s", 1).await.unwrap().len(), 21);
}

pub async fn every_kind_of_segment_comes_back(place: &impl Place) {
    use SegmentKind::{
        Card, Code, Context, Evaluation, Event, Experience, Knowledge, Memory, NextGoal, Output, Plan, Reply, Round,
        Skill, Thought, User,
    };
    let kinds = [
        User, Context, Thought, Plan, Code, Output, Evaluation, NextGoal, Round, Reply, Card, Event, Memory, Knowledge,
        Experience, Skill,
    ];
    let segments: Vec<Segment> = (1..).zip(kinds).map(|(id, kind)| Segment { kind, ..segment(id) }).collect();
    let store = place.open().await;
    store.create_session(&session("s")).await.unwrap();
    store.append(&SessionRecord { segments: 16, ..session("s") }, &segments, &[]).await.unwrap();
    let store = place.open().await;
    assert_eq!(store.segments("s", 0, u32::MAX).await.unwrap(), segments);
    for (after, limit) in [(0, 0), (0, 1), (15, 1), (15, 2), (16, 1), (7, 5), (u64::MAX, 1), (u64::MAX, u32::MAX)] {
        let expected: Vec<Segment> =
            segments.iter().filter(|segment| segment.id > after).take(limit as usize).cloned().collect();
        assert_eq!(store.segments("s", after, limit).await.unwrap(), expected, "{after} {limit}");
    }
}

pub async fn every_kind_of_event_comes_back(place: &impl Place) {
    let events: Vec<_> = (1..)
        .zip(super::examples::event_kinds())
        .map(|(seq, kind)| fimble::event::Event { kind, ..event("s", seq) })
        .collect();
    let store = place.open().await;
    store.create_session(&session("s")).await.unwrap();
    let count = events.len() as u64;
    store.append(&SessionRecord { events: count, ..session("s") }, &[], &events).await.unwrap();
    assert_eq!(place.open().await.events("s", 0, u32::MAX).await.unwrap(), events);
}
