//! What a program would do is shown before it does it, approved in one answer, and held to.

use super::policy::Counting;
use super::*;

/// Reads, changes twice, and says something.
const PROGRAM: &str = "\
text = (await files_toolkit.read('in.txt')).text.strip()
await count_toolkit.add(file='FILE', text=text)
print('added', text)
await count_toolkit.add(file='FILE', text='second')
await system_toolkit.send_message('done')
kept = 1
";

impl Counting {
    fn dry_run(&self, program: &str) -> Output {
        let program = program.replace("FILE", self.file().to_str().unwrap());
        self.fimble(&["run", "-", "--dry-run"], &program)
    }

    fn answer(&self, said: &str) -> Output {
        self.fimble(&["sessions", "answer", &self.last_session(), said], "")
    }

    fn lines(&self) -> Vec<String> {
        std::fs::read_to_string(self.file()).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    fn with_input(text: &str) -> Self {
        let counting = Self::new("");
        std::fs::write(counting.home.path().join("in.txt"), text).unwrap();
        counting
    }
}

/// The hash that a plan is told by.
fn hash(told: &str) -> String {
    let at = told.find("plan ").unwrap();
    told[at + 5..].chars().take(12).collect()
}

#[test]
fn a_dry_run_changes_nothing_and_its_approval_does_exactly_what_was_shown() {
    let counting = Counting::with_input("first\n");
    let dry = counting.dry_run(PROGRAM);
    let told = stderr(&dry);
    assert_eq!((dry.status.code(), stdout(&dry).as_str(), counting.lines().len()), (Some(4), "", 0), "{told}");
    let file = counting.file();
    let expected = format!(
        "plan {}: 2 effects\n  1. write       count_toolkit.add({{\"file\":\"{file}\",\"text\":\"first\"}})\n       \
         {{\"command\":[\"sh\",\"-c\",\"echo \\\"$1\\\" >> \\\"$0\\\"\",\"{file}\",\"first\"]}}\n  2. write",
        hash(&told),
        file = file.display()
    );
    assert!(told.contains(&expected), "{told}");
    let id = counting.last_session();
    assert!(told.contains(&format!("hint: fimble sessions answer {id} yes|no|'strike 2 3'")), "{told}");
    assert!(counting.said(&["sessions", "list"]).contains("(waits for an approval)"));
    assert_eq!(counting.said(&["sessions", "vars", &id]), "", "what it assigned was not so");

    // What it read is what the plan was made of.
    std::fs::write(counting.home.path().join("in.txt"), "changed\n").unwrap();
    let real = counting.answer("yes");
    assert_eq!((real.status.code(), stdout(&real).as_str()), (Some(0), "added first\ndone\n"), "{}", stderr(&real));
    assert_eq!(counting.lines(), ["first", "second"]);
    assert!(counting.said(&["sessions", "vars", &id]).contains("kept: int = 1"));
    assert_eq!(counting.answer("yes").status.code(), Some(2), "nothing waits any more");
}

#[test]
fn times_and_chance_are_the_same_when_it_is_done() {
    let counting = Counting::with_input("first\n");
    let program = "import random, time, uuid\nbefore = time.time()\nawait files_toolkit.read('in.txt')\n\
                   await count_toolkit.add(file='FILE', text=f'{before} {time.time()} {random.random()}')\n\
                   await system_toolkit.send_message(f'{time.time()}')\n\
                   await count_toolkit.add(file='FILE', text=f'{time.time()} {time.monotonic()} {uuid.uuid4()}')\n";
    let dry = counting.dry_run(program);
    let real = counting.answer("yes");
    assert_eq!(real.status.code(), Some(0), "{}", stderr(&real));
    assert!(counting.lines().len() == 2 && counting.lines().iter().all(|line| stderr(&dry).contains(line)));
}

#[test]
fn what_is_struck_out_is_not_made_and_the_rest_is() {
    let counting = Counting::with_input("first\n");
    let dry = counting.dry_run(PROGRAM);
    for (said, wrong) in [
        ("strike 3".to_owned(), "there is no effect 3; the plan has 2"),
        ("yes 0123456789ab".to_owned(), "look at it again"),
        ("perhaps".to_owned(), "`perhaps` is none of yes, no, or strike"),
    ] {
        let refused = counting.answer(&said);
        assert!(refused.status.code() == Some(2) && stderr(&refused).contains(wrong), "{said}: {}", stderr(&refused));
    }
    assert!(counting.lines().is_empty());
    let real = counting.answer("strike 1");
    let told = stderr(&real);
    assert_eq!((real.status.code(), stdout(&real).as_str()), (Some(0), "added first\ndone\n"), "{told}");
    assert_eq!(counting.lines(), ["second"]);
    assert!(told.contains("the user struck it out of the plan; it was not made"), "{told}");
    assert_eq!(hash(&stderr(&dry)), hash(&stderr(&counting.dry_run(PROGRAM))), "the same calls are the same plan");
}

#[test]
fn a_plan_that_is_not_approved_ends_the_round() {
    let counting = Counting::with_input("first\n");
    counting.dry_run(PROGRAM);
    let told = stderr(&counting.fimble(&["sessions", "resume", &counting.last_session()], ""));
    assert!(told.contains("2 effects"), "it is shown again: {told}");
    let refused = counting.answer("no");
    let told = stderr(&refused);
    assert!(refused.status.code() == Some(4) && stdout(&refused).is_empty(), "{told}");
    assert!(told.contains("the user did not approve the plan; nothing of it was done"), "{told}");
    assert!(counting.lines().is_empty());
    assert!(counting.said(&["sessions", "show", &counting.last_session()]).contains("stopped: denied"));
}

#[test]
fn a_real_run_halts_before_a_change_that_was_not_approved() {
    let counting = Counting::new("");
    // Nobody knows what the first call answers until it is made.
    let program = "said = await count_toolkit.run(command='real')\nawait count_toolkit.add(file='FILE', text=said)\n\
                   await count_toolkit.add(file='FILE', text='never')\n";
    let dry = counting.dry_run(program);
    assert!(stderr(&dry).contains("3 effects"), "{}", stderr(&dry));
    let real = counting.answer(&format!("yes {}", hash(&stderr(&dry))));
    let told = stderr(&real);
    assert!(real.status.code() == Some(3) && counting.lines().is_empty(), "{told}");
    let expected = "the program would call count_toolkit.add at line 2 with arguments that are not in the approved plan; it was stopped";
    assert!(told.contains(expected), "{told}");
    let swallowing = format!(
        "said = await count_toolkit.run(command='real')\nfor _ in range(3):\n    try:\n        {}    except BaseException:\n        pass\n",
        "await count_toolkit.add(file='FILE', text=said)\n"
    );
    counting.dry_run(&swallowing);
    assert_eq!(counting.answer("yes").status.code(), Some(3));
    assert!(counting.lines().is_empty());
}

#[test]
fn what_changes_nothing_needs_no_approval_and_what_is_denied_is_not_planned() {
    let counting = Counting::with_input("first\n");
    let look = "print((await files_toolkit.read('in.txt')).text)\nawait system_toolkit.sleep(0.01)\n";
    let dry = counting.dry_run(look);
    assert_eq!((dry.status.code(), stdout(&dry).as_str()), (Some(0), "first\n\n"), "{}", stderr(&dry));
    assert!(stderr(&dry).contains(": nothing would be changed\n"), "{}", stderr(&dry));
    let raises = counting.dry_run("print('before')\n1 / 0\n");
    assert_eq!((raises.status.code(), stdout(&raises).as_str()), (Some(1), "before\n"));
    let (code, told) = counting.run(&["--dry-run", "--policy", "read-only"], PROGRAM);
    assert!(code == Some(4) && told.contains("policy denies write operations"), "{told}");
    assert!(!told.contains("effects"), "{told}");
    let both = counting.fimble(&["run", "-", "--dry-run", "--yes"], "1\n");
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn a_program_that_fails_on_a_result_nobody_knows_is_planned_up_to_there() {
    let counting = Counting::new("");
    let program = "said = await count_toolkit.run(command='real')\nfirst = said[0]\nprint(first)\n";
    let dry = counting.dry_run(program);
    let told = stderr(&dry);
    assert!(told.contains("what comes after that is not known: the program raised IndexError"), "{told}");
    let real = counting.answer("yes");
    assert_eq!((real.status.code(), stdout(&real).as_str()), (Some(0), "r\n"), "{}", stderr(&real));
}

#[test]
fn a_plan_that_is_too_large_is_none() {
    let counting = Counting::with_input("first\n");
    let program = PROGRAM.replace("FILE", counting.file().to_str().unwrap());
    for setting in ["gate.plan_effects=1", "gate.plan_kib=1"] {
        let dry =
            counting.fimble(&["-c", setting, "run", "-", "--dry-run"], &program.replace("second", &"x".repeat(800)));
        let told = stderr(&dry);
        assert!(dry.status.code() == Some(4) && told.contains("a plan has at most "), "{told}");
        assert!(counting.lines().is_empty());
    }
}

#[test]
fn the_profile_plan_asks_once_for_all_and_yes_answers_it() {
    let counting = Counting::with_input("first\n");
    let (code, told) = counting.run(&["--policy", "plan"], PROGRAM);
    assert!(code == Some(4) && told.contains("2 effects") && counting.lines().is_empty(), "{told}");
    let (code, told) = counting.run(&["--policy", "plan", "--yes"], PROGRAM);
    assert!(code == Some(0) && counting.lines().len() == 2, "{told}");

    let program = PROGRAM.replace("FILE", counting.file().to_str().unwrap());
    let events = counting.fimble(&["run", "-", "--dry-run", "--json"], &program);
    let events: Vec<serde_json::Value> =
        stdout(&events).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let plans: Vec<_> = events.iter().filter(|event| event["name"] == "plan").collect();
    assert_eq!(plans.len(), 1);
    let effects = plans[0]["value"]["effects"].as_array().unwrap();
    assert_eq!(effects[1]["arguments"]["text"], "second");
    assert!(!events.iter().any(|event| event["name"] == "print"), "what it says is said when it is so");
}

#[test]
fn an_approved_plan_is_carried_out_once_though_its_host_dies() {
    for point in ["call admitted", "call requested", "call acted", "call done", "round ended"] {
        let counting = Counting::with_input("first\n");
        counting.dry_run(PROGRAM);
        let id = counting.last_session();
        let mut command = counting.home.fimble(&["--toolkits", "toolkits", "sessions", "answer", &id, "strike 1"]);
        let died = command.env("CRASH_FIMBLE_AT", point).output().unwrap();
        assert_ne!(died.status.code(), Some(0), "{point}");
        let mut resumed = counting.fimble(&["sessions", "resume", &id], "");
        if stderr(&resumed).contains("nobody knows whether it acted") {
            resumed = counting.answer("skip");
            assert_eq!(resumed.status.code(), Some(1), "{point}: {}", stderr(&resumed));
            assert!(counting.lines().len() <= 1, "{point}");
            continue;
        }
        assert_eq!(resumed.status.code(), Some(0), "{point}: {}", stderr(&resumed));
        assert_eq!(counting.lines(), ["second"], "{point}");
    }
}
