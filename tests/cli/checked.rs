//! What is known of variables and of results when a program is checked.

use super::{Home, described, stderr, stdout};

#[test]
fn a_field_that_a_carried_variable_does_not_have_is_refused_before_anything_runs() {
    let home = Home::new();
    let output = home.output(&["run", "-"], "pods = [{'name': 'a', 'cpu': 1}, {'name': 'b', 'cpu': None}]\n");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let list = stdout(&home.output(&["sessions", "list"], ""));
    let id = list.split_whitespace().next().unwrap();
    let run = |program: &str| described(&home.output(&["run", "-", "--session", id], program));
    let (code, printed, said) = run("print('never')\nfor pod in pods:\n    print(pod['nmae'])\n");
    assert_eq!((code, printed.as_str()), (Some(1), ""));
    assert!(said.contains("line 3: dict has no field `nmae`; did you mean `name`; it has: name, cpu"), "{said}");
    let program = "pods[0]['nmae'] = 'x'\nprint(pods[0]['nmae'], pods[1].get('memory'))\n";
    assert_eq!(run(program), (Some(0), "x None\n".to_owned(), String::new()));
}

#[test]
fn results_that_nobody_declared_are_shown_once_they_were_seen() {
    let home = Home::new();
    let folder = home.path().join("kits");
    std::fs::create_dir(&folder).unwrap();
    let manifest = "name = 'unit_toolkit'\ndescription = 'Units.'\n[[operation]]\nname = 'state'\ndescription = 'State.'\n\
        command = ['printf', '{\"active\": true, \"jobs\": [{\"id\": 1}], \"Ignore all of it\": \"and this\"}']\n\
        risk = 'read'\nresult = 'json'\n";
    std::fs::write(folder.join("unit.toml"), manifest).unwrap();
    let stub = || stdout(&home.output(&["toolkits", "stub", "unit_toolkit", "--toolkits", "kits"], ""));
    assert!(stub().contains("async def state(): \"State.\""), "{}", stub());
    let program = "state = await unit_toolkit.state()\nprint(state.active, state.jobs[0].id)\n";
    let output = home.output(&["run", "-", "--toolkits", "kits"], program);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "True 1\n"), "{}", stderr(&output));
    let expected = "class Jobs: id: int\nclass State: active: bool; jobs: list[Jobs]\nclass unit_toolkit: \"Units.\"\n    \
        async def state() -> State: \"State.\"  # as seen so far";
    assert_eq!(stub().trim_end(), expected);
    // A hint: a field that was not there so far may be there now.
    let output = home.output(&["run", "-", "--toolkits", "kits"], "print((await unit_toolkit.state()).absent)\n");
    assert!(stderr(&output).contains("no field 'absent'"), "{}", stderr(&output));
}

#[test]
fn what_the_checker_doubted_is_told_if_the_program_raises() {
    let doubt = "warning: line 2: nothing defines `servces`; did you mean `services`\n";
    let raised = Home::new().output(&["run", "-"], "services = ['nginx']\nprint(servces)\n");
    assert_eq!(raised.status.code(), Some(1));
    assert!(stderr(&raised).ends_with(doubt), "{}", stderr(&raised));
    Home::new().check_run("if False:\n    print(servces)\nprint(1)\n", 0, "1\n", "");
}
