//! One agent as a toolkit: `send`, `get_task`, `cancel_task`.

use std::time::Duration;

use async_trait::async_trait;
use fimble_toolkit::{
    Call, Declaration, ErrorKind, Operation, Parameter, Pending, Poll, Risk, Step, ToolError, Toolkit, python_name,
};
use futures_util::StreamExt;
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};
use url::Url;
use uuid::Uuid;

use crate::answer::{Answer, schema};
use crate::client::{Peer, Results};
use crate::limits::line;
use crate::streams::{Stream, Streams};
use crate::task::Task;
use crate::{Agent, Error, Limits, card};

/// An agent that was reached once.
pub(crate) struct AgentToolkit {
    peer: Peer,
    card: card::Card,
    declaration: Declaration,
    streams: Streams,
}

impl AgentToolkit {
    /// Fetches the card.
    pub(crate) async fn connect(agent: Agent, limits: Limits) -> Result<Self, Error> {
        let mut agent = agent;
        let url = Url::parse(&agent.url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.ok_or_else(|| Error::Setting {
            agent: agent.name.clone(),
            problem: "a `url` that is neither http:// nor https://".to_owned(),
        })?;
        let given = agent.name.clone();
        if given.is_empty() {
            url.host_str().unwrap_or_default().clone_into(&mut agent.name);
        }
        let place = card::address(&url);
        let peer = Peer::new(&agent, place.clone(), limits)?;
        let fetched = peer.get().await.map_err(|problem| Error::Unreachable { agent: agent.name.clone(), problem })?;
        let card = card::read(&fetched, &place, &limits);
        let card = card.map_err(|problem| Error::Card { agent: agent.name.clone(), problem })?;
        let name = if given.is_empty() { card.name.to_lowercase() } else { given };
        let declaration = Declaration {
            name: format!("{}_toolkit", python_name(&name, "agent").trim_end_matches('_')),
            description: card.description.clone(),
            operations: operations(&limits),
        };
        Ok(Self { peer: peer.moved(card.url.clone()), card, declaration, streams: Streams::default() })
    }

    fn called(&self, call: &Call) -> String {
        format!("{}.{}()", self.declaration.name, call.operation)
    }

    fn parameters(&self, fields: Value) -> Value {
        let Value::Object(mut fields) = fields else { return fields };
        if let Some(tenant) = &self.card.tenant {
            fields.insert("tenant".into(), tenant.as_str().into());
        }
        Value::Object(fields)
    }

    /// Gives the agent a message. What is open is its task, which is cancelled when that is dropped.
    async fn send(&self, called: &str, call: &Call) -> Result<(Poll, Open<'_>), ToolError> {
        let limits = &self.peer.limits;
        let wait: Option<f64> = call.argument("wait_s")?;
        let wait = match wait {
            None => limits.wait,
            Some(seconds) => Duration::try_from_secs_f64(seconds)
                .ok()
                .filter(|wait| *wait <= limits.longest_wait)
                .ok_or_else(|| {
                    let most = limits.longest_wait.as_secs();
                    ToolError::invalid_argument(format!("{called}: `wait_s` must be from 0 to {most}"))
                })?,
        };
        let own: Option<String> = call.argument("task_id")?;
        let mut fields = json!({"message": message(call)?});
        // At once comes the state that the task was in before it heard the message, so that only a new one is asked for so.
        if !self.card.streaming && own.is_none() {
            fields["configuration"] = json!({"returnImmediately": true});
        }
        let parameters = self.parameters(fields);
        // What is not yet a task cannot be asked for later, so that it may take longer than the caller wants to wait.
        let most = wait.max(limits.request);
        let (until, is_own) = (Instant::now() + wait, own.is_some());
        let begun = begin(self.peer.clone(), self.card.streaming, called.to_owned(), parameters, most);
        let mut open =
            Open { toolkit: self, begun: Some(tokio::spawn(begun)), answer: Answer::default(), own, waits: true };
        let results = match open.begin(called).await {
            Err(error) if error.kind == ErrorKind::Timeout && is_own => {
                return Ok((Poll::Ready(self.about(called, "GetTask", call).await?), open));
            }
            begun => begun?,
        };
        let mut stream = Stream { results, answer: std::mem::take(&mut open.answer) };
        let heard = self.hear(&mut stream, until, is_own).await;
        // What is to be cancelled if this fails.
        open.answer.task.clone_from(&stream.answer.task);
        open.answer.state = stream.answer.state;
        heard?;
        let Some(id) = stream.answer.task.clone() else {
            return Ok((Poll::Ready(self.result(called, &stream.answer)?), open));
        };
        let task = Task::new(id, until.saturating_duration_since(Instant::now()), is_own);
        Ok((self.standing(called, call, stream, &task).await?, open))
    }

    /// What there is to say of a task, whose stream is kept if more may come by it.
    async fn standing(&self, called: &str, call: &Call, stream: Stream, task: &Task) -> Result<Poll, ToolError> {
        if task.is_settled(&stream.answer) || task.is_over() {
            return self.poll_of(called, call, &stream.answer, task).await;
        }
        if self.card.streaming {
            self.streams.keep(&task.id, stream);
        }
        Ok(Poll::Pending(task.pending(&self.peer.name)))
    }

    /// Takes in what the agent tells until it has heard the message: a stream may begin with the task as it was, and the question
    /// that this message answers.
    async fn hear(&self, stream: &mut Stream, until: Instant, is_own: bool) -> Result<(), ToolError> {
        if !is_own || !stream.answer.asks() {
            return Ok(());
        }
        match timeout_at(until, stream.results.next()).await {
            Ok(Some(Ok(event))) => drop(stream.answer.take(&event)),
            // A stream that breaks leaves a task that can be asked for.
            Ok(Some(Err(error))) if error.kind != ErrorKind::Unavailable => return Err(error),
            Ok(Some(Err(_)) | None) | Err(_) => {}
        }
        Ok(())
    }

    /// How far a task is.
    async fn look(&self, called: &str, call: &Call, task: &Task) -> Result<Poll, ToolError> {
        if let Some(poll) = self.listen(called, call, task).await? {
            return Ok(poll);
        }
        let parameters = self.parameters(json!({"id": task.id}));
        match self.peer.ask(called, "GetTask", parameters, self.peer.limits.request).await {
            Ok(told) => {
                let answer = Answer::of_task(&told);
                tell(call, &answer);
                self.poll_of(called, call, &answer, task).await
            }
            // It may come back as long as somebody waits.
            Err(error) if is_away(&error) && !task.is_over() => {
                tracing::debug!(agent = self.peer.name, %error, "a task cannot be asked for now");
                Ok(Poll::Pending(task.pending(&self.peer.name)))
            }
            Err(error) => Err(error),
        }
    }

    /// What the stream of a task tells within a moment, if it is still open.
    async fn listen(&self, called: &str, call: &Call, task: &Task) -> Result<Option<Poll>, ToolError> {
        let Some(mut stream) = self.streams.take(&task.id) else { return Ok(None) };
        let until = Instant::now() + LISTENING.min(task.left());
        while !task.is_settled(&stream.answer) {
            match timeout_at(until, stream.results.next()).await {
                Ok(Some(Ok(event))) => {
                    stream.answer.take(&event);
                    if event.get("statusUpdate").is_some() {
                        tell(call, &stream.answer);
                    }
                }
                Ok(Some(Err(error))) if error.kind != ErrorKind::Unavailable => return Err(error),
                Ok(Some(Err(_)) | None) => return Ok(None),
                Err(_) => break,
            }
        }
        self.standing(called, call, stream, task).await.map(Some)
    }

    async fn poll_of(&self, called: &str, call: &Call, answer: &Answer, task: &Task) -> Result<Poll, ToolError> {
        if !task.is_over() {
            if !task.is_settled(answer) {
                return Ok(Poll::Pending(task.pending(&self.peer.name)));
            }
            if answer.state == Some("input_required") && task.answers < self.peer.limits.questions {
                let question = line(&answer.sentence(), self.peer.limits.message_characters);
                if let Some(said) = call.context.person.ask(&question, &[]).await {
                    return self.reply(called, call, answer, task, &said).await;
                }
            }
        }
        self.result(called, answer).map(Poll::Ready)
    }

    /// Gives the agent a person's answer to its question.
    async fn reply(
        &self,
        called: &str,
        call: &Call,
        answer: &Answer,
        task: &Task,
        said: &str,
    ) -> Result<Poll, ToolError> {
        let task = task.with_answer(answer.question());
        let id =
            if call.key.is_empty() { Uuid::now_v7().to_string() } else { format!("{}-{}", call.key, task.answers) };
        let mut fields = json!({"message": {"messageId": id, "role": "ROLE_USER", "parts": [{"text": said}],
            "taskId": task.id, "contextId": answer.context}});
        if !self.card.streaming {
            fields["configuration"] = json!({"returnImmediately": true});
        }
        let (parameters, most) = (self.parameters(fields), self.peer.limits.request);
        let (first, results) =
            begin(self.peer.clone(), self.card.streaming, called.to_owned(), parameters, most).await?;
        let mut stream = Stream { results, answer: Answer::default() };
        stream.answer.take(&first);
        if self.card.streaming {
            self.streams.keep(&task.id, stream);
        }
        Ok(Poll::Pending(task.pending(&self.peer.name)))
    }

    /// What a call gets.
    fn result(&self, called: &str, answer: &Answer) -> Result<Value, ToolError> {
        match answer.state {
            Some(state @ ("failed" | "rejected")) => {
                let said = line(&answer.sentence(), self.peer.limits.message_characters);
                let said = Some(said.trim_end_matches('.')).filter(|said| !said.is_empty());
                let said = said.unwrap_or("it does not say why");
                let what = if state == "failed" { "failed at it" } else { "does not take it on" };
                Err(ToolError::failed(format!("{called}: the agent `{}` {what}: {said}", self.peer.name)))
            }
            _ => self.bounded(called, answer.record()),
        }
    }

    async fn about(&self, called: &str, method: &str, call: &Call) -> Result<Value, ToolError> {
        let task: String = call.argument("task_id")?;
        let result =
            self.peer.ask(called, method, self.parameters(json!({"id": task})), self.peer.limits.request).await?;
        self.bounded(called, Answer::of_task(&result).record())
    }

    fn bounded(&self, called: &str, record: Value) -> Result<Value, ToolError> {
        let (bytes, most) = (record.to_string().len(), self.peer.limits.result_bytes);
        if bytes <= most {
            return Ok(record);
        }
        let message = format!("the result of {called} has {bytes} bytes of JSON, more than {most}");
        Err(ToolError::failed(message).with_hint("ask the agent for less"))
    }
}

/// How long one look reads on in a stream.
const LISTENING: Duration = Duration::from_secs(1);

/// Tells whoever looks what an agent says of a task that it works at.
fn tell(call: &Call, answer: &Answer) {
    if !answer.is_over() {
        let said = answer.sentence();
        let text = if said.is_empty() { answer.state.unwrap_or_default().to_owned() } else { said };
        call.context.progress.tell(&call.key, Step { text, ..Step::default() });
    }
}

/// True if the agent may be there again later.
fn is_away(error: &ToolError) -> bool {
    matches!(error.kind, ErrorKind::Unavailable | ErrorKind::Timeout)
}

/// The message of a call, as the wire has it.
fn message(call: &Call) -> Result<Value, ToolError> {
    let text: String = call.argument("message")?;
    let data: Option<Value> = call.argument("data")?;
    let mut parts = vec![json!({"text": text})];
    parts.extend(data.map(|data| json!({"data": data})));
    // The same call says the same message, so that an agent can tell that it has had it.
    let id = if call.key.is_empty() { Uuid::now_v7().to_string() } else { call.key.clone() };
    let mut message = Map::new();
    message.insert("messageId".into(), id.into());
    message.insert("role".into(), "ROLE_USER".into());
    message.insert("parts".into(), parts.into());
    for (argument, field) in [("task_id", "taskId"), ("context_id", "contextId")] {
        if let Some(id) = call.argument::<Option<String>>(argument)? {
            message.insert(field.into(), id.into());
        }
    }
    Ok(Value::Object(message))
}

/// What an agent first answers to a message, and what follows it.
type Begun = Result<(Value, Results), ToolError>;

/// Sends a message and waits for the first answer.
async fn begin(peer: Peer, streaming: bool, called: String, parameters: Value, most: Duration) -> Begun {
    let begun = async {
        if !streaming {
            let result = peer.ask(&called, "SendMessage", parameters, most).await?;
            return Ok((result, futures_util::stream::empty().boxed()));
        }
        let mut results = peer.stream(&called, "SendStreamingMessage", parameters).await?;
        match results.next().await {
            Some(first) => Ok((first?, results)),
            None => Err(ToolError::failed(format!("{called}: the agent `{}` answered nothing", peer.name))),
        }
    };
    peer.in_time(&called, most, begun).await
}

/// A task that somebody waits for. Dropped before its time, it is cancelled.
struct Open<'a> {
    toolkit: &'a AgentToolkit,
    /// The first answer, until it is there. A task of its own: it is needed to know what to cancel.
    begun: Option<JoinHandle<Begun>>,
    answer: Answer,
    /// The task that was there before the call, which is its own program's to cancel.
    own: Option<String>,
    waits: bool,
}

impl Open<'_> {
    /// Takes in the first answer.
    async fn begin(&mut self, called: &str) -> Result<Results, ToolError> {
        let name = &self.toolkit.peer.name;
        let stopped = || ToolError::failed(format!("{called}: the host is shutting down"));
        let Some(begun) = self.begun.as_mut() else { return Err(stopped()) };
        let begun = begun.await;
        self.begun = None;
        let (first, results) = begun.map_err(|_| stopped())??;
        if self.answer.take(&first) {
            return Ok(results);
        }
        Err(ToolError::failed(format!("{called}: the agent `{name}` answered neither a message nor a task")))
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let Some(runtime) = tokio::runtime::Handle::try_current().ok().filter(|_| self.waits) else { return };
        let (peer, tenant) = (self.toolkit.peer.clone(), self.toolkit.parameters(json!({})));
        let (begun, own) = (self.begun.take(), self.own.take());
        let mut answer = std::mem::take(&mut self.answer);
        runtime.spawn(async move {
            if let Some(begun) = begun
                && let Ok(Ok((first, _))) = begun.await
            {
                answer.take(&first);
            }
            let Some(task) = answer.task.clone().filter(|task| answer.is_open() && own.as_ref() != Some(task)) else {
                return;
            };
            let mut parameters = tenant;
            if let Some(fields) = parameters.as_object_mut() {
                fields.insert("id".into(), task.into());
            }
            if let Err(error) = peer.ask("cancel", "CancelTask", parameters, peer.limits.request).await {
                tracing::debug!(agent = peer.name, %error, "a task that nobody waits for was not cancelled");
            }
        });
    }
}

#[async_trait]
impl Toolkit for AgentToolkit {
    fn declaration(&self) -> Declaration {
        self.declaration.clone()
    }

    async fn call(&self, call: Call) -> Result<Value, ToolError> {
        let called = self.called(&call);
        match call.operation.as_str() {
            "send" => {
                let (mut poll, mut open) = self.send(&called, &call).await?;
                loop {
                    match poll {
                        Poll::Ready(value) => {
                            open.waits = false;
                            return Ok(value);
                        }
                        Poll::Pending(Pending { task, look_in, .. }) => {
                            sleep(look_in).await;
                            poll = self.look(&called, &call, &Task::read(&task)?).await?;
                        }
                    }
                }
            }
            "get_task" => self.about(&called, "GetTask", &call).await,
            "cancel_task" => self.about(&called, "CancelTask", &call).await,
            other => {
                let message = format!("{} has no operation `{other}`", self.declaration.name);
                Err(ToolError::new(ErrorKind::UnknownOperation, message))
            }
        }
    }

    async fn begin(&self, call: Call) -> Result<Poll, ToolError> {
        if call.operation != "send" {
            return self.call(call).await.map(Poll::Ready);
        }
        let (poll, mut open) = self.send(&self.called(&call), &call).await?;
        open.waits = false;
        Ok(poll)
    }

    async fn poll(&self, call: Call, task: &Value) -> Result<Poll, ToolError> {
        self.look(&self.called(&call), &call, &Task::read(task)?).await
    }

    async fn abandon(&self, call: Call, task: &Value) {
        let Some(task) = Task::read(task).ok().filter(|task| !task.is_own) else { return };
        let parameters = self.parameters(json!({"id": task.id}));
        let asked = self.peer.ask(&self.called(&call), "CancelTask", parameters, self.peer.limits.request).await;
        if let Err(error) = asked {
            tracing::debug!(agent = self.peer.name, %error, "a task that nobody waits for was not cancelled");
        }
    }
}

fn operations(limits: &Limits) -> Vec<Operation> {
    let parameter = |name: &str, kind: &str, required: bool, description: &str| Parameter {
        name: name.to_owned(),
        description: description.to_owned(),
        schema: json!({"type": kind}),
        required,
        default: None,
    };
    let task = || parameter("task_id", "string", true, "The task's id.");
    let mut wait = parameter("wait_s", "number", false, "Seconds to wait for the answer; the task goes on after that.");
    wait.default = Some(limits.wait.as_secs().into());
    let operation = |name: &str, description: &str, parameters: Vec<Parameter>, risk: Risk, most: Duration| Operation {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters,
        returns: schema(),
        risk,
        idempotent: risk == Risk::Read,
        // Each call has its own limit; the gate's comes later, because ours can say more.
        timeout: Some(most),
        enabled: true,
        paging: None,
    };
    let mut data = parameter("data", "object", false, "Structured data beside the message.");
    data.schema = json!({});
    vec![
        operation(
            "send",
            "Gives the agent a message and waits for its answer; the user is asked what it wants to know. A `question` in the answer is answered by another send with its task_id; \"working\" by get_task later.",
            vec![
                parameter("message", "string", true, "What it is told."),
                data,
                parameter("task_id", "string", false, "The task that this goes on with."),
                parameter("context_id", "string", false, "The conversation that this belongs to."),
                wait,
            ],
            Risk::Write,
            limits.longest_wait + limits.request * 2,
        ),
        operation("get_task", "How far a task is.", vec![task()], Risk::Read, limits.request + Duration::from_secs(1)),
        operation(
            "cancel_task",
            "Stops a task.",
            vec![task()],
            Risk::Destructive,
            limits.request + Duration::from_secs(1),
        ),
    ]
}
