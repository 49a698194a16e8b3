//! What is left of a program, written by a person.

use std::sync::Arc;

use fimble::agent::{Edited, Pending, Verdict};
use fimble::gate::Unattended;
use fimble::record::SessionStatus;
use fimble::segment::SegmentKind;
use tokio_util::sync::CancellationToken;

use super::{World, printed, send};

impl World {
    async fn edit(&mut self, hole: &str) -> Option<Edited> {
        let attendant = Arc::new(Unattended);
        self.agent.edit(&mut self.session, hole, attendant, &CancellationToken::new()).await.unwrap()
    }
}

#[tokio::test]
async fn a_person_writes_what_is_left_of_a_program_that_waits() {
    let hole = format!("x = [1]\nprint('before')\n# now\nawait light_toolkit.switch(on=True)\n{}", send("'on'"));
    let mut world = World::new([hole, send("'as I said'")]).await;
    assert!(matches!(world.say("Light on").await, Verdict::Waiting { .. }));
    world.reopen().await;
    let pending = Pending::of(&world.session).await.unwrap().unwrap();
    assert_eq!(pending.done, ["x = [1]", "print('before')"]);
    assert_eq!(pending.rest, format!("# now\nawait light_toolkit.switch(on=True)\n{}", send("'on'")));

    let Some(Edited::Refused(refusal)) = world.edit("await light_toolkit.dim()\n").await else {
        panic!("it cannot run")
    };
    assert!(refusal.to_string().contains("dim"), "{refusal}");
    let again = Pending::of(&world.session).await.unwrap().unwrap();
    assert_eq!((again.done, again.rest), (pending.done, pending.rest), "an edit that cannot run loses nothing");

    let edited = format!("x.append(2)\nlight = await light_toolkit.is_on()\n{}", send("f'{x} {light}'"));
    assert_eq!(world.edit(&edited).await, Some(Edited::Ran(Verdict::Replied)));
    assert_eq!(world.contents(SegmentKind::Reply), ["[1, 2] False"], "what ran before is not run again");
    assert!(world.light.switched.lock().unwrap().is_empty());
    assert_eq!(world.session.record().status, SessionStatus::Idle);
    assert_eq!(world.model.requests().len(), 1, "the model is not asked");
    assert_eq!(world.edit(&edited).await, None, "it ran to its end");
    let prints: Vec<String> = world.session.events().await.unwrap().into_iter().filter_map(printed).collect();
    assert_eq!(prints.concat(), "before\n", "nothing is told twice");
    assert_eq!(world.say("And?").await, Verdict::Replied);
    assert!(world.last_prompt().contains("The user wrote the program below."), "{}", world.last_prompt());
}

#[tokio::test]
async fn a_person_writes_what_is_left_of_a_program_that_failed_and_the_turn_goes_on() {
    let hole = "x = 1\nlight = await light_toolkit.burn()\nprint(x)\n";
    let mut world = World::new([hole.to_owned(), send("f'{x} {light}'")]).await;
    world.agent.config.max_rounds = 1;
    assert!(matches!(world.say("Light?").await, Verdict::GaveUp { .. }));
    let pending = Pending::of(&world.session).await.unwrap().unwrap();
    assert_eq!((pending.done, pending.rest.lines().count()), (vec!["x = 1".to_owned()], 2));
    world.agent.config.max_rounds = 8;
    assert_eq!(world.edit("light = 'off'\nprint(x, light)\n").await, Some(Edited::Ran(Verdict::Replied)));
    assert_eq!(world.contents(SegmentKind::Output).last().unwrap(), "(nothing was printed)");
    assert_eq!(world.contents(SegmentKind::Reply).last().unwrap(), "1 off", "the model went on from there");
}
