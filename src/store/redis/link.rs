//! The way to the server: one connection that all clones share, made again when it is lost. A request is asked again until
//! its deadline; it carries a mark where that would otherwise matter. It does not know what is asked.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ::redis::aio::{ConnectionLike, MultiplexedConnection};
use ::redis::cluster_async::ClusterConnection;
use ::redis::cluster_routing::{Route, RoutingInfo, SingleNodeRoutingInfo, SlotAddr};
use ::redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, Pipeline, RedisError, RedisResult, ServerErrorKind, Value, cmd,
    from_redis_value, make_extension_error, pipe,
};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout_at};

use super::Settings;
use super::address::{Address, Connector, unreachable};
use super::scripts::Script;
use crate::store::StoreError;
use crate::store::packing::corrupt;

/// How long one connection attempt may take. 2 s.
pub const CONNECT: Duration = Duration::from_secs(2);
/// How long one answer may take before the connection is held for lost, and 1 s more for every 4 MiB that are sent. 5 s.
pub const ATTEMPT: Duration = Duration::from_secs(5);
/// How long opening goes on trying. 3 s.
pub const OPEN: Duration = Duration::from_secs(3);
/// How long a request goes on being tried after another one was given up, until the server answers again. 1 s.
const GIVEN_UP: Duration = Duration::from_secs(1);
/// How long a request goes on being tried, at most. Ten minutes.
const LONGEST_PATIENCE: Duration = Duration::from_mins(10);

/// The pause before the second attempt; doubled for each further one, up to [`LONGEST_PAUSE`]. 20 ms.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The longest pause between two attempts. 500 ms.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

const DOWN: &str = "start the server, or name another store with `store = …`; `fimble doctor` tries it";
const DENIED: &str = "correct user and password in `store = …`";

/// The way to one store.
pub struct Link {
    address: Address,
    connector: Mutex<Connector>,
    current: Mutex<Current>,
    patience: Duration,
    /// How many replicas must have a write before it is answered, and how long one attempt waits for them.
    replicas: (u32, Duration),
    requests: AtomicU64,
    /// Whether the last request was given up.
    given_up: AtomicBool,
}

/// The connection, and how many there were before.
struct Current {
    generation: u64,
    connection: Option<Connection>,
}

#[derive(Clone)]
enum Connection {
    Server(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// Whom a request is for.
#[derive(Clone, Copy)]
enum Way<'a> {
    /// Whoever has its keys.
    Keys,
    /// The primary that has a slot.
    Slot(u16),
    /// The primary that has the key, and so many of its replicas as [`Settings::replicas`] says.
    Replicas(&'a str),
}

/// What an error means for the request.
enum Verdict {
    /// The connection is of no more use; the server may have acted.
    Lost,
    /// The server cannot do it now.
    NotYet,
    /// Nothing will change by asking again.
    Final(StoreError),
}

impl Link {
    /// The way to an address; nothing is connected yet. Scripts and requests that name no patience have that of the settings.
    ///
    /// # Errors
    /// `Unreachable` if the settings contradict each other.
    pub fn new(address: Address, settings: &Settings) -> Result<Self, StoreError> {
        Ok(Self {
            connector: Mutex::new(address.connector()?),
            address,
            current: Mutex::new(Current { generation: 0, connection: None }),
            patience: settings.patience,
            replicas: (settings.replicas, settings.replicas_wait),
            requests: AtomicU64::new(0),
            given_up: AtomicBool::new(false),
        })
    }

    /// How many requests were sent so far; each is one network round trip.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// How long a request of so many bytes goes on being tried.
    pub fn patience_for(&self, size: usize) -> Duration {
        LONGEST_PATIENCE.min(self.patience + transfer(size))
    }

    /// Asks one command until it is answered, for as long as `patience`.
    ///
    /// # Errors
    /// `Unreachable` at the end of the patience; then the server may have done it, now or later.
    pub async fn command(&self, command: &Cmd, patience: Duration) -> Result<Value, StoreError> {
        self.ask(command, || None, patience, Way::Keys).await
    }

    /// Asks one command of the primary that has a slot; where there is only one server, of that.
    ///
    /// # Errors
    /// As of [`command`](Self::command).
    pub async fn request_of(&self, slot: u16, command: &Cmd) -> Result<Value, StoreError> {
        self.ask(command, || None, self.patience, Way::Slot(slot)).await
    }

    /// True for several nodes that share the keys.
    pub fn is_cluster(&self) -> bool {
        self.address.is_cluster()
    }

    /// Asks one command with the patience of this link.
    ///
    /// # Errors
    /// As of [`command`](Self::command).
    pub async fn request(&self, command: &Cmd) -> Result<Value, StoreError> {
        self.command(command, self.patience).await
    }

    /// Runs a script in the slot of its keys, by its hash; with its text where the server does not know it.
    ///
    /// # Errors
    /// As of [`command`](Self::command).
    pub async fn script(&self, script: &Script, keys: &[String], arguments: &[Vec<u8>]) -> Result<Value, StoreError> {
        self.script_by(Way::Keys, script, keys, arguments).await
    }

    /// The same for a script that writes: what it wrote has reached as many replicas as the settings say. It must write when it is
    /// asked again, too: that is what is waited for.
    ///
    /// # Errors
    /// As of [`command`](Self::command); if replicas are missing, the server has it.
    pub async fn write(&self, script: &Script, keys: &[String], arguments: &[Vec<u8>]) -> Result<Value, StoreError> {
        let way = match keys.first() {
            Some(key) if self.replicas.0 > 0 => Way::Replicas(key),
            _ => Way::Keys,
        };
        self.script_by(way, script, keys, arguments).await
    }

    async fn script_by(
        &self,
        way: Way<'_>,
        script: &Script,
        keys: &[String],
        arguments: &[Vec<u8>],
    ) -> Result<Value, StoreError> {
        let command = |name: &str, script: &str| {
            let mut command = cmd(name);
            command.arg(script).arg(keys.len()).arg(keys).arg(arguments);
            command
        };
        self.ask(&command("EVALSHA", &script.hash), || Some(command("EVAL", &script.code)), self.patience, way).await
    }

    async fn ask(
        &self,
        command: &Cmd,
        with_text: impl Fn() -> Option<Cmd>,
        patience: Duration,
        way: Way<'_>,
    ) -> Result<Value, StoreError> {
        let size = command.args_iter().map(argument_size).sum::<usize>();
        let wait = if matches!(way, Way::Replicas(_)) { self.replicas.1 } else { Duration::ZERO };
        let more = transfer(size) + wait;
        let patience = if self.given_up.load(Ordering::Relaxed) { patience.min(GIVEN_UP) } else { patience };
        let deadline = Instant::now() + LONGEST_PATIENCE.min(patience + more);
        let (mut pause, mut full, mut said) = (FIRST_PAUSE, None, None);
        loop {
            let attempt = deadline.min(Instant::now() + ATTEMPT + more);
            let (generation, answer) = self.attempt(full.as_ref().unwrap_or(command), way, attempt).await;
            let error = match answer {
                Ok(value) => {
                    self.given_up.store(false, Ordering::Relaxed);
                    return Ok(value);
                }
                Err(error) => error,
            };
            if full.is_none() && error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) {
                full = with_text();
                if full.is_some() {
                    continue;
                }
            }
            match self.verdict(&error) {
                Verdict::Final(error) => return Err(error),
                Verdict::Lost => self.forget(generation).await,
                Verdict::NotYet => {}
            }
            // No answer says less than the one before.
            let error = if error.is_timeout() { said.take().unwrap_or(error) } else { error };
            if Instant::now() + pause + wait >= deadline {
                self.given_up.store(true, Ordering::Relaxed);
                return Err(unreachable(&self.address, error, DOWN));
            }
            tracing::debug!("`{}`: {error}; asking again in {pause:?}", self.address);
            said = Some(error);
            sleep(pause).await;
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }

    /// One attempt, and which connection it used.
    async fn attempt(&self, command: &Cmd, way: Way<'_>, deadline: Instant) -> (u64, RedisResult<Value>) {
        let (generation, mut connection) = match timeout_at(deadline, self.connected()).await {
            Ok((generation, Ok(connection))) => (generation, connection),
            Ok((generation, Err(error))) => return (generation, Err(error)),
            Err(_) => return (0, Err(timed_out())),
        };
        self.requests.fetch_add(1, Ordering::Relaxed);
        let answer = async {
            match (&mut connection, way) {
                (Connection::Server(connection), Way::Replicas(_)) => {
                    let answers = connection.req_packed_commands(&self.replicated(command), 0, 2).await?;
                    self.has_reached(answers)
                }
                (Connection::Cluster(connection), Way::Replicas(key)) => {
                    let node = SingleNodeRoutingInfo::SpecificNode(Route::with_key(key, SlotAddr::Master));
                    let answers = connection.route_pipeline(self.replicated(command), 0, 2, node).await?;
                    self.has_reached(answers)
                }
                (Connection::Server(connection), _) => connection.req_packed_command(command).await,
                (Connection::Cluster(connection), Way::Keys) => connection.req_packed_command(command).await,
                (Connection::Cluster(connection), Way::Slot(slot)) => {
                    let node = SingleNodeRoutingInfo::SpecificNode(Route::new(slot, SlotAddr::Master));
                    connection.route_command(command.clone(), RoutingInfo::SingleNode(node)).await
                }
            }
        };
        let answer = timeout_at(deadline, answer).await;
        (generation, answer.unwrap_or_else(|_| Err(timed_out())).and_then(Value::extract_error))
    }

    /// A write, and the wait for its replicas in the same round trip.
    fn replicated(&self, command: &Cmd) -> Pipeline {
        let (replicas, wait) = self.replicas;
        let mut both = pipe();
        both.add_command(command.clone());
        both.cmd("WAIT").arg(replicas).arg(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        both
    }

    /// The write's answer, if it has reached its replicas.
    fn has_reached(&self, answers: Vec<Value>) -> RedisResult<Value> {
        let mut answers = answers.into_iter().map(Value::extract_error);
        let missing = || make_extension_error("NOREPLICAS".to_owned(), Some("the server has not answered".to_owned()));
        let answer = answers.next().ok_or_else(missing)??;
        let reached: u32 = from_redis_value(answers.next().ok_or_else(missing)??)?;
        if reached < self.replicas.0 {
            let told = format!("the write has reached {reached} of {} replicas (`store_replicas`)", self.replicas.0);
            return Err(make_extension_error("NOREPLICAS".to_owned(), Some(told)));
        }
        Ok(answer)
    }

    /// The connection there is, or a new one: whoever comes meanwhile waits for the same.
    async fn connected(&self) -> (u64, RedisResult<Connection>) {
        let mut current = self.current.lock().await;
        if let Some(connection) = &current.connection {
            return (current.generation, Ok(connection.clone()));
        }
        current.generation += 1;
        let connected = self.connect().await;
        if let Ok(connection) = &connected {
            current.connection = Some(connection.clone());
        }
        (current.generation, connected)
    }

    async fn connect(&self) -> RedisResult<Connection> {
        let config = || AsyncConnectionConfig::new().set_connection_timeout(Some(CONNECT)).set_response_timeout(None);
        match &mut *self.connector.lock().await {
            Connector::Server(client) => {
                client.get_multiplexed_async_connection_with_config(&config()).await.map(Connection::Server)
            }
            Connector::Cluster(client) => client.get_async_connection().await.map(Connection::Cluster),
            Connector::Sentinels(client) => {
                client.get_async_connection_with_config(&config()).await.map(Connection::Server)
            }
        }
    }

    /// Drops a connection unless it is already another.
    async fn forget(&self, generation: u64) {
        let mut current = self.current.lock().await;
        if current.generation == generation {
            current.connection = None;
        }
    }

    fn verdict(&self, error: &RedisError) -> Verdict {
        use ServerErrorKind::{BusyLoading, ClusterDown, MasterDown, NoPerm, ReadOnly, TryAgain};
        let refused = |hint: &str| Verdict::Final(unreachable(&self.address, error, hint));
        match (error.kind(), error.code()) {
            (ErrorKind::AuthenticationFailed | ErrorKind::Server(NoPerm), _) | (_, Some("NOAUTH" | "WRONGPASS")) => {
                refused(DENIED)
            }
            // A cluster says only that no node was reached, and why in the detail.
            (ErrorKind::Io, _) if error.detail().is_some_and(|detail| detail.contains("uthentication")) => {
                refused(DENIED)
            }
            (ErrorKind::Io, _) if is_no_trust(error) => refused("check the server's certificate and its name"),
            (ErrorKind::InvalidClientConfig, _) => refused("correct `store = …`"),
            (ErrorKind::Io | ErrorKind::Server(ReadOnly) | ErrorKind::ClusterConnectionNotFound, _)
            | (ErrorKind::MasterNameNotFoundBySentinel | ErrorKind::Parse, _) => Verdict::Lost,
            (ErrorKind::Server(BusyLoading | TryAgain | ClusterDown | MasterDown), _)
            | (_, Some("BUSY" | "UNBLOCKED" | "NOREPLICAS")) => Verdict::NotYet,
            (ErrorKind::Server(ServerErrorKind::Moved | ServerErrorKind::Ask), _) if self.address.is_cluster() => {
                Verdict::NotYet
            }
            (ErrorKind::Server(ServerErrorKind::Moved | ServerErrorKind::Ask), _) => {
                refused("the server is a node of a cluster: write `redis+cluster://host:port,…`")
            }
            _ if error.to_string().contains("cluster support disabled") => {
                refused("the server is no cluster: write `redis://host:port`")
            }
            (_, Some("WRONGTYPE")) => Verdict::Final(corrupt("session", error)),
            (_, Some("OOM")) => Verdict::Final(StoreError::Failed("the server's memory is full".into())),
            _ => Verdict::Final(StoreError::Failed(error.to_string())),
        }
    }
}

/// How long so many bytes may take on their way.
fn transfer(size: usize) -> Duration {
    Duration::from_secs((size / (4 * 1024 * 1024)) as u64)
}

fn argument_size(argument: ::redis::Arg<&[u8]>) -> usize {
    match argument {
        ::redis::Arg::Simple(bytes) => bytes.len(),
        _ => 0,
    }
}

/// A certificate that is not trusted will not be trusted in a moment either. The client keeps the cause to itself, but for
/// its text.
fn is_no_trust(error: &RedisError) -> bool {
    error.to_string().contains("certificate")
}

fn timed_out() -> RedisError {
    std::io::Error::new(std::io::ErrorKind::TimedOut, "no answer in time").into()
}
