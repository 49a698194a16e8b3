//! What hooks make of a call, and what broken ones cost.

use fimble_toolkit::{Declaration, Operation, Parameter, Risk, SessionContext};
use serde_json::json;

use super::*;
use crate::gate::Decision;

/// A hook that is a script of `sh`.
fn script(script: &str) -> Hook {
    Hook { command: ["sh", "-c", script].map(str::to_owned).into(), ..Hook::default() }
}

fn operation() -> Operation {
    let parameter = |name: &str, kind: &str| Parameter {
        name: name.to_owned(),
        description: String::new(),
        schema: json!({ "type": kind }),
        required: name == "path",
        default: None,
    };
    let declaration = Declaration {
        name: "files_toolkit".to_owned(),
        description: String::new(),
        operations: vec![Operation {
            name: "read".to_owned(),
            description: String::new(),
            parameters: vec![parameter("path", "string"), parameter("limit", "integer")],
            returns: json!(true),
            risk: Risk::Read,
            idempotent: true,
            timeout: None,
            enabled: true,
            paging: None,
        }],
    };
    declaration.operation("read").cloned().unwrap()
}

/// What `hooks` make of `files_toolkit.read(path="a")`: the arguments and the wish, or the error; and what the user is told.
async fn ask_about(hooks: Vec<Hook>) -> (Result<(Value, Hooked), String>, Vec<String>) {
    let config = HookConfig { pre_tool_use: hooks, ..HookConfig::default() };
    let hooks = Hooks::new(config, Secrets::new(["hunter2-secret".to_owned()]));
    let (operation, context) = (operation(), SessionContext { session: "s".to_owned(), ..SessionContext::default() });
    let told = Mutex::new(Vec::new());
    let tell = |kind| match kind {
        EventKind::Custom(Custom::Hook { message, .. }) => told.lock().unwrap().push(message),
        kind => panic!("{kind:?}"),
    };
    let subject =
        Subject { called: "files_toolkit.read", operation: &operation, key: "k", context: &context, tell: &tell };
    let mut arguments = json!({"path": "a"}).as_object().cloned().unwrap();
    let hooked = hooks.before_call(&subject, &mut arguments).await;
    let result =
        hooked.map(|hooked| (Value::Object(arguments), hooked)).map_err(|turned_down| turned_down.error.to_string());
    (result, told.into_inner().unwrap())
}

#[tokio::test]
async fn a_hook_reads_the_call_and_the_next_one_reads_what_it_left() {
    let replace = r#"echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow",
        "updatedInput": {"path": "hunter2-secret", "limit": 3}, "additionalContext": "it was moved"}}'"#;
    let check = r#"grep -q '"tool_name":"files_toolkit.read".*"tool_input":{"path":"\*\*\*\*\*\*\*\*","limit":3}.*"hook_event_name":"PreToolUse"' || exit 2"#;
    let (result, told) = ask_about(vec![script(replace), script(check)]).await;
    let (arguments, hooked) = result.unwrap();
    assert_eq!(arguments, json!({"path": "hunter2-secret", "limit": 3}));
    assert_eq!((hooked.wish, hooked.contexts, told), (Wish::Allow, vec!["it was moved".to_owned()], vec![]));
}

#[tokio::test]
async fn only_hooks_that_match_are_told() {
    let other = Hook { matcher: "git_toolkit.*".to_owned(), ..script("exit 2") };
    assert!(ask_about(vec![other.clone()]).await.0.is_ok());
    let own = Hook { matcher: "git_toolkit.*|files_toolkit.*".to_owned(), ..script("echo no >&2; exit 2") };
    let refused = ask_about(vec![other, own]).await.0.unwrap_err();
    assert_eq!(refused, "files_toolkit.read was not called: a hook refused it: no");
}

#[tokio::test]
async fn a_broken_hook_refuses_the_call_and_says_why() {
    let short = |hook: Hook| Hook { timeout_s: 0.2, ..hook };
    for (hook, expected) in [
        (short(script("sleep 1000")), "`sh` did not end within 0.2 s and was killed"),
        (Hook { output_kib: 1, ..script("cat /dev/zero") }, "`sh` wrote more than 1024 bytes and was killed"),
        (Hook { output_kib: 1, ..script("cat /dev/zero >&2") }, "`sh` wrote more than 1024 bytes and was killed"),
        (script("kill -SEGV $$"), "`sh` ended with signal: 11 (SIGSEGV)"),
        (script("echo boom >&2; exit 1"), "`sh` ended with exit status: 1: boom"),
        (script("echo yes"), "`sh` printed no JSON object: `yes`"),
        (script("echo '{\"decision\": \"perhaps\"}'"), "decided `perhaps`"),
        (script("echo '{\"hookSpecificOutput\": {\"updatedInput\": {\"path\": 1, \"depth\": 2}}}'"), "do not fit"),
        (Hook { command: vec!["/no/such".to_owned()], ..Hook::default() }, "`/no/such` cannot be started"),
        (Hook::default(), "the command is empty"),
        (script("printf '\\377\\376' >&2; exit 3"), "`sh` ended with exit status: 3"),
    ] {
        let (result, told) = ask_about(vec![hook]).await;
        let error = result.unwrap_err();
        assert!(error.starts_with("files_toolkit.read was not called: ") && error.contains(expected), "{error}");
        assert!(told.iter().all(|told| error.contains(told.as_str())), "{told:?}");
    }
}

#[tokio::test]
async fn a_hook_speaks_to_the_user_without_secrets_and_may_stop_the_program() {
    let message = script("echo '{\"systemMessage\": \"saw hunter2-secret\"}'");
    let stop = script("echo '{\"continue\": false, \"stopReason\": \"hunter2-secret seen\"}'");
    let (result, told) = ask_about(vec![message, stop]).await;
    assert_eq!(told, ["saw ********"]);
    assert_eq!(result.unwrap_err(), "the hook `sh` stopped the program before files_toolkit.read: ******** seen");
}

#[test]
fn no_wish_lifts_a_denial_and_the_strictest_hook_counts() {
    let over = |wish, policy| Hooked { wish, ..Hooked::default() }.over(policy);
    for wish in [Wish::None, Wish::Allow, Wish::Ask, Wish::Deny] {
        assert_eq!(over(wish, Decision::Deny), Decision::Deny);
    }
    assert_eq!(over(Wish::None, Decision::Ask), Decision::Ask);
    assert_eq!(over(Wish::Allow, Decision::Ask), Decision::Allow);
    assert_eq!(over(Wish::Ask, Decision::Allow), Decision::Ask);
    assert_eq!(over(Wish::Deny, Decision::Allow), Decision::Deny);
    assert_eq!(Wish::Allow.max(Wish::Ask).max(Wish::None), Wish::Ask);
}

#[test]
fn the_settings_are_read_as_they_are_documented() {
    let text = "[[PreToolUse]]\nmatcher = 'shell_toolkit.*'\ncommand = ['check', '--strict']\ntimeout_s = 5.0\n[[Stop]]\ncommand = ['x']\n";
    let read: HookConfig = toml::from_str(text).unwrap();
    let first = Hook {
        matcher: "shell_toolkit.*".to_owned(),
        command: vec!["check".to_owned(), "--strict".to_owned()],
        timeout_s: 5.0,
        output_kib: 64,
    };
    let stop = Hook { command: vec!["x".to_owned()], ..Hook::default() };
    assert_eq!(read, HookConfig { pre_tool_use: vec![first], stop: vec![stop], ..HookConfig::default() });
    assert!(toml::from_str::<HookConfig>("[[PreToolUSe]]\n").is_err());
}
