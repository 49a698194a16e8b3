//! Forks, and the way back: what each takes over of a conversation.

use fimble::record::{Outcome, Round, SessionStatus};
use fimble::segment::SegmentKind;
use fimble::session::{BranchError, Session};
use fimble::store::StoreError;

use super::{Place, begin, finished, notice, row, run, same, value, variables};

/// One turn: a message, a program, what it printed, and a reply.
async fn turn(session: &mut Session, message: &str, written: &[(&str, &str)], removed: &[&str]) {
    session.push(SegmentKind::User, message);
    session.push(SegmentKind::Code, "pass");
    session.emitter().emit(notice(message));
    session.save().await.unwrap();
    let round = begin(session).await;
    session.push(SegmentKind::Output, format!("output of {}", round.number));
    session.push(SegmentKind::Reply, format!("reply of {}", round.number));
    let written = written.iter().map(|(name, content)| value(name, content, round.number)).collect();
    let removed = removed.iter().map(|&name| name.into()).collect();
    session.commit_round(finished(round), written, removed).await.unwrap();
}

async fn three_turns(place: &Place) -> Session {
    let mut session = place.create().await;
    turn(&mut session, "one", &[("a", "1"), ("b", "1")], &[]).await;
    turn(&mut session, "two", &[("a", "2"), ("c", "2")], &["b"]).await;
    turn(&mut session, "three", &[("c", "3")], &["a"]).await;
    session
}

fn last_words(session: &Session) -> Option<&str> {
    session.segments().last().map(|segment| segment.content.as_str())
}

#[tokio::test]
async fn a_fork_is_the_session_as_it_was_and_goes_its_own_way() {
    let place = Place::new();
    let mut session = three_turns(&place).await;
    session.set_turn(Some(serde_json::json!({"under": "way"})));
    session.set_status(SessionStatus::Running);
    session.save().await.unwrap();
    let record = place.reopen(&session).await.fork(Some(2)).await.unwrap();
    let (root, mark) = record.id.split_once('.').unwrap();
    assert_eq!((root, mark.len()), (session.record().id.as_str(), 8));
    assert_eq!(
        (record.title.as_str(), record.status, &record.turn),
        ("restart what failed", SessionStatus::Idle, &None)
    );
    assert_eq!((record.rounds, record.segments, record.events), (2, 8, 0));

    let mut fork = Session::open(place.store(), &record.id, "local", "ada").await.unwrap();
    assert_eq!(fork.segments(), &session.segments()[..8]);
    assert_eq!(last_words(&fork), Some("reply of 2"));
    assert_eq!(variables(&place, &fork).await, [row("a", 2, "2"), row("c", 2, "2")]);
    assert_eq!(fork.rounds(0).await.unwrap(), session.rounds(0).await.unwrap()[..2]);
    turn(&mut fork, "other", &[("a", "own")], &["c"]).await;
    assert_eq!(fork.events().await.unwrap().iter().map(|event| event.seq).collect::<Vec<_>>(), [1]);
    same(&fork, &Session::open(place.store(), &record.id, "local", "ada").await.unwrap());
    same(&session, &place.reopen(&session).await);

    // Without a number it is after the last round; a fork can be forked.
    let latest = session.fork(None).await.unwrap();
    assert_eq!((latest.rounds, latest.segments), (3, 12));
    let again = fork.fork(Some(3)).await.unwrap();
    assert!(again.id.starts_with(root) && again.id.len() == record.id.len(), "{}", again.id);
    let nothing = session.fork(Some(0)).await.unwrap();
    assert_eq!((nothing.rounds, nothing.segments), (0, 0));
    assert!(Session::open(place.store(), &record.id, "local", "eve").await.is_err());
}

#[tokio::test]
async fn a_session_goes_back_and_shows_what_was_between() {
    let place = Place::new();
    let mut session = three_turns(&place).await;
    session.set_turn(Some(serde_json::json!({"under": "way"})));
    let mut other = place.reopen(&session).await;
    let round = session.rewind(1).await.unwrap();
    assert_eq!((round.number, round.goal.as_str(), &round.parents), (4, "back to round 1", &vec![1]));
    assert_eq!((&round.written, &round.removed), (&vec!["a".to_string(), "b".to_string()], &vec!["c".to_string()]));
    assert_eq!((round.hole.as_str(), &round.outcome), ("", &Some(Outcome::Finished { value: None })));
    same(&session, &place.reopen(&session).await);
    assert_eq!((session.record().status, &session.record().turn), (SessionStatus::Idle, &None));
    assert_eq!((session.segments().len(), last_words(&session)), (4, Some("reply of 1")));
    assert_eq!(variables(&place, &session).await, [row("a", 4, "1"), row("b", 4, "1")]);
    let then: Vec<_> = session.variables_at(2).await.unwrap().into_iter().map(|v| (v.name, v.round)).collect();
    assert_eq!(then, [("a".to_string(), 2), ("c".to_string(), 2)]);
    assert_eq!(session.rounds(0).await.unwrap().len(), 4);

    // Who had it open is told, whatever is tried.
    other.push(SegmentKind::User, "meanwhile");
    assert!(matches!(other.save().await, Err(StoreError::Stale(_))));
    let refused = place.reopen(&session).await.rewind(9).await.map(drop);
    assert!(matches!(refused, Err(BranchError::NoRound { round: 9, last: 4 })), "{refused:?}");

    // It goes on, and what was undone is no place to go to.
    turn(&mut session, "again", &[("a", "5")], &[]).await;
    assert_eq!(session.rounds(4).await.unwrap()[0].number, 5);
    for at in [2, 3] {
        let refused = session.fork(Some(at)).await;
        assert!(matches!(refused, Err(BranchError::Undone { round, by: 4 }) if round == at), "{refused:?}");
    }
    let fork = session.fork(Some(4)).await.unwrap();
    assert_eq!((fork.rounds, fork.segments), (4, 4));
    session.rewind(4).await.unwrap();
    assert_eq!(variables(&place, &session).await, [row("a", 6, "1"), row("b", 4, "1")]);
    let nothing = session.rewind(0).await.unwrap();
    assert_eq!((nothing.removed, nothing.parents), (vec!["a".to_string(), "b".to_string()], vec![]));
    assert_eq!((session.segments().len(), session.variables().len()), (0, 0));
    same(&session, &place.reopen(&session).await);
    // An open handle that was there before cannot open a round either.
    assert!(matches!(other.begin_round("goal", vec![], "", "pass", "").await, Err(StoreError::AlreadyExists(_))));
}

#[tokio::test]
async fn a_round_that_waits_is_no_place_to_go_to_and_is_left_behind() {
    let place = Place::new();
    let mut session = place.create().await;
    run(&mut session, &[("a", "1")], &[]).await;
    let round = begin(&mut session).await;
    let waiting = Round { outcome: Some(Outcome::Suspended { on: "question".into(), call: "k".into() }), ..round };
    session.commit_round(waiting, vec![], vec![]).await.unwrap();
    assert!(matches!(session.fork(Some(2)).await, Err(BranchError::Open(2))));
    assert_eq!(session.fork(None).await.unwrap().rounds, 1);
    assert!(matches!(session.rewind(2).await, Err(BranchError::Open(2))));
    session.rewind(1).await.unwrap();
    assert!(session.open_round().is_none());
    let mut session = place.reopen(&session).await;
    assert!(session.open_round().is_none());
    run(&mut session, &[("b", "4")], &[]).await;
    assert_eq!(variables(&place, &session).await, [row("a", 1, "1"), row("b", 4, "4")]);
}

#[tokio::test]
async fn forks_and_the_way_back_reach_what_was_not_read() {
    let place = Place::new();
    let mut session = place.create().await;
    for number in 1..=40 {
        turn(&mut session, "go", &[("a", &number.to_string())], &[]).await;
    }
    let mut again = place.reopen(&session).await;
    assert_eq!(again.earlier_segments(), 96);
    let fork = again.fork(Some(2)).await.unwrap();
    assert_eq!(fork.segments, 8);
    again.push(SegmentKind::User, "pending");
    assert_eq!(again.fork(Some(40)).await.unwrap().segments, 160);
    again.rewind(3).await.unwrap();
    assert_eq!((again.segments().len(), last_words(&again)), (12, Some("reply of 3")));
    same(&again, &place.reopen(&session).await);
}
