//! The crate against servers: four from the registries, some over HTTP, and one that does everything wrong.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod asking;
mod conformance;
mod everything;
mod file;
mod http;
mod lasting;
mod login;
mod real;
mod scripted;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fimble_mcp::{Client, Endpoint, Server, Transport};
use fimble_toolkit::{Call, SessionContext, ToolError, Toolkit};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// A server that is a program.
fn program(name: &str, command: impl AsRef<Path>, args: &[&str]) -> Server {
    let endpoint = Endpoint::Command {
        command: command.as_ref().to_str().unwrap().to_owned(),
        args: args.iter().map(|&argument| argument.to_owned()).collect(),
        env: BTreeMap::new(),
        cwd: None,
    };
    Server::new(name, endpoint)
}

async fn call(toolkit: &dyn Toolkit, operation: &str, arguments: Value) -> Result<Value, ToolError> {
    call_for(SessionContext::default(), toolkit, operation, arguments).await
}

async fn call_for(
    context: SessionContext,
    toolkit: &dyn Toolkit,
    operation: &str,
    arguments: Value,
) -> Result<Value, ToolError> {
    toolkit
        .call(Call {
            operation: operation.to_owned(),
            arguments: arguments.as_object().cloned().unwrap(),
            key: String::new(),
            context,
            cancellation: CancellationToken::new(),
        })
        .await
}

/// The folder of the servers that the tests speak to; they are installed if need be.
fn servers() -> PathBuf {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/mcp-test-servers");
    let output = Command::new(script).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

/// A program of their Python environment.
fn python(program: &str) -> PathBuf {
    servers().join("bin").join(program)
}

/// A program of their Node packages.
fn node(program: &str) -> PathBuf {
    servers().join("node/node_modules/.bin").join(program)
}

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts one of the fixtures that serve HTTP; its address is its first line.
fn fixture(name: &str, arguments: &[&str]) -> (Process, String) {
    let script = format!("{}/tests/servers/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(python("python"));
    let mut child = command.arg(script).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
    (Process(child), address.trim().to_owned())
}

/// A server with an address.
fn address(url: &str, transport: Transport) -> Server {
    let endpoint =
        Endpoint::Url { url: url.to_owned(), headers: BTreeMap::new(), transport, client: Client::default() };
    Server::new("remote", endpoint)
}

/// The operations that a program sees now.
fn operations(toolkit: &dyn Toolkit) -> Vec<String> {
    toolkit.declaration().operations.into_iter().map(|operation| operation.name).collect()
}

/// Waits until it is so; what never becomes so fails the test after a minute.
async fn until(what: impl Fn() -> bool) {
    let waiting = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.unwrap();
}
