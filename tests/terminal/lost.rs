//! A conversation whose session another process takes over in the middle of an answer.

use super::hot_plug::{model, say};
use super::server::Server;
use super::*;

const MANIFEST: &str = "\
name = 'hold_toolkit'
description = 'Holds.'
[[operation]]
name = 'hold'
description = 'Never ends by itself.'
command = ['sh', '-c', 'touch begun; sleep 1000']
risk = 'read'
timeout_s = 1000
";

#[test]
fn a_conversation_says_that_its_session_was_taken_over_and_goes_on_with_it_as_it_is_then() {
    let server = Server::new();
    let home = Home::new();
    std::fs::create_dir(home.folder.path().join("kits")).unwrap();
    std::fs::write(home.folder.path().join("kits/hold.toml"), MANIFEST).unwrap();
    let address = model(&["await hold_toolkit.hold()", "await system_toolkit.send_message('here again')"]);
    let (address, store) = (format!("llm.base_url={address}"), format!("store={}", server.url()));
    let settings = ["-c", &store, "-c", &address, "-c", "llm.model=m", "-c", "llm.fill=none", "--toolkits", "kits"];
    let chat = ["-c", "agent.encoding=\"chat\"", "chat"];
    let command = home.fimble(&[&settings[..], &chat].concat(), "");
    let begun = home.folder.path().join("begun");
    let mut terminal = Terminal::of(home, command, true);
    say(&mut terminal, "one");
    while !begun.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let list = text(&terminal.home.output(&["-c", &store, "sessions", "list"], "").stdout);
    let id = list.split_whitespace().next().unwrap().to_owned();
    // As after a break in which nothing was heard of the conversation; it may prolong its lease in between.
    let rewind = ["-c", &store, "sessions", "rewind", &id, "--at", "0"];
    let rewound = (0..100).any(|_| {
        server.run(&["DEL", &format!("fimble:{{{id}}}:lease")]);
        terminal.home.output(&rewind, "").status.code() == Some(0)
    });
    assert!(rewound, "its lease is always prolonged");
    terminal.wait_for("error: another fimble took this session over, so this one stopped its work in it");
    terminal.wait_for(&format!("hint: `fimble sessions follow {id}` shows what it does"));
    say(&mut terminal, "two");
    terminal.wait_for("here again");
    say(&mut terminal, "/quit");
    assert_eq!(terminal.end().0, Some(0));
}
