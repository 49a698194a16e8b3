//! A server that is reached by Streamable HTTP.

use fimble_mcp::{Endpoint, Limits, Server, Transport, connect};
use fimble_toolkit::{ErrorKind, signature};
use serde_json::json;

use crate::{address, call, fixture};

fn server(url: &str, key: &str) -> Server {
    let mut server = address(url, Transport::Either);
    if let Endpoint::Url { headers, .. } = &mut server.endpoint {
        headers.insert("X-Key".to_owned(), key.to_owned());
    }
    server
}

#[tokio::test]
async fn a_server_is_called_over_http() {
    let (running, url) = fixture("http_server.py", &[]);
    let toolkit = connect(server(&url, "open"), Limits::default()).await.unwrap();
    let declaration = toolkit.declaration();
    let stubs: Vec<String> = declaration.operations.iter().map(signature).collect();
    assert_eq!(declaration.description, "Adds numbers.");
    assert_eq!(stubs, ["add(a: int, b: int = 1) -> int", "fail() -> str", "mammoth() -> str", "greet() -> str"]);
    assert_eq!(call(&*toolkit, "add", json!({"a": 2, "b": 3})).await, Ok(json!(5)));
    let error = call(&*toolkit, "fail", json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Failed);

    drop(running);
    let error = call(&*toolkit, "add", json!({"a": 2})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
}

#[tokio::test]
async fn an_answer_that_is_too_large_fails_its_call_and_no_other() {
    let (_running, url) = fixture("http_server.py", &[]);
    let toolkit = connect(server(&url, "open"), Limits::default()).await.unwrap();
    let error = call(&*toolkit, "mammoth", json!({})).await.unwrap_err();
    assert!(error.message.contains("mammoth()") && error.kind != ErrorKind::Timeout, "{error:?}");
    assert_eq!(call(&*toolkit, "add", json!({"a": 2, "b": 3})).await, Ok(json!(5)));
}

#[tokio::test]
async fn a_server_that_refuses_says_so() {
    let (_running, url) = fixture("http_server.py", &[]);
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
