//! Hooks in a turn.

use fimble::gate::{Hook, HookConfig};

use super::*;

fn script(script: &str) -> Vec<Hook> {
    vec![Hook { command: ["sh", "-c", script].map(str::to_owned).into(), ..Hook::default() }]
}

async fn world<T: Into<String>>(holes: impl IntoIterator<Item = T>, hooks: HookConfig) -> World {
    let config = fimble::gate::Config { hooks, ..fimble::gate::Config::default() };
    World::with(Scripted::new(holes), config).await
}

#[tokio::test]
async fn a_hook_may_refuse_a_message_and_nothing_of_it_is_left() {
    let hooks = HookConfig {
        user_prompt_submit: script(
            "grep -q 'delete everything' && { echo 'not today' >&2; exit 2; }; echo 'it is Friday'",
        ),
        session_start: script(r#"grep -o '"source":"[a-z]*"'"#),
        ..HookConfig::default()
    };
    let mut world = world([send("'hello'")], hooks).await;
    let cancel = CancellationToken::new();
    let refused = world.agent.turn(&mut world.session, "delete everything", Arc::new(Unattended), &cancel).await;
    assert_eq!(refused.unwrap_err().to_string(), "a hook refused the message: not today");
    assert_eq!(world.contents(SegmentKind::User), [""; 0]);
    assert_eq!(world.say("greet").await, Verdict::Replied);
    assert_eq!(world.contents(SegmentKind::Context), ["it is Friday"]);
    assert!(world.last_prompt().contains("it is Friday"), "{}", world.last_prompt());
}

#[tokio::test]
async fn a_session_starts_once_in_a_process_and_its_hook_is_read_by_the_model() {
    let hooks = HookConfig { session_start: script(r#"grep -o '"source":"[a-z]*"'"#), ..HookConfig::default() };
    let mut world = world([send("'one'"), send("'two'")], hooks).await;
    assert_eq!((world.say("one").await, world.say("two").await), (Verdict::Replied, Verdict::Replied));
    assert_eq!(world.contents(SegmentKind::Context), ["\"source\":\"startup\""]);
}

#[tokio::test]
async fn a_refused_call_ends_the_program_and_the_model_reads_why() {
    let refuse = || HookConfig {
        pre_tool_use: script(r#"grep -q light_toolkit.switch && { echo 'use is_on' >&2; exit 2; }; exit 0"#),
        ..HookConfig::default()
    };
    let more = send("'went on'") + "await light_toolkit.is_on()\n";
    for (caught, reaches) in [("Exception", false), ("BaseException", true)] {
        let hole = format!("try:\n    await light_toolkit.switch(True)\nexcept {caught}:\n    print('caught')\n{more}");
        let mut world = world([hole, send("'understood'")], refuse()).await;
        assert_eq!(world.say_to("light", Arc::new(Agreeable)).await, Verdict::Replied, "{caught}");
        let prompt = world.last_prompt();
        assert!(prompt.contains("light_toolkit.switch was not called: a hook refused it: use is_on"), "{prompt}");
        assert_eq!(world.contents(SegmentKind::Reply), ["understood"], "{caught}");
        assert_eq!(*world.light.switched.lock().unwrap(), [false; 0]);
        let calls = world.session.calls(1).await.unwrap();
        assert!(
            matches!(&*calls, [CallRecord { status: CallStatus::Failed { error }, .. }] if error.kind == ErrorKind::Denied),
            "{calls:?}"
        );
        assert_eq!(world.session.rounds(0).await.unwrap()[0].output.contains("caught"), reaches);
    }
}

#[tokio::test]
async fn replaced_arguments_are_called_and_journaled_and_an_allowed_call_asks_nobody() {
    let replace = r#"echo '{"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": {"on": false}}}'"#;
    let hooks = HookConfig {
        pre_tool_use: script(replace),
        post_tool_use: script(
            r#"grep -q '"on":false.*"tool_response":null' && echo '{"decision": "block", "reason": "look twice"}'"#,
        ),
        ..HookConfig::default()
    };
    let mut world = world(["await light_toolkit.switch(True)\n".to_owned(), send("'done'")], hooks).await;
    assert_eq!(world.say_to("light", Arc::new(Refusing)).await, Verdict::Replied);
    assert_eq!(*world.light.switched.lock().unwrap(), [false]);
    assert_eq!(world.session.calls(1).await.unwrap()[0].arguments, *json!({"on": false}).as_object().unwrap());
    assert!(world.last_prompt().contains("about light_toolkit.switch: look twice"), "{}", world.last_prompt());
}

#[tokio::test]
async fn a_call_that_a_hook_has_asked_about_is_made_once_somebody_approves() {
    let ask = r#"echo '{"hookSpecificOutput": {"permissionDecision": "ask"}}'"#;
    let hooks = HookConfig { pre_tool_use: script(ask), ..HookConfig::default() };
    let hole = format!("on = await light_toolkit.is_on()\n{}", send("str(on)"));
    let mut world = world([hole], hooks).await;
    assert!(matches!(world.say("light").await, Verdict::Waiting { on, .. } if on == "approval"));
    world.reopen().await;
    fimble::gate::answer(&world.session, "yes", &world.agent.parts.gate).await.unwrap();
    world.reopen().await;
    assert_eq!(world.resume(Arc::new(Unattended)).await, Some(Verdict::Replied));
    assert_eq!(world.contents(SegmentKind::Reply), ["False"]);
}

#[tokio::test]
async fn a_hook_that_gives_other_arguments_after_the_approval_stops_the_call() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark").display().to_string();
    let turncoat = format!(
        r#"test -e {mark} && echo '{{"hookSpecificOutput": {{"updatedInput": {{"on": false}}}}}}'; touch {mark}"#
    );
    let hooks = HookConfig { pre_tool_use: script(&turncoat), ..HookConfig::default() };
    let mut world = world(["await light_toolkit.switch(True)\n"], hooks).await;
    assert!(matches!(world.say("light").await, Verdict::Waiting { .. }));
    fimble::gate::answer(&world.session, "yes", &world.agent.parts.gate).await.unwrap();
    let verdict = world.resume(Arc::new(Unattended)).await;
    assert!(
        matches!(&verdict, Some(Verdict::Denied { account }) if account.contains("other arguments")),
        "{verdict:?}"
    );
    assert_eq!(*world.light.switched.lock().unwrap(), [false; 0]);
}

#[tokio::test]
async fn a_stop_hook_sends_the_model_back_to_work_but_not_for_ever() {
    let stop = r#"grep -q '"stop_hook_active":false' && { echo 'the tests are red' >&2; exit 2; }; exit 0"#;
    let hooks = HookConfig { stop: script(stop), ..HookConfig::default() };
    let mut world = self::world([send("'done'"), send("'now it is'")], hooks).await;
    assert_eq!(world.say("fix it").await, Verdict::Replied);
    assert_eq!(world.contents(SegmentKind::Reply), ["done", "now it is"]);
    assert!(world.last_prompt().contains("the tests are red"), "{}", world.last_prompt());
    let hooks = HookConfig { stop: script("exit 2"), ..HookConfig::default() };
    let mut world = self::world((1..=9).map(|number| send(&format!("'{number}'"))), hooks).await;
    assert_eq!(world.say("fix it").await, Verdict::Replied);
    assert_eq!(world.contents(SegmentKind::Reply), ["1", "2", "3", "4"]);
}

#[tokio::test]
async fn a_hook_that_stops_the_program_ends_the_turn_with_an_account() {
    let hooks = HookConfig {
        post_tool_use: script("echo '{\"continue\": false, \"stopReason\": \"budget\"}'"),
        ..HookConfig::default()
    };
    let hole = "await light_toolkit.is_on()\ntry:\n    await light_toolkit.is_on()\nexcept BaseException:\n    pass\n";
    let mut world = world([hole], hooks).await;
    let verdict = world.say("light").await;
    assert!(
        matches!(&verdict, Verdict::Denied { account } if account.contains("after light_toolkit.is_on: budget")),
        "{verdict:?}"
    );
    assert_eq!(world.session.calls(1).await.unwrap().len(), 1);
}
