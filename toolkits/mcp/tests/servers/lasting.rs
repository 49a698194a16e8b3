//! What outlives a call: the list of tools that is remembered and changes, the process that is started when it is needed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use fimble_mcp::{Limits, Settings, connect, diagnose};
use fimble_toolkit::ErrorKind;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::scripted::{scripted, wait_for_the_end};
use crate::{call, operations, until};

/// A server that counts its starts, and the settings of a host that remembers it.
fn counted(folder: &Path) -> (fimble_mcp::Server, Settings) {
    let server = scripted(&[&format!("starts={}", folder.join("starts").display())]);
    (server, Settings { cache: Some(folder.join("cache")), ..Settings::default() })
}

fn starts(folder: &Path) -> usize {
    fs::read(folder.join("starts")).map_or(0, |starts| starts.len())
}

#[tokio::test]
async fn a_server_that_is_remembered_starts_at_its_first_call() {
    let folder = TempDir::new().unwrap();
    let (server, settings) = counted(folder.path());
    let first = connect(server.clone(), settings.clone()).await.unwrap();
    let known = first.declaration();
    // The first attempt and, where the server ends at the first question, a second; this one does not.
    assert_eq!(starts(folder.path()), 1);
    drop(first);

    let second = connect(server.clone(), settings.clone()).await.unwrap();
    assert_eq!(second.declaration(), known);
    assert_eq!(starts(folder.path()), 1, "nothing was asked of it yet");
    assert_eq!(call(&*second, "json", json!({})).await, Ok(json!({"a": 1})));
    assert_eq!(starts(folder.path()), 2);

    let old = Settings { limits: Limits { remembered: Duration::ZERO, ..Limits::default() }, ..settings.clone() };
    let third = connect(server.clone(), old).await.unwrap();
    assert_eq!((third.declaration(), starts(folder.path())), (known, 3));

    // What cannot be read is asked for again.
    for entry in fs::read_dir(folder.path().join("cache")).unwrap() {
        fs::write(entry.unwrap().path(), "{\"way\": ").unwrap();
    }
    connect(server, settings).await.unwrap();
    assert_eq!(starts(folder.path()), 4);
}

#[tokio::test]
async fn a_list_that_changes_in_mid_call_replaces_the_declaration() {
    let folder = TempDir::new().unwrap();
    let (server, settings) = counted(folder.path());
    let toolkit = connect(server.clone(), settings.clone()).await.unwrap();
    let (before, revision) = (operations(&*toolkit), toolkit.revision());
    assert_eq!(call(&*toolkit, "grow", json!({})).await, Ok(json!("grown")));
    until(|| toolkit.revision() != revision).await;
    let after = operations(&*toolkit);
    assert_eq!(after[..before.len()], before);
    let [grown] = &after[before.len()..] else { panic!("{after:?}") };
    assert!(grown.starts_with("grown"), "{grown}");
    // The other proxies go on.
    assert_eq!(call(&*toolkit, "json", json!({})).await, Ok(json!({"a": 1})));

    // A server that is started later without the tool takes it back.
    let later = connect(server, settings).await.unwrap();
    assert_eq!(operations(&*later), after);
    call(&*later, "json", json!({})).await.unwrap();
    until(|| operations(&*later) == before).await;
    let error = call(&*later, grown, json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::UnknownOperation);
}

#[tokio::test]
async fn a_server_that_keeps_failing_is_left_alone_for_a_while() {
    let limits = Limits { restart: Duration::from_secs(600), ..Limits::default() };
    let toolkit = connect(scripted(&[]), limits).await.unwrap();
    // The first time it is started again at once, then no more.
    call(&*toolkit, "crash", json!({})).await.unwrap_err();
    call(&*toolkit, "crash", json!({})).await.unwrap_err();
    let error = call(&*toolkit, "json", json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(error.message.starts_with("the MCP server `my server-1` failed and is left alone for "), "{error}");

    let limits = Limits { restart: Duration::ZERO, ..Limits::default() };
    let toolkit = connect(scripted(&[]), limits).await.unwrap();
    for _ in 0..3 {
        call(&*toolkit, "crash", json!({})).await.unwrap_err();
    }
    assert_eq!(call(&*toolkit, "json", json!({})).await, Ok(json!({"a": 1})));
}

#[tokio::test]
async fn nobody_waits_for_a_slow_server_for_long() {
    let limits = Limits { patience: Duration::from_millis(1), ..Limits::default() };
    let toolkit = connect(scripted(&[]), limits).await.unwrap();
    assert_eq!(toolkit.declaration().name, "my_server_1_toolkit");
    until(|| toolkit.declaration().operation("json").is_some()).await;
    assert_eq!(call(&*toolkit, "json", json!({})).await, Ok(json!({"a": 1})));

    let toolkit = connect(scripted(&["broken"]), limits).await.unwrap();
    until(|| toolkit.declaration().description.starts_with("It cannot be used now: ")).await;
    assert!(toolkit.declaration().description.contains("No module named"), "{}", toolkit.declaration().description);
}

#[tokio::test]
async fn a_host_that_is_killed_takes_its_servers_along() {
    const HOST: &str = "FIMBLE_TEST_IS_HOST";
    if std::env::var_os(HOST).is_some() {
        let toolkit = connect(scripted(&[]), Limits::default()).await.unwrap();
        println!("\nprocesses: {}", call(&*toolkit, "processes", json!({})).await.unwrap());
        std::future::pending::<()>().await;
    }
    let mut host = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lasting::a_host_that_is_killed_takes_its_servers_along", "--nocapture"])
        .env(HOST, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(host.stdout.take().unwrap()).lines().map_while(Result::ok);
    let processes = lines.find_map(|line| line.strip_prefix("processes: ").map(str::to_owned)).unwrap();
    host.kill().unwrap();
    host.wait().unwrap();
    let processes: Value = serde_json::from_str(&processes).unwrap();
    wait_for_the_end(&processes[0]);
    wait_for_the_end(&processes[1]);
}

#[tokio::test]
async fn every_hop_is_told() {
    let mut server = scripted(&[]);
    server.exclude = vec!["big".to_owned(), "huge".to_owned()];
    let hops = diagnose(&server, &Settings::default()).await;
    let told: Vec<(&str, String)> = hops.iter().map(|hop| (hop.name, hop.outcome.clone().unwrap())).collect();
    let expected = [
        ("spawn", "`/usr/bin/python3` runs"),
        ("version", "2025-11-25, scripted 1"),
        ("list", "37 tools"),
        (
            "filter",
            "2 tools left out by the settings, 4 unusable: tool 2: it has no name; tool 3: `strange` has an \
             `inputSchema` that is no schema; tool 4: it is no object; the tool `echo` is listed twice",
        ),
        (
            "name",
            "my_server_1_toolkit with 31 operations; `import` is import_(), `get-sum` is get_sum(), `get.sum` is \
             get_sum_2(), `lambda` is lambda_()",
        ),
    ];
    assert_eq!(told, expected.map(|(name, outcome)| (name, outcome.to_owned())));

    for (server, name, begins) in [
        (crate::program("none", "/nowhere/server", &[]), "spawn", "the MCP server `none` did not start"),
        (scripted(&["broken"]), "version", "the MCP server `my server-1` ended with exit status: 1"),
        (scripted(&["nolist"]), "list", "the MCP server `my server-1` listed its tools as something"),
    ] {
        let hops = diagnose(&server, &Settings::default()).await;
        let last = hops.last().unwrap();
        let problem = last.outcome.clone().unwrap_err();
        assert!(last.name == name && problem.starts_with(begins) && last.hint.is_some(), "{last:?}");
    }
}

#[tokio::test]
async fn a_server_ends_by_itself_once_its_input_is_closed_or_is_killed() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("end");
    let toolkit = connect(scripted(&[&format!("ends={}", file.display())]), Limits::default()).await.unwrap();
    drop(toolkit);
    until(|| fs::read_to_string(&file).is_ok_and(|text| text == "in order")).await;

    // One that neither hears the end of its input nor the signal.
    let limits = Limits { stop: Duration::from_millis(100), ..Limits::default() };
    let toolkit = connect(scripted(&["stays"]), limits).await.unwrap();
    let processes = call(&*toolkit, "processes", json!({})).await.unwrap();
    drop(toolkit);
    wait_for_the_end(&processes[0]);
    wait_for_the_end(&processes[1]);
}
