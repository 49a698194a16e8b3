//! The crate against servers: two from a registry, one over HTTP, and one that does everything wrong.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod file;
mod http;
mod real;
mod scripted;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use fimble_mcp::{Endpoint, Server};
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
    Server { name: name.to_owned(), endpoint, disabled: false }
}

async fn call(toolkit: &dyn Toolkit, operation: &str, arguments: Value) -> Result<Value, ToolError> {
    toolkit
        .call(Call {
            operation: operation.to_owned(),
            arguments: arguments.as_object().cloned().unwrap(),
            key: String::new(),
            context: SessionContext::default(),
            cancellation: CancellationToken::new(),
        })
        .await
}

/// What the tests install, in a folder of the user's cache that later runs find again.
const PACKAGES: [&str; 2] = ["mcp-server-time==2026.10.19", "mcp-server-git==2026.10.19"];

/// The `bin` of a virtual environment with [`PACKAGES`].
fn environment() -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap();
    let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(|| home.join(".cache"), PathBuf::from);
    let tests = cache.join("fimble/tests");
    fs::create_dir_all(&tests).unwrap();
    // Tests of one run are processes of their own.
    let lock = File::create(tests.join("mcp.lock")).unwrap();
    lock.lock().unwrap();
    let (folder, installed) = (tests.join("mcp"), tests.join("mcp/installed"));
    let wanted = PACKAGES.join("\n");
    if fs::read_to_string(&installed).ok().as_deref() != Some(&wanted) {
        let run = |command: &mut Command| assert!(command.status().unwrap().success(), "{command:?}");
        run(Command::new("/usr/bin/python3").args(["-m", "venv"]).arg(&folder));
        run(Command::new(folder.join("bin/pip")).args(["install", "--quiet"]).args(PACKAGES));
        fs::write(&installed, wanted).unwrap();
    }
    folder.join("bin")
}
