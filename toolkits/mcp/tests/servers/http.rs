//! A server that is reached by Streamable HTTP.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use fimble_mcp::{Endpoint, Limits, Server, connect};
use fimble_toolkit::{ErrorKind, signature};
use serde_json::json;

use crate::{call, environment};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/fixtures/http_server.py");

/// The server's process, ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start() -> (Running, String) {
    let mut child = Command::new(environment().join("python")).arg(SCRIPT).stdout(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
    (Running(child), address.trim().to_owned())
}

fn server(url: &str, key: &str) -> Server {
    let headers = BTreeMap::from([("X-Key".to_owned(), key.to_owned())]);
    Server { name: "remote".to_owned(), endpoint: Endpoint::Url { url: url.to_owned(), headers }, disabled: false }
}

#[tokio::test]
async fn a_server_is_called_over_http() {
    let (running, url) = start();
    let toolkit = connect(server(&url, "open"), Limits::default()).await.unwrap();
    let declaration = toolkit.declaration();
    let stubs: Vec<String> = declaration.operations.iter().map(signature).collect();
    assert_eq!(declaration.description, "Adds numbers.");
    assert_eq!(stubs, ["add(a: int, b: int = 1) -> int", "fail() -> str"]);
    assert_eq!(call(&*toolkit, "add", json!({"a": 2, "b": 3})).await, Ok(json!(5)));
    let error = call(&*toolkit, "fail", json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Failed);

    drop(running);
    let error = call(&*toolkit, "add", json!({"a": 2})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
}

#[tokio::test]
async fn a_server_that_refuses_says_so() {
    let (_running, url) = start();
    let Err(error) = connect(server(&url, "wrong"), Limits::default()).await else { panic!("it let us in") };
    let text = error.to_string();
    assert!(text.starts_with("the MCP server `remote` ") && text.contains("403"), "{text}");
}

#[tokio::test]
async fn an_address_without_a_server_says_so() {
    // Nothing listens there: the port was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let Err(error) = connect(server(&format!("http://127.0.0.1:{port}/mcp"), "k"), Limits::default()).await else {
        panic!("somebody answered")
    };
    assert!(error.to_string().starts_with("the MCP server `remote` cannot be reached: "), "{error}");
    assert!(error.hint().contains("`url`"), "{}", error.hint());
    let refused = connect(server("http://127.0.0.1:1/mcp", "a\nb"), Limits::default()).await.err().unwrap();
    assert_eq!(refused.to_string(), "the MCP server `remote` has a header `X-Key` that cannot be sent");
}
