//! Turns whose programs say what they would do before they do it.

use fimble::gate::{Plan, Policy, Profile};

use super::*;

/// A person who says one thing to every plan, and keeps what they saw.
struct Planner {
    said: &'static str,
    seen: std::sync::Mutex<Vec<String>>,
}

impl Planner {
    fn saying(said: &'static str) -> Arc<Self> {
        Arc::new(Self { said, seen: std::sync::Mutex::default() })
    }
}

#[async_trait]
impl Attendant for Planner {
    async fn approve(&self, request: &Approval) -> Option<Consent> {
        unreachable!("a plan is one question, and this is another: {request:?}")
    }

    async fn approve_plan(&self, plan: &Plan) -> Option<String> {
        self.seen.lock().unwrap().push(plan.text());
        Some(self.said.to_owned())
    }

    async fn answer(&self, _question: &str, _choices: &[String]) -> Option<String> {
        None
    }
}

impl World {
    async fn planning<T: Into<String>>(holes: impl IntoIterator<Item = T>) -> Self {
        let mut world = Self::new(holes).await;
        let registry = Registry::new();
        registry.register(Arc::clone(&world.light) as Arc<dyn fimble_toolkit::Toolkit>).unwrap();
        let policy = Policy::default().with_profile(Profile::Plan);
        let config = fimble::gate::Config { policy, ..fimble::gate::Config::default() };
        world.agent.parts.gate = Arc::new(Gate::new(Arc::new(registry), config, Secrets::default()));
        world
    }
}

fn switches() -> String {
    let switch = |on: &str| format!("await light_toolkit.switch(on={on})\n");
    format!("was = await light_toolkit.is_on()\n{}{}{}", switch("True"), switch("False"), send("f'was {was}'"))
}

#[tokio::test]
async fn one_approval_stands_for_all_that_a_program_changes() {
    let mut world = World::planning([switches()]).await;
    let planner = Planner::saying("yes");
    assert_eq!(world.say_to("Blink", Arc::clone(&planner) as Arc<dyn Attendant>).await, Verdict::Replied);
    assert_eq!(*world.light.switched.lock().unwrap(), [true, false]);
    assert_eq!(world.contents(SegmentKind::Reply), ["was False"], "it is said once");
    assert_eq!(planner.seen.lock().unwrap().len(), 1);
    assert_eq!(world.session.record().rounds, 1, "both runs are one round");
    assert_eq!(world.contents(SegmentKind::Code).len(), 1);
}

#[tokio::test]
async fn calls_that_are_made_together_may_come_in_another_order() {
    let blink = "import asyncio\nasync def blink(on):\n    await light_toolkit.switch(on=on)\n    was = await light_toolkit.is_on()\n    \
                 await asyncio.sleep(0)\n    await light_toolkit.switch(on=not was)\n\
                 await asyncio.gather(*(blink(n % 2 == 0) for n in range(8)))\n";
    let mut world = World::planning([format!("{blink}{}", send("'done'"))]).await;
    assert_eq!(world.say_to("Blink", Planner::saying("yes")).await, Verdict::Replied);
    assert_eq!(world.light.switched.lock().unwrap().len(), 16);
}

#[tokio::test]
async fn a_plan_that_nobody_approves_waits_and_goes_on_in_another_process() {
    let mut world = World::planning([switches()]).await;
    let verdict = world.say("Blink").await;
    assert!(
        matches!(&verdict, Verdict::Waiting { on, question } if on == "plan" && question.contains("2 effects")),
        "{verdict:?}"
    );
    assert_eq!(world.session.record().status, SessionStatus::AwaitingApproval);
    world.reopen().await;
    assert_eq!(world.resume(Planner::saying("strike 1")).await, Some(Verdict::Replied));
    assert_eq!(*world.light.switched.lock().unwrap(), [false]);
    let output = world.contents(SegmentKind::Output).remove(0);
    assert!(output.contains("note: the user struck light_toolkit.switch({\"on\":true}) out of the plan"), "{output}");
}

#[tokio::test]
async fn a_plan_that_is_refused_ends_the_turn_and_one_without_effects_is_not_asked_for() {
    let mut world = World::planning([switches()]).await;
    let verdict = world.say_to("Blink", Planner::saying("no")).await;
    assert!(
        matches!(&verdict, Verdict::Denied { account } if account.contains("did not approve the plan")),
        "{verdict:?}"
    );
    assert!(world.light.switched.lock().unwrap().is_empty());
    let look = format!("on = await light_toolkit.is_on()\n{}", send("f'on: {on}'"));
    let mut world = World::planning([look]).await;
    assert_eq!(world.say("On?").await, Verdict::Replied);
    assert_eq!(world.contents(SegmentKind::Reply), ["on: False"]);
}
