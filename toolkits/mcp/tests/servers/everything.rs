//! The reference server that does everything, over all three transports.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use fimble_mcp::{Limits, Transport, connect};
use fimble_toolkit::{ErrorKind, Toolkit};
use serde_json::json;

use crate::{Process, address, call, node, program, until};

/// What holds however the server is reached.
async fn check(toolkit: &dyn Toolkit) {
    let declaration = toolkit.declaration();
    assert!(declaration.operation("get_structured_content").is_some(), "{declaration:?}");
    assert_eq!(call(toolkit, "echo", json!({"message": "hello"})).await, Ok(json!("Echo: hello")));
    let sum = call(toolkit, "get_sum", json!({"a": 2, "b": 3})).await.unwrap();
    assert_eq!(sum, json!("The sum of 2 and 3 is 5."));

    let weather = call(toolkit, "get_structured_content", json!({"location": "Chicago"})).await.unwrap();
    assert!(weather["temperature"].is_number() && weather["conditions"].is_string(), "{weather}");

    let image = call(toolkit, "get_tiny_image", json!({})).await.unwrap();
    let kinds: Vec<&str> = image.as_array().unwrap().iter().map(|part| part["type"].as_str().unwrap()).collect();
    assert_eq!((kinds, &image[1]["mime_type"]), (vec!["text", "image", "text"], &json!("image/png")));
    assert!(image[1]["data"]["v"].as_str().unwrap().starts_with("iVBOR"), "{image}");

    let links = call(toolkit, "get_resource_links", json!({"count": 2})).await.unwrap();
    assert_eq!((&links[1]["type"], links[1]["uri"].is_string()), (&json!("resource_link"), true), "{links}");
    let resource =
        call(toolkit, "get_resource_reference", json!({"resourceType": "Blob", "resourceId": 1})).await.unwrap();
    assert!(resource[1]["type"] == "resource" && resource[1]["data"]["$"] == "bytes", "{resource}");

    let error = call(toolkit, "get_sum", json!({"a": "two", "b": 3})).await.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Failed | ErrorKind::InvalidArgument), "{error:?}");
    let steps = json!({"duration": 1, "steps": 2});
    let done = call(toolkit, "trigger_long_running_operation", steps).await.unwrap();
    assert!(done.as_str().unwrap().contains("completed"), "{done}");
}

#[tokio::test]
async fn the_server_that_does_everything_by_its_pipes() {
    let server = program("everything", node("mcp-server-everything"), &["stdio"]);
    let toolkit = connect(server, Limits::default()).await.unwrap();
    check(&*toolkit).await;
    // It knows some tools only after it was asked what we can do; the list grows a moment later.
    until(|| toolkit.declaration().operation("trigger_elicitation_request").is_some()).await;
}

/// The server at a port of its own.
fn serve(transport: &str) -> (Process, u16) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new(node("mcp-server-everything"));
    command.arg(transport).env("PORT", port.to_string()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let told = lines.any(|line| line.unwrap().contains(&port.to_string()));
    assert!(told, "it ended");
    // What it says further must not stop it.
    std::thread::spawn(move || lines.for_each(drop));
    (Process(child), port)
}

#[tokio::test]
async fn the_server_that_does_everything_by_streamable_http() {
    let (_process, port) = serve("streamableHttp");
    let server = address(&format!("http://127.0.0.1:{port}/mcp"), Transport::Either);
    let toolkit = connect(server, Limits::default()).await.unwrap();
    check(&*toolkit).await;
}

#[tokio::test]
async fn the_server_that_does_everything_by_the_events_of_2024() {
    let (process, port) = serve("sse");
    for transport in [Transport::Sse, Transport::Either] {
        let server = address(&format!("http://127.0.0.1:{port}/sse"), transport);
        let toolkit = connect(server, Limits::default()).await.unwrap();
        check(&*toolkit).await;
        if transport == Transport::Either {
            drop(process);
            let error = call(&*toolkit, "echo", json!({"message": "hello"})).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
            break;
        }
    }
}
