//! How a conversation begins: which ways there are, and in which order they are tried.

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::IntoTransport;
use rmcp::transport::streamable_http_client::{AuthRequiredError, InsufficientScopeError};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::calls::Calls;
use crate::client::Client;
use crate::config::Transport;
use crate::connection::Connection;
use crate::pipes::Pipes;
use crate::process::Process;
use crate::sse::{self, Events};
use crate::{Endpoint, Error, Limits, Server, Settings, http};

/// The ways to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Way {
    /// Every request says for itself what it needs (2026-07-28).
    Modern,
    /// A handshake first (2025-11-25 and before).
    Legacy,
    /// A handshake over the HTTP transport of 2024.
    Sse,
}

/// Reaches the server. `known` is the way that it was reached before.
///
/// It is asked in the modern way, which falls back to the handshake where the server says that it does not know it. Some
/// servers end at a question that they do not know: they are started again, with the handshake.
pub(crate) async fn open(server: &Server, settings: &Settings, known: Option<Way>) -> Result<Connection, Error> {
    let mut ways: Vec<Way> = match &server.endpoint {
        Endpoint::Command { .. } | Endpoint::Url { transport: Transport::Streamable, .. } => {
            vec![Way::Modern, Way::Legacy]
        }
        Endpoint::Url { transport: Transport::Either, .. } => vec![Way::Modern, Way::Legacy, Way::Sse],
        Endpoint::Url { transport: Transport::Sse, .. } => vec![Way::Sse],
    };
    // What it was before is likeliest, but a server may be another version by now.
    if let Some(known) = known.filter(|known| ways.contains(known)) {
        ways.retain(|way| *way != known);
        ways.insert(0, known);
    }
    let mut told = None;
    for way in ways {
        match attempt(server, settings, way).await {
            Ok(connection) => return Ok(connection),
            Err(failure) if failure.again => {
                tracing::debug!(server = server.name, ?way, error = %failure.error, "tried in vain");
                // The last way is for few servers: what it said is no help for the others.
                if way != Way::Sse || told.is_none() {
                    told = Some(failure.error);
                }
            }
            Err(failure) => return Err(failure.error),
        }
    }
    Err(told.unwrap_or_else(|| Error::of(server, "cannot be reached".to_owned(), String::new())))
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

/// What came of the agreement.
enum Agreed {
    Service(Box<RunningService<RoleClient, Client>>),
    Login(Login),
    Failed(String),
    /// It took too long, and the agreement was part of it.
    Late,
}

async fn attempt(server: &Server, settings: &Settings, way: Way) -> Result<Connection, Failure> {
    let limits = &settings.limits;
    let calls = Arc::<Calls>::default();
    let (changed, changes) = watch::channel(0);
    let client = Client::new(&server.name, limits, Arc::clone(&calls), changed);
    let begun = Instant::now();
    let mut started = Duration::ZERO;
    let mut running = None;
    let agreed = match &server.endpoint {
        Endpoint::Command { command, args, env, cwd } => {
            let (process, stdin, stdout) = Process::spawn(command, args, env, cwd.as_deref(), limits.stop)
                .map_err(|problem| Error::Start { server: server.name.clone(), command: command.clone(), problem })?;
            started = begun.elapsed();
            let pipes = Pipes::new(stdin, stdout, process.gone(), limits.message_bytes);
            running = Some(process);
            agree(client, pipes, way, limits).await
        }
        Endpoint::Url { url, headers, .. } if way == Way::Sse => {
            let headers = http::headers(server, headers)?;
            let (plain, headers) = http::with_token(server, settings, headers).await?;
            match timeout(limits.start, Events::open(plain, url, headers, limits.message_bytes)).await {
                Ok(Ok(events)) => agree(client, events, way, limits).await,
                Ok(Err(sse::Failure::Status(http::UNAUTHORIZED))) => Agreed::Login(Login::Any),
                Ok(Err(problem)) => Agreed::Failed(format!("cannot be reached: {}", innermost(&problem))),
                Err(_) => Agreed::Late,
            }
        }
        Endpoint::Url { .. } => match http::streamable(server, settings).await? {
            http::Streamable::Plain(transport) => agree(client, transport, way, limits).await,
            http::Streamable::LoggedIn(transport) => agree(client, transport, way, limits).await,
        },
    };
    let (problem, again) = match agreed {
        Agreed::Service(service) => {
            let legacy = service.peer_info().is_none_or(|info| info.protocol_version.has_initialize());
            let way = match way {
                Way::Sse => Way::Sse,
                _ if legacy => Way::Legacy,
                _ => Way::Modern,
            };
            let took = (started, begun.elapsed().saturating_sub(started));
            return Ok(Connection { service: *service, process: running, calls, changes, way, took });
        }
        Agreed::Login(login) => return Err(login.error(server).into()),
        Agreed::Failed(problem) => (problem, true),
        Agreed::Late => (format!("did not answer within {:?}", limits.start), false),
    };
    let (status, stderr) = match running {
        Some(process) => process.end().await,
        None => (None, String::new()),
    };
    let problem = match status {
        Some(status) => format!("ended with {status} before it answered"),
        None => problem,
    };
    Err(Failure { error: Error::of(server, limits.text(&problem), stderr), again })
}

async fn agree<T, E, A>(client: Client, transport: T, way: Way, limits: &Limits) -> Agreed
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let mode = match way {
        Way::Modern => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        },
        Way::Legacy | Way::Sse => ClientLifecycleMode::Initialize,
    };
    match timeout(limits.start, client.serve_with_lifecycle(transport, mode)).await {
        Ok(Ok(service)) => Agreed::Service(Box::new(service)),
        Ok(Err(error)) => describe(&error),
        Err(_) => Agreed::Late,
    }
}

fn describe(error: &ClientInitializeError) -> Agreed {
    match error {
        ClientInitializeError::ConnectionClosed(_) => {
            Agreed::Failed("closed the connection before it answered".to_owned())
        }
        ClientInitializeError::LegacyFallbackFailed { discover, fallback } => match describe(discover) {
            Agreed::Login(login) => Agreed::Login(login),
            _ => describe(fallback),
        },
        ClientInitializeError::TransportError { error, .. } => match Login::wanted(error.error.as_ref()) {
            Some(login) => Agreed::Login(login),
            None => Agreed::Failed(format!("cannot be reached: {}", innermost(error.error.as_ref()))),
        },
        other => Agreed::Failed(format!("does not speak the protocol: {other}")),
    }
}

/// The login that a server wants.
pub(crate) enum Login {
    /// It does not know who the user is.
    Any,
    /// The login that there is does not allow this.
    Scope(String),
}

impl Login {
    /// What an error asks for, if it is about that.
    pub(crate) fn wanted(error: &(dyn std::error::Error + 'static)) -> Option<Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if error.is::<AuthRequiredError>() || error.to_string().contains("HTTP 401") {
                return Some(Self::Any);
            }
            if let Some(insufficient) = error.downcast_ref::<InsufficientScopeError>() {
                return insufficient.required_scope.clone().map(Self::Scope);
            }
            cause = error.source();
        }
        None
    }

    pub(crate) fn error(self, server: &Server) -> Error {
        let name = server.name.clone();
        match self {
            Self::Any => Error::Login { server: name, command: server.login_command("") },
            Self::Scope(scope) => Error::Scope { server: name, command: server.login_command(&scope), scope },
        }
    }
}

pub(crate) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
