//! Operations of manifests, run with real commands: values that try to be more than values, results, failures, ends.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use fimble_manifest::Manifest;
use fimble_toolkit::{Call, ErrorKind, SessionContext, ToolError, Toolkit};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const DEADLINE: Duration = Duration::from_secs(20);

fn call_of(operation: &str, arguments: Value, cancellation: CancellationToken) -> Call {
    Call {
        operation: operation.to_owned(),
        arguments: arguments.as_object().cloned().unwrap(),
        key: String::new(),
        context: SessionContext::default(),
        cancellation,
    }
}

/// A manifest with one operation `run`, a write, of these lines.
fn manifest(folder: &Path, lines: &str) -> Manifest {
    let path = folder.join("test.toml");
    let risk = if lines.contains("risk =") { "" } else { "risk = 'write'\n" };
    let head = "name = 'test_toolkit'\ndescription = 'A test.'\n[[operation]]\nname = 'run'\ndescription = 'Runs.'\n";
    fs::write(&path, format!("{head}{risk}{lines}")).unwrap();
    Manifest::read(&path).unwrap()
}

async fn run(lines: &str, arguments: Value) -> Result<Value, ToolError> {
    let folder = TempDir::new().unwrap();
    run_in(folder.path(), lines, arguments).await
}

async fn run_in(folder: &Path, lines: &str, arguments: Value) -> Result<Value, ToolError> {
    manifest(folder, lines).call(call_of("run", arguments, CancellationToken::new())).await
}

const HOSTILE: [&str; 12] = [
    "; rm -rf /tmp/nothing",
    "a b  c",
    "it's",
    "\"quoted\"",
    "$(id)",
    "`id`",
    "${HOME}",
    "a\nb",
    "* ? ~ [a]",
    "'\"$(id)\"'",
    "\\",
    "{value}",
];

#[tokio::test]
async fn a_value_is_one_argument_whatever_is_in_it() {
    for value in HOSTILE {
        let whole =
            run("command = ['printf', '<%s>', '{value}', 'end']\nparams.value = 'str'", json!({"value": value}));
        assert_eq!(whole.await, Ok(json!(format!("<{value}><end>"))), "{value}");
        let part = run("command = ['printf', '<%s>', 'a={value}.']\nparams.value = 'str'", json!({"value": value}));
        assert_eq!(part.await, Ok(json!(format!("<a={value}.>"))), "{value}");
    }
    let empty = run("command = ['printf', '<%s>', '{value}']\nparams.value = 'str'", json!({"value": ""}));
    assert_eq!(empty.await, Ok(json!("<>")));
}

#[tokio::test]
async fn a_value_in_a_script_is_quoted() {
    for shell in ["'sh', '-c'", "'bash', '-euo', 'pipefail', '-c'", "'env', 'dash', '-c'"] {
        let lines = format!("command = [{shell}, 'printf \"<%s>\" {{value}} x={{value}}']\nparams.value = 'str'");
        for value in HOSTILE {
            let expected = json!(format!("<{value}><x={value}>"));
            assert_eq!(run(&lines, json!({"value": value})).await, Ok(expected), "{shell} {value}");
        }
    }
}

#[tokio::test]
async fn a_value_is_no_code_even_where_the_quotes_are_not_what_they_seem() {
    let folder = TempDir::new().unwrap();
    for (script, expected) in [
        (r#"echo "$(echo "{value}")""#, "$(touch code)`touch code`"),
        ("cat <<END\n{value}\nEND", "\"$(touch code)`touch code`\""),
        ("cat <<END # '\n{value}\nEND", "\"$(touch code)`touch code`\""),
    ] {
        let lines = format!("command = ['sh', '-c', '''{script}''']\ncwd = '.'\nparams.value = 'str'");
        let answer = run_in(folder.path(), &lines, json!({"value": "$(touch code)`touch code`"})).await;
        assert_eq!(answer, Ok(json!(expected)), "{script}");
        assert!(!folder.path().join("code").exists(), "{script}");
    }
}

#[tokio::test]
async fn a_script_keeps_its_own_variables_and_arguments() {
    let lines = r#"
        command = ["sh", "-c", "printf '<%s>' ${1} {items} {absent} \\{one} $0", "name", "{one}"]
        params = { items = "list", one = "str", absent = { type = "str", required = false } }
    "#;
    let arguments = json!({"items": ["a b", "$(id)", ""], "one": "x"});
    assert_eq!(run(lines, arguments).await, Ok(json!("<x><a b><$(id)><><><{one}><name>")));
}

#[tokio::test]
async fn values_of_every_type_become_text() {
    let lines = r#"
        command = ["printf", "<%s>", "{text}", "{whole}", "{number}", "{number}", "--on={on}", "{many}", "x{absent}", "{preset}"]
        [operation.params]
        text = "str"
        whole = "int"
        number = "float"
        on = "bool"
        many = "list"
        absent = { type = "str", required = false }
        preset = { type = "int", default = -5 }
    "#;
    let arguments = json!({"text": "t", "whole": 7, "number": 1e20, "on": true, "many": ["a b", "c"]});
    assert_eq!(
        run(lines, arguments).await,
        Ok(json!("<t><7><100000000000000000000><100000000000000000000><--on=true><a b><c><-5>"))
    );
}

#[tokio::test]
async fn a_value_does_not_become_an_option_unasked() {
    let refusal = |name: &str| {
        Err(ToolError::invalid_argument(format!(
            "argument `{name}` begins with `-`, which the program would read as an option"
        ))
        .with_hint("give a value without the dash; of a file in the current folder, write `./-name`"))
    };
    for (command, kind, value, name) in [
        ("['echo', '{v}']", "'str'", json!("-n"), "v"),
        ("['echo', '{v}.']", "'str'", json!("--help"), "v"),
        ("['echo', '{v}']", "'int'", json!(-1), "v"),
        ("['echo', '{v}']", "'float'", json!(-0.5), "v"),
        ("['echo', '{v}']", "'list'", json!(["a", "-n"]), "v"),
        ("['sh', '-c', 'echo {v}']", "'str'", json!("-n"), "v"),
        ("['sh', '-c', 'echo $1', 'sh', '{v}']", "'str'", json!("-n"), "v"),
    ] {
        let answer = run(&format!("command = {command}\nparams.v = {kind}"), json!({"v": value})).await;
        assert_eq!(answer, refusal(name), "{command} {value}");
    }
    let second = run("command = ['echo', '{a}{b}']\nparams = {a = 'str', b = 'str'}", json!({"a": "", "b": "-n"}));
    assert_eq!(second.await, refusal("b"));
    for (command, kind, value, expected) in [
        ("['printf', '%s', 'x{v}']", "'str'", json!("-n"), "x-n"),
        ("['printf', '%s', '{v}']", "{type = 'str', allow_dash = true}", json!("-n"), "-n"),
        ("['printf', '%s', '{v}']", "{type = 'str', choices = ['-n', 'x']}", json!("-n"), "-n"),
    ] {
        let answer = run(&format!("command = {command}\nparams.v = {kind}"), json!({"v": value})).await;
        assert_eq!(answer, Ok(json!(expected)), "{command} {value}");
    }
}

#[tokio::test]
async fn an_argument_that_does_not_fit_is_refused() {
    let one = |kind: &str| format!("command = ['echo', '{{v}}']\nparams.v = {kind}");
    for (kind, arguments, expected) in [
        ("'str'", json!({}), "argument `v` is missing"),
        ("'str'", json!({"v": null}), "argument `v` is missing"),
        ("'str'", json!({"v": 1}), "argument `v` must be str, not 1"),
        ("'int'", json!({"v": 1.5}), "argument `v` must be int, not 1.5"),
        ("'list'", json!({"v": ["a", 1]}), r#"argument `v` must be list[str], not ["a",1]"#),
        ("'str'", json!({"v": "a\0b"}), "argument `v` has a NUL character in it, which nothing can take"),
        ("'list'", json!({"v": ["a", "\0"]}), "argument `v` has a NUL character in it, which nothing can take"),
        ("{type = 'str', choices = ['a', 'b']}", json!({"v": "c"}), r#"argument `v` must be one of "a", "b", not "c""#),
        (
            "{type = 'list', choices = ['a', 'b']}",
            json!({"v": ["a", "c"]}),
            r#"argument `v` must be one of "a", "b", not ["a","c"]"#,
        ),
    ] {
        let refused = Err(ToolError::invalid_argument(expected));
        assert_eq!(run(&one(kind), arguments).await, refused, "{kind}");
    }
    let long = run(&one("'str'"), json!({"v": "x".repeat(200 * 1024)})).await;
    assert_eq!(
        long,
        Err(ToolError::invalid_argument("the arguments are longer than `echo` can be started with")
            .with_hint("pass less, in several calls"))
    );
}

#[tokio::test]
async fn each_result_kind_is_read() {
    for (result, script, expected) in [
        ("text", r"a  b\n\nc\n", json!("a  b\n\nc")),
        ("lines", r"a\nb\n", json!(["a", "b"])),
        ("json", r#"{"a": [1, null]}\n"#, json!({"a": [1, null]})),
        ("table", r"NAME  STATE\nx y   up\n", json!([{"NAME": "x y", "STATE": "up"}])),
    ] {
        let lines = format!("command = ['printf', '{script}']\nresult = '{result}'");
        assert_eq!(run(&lines, json!({})).await, Ok(expected), "{result}");
    }
    assert_eq!(
        run("command = ['echo', 'oops']\nresult = 'json'", json!({})).await,
        Err(ToolError::failed("`echo` did not write the JSON it promised: expected value at line 1 column 1"))
    );
}

#[tokio::test]
async fn a_failed_command_says_why() {
    for (script, expected) in [
        (r"echo out; echo why >&2; exit 3", "`sh` ended with exit code 3: why"),
        (r"echo inactive; exit 3", "`sh` ended with exit code 3: inactive"),
        (r"exit 1", "`sh` ended with exit code 1 and said nothing"),
        (r"kill -9 $$", "`sh` was ended by signal 9 and said nothing"),
        (r"printf ''\033[31mred'' >&2; exit 1", "`sh` ended with exit code 1: [31mred"),
    ] {
        let lines = format!("command = ['sh', '-c', '''{}''']", script.replace("''", "\""));
        assert_eq!(run(&lines, json!({})).await, Err(ToolError::failed(expected)), "{script}");
    }
    let long = run("command = ['sh', '-c', 'yes | head -c 100000 >&2; printf end >&2; exit 1']", json!({})).await;
    let message = long.unwrap_err().message;
    assert!(message.starts_with("`sh` ended with exit code 1: …") && message.ends_with("\ny\nend"), "{message}");
    assert!(message.len() < 1_100, "{}", message.len());
}

#[tokio::test]
async fn a_program_or_folder_that_is_not_there_is_unavailable() {
    let unavailable = |reason: &str| ToolError::unavailable(reason).with_hint("do it another way, or tell the user");
    assert_eq!(
        run("command = ['no-such-program']", json!({})).await,
        Err(unavailable("the program `no-such-program` is not on this machine"))
    );
    assert_eq!(
        run("command = ['/etc/passwd']", json!({})).await,
        Err(unavailable("the program `/etc/passwd` cannot be started: Permission denied (os error 13)"))
    );
    assert_eq!(
        run("command = ['true']\ncwd = '/no/such'", json!({})).await,
        Err(unavailable("`/no/such`, the folder to run `true` in, is not there"))
    );
}

#[tokio::test]
async fn folder_and_program_may_lie_beside_the_manifest() {
    let folder = TempDir::new().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir(root.join("inner")).unwrap();
    std::os::unix::fs::symlink("/bin/pwd", root.join("where")).unwrap();
    let answer = run_in(&root, "command = ['./where', '-P']\ncwd = 'inner'", json!({})).await;
    assert_eq!(answer, Ok(json!(root.join("inner"))));
}

#[tokio::test]
async fn a_command_sees_only_the_environment_that_is_named() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("test.toml");
    let text = "name = 't'\ndescription = ''\nenvironment = ['CARGO_PKG_NAME', 'NO_SUCH_VARIABLE']\n[[operation]]\n\
        name = 'run'\ndescription = ''\nrisk = 'read'\nresult = 'lines'\ncommand = ['env']\n";
    fs::write(&path, text).unwrap();
    let names = Manifest::read(&path).unwrap().call(call_of("run", json!({}), CancellationToken::new())).await.unwrap();
    let names =
        names.as_array().unwrap().iter().map(|line| line.as_str().unwrap().split('=').next().unwrap().to_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    let mut expected = vec!["CARGO_PKG_NAME".to_owned()];
    expected.extend(["HOME", "LANG", "PATH"].iter().filter(|name| std::env::var_os(name).is_some()).map(|&n| n.into()));
    assert_eq!(names, expected);
}

#[tokio::test]
async fn too_much_output_stops_a_read_and_is_told_after_a_write() {
    let read = run("command = ['yes']\nrisk = 'read'\noutput_kib = 4", json!({})).await;
    assert_eq!(
        read,
        Err(ToolError::failed("`yes` wrote more than the 4 KiB allowed and was stopped")
            .with_hint("ask for less: a limit, a range or a filter"))
    );
    let folder = TempDir::new().unwrap();
    let lines = "command = ['sh', '-c', 'yes | head -c 300000; echo > done']\noutput_kib = 4\ncwd = '.'";
    let write = run_in(folder.path(), lines, json!({})).await;
    assert_eq!(
        write,
        Err(ToolError::failed("`sh` ran to its end but wrote 300000 bytes, more than the 4 KiB allowed")
            .with_hint("what it does is done; do not repeat it for its output"))
    );
    assert!(folder.path().join("done").exists());
    let exact = run("command = ['head', '-c', '4096', '/dev/zero']\nrisk = 'read'\noutput_kib = 4", json!({})).await;
    assert_eq!(exact, Ok(json!("\0".repeat(4096))));
}

#[tokio::test]
async fn a_command_has_no_standard_input() {
    assert_eq!(run("command = ['cat']\ntimeout_s = 20", json!({})).await, Ok(json!("")));
}

/// A shell that starts a grandchild, writes its id to `pid`, and waits for it.
const FAMILY: &str =
    "command = ['sh', '-c', 'sh -c \"echo \\$\\$ > new; mv new pid; sleep 1000; true\" & wait']\ncwd = '.'";

/// The grandchild's id, once it is written.
async fn grandchild(folder: &Path) -> u32 {
    let start = Instant::now();
    loop {
        if let Ok(text) = fs::read_to_string(folder.join("pid")) {
            return text.trim().parse().unwrap();
        }
        assert!(start.elapsed() < DEADLINE, "the grandchild did not start");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Returns when the process is gone. A zombie is: nobody may be there to reap it.
async fn gone(pid: u32) {
    let start = Instant::now();
    loop {
        let state = fs::read_to_string(format!("/proc/{pid}/stat")).ok();
        let state = state.and_then(|stat| stat.rsplit(") ").next().and_then(|rest| rest.chars().next()));
        if matches!(state, None | Some('Z' | 'X')) {
            return;
        }
        assert!(start.elapsed() < DEADLINE, "process {pid} lives on in state {state:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_timeout_kills_the_whole_group() {
    let folder = TempDir::new().unwrap();
    let answer = run_in(folder.path(), &format!("timeout_s = 3\n{FAMILY}"), json!({})).await;
    let expected = ToolError::new(ErrorKind::Timeout, "`sh` did not end within 3 s and was stopped");
    assert_eq!(answer, Err(expected));
    gone(grandchild(folder.path()).await).await;
}

#[tokio::test]
async fn a_dropped_call_kills_the_whole_group() {
    let folder = TempDir::new().unwrap();
    let pid = tokio::select! {
        answer = run_in(folder.path(), FAMILY, json!({})) => unreachable!("it ended: {answer:?}"),
        pid = grandchild(folder.path()) => pid,
    };
    gone(pid).await;
}

#[tokio::test]
async fn a_cancelled_call_kills_the_whole_group() {
    let folder = TempDir::new().unwrap();
    let (manifest, token) = (manifest(folder.path(), FAMILY), CancellationToken::new());
    let (answer, pid) = tokio::join!(manifest.call(call_of("run", json!({}), token.clone())), async {
        let pid = grandchild(folder.path()).await;
        token.cancel();
        pid
    });
    assert_eq!(answer, Err(ToolError::failed("`sh` was stopped: the call was cancelled")));
    gone(pid).await;
}

#[tokio::test]
async fn what_a_command_leaves_behind_ends_with_it() {
    let folder = TempDir::new().unwrap();
    let lines = "command = ['sh', '-c', 'sleep 1000 & echo $! > pid; echo done']\ncwd = '.'\ntimeout_s = 20";
    assert_eq!(run_in(folder.path(), lines, json!({})).await, Ok(json!("done")));
    gone(grandchild(folder.path()).await).await;
}

#[tokio::test]
async fn who_leaves_the_group_does_not_hold_up_the_answer() {
    let folder = TempDir::new().unwrap();
    let script = "setsid sh -c \"echo \\$\\$ > new; mv new pid; exec sleep 1000\" & \
        until test -e pid; do sleep 0.01; done; echo done";
    let lines = format!("command = ['sh', '-c', '{script}']\ncwd = '.'\ntimeout_s = 20");
    assert_eq!(run_in(folder.path(), &lines, json!({})).await, Ok(json!("done")));
    let pid = grandchild(folder.path()).await;
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn an_operation_that_is_not_there_is_unknown() {
    let folder = TempDir::new().unwrap();
    let manifest = manifest(folder.path(), "command = ['true']");
    let answer = manifest.call(call_of("walk", json!({}), CancellationToken::new())).await;
    let expected = ToolError::new(ErrorKind::UnknownOperation, "test_toolkit has no operation `walk`");
    assert_eq!(answer, Err(expected));
}
