//! The one door for every effect. A program's call comes in as a [`HostCall`] and goes through, in this order:
//!
//! 1. it is found in the registry, its arguments are bound by the signature, and bounded (`round.rs`);
//! 2. if the journal of an earlier run of the program has its answer, that is the answer (`replay.rs`);
//! 3. hooks: `PreToolUse` may refuse it, ask for it, or replace its arguments (`hooks/`);
//! 4. policy allows, asks or denies, never less strictly for a hook than a denial (`policy.rs`, `patience.rs`); while a
//!    person is asked it is in the journal as waiting;
//! 5. it is journaled as requested: from here on it may have acted;
//! 6. it waits its turn: limits of rate and number (`limits.rs`), then the resources that it changes (`locks.rs`);
//! 7. the toolkit is called, within the deadline (`call.rs`, the only place); if the system behind it takes the call on as a
//!    task, what that is found by is journaled, and it is looked at until it is done (`task.rs`);
//! 8. the result is bounded, masked (`secrets/`), and journaled as done or failed;
//! 9. hooks: `PostToolUse` may tell the model something, or end the round; then the program gets the answer.
//!
//! The system toolkit acts on the session alone: hooks, policy and turns are not for it. A call by hand takes the same way
//! without the journal.
//!
//! The gate does not know the model, the prompt or the terminal: what needs a person goes to an [`Attendant`].

mod answer;
mod call;
mod cards;
mod command;
mod consent;
mod effects;
mod execute;
mod glob;
mod hooks;
mod judge;
mod learnt;
mod let_go;
mod limits;
mod live;
mod locks;
mod paging;
mod patience;
mod performance;
mod plan;
mod policy;
mod progress;
mod proposal;
mod rehearse;
mod replay;
mod risk;
mod round;
mod secrets;
mod system;
mod task;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use fimble_toolkit::Declaration;
use serde::{Deserialize, Serialize};

pub use answer::{AnswerError, Waiting, answer, waiting, withdraw};
pub use cards::NAME as CARD_TOOLKIT;
pub use command::{CommandError, CommandLimits, Said, ask};
pub use consent::{ALWAYS, Approval, Consent};
pub use effects::{Denial, Effects, ShownCard};
pub use execute::{ExecuteError, Executed, Order, Settle, Stage, abandon, execute, resume};
pub use hooks::{Hook, HookConfig, HookEvent};
pub use judge::{Judgement, Lifted};
pub use limits::{CallLimit, Per};
pub use live::{Live, RoundView, Wait, WaitKind};
pub use locks::ResourceLock;
pub use plan::{PLAN_ANSWERS, Plan, PlanConsent, PlannedEffect};
pub use policy::{
    Decision, Extent, Memory, MemoryError, PROFILES, Pattern, PatternError, Policy, Profile, Remembered, Rule, Source,
    Subject,
};
pub use risk::{Config as AnalyserConfig, Finding, Reaction};
pub use round::RoundGate;
pub use secrets::{MaskedStream, SHORTEST as SHORTEST_SECRET, Secrets};
pub use system::NAME as SYSTEM_TOOLKIT;

use crate::registry::{Registry, Scope, View};
use crate::session::Session;

#[cfg(doc)]
use crate::interpreter::HostCall;

/// The gate's settings, `[gate]` in the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What happens to calls.
    pub policy: Policy,
    /// Programs that are told what happens and may say something about it. Default none.
    pub hooks: HookConfig,
    /// How many calls may be made. Default no limit.
    pub limits: Vec<CallLimit>,
    /// What one call at a time may change. Default: a service of systemd, and nginx.
    pub locks: Vec<ResourceLock>,
    /// Seconds that a call waits for its turn, once for the limits and once for what it changes. Default 20.
    pub turn_s: f64,
    /// Where processes of one user meet that change the same. Default none: only the sessions of one process; the command line
    /// sets `$XDG_DATA_HOME/fimble/resources`.
    pub lock_folder: Option<PathBuf>,
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
    /// The longest that a call may wait for a task that the system behind its toolkit took on, in seconds. Default 604,800, a week.
    pub task_s: f64,
    /// Milliseconds that pass at least between two looks at a task while its program's process is kept. Default 20.
    pub task_look_ms: u64,
    /// Milliseconds that pass at least between two looks at a task whose program has no process any more. Default 1,000.
    pub task_suspended_ms: u64,
    /// Seconds for which stopping a task that nobody waits for may hold up what comes next. Default 5.
    pub task_stop_s: f64,
    /// Seconds that a program's process is kept while it waits for a person or a task, or sleeps; it runs again from its journal
    /// afterwards. Default 30.
    pub grace_s: f64,
    /// Milliseconds after which the events of a round under way are stored, for those who follow it. Default 500.
    pub flush_ms: u64,
    /// Milliseconds between two events that tell how far one call is; steps in between are passed over. Default 250.
    pub progress_ms: u64,
    /// How many of those one call may have while its program runs. Default 200.
    pub progress_events: u32,
    /// Characters of the text of one of those. Default 200.
    pub progress_characters: u32,
    /// Tokens of one `system_toolkit.describe`; what is printed is cut at `prompt.output_tokens`. Default 560.
    pub describe_tokens: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            hooks: HookConfig::default(),
            limits: Vec::new(),
            locks: ResourceLock::shipped(),
            turn_s: 20.0,
            lock_folder: None,
            analysers: AnalyserConfig::default(),
            call_timeout_s: 30.0,
            arguments_kib: 1_024,
            result_kib: 4_096,
            event_result_kib: 4,
            plan_effects: 200,
            plan_kib: 4_096,
            sleep_s: 604_800.0,
            task_s: 604_800.0,
            task_look_ms: 20,
            task_suspended_ms: 1_000,
            task_stop_s: 5.0,
            grace_s: 30.0,
            flush_ms: 500,
            progress_ms: 250,
            progress_events: 200,
            progress_characters: 200,
            describe_tokens: 560,
        }
    }
}

impl Config {
    fn call_timeout(&self) -> Duration {
        Duration::try_from_secs_f64(self.call_timeout_s).unwrap_or(Duration::from_secs(30))
    }

    fn turn(&self) -> Duration {
        Duration::try_from_secs_f64(self.turn_s).unwrap_or(Duration::from_secs(20))
    }

    fn task_look(&self) -> Duration {
        Duration::from_millis(self.task_look_ms.max(1))
    }

    fn task_suspended(&self) -> Duration {
        Duration::from_millis(self.task_suspended_ms.max(1))
    }

    fn task_stop(&self) -> Duration {
        Duration::try_from_secs_f64(self.task_stop_s).unwrap_or(Duration::from_secs(5))
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
    /// Whether a round that sleeps, or waits for a task, longer than its process is kept is waited for here; otherwise somebody
    /// resumes it when the time has come. Default true.
    fn waits_out_sleep(&self) -> bool {
        true
    }
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

/// All toolkits, as long as the registry's stay as they are.
struct Shared {
    of_registry: Arc<Vec<Declaration>>,
    all: Arc<Vec<Declaration>>,
    /// What the last scope that was asked for leaves of them.
    narrowed: Option<(Scope, Arc<Vec<Declaration>>)>,
}

/// What all rounds share: the toolkits, the policy, the secrets.
pub struct Gate {
    registry: Arc<Registry>,
    config: Config,
    /// The one of the configuration, until somebody chooses another profile.
    policy: RwLock<Arc<Policy>>,
    secrets: Secrets,
    analysers: risk::Chain,
    memory: Memory,
    live: Arc<Live>,
    hooks: hooks::Hooks,
    limits: limits::Limits,
    locks: locks::Locks,
    /// All toolkits, and the registry's of which they were made.
    shared: Mutex<Option<Shared>>,
    /// Where what was learnt of results is kept.
    learnt: Option<PathBuf>,
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
    /// A gate before `registry`, which remembers nothing that people say.
    pub fn new(registry: Arc<Registry>, config: Config, secrets: Secrets) -> Self {
        let hooks = hooks::Hooks::new(config.hooks.clone(), secrets.clone());
        let limits = limits::Limits::new(config.limits.clone(), config.turn());
        let locks = locks::Locks::new(config.locks.clone(), config.turn(), config.lock_folder.clone());
        let analysers = risk::Chain::new(&config.analysers, &secrets);
        let (live, memory) = (Arc::default(), Memory::default());
        let (shared, learnt) = (Mutex::default(), None);
        let (views, cards) = (Views::default(), false);
        let policy = RwLock::new(Arc::new(config.policy.clone()));
        Self {
            registry,
            config,
            policy,
            secrets,
            analysers,
            memory,
            live,
            hooks,
            limits,
            locks,
            shared,
            learnt,
            views,
            cards,
        }
    }

    /// The same gate, which remembers there what people say `always` to.
    #[must_use]
    pub fn with_memory(self, memory: Memory) -> Self {
        Self { memory, ..self }
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

    /// Bytes of a call's arguments or result that an event shows.
    fn event_bytes(&self) -> usize {
        usize::try_from(self.config.event_result_kib.saturating_mul(1_024)).unwrap_or(usize::MAX)
    }

    /// The rounds that run now.
    pub fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// All toolkits a program may call that sees everything: the system toolkit first, then the registry's.
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
        let own = std::iter::once(system::declaration().clone()).chain(self.cards.then(cards::declaration));
        let all = Arc::new(own.chain(of_registry.iter().cloned()).collect());
        *shared = Some(Shared { of_registry, all: Arc::clone(&all), narrowed: None });
        all
    }

    /// All toolkits that programs within `scope` may call; without a copy as long as the same is asked for.
    pub fn declarations_in(&self, scope: &Scope) -> Arc<Vec<Declaration>> {
        let all = self.shared_declarations();
        if *scope == Scope::default() {
            return all;
        }
        let shown = |declaration: &Declaration| match declaration.name.as_str() {
            system::NAME => Some(declaration.clone()),
            _ => scope.narrow(declaration.clone()),
        };
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let of_all = shared.as_mut().filter(|shared| Arc::ptr_eq(&shared.all, &all));
        if let Some((_, known)) =
            of_all.as_ref().and_then(|shared| shared.narrowed.as_ref()).filter(|(of, _)| of == scope)
        {
            return Arc::clone(known);
        }
        let narrowed = Arc::new(all.iter().filter_map(shown).collect());
        if let Some(shared) = of_all {
            shared.narrowed = Some((scope.clone(), Arc::clone(&narrowed)));
        }
        narrowed
    }

    /// All toolkits that programs of a session may call.
    pub fn declarations_of(&self, session: &Session) -> Arc<Vec<Declaration>> {
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
