//! The one door for every effect. A program's call comes in as a [`HostCall`]; it is bound, judged, journaled, run
//! within its deadline, masked, journaled again and answered.
//!
//! The gate does not know the model, the prompt or the terminal: what needs a person goes to an [`Attendant`].

mod answer;
mod call;
mod consent;
mod effects;
mod execute;
mod judge;
mod live;
mod patience;
mod performance;
mod plan;
mod policy;
mod proposal;
mod rehearse;
mod replay;
mod risk;
mod round;
mod secrets;
mod system;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fimble_toolkit::Declaration;
use serde::{Deserialize, Serialize};

pub use answer::{AnswerError, Waiting, answer, waiting};
pub use consent::{ALWAYS, Approval, Consent};
pub use effects::Effects;
pub use execute::{ExecuteError, Executed, Order, Settle, Stage, abandon, execute, resume};
pub use judge::{Judgement, Lifted};
pub use live::{Live, RoundView, Wait, WaitKind};
pub use plan::{PLAN_ANSWERS, Plan, PlanConsent, PlannedEffect};
pub use policy::{
    Decision, Memory, MemoryError, PROFILES, Pattern, PatternError, Policy, Profile, Remembered, Rule, Scope, Source,
    Subject,
};
pub use risk::{Config as AnalyserConfig, Finding, Reaction};
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
    /// What happens to calls.
    pub policy: Policy,
    /// Who looks at calls apart from the policy.
    pub analysers: AnalyserConfig,
    /// Seconds one call may take where its operation names no time. Default 30.
    pub call_timeout_s: f64,
    /// KiB of one call's arguments. Default 1,024.
    pub arguments_kib: u64,
    /// KiB of one result; a larger one is an error that tells the model to ask for less. Default 4,096.
    pub result_kib: u64,
    /// KiB of a result that an event shows. Default 4.
    pub event_result_kib: u64,
    /// Effects that a plan may have. Default 200.
    pub plan_effects: u32,
    /// KiB of all effects of a plan, with arguments and previews. Default 4,096.
    pub plan_kib: u64,
    /// The longest `system_toolkit.sleep` in seconds. Default 604,800, a week.
    pub sleep_s: f64,
    /// Seconds that a program's process is kept while it waits for a person or sleeps; it runs again from its journal
    /// afterwards. Default 30.
    pub grace_s: f64,
    /// Milliseconds after which the events of a round under way are stored, for those who follow it. Default 500.
    pub flush_ms: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            analysers: AnalyserConfig::default(),
            call_timeout_s: 30.0,
            arguments_kib: 1_024,
            result_kib: 4_096,
            event_result_kib: 4,
            plan_effects: 200,
            plan_kib: 4_096,
            sleep_s: 604_800.0,
            grace_s: 30.0,
            flush_ms: 500,
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
    async fn approve(&self, request: &Approval) -> Option<Consent>;
    /// What is said to a plan, in the words that [`Plan::read`] reads; `None` if nobody is there to say. Default: nobody is.
    async fn approve_plan(&self, _plan: &Plan) -> Option<String> {
        None
    }
    /// The answer to a question; `None` if nobody is there to give one.
    async fn answer(&self, question: &str, choices: &[String]) -> Option<String>;
}

/// Nobody is there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unattended;

#[async_trait]
impl Attendant for Unattended {
    async fn approve(&self, _request: &Approval) -> Option<Consent> {
        None
    }

    async fn answer(&self, _question: &str, _choices: &[String]) -> Option<String> {
        None
    }
}

/// What all rounds share: the toolkits, the policy, the secrets.
pub struct Gate {
    registry: Arc<Registry>,
    config: Config,
    secrets: Secrets,
    analysers: risk::Chain,
    memory: Memory,
    live: Arc<Live>,
}

impl Gate {
    /// A gate before `registry`, which remembers nothing that people say.
    pub fn new(registry: Arc<Registry>, config: Config, secrets: Secrets) -> Self {
        let analysers = risk::Chain::new(&config.analysers, &secrets);
        Self { registry, config, secrets, analysers, memory: Memory::default(), live: Arc::default() }
    }

    /// The same gate, which remembers there what people say `always` to.
    #[must_use]
    pub fn with_memory(self, memory: Memory) -> Self {
        Self { memory, ..self }
    }

    /// The rounds that run now.
    pub fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// All toolkits a program may call: the system toolkit first, then the registry's.
    pub fn declarations(&self) -> Vec<Declaration> {
        let mut declarations = vec![system::declaration()];
        declarations.extend(self.registry.declarations());
        declarations
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
