//! The client that the protocol's own conformance suite starts: `conformance client --command target/debug/examples/conformance
//! --requirements 2026-07-28`. The server's address is the last argument; it logs in if it must, and calls each tool once.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use fimble_mcp::{Client, Endpoint, Error, Limits, Server, Settings, Transport, connect, login};
use fimble_toolkit::{Answers, Call, Operation, Person, SessionContext, ToolError, Toolkit};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

/// Somebody who agrees with all that is proposed.
struct Agreeable;

#[async_trait]
impl Answers for Agreeable {
    async fn answer(&self, _question: &str, choices: &[String]) -> Option<String> {
        // A form's field without an answer takes its default.
        Some(if choices.iter().any(|choice| choice == "accept") { "accept".to_owned() } else { String::new() })
    }
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Outcome {
    let url = std::env::args().next_back().ok_or("there is no address")?;
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
    let mut server = Server::new("conformance", endpoint);
    let folder = tempfile::tempdir()?;
    let settings = Settings { limits: Limits::default(), cache: None, tokens: Some(folder.path().to_owned()) };

    let toolkit = reach(&mut server, &settings).await?;
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
            match called(&server, &settings, toolkit.as_ref(), &operation.name, arguments).await {
                Ok(value) => println!("{}: {value}", operation.name),
                Err(error) => println!("{}: {error}", operation.name),
            }
        }
    }
    Ok(())
}

/// Connects, and logs in as often as it takes, up to a few times.
async fn reach(server: &mut Server, settings: &Settings) -> Result<Arc<dyn Toolkit>, Error> {
    for _ in 0..3 {
        match connect(server.clone(), settings.clone()).await {
            Err(Error::Login(_)) => login(server, settings, visit).await?,
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

async fn called(
    server: &Server,
    settings: &Settings,
    toolkit: &dyn Toolkit,
    operation: &str,
    arguments: Map<String, Value>,
) -> Result<Value, ToolError> {
    let call = || Call {
        operation: operation.to_owned(),
        arguments: arguments.clone(),
        key: String::new(),
        context: SessionContext { person: Person::new(Arc::new(Agreeable)), ..SessionContext::default() },
        cancellation: CancellationToken::new(),
    };
    let mut result = toolkit.call(call()).await;
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
        result = toolkit.call(call()).await;
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
