//! The one door for every effect. A program's call comes in as a [`HostCall`]; it is bound, judged, journaled, run
//! within its deadline, masked, journaled again and answered.
//!
//! The gate does not know the model, the prompt or the terminal: what needs a person goes to an [`Attendant`].

mod answer;
mod call;
mod cards;
mod effects;
mod execute;
mod live;
mod patience;
mod performance;
mod policy;
mod replay;
mod round;
mod secrets;
mod system;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fimble_toolkit::Declaration;
use serde::{Deserialize, Serialize};

pub use answer::{AnswerError, Waiting, answer, waiting};
pub use cards::NAME as CARD_TOOLKIT;
pub use effects::{Effects, ShownCard};
pub use execute::{ExecuteError, Executed, Order, Settle, Stage, abandon, execute, resume};
pub use live::{Live, RoundView, Wait, WaitKind};
pub use policy::{Decision, Policy};
pub use round::RoundGate;
pub use secrets::Secrets;
pub use system::NAME as SYSTEM_TOOLKIT;

use crate::registry::{Registry, Scope, View};
use crate::session::Session;

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

/// What all rounds share: the toolkits, the policy, the secrets.
pub struct Gate {
    registry: Arc<Registry>,
    config: Config,
    secrets: Secrets,
    live: Arc<Live>,
    views: Views,
    cards: bool,
}

/// What of the toolkits programs see, by whose they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Views {
    /// What everybody sees.
    pub all: View,
    /// What besides is left to a tenant, by name.
    pub tenants: BTreeMap<String, View>,
}

impl Gate {
    /// A gate before `registry`.
    pub fn new(registry: Arc<Registry>, config: Config, secrets: Secrets) -> Self {
        Self { registry, config, secrets, live: Arc::default(), views: Views::default(), cards: false }
    }

    /// The same gate, where not everybody sees everything.
    #[must_use]
    pub fn with_views(self, views: Views) -> Self {
        Self { views, ..self }
    }

    /// The same gate, whose programs can show cards.
    #[must_use]
    pub fn with_cards(self) -> Self {
        Self { cards: true, ..self }
    }

    /// What of the toolkits a tenant sees.
    pub fn scope(&self, tenant: &str) -> Scope {
        self.scope_with(tenant, View::default())
    }

    /// What of the toolkits a session's programs see: what everybody, its tenant and itself do.
    pub fn scope_of(&self, session: &Session) -> Scope {
        self.scope_with(&session.record().tenant, session.view().clone())
    }

    /// What of the toolkits a session of that tenant sees which has a view of its own.
    pub fn scope_with(&self, tenant: &str, own: View) -> Scope {
        let tenant = self.views.tenants.get(tenant).cloned();
        Scope::of([self.views.all.clone(), tenant.unwrap_or_default(), own])
    }

    /// The rounds that run now.
    pub fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// All toolkits that programs within `scope` may call: the system toolkit first, then the registry's.
    pub fn declarations_in(&self, scope: &Scope) -> Vec<Declaration> {
        let mut declarations = vec![system::declaration()];
        declarations.extend(self.cards.then(cards::declaration).and_then(|cards| scope.narrow(cards)));
        declarations.extend(self.registry.declarations_in(scope));
        declarations
    }

    /// All toolkits that programs of a session may call.
    pub fn declarations_of(&self, session: &Session) -> Vec<Declaration> {
        self.declarations_in(&self.scope_of(session))
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
