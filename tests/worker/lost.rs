//! A session that another process took over: whoever had it says so at once, and does nothing more in it.

use std::process::Child;
use std::time::Duration;

use fimble::store::Store;

use super::{PROGRAM, World, ended, until};

impl World {
    /// Takes a session from its owner, as after a break for which that owner was not heard of.
    async fn take_over(&self, id: &str) {
        let store = self.redis.store().await;
        let lease = format!("fimble:{{{id}}}:lease");
        for _ in 0..100 {
            self.redis.run(&["DEL", &lease]);
            // Its owner may have prolonged it in between.
            if store.take_lease(id, "somebody", Duration::from_secs(600)).await.unwrap() {
                return;
            }
        }
        panic!("it is always prolonged");
    }

    /// The one session that there is.
    fn only_session(&self) -> String {
        let listed = String::from_utf8(self.run(&["sessions", "list"]).stdout).unwrap();
        listed.split_whitespace().next().unwrap().to_owned()
    }
}

async fn stops(world: &World, child: Child, id: &str) {
    world.take_over(id).await;
    // The call that it waits for never ends by itself.
    let output = ended(child);
    let told = String::from_utf8(output.stderr).unwrap();
    let expected = format!(
        "error: another fimble took this session over, so this one stopped its work in it\n\nhint: `fimble sessions follow {id}` \
         shows what it does\n"
    );
    assert_eq!((output.status.code(), told.ends_with(&expected)), (Some(5), true), "{told}");
    assert_eq!((world.lines("before"), world.lines("after")), (1, 0));
    let places = world.redis.run(&["KEYS", "*:places"]).remove(0);
    assert_eq!(world.redis.run(&["ZCARD", &places]), ["1"], "it is counted for whoever has it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_whose_session_was_taken_over_says_so_and_stops() {
    let world = World::new(PROGRAM).await;
    let child = world.fimble(&["chat", "--ask", "Count"]).spawn().unwrap();
    until("the call", || world.path("gate.begun").exists());
    stops(&world, child, &world.only_session()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_whose_session_was_taken_over_says_so_and_stops() {
    let world = World::new(PROGRAM).await;
    let program = PROGRAM.replace("FOLDER", world.folder.path().to_str().unwrap());
    std::fs::write(world.path("program.py"), program).unwrap();
    let child = world.fimble(&["run", "program.py"]).spawn().unwrap();
    until("the call", || world.path("gate.begun").exists());
    stops(&world, child, &world.only_session()).await;
}
