//! One turn, from message to verdict: a scripted model, everything else real.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "turn/calls.rs"]
mod calls;
#[path = "turn/carried.rs"]
mod carried;
#[path = "turn/edit.rs"]
mod edit;
#[path = "turn/hooks.rs"]
mod hooks;
#[path = "turn/lost.rs"]
mod lost;
#[path = "turn/plan.rs"]
mod plan;

#[path = "turn/wrong_call.rs"]
mod wrong_call;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use fimble::agent::{Agent, Cause, Config, PromptParts, Verdict};
use fimble::event::{Custom, Event, EventKind};
use fimble::gate::{Approval, Attendant, Consent, Gate, Secrets, Unattended};
use fimble::interpreter::{self, Interpreter, Limits};
use fimble::llm::scripted::Scripted;
use fimble::llm::{Input, LlmError, Request};
use fimble::prompt::Templates;
use fimble::record::{CallRecord, CallStatus, SessionStatus};
use fimble::registry::Registry;
use fimble::segment::SegmentKind;
use fimble::session::Session;
use fimble::store::Store;
use fimble::store::sqlite::Sqlite;
use fimble_toolkit::{Call, ErrorKind, ToolError, toolkit};
use futures_util::FutureExt;
use futures_util::future::{Either, select};
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// A toolkit whose effects a test can count.
#[derive(Default)]
struct Light {
    switched: std::sync::Mutex<Vec<bool>>,
    hangs: Notify,
    lets_go: AtomicBool,
}

/// One light.
#[toolkit(name = "light_toolkit")]
impl Light {
    /// Is it on?
    #[operation(risk = "read")]
    async fn is_on(&self) -> Result<bool, ToolError> {
        Ok(self.switched.lock().unwrap().last().copied().unwrap_or(false))
    }

    /// Switches it.
    #[operation(risk = "write")]
    async fn switch(&self, on: bool) -> Result<(), ToolError> {
        self.switched.lock().unwrap().push(on);
        Ok(())
    }

    /// Returns only once it is let go.
    #[operation(risk = "read")]
    async fn hang(&self) -> Result<(), ToolError> {
        if !self.lets_go.load(Ordering::Relaxed) {
            self.hangs.notify_one();
            std::future::pending::<()>().await;
        }
        Ok(())
    }

    /// Nobody may.
    #[operation(risk = "read")]
    async fn forbidden(&self) -> Result<(), ToolError> {
        Err(ToolError::new(ErrorKind::Denied, "the house answered 403"))
    }

    /// What its calls are traced as.
    #[operation(risk = "read")]
    async fn trace(&self, call: &Call) -> Result<String, ToolError> {
        Ok(call.context.trace.clone())
    }

    /// Has a defect.
    #[operation(risk = "read")]
    async fn panics(&self) -> Result<(), ToolError> {
        let (lamps, number) = (Vec::<u32>::new(), self.switched.lock().unwrap().len());
        Err(ToolError::failed(lamps[number].to_string()))
    }

    /// Fails, and says a secret.
    #[operation(risk = "read")]
    async fn burn(&self) -> Result<(), ToolError> {
        Err(ToolError::new(ErrorKind::Failed, "the bulb hunter2-secret is broken").with_hint("buy one"))
    }
}

/// A person who says yes and always gives the same answer.
struct Agreeable;

#[async_trait]
impl Attendant for Agreeable {
    async fn approve(&self, _request: &Approval) -> Option<Consent> {
        Some(Consent::Once)
    }

    async fn answer(&self, _question: &str, _choices: &[String]) -> Option<String> {
        Some("blue".to_owned())
    }
}

/// A person who says no.
struct Refusing;

#[async_trait]
impl Attendant for Refusing {
    async fn approve(&self, _request: &Approval) -> Option<Consent> {
        Some(Consent::No)
    }

    async fn answer(&self, _question: &str, _choices: &[String]) -> Option<String> {
        None
    }
}

/// What an event shows of the program's output.
fn printed(event: Event) -> Option<String> {
    match event.kind {
        EventKind::Custom(Custom::Print { text }) => Some(text),
        _ => None,
    }
}

/// An agent with a scripted model, and a session.
struct World {
    agent: Agent,
    model: Arc<Scripted>,
    light: Arc<Light>,
    store: Arc<dyn Store>,
    session: Session,
}

impl World {
    async fn new<T: Into<String>>(holes: impl IntoIterator<Item = T>) -> Self {
        Self::with_model(Scripted::new(holes)).await
    }

    async fn with_model(model: Scripted) -> Self {
        Self::with(model, fimble::gate::Config::default()).await
    }

    async fn with(model: Scripted, config: fimble::gate::Config) -> Self {
        let model = Arc::new(model);
        let light = Arc::new(Light::default());
        let registry = Registry::new();
        registry.register(Arc::clone(&light) as Arc<dyn fimble_toolkit::Toolkit>).unwrap();
        let secrets = Secrets::new(["hunter2-secret".to_owned()]);
        let gate = Arc::new(Gate::new(Arc::new(registry), config, secrets));
        let executable = Some(PathBuf::from(env!("CARGO_BIN_EXE_fimble")));
        let settings = interpreter::Config { executable, ..interpreter::Config::default() };
        let parts = PromptParts {
            gate,
            program: fimble::program::Config::default(),
            prompt: fimble::prompt::Config::default(),
            templates: Templates::new(&BTreeMap::new()).unwrap(),
        };
        let agent = Agent {
            model: Arc::clone(&model) as Arc<dyn fimble::llm::Model>,
            interpreter: Arc::new(Interpreter::start(&settings).await.unwrap()),
            config: Config::default(),
            parts,
            limits: Limits { wall_s: 5.0, ..Limits::default() },
        };
        let store: Arc<dyn Store> = Arc::new(Sqlite::in_memory().unwrap());
        let session = Session::create(Arc::clone(&store), "local", "tester", "").await.unwrap();
        Self { agent, model, light, store, session }
    }

    async fn say(&mut self, message: &str) -> Verdict {
        self.say_to(message, Arc::new(Unattended)).await
    }

    async fn say_to(&mut self, message: &str, attendant: Arc<dyn Attendant>) -> Verdict {
        self.agent.turn(&mut self.session, message, attendant, &CancellationToken::new()).await.unwrap()
    }

    /// The session as another process finds it.
    async fn reopen(&mut self) {
        let id = self.session.record().id.clone();
        self.session = Session::open(Arc::clone(&self.store), &id, "local", "tester").await.unwrap();
    }

    async fn resume(&mut self, attendant: Arc<dyn Attendant>) -> Option<Verdict> {
        self.agent.resume(&mut self.session, attendant, &CancellationToken::new()).await.unwrap()
    }

    fn contents(&self, kind: SegmentKind) -> Vec<String> {
        let of_kind = self.session.segments().iter().filter(|segment| segment.kind == kind);
        of_kind.map(|segment| segment.content.clone()).collect()
    }

    fn last_prompt(&self) -> String {
        shown(self.model.requests().last().unwrap())
    }
}

fn shown(request: &Request) -> String {
    match &request.input {
        Input::Chat(messages) => messages.iter().map(|message| message.content.as_str()).collect::<Vec<_>>().join("\n"),
        Input::Fill { prefix, suffix } => format!("{prefix}{suffix}"),
    }
}

fn send(text: &str) -> String {
    format!("await system_toolkit.send_message({text})\n")
}

#[tokio::test]
async fn a_round_that_a_person_killed_ends_the_turn_and_the_session_goes_on() {
    let mut world = World::new(["while True:\n    pass\n".to_owned(), send("'again'")]).await;
    let live = Arc::clone(world.agent.parts.gate.live());
    let killer = tokio::spawn(async move {
        loop {
            if let Some(round) = live.rounds().first() {
                return live.kill(&round.session, round.round).await;
            }
            tokio::task::yield_now().await;
        }
    });
    let verdict = world.say("spin").await;
    assert!(killer.await.unwrap());
    let Verdict::GaveUp { account, cause: Cause::Stopped } = verdict else { panic!("{verdict:?}") };
    assert!(account.contains("a person ended the program with `fimble kill`"), "{account}");
    assert_eq!(world.say("and now?").await, Verdict::Replied);
    assert!(world.last_prompt().contains("a person ended the program with `fimble kill`"), "{}", world.last_prompt());
    assert!(world.agent.parts.gate.live().rounds().is_empty());
}

#[tokio::test]
async fn a_clean_round_that_replies_ends_the_turn() {
    let mut world = World::new([send("f'on: {await light_toolkit.is_on()}'")]).await;
    assert_eq!(world.say("Is the light on?").await, Verdict::Replied);
    assert_eq!(world.contents(SegmentKind::Reply), ["on: False"]);
    assert_eq!(world.session.record().status, SessionStatus::Idle);
    let calls = world.session.calls(1).await.unwrap();
    let done: Vec<_> = calls.iter().map(|call| (call.operation.as_str(), call.status.clone())).collect();
    let expected = [
        ("is_on", CallStatus::Done { result: json!(false) }),
        ("send_message", CallStatus::Done { result: json!(null) }),
    ];
    assert_eq!(done, expected);
}

#[tokio::test]
async fn a_silent_round_is_followed_by_one_with_its_output_in_view() {
    let mut world = World::new(["print('the answer is 42')\n".to_owned(), send("'42'")]).await;
    assert_eq!(world.say("What is the answer?").await, Verdict::Replied);
    assert!(world.last_prompt().contains("the answer is 42"), "{}", world.last_prompt());
}

#[tokio::test]
async fn what_two_silent_rounds_print_is_passed_on() {
    let mut world = World::new(["print('one')\n", "print('two')\n"]).await;
    assert_eq!(world.say("Count").await, Verdict::Relayed { text: "two".to_owned() });
    assert_eq!(world.contents(SegmentKind::Reply), ["two"]);
}

#[tokio::test]
async fn after_an_exception_only_the_rest_is_written_again() {
    let first = "await light_toolkit.is_on()\nx = 41\ny = x / 0\nprint('never')\n";
    let mut world = World::new([first.to_owned(), format!("y = x + 1\n{}", send("str(y)"))]).await;
    assert_eq!(world.say("Compute y").await, Verdict::Replied);
    assert_eq!(world.contents(SegmentKind::Reply), ["42"]);
    let prompt = world.last_prompt();
    assert!(prompt.contains("already done") && prompt.contains("x = 41"), "{prompt}");
    assert!(prompt.contains("ZeroDivisionError"), "{prompt}");
    // The call before the exception was made once.
    let rounds = world.session.rounds(0).await.unwrap();
    assert_eq!(rounds.iter().map(|round| round.statements_done).collect::<Vec<_>>(), [2, 2]);
    let calls = [world.session.calls(1).await.unwrap(), world.session.calls(2).await.unwrap()].concat();
    assert_eq!(calls.iter().filter(|call| call.operation == "is_on").count(), 1);
}

#[tokio::test]
async fn a_refused_program_is_asked_for_again_in_the_other_encoding() {
    let mut world = World::new(["await light_toolkit.turn(on=True)\n".to_owned(), send("'done'")]).await;
    assert_eq!(world.say("Light on").await, Verdict::Replied);
    let requests = world.model.requests();
    assert!(matches!((&requests[0].input, &requests[1].input), (Input::Chat(_), Input::Fill { .. })), "{requests:?}");
    assert!(world.last_prompt().contains("turn"), "{}", world.last_prompt());
    assert!(world.light.switched.lock().unwrap().is_empty());
}

#[tokio::test]
async fn prose_empty_answers_half_programs_and_a_closed_try_are_refused_and_the_session_goes_on() {
    for hopeless in
        ["I would look at the light.", "", "x = (1 +", "pass\nexcept Exception:\n    pass\ntry:\n    x = 1\n"]
    {
        let mut world = World::new([hopeless.to_owned(), hopeless.to_owned(), send("'still here'")]).await;
        assert_eq!(world.say("Hello").await, Verdict::Replied, "{hopeless:?}");
        assert_eq!(world.contents(SegmentKind::Reply).last().unwrap(), "still here", "{hopeless:?}");
    }
}

#[tokio::test]
async fn a_model_that_never_writes_a_program_gets_a_clear_end() {
    let mut world = World::new(vec!["I am sorry, I cannot do that."; 4]).await;
    let verdict = world.say("Hello").await;
    let Verdict::GaveUp { account, cause: Cause::Refused } = verdict else { unreachable!("{verdict:?}") };
    assert!(account.starts_with("I stopped because the model wrote 4 programs in a row that cannot run."), "{account}");
    assert_eq!(world.contents(SegmentKind::Reply), [account]);
}

#[tokio::test]
async fn rounds_end_at_their_budget_with_an_account() {
    let rounds: Vec<String> = (0..8).map(|number| format!("await light_toolkit.is_on()\nx = {number}\n")).collect();
    let mut world = World::new(rounds).await;
    let verdict = world.say("Is it on?").await;
    let Verdict::GaveUp { account, cause: Cause::Unsettled } = verdict else { unreachable!("{verdict:?}") };
    let calls = "\n- light_toolkit.is_on()".repeat(8);
    let expected = format!(
        "I stopped after 8 rounds, the most a turn may have (`agent.max_rounds`).\n\nDone:{calls}\n\nMissing: an answer to \
         “Is it on?”."
    );
    assert_eq!(account, expected);
}

#[tokio::test]
async fn the_same_failure_three_times_ends_the_turn() {
    let holes: Vec<String> = (0..3).map(|number| format!("x = {number}\nraise ValueError('no')\n")).collect();
    let mut world = World::new(holes).await;
    let verdict = world.say("Try").await;
    assert!(
        matches!(&verdict, Verdict::GaveUp { cause: Cause::Raised, account } if account.contains("ValueError: no"))
    );
}

#[tokio::test]
async fn a_program_that_failed_is_not_run_a_second_time() {
    let failing = "light_toolkit.burn()\n";
    let mut world = World::new([failing.to_owned(), failing.to_owned(), send("'broken'")]).await;
    assert_eq!(world.say("Burn").await, Verdict::Replied);
    assert_eq!(world.session.rounds(0).await.unwrap().len(), 2);
}

#[tokio::test]
async fn limits_crashes_and_exits_end_the_round_and_not_the_session() {
    for (hole, word) in [
        ("while True:\n    pass\n", "5 s"),
        ("import os\nos._exit(1)\n", "exited with code 1"),
        ("for _ in range(1100):\n    print('x' * 1_000_000)\n", "output"),
    ] {
        let mut world = World::new([hole.to_owned(), send("'recovered'")]).await;
        assert_eq!(world.say("Go").await, Verdict::Replied, "{hole}");
        let output = world.contents(SegmentKind::Output).remove(0);
        assert!(output.contains(word), "{hole}: {output}");
        assert!(output.len() < 600_000, "{hole}: {}", output.len());
    }
}

#[tokio::test]
async fn variables_functions_and_imports_are_there_in_the_next_turn_and_after_a_restart() {
    let define = format!("import math\nradius = 2\ndef area():\n    return math.pi * radius ** 2\n{}", send("'ok'"));
    let mut world = World::new([define, send("f'{area():.2f}'"), send("f'{area():.3f}'")]).await;
    assert_eq!(world.say("Define").await, Verdict::Replied);
    assert_eq!(world.say("Compute").await, Verdict::Replied);
    let id = world.session.record().id.clone();
    world.session = Session::open(Arc::clone(&world.store), &id, "local", "tester").await.unwrap();
    assert_eq!(world.say("Again").await, Verdict::Replied);
    assert_eq!(world.contents(SegmentKind::Reply), ["ok", "12.57", "12.566"]);
}

#[tokio::test]
async fn a_question_is_answered_at_once_or_by_the_next_message() {
    let ask = format!("colour = await system_toolkit.ask_user('Which colour?')\n{}", send("colour"));
    let mut attended = World::new([ask.clone()]).await;
    assert_eq!(attended.say_to("Paint", Arc::new(Agreeable)).await, Verdict::Replied);
    assert_eq!(attended.contents(SegmentKind::Reply), ["blue"]);

    let mut alone = World::new([ask, send("'as I said'")]).await;
    let waiting = Verdict::Waiting { on: "question".to_owned(), question: "Which colour?".to_owned() };
    assert_eq!(alone.say("Paint").await, waiting);
    assert_eq!(alone.session.record().status, SessionStatus::AwaitingUser);
    alone.reopen().await;
    assert_eq!(alone.say("red").await, Verdict::Replied);
    assert_eq!(alone.contents(SegmentKind::Reply), ["red"], "the program goes on, without the model");
    assert_eq!(alone.contents(SegmentKind::User), ["Paint", "red\n(in answer to: Which colour?)"]);
    assert_eq!(alone.say("And?").await, Verdict::Replied);
    assert!(alone.last_prompt().contains("Which colour?"), "{}", alone.last_prompt());
}

#[tokio::test]
async fn a_suspended_program_is_given_up_when_the_user_writes_something_else() {
    let mut world = World::new(["await light_toolkit.switch(on=True)\n".to_owned(), send("'well then'")]).await;
    assert!(matches!(world.say("Light on").await, Verdict::Waiting { .. }));
    assert_eq!(world.say("No, tell me a joke").await, Verdict::Replied);
    assert!(world.light.switched.lock().unwrap().is_empty());
    assert!(world.last_prompt().contains("given up"), "{}", world.last_prompt());
    assert!(world.session.open_round().is_none());
}

#[tokio::test]
async fn a_turn_whose_host_died_goes_on_where_it_was() {
    // The first program prints and says nothing, so there is a second one; its host dies within a call.
    let second = format!("await light_toolkit.switch(on=True)\nawait light_toolkit.hang()\n{}", send("'done'"));
    let mut world = World::new(["print('looked')\n".to_owned(), second]).await;
    let never = CancellationToken::new();
    let turn = world.agent.turn(&mut world.session, "Light on", Arc::new(Agreeable), &never).boxed();
    let hangs = world.light.hangs.notified();
    // Dropped as it is when a process dies, but for what the store has.
    match select(turn, Box::pin(hangs)).await {
        Either::Left((verdict, _)) => panic!("{verdict:?}"),
        Either::Right(_) => {}
    }
    world.light.lets_go.store(true, Ordering::Relaxed);
    world.reopen().await;
    assert_eq!(world.resume(Arc::new(Unattended)).await, Some(Verdict::Replied));
    assert_eq!(*world.light.switched.lock().unwrap(), [true], "no call is made twice");
    assert_eq!(world.contents(SegmentKind::Reply), ["done"]);
    assert_eq!(world.contents(SegmentKind::Output)[0], "looked");
    assert_eq!(world.session.record().rounds, 2);
}

#[tokio::test]
async fn a_turn_whose_model_failed_can_be_gone_on_with() {
    let down = LlmError::Transient { message: "the model is down".to_owned(), hint: "start it".to_owned() };
    let answers = [Ok("print('looked')\n".to_owned()), Err(down), Ok(send("'hello'"))];
    let mut world = World::with_model(Scripted::with_answers(answers)).await;
    world.agent.turn(&mut world.session, "First", Arc::new(Unattended), &CancellationToken::new()).await.unwrap_err();
    world.reopen().await;
    assert_eq!(world.resume(Arc::new(Unattended)).await, Some(Verdict::Replied));
    assert_eq!(world.contents(SegmentKind::User), ["First"]);
    assert_eq!(world.session.record().rounds, 2);
}

#[tokio::test]
async fn secrets_are_masked_in_what_the_model_and_the_user_see() {
    let burn = "try:\n    await light_toolkit.burn()\nexcept ToolError as error:\n    print(error)\n";
    let mut world = World::new([burn.to_owned(), send("'done'")]).await;
    assert_eq!(world.say("Burn").await, Verdict::Replied);
    assert!(world.last_prompt().contains("the bulb ******** is broken"), "{}", world.last_prompt());
    let stored = serde_json::to_string(&world.session.events().await.unwrap()).unwrap();
    assert!(!stored.contains("hunter2"), "{stored}");
}

#[tokio::test]
async fn a_cancelled_turn_stops_its_program_and_keeps_the_session() {
    let mut world = World::new(["print('begun')\nwhile True:\n    pass\n".to_owned(), send("'back'")]).await;
    let cancel = CancellationToken::new();
    let mut events = world.session.subscribe();
    let stop = cancel.clone();
    let watch = tokio::spawn(async move {
        while let Some(event) = events.recv().await {
            if serde_json::to_string(&event).unwrap().contains("begun\\n") {
                stop.cancel();
            }
        }
    });
    let verdict = world.agent.turn(&mut world.session, "Loop", Arc::new(Unattended), &cancel).await.unwrap();
    assert_eq!(verdict, Verdict::Cancelled);
    watch.abort();
    assert_eq!(world.say("And now?").await, Verdict::Replied);
}

#[tokio::test]
async fn a_model_that_fails_loses_nothing_that_was_said() {
    let down = LlmError::Transient { message: "the model is down".to_owned(), hint: "start it".to_owned() };
    let mut world = World::with_model(Scripted::with_answers([Err(down), Ok(send("'hello'"))])).await;
    let failed = world.agent.turn(&mut world.session, "First", Arc::new(Unattended), &CancellationToken::new()).await;
    assert_eq!(failed.unwrap_err().to_string(), "the model is down");
    let id = world.session.record().id.clone();
    world.session = Session::open(Arc::clone(&world.store), &id, "local", "tester").await.unwrap();
    assert_eq!(world.contents(SegmentKind::User), ["First"]);
    assert_eq!(world.say("Second").await, Verdict::Replied);
}
