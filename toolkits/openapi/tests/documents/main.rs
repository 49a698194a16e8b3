//! The crate against documents and servers: published ones, real servers, and small ones that do what real ones rarely do.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod calls;
mod failures;
mod fastapi;
mod hostile;
mod operations;
mod paging;
mod security;
mod servers;
mod whole;

use std::sync::Arc;

use fimble_openapi::{Config, Loaded, Source, load};
use fimble_toolkit::{Call, SessionContext, ToolError, Toolkit};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn call_of(operation: &str, arguments: Value) -> Call {
    Call {
        operation: operation.to_owned(),
        arguments: arguments.as_object().cloned().unwrap(),
        key: "key-1".to_owned(),
        context: SessionContext::default(),
        cancellation: CancellationToken::new(),
    }
}

async fn call(toolkit: &dyn Toolkit, operation: &str, arguments: Value) -> Result<Value, ToolError> {
    toolkit.call(call_of(operation, arguments)).await
}

/// A document with these paths, and what else it has.
fn document(paths: Value, more: Value) -> Value {
    let mut document = json!({"openapi": "3.1.0", "info": {"title": "Test", "version": "1"}, "paths": paths});
    let fields = document.as_object_mut().unwrap();
    fields.extend(more.as_object().cloned().unwrap());
    document
}

/// A document that is loaded for the server at `base_url`.
async fn loaded(document: &Value, config: Config) -> Loaded {
    load(Source::Text(document.to_string()), config).await.unwrap()
}

/// The toolkit of the paths at a server.
async fn at(url: &str, paths: Value) -> Arc<dyn Toolkit> {
    let config = Config { base_url: Some(url.to_owned()), ..Config::default() };
    let loaded = loaded(&document(paths, json!({})), config).await;
    assert_eq!(loaded.problems, []);
    loaded.toolkit
}
