//! Puts the rooms together for a command: store, toolkits, gate, interpreter, model.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::{Failure, more_toolkits, service_toolkits, shipped_toolkits, toolkit_files};
use crate::agent::{Agent, AgentError, PromptParts};
use crate::config::{Config, StorePlace, folders, live_folders};
use crate::event::{Custom, EventKind};
use crate::gate::{Gate, SYSTEM_TOOLKIT, Secrets};
use crate::interpreter::{Interpreter, packages};
use crate::live::{self, Listener};
use crate::llm;
use crate::prompt::{self, TEMPLATE_NAMES, Templates};
use crate::registry::{Limits, Origin, Registry, Scope};
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
    registry.set_folders(config.toolkits.manifests.clone(), Arc::new(toolkit_files::Reader), Limits::default());
    for problem in registry.look().await.problems {
        note!("warning: {problem}");
    }
    for toolkit in more_toolkits::load(config, &taken_names(&registry)).await? {
        let registered = registry.register_from(Origin::Dynamic, toolkit);
        registered.map_err(|error| Failure::usage(error.to_string()).with_hint(error.hint()))?;
    }
    registry.set_origin_enabled(Origin::Declared, config.toolkits.declared);
    registry.set_origin_enabled(Origin::Dynamic, config.toolkits.dynamic);
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
    gate_before(config, registry(config).await?)
}

/// The gate before other toolkits than the configuration's.
pub(super) fn gate_before(config: &Config, registry: Arc<Registry>) -> Result<Arc<Gate>, Failure> {
    // Keys that lie in the environment for other programs must not be seen either.
    let is_key = |name: &str| name.ends_with("_API_KEY") || name.ends_with("_TOKEN") || name.ends_with("_PASSWORD");
    let environment = std::env::vars().filter(|(name, _)| is_key(name)).map(|(_, value)| value);
    let own = config.llm.api_key.iter().map(|key| key.reveal().to_owned());
    let store = match config.store_place()? {
        StorePlace::Redis(address, _) => address.secrets().to_vec(),
        StorePlace::File(_) => Vec::new(),
    };
    let servers = config.toolkits.mcp.iter().filter_map(|file| fimble_mcp::read(file).ok());
    let servers = servers.flat_map(|read| read.servers).flat_map(|server| server.secrets());
    let toolkits = config.toolkits.secrets().into_iter().chain(service_toolkits::secrets(config));
    let secrets = Secrets::new(own.chain(store).chain(toolkits).chain(environment).chain(servers));
    let gate = Gate::new(registry, config.gate.clone(), secrets).with_views(config.toolkits.views());
    Ok(Arc::new(if config.toolkits.card.is_some() { gate.with_cards() } else { gate }))
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

/// Says, as an event of the session, which layers of the jail are active.
pub(super) fn tell_isolation(session: &Session, interpreter: &Interpreter) {
    let isolation = interpreter.isolation();
    session.emitter().emit(EventKind::Custom(Custom::Isolation {
        level: isolation.level.as_str().to_owned(),
        layers: isolation.layers.clone(),
        missing: isolation.missing.clone(),
        warning: isolation.warning().map(str::to_owned),
    }));
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

/// Waits until the process is told to end or its terminal is closed; the exit code that says so.
pub(super) async fn told_to_end() -> u8 {
    let (Ok(mut terminate), Ok(mut hangup)) = (signal(SignalKind::terminate()), signal(SignalKind::hangup())) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => 143,
        _ = hangup.recv() => 129,
    }
}

/// A session that this process alone works in, as long as this lives. When the process dies, a file's lock goes at once, a
/// lease in Redis within [`LEASE`].
pub(super) enum Hold {
    /// Among the processes of this machine.
    File { _lock: File, path: PathBuf },
    /// Among all that use the store.
    Lease { store: Arc<dyn Store>, session: String, owner: String, _renewing: AbortOnDropHandle<()> },
}

impl Hold {
    /// Leaves nothing of a session that is gone: whoever still waits for it finds that out.
    pub(super) fn of_removed(self) {
        if let Hold::File { path, .. } = &self {
            // A file that stays is no harm.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let Hold::Lease { store, session, owner, .. } = self else { return };
        // The next command may come at once.
        let released = tokio::task::block_in_place(|| Handle::current().block_on(store.release_lease(session, owner)));
        if let Err(error) = released {
            tracing::warn!("{error}");
        }
    }
}

/// How long a session in Redis belongs to a process that is not heard of.
const LEASE: Duration = Duration::from_secs(15);

/// Takes a session for this process.
///
/// # Errors
/// Another process works in it.
pub(super) async fn hold(config: &Config, session: &Session) -> Result<Hold, Failure> {
    hold_id(config, session.store(), &session.record().id).await
}

/// Takes the session of that id for this process, as [`hold`] does.
pub(super) async fn hold_id(config: &Config, store: Arc<dyn Store>, id: &str) -> Result<Hold, Failure> {
    let held = || {
        Failure::new(5, "another fimble is at work in this session")
            .with_hint("wait for it, or start a new session; `fimble sessions follow` shows what it does")
    };
    let id = id.to_owned();
    if let StorePlace::File(_) = config.store_place()? {
        let folder = config.locks_folder()?;
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(&id);
        let file = File::create(&path)?;
        return match file.try_lock() {
            Ok(()) => Ok(Hold::File { _lock: file, path }),
            Err(TryLockError::WouldBlock) => Err(held()),
            Err(TryLockError::Error(error)) => Err(error.into()),
        };
    }
    let owner = process_name();
    if !store.take_lease(&id, &owner, LEASE).await? {
        return Err(held());
    }
    let (renewed, name, of) = (Arc::clone(&store), owner.clone(), id.clone());
    let renewing = tokio::spawn(async move {
        loop {
            tokio::time::sleep(LEASE / 3).await;
            // Writes say it when the session is lost.
            if let Err(error) = renewed.take_lease(&of, &name, LEASE).await {
                tracing::warn!("{error}");
            }
        }
    });
    Ok(Hold::Lease { store, session: id, owner, _renewing: AbortOnDropHandle::new(renewing) })
}

/// A name for this process that no other has.
pub(super) fn process_name() -> String {
    let host = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok()).unwrap_or_default();
    format!("{host}-{}-{}", std::process::id(), uuid::Uuid::now_v7().simple())
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
