//! One server as a toolkit. It keeps the server running: one that ended is started again at the next call.

use std::sync::Arc;

use async_trait::async_trait;
use fimble_toolkit::{Call, Declaration, ErrorKind, ToolError, Toolkit, python_name};
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::connection::{CallFailure, Connection, Era};
use crate::error::last_words;
use crate::tool::{self, Tool};
use crate::wire::TOO_LONG;
use crate::{Endpoint, Error, Limits, Server, outcome};

/// A server's tools as operations.
pub(crate) struct ServerToolkit {
    server: Server,
    limits: Limits,
    declaration: Declaration,
    tools: Vec<Tool>,
    era: Era,
    /// `None` from the moment that the server is known to be gone until it runs again. Held while it is started.
    connection: Mutex<Option<Arc<Connection>>>,
}

impl ServerToolkit {
    /// Starts the server and asks for its tools.
    pub(crate) async fn connect(server: Server, limits: Limits) -> Result<Self, Error> {
        if server.disabled {
            return Err(Error::Disabled(server.name));
        }
        let connection = Connection::open(&server, &limits, None).await?;
        let listed = match connection.tools(&server, &limits).await {
            Ok(listed) => listed,
            Err(problem) => return Err(connection.fail(&server, problem).await),
        };
        let (operations, tools, left_out) = tool::operations(&listed, &limits);
        for problem in left_out {
            tracing::warn!(server = server.name, problem, "a tool of an MCP server is left out");
        }
        let about = connection.about().map(|text| limits.text(&text)).filter(|text| !text.is_empty());
        let declaration = Declaration {
            name: format!("{}_toolkit", python_name(&server.name, "mcp").trim_end_matches('_')),
            description: about.unwrap_or_else(|| format!("Tools of the MCP server `{}`.", server.name)),
            operations,
        };
        let era = connection.era;
        Ok(Self { server, limits, declaration, tools, era, connection: Mutex::new(Some(Arc::new(connection))) })
    }

    /// The running server, started again if it ended.
    async fn running(&self) -> Result<Arc<Connection>, ToolError> {
        let mut slot = self.connection.lock().await;
        if let Some(connection) = slot.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(Arc::clone(connection));
        }
        // The old one goes first: it may hold a port or a file that the new one needs.
        *slot = None;
        tracing::warn!(server = self.server.name, "an MCP server is started again");
        let opened = Connection::open(&self.server, &self.limits, Some(self.era)).await;
        let connection = Arc::new(opened.map_err(|error| {
            ToolError::unavailable(self.limits.text(&error.to_string()))
                .with_hint("do without it, or tell the user that this server does not start")
        })?);
        *slot = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// Forgets a connection that failed, unless another call has put a new one in its place.
    async fn forget(&self, connection: &Arc<Connection>) {
        let mut slot = self.connection.lock().await;
        if slot.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection)) {
            *slot = None;
        }
    }

    async fn call_tool(&self, tool: &Tool, arguments: Map<String, Value>) -> Result<Value, ToolError> {
        let connection = self.running().await?;
        let called = format!("{}.{}()", self.declaration.name, tool.operation);
        match connection.call(&tool.name, arguments).await {
            Ok(answer) => outcome::value(answer, &called, tool.wrapped, &self.limits),
            Err(CallFailure::Refused { code: TOO_LONG, message }) => {
                Err(ToolError::failed(format!("{called}: {message}"))
                    .with_hint("ask for less, e.g. by a filter, a limit or page by page"))
            }
            Err(CallFailure::Refused { code, message }) => {
                Err(outcome::refusal(&called, code.0, &message, &self.limits))
            }
            Err(CallFailure::Closed(problem)) => {
                tracing::debug!(server = self.server.name, problem, "an MCP server is gone");
                self.forget(&connection).await;
                let stderr = last_words(&connection.last_words().await);
                let name = &self.server.name;
                let message = match &self.server.endpoint {
                    Endpoint::Command { .. } => format!("the MCP server `{name}` ended during {called}{stderr}"),
                    Endpoint::Url { .. } => format!("the MCP server `{name}` did not answer {called}: {problem}"),
                };
                Err(ToolError::unavailable(self.limits.text(&message))
                    .with_hint("look whether the call took effect, then call again: the server is started again"))
            }
        }
    }
}

#[async_trait]
impl Toolkit for ServerToolkit {
    fn declaration(&self) -> Declaration {
        self.declaration.clone()
    }

    async fn call(&self, call: Call) -> Result<Value, ToolError> {
        let Some(tool) = self.tools.iter().find(|tool| tool.operation == call.operation) else {
            let message = format!("{} has no operation `{}`", self.declaration.name, call.operation);
            return Err(ToolError::new(ErrorKind::UnknownOperation, message));
        };
        let own = |name: String| {
            let original =
                tool.parameters.iter().find(|(python, _)| *python == name).map(|(_, original)| original.clone());
            original.unwrap_or(name)
        };
        let arguments = call.arguments.into_iter().map(|(name, value)| (own(name), value)).collect();
        timeout(self.limits.call, self.call_tool(tool, arguments)).await.unwrap_or_else(|_| {
            let message =
                format!("{}.{}() did not end within {:?}", self.declaration.name, tool.operation, self.limits.call);
            Err(ToolError::new(ErrorKind::Timeout, message)
                .with_hint("ask for less, or look first whether it took effect"))
        })
    }
}
