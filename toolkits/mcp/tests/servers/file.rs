//! The file that names servers.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use fimble_mcp::{Client, Endpoint, Error, Limits, Server, Transport, connect, read};
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
            "git": {"command": "mcp-server-git", "autoApprove": ["git_status"], "colour": "red",
                    "includeTools": ["git_*"], "excludeTools": ["git_reset"], "timeout": 90000},
            "old": {"url": "${BASE}/sse", "type": "sse", "oauth": {"clientId": "me", "scopes": ["a"]}}
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
    let url = |url: &str, headers, transport, client| Endpoint::Url { url: url.to_owned(), headers, transport, client };
    let remote = url("https://example.org/mcp", pair("X-Key", "k"), Transport::Either, Client::default());
    let client = Client { id: Some("me".to_owned()), scopes: vec!["a".to_owned()], ..Client::default() };
    let old = url("${BASE}/sse", BTreeMap::new(), Transport::Sse, client);
    let read = read(&path).unwrap();
    let expected = [
        Server::new("time", time),
        Server { disabled: true, timeout: Some(Duration::from_secs(5)), ..Server::new("remote", remote) },
        Server {
            include: vec!["git_*".to_owned()],
            exclude: vec!["git_reset".to_owned()],
            timeout: Some(Duration::from_secs(90)),
            ..program("git", "mcp-server-git", &[])
        },
        Server::new("old", old),
    ];
    assert_eq!(read.servers, expected);
    assert_eq!(read.warnings, [format!("{}: the server `git` has an unknown key `colour`", path.display())]);
}

#[test]
fn a_mistake_is_named_with_its_line() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("mcp.json");
    for (text, line, expected) in [
        ("{", 1, "EOF while parsing an object"),
        ("{}", 1, "there is no key `mcpServers`"),
        ("{\n\"mcpservers\": {}}", 2, "unknown key `mcpservers`, expected `mcpServers`"),
        (
            "{\"mcpServers\": {\n\"a\": {\"comand\": \"x\"}}}",
            2,
            "the server `a` has neither `command` nor `url`, only an unknown `comand`",
        ),
        ("{\"mcpServers\": {\n\n\"a\": {\"args\": []}}}", 3, "the server `a` has neither `command` nor `url`"),
        ("{\"mcpServers\": {\"a\": {\"command\": \"x\",\n\"args\": \"y\"}}}", 2, "invalid type: string \"y\""),
        ("{\"mcpServers\": {\"a\": {\"command\": \"x\"},\n\"a\": {}}}", 2, "the server `a` is there twice"),
        ("{\"mcpServers\": {\"a\": {\"url\": \"ftp://x\"}}}", 1, "the server `a` has a `url` that is neither"),
        (
            "{\"mcpServers\": {\"a\": {\"url\": \"http://x\", \"type\": \"websocket\"}}}",
            1,
            "the server `a` has the `type` \"websocket\", expected http,",
        ),
    ] {
        fs::write(&path, text).unwrap();
        let Err(Error::Configuration { line: told, problem, .. }) = read(&path) else { panic!("{text}") };
        assert!(told == line && problem.starts_with(expected), "{text}\n{told}: {problem}");
    }
    let error = read(&folder.path().join("none.json")).unwrap_err();
    assert!(matches!(error, Error::Read { .. }), "{error}");
}

#[tokio::test]
async fn a_variable_that_is_not_set_is_named() {
    let server = program("git", "${FIMBLE_NO_SUCH_VARIABLE}/mcp-server-git", &[]);
    let error = connect(server, Limits::default()).await.err().unwrap();
    let expected = "the MCP server `git` needs the environment variable `FIMBLE_NO_SUCH_VARIABLE`, which is not set";
    assert_eq!(error.to_string(), expected);
}

proptest::proptest! {
    /// Whatever the file holds, it is read or refused with a line.
    #[test]
    fn any_file_is_read_or_refused(text in "(\\{|\\}|\"mcpServers\"|\"a\"|:|,|\"command\"|\"url\"|\"http://x\"|\"timeout\"|-1|\\[|\\]|\n|null|true){0,25}") {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("mcp.json");
        fs::write(&path, &text).unwrap();
        match read(&path) {
            Ok(_) => {}
            Err(Error::Configuration { line, .. }) => proptest::prop_assert!(line <= text.lines().count().max(1) + 1),
            Err(other) => proptest::prop_assert!(false, "{other}"),
        }
    }
}
