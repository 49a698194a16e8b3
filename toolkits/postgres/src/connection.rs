//! One connection for one call: made, bounded in what it reads, and its statement cancelled when nobody waits for it.

use std::future::poll_fn;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use fimble_toolkit::{ErrorKind, ToolError};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinHandle;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{CancelToken, Client, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::parameter::parameters;
use crate::reading::Reading;
use crate::{Config, Executed, refusal};

/// How long it may take to connect to one host.
const CONNECT: Duration = Duration::from_secs(10);
/// Bytes that a server may send in one call; one row alone may be as large as that.
const WIRE_BYTES: u64 = 64 * 1024 * 1024;
/// How much longer than the server's own limit a statement is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// A server that can be connected to.
#[derive(Clone)]
pub(crate) struct Server {
    config: tokio_postgres::Config,
    places: Vec<Place>,
    tls: Option<MakeRustlsConnect>,
    timeout: Duration,
}

/// Without the password.
impl std::fmt::Debug for Server {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Server").field("places", &self.places).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone)]
enum Place {
    Tcp(String, u16),
    Socket(PathBuf),
}

impl Server {
    pub(crate) fn new(config: &Config) -> Result<Self, ToolError> {
        // The URL is not shown: it may hold a password.
        let mut parsed = tokio_postgres::Config::from_str(&config.url).map_err(|_| {
            ToolError::invalid_argument("the `url` of PostgreSQL cannot be read")
                .with_hint("write one such as postgres://user:password@127.0.0.1:5432/name")
        })?;
        if parsed.get_application_name().is_none() {
            parsed.application_name("fimble");
        }
        let ports = parsed.get_ports();
        let port = |index: usize| ports.get(index).or(ports.first()).copied().unwrap_or(5432);
        let places: Vec<Place> = parsed
            .get_hosts()
            .iter()
            .enumerate()
            .map(|(index, host)| match host {
                Host::Tcp(name) => Place::Tcp(name.clone(), port(index)),
                Host::Unix(folder) => Place::Socket(folder.join(format!(".s.PGSQL.{}", port(index)))),
            })
            .collect();
        if places.is_empty() {
            return Err(ToolError::invalid_argument("the `url` of PostgreSQL names no host")
                .with_hint("write one such as postgres://user:password@127.0.0.1:5432/name"));
        }
        let needs_tls = parsed.get_ssl_mode() != SslMode::Disable
            && (parsed.get_ssl_mode() != SslMode::Prefer || places.iter().any(|place| !place.is_here()));
        let tls = needs_tls.then(connector).transpose()?;
        Ok(Self { config: parsed, places, tls, timeout: Duration::from_secs_f64(config.statement_timeout_s) })
    }

    /// Does something in a transaction that cannot write, and ends it.
    pub(crate) async fn read<T>(
        &self,
        work: impl AsyncFnOnce(&Reading<'_>) -> Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        let connection = self.connect().await?;
        let result = self
            .in_time(async {
                let reading = Reading::begin(&connection.client, self.timeout).await?;
                work(&reading).await
            })
            .await?;
        connection.end(result)
    }

    /// Runs one statement outside of any transaction but its own, so that it is committed and may be any.
    pub(crate) async fn execute(&self, sql: &str, values: &[Value]) -> Result<Executed, ToolError> {
        let connection = self.connect().await?;
        let result = self
            .in_time(async {
                let client = &connection.client;
                let failed = |error| refusal::of_statement(&error);
                let setting = format!("SET statement_timeout = {}", self.timeout.as_millis());
                client.batch_execute(&setting).await.map_err(failed)?;
                let statement = client.prepare(sql).await.map_err(failed)?;
                let values = parameters(&statement, values)?;
                let rows_affected = client.execute_raw(&statement, values).await.map_err(failed)?;
                Ok(Executed { rows_affected })
            })
            .await?;
        connection.end(result)
    }

    /// The server ends a statement at its limit; this is for a server that does not.
    async fn in_time<T>(&self, work: impl Future<Output = T>) -> Result<T, ToolError> {
        let limit = self.timeout + PATIENCE;
        tokio::time::timeout(limit, work).await.map_err(|_| {
            let message = format!("PostgreSQL did not answer within {} s", limit.as_secs_f64());
            ToolError::new(ErrorKind::Timeout, message).with_hint("ask for less")
        })
    }

    async fn connect(&self) -> Result<Connection, ToolError> {
        let mut last = None;
        for place in &self.places {
            match tokio::time::timeout(CONNECT, self.connect_to(place)).await {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(error)) => last = Some(error),
                Err(_) => last = Some(refusal::unreachable(&place.shown(), "it did not answer within 10 s")),
            }
        }
        Err(last.unwrap_or_else(|| ToolError::unavailable("the `url` of PostgreSQL names no host")))
    }

    async fn connect_to(&self, place: &Place) -> Result<Connection, ToolError> {
        let stream = place.open().await.map_err(|error| refusal::unreachable(&place.shown(), &error.to_string()))?;
        let too_large = Arc::new(AtomicBool::new(false));
        let stream = Bounded { inner: stream, left: WIRE_BYTES, too_large: Arc::clone(&too_large) };
        let (client, driver) = match self.tls_for(place)? {
            None => self.start(stream, NoTls, place).await?,
            Some(tls) => self.start(stream, tls, place).await?,
        };
        let cancel = Some(Cancel { token: client.cancel_token(), server: self.clone(), place: place.clone() });
        Ok(Connection { client, driver, cancel, too_large })
    }

    async fn start<T>(&self, stream: Bounded, tls: T, place: &Place) -> Result<(Client, JoinHandle<()>), ToolError>
    where
        T: TlsConnect<Bounded>,
        T::Stream: Send + 'static,
    {
        let connected = self.config.connect_raw(stream, tls).await;
        let (client, mut connection) = connected.map_err(|error| refusal::of_connection(&place.shown(), &error))?;
        let driver = tokio::spawn(async move {
            // Notices are nobody's; an error is seen by the request that waits.
            while let Some(Ok(_)) = poll_fn(|context| connection.poll_message(context)).await {}
        });
        Ok((client, driver))
    }

    fn tls_for(
        &self,
        place: &Place,
    ) -> Result<Option<<MakeRustlsConnect as MakeTlsConnect<Bounded>>::TlsConnect>, ToolError> {
        let (Some(tls), Place::Tcp(name, _)) = (&self.tls, place) else { return Ok(None) };
        if place.is_here() && self.config.get_ssl_mode() == SslMode::Prefer {
            return Ok(None);
        }
        let made = MakeTlsConnect::<Bounded>::make_tls_connect(&mut tls.clone(), name);
        made.map(Some).map_err(|error| refusal::unreachable(&place.shown(), &error.to_string()))
    }
}

/// TLS with the system's own certificates.
fn connector() -> Result<MakeRustlsConnect, ToolError> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder =
        builder.map_err(|error| ToolError::invalid_argument(format!("there is no TLS for PostgreSQL: {error}")))?;
    Ok(MakeRustlsConnect::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

impl Place {
    async fn open(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Self::Tcp(name, port) => {
                let stream = TcpStream::connect((name.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
            Self::Socket(path) => Box::new(UnixStream::connect(path).await?),
        })
    }

    fn is_here(&self) -> bool {
        match self {
            Self::Tcp(name, _) => {
                name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
            }
            Self::Socket(_) => true,
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Tcp(name, port) => format!("{name}:{port}"),
            Self::Socket(path) => path.display().to_string(),
        }
    }
}

/// A connection that lives as long as a call.
struct Connection {
    client: Client,
    driver: JoinHandle<()>,
    too_large: Arc<AtomicBool>,
    /// Taken when the call has ended by itself.
    cancel: Option<Cancel>,
}

impl Connection {
    /// The call has ended by itself, with that.
    fn end<T>(mut self, result: Result<T, ToolError>) -> Result<T, ToolError> {
        if self.too_large.load(Ordering::Relaxed) {
            let message = format!("PostgreSQL sent more than {} MiB", WIRE_BYTES >> 20);
            return Err(ToolError::failed(message).with_hint("select fewer rows or columns, or left(column, 1000)"));
        }
        self.cancel = None;
        result
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The server takes the end of the connection as the end of the transaction, but only once the statement ended.
        self.driver.abort();
        if let Some(cancel) = self.cancel.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(tokio::time::timeout(CONNECT, cancel.run()));
        }
    }
}

struct Cancel {
    token: CancelToken,
    server: Server,
    place: Place,
}

impl Cancel {
    /// Nobody waits for the result: what fails here is ended by the statement's timeout.
    async fn run(self) {
        let Ok(inner) = self.place.open().await else { return };
        let stream = Bounded { inner, left: WIRE_BYTES, too_large: Arc::default() };
        let _ = match self.server.tls_for(&self.place) {
            Ok(Some(tls)) => self.token.cancel_query_raw(stream, tls).await,
            Ok(None) => self.token.cancel_query_raw(stream, NoTls).await,
            Err(_) => return,
        };
    }
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A stream that ends with an error when more than its limit was read.
struct Bounded {
    inner: Box<dyn Stream>,
    left: u64,
    /// Said here too, because the client is told only that its connection is closed.
    too_large: Arc<AtomicBool>,
}

impl AsyncRead for Bounded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(context, buffer);
        let count = (buffer.filled().len() - before) as u64;
        let Some(left) = self.left.checked_sub(count) else {
            self.too_large.store(true, Ordering::Relaxed);
            return Poll::Ready(Err(io::Error::other("more bytes than are allowed")));
        };
        self.left = left;
        read
    }
}

impl AsyncWrite for Bounded {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
