//! Our side of a conversation: what a server may tell and ask of its own accord.

use std::sync::Arc;

use fimble_toolkit::ToolError;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CustomRequest, CustomResult, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationCapability, ErrorCode, ErrorData, FormElicitationCapability, Implementation,
    ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::calls::Calls;
use crate::{Limits, question};

/// What a server's own words reach.
pub(crate) struct Client {
    /// The server's name.
    server: String,
    limits: Limits,
    calls: Arc<Calls>,
    /// Counts the notices that the list of tools changed.
    changes: watch::Sender<u64>,
}

impl Client {
    pub(crate) fn new(server: &str, limits: &Limits, calls: Arc<Calls>, changes: watch::Sender<u64>) -> Self {
        Self { server: server.to_owned(), limits: *limits, calls, changes }
    }

    async fn answer(&self, parameters: Value) -> Value {
        match self.calls.only() {
            Some(waiting) => question::put(&self.server, &parameters, &waiting, &self.limits).await,
            None => json!({"action": "decline"}),
        }
    }
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let form = ElicitationCapability::new().with_form(FormElicitationCapability::default());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(form);
        let ourselves = Implementation::new("fimble", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, ourselves).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.calls.progressed(progress);
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let answer = self.answer(serde_json::to_value(request).unwrap_or_default()).await;
        let accepted = answer.get("action").and_then(Value::as_str) == Some("accept");
        let result = ElicitResult::new(if accepted { ElicitationAction::Accept } else { ElicitationAction::Decline });
        Ok(match answer.get("content") {
            Some(content) => result.with_content(content.clone()),
            None => result,
        })
    }

    /// A question whose form is not quite what the protocol's types say comes here.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method == "elicitation/create" {
            return Ok(CustomResult(self.answer(request.params.unwrap_or_default()).await));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None))
    }
}

/// The error for a call in which the server asked something that nobody answered. `said` is what the tool then said.
pub(crate) fn unanswered(called: &str, questions: &[String], said: &str, limits: &Limits) -> ToolError {
    let asked = limits.text(&questions.join("; "));
    let said = if said.is_empty() { String::new() } else { format!("; it was declined, and the tool said: {said}") };
    ToolError::failed(limits.text(&format!("{called} asked and nobody was there to answer: {asked}{said}"))).with_hint(
        "ask the user by system_toolkit.ask_user(), then call again with the answer as an argument if it takes one",
    )
}
