//! Servers that others wrote.

use std::path::Path;
use std::process::Command;

use fimble_mcp::{Limits, connect};
use fimble_toolkit::{ErrorKind, Risk, signature};
use serde_json::json;
use tempfile::TempDir;

use crate::{call, node, program, python};

#[tokio::test]
async fn the_time_server_converts_a_time() {
    let server = program("time", python("mcp-server-time"), &["--local-timezone", "UTC"]);
    let toolkit = connect(server, Limits::default()).await.unwrap();
    let declaration = toolkit.declaration();
    let stubs: Vec<String> = declaration.operations.iter().map(signature).collect();
    assert_eq!(declaration.name, "time_toolkit");
    let [now, convert] = stubs.as_slice() else { panic!("{stubs:?}") };
    assert!(now.starts_with("get_current_time(timezone: str)"), "{now}");
    assert!(convert.starts_with("convert_time(source_timezone: str, time: str, target_timezone: str)"), "{convert}");

    let arguments = json!({"source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "Asia/Kolkata"});
    let converted = call(&*toolkit, "convert_time", arguments).await.unwrap();
    let clock = converted["target"]["datetime"].as_str().unwrap();
    assert!(clock.ends_with("T08:30:00+05:30"), "{converted}");
    assert_eq!(converted["time_difference"], json!("-3.5h"));

    let arguments = json!({"source_timezone": "Nowhere", "time": "12:00", "target_timezone": "UTC"});
    let error = call(&*toolkit, "convert_time", arguments).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Failed);
    assert!(error.message.contains("Nowhere"), "{error}");
}

#[tokio::test]
async fn the_git_server_tells_the_status_of_a_repository() {
    let folder = TempDir::new().unwrap();
    git(folder.path(), &["init", "--quiet", "--initial-branch=main"]);
    std::fs::write(folder.path().join("new.txt"), "new\n").unwrap();
    let path = folder.path().to_str().unwrap();

    let server = program("git", python("mcp-server-git"), &["--repository", path]);
    let toolkit = connect(server, Limits::default()).await.unwrap();
    let declaration = toolkit.declaration();
    let risks = ["git_status", "git_reset"].map(|name| declaration.operation(name).unwrap().risk);
    assert_eq!((declaration.name.as_str(), risks), ("git_toolkit", [Risk::Read, Risk::Destructive]));

    let status = call(&*toolkit, "git_status", json!({"repo_path": path})).await.unwrap();
    let text = status.as_str().unwrap();
    assert!(text.contains("On branch main") && text.contains("new.txt"), "{text}");
}

fn git(folder: &Path, arguments: &[&str]) {
    assert!(Command::new("git").arg("-C").arg(folder).args(arguments).status().unwrap().success());
}

#[tokio::test]
async fn the_file_server_writes_and_reads_within_its_folder() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().to_str().unwrap();
    let server = program("filesystem", node("mcp-server-filesystem"), &[path]);
    let toolkit = connect(server, Limits::default()).await.unwrap();
    let declaration = toolkit.declaration();
    let risks =
        ["read_text_file", "write_file", "list_directory"].map(|name| declaration.operation(name).unwrap().risk);
    assert_eq!(risks, [Risk::Read, Risk::Destructive, Risk::Read]);

    let file = format!("{path}/note.txt");
    call(&*toolkit, "write_file", json!({"path": file, "content": "hello"})).await.unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "hello");
    let read = call(&*toolkit, "read_text_file", json!({"path": file})).await.unwrap();
    assert_eq!(read, json!({"content": "hello"}));
    let error = call(&*toolkit, "read_text_file", json!({"path": "/etc/passwd"})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Failed);
    assert!(error.message.contains("outside allowed directories"), "{error}");
}
