//! The one door for every effect. A program's call comes in as a [`HostCall`]; it is bound, judged, journaled, run
//! within its deadline, masked, journaled again and answered.
//!
//! The gate does not know the model, the prompt or the terminal: what needs a person goes to an [`Attendant`].

mod answer;
mod call;
mod effects;
mod execute;
mod learnt;
mod live;
mod patience;
mod performance;
mod policy;
mod replay;
mod round;
mod secrets;
mod system;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use fimble_toolkit::Declaration;
use serde::{Deserialize, Serialize};

pub use answer::{AnswerError, Waiting, answer, waiting};
pub use effects::Effects;
pub use execute::{ExecuteError, Executed, Order, Settle, Stage, abandon, execute, resume};
pub use live::{Live, RoundView, Wait, WaitKind};
pub use policy::{Decision, Policy};
pub use round::RoundGate;
pub use secrets::Secrets;
pub use system::NAME as SYSTEM_TOOLKIT;

use crate::registry::Registry;

#[cfg(doc)]
use crate::interpreter::HostCall;

/// The gate's settings, `[gate]` in the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What happens to a call by its risk.
    pub policy: Policy,
    /// Seconds one call may take where its operation names no time. Default 30.
    pub call_timeout_s: f64,
    /// KiB of one call's arguments. Default 1,024.
    pub arguments_kib: u64,
    /// KiB of one result; a larger one is an error that tells the model to ask for less. Default 4,096.
    pub result_kib: u64,
    /// KiB of a result that an event shows. Default 4.
    pub event_result_kib: u64,
    /// The longest `system_toolkit.sleep` in seconds. Default 604,800, a week.
    pub sleep_s: f64,
    /// Seconds that a program's process is kept while it waits for a person or sleeps; it runs again from its journal
    /// afterwards. Default 30.
    pub grace_s: f64,
    /// Milliseconds after which the events of a round under way are stored, for those who follow it. Default 500.
    pub flush_ms: u64,
    /// Tokens of one `system_toolkit.describe`; what is printed is cut at `prompt.output_tokens`. Default 560.
    pub describe_tokens: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            call_timeout_s: 30.0,
            arguments_kib: 1_024,
            result_kib: 4_096,
            event_result_kib: 4,
            sleep_s: 604_800.0,
            grace_s: 30.0,
            flush_ms: 500,
            describe_tokens: 560,
        }
    }
}

impl Config {
    fn call_timeout(&self) -> Duration {
        Duration::try_from_secs_f64(self.call_timeout_s).unwrap_or(Duration::from_secs(30))
    }

    fn grace(&self) -> Duration {
        Duration::try_from_secs_f64(self.grace_s).unwrap_or(Duration::from_secs(30))
    }

    fn flush(&self) -> Duration {
        Duration::from_millis(self.flush_ms.max(1))
    }
}

/// The person, or the absence of one, at the other end.
#[async_trait]
pub trait Attendant: Send + Sync {
    /// May this call be made? `None` if nobody is there to say.
    async fn approve(&self, request: &Approval) -> Option<bool>;
    /// The answer to a question; `None` if nobody is there to give one.
    async fn answer(&self, question: &str, choices: &[String]) -> Option<String>;
}

/// A call that policy wants a person to approve.
#[derive(Debug, Clone, PartialEq)]
pub struct Approval {
    /// `toolkit.operation`.
    pub operation: String,
    /// The bound arguments as JSON text, masked.
    pub arguments: String,
    /// The declared risk.
    pub risk: fimble_toolkit::Risk,
}

impl Approval {
    /// The question, in words.
    pub fn question(&self) -> String {
        format!("May this {} operation be called? {}({})", self.risk, self.operation, self.arguments)
    }
}

/// Nobody is there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unattended;

#[async_trait]
impl Attendant for Unattended {
    async fn approve(&self, _request: &Approval) -> Option<bool> {
        None
    }

    async fn answer(&self, _question: &str, _choices: &[String]) -> Option<String> {
        None
    }
}

/// All toolkits, as long as the registry's stay as they are.
struct Shared {
    of_registry: Arc<Vec<Declaration>>,
    all: Arc<Vec<Declaration>>,
}

/// What all rounds share: the toolkits, the policy, the secrets.
pub struct Gate {
    registry: Arc<Registry>,
    config: Config,
    secrets: Secrets,
    live: Arc<Live>,
    /// All toolkits, and the registry's of which they were made.
    shared: Mutex<Option<Shared>>,
    /// Where what was learnt of results is kept.
    learnt: Option<PathBuf>,
}

impl Gate {
    /// A gate before `registry`.
    pub fn new(registry: Arc<Registry>, config: Config, secrets: Secrets) -> Self {
        Self { registry, config, secrets, live: Arc::default(), shared: Mutex::default(), learnt: None }
    }

    /// The rounds that run now.
    pub fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// All toolkits a program may call: the system toolkit first, then the registry's.
    pub fn declarations(&self) -> Vec<Declaration> {
        self.shared_declarations().to_vec()
    }

    /// The same without a copy, equal as long as nothing changes.
    pub fn shared_declarations(&self) -> Arc<Vec<Declaration>> {
        let of_registry = self.registry.shared_declarations();
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = shared.as_ref()
            && Arc::ptr_eq(&known.of_registry, &of_registry)
        {
            return Arc::clone(&known.all);
        }
        let all = Arc::new(std::iter::once(system::declaration()).chain(of_registry.iter().cloned()).collect());
        *shared = Some(Shared { of_registry, all: Arc::clone(&all) });
        all
    }

    /// The registry behind the gate.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The values that no output may show.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }
}
