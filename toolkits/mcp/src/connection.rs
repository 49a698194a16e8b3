//! A conversation with one server: started, agreed upon, asked for its tools, and called. It does not know Python names.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::pin;
use std::sync::Once;
use std::task::{Context, Waker};

use http::{HeaderName, HeaderValue};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientConfig, ClientRequest, ErrorCode,
    Implementation, ListToolsRequest, PaginatedRequestParams, ProtocolVersion, RequestId, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, PeerRequestOptions, RunningService,
    ServiceError,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, model::ClientCapabilities};
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout, timeout_at};

use crate::process::Process;
use crate::wire::Pipes;
use crate::{Endpoint, Error, Limits, Server};

/// A server that answered the handshake. Dropping it kills the server's process.
pub(crate) struct Connection {
    service: RunningService<RoleClient, ClientConfig>,
    process: Option<Process>,
    /// How it was reached, to do the same next time.
    pub(crate) era: Era,
}

/// The two ways of the protocol to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// Every request says for itself what it needs (2026-07-28).
    Modern,
    /// A handshake first (2025-11-25 and before).
    Legacy,
}

/// Why a call has no result.
pub(crate) enum CallFailure {
    /// The server answered with an error of the protocol.
    Refused {
        /// Its number.
        code: ErrorCode,
        /// Its text.
        message: String,
    },
    /// The server is gone, or cannot be reached.
    Closed(String),
}

impl Connection {
    /// Reaches the server. `era` is what is known of it from before.
    ///
    /// It is asked in the modern way, which falls back to the handshake where the server says that it does not know it.
    /// Some servers end at a question that they do not know: they are started again, with the handshake.
    pub(crate) async fn open(server: &Server, limits: &Limits, era: Option<Era>) -> Result<Self, Error> {
        if era == Some(Era::Legacy) {
            return attempt(server, limits, ClientLifecycleMode::Initialize).await.map_err(|failure| failure.error);
        }
        let versions = vec![ProtocolVersion::V_2026_07_28];
        let modern = ClientLifecycleMode::Auto {
            preferred_versions: versions,
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        };
        match attempt(server, limits, modern).await {
            Err(failure) if failure.again => {
                tracing::debug!(server = server.name, error = %failure.error, "once more, with the handshake");
                attempt(server, limits, ClientLifecycleMode::Initialize).await.map_err(|failure| failure.error)
            }
            result => result.map_err(|failure| failure.error),
        }
    }

    /// What the server says of itself: how it is used, or its name.
    pub(crate) fn about(&self) -> Option<String> {
        let info = self.service.peer_info()?;
        let title = |info: &Implementation| info.description.clone().or_else(|| info.title.clone());
        info.instructions.clone().or_else(|| info.server_info.as_ref().and_then(title))
    }

    /// The tools as the server describes them, within the limits on pages, tools and time.
    pub(crate) async fn tools(&self, server: &Server, limits: &Limits) -> Result<Vec<Value>, String> {
        let deadline = Instant::now() + limits.list;
        let mut tools = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..limits.pages {
            let parameters = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(parameters));
            let mut page = match timeout_at(deadline, request_raw(self.service.peer(), request)).await {
                Ok(Ok(page)) => page,
                // A server without tools need not know the question.
                Ok(Err(ServiceError::McpError(error))) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                    return Ok(tools);
                }
                Ok(Err(error)) => return Err(format!("did not list its tools: {error}")),
                Err(_) => return Err(format!("did not list its tools within {:?}", limits.list)),
            };
            let Some(Value::Array(listed)) = page.get_mut("tools").map(Value::take) else {
                return Err("listed its tools as something that is no list".to_owned());
            };
            tools.extend(listed);
            let next = page.get("nextCursor").and_then(Value::as_str).filter(|next| !next.is_empty());
            if tools.len() > limits.tools {
                break;
            }
            match next {
                None => return Ok(tools),
                Some(next) if cursor.as_deref() == Some(next) => return Ok(tools),
                Some(next) => cursor = Some(next.to_owned()),
            }
        }
        tracing::warn!(server = server.name, "an MCP server lists more tools than the limit; the rest is left out");
        tools.truncate(limits.tools);
        Ok(tools)
    }

    /// Calls a tool. Dropping the future tells the server to stop.
    pub(crate) async fn call(&self, tool: &str, arguments: Map<String, Value>) -> Result<Value, CallFailure> {
        let parameters = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(parameters));
        request_raw(self.service.peer(), request).await.map_err(|error| match error {
            ServiceError::McpError(error) => {
                CallFailure::Refused { code: error.code, message: error.message.into_owned() }
            }
            ServiceError::TransportClosed => CallFailure::Closed("the connection ended".to_owned()),
            ServiceError::TransportSend(error) => CallFailure::Closed(innermost(error.error.as_ref())),
            other => CallFailure::Refused { code: ErrorCode::INTERNAL_ERROR, message: other.to_string() },
        })
    }

    /// True if the server is known to be gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.service.peer().is_transport_closed()
    }

    /// The error for what the server did, with the end of what it wrote. The server is ended.
    pub(crate) async fn fail(self, server: &Server, problem: String) -> Error {
        drop(self.service);
        let stderr = match self.process {
            Some(process) => process.end().await.1,
            None => String::new(),
        };
        Error::of(server, problem, stderr)
    }

    /// The end of what a server that is gone wrote to its standard error.
    pub(crate) async fn last_words(&self) -> String {
        match &self.process {
            Some(process) => process.last_words().await,
            None => String::new(),
        }
    }
}

/// One attempt's failure, and whether another way to begin might help.
struct Failure {
    error: Error,
    again: bool,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, again: false }
    }
}

async fn attempt(server: &Server, limits: &Limits, mode: ClientLifecycleMode) -> Result<Connection, Failure> {
    let client = ClientConfig::new(ClientCapabilities::default(), Implementation::new("fimble", VERSION))
        .with_protocol_version(ProtocolVersion::V_2025_11_25);
    let (served, process) = match &server.endpoint {
        Endpoint::Command { command, args, env, cwd } => {
            let (process, stdin, stdout) = Process::spawn(command, args, env, cwd.as_deref())
                .map_err(|problem| Error::Start { server: server.name.clone(), command: command.clone(), problem })?;
            let pipes = Pipes::new(stdin, stdout, process.gone(), limits.message_bytes);
            (timeout(limits.start, client.serve_with_lifecycle(pipes, mode)).await, Some(process))
        }
        Endpoint::Url { url, headers } => {
            let transport = http_transport(server, url, headers, limits)?;
            (timeout(limits.start, client.serve_with_lifecycle(transport, mode)).await, None)
        }
    };
    let (problem, again) = match served {
        Ok(Ok(service)) => {
            let legacy = service.peer_info().is_none_or(|info| info.protocol_version.has_initialize());
            return Ok(Connection { service, process, era: if legacy { Era::Legacy } else { Era::Modern } });
        }
        Ok(Err(error)) => (describe(&error), true),
        // The handshake was part of what took too long.
        Err(_) => (format!("did not answer within {:?}", limits.start), false),
    };
    let (status, stderr) = match process {
        Some(process) => process.end().await,
        None => (None, String::new()),
    };
    let problem = match status {
        Some(status) => format!("ended with {status} before it answered"),
        None => problem,
    };
    Err(Failure { error: Error::of(server, problem, stderr), again })
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn describe(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_) => "closed the connection before it answered".to_owned(),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => describe(fallback),
        ClientInitializeError::TransportError { error, .. } => {
            format!("cannot be reached: {}", innermost(error.error.as_ref()))
        }
        other => format!("does not speak the protocol: {other}"),
    }
}

fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

fn http_transport(
    server: &Server,
    url: &str,
    headers: &BTreeMap<String, String>,
    limits: &Limits,
) -> Result<StreamableHttpClientTransport<reqwest::Client>, Error> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // Another part of the program may have chosen already.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let refused = |problem: String| Error::of(server, problem, String::new());
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let (Ok(key), Ok(value)) = (HeaderName::try_from(name.as_str()), HeaderValue::try_from(value.as_str())) else {
            return Err(refused(format!("has a header `{name}` that cannot be sent")));
        };
        custom.insert(key, value);
    }
    let client = reqwest::Client::builder()
        .connect_timeout(limits.start)
        // A connection that a server closed while it was idle would fail the next call.
        .pool_max_idle_per_host(0)
        .build()
        .map_err(|error| refused(format!("cannot be reached: {error}")))?;
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(custom)
        .max_sse_event_size(limits.message_bytes);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// Sends a request and gives its answer as JSON. Dropping the future tells the server that nobody waits.
async fn request_raw(peer: &Peer<RoleClient>, request: ClientRequest) -> Result<Value, ServiceError> {
    let mut handle = peer.send_request_with_option(request, PeerRequestOptions::no_options()).await?;
    let mut abandoned = Abandoned { peer, id: Some(handle.id.clone()) };
    let answer = (&mut handle.rx).await;
    abandoned.id = None;
    match answer.map_err(|_| ServiceError::TransportClosed)?? {
        ServerResult::CustomResult(result) => Ok(result.0),
        typed => serde_json::to_value(typed).map_err(|_| ServiceError::UnexpectedResponse),
    }
}

/// Tells the server that a request is given up, unless it was answered.
struct Abandoned<'a> {
    peer: &'a Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let reason = Some("nobody waits for it any more".to_owned());
        let told = pin!(self.peer.notify_cancelled(CancelledNotificationParam::new(Some(id), reason)));
        // Its first step puts the notice into the queue, before any later call; the rest would only wait until it is
        // sent. Where the queue is full the notice is lost, and the server goes on for nothing.
        let _ = told.poll(&mut Context::from_waker(Waker::noop()));
    }
}
