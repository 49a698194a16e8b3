//! The file that names servers.

use std::collections::BTreeMap;
use std::fs;

use fimble_mcp::{Endpoint, Error, Server, read};
use tempfile::TempDir;

use crate::program;

#[test]
fn servers_are_read_in_their_order() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("mcp.json");
    let text = r#"{
        "globalShortcut": "Ctrl+Space",
        "mcpServers": {
            "time": {"command": "uvx", "args": ["mcp-server-time"], "env": {"TZ": "UTC"}, "cwd": "work", "type": "stdio"},
            "remote": {"url": "https://example.org/mcp", "headers": {"X-Key": "k"}, "disabled": true, "timeout": 5},
            "git": {"command": "mcp-server-git", "autoApprove": ["git_status"]}
        }
    }"#;
    fs::write(&path, text).unwrap();
    let pair = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
    let time = Endpoint::Command {
        command: "uvx".to_owned(),
        args: vec!["mcp-server-time".to_owned()],
        env: pair("TZ", "UTC"),
        cwd: Some(folder.path().join("work")),
    };
    let remote = Endpoint::Url { url: "https://example.org/mcp".to_owned(), headers: pair("X-Key", "k") };
    let expected = [
        Server { name: "time".to_owned(), endpoint: time, disabled: false },
        Server { name: "remote".to_owned(), endpoint: remote, disabled: true },
        program("git", "mcp-server-git", &[]),
    ];
    assert_eq!(read(&path).unwrap(), expected);
}

#[test]
fn a_mistake_is_named_with_its_line() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("mcp.json");
    for (text, line, expected) in [
        ("{", 1, "EOF while parsing an object"),
        ("{}", 1, "there is no key `mcpServers`"),
        ("{\n\"mcpservers\": {}}", 2, "unknown key `mcpservers`, expected `mcpServers`"),
        ("{\"mcpServers\": {\n\"a\": {\"comand\": \"x\"}}}", 2, "unknown field `comand`, expected one of `command`"),
        ("{\"mcpServers\": {\n\n\"a\": {\"args\": []}}}", 3, "the server `a` has neither `command` nor `url`"),
        ("{\"mcpServers\": {\"a\": {\"command\": \"x\",\n\"args\": \"y\"}}}", 2, "invalid type: string \"y\""),
        ("{\"mcpServers\": {\"a\": {\"command\": \"x\"},\n\"a\": {}}}", 2, "the server `a` is there twice"),
        ("{\"mcpServers\": {\"a\": {\"url\": \"ftp://x\"}}}", 1, "the server `a` has a `url` that is neither"),
        (
            "{\"mcpServers\": {\"a\": {\"url\": \"http://x\", \"type\": \"sse\"}}}",
            1,
            "the server `a` has the `type` \"sse\"",
        ),
    ] {
        fs::write(&path, text).unwrap();
        let Err(Error::Configuration { line: told, problem, .. }) = read(&path) else { panic!("{text}") };
        assert!(told == line && problem.starts_with(expected), "{text}\n{told}: {problem}");
    }
    let error = read(&folder.path().join("none.json")).unwrap_err();
    assert!(matches!(error, Error::Read { .. }), "{error}");
}
