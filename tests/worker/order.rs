//! Of the turns of one session, one is made at a time, in the order in which they were asked for.

use std::process::{Child, Stdio};
use std::time::Duration;

use fimble::store::Store;

use super::{World, end, until};

/// So long that nothing in these tests goes on because it ran out.
const LEASE: &str = "600";

impl World {
    /// A worker whose lease does not run out.
    pub(super) fn lasting(&self, turns: &str) -> Child {
        let mut command = self.fimble(&["worker", "--lease", LEASE, "--turns", turns]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    pub(super) fn send_to(&self, id: &str, text: &str) {
        let sent = self.run(&["sessions", "send", text, "--session", id]);
        assert!(sent.status.success(), "{sent:?}");
    }

    /// How many turns workers have been handed and not ended.
    pub(super) fn handed_out(&self) -> String {
        let pending = "return redis.call('XPENDING', KEYS[1], 'workers')[1]";
        self.redis.run(&["EVAL", pending, "1", "fimble:turns"]).remove(0)
    }

    pub(super) fn until_all_is_done(&self) {
        until("the end of the last turn", || self.redis.run(&["XLEN", "fimble:turns"]) == ["0"]);
        assert_eq!(self.redis.run(&["ZCARD", "{fimble:turns}:order"]), ["0"]);
    }

    pub(super) fn told(&self, id: &str) -> String {
        String::from_utf8(self.run(&["sessions", "show", id]).stdout).unwrap()
    }
}

/// Three messages to one session, of which the first waits for a gate.
async fn three_messages() -> World {
    World::answering(|asked| {
        let program = if asked.contains("otters") {
            "await count_toolkit.add(file='FOLDER/third')\nawait system_toolkit.send_message('three')\n"
        } else if asked.contains("giraffes") {
            "await count_toolkit.add(file='FOLDER/second')\nawait system_toolkit.send_message('two')\n"
        } else {
            "await count_toolkit.add(file='FOLDER/first')\nawait count_toolkit.look(gate='FOLDER/gate')\n\
             await count_toolkit.add(file='FOLDER/first')\nawait system_toolkit.send_message('one')\n"
        };
        program.to_owned()
    })
    .await
}

fn check(world: &World, id: &str) {
    world.until_all_is_done();
    let told = world.told(id);
    let at = ["« one", "« two", "« three"].map(|reply| {
        assert_eq!(told.matches(reply).count(), 1, "{told}");
        told.find(reply).unwrap()
    });
    assert!(at.is_sorted() && !told.contains("given up"), "{told}");
    assert_eq!(["first", "second", "third"].map(|name| world.lines(name)), [2, 1, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_worker_makes_the_turns_of_a_session_one_after_the_other() {
    let world = three_messages().await;
    let worker = world.lasting("4");
    let id = world.send("Count zebras");
    until("the first turn", || world.path("gate.begun").exists());
    world.send_to(&id, "Count giraffes");
    world.send_to(&id, "Count otters");
    until("a look at all", || world.handed_out() == "3");
    // Another session does not wait for it.
    world.send("Count giraffes elsewhere");
    until("the turn of another session", || world.lines("second") == 1);
    std::fs::remove_file(world.path("second")).unwrap();
    assert_eq!(world.lines("first"), 1);
    std::fs::write(world.path("gate"), "").unwrap();
    check(&world, &id);
    end(worker);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_make_the_turns_of_a_session_one_after_the_other() {
    let world = three_messages().await;
    let first = world.lasting("1");
    let id = world.send("Count zebras");
    until("the first turn", || world.path("gate.begun").exists());
    let second = world.lasting("2");
    world.send_to(&id, "Count giraffes");
    world.send_to(&id, "Count otters");
    until("a look at all by another worker", || world.handed_out() == "3");
    assert_eq!((world.lines("first"), world.lines("second")), (1, 0));
    std::fs::write(world.path("gate"), "").unwrap();
    check(&world, &id);
    [first, second].into_iter().for_each(end);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_whose_session_is_at_work_elsewhere_begins_when_that_ends() {
    let world = World::new("await system_toolkit.send_message('ok')\n").await;
    let id = world.send("First");
    let store = world.redis.store().await;
    assert!(store.take_lease(&id, "somebody", Duration::from_secs(600)).await.unwrap());
    let worker = world.lasting("1");
    until("a look at it", || world.handed_out() == "1");
    // It waits without a place: another session's turn is made meanwhile.
    let other = world.send("Another session");
    until("the turn of another session", || world.told(&other).contains("« ok"));
    assert!(!world.told(&id).contains("« ok"));
    store.release_lease(&id, "somebody").await.unwrap();
    world.until_all_is_done();
    assert!(world.told(&id).contains("« ok"));
    end(worker);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_fell_off_the_stream_holds_nobody_up() {
    let world = World::new("await system_toolkit.send_message('ok')\n").await;
    let id = world.send("First");
    world.redis.run(&["XTRIM", "fimble:turns", "MAXLEN", "0"]);
    world.redis.run(&["XADD", "fimble:turns", "*", "record", "no turn"]);
    world.send_to(&id, "Second");
    let worker = world.lasting("1");
    world.until_all_is_done();
    assert_eq!(world.told(&id).matches("« ok").count(), 1);
    end(worker);
}
