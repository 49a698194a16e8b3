//! Hooks from the configuration: who may set them, what `doctor` says of them, and a program under them.

use super::*;

fn configured(settings: &str) -> Home {
    let home = Home::new();
    let folder = home.path().join("config/fimble");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), settings).unwrap();
    home
}

#[test]
fn a_program_meets_the_hooks_of_its_user() {
    let home = configured(
        "[[gate.hooks.PreToolUse]]\nmatcher = 'host_toolkit.*'\n\
         command = ['sh', '-c', 'cat > call.json; echo no machines >&2; exit 2']\n\
         [[gate.hooks.SessionStart]]\ncommand = ['sh', '-c', 'cat > start.json']\n\
         [[gate.hooks.SessionEnd]]\ncommand = ['sh', '-c', 'cat > end.json; exit 1']\n",
    );
    let program = "try:\n    await host_toolkit.cpu()\nexcept Exception as error:\n    print(error)\n";
    let output = home.output(&["run", "-"], program);
    assert_eq!((output.status.code(), &*stdout(&output)), (Some(4), ""), "{}", stderr(&output));
    let refused = "Denied: host_toolkit.cpu was not called: a hook refused it: no machines\n";
    assert!(stderr(&output).contains(refused), "{}", stderr(&output));
    let hint = "\nhint: `fimble doctor` lists your hooks; change the program, or what the hook refuses\n";
    assert!(stderr(&output).ends_with(hint), "{}", stderr(&output));
    assert!(stderr(&output).contains("hook: the SessionEnd hook failed: `sh` ended with exit status: 1"));
    let told = |name: &str| std::fs::read_to_string(home.path().join(name)).unwrap();
    let (start, end) = (told("start.json"), told("end.json"));
    assert!(
        start.contains("\"source\":\"startup\"") && start.contains("\"hook_event_name\":\"SessionStart\""),
        "{start}"
    );
    assert!(end.contains("\"reason\":\"exit\"") && end.contains("\"session_id\":\""), "{end}");
    let call: serde_json::Value = serde_json::from_str(&told("call.json")).unwrap();
    assert!(call["trace"].as_str().is_some_and(|trace| !trace.is_empty()), "{call}");
    let call = home.output(&["toolkits", "call", "host_toolkit", "memory"], "");
    assert!(
        call.status.code() == Some(4) && stderr(&call).contains("a hook refused it: no machines"),
        "{}",
        stderr(&call)
    );
}

#[test]
fn doctor_lists_hooks_and_names_those_that_cannot_run() {
    let home = configured(
        "[[gate.hooks.PreToolUse]]\nmatcher = 'git_toolkit.*'\ncommand = ['sh', '-c', 'true']\n\
         [[gate.hooks.Stop]]\ncommand = ['no-such-hook']\ntimeout_s = 3\n",
    );
    let text = stdout(&home.output(&["doctor"], ""));
    assert!(text.contains("ok    hook PreToolUse: `sh -c true` for git_toolkit.*, at most 10 s\n"), "{text}");
    assert!(text.contains("FAIL  hook Stop: `no-such-hook` is no program that can be run\n"), "{text}");
    assert!(text.contains("hint: correct `command` in `[[gate.hooks.Stop]]`\n"), "{text}");
}

#[test]
fn a_project_brings_no_hooks() {
    let home = Home::new();
    std::fs::create_dir(home.path().join(".fimble")).unwrap();
    let settings = "[[gate.hooks.SessionStart]]\ncommand = ['touch', 'ran']\n";
    std::fs::write(home.path().join(".fimble/config.toml"), settings).unwrap();
    let output = home.output(&["run", "-"], "print(1)");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("a project may not set `gate.hooks`"), "{}", stderr(&output));
    assert!(!home.path().join("ran").exists());
}
