//! What calls of a turn come to: approved, refused by the toolkit, broken, traced; and what the checker had said of them.

use super::*;

#[tokio::test]
async fn a_write_is_made_only_if_somebody_approves() {
    let switch =
        format!("try:\n    await light_toolkit.switch(on=True)\nexcept Exception:\n    pass\n{}", send("'on'"));
    let mut refused = World::new([switch.clone()]).await;
    let verdict = refused.say_to("Light on", Arc::new(Refusing)).await;
    assert!(matches!(&verdict, Verdict::Denied { account } if account.contains("light_toolkit.switch")), "{verdict:?}");
    assert!(refused.light.switched.lock().unwrap().is_empty());
    assert_eq!(refused.contents(SegmentKind::Reply).len(), 1, "a denial cannot be swallowed");

    let mut attended = World::new([switch]).await;
    assert_eq!(attended.say_to("Light on", Arc::new(Agreeable)).await, Verdict::Replied);
    assert_eq!(*attended.light.switched.lock().unwrap(), [true]);
}

#[tokio::test]
async fn an_approval_that_nobody_gives_suspends_the_program_until_somebody_does() {
    let hole = format!("print('before')\nawait light_toolkit.switch(on=True)\nprint('after')\n{}", send("'on'"));
    let mut world = World::new([hole]).await;
    let verdict = world.say("Light on").await;
    let question = "May this write operation be called? light_toolkit.switch({\"on\":true})".to_owned();
    assert_eq!(verdict, Verdict::Waiting { on: "approval".to_owned(), question });
    assert_eq!(world.session.record().status, SessionStatus::AwaitingApproval);
    assert!(world.light.switched.lock().unwrap().is_empty());

    world.reopen().await;
    assert_eq!(world.resume(Arc::new(Agreeable)).await, Some(Verdict::Replied));
    assert_eq!(*world.light.switched.lock().unwrap(), [true]);
    assert_eq!(world.contents(SegmentKind::Reply), ["on"]);
    assert_eq!(world.contents(SegmentKind::Output), ["before\nafter"]);
    assert_eq!(world.session.record().rounds, 1, "the same round went on");
    assert_eq!(world.resume(Arc::new(Agreeable)).await, None, "nothing is left to go on with");
    let prints: Vec<String> = world.session.events().await.unwrap().into_iter().filter_map(printed).collect();
    assert_eq!(prints.concat(), "before\nafter\n", "nothing is told twice");
}

#[tokio::test]
async fn a_toolkits_refusal_is_an_error_like_any_other_and_a_round_with_one_goes_on() {
    let hole = format!(
        "import asyncio\ntry:\n    await light_toolkit.forbidden()\nexcept Exception as error:\n    \
         print(type(error).__name__, isinstance(error, PermissionError), error)\n\
         both = await asyncio.gather(light_toolkit.forbidden(), light_toolkit.is_on(), return_exceptions=True)\n\
         await light_toolkit.switch(on=True)\n{}",
        send("f'{type(both[0]).__name__} {both[1]}'")
    );
    let mut world = World::new([hole]).await;
    assert!(matches!(world.say("Light on").await, Verdict::Waiting { .. }));
    world.reopen().await;
    fimble::gate::answer(&world.session, "yes", &world.agent.parts.gate).await.unwrap();
    world.reopen().await;
    assert_eq!(world.resume(Arc::new(Unattended)).await, Some(Verdict::Replied));
    assert_eq!(world.contents(SegmentKind::Reply), ["Forbidden False"]);
    assert_eq!(world.contents(SegmentKind::Output), ["Forbidden True the house answered 403"]);
    assert_eq!(*world.light.switched.lock().unwrap(), [true]);
}

#[tokio::test]
async fn the_calls_of_a_turn_are_traced_as_its_run_also_where_it_goes_on() {
    let first = "first = await light_toolkit.trace()\nawait light_toolkit.switch(on=True)\n\
                 print(first == await light_toolkit.trace())\n";
    let second = send("f'{first} {await light_toolkit.trace()}'");
    let mut world = World::new([first.to_owned(), second, send("await light_toolkit.trace()")]).await;
    assert!(matches!(world.say("Light on").await, Verdict::Waiting { .. }));
    world.reopen().await;
    assert_eq!(world.resume(Arc::new(Agreeable)).await, Some(Verdict::Replied));
    assert_eq!(world.contents(SegmentKind::Output)[0], "True");
    assert_eq!(world.say("Again").await, Verdict::Replied);
    let begun = |event: Event| match event.kind {
        EventKind::RunStarted { run_id, .. } => Some(run_id),
        _ => None,
    };
    let runs: Vec<String> = world.session.events().await.unwrap().into_iter().filter_map(begun).collect();
    let [turn, _, next] = &runs[..] else { panic!("{runs:?}") };
    assert_eq!(world.contents(SegmentKind::Reply), [format!("{turn} {turn}"), next.clone()]);
}

#[tokio::test]
async fn what_the_checker_doubted_is_told_once_the_program_raised() {
    let wrong = "services = ['nginx']\nif services:\n    print(servces)\n";
    let right = format!("if False:\n    print(servces)\n{}", send("'fixed'"));
    let mut world = World::new([wrong.to_owned(), right]).await;
    assert_eq!(world.say("List").await, Verdict::Replied);
    let doubt = "(seen before it ran: line 3: nothing defines `servces`";
    let outputs = world.contents(SegmentKind::Output);
    assert!(outputs[0].contains(doubt), "{outputs:?}");
    assert!(world.last_prompt().contains(doubt), "{}", world.last_prompt());
    assert_eq!(outputs[1], "(nothing was printed)");
}

#[tokio::test]
async fn a_toolkit_that_panics_costs_its_call_alone() {
    let hole = format!(
        "try:\n    await light_toolkit.panics()\nexcept Failed as error:\n    print(error)\n{}",
        send("str(await light_toolkit.is_on())")
    );
    let mut world = World::new([hole]).await;
    assert_eq!(world.say("Look").await, Verdict::Replied);
    assert_eq!(world.contents(SegmentKind::Reply), ["False"]);
    let sentence = "light_toolkit.panics panicked, which is a defect of the toolkit (hint: do it another way)";
    assert_eq!(world.contents(SegmentKind::Output), [sentence]);
}
