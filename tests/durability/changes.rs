//! What a person does to a session besides talking: edit, give up, go back, fork. Each dies in the middle and is done again.

use fimble::crash::{self, VARIABLE};

use super::{World, in_time};

/// All points of such changes.
pub const ALL: [&str; 5] = crash::CHANGES;

impl World {
    /// A turn whose program waits with its question, after two calls.
    async fn asking() -> (Self, String) {
        let world = Self::new(None).await;
        assert_eq!(world.run(&["chat", "--ask", "Paint"]).status.code(), Some(4));
        let (id, line) = world.session().unwrap();
        assert!(line.contains("(waits for an answer)"), "{line}");
        (world, id)
    }

    fn killed_at(&self, arguments: &[&str], point: &str) {
        let killed = in_time(self.fimble(arguments).env(VARIABLE, point));
        assert_eq!(killed.status.code(), None, "{point}: {killed:?}");
    }

    fn said(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn firsts(&self) -> Vec<String> {
        self.acts().iter().filter_map(|act| act.split(' ').next()).map(str::to_owned).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_survives_its_process() {
    for point in ["call withdrawn", "call acted", "call done", "round opened", "round committed", "turn ended"] {
        let (world, id) = World::asking().await;
        let rest = format!("await count_toolkit.add(file='{}', text='edited')\n", world.path("acts").display())
            + "await system_toolkit.send_message(f'kept {len(kept)}')\n";
        std::fs::write(world.path("rest.py"), rest).unwrap();
        world.killed_at(&["sessions", "edit", &id, "rest.py"], point);
        assert_eq!(world.firsts()[..2], ["1", "2"]);
        // What was cut off is gone on with first; if the edit is not in it, it is made again.
        for _ in 0..6 {
            let (_, line) = world.session().unwrap();
            if line.contains("(at work, or cut off)") {
                world.run(&["sessions", "resume", &id]);
            } else if line.contains("(waits for an approval)") {
                let made = world.firsts().contains(&"edited".to_owned());
                world.run(&["sessions", "answer", &id, if made { "skip" } else { "again" }]);
            } else if world.firsts().contains(&"edited".to_owned()) {
                break;
            } else {
                world.run(&["sessions", "edit", &id, "rest.py"]);
            }
        }
        assert_eq!(world.firsts(), ["1", "2", "edited"], "{point}");
        let variables = world.said(&["sessions", "vars", &id]);
        assert!(variables.contains("kept: list[int] = [1, 2]"), "{point}: {variables}");
    }
}

/// A message in place of an approval gives the program up that waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn giving_up_survives_its_process() {
    for point in ["call ended", "round given up", "turn begins", "turn begun"] {
        let world = World { policy: super::ASK, ..World::new(None).await };
        assert_eq!(world.run(&["chat", "--ask", "Paint"]).status.code(), Some(4));
        let (id, line) = world.session().unwrap();
        assert!(line.contains("(waits for an approval)"), "{line}");
        world.killed_at(&["chat", "--resume", &id, "--ask", "Paint it"], point);
        assert!(world.acts().is_empty(), "{point}: nothing was approved");
        if point != "turn begun" {
            // The message was not taken: it is said again.
            assert_eq!(world.run(&["chat", "--resume", &id, "--ask", "Paint"]).status.code(), Some(4));
        }
        assert_eq!(world.bring_to_an_end(), id);
        world.check(&id, point);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_way_back_and_a_fork_survive_their_process() {
    let (world, id) = World::asking().await;
    assert_eq!(world.run(&["sessions", "answer", &id, "red"]).status.code(), Some(0));
    let before = world.said(&["sessions", "vars", &id]);
    world.killed_at(&["sessions", "fork", &id, "--at", "1"], "session forked");
    let list = world.said(&["sessions", "list"]);
    let fork = list.lines().filter_map(|line| line.split_whitespace().next()).find(|found| *found != id).unwrap();
    let kept = world.said(&["sessions", "vars", fork]);
    assert!(kept.contains("kept: list[int]") && !kept.contains("colour"), "{kept}");
    assert_eq!(world.said(&["sessions", "vars", &id]), before, "its source is as it was");

    world.killed_at(&["sessions", "rewind", &id, "--at", "1"], "session rewound");
    let back = world.said(&["sessions", "vars", &id]);
    assert!(back.contains("kept: list[int]") && !back.contains("colour"), "{back}");
    assert_eq!(world.said(&["sessions", "vars", &id, "--at", "2"]), before, "what was between is still there");
    assert_eq!(world.firsts(), ["1", "2", "red"]);
    // It takes the next turn.
    assert_eq!(world.run(&["chat", "--resume", &id, "--ask", "Paint"]).status.code(), Some(4));
    assert_eq!(world.firsts(), ["1", "2", "red", "1", "2"]);
}
