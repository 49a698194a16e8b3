//! What front ends see: one enum, numbered and stored. The terminal prints it, `--json` writes it, a server streams it.
//!
//! Kinds and field names follow AG-UI 1.0 (<https://docs.ag-ui.com/concepts/events>), so an existing front end reads
//! them unchanged; what AG-UI has no word for is a `CUSTOM` event with one of the names of [`Custom`].

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One event of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Grows by one within a session, from 1. Transient events (see [`EventKind::is_transient`]) carry 0 and are not
    /// stored: all they say is said again by a later, stored event. So do events that belong to no session.
    pub seq: u64,
    /// The session's id.
    pub session: String,
    /// The round; 0 outside rounds.
    pub round: u64,
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
pub enum EventKind {
    /// A turn begins.
    RunStarted {
        /// The session's id.
        thread_id: String,
        /// The turn's id.
        run_id: String,
    },
    /// A turn ended without a failure of ours.
    RunFinished {
        /// The session's id.
        thread_id: String,
        /// The turn's id.
        run_id: String,
        /// How it ended, see `agent::Verdict`.
        result: Value,
    },
    /// A turn ended because the model, the interpreter or the store failed.
    RunError {
        /// One sentence, with its hint.
        message: String,
        /// A stable word: `model`, `interpreter`, `store`, `cancelled`.
        code: String,
    },
    /// A stage of the turn begins: `think` or `act`.
    StepStarted {
        /// The stage.
        step_name: String,
    },
    /// A stage of the turn ended.
    StepFinished {
        /// The stage.
        step_name: String,
    },
    /// A whole message to the user.
    TextMessageChunk {
        /// Unique within the session.
        message_id: String,
        /// Always `assistant`.
        role: String,
        /// The text.
        delta: String,
    },
    /// A call was made.
    ToolCallChunk {
        /// The call's idempotency key.
        tool_call_id: String,
        /// `toolkit.operation`.
        tool_call_name: String,
        /// The bound arguments as JSON text.
        delta: String,
        /// What the program says of its risk, e.g. `destructive`, if it does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rating: Option<String>,
    },
    /// A call was answered.
    ToolCallResult {
        /// Unique within the session.
        message_id: String,
        /// The call's idempotency key.
        tool_call_id: String,
        /// The result as JSON text, cut to the event limit, or the error's sentence.
        content: String,
        /// Always `tool`.
        role: String,
        /// True if the call failed.
        failed: bool,
        /// How long the call took, in milliseconds.
        duration_ms: f64,
    },
    /// Something AG-UI has no word for.
    Custom(Custom),
}

/// Fimble's own events, by `name`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", content = "value", rename_all = "snake_case")]
pub enum Custom {
    /// The session's first event of a process: which layers of the jail are active.
    Isolation {
        /// `full`, `reduced` or `none`.
        level: String,
        /// The active layers, e.g. `namespaces`, `landlock`, `seccomp`.
        layers: Vec<String>,
        /// The layers of a complete jail that are not active.
        #[serde(default)]
        missing: Vec<String>,
        /// What the user must know of it, one sentence.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        warning: Option<String>,
    },
    /// A piece of the hole, as the model writes it. Transient.
    ProgramDelta {
        /// The piece.
        text: String,
    },
    /// The checked program that is about to run.
    Program {
        /// The host's part before the hole.
        prefix: String,
        /// The hole, as it runs.
        hole: String,
        /// The host's part after it.
        suffix: String,
        /// What was changed in the model's text, one sentence each.
        repairs: Vec<String>,
    },
    /// A program that was refused before it ran, and why.
    Refused {
        /// The model's text.
        hole: String,
        /// The message the model gets.
        message: String,
    },
    /// A piece of the program's output.
    Print {
        /// The piece.
        text: String,
    },
    /// A hook of the user's said something to them, or failed.
    Hook {
        /// When: `PreToolUse` and so on.
        event: String,
        /// Its program.
        hook: String,
        /// What it said, or why it failed.
        message: String,
    },
    /// A top-level statement ran.
    Statement {
        /// Its number, from 1.
        number: u32,
        /// How many there are.
        of: u32,
    },
    /// What a round left behind.
    RoundEnded {
        /// `finished`, `raised`, `suspended` or `stopped`.
        outcome: String,
        /// The traceback, the limit's sentence, or empty.
        message: String,
        /// The bounded `repr` of a last bare expression, if there was one that is not `None`.
        value: Option<String>,
        /// The names that were written.
        written: Vec<String>,
        /// The names that were removed.
        removed: Vec<String>,
        /// The names that could not be carried, with the reason.
        not_carried: Vec<(String, String)>,
        /// Wall time in milliseconds.
        wall_ms: f64,
        /// CPU time in milliseconds.
        cpu_ms: f64,
    },
    /// Tokens of one request to the model.
    ModelUsage {
        /// The model's name.
        model: String,
        /// Tokens of the prompt.
        prompt_tokens: u32,
        /// Of those, how many the server had cached.
        cached_tokens: u32,
        /// Tokens generated.
        completion_tokens: u32,
        /// How long the request took, in milliseconds.
        duration_ms: f64,
    },
    /// What a program would do, before it does it.
    Plan {
        /// What tells it from other plans.
        hash: String,
        /// All of it, for a person.
        text: String,
        /// One object an effect: `toolkit`, `operation`, `arguments`, `risk`, `preview`, `answer`, `reason`, `struck`, and what
        /// tells the call.
        effects: Vec<Value>,
    },
    /// A call passed unasked because a person had said `always` to it.
    Allowed {
        /// The call's idempotency key.
        tool_call_id: String,
        /// `toolkit.operation`.
        operation: String,
        /// What is revoked to be asked again.
        by: String,
    },
    /// A person said `always`.
    Remembered {
        /// What it is revoked by.
        id: String,
        /// `toolkit.operation`.
        operation: String,
        /// For which arguments.
        arguments: String,
    },
    /// A call is so far, as the system behind its toolkit says.
    Progress {
        /// The call's idempotency key.
        tool_call_id: String,
        /// How much is done, in a unit of the system's own.
        done: Option<f64>,
        /// How much there is to do, in the same unit.
        total: Option<f64>,
        /// What is being done, in one line; may be empty.
        text: String,
    },
    /// Files of toolkits came, changed or went since the last turn.
    ToolkitsChanged {
        /// Names of toolkits that came.
        added: Vec<String>,
        /// Names of toolkits that changed.
        changed: Vec<String>,
        /// Names of toolkits that went.
        removed: Vec<String>,
        /// What cannot be used, a sentence each; what was there before stays.
        problems: Vec<String>,
    },
    /// The program shows a card.
    Card {
        /// The call's idempotency key.
        id: String,
        /// The A2UI surface that shows it; the same for each state of one progress.
        surface: String,
        /// The card, by its `kind`.
        card: Value,
        /// The A2UI messages that show it.
        messages: Vec<Value>,
        /// The text for terminals.
        text: String,
        /// True if the program waits for what a person does with it.
        asks: bool,
    },
    /// A person did something with a card.
    CardAnswered {
        /// The call's idempotency key.
        id: String,
        /// What the program gets.
        answer: Value,
    },
    /// The program asks the user.
    Question {
        /// The question's id.
        id: String,
        /// The question.
        text: String,
        /// Choices, if only some answers make sense.
        choices: Vec<String>,
    },
}

impl EventKind {
    /// True for events that are shown live and not stored.
    pub fn is_transient(&self) -> bool {
        matches!(self, EventKind::Custom(Custom::ProgramDelta { .. }))
    }
}
