//! What each analyser finds, what it passes over, and that a chain only gets stricter.

use fimble_toolkit::Risk;
use serde_json::json;

use super::*;

fn findings(config: &Config, operation: &str, risk: Risk, arguments: Value, program: &str) -> Vec<Finding> {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let hidden = Secrets::new(["hunter2-secret".to_owned()]);
    let line = u32::try_from(program.lines().count()).unwrap();
    Chain::new(config, &hidden).findings(&Subject {
        toolkit: "any_toolkit",
        operation,
        risk,
        arguments: &arguments,
        tenant: "local",
        user: "ada",
        program,
        line,
    })
}

fn reasons(operation: &str, risk: Risk, arguments: Value) -> Vec<&'static str> {
    let found = findings(&Config::default(), operation, risk, arguments, "");
    found.into_iter().map(|finding| finding.analyser).collect()
}

#[test]
fn commands_that_destroy_much_are_found_however_they_are_written() {
    for command in [
        json!(["rm", "-rf", "/"]),
        json!(["rm", "-r", "--force", "/etc/"]),
        json!(["/bin/rm", "-fr", "~"]),
        json!("rm -rf *"),
        json!("cd /srv && rm -rf ../other"),
        json!(["sh", "-c", "echo hi; rm -Rf $HOME"]),
        json!(["bash", "-euc", "sudo -n rm -rf /var"]),
        json!("timeout 5 rm -rf ."),
        json!(["sudo", "-u", "root", "mkfs.ext4", "/dev/sda"]),
        json!("dd if=/dev/zero of=/dev/sda bs=1M"),
        json!("rm *.log"),
        json!("find /srv -name '*.tmp' -delete"),
        json!("git push -f origin main"),
        json!("git reset --hard HEAD~3"),
        json!("git clean -fdx"),
        json!("kubectl delete pods --all"),
        json!("A=1 reboot"),
        json!("kill -9 -1"),
        json!(":(){ :|:& };:"),
        json!(["rm -rf /"]),
        json!("cat x | xargs rm -rf /"),
    ] {
        assert_eq!(reasons("run", Risk::Destructive, json!({"argv": command})), ["commands"], "{command}");
    }
    for command in [
        json!(["rm", "-rf", "/srv/app/build"]),
        json!("rm notes.txt"),
        json!("git push origin main"),
        json!("git log -p -- rm"),
        json!("echo reboot"),
        json!("grep -rf patterns /"),
        json!("kill -1 42"),
        json!("chmod 644 /etc/hosts"),
        json!("ls -la /"),
        json!(7),
    ] {
        assert_eq!(reasons("run", Risk::Write, json!({"argv": command})), [""; 0], "{command}");
    }
}

#[test]
fn sql_that_changes_whole_tables_is_found_and_what_is_bounded_or_quoted_is_not() {
    for sql in [
        "DELETE FROM users",
        "delete from users -- where id = 1",
        "SELECT 1; UPDATE users SET name = 'where'",
        "WITH old AS (SELECT 1) DELETE FROM users",
        "DROP TABLE users",
        "drop materialized view v",
        "TRUNCATE users",
        "DELETE FROM \"Users\" /* where */",
    ] {
        assert_eq!(reasons("execute", Risk::Destructive, json!({"sql": sql})), ["sql"], "{sql}");
        assert_eq!(reasons("query", Risk::Read, json!({"query": sql})), ["sql"], "{sql}");
        // A search for it is no statement.
        assert_eq!(reasons("search", Risk::Read, json!({"pattern": sql})), [""; 0], "{sql}");
    }
    for sql in [
        "DELETE FROM users WHERE id = 1",
        "UPDATE users SET a = 1 WHERE b",
        "SELECT 'DROP TABLE users; DELETE FROM users'",
        "INSERT INTO log VALUES ('it''s; DROP TABLE x')",
        "SELECT * FROM t FOR UPDATE",
        "ALTER TABLE t DROP COLUMN c",
        "Please delete from the list what is old",
        "INSERT INTO t VALUES (1) ON CONFLICT DO UPDATE SET a = 1",
        "'",
        "é'é",
    ] {
        assert_eq!(reasons("execute", Risk::Write, json!({"sql": sql})), [""; 0], "{sql}");
    }
}

#[test]
fn deletions_by_wildcards_are_found() {
    let delete = |arguments: Value| reasons("delete_keys", Risk::Destructive, arguments);
    assert_eq!(delete(json!({"pattern": "user:*"})), ["wildcards"]);
    assert_eq!(delete(json!({"keys": ["a", "b?"]})), ["wildcards"]);
    assert_eq!(delete(json!({"all": true})), ["wildcards"]);
    assert_eq!(delete(json!({"keys": ["a"], "all": false})), [""; 0]);
    assert_eq!(reasons("set", Risk::Write, json!({"pattern": "user:*"})), [""; 0]);
    assert_eq!(reasons("list_deleted", Risk::Read, json!({"pattern": "*"})), [""; 0]);
}

#[test]
fn secrets_are_found_wherever_they_lie_and_end_the_chain() {
    let arguments = json!({"body": {"a": ["x hunter2-secret"]}, "argv": ["rm", "-rf", "/"]});
    let found = findings(&Config::default(), "send", Risk::Read, arguments, "");
    let reason = "would send a secret of this host in `body`".to_owned();
    assert_eq!(found, [Finding { analyser: "secrets", decision: Decision::Deny, reason }]);
    let token = format!("Bearer ghp_{}", "a1".repeat(18));
    assert_eq!(reasons("get", Risk::Read, json!({"headers": {"authorization": token}})), ["credentials"]);
    for harmless in ["ghp_short", "the skill sk-", "eyJ.eyJ.x", "tasks-ant-eaters", "AKIAthis is text"] {
        assert_eq!(reasons("get", Risk::Read, json!({"text": harmless})), [""; 0], "{harmless}");
    }
    let signed = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N";
    assert_eq!(reasons("get", Risk::Read, json!({"text": signed})), ["credentials"]);
    let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk";
    assert_eq!(reasons("write", Risk::Write, json!({"text": key})), ["credentials"]);
}

#[test]
fn a_program_that_rates_its_call_makes_it_stricter_and_never_laxer() {
    let rated = |program: &str, risk| findings(&Config::default(), "set", risk, json!({}), program).len();
    assert_eq!(rated("# Clears the cache. Risk: high\nx = 1\nawait t.set()", Risk::Write), 1);
    assert_eq!(rated("x = 1\nawait t.set()  # risk: destructive", Risk::Write), 1);
    assert_eq!(rated("# risk: read\nawait t.set()", Risk::Destructive), 0);
    assert_eq!(rated("# risk: destructive\nawait t.get()", Risk::Read), 0);
}

#[test]
fn a_rating_is_of_the_call_below_it() {
    let program = "\
x = 1
# What is in the cache is lost.
# risk: destructive
await t.set(
    1,
    a=2,
)

await t.set(
    # Risk: high
    1,
)
for y in x:
    # risk: low
    await t.set(y)
    z = '''
# risk: destructive
'''
await t.set(z)  # risk: critical
await t.set(z)
";
    let found: Vec<_> = [4, 6, 9, 11, 15, 19, 20].map(|line| rating(program, line)).into();
    let [grave, high, critical] = ["destructive", "high", "critical"].map(Some);
    assert_eq!(found, [grave, grave, high, high, None, critical, None]);
    assert_eq!((rating("", 1), rating("# risk: high", 0), rating("x\n# risk: high", 9)), (None, Some("high"), None));
}

#[test]
fn each_can_be_switched_off_or_made_to_refuse() {
    let grave = json!({"argv": "rm -rf /", "sql": "DROP TABLE t"});
    let named = |config: &Config| -> Vec<(&str, Decision)> {
        let found = findings(config, "run", Risk::Destructive, grave.clone(), "");
        found.iter().map(|finding| (finding.analyser, finding.decision)).collect()
    };
    assert_eq!(named(&Config::default()), [("commands", Decision::Ask), ("sql", Decision::Ask)]);
    let strict = Config { commands: Reaction::Deny, ..Config::default() };
    assert_eq!(named(&strict), [("commands", Decision::Deny)]);
    let lax = Config { commands: Reaction::Off, sql: Reaction::Off, ..Config::default() };
    assert_eq!(named(&lax), []);
}

proptest::proptest! {
    #[test]
    fn no_text_makes_an_analyser_fail(text in ".{0,200}", word in "[a-z'\"`;/*\\-]{0,40}") {
        let sql = format!("delete {word}{text}");
        findings(&Config::default(), "delete", Risk::Write, json!({"argv": [text.clone(), word], "sql": sql, "x": text}), &text);
    }
}
