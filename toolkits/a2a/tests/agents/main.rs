//! The crate against agents: one on the official Python SDK, and answers that no SDK gives.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod asking;
mod hostile;
mod sdk;

use std::collections::BTreeMap;
use std::sync::Arc;

use fimble_a2a::{Agent, Limits, connect};
use fimble_toolkit::{Call, SessionContext, ToolError, Toolkit};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

fn agent(url: &str) -> Agent {
    Agent { name: "cook".to_owned(), url: url.to_owned(), token: None, headers: BTreeMap::new() }
}

async fn reached(url: &str) -> Arc<dyn Toolkit> {
    connect(agent(url), Limits::default()).await.unwrap()
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
    toolkit.call(made(context, operation, arguments)).await
}

fn made(context: SessionContext, operation: &str, arguments: Value) -> Call {
    Call {
        operation: operation.to_owned(),
        arguments: arguments.as_object().cloned().unwrap(),
        key: String::new(),
        context,
        cancellation: CancellationToken::new(),
    }
}
