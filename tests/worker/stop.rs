//! A worker that is told to end gives its turns back: the next one goes on with them, though no lease is over.

use std::process::Child;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{PROGRAM, World, end, until};

/// Has a worker end as a terminal or a supervisor does.
fn stop(mut worker: Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(worker.id()).unwrap()), signal).unwrap();
    assert_eq!(worker.wait().unwrap().code(), Some(0));
}

/// Of a turn that is under way when its worker is told to end.
async fn is_given_back(signal: Signal) {
    let world = World::new(PROGRAM).await;
    let first = world.lasting("2");
    let id = world.send("Count");
    until("the call", || world.path("gate.begun").exists());
    stop(first, signal);
    let lease = format!("fimble:{{{id}}}:lease");
    assert_eq!(world.redis.run(&["EXISTS", &lease]), ["0"], "the session is nobody's");
    std::fs::write(world.path("gate"), "").unwrap();
    // One whose own lease is ten minutes waits as long for the turns of workers that are not heard of.
    let second = world.lasting("2");
    world.until_all_is_done();
    end(second);
    assert_eq!((world.lines("before"), world.lines("after")), (1, 1), "no call is made twice");
    assert!(world.told(&id).contains("« counted"), "{}", world.told(&id));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_turn_of_a_worker_that_ctrl_c_ends_is_gone_on_with_at_once() {
    is_given_back(Signal::SIGINT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_turn_of_a_worker_that_a_supervisor_ends_is_gone_on_with_at_once() {
    is_given_back(Signal::SIGTERM).await;
}

/// The next turn of the session is the stopped worker's as well, from the moment at which it ends the first.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_waited_for_another_one_of_its_session_is_not_kept_either() {
    let world = World::answering(|asked| {
        let name = if asked.contains("giraffes") { "second" } else { "first" };
        format!(
            "await count_toolkit.add(file='FOLDER/{name}')\nawait count_toolkit.look(gate='FOLDER/gate')\n\
             await system_toolkit.send_message('{name} is done')\n"
        )
    })
    .await;
    let first = world.lasting("2");
    let id = world.send("Count the storks");
    until("the call", || world.path("gate.begun").exists());
    world.send_to(&id, "Count the giraffes");
    until("a look at the second turn", || world.handed_out() == "2");
    stop(first, Signal::SIGTERM);
    std::fs::write(world.path("gate"), "").unwrap();
    let second = world.lasting("2");
    world.until_all_is_done();
    end(second);
    assert_eq!((world.lines("first"), world.lines("second")), (1, 1));
    let told = world.told(&id);
    let at = ["« first is done", "« second is done"].map(|reply| told.find(reply));
    assert!(at[0].is_some() && at[0] < at[1], "{told}");
}
