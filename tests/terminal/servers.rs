//! MCP servers in the middle of a conversation: down and up again, and with questions of their own.

use std::os::unix::fs::PermissionsExt;

use super::hot_plug::{model, say};
use super::*;

fn scripted() -> String {
    format!("{}/toolkits/mcp/tests/servers/fixtures/scripted.py", env!("CARGO_MANIFEST_DIR"))
}

/// A folder `kits` with the server `late`, whose program is not there yet.
fn late(home: &Home) -> std::path::PathBuf {
    let program = home.folder.path().join("late-server");
    std::fs::create_dir(home.folder.path().join("kits")).unwrap();
    let text = format!("[mcp]\ncommand = \"{}\"\n", program.display());
    std::fs::write(home.folder.path().join("kits/late.toml"), text).unwrap();
    program
}

#[test]
fn a_server_that_was_down_is_there_at_a_later_message() {
    // A program that may be written whether the server is there or not; its last word is not in its own text.
    let tell = "told = await system_toolkit.describe('late_toolkit')\n\
                await system_toolkit.send_message(told + ' th' + 'at is all')";
    let address = format!("llm.base_url={}", model(&[tell; 100]));
    let home = Home::new();
    let program = late(&home);
    let settings = ["-c", &address, "-c", "llm.model=m", "-c", "llm.fill=none", "-c", "agent.encoding=\"chat\""];
    let command = home.fimble(&[&settings[..], &["--toolkits", "kits", "chat"]].concat(), "");
    let mut terminal = Terminal::of(home, command, true);
    terminal.wait_for("warning: the MCP server `late` did not start: ");

    say(&mut terminal, "one");
    let said = terminal.read_until("that is all");
    assert!(said.contains("It cannot be used now: the MCP server `late` did not start"), "{said}");

    let text = format!("#!/bin/sh\nexec /usr/bin/python3 {}\n", scripted());
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    // Each message tries it, unless it failed a moment ago.
    let mut said = String::new();
    for _ in 0..99 {
        say(&mut terminal, "two");
        said = terminal.read_until("that is all");
        if said.contains("~ late_toolkit is there now") {
            break;
        }
    }
    assert!(said.contains("~ late_toolkit is there now") && said.contains("# echo, free, "), "{said}");
    terminal.wait_for("\x1b[6n");
    terminal.press("\x1b[2;1R");
    terminal.wait_for("fimble");
    terminal.press("\u{4}");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn a_servers_question_is_answered_by_the_person_at_the_terminal() {
    let home = Home::new();
    std::fs::create_dir(home.folder.path().join("kits")).unwrap();
    let text = format!("[mcp]\ncommand = \"/usr/bin/python3\"\nargs = [\"{}\"]\n", scripted());
    std::fs::write(home.folder.path().join("kits/scripted.toml"), text).unwrap();
    let answer = |terminal: &mut Terminal| {
        terminal.wait_for("The MCP server `scripted` asks: What now?");
        terminal.wait_for("name (Whose?) [`decline` to refuse]\r\n› ");
        terminal.press("Ada\n");
        terminal.wait_for("count, integer [nothing to leave it out, `decline` to refuse]\r\n› ");
        terminal.press("\n");
        terminal.wait_for("sure, boolean [`decline` to refuse] [true / false]\r\n› ");
        terminal.press("1\n");
    };
    let program =
        "answer = await scripted_toolkit.ask()\nprint(answer.action, answer.content.name, answer.content.sure)\n";
    let command = home.fimble(&["--toolkits", "kits", "run", "program.py", "--yes"], program);
    let mut terminal = Terminal::of(home, command, false);
    answer(&mut terminal);
    let home = std::mem::replace(&mut terminal.home, Home::new());
    let (code, stdout, rest) = terminal.end();
    assert_eq!((code, stdout.as_str()), (Some(0), "accept Ada True\n"), "{rest}");

    // By hand too.
    let command = home.fimble(&["toolkits", "call", "kits", "ask", "--yes"], "");
    let mut terminal = Terminal::of(home, command, false);
    answer(&mut terminal);
    let (code, stdout, rest) = terminal.end();
    assert_eq!(code, Some(0), "{rest}");
    let said: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(said, serde_json::json!({"action": "accept", "content": {"name": "Ada", "sure": true}}));
}
