//! A conversation with one server: started, agreed upon, asked for its tools, and called. It does not know Python names.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use fimble_toolkit::SessionContext;
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientRequest, ErrorCode, Implementation,
    InputResponses, ListToolsRequest, PaginatedRequestParams, RequestId, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RunningService, ServiceError};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::calls::{Calls, Place};
use crate::changes::Changes;
use crate::client::Client;
use crate::opening::{Login, Way, innermost};
use crate::process::Process;
use crate::{Error, Limits, Server, question};

/// A server that answered the handshake. Dropping it ends the server's process.
pub(crate) struct Connection {
    pub(crate) service: RunningService<RoleClient, Client>,
    pub(crate) process: Option<Process>,
    pub(crate) calls: Arc<Calls>,
    pub(crate) changes: watch::Receiver<u64>,
    /// How it was reached, to do the same next time.
    pub(crate) way: Way,
    /// How long its process took to start, and the agreement after that.
    pub(crate) took: (Duration, Duration),
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
    /// The server wants the user to log in.
    Login(Login),
    /// There was neither an answer nor progress for so long.
    Late(Duration),
}

/// Why there is no list of tools.
pub(crate) enum NoList {
    /// The server wants the user to log in.
    Login(Login),
    /// What it did instead.
    Problem(String),
}

impl NoList {
    fn from(error: ServiceError, limits: &Limits) -> Self {
        let problem = match &error {
            ServiceError::TransportSend(error) => match Login::wanted(error.error.as_ref()) {
                Some(login) => return Self::Login(login),
                None => innermost(error.error.as_ref()),
            },
            other => other.to_string(),
        };
        Self::Problem(format!("did not list its tools: {}", limits.text(&problem)))
    }

    pub(crate) fn error(self, server: &Server) -> Error {
        match self {
            Self::Login(login) => login.error(server),
            Self::Problem(problem) => Error::of(server, problem, String::new()),
        }
    }
}

/// A result, and what the server asked the person for it in vain.
pub(crate) struct Answer {
    pub(crate) result: Value,
    pub(crate) unanswered: Vec<String>,
}

impl Connection {
    /// What the server says of itself: how it is used, or its name.
    pub(crate) fn about(&self) -> Option<String> {
        let info = self.service.peer_info()?;
        let title = |info: &Implementation| info.description.clone().or_else(|| info.title.clone());
        info.instructions.clone().or_else(|| info.server_info.as_ref().and_then(title))
    }

    /// The version of the protocol, and the server's own name and version, to be shown.
    pub(crate) fn version(&self, limits: &Limits) -> String {
        let Some(info) = self.service.peer_info() else { return "nothing agreed".to_owned() };
        let itself = info.server_info.as_ref().map(|itself| format!(", {} {}", itself.name, itself.version));
        let text = format!("{}{}", info.protocol_version, itself.unwrap_or_default());
        Limits { text_characters: SHOWN_CHARACTERS, ..*limits }.text(&text)
    }

    /// The tools as the server describes them, within the limits on pages, tools and time.
    pub(crate) async fn tools(&self, server: &Server, limits: &Limits) -> Result<Vec<Value>, NoList> {
        let deadline = Instant::now() + limits.list;
        let mut tools = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..limits.pages {
            let parameters = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(parameters));
            let mut page = match timeout_at(deadline, request_raw(self.service.peer(), request, None)).await {
                Ok(Ok(page)) => page,
                // A server without tools need not know the question.
                Ok(Err(ServiceError::McpError(error))) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                    return Ok(tools);
                }
                Ok(Err(error)) => return Err(NoList::from(error, limits)),
                Err(_) => return Err(NoList::Problem(format!("did not list its tools within {:?}", limits.list))),
            };
            let Some(Value::Array(listed)) = page.get_mut("tools").map(Value::take) else {
                return Err(NoList::Problem("listed its tools as something that is no list".to_owned()));
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

    /// The notices that the list of tools changed, from the start on.
    pub(crate) fn changes(&self) -> Changes {
        Changes::new(self.changes.clone(), self.service.peer().clone())
    }

    /// Calls a tool. Dropping the future tells the server to stop.
    pub(crate) async fn call(
        &self,
        server: &str,
        tool: &str,
        arguments: Map<String, Value>,
        (key, context): (&str, &SessionContext),
        limits: &Limits,
    ) -> Result<Answer, CallFailure> {
        let place = self.calls.enter(key, context, limits);
        let mut parameters = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        loop {
            let result = self.exchange(parameters.clone(), &place).await?;
            if result.get("resultType").and_then(Value::as_str) != Some("input_required") {
                return Ok(Answer { result, unanswered: place.waiting.unanswered() });
            }
            // The newer protocol asks by an answer, and wants the same call again with what it asked for.
            let mut responses = InputResponses::new();
            for (key, request) in result.get("inputRequests").and_then(Value::as_object).into_iter().flatten() {
                let parameters = request.get("params").unwrap_or(&Value::Null);
                if request.get("method").and_then(Value::as_str) == Some("elicitation/create") {
                    responses.insert(key.clone(), question::put(server, parameters, &place.waiting, limits).await);
                }
            }
            let declined = !place.waiting.unanswered().is_empty();
            if responses.is_empty() || declined {
                let mut unanswered = place.waiting.unanswered();
                if unanswered.is_empty() {
                    unanswered.push("it asks for what a program cannot give".to_owned());
                }
                return Ok(Answer { result: Value::Object(Map::new()), unanswered });
            }
            parameters.input_responses = Some(responses);
            parameters.request_state = result.get("requestState").and_then(Value::as_str).map(str::to_owned);
        }
    }

    async fn exchange(&self, parameters: CallToolRequestParams, place: &Place<'_>) -> Result<Value, CallFailure> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(parameters));
        let result = tokio::select! {
            result = request_raw(self.service.peer(), request, Some(place)) => result,
            given = place.waiting.overdue() => return Err(CallFailure::Late(given)),
        };
        result.map_err(|error| match error {
            ServiceError::McpError(error) => {
                CallFailure::Refused { code: error.code, message: error.message.into_owned() }
            }
            ServiceError::TransportClosed => CallFailure::Closed("the connection ended".to_owned()),
            ServiceError::TransportSend(error) => match Login::wanted(error.error.as_ref()) {
                Some(login) => CallFailure::Login(login),
                None => CallFailure::Closed(innermost(error.error.as_ref())),
            },
            other => CallFailure::Refused { code: ErrorCode::INTERNAL_ERROR, message: other.to_string() },
        })
    }

    /// Kills the server's process, if it has one.
    pub(crate) fn kill(&self) {
        if let Some(process) = &self.process {
            process.kill();
        }
    }

    /// True if the server is known to be gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.service.peer().is_transport_closed()
    }

    /// The error for what the server did, with the end of what it wrote. The server is ended.
    pub(crate) async fn fail(self, server: &Server, problem: NoList) -> Error {
        let problem = match problem {
            NoList::Login(login) => return login.error(server),
            NoList::Problem(problem) => problem,
        };
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

/// Characters of what a server calls itself that are shown.
const SHOWN_CHARACTERS: usize = 200;

/// Sends a request and gives its answer as JSON. Dropping the future tells the server that nobody waits.
async fn request_raw(
    peer: &Peer<RoleClient>,
    request: ClientRequest,
    place: Option<&Place<'_>>,
) -> Result<Value, ServiceError> {
    let mut handle = peer.send_request_with_option(request, PeerRequestOptions::no_options()).await?;
    let mut abandoned = Abandoned { peer, id: Some(handle.id.clone()) };
    if let Some(place) = place {
        place.waiting.known_as(handle.progress_token.clone());
    }
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
