//! What a hook answered: by its exit code, its words, or JSON. It does not know what becomes of it.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::HookEvent;
use crate::gate::Said;

/// Characters of an unusable answer that are shown.
const SHOWN: usize = 200;

/// What a hook wants.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Answer {
    pub wish: Wish,
    /// Why; for whoever is refused, or asked.
    pub reason: String,
    /// The arguments to use in place of those that it was shown.
    pub arguments: Option<Map<String, Value>>,
    /// What the model is to know.
    pub context: Option<String>,
    /// Nothing more is to be done, and why.
    pub stop: Option<String>,
    /// For the user.
    pub message: Option<String>,
}

/// What a hook wants to happen, the stricter the later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::gate) enum Wish {
    /// It has none.
    #[default]
    None,
    /// Nobody need be asked.
    Allow,
    /// A person is to be asked.
    Ask,
    /// It is not to happen.
    Deny,
}

/// A hook's JSON. Fields that are not known are left alone: hooks are shared with other programs.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Written {
    decision: Option<String>,
    reason: Option<String>,
    #[serde(rename = "continue")]
    goes_on: Option<bool>,
    stop_reason: Option<String>,
    system_message: Option<String>,
    hook_specific_output: Option<Specific>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Specific {
    hook_event_name: Option<String>,
    permission_decision: Option<String>,
    permission_decision_reason: Option<String>,
    updated_input: Option<Map<String, Value>>,
    additional_context: Option<String>,
}

/// Reads what a hook of `event` said.
///
/// # Errors
/// Why it is no answer, in words that follow the hook's name.
pub(super) fn read(event: HookEvent, said: &Said) -> Result<Answer, String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match said.status.code() {
        Some(0) => {}
        Some(2) => {
            let reason = Some(text(&said.errors)).filter(|reason| !reason.is_empty());
            return Ok(Answer {
                wish: Wish::Deny,
                reason: reason.unwrap_or_else(|| "it gave no reason".to_owned()),
                ..Answer::default()
            });
        }
        _ => {
            let errors = text(&said.errors);
            let last = errors.lines().next_back().map(|line| format!(": {}", cut(line))).unwrap_or_default();
            return Err(format!("ended with {}{last}", said.status));
        }
    }
    let output = text(&said.output);
    if output.is_empty() {
        return Ok(Answer::default());
    }
    if !output.starts_with('{') {
        return match event {
            HookEvent::UserPromptSubmit | HookEvent::SessionStart => {
                Ok(Answer { context: Some(output), ..Answer::default() })
            }
            _ => Err(format!("printed no JSON object: `{}`", cut(&output))),
        };
    }
    let written: Written =
        serde_json::from_str(&output).map_err(|error| format!("printed JSON that is no answer: {error}"))?;
    of_json(event, written)
}

fn of_json(event: HookEvent, written: Written) -> Result<Answer, String> {
    let specific = written.hook_specific_output.unwrap_or_default();
    if let Some(name) = specific.hook_event_name.filter(|name| name != event.as_str()) {
        return Err(format!("answered for `{}` and was asked for `{}`", cut(&name), event.as_str()));
    }
    let wish = |word: &Option<String>| match word.as_deref() {
        None => Ok(Wish::None),
        Some("allow" | "approve") => Ok(Wish::Allow),
        Some("ask") => Ok(Wish::Ask),
        Some("deny" | "block") => Ok(Wish::Deny),
        Some(other) => Err(format!("decided `{}`, which is none of allow, ask, deny and block", cut(other))),
    };
    let wish = wish(&written.decision)?.max(wish(&specific.permission_decision)?);
    let reason = specific.permission_decision_reason.or(written.reason);
    let reason = reason.filter(|reason| !reason.trim().is_empty());
    let stop = (written.goes_on == Some(false)).then(|| written.stop_reason.or_else(|| reason.clone()));
    let without = || "it gave no reason".to_owned();
    Ok(Answer {
        wish,
        reason: reason.unwrap_or_else(without),
        arguments: specific.updated_input,
        context: specific.additional_context.filter(|context| !context.trim().is_empty()),
        stop: stop.map(|stop| stop.unwrap_or_else(without)),
        message: written.system_message.filter(|message| !message.trim().is_empty()),
    })
}

fn cut(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn said(status: i32, output: &str, errors: &str) -> Said {
        let (output, errors) = (output.as_bytes().to_vec(), errors.as_bytes().to_vec());
        Said { status: ExitStatus::from_raw(status), output, errors }
    }

    fn of(event: HookEvent, output: &str) -> Result<Answer, String> {
        read(event, &said(0, output, "ignored"))
    }

    #[test]
    fn the_exit_code_decides_first() {
        let pre = HookEvent::PreToolUse;
        assert_eq!(read(pre, &said(0, " \n", "noise")), Ok(Answer::default()));
        let denied = read(pre, &said(2 << 8, "{\"decision\": \"allow\"}", "not on Fridays\n")).unwrap();
        assert_eq!((denied.wish, denied.reason.as_str()), (Wish::Deny, "not on Fridays"));
        assert_eq!(read(pre, &said(1 << 8, "", "a\nb\n")), Err("ended with exit status: 1: b".to_owned()));
        assert_eq!(read(pre, &said(9, "", "")), Err("ended with signal: 9 (SIGKILL)".to_owned()));
    }

    #[test]
    fn json_is_read_in_the_shapes_that_users_know() {
        let full = json!({
            "continue": false, "stopReason": "enough", "systemMessage": "look", "suppressOutput": true,
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse", "permissionDecision": "ask", "permissionDecisionReason": "why",
                "updatedInput": {"a": 1}, "additionalContext": "know",
            },
        });
        let arguments = json!({"a": 1}).as_object().cloned();
        let expected = Answer {
            wish: Wish::Ask,
            reason: "why".to_owned(),
            arguments,
            context: Some("know".to_owned()),
            stop: Some("enough".to_owned()),
            message: Some("look".to_owned()),
        };
        assert_eq!(of(HookEvent::PreToolUse, &full.to_string()), Ok(expected));
        let blocked = of(HookEvent::Stop, r#"{"decision": "block", "reason": "tests are red"}"#).unwrap();
        assert_eq!((blocked.wish, blocked.reason.as_str()), (Wish::Deny, "tests are red"));
        let context = of(HookEvent::UserPromptSubmit, "it is Friday").unwrap().context;
        assert_eq!(context.as_deref(), Some("it is Friday"));
    }

    #[test]
    fn what_is_no_answer_is_said_in_words() {
        for (output, expected) in [
            ("yes", "printed no JSON object: `yes`"),
            ("{\"decision\": \"maybe\"}", "decided `maybe`, which is none of allow, ask, deny and block"),
            ("{\"decision\": 1}", "printed JSON that is no answer: "),
            (
                "{\"hookSpecificOutput\": {\"hookEventName\": \"Stop\"}}",
                "answered for `Stop` and was asked for `PreToolUse`",
            ),
            (&"{\"a\":".repeat(10_000), "printed JSON that is no answer: "),
        ] {
            let error = of(HookEvent::PreToolUse, output).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(status in any::<i32>(), output: Vec<u8>, errors: Vec<u8>, object in "\\{\"(decision|continue|hookSpecificOutput)\":.{0,20}\\}") {
            for event in HookEvent::ALL {
                let _ = read(event, &Said { status: ExitStatus::from_raw(status), output: output.clone(), errors: errors.clone() });
                let _ = of(event, &object);
            }
        }
    }
}
