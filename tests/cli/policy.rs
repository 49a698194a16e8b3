//! What may happen unasked: rules, profiles, analysers, what was said `always` to, and denials that no program gets around.

use super::*;

/// A toolkit that counts in a file, and one that runs what it is told.
const MANIFEST: &str = r#"
name = "count_toolkit"
description = "Counts in a file."

[[operation]]
name = "add"
description = "Adds a line."
command = ["sh", "-c", "echo \"$1\" >> \"$0\"", "{file}", "{text}"]
risk = "write"
params = { file = "str", text = "str" }

[[operation]]
name = "run"
description = "Says what it was told."
command = ["echo", "{command}"]
risk = "write"
params = { command = "str" }

[[operation]]
name = "wipe"
description = "Removes the file."
command = ["rm", "-f", "{file}"]
risk = "destructive"
params = { file = "str" }
"#;

pub(super) struct Counting {
    pub(super) home: Home,
}

impl Counting {
    /// With this in the user's configuration.
    pub(super) fn new(settings: &str) -> Self {
        let home = Home::new();
        std::fs::create_dir_all(home.path().join("config/fimble")).unwrap();
        std::fs::create_dir(home.path().join("toolkits")).unwrap();
        std::fs::write(home.path().join("toolkits/count.toml"), MANIFEST).unwrap();
        std::fs::write(home.path().join("config/fimble/config.toml"), settings).unwrap();
        Self { home }
    }

    pub(super) fn fimble(&self, arguments: &[&str], input: &str) -> Output {
        self.home.output(&[&["--toolkits", "toolkits"], arguments].concat(), input)
    }

    /// The exit code and standard error of a program.
    pub(super) fn run(&self, arguments: &[&str], program: &str) -> (Option<i32>, String) {
        let program = program.replace("FILE", self.file().to_str().unwrap());
        let output = self.fimble(&[&["run", "-"], arguments].concat(), &program);
        (output.status.code(), stderr(&output))
    }

    pub(super) fn file(&self) -> std::path::PathBuf {
        self.home.path().join("counted")
    }

    fn counted(&self) -> usize {
        std::fs::read_to_string(self.file()).unwrap_or_default().lines().count()
    }

    pub(super) fn last_session(&self) -> String {
        let list = stdout(&self.fimble(&["sessions", "list"], ""));
        list.split_whitespace().next().unwrap().to_owned()
    }

    /// What standard output says, or the error.
    pub(super) fn said(&self, arguments: &[&str]) -> String {
        let output = self.fimble(arguments, "");
        format!("{}{}", stdout(&output), stderr(&output))
    }
}

const ADD: &str = "await count_toolkit.add(file='FILE', text='x')\n";

#[test]
fn a_denial_ends_the_round_whatever_the_program_catches() {
    let counting = Counting::new("[gate.policy]\nprofile = 'read-only'\n");
    for (program, end) in [
        (format!("try:\n    {ADD}except Exception:\n    pass\nprint('on')\n"), "raised: "),
        (format!("try:\n    {ADD}except:\n    pass\nprint('on')\n"), "stopped: denied"),
        (format!("try:\n    {ADD}except BaseException:\n    raise ValueError('own')\n"), "stopped: denied"),
        (format!("try:\n    {ADD}finally:\n    {ADD}"), "raised: "),
        (format!("import contextlib\nwith contextlib.suppress(BaseException):\n    {ADD}"), "stopped: denied"),
        (
            "import asyncio\nx = await asyncio.gather(count_toolkit.add(file='FILE', text='x'), host_toolkit.cpu(), \
             return_exceptions=True)\n"
                .to_owned(),
            "stopped: denied",
        ),
        (
            format!(
                "import asyncio\nasync def add():\n    {ADD}task = asyncio.create_task(add())\nawait asyncio.sleep(0.2)\n"
            ),
            "stopped: denied",
        ),
        (
            format!(
                "import asyncio\nasync def add():\n    {ADD}async with asyncio.TaskGroup() as group:\n    group.create_task(add())\n"
            ),
            "stopped: denied",
        ),
        (
            "import threading\ndef add():\n    count_toolkit.add(file='FILE', text='x').result()\n\
             thread = threading.Thread(target=add)\nthread.start()\nthread.join()\nprint('on')\n"
                .to_owned(),
            "stopped: denied",
        ),
        // It would never end by itself.
        (format!("while True:\n    try:\n        {ADD}    except BaseException:\n        pass\n"), "stopped: denied"),
        (format!("try:\n    {ADD}except:\n    while True: pass\n"), "stopped: denied"),
    ] {
        let (code, told) = counting.run(&["--timeout", "300"], &program);
        assert_eq!((code, counting.counted()), (Some(4), 0), "{program}\n{told}");
        assert!(
            told.contains("policy denies write operations, so count_toolkit.add was not called"),
            "{program}\n{told}"
        );
        let shown = counting.said(&["sessions", "show", &counting.last_session()]);
        assert!(shown.contains(end), "{program}\n{shown}");
    }
}

#[test]
fn rules_decide_before_the_profile_and_yes_lifts_no_denial() {
    let counting = Counting::new(
        "[[gate.policy.rules]]\noperation = 'count_toolkit.add'\narguments = { text = 'no*' }\ndecision = 'deny'\n\
         because = 'it says no'\n[[gate.policy.rules]]\noperation = 'count_toolkit'\narguments = { text = 'go*' }\n\
         decision = 'allow'\n",
    );
    let add = |text: &str| format!("await count_toolkit.add(file='FILE', text='{text}')\n");
    assert_eq!(counting.run(&[], &add("go on")).0, Some(0));
    let (code, told) = counting.run(&["--yes"], &add("no way"));
    let denied = "rule 1 of the policy says deny (it says no), so count_toolkit.add was not called";
    assert!(code == Some(4) && told.contains(denied), "{told}");
    assert_eq!((counting.run(&[], &add("well")).0, counting.run(&["--yes"], &add("well")).0), (Some(4), Some(0)));
    let (code, told) = counting.run(&["--policy", "read-only", "--yes"], &add("go on"));
    assert!(code == Some(4) && told.contains("policy denies write operations"), "{told}");
    assert_eq!(counting.run(&["--policy", "auto"], &add("well")).0, Some(0));
    assert_eq!(counting.run(&["--policy", "auto"], "await count_toolkit.wipe(file='FILE')\n").0, Some(4));
    assert_eq!(counting.counted(), 3);

    let list = counting.said(&["policy"]);
    for line in [
        "profile ask: read allow, write ask, destructive ask\n",
        "rule 1: deny count_toolkit.add where text is \"no*\": it says no\n",
        "rule 2: allow count_toolkit where text is \"go*\"\n",
        "analysers: secrets deny, credentials ask, commands ask, sql ask, wildcards ask, rating ask\n",
    ] {
        assert!(list.contains(line), "{list}");
    }
    assert!(
        counting
            .said(&["policy", "--policy", "auto"])
            .contains("profile auto: read allow, write allow, destructive ask\n")
    );
    for (arguments, expected) in [
        (&["count_toolkit.add", "text=no"][..], "deny\nwrite operation: rule 1 of the policy says deny (it says no)\n"),
        (&["count_toolkit.add", "text=going"], "allow\nwrite operation: rule 2 of the policy says allow\n"),
        (&["count_toolkit.wipe"], "ask\ndestructive operation: the profile `ask` says ask\n"),
        (&["host_toolkit.cpu"], "allow\nread operation: the profile `ask` says allow\n"),
        (
            &["count_toolkit.run", "command=sudo rm -rf /"],
            "ask\nwrite operation: the profile `ask` says ask\ncommands says ask: it would remove a whole tree of files\n",
        ),
    ] {
        assert_eq!(counting.said(&[&["policy", "check"], arguments].concat()), expected);
    }
    let unknown = counting.fimble(&["policy", "check", "count_toolkit.ad"], "");
    assert!(unknown.status.code() == Some(2) && stderr(&unknown).contains("add"), "{}", stderr(&unknown));
}

#[test]
fn a_mistyped_rule_stops_everything_and_says_where_it_is() {
    let counting = Counting::new("[[gate.policy.rules]]\noperation = 'x_toolkit'\ndecision = 'alow'\n");
    let (code, told) = counting.run(&[], "print('never')\n");
    let file = counting.home.path().join("config/fimble/config.toml");
    let expected = format!(
        "error: {}: rule 1 of `gate.policy.rules`: unknown variant `alow`, expected one of `allow`, `ask`, `deny`\n\nhint: a rule",
        file.display()
    );
    assert!(code == Some(2) && told.starts_with(&expected), "{told}");
    let unknown = counting.home.output(&["run", "-", "--policy", "autp"], "1\n");
    assert!(
        stderr(&unknown).contains("there is no policy `autp`; there are read-only, ask, auto, plan"),
        "{}",
        stderr(&unknown)
    );
    std::fs::write(&file, "[[gate.policy.rules]]\noperation = 'x_toolkit'\ndecision = 'allow'\n").unwrap();
    let list = counting.said(&["policy", "list"]);
    assert!(list.contains("warning: rule 1 is about no operation that there is: `x_toolkit`"), "{list}");
}

#[test]
fn what_was_said_always_to_is_not_asked_again_until_it_is_revoked() {
    use std::os::unix::fs::PermissionsExt;
    let counting = Counting::new("");
    let answer = |said: &str| counting.fimble(&["sessions", "answer", &counting.last_session(), said], "");
    assert_eq!(counting.run(&[], ADD).0, Some(4), "it is asked");
    let wrong = answer("always file=/nowhere/*");
    assert!(wrong.status.code() == Some(2), "{wrong:?}");
    assert!(stderr(&wrong).contains("error: these patterns do not fit this call\n"), "{}", stderr(&wrong));
    assert_eq!(answer("always").status.code(), Some(0));
    assert_eq!(counting.counted(), 1);

    let (code, told) = counting.run(&[], ADD);
    assert_eq!((code, counting.counted()), (Some(0), 2), "{told}");
    let list = counting.said(&["policy", "list"]);
    let id = list.lines().find(|line| line.contains("count_toolkit.add(")).unwrap().split(' ').next().unwrap();
    assert!(
        told.contains(&format!("~ count_toolkit.add is allowed by what was said before (`fimble policy revoke {id}`)")),
        "{told}"
    );
    let other = "await count_toolkit.add(file='FILE', text='y')\n";
    assert_eq!(counting.run(&[], other).0, Some(4), "other arguments are asked for");
    assert_eq!(answer("always 'text=[xyz]'").status.code(), Some(0));
    assert_eq!(counting.run(&[], &other.replace("'y'", "'z'")).0, Some(0));
    assert_eq!(counting.counted(), 4);
    // Neither a refusal nor something graver is lifted by it.
    assert_eq!(counting.run(&["--policy", "read-only"], ADD).0, Some(4));
    let rated = format!("# risk: destructive\n{}", other.replace("'y'", "'z'"));
    let (code, told) = counting.run(&[], &rated);
    assert!(
        code == Some(4) && told.contains("it is rated `risk: destructive` by the program itself (rating)"),
        "{told}"
    );

    let file = counting.home.path().join("data/fimble/approvals.json");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let unknown = counting.fimble(&["policy", "revoke", "nothing"], "");
    assert!(unknown.status.code() == Some(2) && stderr(&unknown).contains("nothing is remembered as `nothing`"));
    assert!(counting.said(&["policy", "revoke", id]).starts_with(&format!("{id}  count_toolkit.add(")));
    assert_eq!(counting.run(&[], ADD).0, Some(0), "the pattern still allows it");
    counting.said(&["policy", "revoke", "--all"]);
    assert_eq!(counting.run(&[], ADD).0, Some(4), "it is asked again");
    assert!(!counting.said(&["policy"]).contains("said `always` to"));
    assert_eq!(counting.counted(), 5);
}

#[test]
fn what_is_destructive_is_allowed_for_always_only_exactly() {
    let counting = Counting::new("");
    assert_eq!(counting.run(&[], "await count_toolkit.wipe(file='FILE')\n").0, Some(4));
    let answer = |said: &str| counting.fimble(&["sessions", "answer", &counting.last_session(), said], "");
    for said in ["always any", "always file=*"] {
        let refused = answer(said);
        assert!(refused.status.code() == Some(2), "{refused:?}");
        assert!(stderr(&refused).contains("only with exactly these arguments"), "{}", stderr(&refused));
    }
    assert_eq!(answer("always").status.code(), Some(0));
    assert_eq!(counting.run(&[], "await count_toolkit.wipe(file='FILE')\n").0, Some(0));
    assert_eq!(counting.run(&[], "await count_toolkit.wipe(file='FILE2')\n").0, Some(4));
}

#[test]
fn analysers_stop_what_the_policy_would_let_pass() {
    let counting = Counting::new("[gate.policy]\nwrite = 'allow'\n[gate.analysers]\nsql = 'deny'\n");
    let run = |command: &str| counting.run(&[], &format!("await count_toolkit.run(command='{command}')\n"));
    assert_eq!(run("ls").0, Some(0));
    let (code, told) = run("sudo rm -rf /");
    assert!(code == Some(4), "{told}");
    assert!(told.contains("it would remove a whole tree of files (commands)"), "{told}");
    let (code, told) = run("DELETE FROM users");
    let denied = "count_toolkit.run would delete all rows of a table (`DELETE` without `WHERE`), so it was not called";
    assert!(code == Some(4) && told.contains(denied), "{told}");
    let mut command = counting.home.fimble(&["--toolkits", "toolkits", "run", "-", "--yes"]);
    command.env("SHOP_API_KEY", "sk-very-secret").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"await count_toolkit.run(command='echo sk-very-secret')\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(stderr(&output).contains("would send a secret of this host in `command`"), "{}", stderr(&output));
}

#[test]
fn a_project_may_not_set_the_analysers() {
    let counting = Counting::new("");
    std::fs::create_dir(counting.home.path().join(".fimble")).unwrap();
    std::fs::write(counting.home.path().join(".fimble/config.toml"), "[gate.analysers]\nsql = 'off'\n").unwrap();
    let (code, told) = counting.run(&[], "1\n");
    assert!(code == Some(2) && told.contains("a project may not set `gate.analysers`"), "{told}");
}

#[test]
fn a_call_that_the_program_rates_as_grave_is_asked_for_and_says_so() {
    let counting = Counting::new("");
    let program = "\
await count_toolkit.add(file='FILE', text='a')
# The old ones are lost.
# risk: destructive
await count_toolkit.add(
    file='FILE',
    text='b',
)
"
    .replace("FILE", counting.file().to_str().unwrap());
    let output = counting.fimble(&["run", "-", "--policy", "auto", "--json"], &program);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    let events = stdout(&output);
    let events = events.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let calls: Vec<_> = events.filter(|event| event["type"] == "TOOL_CALL_CHUNK").collect();
    let ratings: Vec<_> = calls.iter().map(|call| call["rating"].as_str()).collect();
    assert_eq!(ratings, [None, Some("destructive")], "{calls:?}");
    let id = calls[0]["session"].as_str().unwrap();
    let waits = stderr(&counting.fimble(&["sessions", "answer", id, "perhaps"], ""));
    assert!(waits.contains("is rated `risk: destructive` by the program itself (rating)"), "{waits}");
}
