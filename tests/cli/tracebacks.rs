//! What ends a program is seen, however long its traceback is.

use super::*;

const RECURSION: &str = "rec = {'a': 1}\ndef down(number):\n    return up(number + 1) + len(rec)\n\
    def up(number):\n    return down(number + 1) + len(rec)\ndown(0)\n";

const GROUP: &str = "import asyncio\n\
    async def fail(number):\n    await asyncio.sleep(0)\n    raise ValueError(f'task {number}')\n\
    async def go():\n    async with asyncio.TaskGroup() as tasks:\n        for number in range(3):\n            \
    tasks.create_task(fail(number))\n\
    await go()\n";

#[test]
fn a_long_traceback_is_cut_in_its_middle() {
    let home = Home::new();
    let cases = [
        (RECURSION, "RecursionError: maximum recursion depth exceeded", "Traceback (most recent call last):"),
        (GROUP, "ValueError: task 2", "ExceptionGroup: unhandled errors in a TaskGroup (3 sub-exceptions)"),
    ];
    for (program, end, beginning) in cases {
        let output = home.output(&["run", "-"], program);
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(end) && told.contains(beginning) && told.contains(" more lines"), "{told}");
        assert!(!told.trim_end().ends_with("more lines"), "{told}");
        assert!(told.lines().count() < 20, "{told}");
    }
}

#[test]
fn a_session_is_shown_with_the_exception_of_each_round() {
    let home = Home::new();
    let value = "rec = {'a': 1}\nprint(rec['b'])\n";
    for program in [value, RECURSION, GROUP] {
        assert_eq!(home.output(&["run", "-"], program).status.code(), Some(1));
    }
    let list = stdout(&home.output(&["sessions", "list"], ""));
    let ids = list.lines().filter_map(|line| line.split_whitespace().next().filter(|id| id.len() == 36));
    let shown: Vec<String> = ids.map(|id| stdout(&home.output(&["sessions", "show", id], ""))).collect();
    let raised = ["KeyError: 'b'", "RecursionError: maximum recursion", "ExceptionGroup: unhandled errors in a Tas"];
    for exception in raised {
        let line = format!("raised: {exception}");
        assert_eq!(shown.iter().filter(|shown| shown.contains(&line)).count(), 1, "{line}\n{shown:#?}");
    }

    // They are counted by it, too.
    let stats = home.output(&["toolkits", "stats", "--json"], "");
    let counted = stdout(&stats);
    for class in ["\"KeyError\":1", "\"RecursionError\":1", "\"ExceptionGroup\":1"] {
        assert!(counted.contains(class), "{counted}");
    }
}

#[test]
fn a_note_that_looks_like_an_exception_is_not_counted_as_one() {
    let home = Home::new();
    let program = "error = ValueError('wrong')\nerror.add_note('Note: see the log')\nraise error\n";
    assert_eq!(home.output(&["run", "-"], program).status.code(), Some(1));
    let counted = stdout(&home.output(&["toolkits", "stats", "--json"], ""));
    assert!(counted.contains("\"errors\":{\"ValueError\":1}"), "{counted}");
}
