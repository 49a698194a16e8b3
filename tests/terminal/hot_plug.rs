//! Files of toolkits that come, change, break and go in the middle of a conversation.

use std::io::{BufRead, BufReader};
use std::path::Path;

use serde_json::{Value, json};

use super::*;

/// The address of a model that writes these programs, one a request.
pub fn model(programs: &[&str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let mut programs: Vec<String> = programs.iter().rev().map(|program| (*program).to_owned()).collect();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut first, mut length) = (String::new(), 0);
            reader.read_line(&mut first).unwrap();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            reader.read_exact(&mut vec![0; length]).unwrap();
            let (kind, body) = if first.starts_with("POST ") && first.contains("/chat/completions") {
                let chunk =
                    |delta: Value, end: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": end}]});
                let text = programs.pop().unwrap_or_else(|| "pass".to_owned());
                let said = chunk(json!({ "content": text }), Value::Null);
                let end = chunk(json!({}), json!("stop"));
                ("text/event-stream", format!("data: {said}\n\ndata: {end}\n\ndata: [DONE]\n\n"))
            } else {
                ("application/json", r#"{"data":[{"id":"m"}]}"#.to_owned())
            };
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\ncontent-length:");
            let _ = write!(stream, "{head} {}\r\n\r\n{body}", body.len());
        }
    });
    address
}

fn write(folder: &Path, file: &str, word: &str) {
    let text = format!(
        "name = \"plug_toolkit\"\ndescription = \"A word.\"\n[[operation]]\nname = \"word\"\ndescription = \"The word.\"\n\
         command = [\"printf\", \"the {word} word\"]\nrisk = \"read\"\n"
    );
    std::fs::write(folder.join(file), text).unwrap();
}

/// Says something at the conversation's prompt.
pub fn say(terminal: &mut Terminal, message: &str) {
    // The editor asks where the cursor is, and is at work once it has shown its prompt.
    terminal.wait_for("\x1b[6n");
    terminal.press("\x1b[2;1R");
    terminal.wait_for("fimble");
    terminal.press(message);
    terminal.press("\r");
}

#[test]
fn a_conversation_takes_in_what_changes_in_its_folders() {
    let tell = "await system_toolkit.send_message(await plug_toolkit.word())";
    let address = model(&[tell, tell, tell, tell, "await system_toolkit.send_message('none is left')"]);
    let home = Home::new();
    let folder = home.folder.path().join("kits");
    std::fs::create_dir(&folder).unwrap();
    write(&folder, "a.toml", "first");
    let address = format!("llm.base_url={address}");
    let settings = ["-c", &address, "-c", "llm.model=m", "-c", "llm.fill=none", "-c", "agent.encoding=\"chat\""];
    let command = home.fimble(&[&settings[..], &["--toolkits", "kits", "chat"]].concat(), "");
    let mut terminal = Terminal::of(home, command, true);

    say(&mut terminal, "one");
    terminal.wait_for("the first word");

    write(&folder, "a.toml", "second");
    std::fs::write(folder.join("b.toml"), "name = 1\n").unwrap();
    say(&mut terminal, "two");
    terminal.wait_for("~ plug_toolkit has changed");
    terminal.wait_for("warning: kits/b.toml:1: invalid type: integer `1`, expected a string");
    terminal.wait_for("the second word");

    std::fs::write(folder.join("a.toml"), "name = \"plug_toolkit\"\ndescription = 2\n").unwrap();
    say(&mut terminal, "three");
    terminal.wait_for("warning: kits/a.toml:2: invalid type: integer `2`, expected a string");
    terminal.wait_for("`plug_toolkit` stays as it was before");
    terminal.wait_for("the second word");

    std::fs::remove_file(folder.join("a.toml")).unwrap();
    say(&mut terminal, "four");
    terminal.wait_for("~ plug_toolkit is gone");
    terminal.wait_for("plug_toolkit");
    terminal.wait_for("none is left");
    terminal.wait_for("\x1b[6n");
    terminal.press("\x1b[2;1R");
    terminal.wait_for("fimble");
    terminal.press("\u{4}");
    assert_eq!(terminal.end().0, Some(0));
}
