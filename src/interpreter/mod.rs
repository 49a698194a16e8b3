//! Runs programs in jailed CPython processes. It does not know what a toolkit, a session or a model is: names that a
//! program calls are answered by a [`Host`].

mod cgroup;
mod child;
mod config;
mod control;
mod done;
mod ending;
mod error;
pub mod frame;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod jail;
mod leaving;
mod message;
mod output;
mod overtime;
mod pace;
pub mod packages;
mod pool;
mod process;
mod python;
mod round;
mod scratch;
mod sources;
mod spawn;
mod spin;
mod wall;
mod wire;
mod zygote;

pub use config::{Config, Isolation, Level};
pub use error::Error;
pub use leaving::leave;
pub use pool::Interpreter;
pub use process::{Process, Vitals};
pub use wall::counted;
pub use zygote::init;

use std::time::Duration;

use async_trait::async_trait;
use fimble_toolkit::ToolError;
use serde_json::{Map, Value};

use crate::record::{Readings, Site, VariableKind};

/// A program and what it starts with.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The hole: Python source, not indented, with top-level `await` allowed.
    pub source: String,
    /// What tracebacks call it, e.g. `<program>` or the file's name.
    pub file_name: String,
    /// Variables to restore, in an order in which definitions can run.
    pub variables: Vec<Carried>,
    /// The names of the proxy objects, e.g. `git_toolkit`.
    pub proxies: Vec<String>,
    /// The methods of them whose results come page by page, so that `async for` goes through all pages.
    pub paging: Vec<Paging>,
    /// What it may use.
    pub limits: Limits,
    /// What its random numbers come from, and what clocks said to an earlier run of it. `None`: chance and the time as they are.
    pub repeat: Option<Repeat>,
}

/// A method of a proxy whose results come page by page.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Paging {
    /// The proxy object's name.
    pub target: String,
    /// The method.
    pub method: String,
    /// The argument that takes the token of the page that is wanted.
    pub argument: String,
    /// Where that argument stands among positional ones, from 0.
    pub position: usize,
    /// The names that lead from a result to the token of the next page.
    pub token: Vec<String>,
    /// The names that lead from a result to the list of its items.
    pub items: Vec<String>,
}

/// What makes a program draw the same random numbers and be told the same times as before.
#[derive(Debug, Clone, PartialEq)]
pub struct Repeat {
    /// An even number of hexadecimal digits.
    pub seed: String,
    /// What the clocks said first, all [`HostCall::readings`] of the earlier run in the order of its calls.
    pub readings: Readings,
}

impl Run {
    /// A program alone: no variables, no toolkits, the default limits.
    pub fn of(source: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            file_name: "<program>".to_owned(),
            variables: Vec::new(),
            proxies: Vec::new(),
            paging: Vec::new(),
            limits: Limits::default(),
            repeat: None,
        }
    }
}

/// What a program may use. Each is named in the configuration under `interpreter.limits`.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Wall time in seconds, without what the program [waited for others](Host::waited) and did not compute meanwhile. A
    /// program is told 0.2 s before, or a tenth of it if that is less, so that its last words are said in time. Default 60.
    pub wall_s: f64,
    /// CPU time in seconds, of all its threads; it is told as above. Default 30.
    pub cpu_s: u64,
    /// Memory in MiB. Default 512.
    pub memory_mib: u64,
    /// Output in KiB; more is cut with a mark. Default 256.
    pub output_kib: u64,
    /// Calls of one round. Default 1,000.
    pub calls: u32,
    /// Calls at the same time. Default 100.
    pub concurrent_calls: u32,
    /// Scratch files in MiB, together. In `reduced` isolation the host looks every 10 ms, and what a program writes between two
    /// looks comes on top. Default 32.
    pub scratch_mib: u64,
    /// Bytes of all variables written by one round, in KiB. Default 65,536.
    pub variables_kib: u64,
    /// Bytes of one variable, in KiB. Default 8,192.
    pub variable_kib: u64,
    /// One frame in KiB, either way. Default 65,536.
    pub frame_kib: u64,
}

impl Limits {
    /// The CPU time; more than a year is none.
    fn cpu(&self) -> Duration {
        Duration::from_secs(self.cpu_s.min(31_536_000))
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall_s: 60.0,
            cpu_s: 30,
            memory_mib: 512,
            output_kib: 256,
            calls: 1_000,
            concurrent_calls: 100,
            scratch_mib: 32,
            variables_kib: 65_536,
            variable_kib: 8_192,
            frame_kib: 65_536,
        }
    }
}

/// A variable that goes in. `content` is written as its kind says.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Carried {
    /// The Python name.
    pub name: String,
    /// How `content` is written.
    pub kind: VariableKind,
    /// Tagged JSON text, or Python source.
    pub content: String,
}

/// A variable that came out.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Captured {
    /// The Python name.
    pub name: String,
    /// How `content` is written.
    pub kind: VariableKind,
    /// Tagged JSON text, or Python source.
    pub content: String,
    /// Its Python type for the reader, e.g. `list[dict]`.
    pub type_name: String,
    /// A bounded `repr`, or the first line of a definition.
    pub preview: String,
    /// The line of the source that wrote it; 0 if unknown.
    pub line: u32,
    /// For definitions: the global names it uses.
    pub references: Vec<String>,
}

/// A call that a program makes.
#[derive(Debug, Clone, PartialEq)]
pub struct HostCall {
    /// Unique within the round, and growing in the order in which the program made its calls.
    pub id: u64,
    /// The proxy's name.
    pub target: String,
    /// The method's name.
    pub method: String,
    /// Positional arguments.
    pub positional: Vec<Value>,
    /// Keyword arguments.
    pub keyword: Map<String, Value>,
    /// Where in the source the call stands.
    pub site: Site,
    /// How many calls the same site made before, in this round.
    pub ordinal: u32,
    /// What clocks said to the program since its last call; at most 1,000 readings of each.
    pub readings: Readings,
}

/// Answers a program while it runs. One per round.
///
/// [`call`](Host::call) may run concurrently with itself; its future is dropped when the program no longer waits for
/// the result, or ended. The others return at once.
#[async_trait]
pub trait Host: Send + Sync {
    /// Answers one call. An error becomes a Python exception.
    async fn call(&self, call: HostCall) -> Result<Value, ToolError>;
    /// The program let go of the call with that [`HostCall::id`], which is not answered; its future is dropped next. Default
    /// nothing.
    fn let_go(&self, _call: u64) {}
    /// A piece of output, as the program prints it.
    fn print(&self, text: &str);
    /// A top-level statement ran to its end: `number` of `of`, from 1.
    fn statement(&self, number: u32, of: u32);
    /// The program is about to begin, in this process. Comes again, and the statements from the first one on,
    /// if that process is lost before the program called or printed anything and another one takes its place.
    fn begins(&self, _process: Process) {}
    /// For how long so far the program waited for what has a deadline of its own, or for a person: a wait under way
    /// included, waits at the same time counted once. Never less than it was. It does not count towards
    /// [`Limits::wall_s`]: however long others take, the program has its whole time for itself. Default nothing: a host
    /// whose calls have no deadline is bounded by the program's.
    fn waited(&self) -> Duration {
        Duration::ZERO
    }
}

/// Answers no call and shows nothing: the [`Host`] of a program alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

#[async_trait]
impl Host for Nobody {
    async fn call(&self, _call: HostCall) -> Result<Value, ToolError> {
        Err(ToolError::unavailable("nobody answers calls here"))
    }

    fn print(&self, _text: &str) {}

    fn statement(&self, _number: u32, _of: u32) {}
}

/// What became of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// How it ended.
    pub ending: Ending,
    /// All it printed, cut to the limit with a mark.
    pub output: String,
    /// Variables it wrote; empty unless it could say so at its end.
    pub written: Vec<Captured>,
    /// Names it deleted.
    pub removed: Vec<String>,
    /// Names that could not be carried, with the reason.
    pub not_carried: Vec<(String, String)>,
    /// Top-level statements that ran to their end.
    pub statements_done: u32,
    /// Top-level statements there are.
    pub statements: u32,
    /// What it used.
    pub usage: Usage,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// It ran to its end.
    Returned {
        /// The bounded `repr` of a last bare expression that is not `None`.
        value: Option<String>,
    },
    /// It raised.
    Raised {
        /// The traceback with the program's own lines only, the failing line and its names' values.
        traceback: String,
        /// The exception class's name.
        exception: String,
        /// The statement that raised, from 1; 0 if the source did not compile.
        statement: u32,
        /// The line of the source, from 1.
        line: u32,
    },
    /// A limit ended it. `limit` is `wall`, `cpu`, `memory`, `output`, `calls` or `scratch`.
    Limit {
        /// The limit's name.
        limit: &'static str,
        /// The sentence for the model.
        message: String,
    },
    /// The process was lost together with the one that it was forked from, by no fault of the program's.
    Lost {
        /// The sentence for the model.
        message: String,
    },
    /// The process ended without a final frame, or spoke nonsense.
    Crashed {
        /// The sentence for the model.
        message: String,
    },
    /// The host stopped it.
    Cancelled,
}

/// What a program used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// Wall time, all waiting included.
    pub wall: Duration,
    /// CPU time, user and system.
    pub cpu: Duration,
    /// Peak resident memory in KiB.
    pub peak_rss_kib: u64,
    /// Calls made.
    pub calls: u32,
}
