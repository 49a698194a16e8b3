//! What rules, settings and profiles decide, and what a mistyped rule is told.

use serde_json::json;

use super::*;

fn policy(text: &str) -> Result<Policy, String> {
    toml::from_str(text).map_err(|error: toml::de::Error| error.message().to_owned())
}

/// The decision on a call of `shell_toolkit.run` and what makes it.
fn decided(policy: &Policy, risk: Risk, arguments: Value) -> (Decision, Source) {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    policy.decide(&Subject {
        toolkit: "shell_toolkit",
        operation: "run",
        risk,
        arguments: &arguments,
        tenant: "local",
        user: "ada",
        program: "",
        line: 0,
    })
}

#[test]
fn a_profile_decides_by_risk_and_a_setting_in_its_place() {
    use Decision::{Allow, Ask, Deny};
    for (profile, expected) in [
        ("read-only", [Allow, Deny, Deny]),
        ("ask", [Allow, Ask, Ask]),
        ("auto", [Allow, Allow, Ask]),
        ("plan", [Allow, Ask, Ask]),
    ] {
        let profile: Profile = profile.parse().unwrap();
        assert_eq!([Risk::Read, Risk::Write, Risk::Destructive].map(|risk| profile.decide(risk)), expected);
    }
    assert_eq!(Policy::default().profile, Profile::Ask);
    let set = policy("profile = 'auto'\nwrite = 'deny'").unwrap();
    assert_eq!(decided(&set, Risk::Write, json!({})), (Deny, Source::Setting(Risk::Write)));
    assert_eq!(decided(&set, Risk::Destructive, json!({})), (Ask, Source::Profile(Profile::Auto)));
    let chosen = set.with_profile(Profile::Auto);
    assert_eq!(decided(&chosen, Risk::Write, json!({})).0, Allow);
    assert!("autp".parse::<Profile>().unwrap_err().contains("there are read-only, ask, auto, plan"));
}

#[test]
fn the_first_rule_that_is_about_a_call_decides() {
    let rules = "
        [[rules]]
        operation = 'shell_toolkit.run'
        arguments = { argv = 'git push*' }
        decision = 'deny'
        because = 'pushes are for people'
        [[rules]]
        operation = 'shell_*'
        arguments = { argv = 'git *', cwd = '/srv/*' }
        decision = 'allow'
        [[rules]]
        operation = '*'
        arguments = { '*' = '*/etc/*' }
        decision = 'ask'
        [[rules]]
        operation = '*.run'
        risk = 'read'
        tenant = 'guest*'
        decision = 'deny'
    ";
    let rules = policy(rules).unwrap();
    let run = |arguments: Value| decided(&rules, Risk::Write, arguments);
    assert_eq!(run(json!({"argv": ["git", "push", "-f"], "cwd": "/srv/a"})), (Decision::Deny, Source::Rule(1)));
    assert_eq!(run(json!({"argv": ["git", "log"], "cwd": "/srv/a"})), (Decision::Allow, Source::Rule(2)));
    // Nobody climbs out of what is allowed, and what is not given matches nothing.
    assert_eq!(run(json!({"argv": ["git", "log"], "cwd": "/srv/../etc/x"})), (Decision::Ask, Source::Rule(3)));
    assert_eq!(run(json!({"argv": ["git", "log"]})), (Decision::Ask, Source::Profile(Profile::Ask)));
    let subject = decided(&rules, Risk::Read, json!({}));
    assert_eq!(subject, (Decision::Allow, Source::Profile(Profile::Ask)), "the tenant is another one");
    assert_eq!(rules.words(Source::Rule(1), Decision::Deny), "rule 1 of the policy says deny (pushes are for people)");
    assert_eq!(rules.rules[1].to_string(), "allow shell_* where argv is \"git *\" and cwd is \"/srv/*\"");
}

#[test]
fn read_only_is_lifted_by_no_rule_and_yes_lifts_no_denial() {
    let allowing =
        policy("profile = 'read-only'\nwrite = 'allow'\n[[rules]]\noperation = '*'\ndecision = 'allow'").unwrap();
    assert_eq!(decided(&allowing, Risk::Write, json!({})), (Decision::Deny, Source::Profile(Profile::ReadOnly)));
    let approving = allowing.approving();
    assert!(approving.approves());
    assert_eq!(decided(&approving, Risk::Write, json!({})).0, Decision::Deny);
}

#[test]
fn a_mistyped_rule_is_told_which_it_is_and_what_is_wrong() {
    for (rule, wrong) in [
        ("operation = '*'\ndecision = 'alow'", "unknown variant `alow`, expected one of `allow`, `ask`, `deny`"),
        ("operation = '*'\ndecision = 'ask'\nrisk = 'wrte'", "unknown variant `wrte`, expected one of `read`, `write`"),
        ("operation = '[a'\ndecision = 'ask'", "`[a` is no pattern: "),
        ("operation = '*'\ndecision = 'ask'\narguments = { path = '{a' }", "`{a` is no pattern: "),
        ("operaton = '*'\ndecision = 'ask'", "unknown field `operaton`, expected one of `operation`"),
        ("operation = '*'", "missing field `decision`"),
        ("decision = 'ask'", "missing field `operation`"),
        ("operation = 7\ndecision = 'ask'", "invalid type: integer `7`, expected a string"),
    ] {
        let error = policy(&format!("[[rules]]\noperation = '*'\ndecision = 'ask'\n[[rules]]\n{rule}\n")).unwrap_err();
        assert!(error.starts_with(&format!("rule 2 of `gate.policy.rules`: {wrong}")), "{error}");
        assert!(error.contains("\n\nhint: a rule has `operation` and `decision`"), "{error}");
    }
    let error = policy("profile = 'autp'").unwrap_err();
    assert!(error.contains("unknown variant `autp`, expected one of `read-only`, `ask`, `auto`, `plan`"), "{error}");
}
