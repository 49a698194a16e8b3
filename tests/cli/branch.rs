//! `fimble sessions fork` and `fimble sessions rewind`.

use super::{Home, described, stderr, stdout};

/// A home with a session of three rounds, and the session's id.
pub fn three_rounds() -> (Home, String) {
    let home = Home::new();
    assert_eq!(home.output(&["run", "-"], "x = 1\ny = [1, 2]\n").status.code(), Some(0));
    let list = stdout(&home.output(&["sessions", "list"], ""));
    let id = list.split_whitespace().next().unwrap().to_owned();
    for program in ["x = 2\ndel y\n", "z = x + 1\n"] {
        let output = home.output(&["run", "-", "--session", &id], program);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    (home, id)
}

#[test]
fn a_fork_has_the_variables_of_its_round_and_leaves_its_source_alone() {
    let (home, id) = three_rounds();
    let (code, printed, said) = described(&home.output(&["sessions", "fork", &id, "--at", "1"], ""));
    let fork = printed.trim_end();
    assert_eq!((code, fork.starts_with(&format!("{id}.")), said.as_str()), (Some(0), true, ""), "{printed}");
    let output = home.output(&["run", "-", "--session", fork], "print(x, y)\nx = 'own'\n");
    assert_eq!(described(&output), (Some(0), "1 [1, 2]\n".to_owned(), String::new()));
    let output = home.output(&["run", "-", "--session", &id], "print(x, z)\n");
    assert_eq!(described(&output), (Some(0), "2 3\n".to_owned(), String::new()));
    let listed = stdout(&home.output(&["sessions", "list"], ""));
    assert!(listed.lines().count() == 2 && listed.contains(fork), "{listed}");

    let latest = stdout(&home.output(&["sessions", "fork", fork], ""));
    let vars = stdout(&home.output(&["sessions", "vars", latest.trim_end()], ""));
    assert!(vars.starts_with("x: str = 'own'  (round 2"), "{vars}");
    assert_eq!(home.output(&["sessions", "delete", &id], "").status.code(), Some(0));
    let output = home.output(&["run", "-", "--session", fork], "print(x, y)\n");
    assert_eq!(described(&output), (Some(0), "own [1, 2]\n".to_owned(), String::new()));
}

#[test]
fn a_session_that_went_back_goes_on_from_there() {
    let (home, id) = three_rounds();
    let output = home.output(&["sessions", "rewind", &id, "--at", "1"], "");
    let expected = "round 4: back to round 1\n- x: int = 2  (round 2, 1 bytes)\n+ x: int = 1  (round 4, 1 bytes)\n\
                    + y: list[int] = [1, 2]  (round 4, 5 bytes)\n- z: int = 3  (round 3, 1 bytes)\n";
    assert_eq!(described(&output), (Some(0), expected.to_owned(), String::new()));
    let output = home.output(&["run", "-", "--session", &id], "print(x, y, 'z' in globals())\n");
    assert_eq!(described(&output), (Some(0), "1 [1, 2] False\n".to_owned(), String::new()));
    let vars = stdout(&home.output(&["sessions", "vars", &id, "--at", "3"], ""));
    assert!(vars.contains("z: int = 3"), "{vars}");
    // The way back wrote nothing of its own.
    let blamed = stdout(&home.output(&["sessions", "blame", &id, "y"], ""));
    assert!(blamed.contains("\nround 1  20") && blamed.contains("line 2:\n    y = [1, 2]\n"), "{blamed}");

    let undone = home.output(&["sessions", "fork", &id, "--at", "3"], "");
    let expected = "error: round 3 was undone by round 4, which went back behind it\n\n\
                    hint: name an earlier round, or one after it; `fimble sessions vars --at` still shows its variables\n";
    assert_eq!(described(&undone), (Some(2), String::new(), expected.to_owned()));
    let beyond = home.output(&["sessions", "rewind", &id, "--at", "9"], "");
    let expected = format!(
        "error: there is no round 9; the session has 5\n\nhint: `fimble sessions show {id}` lists the rounds\n"
    );
    assert_eq!(described(&beyond), (Some(2), String::new(), expected));
}

#[test]
fn a_session_that_another_process_works_in_does_not_go_back() {
    let (home, id) = three_rounds();
    let lock = home.path().join("data/fimble/fimble.locks").join(&id);
    std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
    let held = std::fs::File::create(lock).unwrap();
    held.lock().unwrap();
    let refused = home.output(&["sessions", "rewind", &id, "--at", "1"], "");
    assert_eq!((refused.status.code(), stdout(&refused).as_str()), (Some(5), ""));
    assert!(stderr(&refused).contains("another fimble is at work in this session"), "{}", stderr(&refused));
    // A fork reads what has ended.
    assert_eq!(home.output(&["sessions", "fork", &id, "--at", "1"], "").status.code(), Some(0));
    drop(held);
    assert_eq!(home.output(&["sessions", "rewind", &id, "--at", "1"], "").status.code(), Some(0));
}
