//! The core data that several rooms share: sessions, rounds, calls and variables. Plain data, no I/O.

use std::collections::BTreeMap;

use fimble_toolkit::{Risk, ToolError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A conversation, without what belongs to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// A UUID version 7 in its usual text form; a fork's is that of the session that its family began with, and `.XXXXXXXX`.
    pub id: String,
    /// The tenant; `local` for the command line.
    pub tenant: String,
    /// The user.
    pub user: String,
    /// The first words of the first message.
    pub title: String,
    /// What it is doing.
    pub status: SessionStatus,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When something was last stored.
    pub updated_at: Timestamp,
    /// The number of the last round; 0 before the first.
    pub rounds: u64,
    /// The id of the last segment; 0 before the first.
    pub segments: u64,
    /// The number of the last event; 0 before the first.
    pub events: u64,
    /// What whoever makes the turns must know to go on with the one under way; `None` between turns.
    pub turn: Option<Value>,
}

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// Waits for a message.
    Idle,
    /// A turn is under way, or was when its owner died.
    Running,
    /// A call waits for an approval.
    AwaitingApproval,
    /// The program asked the user.
    AwaitingUser,
    /// The program waits for a task, or for its time.
    AwaitingTask,
    /// Closed by its user.
    Finished,
    /// Closed by a failure that a person must look at.
    Failed,
}

/// One program and all that came of it, without its calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// From 1 within the session.
    pub number: u64,
    /// The rounds it went on from; empty for the first of a turn.
    pub parents: Vec<u64>,
    /// What it was to reach.
    pub goal: String,
    /// The host's part before the hole.
    pub prefix: String,
    /// The hole, as it ran.
    pub hole: String,
    /// The host's part after it.
    pub suffix: String,
    /// What it printed, cut to the output limit.
    pub output: String,
    /// The names it wrote.
    pub written: Vec<String>,
    /// The names it removed.
    pub removed: Vec<String>,
    /// The names that it or an earlier round left and that could not be kept, with the reason, until they are written again.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub not_kept: BTreeMap<String, String>,
    /// Top-level statements that ran to their end.
    pub statements_done: u32,
    /// How it ended; `None` while it runs, or if its owner died.
    pub outcome: Option<Outcome>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Wall, CPU, memory and tokens.
    pub usage: RoundUsage,
    /// What its random numbers come from, in hexadecimal; empty for a round that cannot be run again.
    #[serde(default)]
    pub seed: String,
    /// The run id of the turn, or of the command, that it began in; empty if it is not known.
    #[serde(default)]
    pub trace: String,
}

/// How a round ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// It ran to its end.
    Finished {
        /// The bounded `repr` of a last bare expression, if there was one that is not `None`.
        value: Option<String>,
    },
    /// It raised.
    Raised {
        /// The traceback, with the program's own lines only.
        traceback: String,
        /// The number of the statement that raised, from 1.
        statement: u32,
        /// The class of the exception, without its module, e.g. `KeyError`; empty if it is not known.
        #[serde(default)]
        exception: String,
    },
    /// It waits for something that may take long.
    Suspended {
        /// What it waits for: `approval`, `plan`, `question`, `card`, `doubt` (whether a call that was cut off is to be made again),
        /// `task` or `sleep`.
        on: String,
        /// The key of the call that waits.
        call: String,
    },
    /// A limit or a crash ended it; nothing was carried.
    Stopped {
        /// A stable word: `wall`, `cpu`, `memory`, `output`, `calls`, `crash`, `cancelled`, `killed`, `denied`, `diverged`, `abandoned`.
        limit: String,
        /// The sentence for the model.
        message: String,
    },
}

/// What a round cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct RoundUsage {
    /// Wall time of the program in milliseconds.
    pub wall_ms: f64,
    /// CPU time of the program in milliseconds.
    pub cpu_ms: f64,
    /// Peak resident memory of the program in KiB.
    pub peak_rss_kib: u64,
    /// Tokens of the prompts that led to it.
    pub prompt_tokens: u32,
    /// Tokens the model generated for it.
    pub completion_tokens: u32,
}

/// One call in the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// `hash(session, round, site, ordinal, operation, arguments)`; the idempotency key.
    pub key: String,
    /// Its number among the calls of the round, in the order in which the program made them, from 1.
    #[serde(default)]
    pub number: u64,
    /// Where in the hole the call stands.
    pub site: Site,
    /// How many calls the same site made before, in this round.
    pub ordinal: u32,
    /// The toolkit's name.
    pub toolkit: String,
    /// The operation's name.
    pub operation: String,
    /// The bound arguments.
    pub arguments: Map<String, Value>,
    /// The declared risk.
    pub risk: Risk,
    /// How far it got.
    pub status: CallStatus,
    /// When it was journaled as requested.
    pub requested_at: Timestamp,
    /// When it was journaled as done.
    pub done_at: Option<Timestamp>,
    /// What clocks said to the program since its last call.
    #[serde(default, skip_serializing_if = "Readings::is_empty")]
    pub readings: Readings,
}

/// What clocks said to a program, in nanoseconds and in the order in which it asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Readings {
    /// The time of day, since 1970-01-01 UTC.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wall: Vec<i64>,
    /// `time.monotonic`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steady: Vec<i64>,
    /// `time.perf_counter`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counter: Vec<i64>,
}

impl Readings {
    /// Among readings: a call was made here. A program that looks at the clock more often or less often before a call than it did
    /// sees the right times again after it. `python/repeat.py` knows it, and has a second one for readings that were not kept.
    pub const CALL: i64 = i64::MIN;

    /// Marks a call in all of them.
    pub fn call(&mut self) {
        [&mut self.wall, &mut self.steady, &mut self.counter].into_iter().for_each(|clock| clock.push(Self::CALL));
    }

    /// True if no clock was read.
    pub fn is_empty(&self) -> bool {
        self.wall.is_empty() && self.steady.is_empty() && self.counter.is_empty()
    }

    /// Adds those that came after these.
    pub fn extend(&mut self, later: &Self) {
        self.wall.extend(&later.wall);
        self.steady.extend(&later.steady);
        self.counter.extend(&later.counter);
    }
}

/// A place in the hole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Site {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 0.
    pub column: u32,
}

/// How far a call got.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum CallStatus {
    /// It waits for a person's approval; the toolkit has not acted.
    Waiting,
    /// A person approved it; the toolkit has not acted yet.
    Approved,
    /// The toolkit may or may not have acted.
    Requested,
    /// The system behind the toolkit has taken it on, and answers later.
    Pending {
        /// What the toolkit finds the task by.
        task: Value,
        /// What works at it, for a person.
        what: String,
        /// When the toolkit is asked next how far it is.
        look_at: Timestamp,
    },
    /// It answered.
    Done {
        /// The result.
        result: Value,
    },
    /// It failed.
    Failed {
        /// The error the program saw.
        error: ToolError,
    },
}

/// A name that outlives its round, without its content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Variable {
    /// The Python name.
    pub name: String,
    /// How its content is written.
    pub kind: VariableKind,
    /// Its Python type for the reader, e.g. `list[dict]`.
    pub type_name: String,
    /// A bounded `repr`; of a function or class its head, e.g. `def f(x): ...`, of another definition its first line; imports with `; `
    /// between them.
    pub preview: String,
    /// Bytes of its content.
    pub size: u64,
    /// SHA-256 of its content in lower-case hexadecimal; the address of the content.
    pub hash: String,
    /// The round that wrote it.
    pub round: u64,
    /// The line of the hole that wrote it; 0 if unknown.
    pub line: u32,
    /// For definitions: the global names it uses.
    pub references: Vec<String>,
}

/// How a variable's content is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VariableKind {
    /// Tagged JSON, see `python/codec.py`.
    Value,
    /// Python source of a function or class.
    Definition,
    /// Python source of an import.
    Import,
}

/// A variable that a round wrote, with its content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WrittenVariable {
    /// The variable.
    pub variable: Variable,
    /// Its content.
    pub content: String,
}
