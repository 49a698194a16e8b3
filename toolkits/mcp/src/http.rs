//! What is needed to reach a server by HTTP. It does not know what is said.

use std::collections::{BTreeMap, HashMap};
use std::sync::Once;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use crate::authorized::Authorized;
use crate::opening::Login;
use crate::{Endpoint, Error, Limits, Server, Settings, login};

/// The status of an answer that wants to know who we are.
pub(crate) const UNAUTHORIZED: StatusCode = StatusCode::UNAUTHORIZED;

/// Streamable HTTP, with what a login left or without.
pub(crate) enum Streamable {
    /// Nobody has logged in.
    Plain(StreamableHttpClientTransport<reqwest::Client>),
    /// Each request carries a token, which is renewed when it is old or refused.
    LoggedIn(StreamableHttpClientTransport<Authorized>),
}

/// The transport to a server with an address.
pub(crate) async fn streamable(server: &Server, settings: &Settings) -> Result<Streamable, Error> {
    let Endpoint::Url { url, headers, .. } = &server.endpoint else {
        return Err(Error::of(server, "has no address".to_owned(), String::new()));
    };
    let headers = self::headers(server, headers)?;
    let own_token = headers.contains_key(header::AUTHORIZATION);
    let custom: HashMap<HeaderName, HeaderValue> =
        headers.into_iter().filter_map(|(name, value)| Some((name?, value))).collect();
    let config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
        .custom_headers(custom)
        .max_sse_event_size(settings.limits.message_bytes);
    let client = client(server, &settings.limits)?;
    Ok(match login::manager(server, settings).await {
        Ok(Some(manager)) if !own_token => {
            Streamable::LoggedIn(StreamableHttpClientTransport::with_client(Authorized::new(client, manager), config))
        }
        Err(problem) if !own_token => return Err(login_failed(server, &problem)),
        _ => Streamable::Plain(StreamableHttpClientTransport::with_client(client, config)),
    })
}

/// A client for the transport of 2024, and the headers with the token that a login left.
pub(crate) async fn with_token(
    server: &Server,
    settings: &Settings,
    mut headers: HeaderMap,
) -> Result<(reqwest::Client, HeaderMap), Error> {
    if !headers.contains_key(header::AUTHORIZATION) {
        let token = match login::manager(server, settings).await {
            Ok(Some(manager)) => manager.get_access_token().await.map(Some),
            Ok(None) => Ok(None),
            Err(problem) => Err(problem),
        };
        match token {
            Ok(Some(token)) => {
                if let Ok(value) = HeaderValue::try_from(format!("Bearer {token}")) {
                    headers.insert(header::AUTHORIZATION, value);
                }
            }
            Ok(None) => {}
            Err(problem) => return Err(login_failed(server, &problem)),
        }
    }
    Ok((client(server, &settings.limits)?, headers))
}

fn login_failed(server: &Server, problem: &AuthError) -> Error {
    match problem {
        AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_) => Login::Any.error(server),
        other => Error::of(server, format!("cannot be logged in to: {other}"), String::new()),
    }
}

/// The headers of every request.
pub(crate) fn headers(server: &Server, headers: &BTreeMap<String, String>) -> Result<HeaderMap, Error> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let (Ok(key), Ok(value)) = (HeaderName::try_from(name.as_str()), HeaderValue::try_from(value.as_str())) else {
            return Err(Error::of(server, format!("has a header `{name}` that cannot be sent"), String::new()));
        };
        map.insert(key, value);
    }
    Ok(map)
}

/// The encryption that all connections use; another part of the program may have chosen already.
pub(crate) fn choose_encryption() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

pub(crate) fn client(server: &Server, limits: &Limits) -> Result<reqwest::Client, Error> {
    choose_encryption();
    reqwest::Client::builder()
        .connect_timeout(limits.start)
        // A connection that a server closed while it was idle would fail the next call.
        .pool_max_idle_per_host(0)
        .build()
        .map_err(|error| Error::of(server, format!("cannot be reached: {error}"), String::new()))
}
