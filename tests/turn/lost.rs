//! A zygote that ends under the rounds of several sessions.

use tokio::join;

use super::*;

const HOLE: &str = "\
await light_toolkit.switch(on=True)
await light_toolkit.hang()
await light_toolkit.switch(on=False)
await system_toolkit.send_message('done')
";

#[tokio::test]
async fn a_crashed_zygote_loses_no_round_and_repeats_no_call_of_any_session() {
    let (mut first, mut second) = (World::new([HOLE]).await, World::new([HOLE]).await);
    second.agent.interpreter = Arc::clone(&first.agent.interpreter);
    let interpreter = Arc::clone(&first.agent.interpreter);
    let lights = [Arc::clone(&first.light), Arc::clone(&second.light)];
    let kills = async {
        for _ in 0..2 {
            for light in &lights {
                light.hangs.notified().await;
            }
            let zygote = i32::try_from(interpreter.zygote_pid().await).unwrap();
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(zygote), nix::sys::signal::Signal::SIGKILL).unwrap();
        }
        for light in &lights {
            light.hangs.notified().await;
            light.lets_go.store(true, Ordering::Relaxed);
        }
        let zygote = i32::try_from(interpreter.zygote_pid().await).unwrap();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(zygote), nix::sys::signal::Signal::SIGKILL).unwrap();
    };
    let both = async {
        join!(
            first.say_to("Switch it on and off", Arc::new(Agreeable)),
            second.say_to("Switch it on and off", Arc::new(Agreeable))
        )
    };
    let (verdicts, ()) = join!(both, kills);
    assert_eq!(verdicts, (Verdict::Replied, Verdict::Replied));
    for world in [&first, &second] {
        assert_eq!(*world.light.switched.lock().unwrap(), [true, false]);
        assert_eq!(world.contents(SegmentKind::Reply), ["done"]);
        let rounds = world.store.rounds(&world.session.record().id, 0).await.unwrap();
        let outcomes: Vec<_> = rounds.into_iter().map(|round| round.outcome).collect();
        assert!(matches!(outcomes.as_slice(), [Some(fimble::record::Outcome::Finished { .. })]), "{outcomes:?}");
    }
}
