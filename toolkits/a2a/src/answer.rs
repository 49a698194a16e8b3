//! What an agent answered so far, and how a program gets it. It does no I/O.

use serde_json::{Map, Value, json};

/// The states of a task, as the wire and as programs have them.
const STATES: [(&str, &str); 8] = [
    ("TASK_STATE_SUBMITTED", "submitted"),
    ("TASK_STATE_WORKING", "working"),
    ("TASK_STATE_COMPLETED", "completed"),
    ("TASK_STATE_FAILED", "failed"),
    ("TASK_STATE_CANCELED", "canceled"),
    ("TASK_STATE_REJECTED", "rejected"),
    ("TASK_STATE_INPUT_REQUIRED", "input_required"),
    ("TASK_STATE_AUTH_REQUIRED", "auth_required"),
];

/// A task or a message, put together from what came.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The task's id.
    pub(crate) task: Option<String>,
    pub(crate) context: Option<String>,
    /// As programs have it; `message` is an answer without a task.
    pub(crate) state: Option<&'static str>,
    /// What the agent said with its last state, or in its message.
    said: Vec<Value>,
    /// The id of the message in which it said that.
    message: Option<String>,
    artifacts: Vec<Artifact>,
}

#[derive(Debug)]
struct Artifact {
    id: String,
    name: String,
    parts: Vec<Value>,
}

impl Answer {
    /// The answer of a task alone.
    pub(crate) fn of_task(task: &Value) -> Self {
        let mut answer = Self::default();
        answer.set_task(task);
        answer
    }

    /// Takes in one event of a stream, or the one answer of an agent that does not stream. False if it is none of them.
    pub(crate) fn take(&mut self, event: &Value) -> bool {
        if let Some(task) = event.get("task") {
            self.set_task(task);
        } else if let Some(message) = event.get("message") {
            self.state = Some("message");
            self.set_ids(message, "taskId");
            self.said = parts(message);
        } else if let Some(update) = event.get("statusUpdate") {
            self.set_ids(update, "taskId");
            self.set_status(update.get("status").unwrap_or(&Value::Null));
        } else if let Some(update) = event.get("artifactUpdate") {
            self.set_ids(update, "taskId");
            let is_more = update.get("append").and_then(Value::as_bool).unwrap_or(false);
            self.add_artifact(update.get("artifact").unwrap_or(&Value::Null), is_more);
        } else {
            return false;
        }
        true
    }

    /// True if nothing more comes before somebody does something.
    pub(crate) fn is_over(&self) -> bool {
        !matches!(self.state, None | Some("submitted" | "working"))
    }

    /// True if the agent waits for its caller.
    pub(crate) fn asks(&self) -> bool {
        matches!(self.state, Some("input_required" | "auth_required"))
    }

    /// What tells the question that the agent asks from others.
    pub(crate) fn question(&self) -> Option<String> {
        self.asks().then(|| self.message.clone().unwrap_or_else(|| self.sentence()))
    }

    /// True if the agent still works at it, or waits for its caller.
    pub(crate) fn is_open(&self) -> bool {
        self.task.is_some() && (self.asks() || !self.is_over())
    }

    /// What the agent said last, in one text.
    pub(crate) fn sentence(&self) -> String {
        text(&self.said)
    }

    /// The record that a program gets.
    pub(crate) fn record(&self) -> Value {
        let said = self.sentence();
        let is_question = self.asks();
        let made: Vec<String> =
            self.artifacts.iter().map(|artifact| text(&artifact.parts)).filter(|text| !text.is_empty()).collect();
        let whole = if made.is_empty() { said.clone() } else { made.join("\n") };
        let artifacts: Vec<Value> = self.artifacts.iter().map(Artifact::record).collect();
        let data = self.said.iter().filter_map(|part| part.get("data")).cloned().collect::<Vec<_>>();
        let files: Vec<Value> = self.said.iter().filter_map(file).collect();
        let mut record = json!({
            "state": self.state.unwrap_or("working"),
            "text": if is_question { String::new() } else { whole },
            "question": is_question.then_some(said),
            "task_id": self.task,
            "context_id": self.context,
            "artifacts": artifacts,
        });
        if let Some(record) = record.as_object_mut().filter(|_| !data.is_empty() || !files.is_empty()) {
            // A message may hold what others put into artifacts.
            let parts = json!({"name": "message", "text": self.sentence(), "data": data, "files": files});
            if let Some(Value::Array(artifacts)) = record.get_mut("artifacts") {
                artifacts.push(parts);
            }
        }
        record
    }

    fn set_task(&mut self, task: &Value) {
        self.set_ids(task, "id");
        self.set_status(task.get("status").unwrap_or(&Value::Null));
        self.artifacts.clear();
        for artifact in task.get("artifacts").and_then(Value::as_array).into_iter().flatten() {
            self.add_artifact(artifact, false);
        }
    }

    fn set_ids(&mut self, fields: &Value, task: &str) {
        let text = |key: &str| fields.get(key).and_then(Value::as_str).filter(|id| !id.is_empty()).map(str::to_owned);
        self.task = text(task).or(self.task.take());
        self.context = text("contextId").or(self.context.take());
    }

    fn set_status(&mut self, status: &Value) {
        let state = status.get("state").and_then(Value::as_str).unwrap_or_default();
        let known = STATES.iter().find(|(wire, _)| *wire == state).map(|(_, state)| *state);
        self.state = known.or(self.state);
        if let Some(message) = status.get("message") {
            self.said = parts(message);
            self.message = message.get("messageId").and_then(Value::as_str).map(str::to_owned);
        } else if known.is_some() {
            self.said.clear();
            self.message = None;
        }
    }

    fn add_artifact(&mut self, artifact: &Value, is_more: bool) {
        let field = |key: &str| artifact.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (id, parts) = (field("artifactId"), parts(artifact));
        match self.artifacts.iter_mut().find(|known| known.id == id) {
            Some(known) if is_more => known.parts.extend(parts),
            Some(known) => known.parts = parts,
            None => self.artifacts.push(Artifact { id, name: field("name"), parts }),
        }
    }
}

impl Artifact {
    fn record(&self) -> Value {
        let data: Vec<&Value> = self.parts.iter().filter_map(|part| part.get("data")).collect();
        let files: Vec<Value> = self.parts.iter().filter_map(file).collect();
        json!({"name": self.name, "text": text(&self.parts), "data": data, "files": files})
    }
}

fn parts(owner: &Value) -> Vec<Value> {
    owner.get("parts").and_then(Value::as_array).cloned().unwrap_or_default()
}

/// The texts of parts; pieces of one text follow one another as they came.
fn text(parts: &[Value]) -> String {
    parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect()
}

fn file(part: &Value) -> Option<Value> {
    let mut file = Map::new();
    for (wire, ours) in [("filename", "name"), ("mediaType", "media_type"), ("url", "url"), ("raw", "base64")] {
        if let Some(value) = part.get(wire).filter(|value| value.is_string()) {
            file.insert(ours.to_owned(), value.clone());
        }
    }
    (file.contains_key("url") || file.contains_key("base64")).then_some(Value::Object(file))
}

/// The schema of the record.
pub(crate) fn schema() -> Value {
    let text = || json!({"type": "string"});
    let optional = || json!({"type": ["string", "null"]});
    let states: Vec<&str> = STATES.iter().map(|(_, state)| *state).chain(["message"]).collect();
    let file = json!({"type": "object", "title": "File", "properties": {
        "name": text(), "media_type": text(), "url": text(), "base64": text()}});
    json!({"type": "object", "title": "Answer", "properties": {
        "state": {"enum": states},
        "text": text(),
        "question": optional(),
        "task_id": optional(),
        "context_id": optional(),
        "artifacts": {"type": "array", "items": {"type": "object", "title": "Artifact", "properties": {
            "name": text(), "text": text(), "data": {"type": "array"}, "files": {"type": "array", "items": file}}}},
    }})
}
