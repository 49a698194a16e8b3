//! Cards: answered at the terminal, answered later from another process, shown by a model's program.

use serde_json::Value;

use super::*;

const ON: [&str; 2] = ["-c", "toolkits.card={}"];

/// Runs `fimble` with cards, and nobody there.
fn output(home: &Home, arguments: &[&str], program: &str) -> (Option<i32>, String, String) {
    let output = home.output(&[&ON[..], arguments].concat(), program);
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_card_is_answered_at_the_terminal_and_a_wrong_answer_is_asked_again() {
    let program = "\
order = await card_toolkit.form('Order\\x1b[2J', [{'name': 'what'}, {'name': 'count', 'type': 'int', 'default': 1}])
print(order.what, order.count + 1)
print(await card_toolkit.choose('Which?', ['red', 'blue']))
print(await card_toolkit.confirm('Restart', {'unit': 'nginx'}, risk='destructive'))
";
    let mut terminal = Terminal::run(&ON, program);
    terminal.wait_for(
        "? Order[2J\r\n    what: text\r\n    count: whole number; else 1\r\n  Answer as what=…; count=…\r\n› ",
    );
    terminal.press("what=tea; count=two\n");
    terminal.wait_for("? `count` must be a whole number\r\n  Order[2J");
    terminal.wait_for("› ");
    terminal.press("what=tea; count=2\n");
    terminal.wait_for("? Which?\r\n    1. red\r\n    2. blue\r\n  Answer with a number\r\n› ");
    terminal.press("2\n");
    terminal.wait_for("? Restart (destructive)\r\n    unit  nginx\r\n  Answer confirm or cancel\r\n› ");
    terminal.press("cancel\n");
    let (code, stdout, rest) = terminal.end();
    assert_eq!((code, stdout.as_str()), (Some(0), "tea 3\nblue\nFalse\n"), "{rest}");
}

#[test]
fn a_card_that_nobody_answers_waits_and_an_answer_wakes_the_program() {
    let home = Home::new();
    let program = "\
await card_toolkit.table('Disks', [{'path': '/', 'free': 12}, {'path': '/home'}])
chosen = await card_toolkit.choose_many('Which?', ['red', 'blue', 'green'])
print('chosen', chosen)
";
    let (code, stdout, stderr) = output(&home, &["run", "program.py"], program);
    assert_eq!((code, stdout.as_str()), (Some(4), ""), "{stderr}");
    assert!(stderr.contains("Disks\n  path   free\n  /      12\n  /home\n"), "{stderr}");
    assert!(
        stderr.contains("? Which?\n  1. red\n  2. blue\n  3. green\nAnswer with numbers, e.g. 1, 2, or none\n"),
        "{stderr}"
    );
    let id = stderr.split("sessions answer ").nth(1).unwrap().split_whitespace().next().unwrap();
    // The card waits, and says how.
    let (code, _, refused) = output(&home, &["sessions", "answer", id, "purple"], program);
    assert_eq!(code, Some(2));
    let expected = "error: `purple` does not fit: answer with numbers from 1 to 3, or none\n\nhint: Which?\n  1. red\n";
    assert!(refused.starts_with(expected), "{refused}");
    let click = r#"{"action": {"name": "submit", "context": {"choice": ["green", "red"]}}}"#;
    let (code, stdout, stderr) = output(&home, &["sessions", "answer", id, click], program);
    assert_eq!((code, stdout.as_str()), (Some(0), "chosen ['green', 'red']\n"), "{stderr}");
    // What was shown before is not shown again.
    assert!(!stderr.contains("Disks"), "{stderr}");
}

#[test]
fn a_click_answers_only_the_card_that_it_was_made_on() {
    let home = Home::new();
    let program = "\
first = await card_toolkit.confirm('Restart the test server')
second = await card_toolkit.confirm('Restart everything', risk='destructive')
print(first, second)
";
    let waits = |stdout: &str| {
        let mut events = stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let card = events.rfind(|event| event["name"] == "card").unwrap();
        let session = card["session"].as_str().unwrap().to_owned();
        (
            session,
            format!(
                r#"{{"action": {{"name": "confirm", "surfaceId": {}, "context": {{}}}}}}"#,
                card["value"]["surface"]
            ),
        )
    };
    let (code, stdout, stderr) = output(&home, &["run", "program.py", "--json"], program);
    assert_eq!(code, Some(4), "{stderr}");
    let (id, first) = waits(&stdout);
    let (code, stdout, stderr) = output(&home, &["sessions", "answer", &id, &first, "--json"], program);
    assert_eq!(code, Some(4), "{stderr}");
    let (_, second) = waits(&stdout);
    // Clicked twice, or late.
    let (code, _, refused) = output(&home, &["sessions", "answer", &id, &first], program);
    assert_eq!(code, Some(2), "{refused}");
    assert!(refused.contains("does not fit: it is of the card on `card-"), "{refused}");
    assert!(refused.contains("hint: Restart everything (destructive)"), "{refused}");
    let (code, stdout, stderr) = output(&home, &["sessions", "answer", &id, &second], program);
    assert_eq!((code, stdout.as_str()), (Some(0), "True True\n"), "{stderr}");
}

#[test]
fn a_card_is_an_event_with_its_surface() {
    let program = "\
await card_toolkit.progress('Copy', 1, 4)
await card_toolkit.progress('Copy', 2, 4, note='half')
await card_toolkit.links('See', {'docs': 'https://example.org'})
";
    let (code, stdout, stderr) = output(&Home::new(), &["run", "program.py", "--json"], program);
    assert_eq!(code, Some(0), "{stderr}");
    let events: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let cards: Vec<&Value> =
        events.iter().filter(|event| event["name"] == "card").map(|event| &event["value"]).collect();
    assert_eq!(cards.len(), 3, "{stdout}");
    assert_eq!(cards[0]["surface"], cards[1]["surface"]);
    assert_ne!(cards[0]["surface"], cards[2]["surface"]);
    assert_eq!(cards[0]["messages"].as_array().unwrap().len(), 3);
    let update = &cards[1]["messages"][0]["updateDataModel"];
    assert_eq!((&update["surfaceId"], &update["value"]["done"]), (&cards[0]["surface"], &Value::from(2.0)));
    assert_eq!(cards[2]["card"]["kind"], "links");
    assert_eq!(cards[2]["text"], "See\n  docs: https://example.org");
}

#[test]
fn cards_are_there_only_where_they_are_switched_on_and_seen() {
    let home = Home::new();
    let program = "await card_toolkit.links('x', {'a': 'https://b'})\n";
    let without = home.output(&["run", "program.py"], program);
    assert_eq!(without.status.code(), Some(1));
    assert!(text(&without.stderr).contains("card_toolkit"), "{}", text(&without.stderr));
    let (code, _, hidden) =
        output(&home, &["-c", "toolkits.view.without=['card_toolkit']", "run", "program.py"], program);
    assert_eq!((code, hidden), (Some(1), text(&without.stderr)));
    let (code, _, refused) =
        output(&home, &["run", "program.py"], "await card_toolkit.links('x', {'a': 'javascript:x'})\n");
    assert_eq!(code, Some(1));
    assert!(refused.contains("`javascript:x` is no address that can be shown"), "{refused}");
}

#[test]
fn a_card_that_shows_something_answers_the_user() {
    let address = hot_plug::model(&["await card_toolkit.chart('Load', {'mon': 2, 'tue': 1})"]);
    let home = Home::new();
    let address = format!("llm.base_url={address}");
    let settings = ["-c", &address, "-c", "llm.model=m", "-c", "llm.fill=none", "-c", "agent.encoding=\"chat\""];
    let (code, stdout, stderr) = output(&home, &[&settings[..], &["chat", "--ask", "How busy?"]].concat(), "");
    let bar = "#".repeat(30);
    let expected = format!("Load\n  mon  {bar} 2\n  tue  {} 1\n", &bar[..15]);
    assert_eq!((code, stdout), (Some(0), expected), "{stderr}");
    let list = text(&home.output(&["sessions", "list"], "").stdout);
    let shown = text(&home.output(&["sessions", "show", list.split_whitespace().next().unwrap()], "").stdout);
    assert!(shown.contains("Load"), "{shown}");
}
