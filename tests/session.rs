//! Turns over a session in a SQLite file, with a restart wherever one could be.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

#[path = "session/branch.rs"]
mod branch;
#[path = "session/carry.rs"]
mod carry;

use std::collections::BTreeSet;
use std::sync::Arc;

use fimble::event::{Custom, Event, EventKind};
use fimble::interpreter::Captured;
use fimble::record::{
    CallRecord, CallStatus, Outcome, Readings, Round, SessionRecord, SessionStatus, Site, VariableKind, WrittenVariable,
};
use fimble::segment::{Segment, SegmentKind};
use fimble::session::{Config, Session, written_variable};
use fimble::store::sqlite::Sqlite;
use fimble::store::{Store, StoreError};
use fimble_toolkit::Risk;
use jiff::Timestamp;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A store as another process opens it.
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(Sqlite::open(self.folder.path().join("fimble.db")).unwrap())
    }

    async fn create(&self) -> Session {
        Session::create(self.store(), "local", "ada", "restart what failed").await.unwrap()
    }

    async fn reopen(&self, session: &Session) -> Session {
        Session::open(self.store(), &session.record().id, "local", "ada").await.unwrap()
    }
}

fn captured(name: &str, kind: VariableKind, content: &str, references: &[&str]) -> Captured {
    Captured {
        name: name.into(),
        kind,
        content: content.into(),
        type_name: "object".into(),
        preview: content.lines().next().unwrap_or_default().into(),
        line: 1,
        references: references.iter().map(|&name| name.into()).collect(),
    }
}

fn value(name: &str, content: &str, round: u64) -> WrittenVariable {
    written_variable(captured(name, VariableKind::Value, content, &[]), round)
}

fn notice(text: &str) -> EventKind {
    EventKind::Custom(Custom::Print { text: text.into() })
}

async fn begin(session: &mut Session) -> Round {
    session.begin_round("goal", vec![], "try:\n", "pass", "except").await.unwrap()
}

fn finished(round: Round) -> Round {
    Round { outcome: Some(Outcome::Finished { value: None }), ended_at: Some(Timestamp::now()), ..round }
}

/// A round that writes and removes variables; returns what was kept out.
async fn run(session: &mut Session, written: &[(&str, &str)], removed: &[&str]) -> Vec<(String, String)> {
    let round = begin(session).await;
    let written = written.iter().map(|(name, content)| value(name, content, round.number)).collect();
    let removed = removed.iter().map(|&name| name.into()).collect();
    session.commit_round(finished(round), written, removed).await.unwrap()
}

/// Names, rounds and contents of a session's variables, as its store has them.
async fn variables(place: &Place, session: &Session) -> Vec<(String, u64, String)> {
    let names: Vec<String> = session.variables().keys().cloned().collect();
    let contents = place.store().contents(&session.record().id, &names).await.unwrap();
    assert_eq!(
        session.variables().values().cloned().collect::<Vec<_>>(),
        contents.iter().map(|written| written.variable.clone()).collect::<Vec<_>>()
    );
    contents.into_iter().map(|written| (written.variable.name, written.variable.round, written.content)).collect()
}

fn row(name: &str, round: u64, content: &str) -> (String, u64, String) {
    (name.into(), round, content.into())
}

/// All that two handles on a session must agree on.
fn same(one: &Session, other: &Session) {
    assert_eq!(one.record(), other.record());
    assert_eq!(one.segments(), other.segments());
    assert_eq!(one.variables(), other.variables());
}

#[tokio::test]
async fn a_turn_is_there_after_a_restart() {
    let place = Place::new();
    let mut session = place.create().await;
    let mut live = session.subscribe();
    session.set_status(SessionStatus::Running);
    session.push(SegmentKind::User, "restart what failed");
    session.emitter().emit(EventKind::StepStarted { step_name: "perceive".into() });
    session.save().await.unwrap();

    let mut session = place.reopen(&session).await;
    assert_eq!(session.record().status, SessionStatus::Running);
    session.subscribe_with({
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
        live.close();
        live = receiver;
        sender
    });
    let round = begin(&mut session).await;
    session.push(SegmentKind::Code, "pass");
    session.emitter().emit(notice("in the round"));
    let (round, journal) = (finished(round), session.journal(1));
    let requested = CallRecord {
        key: journal.key(Site::default(), 0, "git_toolkit", "log", &serde_json::Map::new()),
        number: 1,
        site: Site::default(),
        ordinal: 0,
        toolkit: "git_toolkit".into(),
        operation: "log".into(),
        arguments: serde_json::Map::new(),
        risk: Risk::Read,
        status: CallStatus::Requested,
        requested_at: Timestamp::now(),
        done_at: None,
        readings: Readings::default(),
    };
    journal.request(&requested).await.unwrap();
    assert!(matches!(journal.request(&requested).await, Err(StoreError::AlreadyExists(_))));
    let done = CallRecord { status: CallStatus::Done { result: 0.1.into() }, ..requested };
    journal.finish(&done).await.unwrap();
    let kept_out = session.commit_round(round.clone(), vec![value("x", "1", 1)], vec![]).await.unwrap();
    session.push_pinned(SegmentKind::Reply, "done");
    session.set_title("a better title");
    session.set_status(SessionStatus::Idle);
    session.emitter().emit(notice("after the round"));
    session.save().await.unwrap();

    assert_eq!(kept_out, []);
    let again = place.reopen(&session).await;
    same(&session, &again);
    let segments: Vec<_> = again.segments().iter().collect();
    let seen: Vec<_> = segments.iter().map(|s| (s.id, s.round, s.kind, s.content.as_str(), s.pinned)).collect();
    assert_eq!(
        seen,
        [
            (1, 0, SegmentKind::User, "restart what failed", false),
            (2, 1, SegmentKind::Code, "pass", false),
            (3, 1, SegmentKind::Reply, "done", true),
        ]
    );
    let record = again.record();
    assert_eq!((record.rounds, record.segments, record.events), (1, 3, 3));
    assert_eq!((record.title.as_str(), record.status), ("a better title", SessionStatus::Idle));
    assert_eq!(again.rounds(0).await.unwrap(), [Round { written: vec!["x".into()], ..round }]);
    assert_eq!(again.calls(1).await.unwrap(), [done]);
    assert_eq!(variables(&place, &again).await, [row("x", 1, "1")]);
    let stored = place.store().events(&record.id, 0, 10).await.unwrap();
    let numbers: Vec<_> = stored.iter().map(|event| (event.seq, event.round)).collect();
    assert_eq!(numbers, [(1, 0), (2, 1), (3, 0)]);
    assert_eq!([live.recv().await.unwrap(), live.recv().await.unwrap()], stored[1..]);
}

#[tokio::test]
async fn what_was_not_saved_is_lost_with_the_process_and_nothing_else() {
    let place = Place::new();
    let mut session = place.create().await;
    session.push(SegmentKind::User, "kept");
    session.emitter().emit(notice("kept"));
    session.save().await.unwrap();
    let kept = place.reopen(&session).await;
    session.push(SegmentKind::User, "lost");
    session.emitter().emit(notice("lost"));
    session.set_title("lost");
    same(&kept, &place.reopen(&session).await);

    let round = begin(&mut session).await;
    let mut after = place.reopen(&session).await;
    assert_eq!(*after.record(), SessionRecord { rounds: 1, ..kept.record().clone() });
    assert_eq!(after.rounds(0).await.unwrap(), [round]);
    // The one who goes on uses the numbers again; the one who was slow is refused.
    run(&mut after, &[("x", "1")], &[]).await;
    assert_eq!(after.push(SegmentKind::User, "next").id, 2);
    after.save().await.unwrap();
    assert!(matches!(session.save().await, Err(StoreError::Stale(_))));
    same(&after, &place.reopen(&after).await);
}

#[tokio::test]
async fn a_save_with_nothing_pending_writes_nothing() {
    let place = Place::new();
    let mut session = place.create().await;
    session.set_status(SessionStatus::Idle);
    session.set_title("restart what failed");
    let before = session.record().clone();
    session.save().await.unwrap();
    assert_eq!(*place.reopen(&session).await.record(), before);
    session.set_status(SessionStatus::Finished);
    session.save().await.unwrap();
    assert_eq!(place.reopen(&session).await.record().status, SessionStatus::Finished);
}

#[tokio::test]
async fn variables_follow_the_rounds_across_restarts() {
    let place = Place::new();
    let mut session = place.create().await;
    run(&mut session, &[("a", "1"), ("b", "1"), ("c", "1")], &[]).await;
    let mut session = place.reopen(&session).await;
    run(&mut session, &[("a", "2")], &["b", "never_there"]).await;
    let mut session = place.reopen(&session).await;
    run(&mut session, &[("b", "3"), ("c", "3")], &["c"]).await;
    let expected = [row("a", 2, "2"), row("b", 3, "3"), row("c", 3, "3")];
    assert_eq!(variables(&place, &session).await, expected);
    let session = place.reopen(&session).await;
    assert_eq!(variables(&place, &session).await, expected);
    let changes: Vec<_> = session
        .rounds(0)
        .await
        .unwrap()
        .into_iter()
        .map(|round| (round.number, round.written, round.removed))
        .collect();
    let names = |names: &[&str]| names.iter().map(|&name| name.to_string()).collect::<Vec<_>>();
    assert_eq!(
        changes,
        [
            (1, names(&["a", "b", "c"]), vec![]),
            (2, names(&["a"]), names(&["b", "never_there"])),
            (3, names(&["b", "c"]), vec![]),
        ]
    );
}

#[tokio::test]
async fn a_variable_over_a_limit_is_kept_out_and_named() {
    let place = Place::new();
    let config = Config { variable_kib: 2, variables_kib: 5, ..Config::default() };
    let mut session = place.create().await.with_config(config);
    let [one, two, three] = [1, 2, 3].map(|kib| "x".repeat(kib * 1024));
    assert_eq!(run(&mut session, &[("a", &two), ("b", &one), ("big", "small")], &[]).await, []);
    let kept_out = run(&mut session, &[("big", &three), ("d", &two), ("e", &one)], &["b"]).await;
    assert_eq!(kept_out, [("big".to_string(), "3 KiB is over the limit of a variable: 2 KiB".to_string())]);
    // The old `big` is not what the program last saw.
    assert_eq!(variables(&place, &session).await, [row("a", 1, &two), row("d", 2, &two), row("e", 2, &one)]);
    let kept_out = run(&mut session, &[("f", "x"), ("a", &one), ("g", &one)], &[]).await;
    let reason =
        "with 1 KiB more the variables are over the limit of a session: 5 KiB; delete what is no longer needed";
    assert_eq!(kept_out, [("g".to_string(), reason.to_string())]);
    let session = place.reopen(&session).await;
    let expected = [row("a", 3, &one), row("d", 2, &two), row("e", 2, &one), row("f", 3, "x")];
    assert_eq!(variables(&place, &session).await, expected);
    assert_eq!(session.rounds(1).await.unwrap()[0].removed, ["b", "big"]);
}

#[tokio::test]
async fn the_session_of_somebody_else_does_not_exist() {
    let place = Place::new();
    let id = place.create().await.record().id.clone();
    let mut errors = vec![];
    for (id, tenant, user) in [(id.as_str(), "local", "eve"), (&id, "other", "ada"), ("nothing", "local", "ada")] {
        let opened = Session::open(place.store(), id, tenant, user).await.err().unwrap();
        let deleted = Session::delete(place.store().as_ref(), id, tenant, user).await.unwrap_err();
        errors.extend([opened, deleted].map(|error| error.to_string().replace(id, "ID")));
    }
    assert_eq!(errors, ["there is no session `ID`"; 6]);
    assert!(Session::latest(place.store(), "local", "eve").await.unwrap().is_none());
    Session::delete(place.store().as_ref(), &id, "local", "ada").await.unwrap();
    assert!(Session::latest(place.store(), "local", "ada").await.unwrap().is_none());
}

#[tokio::test]
async fn the_latest_session_is_the_last_one_that_was_spoken_in() {
    let place = Place::new();
    let mut first = place.create().await;
    let mut second = place.create().await;
    assert!(Session::latest(place.store(), "local", "ada").await.unwrap().is_none());
    second.push(SegmentKind::User, "hello");
    second.save().await.unwrap();
    place.create().await;
    let latest = Session::latest(place.store(), "local", "ada").await.unwrap().unwrap();
    assert_eq!(latest.record(), second.record());
    first.push(SegmentKind::User, "again");
    first.save().await.unwrap();
    let latest = Session::latest(place.store(), "local", "ada").await.unwrap().unwrap();
    same(&latest, &first);
}

#[tokio::test]
async fn a_suspended_round_is_committed_again() {
    let place = Place::new();
    let mut session = place.create().await;
    let round = begin(&mut session).await;
    let suspended =
        Round { outcome: Some(Outcome::Suspended { on: "approval".into(), call: "k".into() }), ..round.clone() };
    session.commit_round(suspended.clone(), vec![], vec![]).await.unwrap();
    let mut session = place.reopen(&session).await;
    assert_eq!(session.rounds(0).await.unwrap(), [suspended]);
    session.commit_round(finished(round), vec![value("x", "1", 1)], vec![]).await.unwrap();
    assert_eq!(variables(&place, &place.reopen(&session).await).await, [row("x", 1, "1")]);
}

#[tokio::test]
async fn a_refused_commit_keeps_what_is_pending() {
    let place = Place::new();
    let mut session = place.create().await;
    let round = begin(&mut session).await;
    session.push(SegmentKind::Code, "pass");
    session.emitter().emit(notice("pending"));
    let refused = session.commit_round(round.clone(), vec![value("x", "1", 1)], vec![]).await;
    assert!(matches!(refused, Err(StoreError::Failed(_))), "{refused:?}");
    assert_eq!(session.variables().len(), 0);
    session.commit_round(finished(round), vec![value("x", "1", 1)], vec![]).await.unwrap();
    same(&session, &place.reopen(&session).await);
    assert_eq!((session.record().segments, session.record().events), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_events_are_numbered_shown_and_stored_in_one_order() {
    let place = Place::new();
    let mut session = place.create().await;
    let mut live = session.subscribe();
    drop(session.subscribe());
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..8 {
        let emitter = session.emitter();
        tasks.spawn(async move {
            for number in 0..50 {
                emitter.emit(notice(&format!("{task}:{number}")));
                emitter.emit(EventKind::Custom(Custom::ProgramDelta { text: "passing".into() }));
                tokio::task::yield_now().await;
            }
        });
    }
    // Saves fall between the events.
    while !tasks.is_empty() {
        session.save().await.unwrap();
        tasks.try_join_next();
    }
    session.save().await.unwrap();
    let stored = place.store().events(&session.record().id, 0, u32::MAX).await.unwrap();
    assert_eq!(stored.iter().map(|event| event.seq).collect::<Vec<_>>(), (1..=400).collect::<Vec<u64>>());
    let mut shown: Vec<Event> = vec![];
    while let Ok(event) = live.try_recv() {
        shown.push(event);
    }
    let (transient, lasting): (Vec<_>, Vec<_>) = shown.into_iter().partition(|event| event.kind.is_transient());
    assert_eq!(lasting, stored);
    assert_eq!((transient.len(), transient.iter().all(|event| event.seq == 0)), (400, true));
    for task in 0..8 {
        let own = stored.iter().filter_map(|event| match &event.kind {
            EventKind::Custom(Custom::Print { text }) => text.strip_prefix(&format!("{task}:")),
            _ => None,
        });
        assert!(own.eq((0..50).map(|number| number.to_string())), "task {task}");
    }
}

#[tokio::test]
async fn what_a_program_does_not_name_is_not_carried() {
    let place = Place::new();
    let mut session = place.create().await;
    run(&mut session, &[("a", "1"), ("b", "2")], &[]).await;
    let names = BTreeSet::from(["b".to_string(), "print".to_string()]);
    let carried = place.reopen(&session).await.carried(&names).await.unwrap();
    assert_eq!(carried.iter().map(|carried| (&*carried.name, &*carried.content)).collect::<Vec<_>>(), [("b", "2")]);
    // The other one has changed it meanwhile.
    let stale = place.reopen(&session).await;
    run(&mut session, &[("b", "3")], &[]).await;
    assert!(matches!(stale.carried(&names).await, Err(StoreError::Stale(_))));
    assert_eq!(stale.carried(&BTreeSet::new()).await.unwrap(), []);
}

#[tokio::test]
async fn of_a_long_conversation_the_end_is_read_and_more_when_asked() {
    let place = Place::new();
    let mut session = place.create().await;
    for number in 1..=1_500 {
        session.push(SegmentKind::Reply, number.to_string());
    }
    session.save().await.unwrap();
    let ids = |segments: &[Segment]| segments.iter().map(|segment| segment.id).collect::<Vec<u64>>();

    let mut again = place.reopen(&session).await;
    assert_eq!((again.earlier_segments(), ids(again.segments())), (1_436, (1_437..=1_500).collect()));
    again.push(SegmentKind::Reply, "pending");
    again.reach_back(|segments| segments.len() >= 66).await.unwrap();
    assert_eq!((again.earlier_segments(), again.segments().len()), (924, 577));
    assert_eq!(ids(&again.all_segments().await.unwrap()), (1..=1_501).collect::<Vec<_>>());
    again.save().await.unwrap();
    again.reach_back(|_| false).await.unwrap();
    assert_eq!((again.earlier_segments(), ids(again.segments())), (0, (1..=1_501).collect()));
    again.push(SegmentKind::Reply, "more");
    again.save().await.unwrap();
    let stored = place.store().segments(&session.record().id, 1_499, u32::MAX).await.unwrap();
    let stored: Vec<_> = stored.iter().map(|segment| (segment.id, segment.content.as_str())).collect();
    assert_eq!(stored, [(1_500, "1500"), (1_501, "pending"), (1_502, "more")]);
}

/// Between two runs of a round there are events of no round.
#[tokio::test]
async fn the_events_of_a_round_that_goes_on_are_all_found_whichever_page_they_are_on() {
    let place = Place::new();
    let mut session = place.create().await;
    run(&mut session, &[], &[]).await;
    let mut round = begin(&mut session).await;
    let (prefix, suffix, repairs) = (String::new(), String::new(), Vec::new());
    session.emitter().emit(EventKind::Custom(Custom::Program { prefix, hole: "pass".to_owned(), suffix, repairs }));
    (0..10).for_each(|number| session.emitter().emit(notice(&number.to_string())));
    round.outcome = Some(Outcome::Suspended { on: "sleep".to_owned(), call: "key".to_owned() });
    session.commit_round(round.clone(), vec![], vec![]).await.unwrap();
    session.emitter().emit(EventKind::StepFinished { step_name: "act".to_owned() });
    session.reopen_round().unwrap();
    // So many that a page of a thousand begins with the event in between.
    (10..1_009).for_each(|number| session.emitter().emit(notice(&number.to_string())));
    session.commit_round(round.clone(), vec![], vec![]).await.unwrap();
    let session = place.reopen(&session).await;
    let found = session.events_of_open_round().await.unwrap();
    assert!(matches!(found[0].kind, EventKind::Custom(Custom::Program { .. })), "{:?}", found[0]);
    let number = |event: &Event| match &event.kind {
        EventKind::Custom(Custom::Print { text }) => text.parse().ok(),
        _ => None,
    };
    let told: Vec<u32> = found.iter().filter_map(number).collect();
    assert_eq!(told, (0..1_009).collect::<Vec<u32>>());
}
