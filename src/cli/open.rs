//! Puts the rooms together for a command: store, toolkits, gate, interpreter, model.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

pub(super) use super::hold::{Hold, hold, hold_id, process_name};
use super::more_toolkits::Service;
use super::toolkit_files::Reader;
use super::{Failure, more_toolkits, secrets, shipped_toolkits};
pub(super) use crate::agent::tell_isolation;
use crate::agent::{Agent, AgentError, PromptParts};
use crate::config::{Config, StorePlace, folders, live_folders};
use crate::gate::{Gate, Memory, SYSTEM_TOOLKIT, Secrets};
use crate::interpreter::{Interpreter, packages};
use crate::live::{self, Listener};
use crate::llm;
use crate::prompt::{self, TEMPLATE_NAMES, Templates};
use crate::registry::{Origin, Registry, Scope};
use crate::session::Session;
use crate::store::Store;
use crate::store::redis::Redis;
use crate::store::sqlite::Sqlite;
use crate::store::upkeep::Upkeep;

/// The tenant of everything that the command line stores.
pub(super) const TENANT: &str = "local";

/// Who is at the terminal.
pub(super) fn user() -> String {
    std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "user".to_owned())
}

pub(super) async fn store(config: &Config) -> Result<Arc<dyn Store>, Failure> {
    Ok(upkeep(config).await?)
}

/// The store with what its owner may do with all of it.
pub(super) async fn upkeep(config: &Config) -> Result<Arc<dyn Upkeep>, Failure> {
    Ok(match config.store_place()? {
        StorePlace::File(file) => Arc::new(Sqlite::open(&file)?),
        StorePlace::Redis(address, settings) => Arc::new(Redis::open(&address, settings).await?),
    })
}

/// The registry with the shipped toolkits and those that were added.
pub(super) async fn registry(config: &Config) -> Result<Arc<Registry>, Failure> {
    let registry = shipped(config)?;
    registry.set_origin_enabled(Origin::Declared, config.toolkits.declared);
    // Nobody is asked for what no program sees.
    if !config.toolkits.dynamic {
        return Ok(Arc::new(registry));
    }
    let reader = Reader::new(Service::all(config, &taken_names(&registry))?, more_toolkits::server_settings(config));
    let limits = config.toolkits.limits();
    registry.set_sources(config.toolkits.manifests.clone(), reader.sources(), Arc::new(reader), limits);
    // One that cannot be used leaves the others alone.
    for problem in registry.look().await.problems {
        note!("warning: {problem}");
    }
    let names = registry.names();
    for name in config.toolkits.disabled.iter().filter(|name| names.iter().all(|(there, _)| there != *name)) {
        // It may come later, as a file.
        note!(
            "warning: `toolkits.disabled` names `{name}`, which is no toolkit now\nhint: `fimble toolkits list` shows the names"
        );
    }
    Ok(Arc::new(registry))
}

/// The registry with the shipped toolkits.
fn shipped(config: &Config) -> Result<Registry, Failure> {
    let registry = Registry::new();
    let here = std::env::current_dir()?;
    let roots: Vec<PathBuf> = config.toolkits.roots.iter().map(|root| here.join(root)).collect();
    let registered = registry
        .register(Arc::new(fimble_git::Git::with_roots(roots.clone())))
        .and_then(|()| registry.register(Arc::new(fimble_host::Host::new())))
        .and_then(|()| registry.register(Arc::new(fimble_files::Files::new(roots, fimble_files::Limits::default()))));
    registered.map_err(|error| Failure::usage(error.to_string()).with_hint(error.hint()))?;
    let own = super::OWN_TOOLKITS.get().into_iter().flatten().cloned();
    for toolkit in shipped_toolkits::load(config, &here)?.into_iter().chain(own) {
        registry.register(toolkit).map_err(|error| Failure::usage(error.to_string()).with_hint(error.hint()))?;
    }
    Ok(registry)
}

/// The names that other toolkits cannot have.
pub(super) fn shipped_names(config: &Config) -> Result<Vec<String>, Failure> {
    Ok(taken_names(&shipped(config)?))
}

fn taken_names(registry: &Registry) -> Vec<String> {
    let own = std::iter::once(SYSTEM_TOOLKIT.to_owned());
    own.chain(registry.names().into_iter().map(|(name, _)| name)).collect()
}

pub(super) async fn gate(config: &Config) -> Result<Arc<Gate>, Failure> {
    // First, because toolkits take theirs from them.
    let secrets = secrets::all(config).await?;
    gate_before(config, registry(config).await?, secrets)
}

/// The gate before other toolkits than the configuration's.
pub(super) fn gate_before(config: &Config, registry: Arc<Registry>, secrets: &Secrets) -> Result<Arc<Gate>, Failure> {
    let store = match config.store_place()? {
        StorePlace::Redis(address, _) => address.secrets().to_vec(),
        StorePlace::File(_) => Vec::new(),
    };
    // Those of servers, documents and agents are known since they were read.
    secrets.add(store.into_iter().chain(config.toolkits.secrets()));
    let learnt = folders().map(|folders| folders.cache.join("results.json"));
    let gate = Gate::new(registry, config.gate.clone(), secrets.clone()).with_views(config.toolkits.views());
    let gate = gate.with_memory(memory()).with_learnt(learnt);
    Ok(Arc::new(if config.toolkits.card.is_some() { gate.with_cards() } else { gate }))
}

/// Where it is kept what this user said `always` to.
pub(super) fn memory() -> Memory {
    folders().map(|folders| Memory::in_file(folders.data.join("approvals.json"))).unwrap_or_default()
}

/// The session to go on with: the named one, the last one, or a new one.
pub(super) async fn session(config: &Config, store: Arc<dyn Store>, resume: Option<&str>) -> Result<Session, Failure> {
    let user = user();
    let session = match resume {
        None => Session::create(store, TENANT, &user, "").await?,
        Some("") => match Session::latest(Arc::clone(&store), TENANT, &user).await? {
            Some(session) => session,
            None => Session::create(store, TENANT, &user, "").await?,
        },
        Some(id) => Session::open(store, id, TENANT, &user).await?,
    };
    Ok(session.with_config(config.session).with_view(config.toolkits.session.clone()))
}

/// What of the toolkits a session sees that is not open yet.
pub(super) fn scope_of_new(config: &Config, gate: &Gate) -> Scope {
    gate.scope_with(TENANT, config.toolkits.session.clone())
}

/// Lets `fimble ps` and `fimble kill` reach the rounds behind this gate, as long as the answer lives. Rounds run all the
/// same where they cannot be reached.
pub(super) fn listen(gate: &Gate) -> Option<Listener> {
    let folder = live_folders().into_iter().next()?;
    let listening = live::listen(&folder, Arc::clone(gate.live()));
    listening.map_err(|error| tracing::warn!("`fimble ps` will not see this process: {error}")).ok()
}

/// Cancels `cancel` at the next Ctrl-C, and when the process is told to end or its terminal is closed: what was done
/// until then is stored. Abort the task to stop listening.
pub(super) fn cancel_on_interrupt(cancel: &CancellationToken) -> tokio::task::JoinHandle<()> {
    let cancel = cancel.clone();
    tokio::spawn(async move {
        let (Ok(mut terminate), Ok(mut hangup)) = (signal(SignalKind::terminate()), signal(SignalKind::hangup()))
        else {
            return;
        };
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
        cancel.cancel();
    })
}

/// Being told to end, and the terminal being closed, from when this is made.
pub(super) struct Ends(Option<(Signal, Signal)>);

impl Ends {
    pub(super) fn new() -> Self {
        Self(signal(SignalKind::terminate()).ok().zip(signal(SignalKind::hangup()).ok()))
    }

    /// Waits for either; the exit code that says so.
    pub(super) async fn told(&mut self) -> u8 {
        let Some((terminate, hangup)) = &mut self.0 else { return std::future::pending().await };
        tokio::select! {
            _ = terminate.recv() => 143,
            _ = hangup.recv() => 129,
        }
    }
}

/// What requests are made of: the toolkits, and the templates with the user's own copies in their place.
pub(super) async fn prompt_parts(config: &Config) -> Result<PromptParts, Failure> {
    let mut overrides = BTreeMap::new();
    let folder = folders().map(|folders| folders.config.join("prompts")).unwrap_or_default();
    for name in TEMPLATE_NAMES {
        let file = folder.join(name);
        match std::fs::read_to_string(&file) {
            Ok(text) => drop(overrides.insert(name.to_owned(), text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::usage(format!("cannot read `{}`: {error}", file.display()))),
        }
    }
    let prepared = packages::find(&config.interpreter)?;
    let requested = prepared.iter().flat_map(|prepared| &prepared.packages).filter(|package| package.requested);
    let packages = requested.map(|package| format!("{} {}", package.name, package.version)).collect();
    Ok(PromptParts {
        gate: gate(config).await?,
        program: config.program.clone(),
        prompt: prompt::Config { packages, ..config.prompt.clone() },
        templates: Templates::new(&overrides).map_err(AgentError::Template)?,
    })
}

/// The agent of the configuration. Loading the local model is shown on standard error.
pub(super) async fn agent(config: &Config) -> Result<Agent, Failure> {
    let parts = prompt_parts(config).await?;
    let interpreter = Arc::new(Interpreter::start(&config.interpreter).await?);
    if !config.llm.names_endpoint() {
        llm::local::pull(&config.llm.local, &mut llm::local::on_stderr()).await?;
    }
    let model = llm::connect(&config.llm).await?;
    Ok(Agent { model, interpreter, config: config.agent.clone(), parts, limits: config.interpreter.limits.clone() })
}
