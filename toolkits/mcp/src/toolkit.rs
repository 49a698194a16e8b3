//! One server as a toolkit.

use std::sync::Arc;

use async_trait::async_trait;
use fimble_toolkit::{Call, Declaration, ErrorKind, SessionContext, ToolError, Toolkit};
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::cache::Cache;
use crate::client::unanswered;
use crate::connection::CallFailure;
use crate::error::last_words;
use crate::running::{NotRunning, Running};
use crate::tool::Tool;
use crate::variables::Variables;
use crate::wire::TOO_LONG;
use crate::{Endpoint, Error, Server, Settings, outcome};

/// A server's tools as operations. Dropping it kills the server.
pub(crate) struct ServerToolkit {
    running: Arc<Running>,
}

impl ServerToolkit {
    /// Takes the tools that are remembered; starts the server and asks for them otherwise.
    pub(crate) async fn connect(server: Server, mut settings: Settings) -> Result<Self, Error> {
        if server.disabled {
            return Err(Error::Disabled(server.name));
        }
        let server = server.with_variables(&Variables::of_process())?;
        if let Some(given) = server.timeout {
            settings.limits.call = given;
            settings.limits.call_most = settings.limits.call_most.max(given);
        }
        let limits = settings.limits;
        let cache = Cache::of(settings.cache.as_deref(), &server);
        let known = cache.read(&limits);
        let is_known = known.is_some();
        let running = Arc::new(Running::new(server, settings, cache, known));
        let toolkit = Self { running: Arc::clone(&running) };
        if is_known {
            return Ok(toolkit);
        }
        let mut starting = tokio::spawn({
            let running = Arc::clone(&running);
            async move { running.list().await }
        });
        running.keep(starting.abort_handle());
        match timeout(limits.patience, &mut starting).await {
            Ok(Ok(Ok(()))) => Ok(toolkit),
            Ok(Ok(Err(NotRunning::Failed(error)))) => Err(error),
            Ok(_) => Err(Error::of(&running.server, "did not start".to_owned(), String::new())),
            Err(_) => {
                tracing::warn!(server = running.server.name, "an MCP server takes long to start; nobody waits for it");
                let told = Arc::clone(&running);
                let telling = tokio::spawn(async move {
                    if let Ok(Err(NotRunning::Failed(error))) = starting.await {
                        tracing::warn!("{error}");
                        told.tools.fail(&told.server, &error.to_string());
                    }
                });
                running.keep(telling.abort_handle());
                Ok(toolkit)
            }
        }
    }

    async fn call_tool(
        &self,
        called: &str,
        tool: &Tool,
        arguments: Map<String, Value>,
        whose: (&str, &SessionContext),
    ) -> Result<Value, ToolError> {
        let Running { server, settings, .. } = self.running.as_ref();
        let limits = &settings.limits;
        let name = &server.name;
        let connection = self.running.connection().await.map_err(|problem| match problem {
            NotRunning::Failed(error @ (Error::Login { .. } | Error::Scope { .. })) => login(error),
            NotRunning::Failed(error) => ToolError::unavailable(limits.text(&error.to_string()))
                .with_hint("do without it, or tell the user that this server does not start"),
            NotRunning::Resting(rest) => ToolError::unavailable(format!(
                "the MCP server `{name}` failed and is left alone for {} s",
                rest.as_secs() + 1
            ))
            .with_hint("do without it, or call again after that time"),
        })?;
        let answer = connection.call(name, &tool.name, arguments, whose, limits).await;
        if !matches!(answer, Err(CallFailure::Closed(_) | CallFailure::Login(_))) {
            self.running.did_well();
        }
        match answer {
            Ok(answer) if answer.unanswered.is_empty() => outcome::value(answer.result, called, tool.wrapped, limits),
            Ok(answer) => {
                let contents = answer.result.get("content").and_then(Value::as_array).map(Vec::as_slice);
                let said = outcome::texts(contents.unwrap_or_default(), limits);
                Err(unanswered(called, &answer.unanswered, &said, limits))
            }
            Err(CallFailure::Refused { code: TOO_LONG, message }) => {
                Err(ToolError::failed(format!("{called}: {message}"))
                    .with_hint("ask for less, e.g. by a filter, a limit or page by page"))
            }
            Err(CallFailure::Refused { code, message }) => Err(outcome::refusal(called, code.0, &message, limits)),
            Err(CallFailure::Late(given)) => {
                Err(ToolError::new(ErrorKind::Timeout, format!("{called} did not end within {given:?}"))
                    .with_hint("ask for less, or look first whether it took effect"))
            }
            Err(CallFailure::Login(wanted)) => {
                self.running.forget(&connection).await;
                Err(login(wanted.error(server)))
            }
            Err(CallFailure::Closed(problem)) => {
                tracing::debug!(server = name, problem, "an MCP server is gone");
                self.running.forget(&connection).await;
                let stderr = last_words(&connection.last_words().await);
                let message = match &server.endpoint {
                    Endpoint::Command { .. } => format!("the MCP server `{name}` ended during {called}{stderr}"),
                    Endpoint::Url { .. } => format!("the MCP server `{name}` did not answer {called}: {problem}"),
                };
                Err(ToolError::unavailable(limits.text(&message))
                    .with_hint("look whether the call took effect, then call again: the server is started again"))
            }
        }
    }
}

/// What the model can say to the user, who alone can log in.
fn login(error: Error) -> ToolError {
    let (message, command) = match error {
        Error::Scope { server, scope, command } => {
            (format!("the MCP server `{server}` wants the user to log in and allow `{scope}`"), command)
        }
        Error::Login { server, command } => (format!("the MCP server `{server}` wants the user to log in"), command),
        other => return ToolError::unavailable(other.to_string()),
    };
    ToolError::new(ErrorKind::Denied, message).with_hint(format!("tell the user to run `{command}`"))
}

impl Drop for ServerToolkit {
    fn drop(&mut self) {
        self.running.stop();
    }
}

#[async_trait]
impl Toolkit for ServerToolkit {
    fn declaration(&self) -> Declaration {
        self.running.tools.now().declaration.clone()
    }

    fn revision(&self) -> u64 {
        self.running.tools.revision()
    }

    async fn call(&self, call: Call) -> Result<Value, ToolError> {
        let known = self.running.tools.now();
        let toolkit = &known.declaration.name;
        let Some(tool) = known.tools.iter().find(|tool| tool.operation == call.operation) else {
            let message = format!("{toolkit} has no operation `{}` any more", call.operation);
            return Err(ToolError::new(ErrorKind::UnknownOperation, message));
        };
        let arguments = tool.arguments(call.arguments);
        let called = format!("{toolkit}.{}()", tool.operation);
        self.call_tool(&called, tool, arguments, (&call.key, &call.context)).await
    }
}
