//! Where a Redis store is: one URL for a server, a cluster, or a server that sentinels know. It is shown without its user
//! and password.

use std::fmt;

use ::redis::cluster::{ClusterClient, ClusterClientBuilder};
use ::redis::sentinel::{SentinelClient, SentinelNodeConnectionInfo, SentinelServerType};
use ::redis::{Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisError, TlsMode};

use super::link::{ATTEMPT, CONNECT};
use crate::store::StoreError;

/// The schemes; those with a second `s` use TLS.
const SCHEMES: [&str; 10] = [
    "redis",
    "rediss",
    "valkey",
    "valkeys",
    "redis+unix",
    "unix",
    "redis+cluster",
    "rediss+cluster",
    "redis+sentinel",
    "rediss+sentinel",
];

/// The service that sentinels are asked for where the URL names none.
const SERVICE: &str = "mymaster";

/// Where a sentinel listens whose port is not named.
const SENTINEL_PORT: u16 = 26_379;

const FORMS: &str = "write `redis://[user:password@]host[:port][/db]`, `rediss://…` for TLS, `redis+cluster://host:port,host:port` or \
                     `redis+sentinel://host:port,host:port/master`";

/// A URL that was understood.
#[derive(Clone)]
pub struct Address {
    shown: String,
    /// The password, and as it stands in the URL if it is escaped there.
    secrets: Vec<String>,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Server(Box<Client>),
    Cluster(Box<ClusterClient>),
    Sentinels { sentinels: Vec<ConnectionInfo>, service: String, node: Box<SentinelNodeConnectionInfo> },
}

/// What connections are made with.
pub enum Connector {
    /// To one server.
    Server(Box<Client>),
    /// To all primaries of a cluster.
    Cluster(Box<ClusterClient>),
    /// To the server that is the primary now.
    Sentinels(Box<SentinelClient>),
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Address({})", self.shown)
    }
}

/// True for a store's name that is a URL of Redis.
pub fn is_address(store: &str) -> bool {
    store.split_once("://").is_some_and(|(scheme, _)| SCHEMES.contains(&scheme))
}

impl Address {
    /// Reads a URL.
    ///
    /// # Errors
    /// `Unreachable`, which shows nothing of the URL but its scheme and hosts.
    pub fn parse(url: &str) -> Result<Self, StoreError> {
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let shown = format!("{scheme}://{}", without_user(scheme, rest));
        let refuse = |message: &str| unreachable(&shown, message, FORMS);
        if !is_address(url) {
            return Err(refuse("it is no URL of Redis"));
        }
        let wrong = |error: RedisError| refuse(&error.to_string());
        let (plain, form) = scheme.split_once('+').unwrap_or((scheme, ""));
        if form.is_empty() || form == "unix" {
            let info = url.into_connection_info().map_err(wrong)?;
            let secrets = secrets(&info, rest);
            return Ok(Self { kind: Kind::Server(Box::new(Client::open(info).map_err(wrong)?)), shown, secrets });
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, hosts) = authority.rsplit_once('@').map_or(("", authority), |(user, hosts)| (user, hosts));
        let user = if user.is_empty() { String::new() } else { format!("{user}@") };
        let node = |host: &str| match host.rsplit_once(':') {
            None if form == "sentinel" => format!("{plain}://{user}{host}:{SENTINEL_PORT}"),
            _ => format!("{plain}://{user}{host}"),
        };
        let nodes = hosts.split(',').map(|host| node(host).into_connection_info());
        let nodes: Vec<ConnectionInfo> = nodes.collect::<Result<_, _>>().map_err(wrong)?;
        let server = nodes.first().cloned().ok_or_else(|| refuse("it names no host"))?;
        let secrets = secrets(&server, rest);
        let kind = if form == "cluster" {
            if !path.is_empty() {
                return Err(refuse("a cluster has only one database, so that nothing may follow its hosts"));
            }
            let builder = ClusterClientBuilder::new(nodes).retries(2).connection_timeout(CONNECT);
            let builder = builder.response_timeout(ATTEMPT).overall_response_timeout(None);
            Kind::Cluster(Box::new(builder.build().map_err(wrong)?))
        } else {
            let (service, database) = path.split_once('/').unwrap_or((path, "0"));
            let database = database.parse().map_err(|_| refuse("its database is no number"))?;
            let service = if service.is_empty() { SERVICE } else { service }.to_owned();
            let settings = server.redis_settings().clone().set_db(database);
            let sentinels = nodes.iter().map(|node| node.addr().clone().into_connection_info());
            let sentinels = sentinels.collect::<Result<_, _>>().map_err(wrong)?;
            let node = SentinelNodeConnectionInfo::default().set_redis_connection_info(settings);
            let node = match server.addr() {
                ConnectionAddr::TcpTls { insecure: true, .. } => node.set_tls_mode(TlsMode::Insecure),
                ConnectionAddr::TcpTls { .. } => node.set_tls_mode(TlsMode::Secure),
                _ => node,
            };
            Kind::Sentinels { sentinels, service, node: Box::new(node) }
        };
        Ok(Self { shown, secrets, kind })
    }

    /// The password, and as it stands in the URL if it is escaped there: to be masked wherever it appears.
    pub fn secrets(&self) -> &[String] {
        &self.secrets
    }

    /// True for several nodes that share the keys.
    pub fn is_cluster(&self) -> bool {
        matches!(self.kind, Kind::Cluster(_))
    }

    /// What connections are made with.
    ///
    /// # Errors
    /// `Unreachable` if the settings contradict each other.
    pub fn connector(&self) -> Result<Connector, StoreError> {
        // Only the first is installed; that it is not the first of this process is no matter.
        let _ = rustls::crypto::ring::default_provider().install_default();
        match &self.kind {
            Kind::Server(client) => Ok(Connector::Server(client.clone())),
            Kind::Cluster(client) => Ok(Connector::Cluster(client.clone())),
            Kind::Sentinels { sentinels, service, node } => {
                let node = (**node).clone();
                SentinelClient::build(sentinels.clone(), service, Some(node), SentinelServerType::Master)
                    .map(|client| Connector::Sentinels(Box::new(client)))
                    .map_err(|error| unreachable(&self.shown, error, FORMS))
            }
        }
    }
}

/// Why a store cannot be used, with its URL as it may be shown.
pub fn unreachable(shown: impl fmt::Display, message: impl fmt::Display, hint: &str) -> StoreError {
    StoreError::Unreachable { message: format!("`{shown}`: {message}"), hint: hint.to_owned() }
}

/// What follows the scheme, without what may be secret: the user, and all after the path. A password that should have been
/// escaped may hold any of the marks, so the last one counts.
fn without_user<'rest>(scheme: &str, rest: &'rest str) -> &'rest str {
    let hosts = rest.rsplit_once('@').filter(|_| !scheme.contains("unix")).map_or(rest, |(_, hosts)| hosts);
    hosts.split(['?', '#']).next().unwrap_or_default()
}

fn secrets(info: &ConnectionInfo, rest: &str) -> Vec<String> {
    let Some(password) = info.redis_settings().password() else { return Vec::new() };
    let written =
        rest.rsplit_once('@').and_then(|(user, _)| user.split_once(':')).map(|(_, written)| written.to_owned());
    let mut secrets = vec![password.to_owned()];
    secrets.extend(written.filter(|written| written != password));
    secrets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_and_shown_without_its_password() {
        for (url, shown) in [
            ("redis://localhost", "redis://localhost"),
            ("valkey://localhost", "valkey://localhost"),
            ("redis://ada:s%2Fecret@10.0.0.1:7000/3", "redis://10.0.0.1:7000/3"),
            ("rediss://:s%2Fecret@redis.example:6380/#insecure", "rediss://redis.example:6380/"),
            ("redis+unix:///run/redis.sock?db=2&pass=s%2Fecret", "redis+unix:///run/redis.sock"),
            ("redis+cluster://:s%2Fecret@a:1,b:2,c", "redis+cluster://a:1,b:2,c"),
            ("rediss+sentinel://u:s%2Fecret@a:1,b/main/2", "rediss+sentinel://a:1,b/main/2"),
        ] {
            let address = Address::parse(url).unwrap();
            assert_eq!(address.to_string(), shown);
            assert!(!format!("{address:?}").contains("ecret"));
            let expected: &[&str] = match url.contains("ecret") {
                true if url.contains("unix") => &["s/ecret"],
                true => &["s/ecret", "s%2Fecret"],
                false => &[],
            };
            assert_eq!(address.secrets(), expected, "{url}");
            address.connector().unwrap();
        }
    }

    #[test]
    fn what_is_no_address_is_refused_without_its_password() {
        for url in [
            "http://u:secret@host",
            "redis://u:secret@host/db",
            "redis://u:secret@ho st",
            "redis+cluster://u:secret@a:1/2",
            "redis+sentinel://u:secret@a:1/main/x",
            "redis+cluster://u:secret@",
            "redis://u:sec@ret@/1",
            "redis://u:sec?ret/#@host/x",
        ] {
            let refused = Address::parse(url);
            let Err(StoreError::Unreachable { message, hint }) = refused else { panic!("{url}: {refused:?}") };
            assert!(!message.contains("sec") && hint.contains("redis://"), "{url}: {message}");
        }
    }
}
