//! A document's operations as a toolkit: each call is one request.

use std::collections::HashMap;

use async_trait::async_trait;
use fimble_toolkit::{Call, Declaration, ErrorKind, ToolError, Toolkit};
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::Limits;
use crate::client::{self, Body};
use crate::operation::Plan;
use crate::outcome::{self, Answer};
use crate::pages;
use crate::request::{self, Sender};

/// The operations of one document.
pub(crate) struct DocumentToolkit {
    pub(crate) declaration: Declaration,
    /// By the operation's name.
    pub(crate) plans: HashMap<String, Plan>,
    pub(crate) sender: Sender,
    /// What no result and no error may show: a server may send back what it got.
    pub(crate) secrets: Vec<String>,
    pub(crate) limits: Limits,
}

/// What stands where a secret was.
const MASK: &str = "********";

/// Shorter secrets are not masked: they would blot out ordinary text.
const SHORTEST_SECRET: usize = 6;

impl DocumentToolkit {
    /// The answer, with as many pages after it as the call wants.
    async fn all(&self, plan: &Plan, called: &str, call: &Call) -> Result<Value, ToolError> {
        let (mut value, mut bytes) = self.send(plan, called, &call.arguments, &call.key).await?;
        let Some(pages) = &plan.pages else { return Ok(value) };
        let path = plan.paging.path();
        let wanted = call.arguments.get(&pages.number).and_then(Value::as_u64).unwrap_or(1);
        let mut arguments = call.arguments.clone();
        for _ in 1..wanted.min(u64::try_from(self.limits.pages).unwrap_or(u64::MAX)) {
            let (Some(next), Some(list)) = (pages::next(&value, path), pages::list(&value)) else { break };
            if arguments.insert(pages.next.clone(), next.clone()).as_ref() == Some(next) {
                return Err(ToolError::failed(format!("{called}: a page leads to itself")));
            }
            let (page, more) = self.send(plan, called, &arguments, &call.key).await?;
            bytes += more;
            // What was got is not lost: the result still leads to the page that is left out.
            if bytes > self.limits.response_bytes {
                break;
            }
            pages::append(&mut value, page, &list, path);
        }
        Ok(value)
    }

    /// The value of one answer, and how many bytes it came as.
    async fn send(
        &self,
        plan: &Plan,
        called: &str,
        arguments: &Map<String, Value>,
        key: &str,
    ) -> Result<(Value, usize), ToolError> {
        let request = request::build(&self.sender, plan, arguments, key, &self.limits).map_err(|mut error| {
            error.message = format!("{called}: {}", error.message);
            error
        })?;
        let unreachable = |error: reqwest::Error| {
            let host = plan.server.host_str().unwrap_or_default();
            let message = format!("{called}: {host} did not answer: {}", client::reason(&error));
            let error = ToolError::unavailable(outcome::shortened(&message, self.limits.message_characters));
            if plan.method.is_safe() {
                error.with_hint("call again later, or do without it")
            } else {
                error.with_hint("look whether it took effect before you call again")
            }
        };
        let response = request.send().await.map_err(unreachable)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = match client::body(response, self.limits.response_bytes).await.map_err(unreachable)? {
            Body::TooLong(_) if status.is_success() => {
                let message = format!("the result of {called} has more than {} bytes", self.limits.response_bytes);
                return Err(
                    ToolError::failed(message).with_hint("ask for less, e.g. by a filter, a limit or page by page")
                );
            }
            Body::Whole(bytes) | Body::TooLong(bytes) => self.masked(bytes),
        };
        let answer = Answer { status, headers, body };
        if status.is_success() {
            let bytes = answer.body.len();
            outcome::value(&answer, plan, called).map(|value| (value, bytes))
        } else {
            Err(outcome::failure(&answer, plan, called, &self.limits))
        }
    }

    fn masked(&self, body: Vec<u8>) -> Vec<u8> {
        let shown = |secret: &&String| secret.len() >= SHORTEST_SECRET;
        match String::from_utf8(body) {
            Ok(text) => {
                let masked = self.secrets.iter().filter(shown).fold(text, |text, secret| {
                    if text.contains(secret.as_str()) { text.replace(secret.as_str(), MASK) } else { text }
                });
                masked.into_bytes()
            }
            Err(error) => error.into_bytes(),
        }
    }
}

#[async_trait]
impl Toolkit for DocumentToolkit {
    fn declaration(&self) -> Declaration {
        self.declaration.clone()
    }

    async fn call(&self, call: Call) -> Result<Value, ToolError> {
        let called = format!("{}.{}()", self.declaration.name, call.operation);
        let Some(plan) = self.plans.get(&call.operation) else {
            let message = format!("{} has no operation `{}`", self.declaration.name, call.operation);
            return Err(ToolError::new(ErrorKind::UnknownOperation, message));
        };
        timeout(self.limits.call, self.all(plan, &called, &call)).await.unwrap_or_else(|_| {
            let message = format!("{called} did not end within {:?}", self.limits.call);
            Err(ToolError::new(ErrorKind::Timeout, message)
                .with_hint("ask for less, or look first whether it took effect"))
        })
    }
}
