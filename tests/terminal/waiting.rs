//! Sessions that wait: a new conversation names them, and goes on with them by a command.

use super::hot_plug::{model, say};
use super::*;

fn settings(address: &str) -> Vec<String> {
    let texts = [&format!("llm.base_url={address}"), "llm.model=m", "llm.fill=none", "agent.encoding=\"chat\""];
    texts.iter().flat_map(|text| ["-c".to_owned(), (*text).to_owned()]).collect()
}

fn with<'a>(settings: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    settings.iter().map(String::as_str).chain(more.iter().copied()).collect()
}

#[test]
fn a_conversation_names_what_waits_and_goes_on_with_it() {
    let asks =
        "colour = await system_toolkit.ask_user('Which colour?')\nawait system_toolkit.send_message('It is ' + colour)";
    let address = model(&[asks]);
    let settings = settings(&address);
    let home = Home::new();
    let asked = home.output(&with(&settings, &["chat", "--ask", "Paint it"]), "");
    assert_eq!(asked.status.code(), Some(4), "{}", text(&asked.stderr));
    let by_hand = home.output(&with(&settings, &["run", "program.py"]), "print(await system_toolkit.ask_user('Who?'))");
    assert_eq!(by_hand.status.code(), Some(4), "{}", text(&by_hand.stderr));
    let list = text(&home.output(&["sessions", "list"], "").stdout);
    let ids: Vec<&str> = list.lines().map(|line| line.split_whitespace().next().unwrap()).collect();

    let command = home.fimble(&with(&settings, &["chat"]), "");
    let mut terminal = Terminal::of(home, command, true);
    terminal.wait_for(&format!("(waits for an answer) · fimble sessions resume {}", ids[0]));
    terminal.wait_for(&format!("Paint it (waits for an answer) · /resume {}", ids[1]));
    say(&mut terminal, &format!("/resume {}", ids[1]));
    terminal.wait_for("Which colour?");
    terminal.wait_for("› ");
    terminal.press("green\r");
    terminal.wait_for("It is green");
    terminal.wait_for("\x1b[6n");
    terminal.press("\x1b[2;1R");
    terminal.wait_for("fimble");
    terminal.press("\u{4}");
    let (code, _, rest) = terminal.end();
    assert_eq!(code, Some(0), "{rest}");
}

#[test]
fn a_conversation_can_begin_with_a_session_that_waits() {
    let asks = "name = await system_toolkit.ask_user('Whose?')\nawait system_toolkit.send_message('For ' + name)";
    let address = model(&[asks]);
    let settings = settings(&address);
    let home = Home::new();
    assert_eq!(home.output(&with(&settings, &["chat", "--ask", "Send it"]), "").status.code(), Some(4));
    let command = home.fimble(&with(&settings, &["chat", "--resume"]), "");
    let mut terminal = Terminal::of(home, command, true);
    terminal.wait_for("Whose?");
    terminal.wait_for("› ");
    terminal.press("Ada\r");
    terminal.wait_for("For Ada");
    terminal.wait_for("\x1b[6n");
    terminal.press("\x1b[2;1R");
    terminal.wait_for("fimble");
    terminal.press("\u{4}");
    assert_eq!(terminal.end().0, Some(0));
}
