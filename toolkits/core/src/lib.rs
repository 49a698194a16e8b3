//! What a toolkit author depends on: the [`Toolkit`] trait, its [`Declaration`], a [`Call`] and a [`ToolError`].
//!
//! This crate does not know Python, the interpreter, the store or the model. A toolkit declares its operations as
//! data, receives calls with bound arguments, and answers with JSON.

mod absent;
mod blocking;
mod call;
mod check;
mod declaration;
mod error;
mod name;
mod named;
mod number;
mod person;
mod poll;
mod preview;
mod progress;
mod python_names;
mod schema;
mod signature;

pub use absent::Absent;
pub use blocking::blocking;
pub use call::{Call, SessionContext};
pub use check::{Finding, SHOWN_DOCSTRING, Severity, check};
pub use declaration::{Declaration, Operation, Paging, Parameter, Risk};
pub use error::{ErrorKind, ToolError};
pub use name::{KEYWORDS, is_python_name};
pub use named::{named_value, offer_values, offered_values};
pub use number::Number;
pub use person::{Answers, Person};
pub use poll::{Pending, Poll};
pub use preview::Preview;
pub use progress::{Progress, Step, Watches};
pub use python_names::{python_name, python_names};
pub use signature::{annotation, classes, literal, parameter_text, signature};

use async_trait::async_trait;
use serde_json::Value;

/// One system that programs can act on: a Python class in the program, its operations the methods.
///
/// The contract:
/// - [`declaration`](Toolkit::declaration) is cheap and, while [`revision`](Toolkit::revision) is the same, returns the
///   same value.
/// - [`call`](Toolkit::call) gets arguments that are already bound to parameter names and checked for presence. It may
///   run concurrently with itself. Dropping its future cancels the call; a toolkit that started something outside the
///   process stops it then.
/// - A failure is a [`ToolError`] whose message tells the model what to do differently. It never panics.
#[async_trait]
pub trait Toolkit: Send + Sync {
    /// The name, the description and the operations.
    fn declaration(&self) -> Declaration;

    /// A number that changes when the declaration does; the name in it never changes. It is asked often, so it only
    /// looks. Default 0: the declaration stays as it is.
    fn revision(&self) -> u64 {
        0
    }

    /// Runs one operation and returns its result as JSON.
    async fn call(&self, call: Call) -> Result<Value, ToolError>;

    /// Runs one operation, or has the system behind the toolkit take it on. Default: [`call`](Toolkit::call), which waits for
    /// the result. Dropping the future is as for `call`; a task that was handed back goes on until it is
    /// [abandoned](Toolkit::abandon).
    async fn begin(&self, call: Call) -> Result<Poll, ToolError> {
        self.call(call).await.map(Poll::Ready)
    }

    /// Looks how far the task is that [`begin`](Toolkit::begin) or an earlier look handed back. It may wait some seconds for news,
    /// and gives the same result however often it is asked. Whoever asks may be another process, a day later: what it needs
    /// is in `task`; secrets are masked in the call's arguments. Dropping the future does nothing to the task. A system that is
    /// away for a while is no error but [`Pending`]; an error ends the call.
    async fn poll(&self, call: Call, _task: &Value) -> Result<Poll, ToolError> {
        Err(ToolError::failed(format!("nothing is known of a task of {}", call.operation)))
    }

    /// Nobody waits for a task any more: it is stopped if it can be. Default: it goes on.
    async fn abandon(&self, _call: Call, _task: &Value) {}

    /// What a call would do. It changes nothing; it may look. Asked for plans of what a program would do, of operations that
    /// change something. Default `None`: it is not known.
    ///
    /// # Errors
    /// The call would fail, whatever else happens.
    async fn preview(&self, _call: &Call) -> Result<Option<Preview>, ToolError> {
        Ok(None)
    }
}

/// Implements [`Toolkit`] for the type of an inherent `impl` block.
///
/// The block's doc comment is the toolkit's description. Each `async fn(&self, …) -> Result<T, ToolError>` marked
/// `#[operation(…)]` is an operation; its doc comment is the docstring that the model reads. Other methods stay plain.
///
/// - `#[toolkit(name = "…")]`: the Python name.
/// - `#[operation(risk = "read" | "write" | "destructive")]`: what it can do to the world; must be said. Also
///   `idempotent` (default: true for reads, else false), `timeout_s = 10` (seconds; default: the gate's),
///   `enabled = false` (default true), `name = "…"` (default: the method's name), `preview = "…"` (default none: the name of a
///   plain method `async fn(&self, call: &Call) -> Result<Option<Preview>, ToolError>` that says what a call would do),
///   `paging(argument = "cursor", token = "next", items = "rows")` (default none: the parameter that takes a page's token, the
///   field of a result that is the token of the next page, and the field that is the list of items, each a path with dots if it
///   lies deeper; see [`Paging`]).
/// - Parameters are owned types that implement `Deserialize` and `JsonSchema`. An `Option<T>` need not be given, nor
///   one with `#[default(20)]`. A doc comment on a parameter is its description. A parameter of type `&Call` or
///   `&SessionContext` gets the call or its context and is no parameter of the operation.
/// - `T` implements `Serialize` and `JsonSchema`.
///
/// ```
/// use fimble_toolkit::{ToolError, Toolkit, toolkit};
///
/// struct Dice;
///
/// /// Dice that always fall the same way.
/// #[toolkit(name = "dice_toolkit")]
/// impl Dice {
///     /// The sum of some dice.
///     #[operation(risk = "read")]
///     async fn roll(&self, #[default(2)] /** How many. */ count: u32) -> Result<u32, ToolError> {
///         Ok(count * 4)
///     }
/// }
///
/// assert_eq!(Dice.declaration().operations[0].parameters[0].description, "How many.");
/// ```
pub use fimble_toolkit_macros::toolkit;

#[doc(hidden)]
pub mod expansion;
