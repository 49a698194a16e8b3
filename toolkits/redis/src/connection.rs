//! One connection for one call, and the server's refusals as errors that the model reads.

use std::time::Duration;

use fimble_toolkit::{ErrorKind, ToolError};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue, IntoConnectionInfo, RedisError};

use crate::Config;

/// Characters of the server's words that are shown.
const SHOWN_CHARACTERS: usize = 1_000;

/// A server that can be connected to.
#[derive(Clone)]
pub(crate) struct Server {
    client: Client,
    address: String,
    timeout: Duration,
}

/// Without the password.
impl std::fmt::Debug for Server {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Server {
    pub(crate) fn new(config: &Config) -> Result<Self, ToolError> {
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Only fails if somebody else installed one meanwhile, which is as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        // The URL is not shown: it may hold a password.
        let wrong = |_| {
            ToolError::invalid_argument("the `url` of Redis cannot be read")
                .with_hint("write one such as redis://127.0.0.1:6379/0 or redis+unix:///run/redis.sock")
        };
        let info = config.url.as_str().into_connection_info().map_err(wrong)?;
        let address = info.addr().to_string();
        Ok(Self {
            client: Client::open(info).map_err(wrong)?,
            address,
            timeout: Duration::from_secs_f64(config.timeout_s),
        })
    }

    pub(crate) async fn connect(&self) -> Result<Connection, ToolError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.timeout))
            .set_response_timeout(Some(self.timeout));
        let connected = self.client.get_multiplexed_async_connection_with_config(&config).await;
        Ok(Connection(connected.map_err(|error| {
            let said = said(&error);
            if error.code().is_some() || error.kind() == redis::ErrorKind::AuthenticationFailed {
                ToolError::unavailable(format!("Redis at {} refuses the connection: {said}", self.address))
                    .with_hint("tell the user: user, password or database may be wrong")
            } else {
                ToolError::unavailable(format!("Redis at {} cannot be reached: {said}", self.address))
            }
        })?))
    }
}

/// An open connection.
pub(crate) struct Connection(MultiplexedConnection);

impl Connection {
    pub(crate) async fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, ToolError> {
        command.query_async(&mut self.0).await.map_err(|error| refusal(&error))
    }
}

fn refusal(error: &RedisError) -> ToolError {
    if error.is_timeout() {
        return ToolError::new(ErrorKind::Timeout, "Redis did not answer in time")
            .with_hint("ask for less; slowlog() shows what keeps it busy");
    }
    let said = said(error);
    match error.code() {
        Some("NOPERM" | "READONLY" | "NOAUTH") => {
            ToolError::new(ErrorKind::Forbidden, format!("Redis refuses it: {said}"))
        }
        Some("LOADING" | "MASTERDOWN" | "BUSY" | "CLUSTERDOWN" | "TRYAGAIN") => {
            ToolError::unavailable(format!("Redis cannot answer now: {said}"))
        }
        Some("MOVED" | "ASK") => ToolError::failed(format!("the key is on another node of the cluster: {said}"))
            .with_hint("tell the user: this toolkit speaks to one node only"),
        Some("OOM" | "MISCONF") => ToolError::failed(format!("Redis takes no writes now: {said}")),
        Some(_) => ToolError::invalid_argument(format!("Redis refuses it: {said}")),
        None if error.is_unrecoverable_error() => {
            ToolError::unavailable(format!("the connection to Redis was lost: {said}"))
        }
        None => ToolError::failed(format!("Redis answered in another form than was asked for: {said}")),
    }
}

/// The server's own sentence, if it is one.
fn said(error: &RedisError) -> String {
    let text = match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        _ => error.to_string(),
    };
    let mut characters = text.trim().chars().map(|character| if character.is_control() { ' ' } else { character });
    let mut short: String = characters.by_ref().take(SHOWN_CHARACTERS).collect();
    if characters.next().is_some() {
        short.push('…');
    }
    short
}
