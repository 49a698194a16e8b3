//! One server, kept running: started at the first call, again after it ended, and asked for its tools again when they
//! change. It does not know what a toolkit is asked.

use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::cache::{Cache, Remembered};
use crate::changes::Changes;
use crate::connection::{Connection, NoList};
use crate::opening::{self, Way};
use crate::tools::Tools;
use crate::{Error, Server, Settings};

/// A server that is started when it is needed.
pub(crate) struct Running {
    pub(crate) server: Server,
    pub(crate) settings: Settings,
    pub(crate) tools: Tools,
    cache: Cache,
    /// Held while the server is started: everybody waits for the one start.
    state: Mutex<State>,
    /// What goes on behind the calls.
    tasks: std::sync::Mutex<Vec<AbortHandle>>,
}

#[derive(Default)]
struct State {
    /// `None` from the moment that the server is known to be gone until it runs again.
    connection: Option<Arc<Connection>>,
    way: Option<Way>,
    was_started: bool,
    /// Failures since it last did something.
    failures: u32,
    /// Until when it is left alone.
    rest: Option<Instant>,
}

/// Why there is no connection.
pub(crate) enum NotRunning {
    /// It was tried, and failed.
    Failed(Error),
    /// It failed a moment ago, and is left alone for this long.
    Resting(Duration),
}

impl Running {
    /// A server that does not run yet. `known` is what is remembered of it.
    pub(crate) fn new(server: Server, settings: Settings, cache: Cache, known: Option<Remembered>) -> Self {
        let tools = Tools::new(&server);
        let mut state = State::default();
        if let Some(known) = known {
            state.way = Some(known.way);
            tools.set(&server, &settings.limits, known.about.as_deref(), &known.tools);
        }
        Self { server, settings, tools, cache, state: Mutex::new(state), tasks: Default::default() }
    }

    /// The running server, started if need be.
    pub(crate) async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, NotRunning> {
        self.open(true).await
    }

    /// The running server. If it is started now, it is asked for its tools behind that if so wished.
    async fn open(self: &Arc<Self>, relist: bool) -> Result<Arc<Connection>, NotRunning> {
        let mut state = self.state.lock().await;
        if let Some(connection) = state.connection.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(Arc::clone(connection));
        }
        if let Some(rest) = state.rest.and_then(|rest| rest.checked_duration_since(Instant::now())) {
            return Err(NotRunning::Resting(rest));
        }
        // The old one goes first: it may hold a port or a file that the new one needs.
        if let Some(old) = state.connection.take() {
            old.kill();
        }
        if state.was_started {
            tracing::warn!(server = self.server.name, "an MCP server is started again");
        }
        match opening::open(&self.server, &self.settings, state.way).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                state.way = Some(connection.way);
                state.was_started = true;
                state.connection = Some(Arc::clone(&connection));
                let (running, followed) = (Arc::downgrade(self), Arc::downgrade(&connection));
                self.keep(tokio::spawn(follow(running, followed, connection.changes(), relist)).abort_handle());
                Ok(connection)
            }
            Err(error) => {
                self.failed(&mut state);
                Err(NotRunning::Failed(error))
            }
        }
    }

    /// Starts the server and asks for its tools.
    pub(crate) async fn list(self: &Arc<Self>) -> Result<(), NotRunning> {
        let connection = self.open(false).await?;
        let listed = self.relist(&connection).await;
        listed.map_err(|problem| NotRunning::Failed(problem.error(&self.server)))
    }

    /// Keeps a task until [`stop`](Self::stop).
    pub(crate) fn keep(&self, task: AbortHandle) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.retain(|task| !task.is_finished());
        tasks.push(task);
    }

    /// Ends what goes on behind the calls. A task that has the server in its hands would keep it alive.
    pub(crate) fn stop(&self) {
        for task in self.tasks.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            task.abort();
        }
    }

    /// Asks for the tools again.
    async fn relist(&self, connection: &Connection) -> Result<(), NoList> {
        let limits = &self.settings.limits;
        let tools = connection.tools(&self.server, limits).await?;
        let about = connection.about().map(|text| limits.text(&text)).filter(|text| !text.is_empty());
        self.tools.set(&self.server, limits, about.as_deref(), &tools);
        self.cache.write(connection.way, about.as_deref(), &tools);
        Ok(())
    }

    /// The server did what it was asked. Where another one is just being started, nothing is to be said of this one.
    pub(crate) fn did_well(&self) {
        if let Ok(mut state) = self.state.try_lock() {
            (state.failures, state.rest) = (0, None);
        }
    }

    /// Forgets a connection that failed, unless another call has put a new one in its place.
    pub(crate) async fn forget(&self, connection: &Arc<Connection>) {
        let mut state = self.state.lock().await;
        if state.connection.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection)) {
            state.connection = None;
            // The first time may be an accident: the next call starts it at once.
            if state.failures > 0 {
                self.failed(&mut state);
            } else {
                state.failures = 1;
            }
        }
    }

    fn failed(&self, state: &mut State) {
        let doubled = self.settings.limits.restart.saturating_mul(1 << state.failures.min(10));
        state.failures = state.failures.saturating_add(1);
        state.rest = Some(Instant::now() + doubled.min(LONGEST_REST));
    }
}

/// The longest time for which a server that fails is left alone.
const LONGEST_REST: Duration = Duration::from_secs(60);

/// Servers tell the same change several times in a row.
const QUIET: Duration = Duration::from_millis(50);

/// Asks a server for its tools whenever they change, as long as it runs; at once if they are not known to be the same.
async fn follow(running: Weak<Running>, connection: Weak<Connection>, mut changes: Changes, mut relist: bool) {
    loop {
        if relist {
            let (Some(running), Some(connection)) = (running.upgrade(), connection.upgrade()) else { return };
            if let Err(problem) = running.relist(&connection).await {
                tracing::warn!("{}; its tools stay as they were", problem.error(&running.server));
            }
        }
        // The server must not be kept by who waits for its changes.
        if changes.next().await.is_err() {
            return;
        }
        relist = true;
        tokio::time::sleep(QUIET).await;
    }
}
