//! Limits of time and of calls, as a program meets them.

use serde_json::json;

use super::*;

/// A home with operations that take their time.
fn slow(settings: &str) -> Home {
    let home = Home::new();
    let write = |path: &str, text: &str| {
        let file = home.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    write("config/fimble/config.toml", settings);
    let manifest = "\
name = 'slow_toolkit'
description = 'Takes its time.'

[[operation]]
name = 'nap'
description = 'Sleeps that long.'
command = ['sleep', '{seconds}']
risk = 'read'
params = { seconds = 'str' }
timeout_s = 10

[[operation]]
name = 'hold'
description = 'Says that it has begun, and ends once it is let go.'
command = ['sh', '-c', 'touch begun; while [ ! -e over ]; do sleep 0.02; done']
risk = 'write'
timeout_s = 60

[[operation]]
name = 'mark'
description = 'Leaves a line, and sleeps that long.'
command = ['sh', '-c', 'echo $0 >> marks; sleep $0', '{seconds}']
risk = 'write'
params = { seconds = 'str' }

[[operation]]
name = 'change'
description = 'Changes something, after that long.'
command = ['sleep', '{seconds}']
risk = 'write'
params = { seconds = 'str' }
";
    write("toolkits/slow.toml", manifest);
    home
}

fn run(home: &Home, options: &[&str], program: &str) -> (Option<i32>, String, String) {
    let arguments = [&["--toolkits", "toolkits", "run", "-", "--yes"], options].concat();
    described(&home.output(&arguments, program))
}

#[test]
fn the_time_that_a_toolkit_takes_is_not_the_programs() {
    let program =
        "import asyncio\nawait asyncio.gather(*(slow_toolkit.nap(seconds='2.5') for _ in range(3)))\nprint('done')\n";
    let (code, stdout, stderr) = run(&slow(""), &["--timeout", "1"], program);
    assert_eq!((code, &*stdout), (Some(0), "done\n"), "{stderr}");
}

#[test]
fn a_busy_loop_beside_a_call_ends_at_the_programs_limit() {
    let program = "import asyncio\nnap = asyncio.ensure_future(slow_toolkit.nap(seconds='9'))\nawait asyncio.sleep(0.1)\n\
                   print('begun')\nwhile True: pass\n";
    let (code, stdout, stderr) = run(&slow(""), &["--timeout", "1"], program);
    assert_eq!((code, &*stdout), (Some(3), "begun\n"), "{stderr}");
    assert!(stderr.contains("the program ran longer than 1 s and was stopped"), "{stderr}");
}

#[test]
fn time_after_a_call_is_the_programs() {
    let program = "await slow_toolkit.nap(seconds='1.5')\nprint('woken')\nimport time\ntime.sleep(100)\n";
    let (code, stdout, stderr) = run(&slow(""), &["--timeout", "1"], program);
    assert_eq!((code, &*stdout), (Some(3), "woken\n"), "{stderr}");
    assert!(stderr.contains("the program ran longer than 1 s and was stopped"), "{stderr}");
}

#[test]
fn a_call_that_declares_no_time_has_the_gates() {
    let program = "\
try:
    await slow_toolkit.change(seconds='60')
except TimeoutError as error:
    print(error)
";
    let sentence = "slow_toolkit.change gave no answer within 0.5 s (hint: it may have acted all the same; look before you call \
                    it again)\n";
    let (code, stdout, stderr) = run(&slow("[gate]\ncall_timeout_s = 0.5\n"), &[], program);
    assert_eq!((code, &*stdout), (Some(0), sentence), "{stderr}");
}

#[test]
fn a_call_has_the_time_that_it_declares_and_no_more() {
    let home = slow("[gate]\ncall_timeout_s = 0.5\n");
    let file = home.path().join("toolkits/slow.toml");
    let manifest = std::fs::read_to_string(&file).unwrap().replace("timeout_s = 10", "timeout_s = 2");
    std::fs::write(file, manifest).unwrap();
    let program = "\
await slow_toolkit.nap(seconds='1')
try:
    await slow_toolkit.nap(seconds='60')
except TimeoutError as error:
    print('2 s' in str(error))
";
    let (code, stdout, stderr) = run(&home, &[], program);
    assert_eq!((code, &*stdout), (Some(0), "True\n"), "{stderr}");
}

#[test]
fn calls_over_a_limit_are_not_made_and_say_so() {
    let settings = "[gate]\nturn_s = 0.3\n[[gate.limits]]\noperations = 'slow_toolkit.nap'\nat_once = 1\n\
                    [[gate.limits]]\noperations = 'slow_toolkit.change'\nper_minute = 1\n";
    let program = "\
import asyncio
naps = await asyncio.gather(*(slow_toolkit.nap(seconds='2') for _ in range(2)), return_exceptions=True)
print([type(nap).__name__ for nap in naps], naps[1])
await slow_toolkit.nap(seconds='0')
await slow_toolkit.change(seconds='0')
try:
    await slow_toolkit.change(seconds='0')
except Unavailable as error:
    print(error)
";
    let expected = "\
['str', 'Unavailable'] slow_toolkit.nap was not called: it may have 1 call under way at once, and it waited 0.3 s for its turn \
(hint: await the ones that you have started before you start more)
slow_toolkit.change was not called: it may be called 1 times a minute, and it waited 0.3 s for its turn (hint: make fewer calls, \
or ask for more with each)
";
    let (code, stdout, stderr) = run(&slow(settings), &[], program);
    assert_eq!((code, &*stdout), (Some(0), expected), "{stderr}");
}

#[test]
fn two_processes_do_not_change_the_same_at_a_time() {
    let locks = "[gate]\nturn_s = 0.3\n[[gate.locks]]\noperations = 'slow_toolkit.hold|slow_toolkit.change'\n\
                 resource = 'the slow one'\n";
    let home = slow(locks);
    let mut command = home.fimble(&["--toolkits", "toolkits", "run", "hold.py", "--yes"]);
    std::fs::write(home.path().join("hold.py"), "await slow_toolkit.hold()\nprint('held')\n").unwrap();
    let holder = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !home.path().join("begun").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let change = "await slow_toolkit.change(seconds='0')\nprint('changed')\n";
    let (code, _, stderr) = run(&home, &[], change);
    assert_eq!(code, Some(1), "{stderr}");
    let sentence = "Unavailable: slow_toolkit.change was not called: another call has had `the slow one` for 0.3 s";
    assert!(stderr.contains(sentence), "{stderr}");
    std::fs::write(home.path().join("over"), "").unwrap();
    let held = holder.wait_with_output().unwrap();
    assert_eq!((held.status.code(), &*super::stdout(&held)), (Some(0), "held\n"), "{}", super::stderr(&held));
    let (code, stdout, stderr) = run(&home, &[], change);
    assert_eq!((code, &*stdout), (Some(0), "changed\n"), "{stderr}");
}

#[test]
fn a_number_that_makes_no_sense_is_refused_before_anything_starts() {
    let home = Home::new();
    for (setting, told) in [
        (
            "gate.task_s=-5",
            "gate.task_s: -5 is out of range\n\nhint: give a number of seconds above 0 and at most 2678400",
        ),
        (
            "gate.task_s=nan",
            "gate.task_s: NaN is out of range\n\nhint: give a number of seconds above 0 and at most 2678400",
        ),
        (
            "gate.task_look_ms=0",
            "gate.task_look_ms: 0 is out of range\n\nhint: give a whole number of milliseconds, 1 to 2678400000",
        ),
        (
            "interpreter.limits.scratch_mib=0",
            "interpreter.limits.scratch_mib: 0 is out of range\n\nhint: give a whole number of MiB, 1 to 1073741824",
        ),
        (
            "store_replicas=-1",
            "the setting `store_replicas`: invalid value: integer `-1`\n\nhint: give a whole number of replicas, 0 to 1000",
        ),
        (
            "toolkits.patience_s=x",
            "the setting `toolkits.patience_s`: invalid type: string \"x\"\n\nhint: give a whole number of seconds, 0 to 2678400",
        ),
        (
            "toolkits.http.redirects=1000",
            "toolkits.http.redirects: 1000 is out of range\n\nhint: give a whole number of redirects, 0 to 100",
        ),
        (
            "toolkits.mcp_stop_s=0",
            "toolkits.mcp_stop_s: 0 is out of range\n\nhint: give a number of seconds above 0 and at most 2678400",
        ),
        (
            "toolkits.declared=5",
            "the setting `toolkits.declared`: invalid type: integer `5`\n\nhint: give true or false",
        ),
    ] {
        let output = home.output(&["-c", setting, "run", "-"], "print(1)\n");
        let expected = (Some(2), String::new(), format!("error: {told}\n"));
        assert_eq!(described(&output), expected, "{setting}");
    }
    // Of a file, the setting is named too.
    std::fs::create_dir_all(home.path().join("config/fimble")).unwrap();
    let file = home.path().join("config/fimble/config.toml");
    std::fs::write(&file, "[[gate.limits]]\nper_minute = 5\n[[gate.limits]]\nper_minute = 0\n").unwrap();
    let (code, _, stderr) = described(&home.output(&["run", "-"], "print(1)\n"));
    let expected = format!(
        "error: {}: `gate.limits[1].per_minute`: invalid value: integer `0`\n\nhint: give a whole number of calls a minute, 1 to \
         4294967295\n",
        file.display()
    );
    assert_eq!((code, stderr), (Some(2), expected));
}

#[test]
fn a_call_that_the_program_lets_go_of_ends_there_and_not_with_the_round() {
    let home = slow("");
    let program = "\
import asyncio
try:
    await asyncio.wait_for(slow_toolkit.change(seconds='60'), 0.1)
except TimeoutError:
    print('gave up')
await slow_toolkit.nap(seconds='1')
";
    let output = home.output(&["--toolkits", "toolkits", "run", "-", "--yes", "--json"], program);
    let events: Vec<serde_json::Value> =
        stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<&serde_json::Value> =
        events.iter().filter(|event| event["type"].as_str().unwrap().starts_with("TOOL_CALL_")).collect();
    let [change, cut_off, nap, slept] = told[..] else { panic!("{}", stdout(&output)) };
    assert_eq!(
        (&change["toolCallName"], &change["toolCallId"]),
        (&json!("slow_toolkit.change"), &cut_off["toolCallId"])
    );
    assert_eq!((&nap["toolCallName"], &nap["toolCallId"]), (&json!("slow_toolkit.nap"), &slept["toolCallId"]));
    assert_eq!((&cut_off["failed"], &slept["failed"]), (&json!(true), &json!(false)));
    let end = events.iter().find(|event| event["name"] == "round_ended").unwrap();
    // One was after the other.
    let both = cut_off["durationMs"].as_f64().unwrap() + slept["durationMs"].as_f64().unwrap();
    assert!(both <= end["value"]["wall_ms"].as_f64().unwrap(), "{}", stdout(&output));

    let stats = stdout(&home.output(&["--toolkits", "toolkits", "toolkits", "stats", "--json"], ""));
    let counted: Vec<serde_json::Value> = stats.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [change, nap, _] = &counted[..] else { panic!("{stats}") };
    assert_eq!((&change["errors"], &nap["errors"]), (&json!({ "cancelled": 1 }), &json!({})), "{stats}");
    let both = change["longest_ms"].as_f64().unwrap() + nap["longest_ms"].as_f64().unwrap();
    assert!(both <= end["value"]["wall_ms"].as_f64().unwrap(), "{stats}");
}

#[test]
fn a_call_that_the_program_let_go_of_is_not_made_again_after_a_crash() {
    let home = slow("");
    let program = "\
import asyncio
try:
    await asyncio.wait_for(slow_toolkit.mark(seconds='60'), 0.3)
except TimeoutError:
    print('gave up')
await slow_toolkit.mark(seconds='0')
";
    std::fs::write(home.path().join("program.py"), program).unwrap();
    // When the end of that call is in the journal, and the round's is not.
    let mut command = home.fimble(&["--toolkits", "toolkits", "run", "program.py", "--yes"]);
    let died = command.env("CRASH_FIMBLE_AT", "call ended").stdin(Stdio::null()).output().unwrap();
    assert_eq!((died.status.code(), stdout(&died)), (None, "gave up\n".to_owned()), "{}", stderr(&died));
    let list = stdout(&home.output(&["sessions", "list"], ""));
    let session = list.split_whitespace().next().unwrap();
    let again = home.output(&["--toolkits", "toolkits", "sessions", "resume", session, "--yes"], "");
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    let marks = std::fs::read_to_string(home.path().join("marks")).unwrap();
    // The shell may not have come so far the first time.
    assert!(["60\n0\n", "0\n"].contains(&&*marks), "{marks}");
}
