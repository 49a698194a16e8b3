//! One request to the server, bounded in time and bytes; the server's own sentence where it refuses.

use std::time::Duration;

use fimble_toolkit::{ErrorKind, ToolError, named_value};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{RequestBuilder, Response, StatusCode, Url, redirect};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::Config;
use crate::answer::Wire;

/// Characters of what the server says that an error shows.
const SHOWN_CHARACTERS: usize = 1_000;

#[derive(Clone)]
pub(crate) struct Client {
    inner: reqwest::Client,
    base: Url,
    answer_bytes: usize,
    timeout_s: f64,
}

/// Without the password.
impl std::fmt::Debug for Client {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Client").field("address", &self.address()).finish_non_exhaustive()
    }
}

impl Client {
    pub(crate) fn new(config: &Config) -> Result<Self, ToolError> {
        let wrong = |message: String, hint: &str| ToolError::invalid_argument(message).with_hint(hint);
        let base =
            Url::parse(&config.url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        // The URL itself is not shown: it may hold a password.
        let mut base = base.ok_or_else(|| {
            wrong(
                "the `url` of the Prometheus server is no address".to_owned(),
                "write one such as http://127.0.0.1:9090",
            )
        })?;
        base.set_query(None);
        base.set_fragment(None);
        let mut headers = HeaderMap::new();
        if let Some(name) = &config.token_env {
            let token = named_value(name).filter(|token| !token.trim().is_empty());
            let mut value = token
                .and_then(|token| HeaderValue::from_str(&format!("Bearer {}", token.trim())).ok())
                .ok_or_else(|| {
                    let message = format!("the environment variable `{name}` holds no token for the Prometheus server");
                    wrong(message, "set it, or remove `token_env`")
                })?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Only fails if somebody else installed one meanwhile, which is as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let mut builder = reqwest::Client::builder()
            .default_headers(headers)
            .timeout(Duration::from_secs_f64(config.timeout_s))
            .redirect(redirect::Policy::none());
        if is_loopback(&base) {
            builder = builder.no_proxy();
        }
        let inner = builder.build().map_err(|error| {
            wrong(
                format!("the client for the Prometheus server cannot be made: {error}"),
                "check the system's certificates",
            )
        })?;
        Ok(Self { inner, base, answer_bytes: config.answer_bytes, timeout_s: config.timeout_s })
    }

    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &[&str],
        fields: &[(&str, String)],
    ) -> Result<Wire<T>, ToolError> {
        let mut url = self.url(path)?;
        if !fields.is_empty() {
            url.query_pairs_mut().extend_pairs(fields);
        }
        self.send(self.inner.get(url)).await
    }

    /// As a form, because a query may be longer than an address can be.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        fields: &[(&str, String)],
    ) -> Result<Wire<T>, ToolError> {
        let url = self.url(&[path])?;
        let mut form = url.clone();
        form.query_pairs_mut().extend_pairs(fields);
        let body = form.query().unwrap_or_default().to_owned();
        self.send(self.inner.post(url).header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(body)).await
    }

    fn url(&self, path: &[&str]) -> Result<Url, ToolError> {
        if path.iter().any(|part| matches!(*part, "" | "." | "..")) {
            return Err(ToolError::invalid_argument("an empty name, `.` and `..` are no labels"));
        }
        let mut url = self.base.clone();
        url.path_segments_mut()
            .map_err(|()| ToolError::unavailable("the `url` of the Prometheus server is no address"))?
            .pop_if_empty()
            .extend(["api", "v1"])
            .extend(path);
        Ok(url)
    }

    async fn send<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<Wire<T>, ToolError> {
        let response = request.send().await.map_err(|error| self.unreachable(error))?;
        let status = response.status();
        let body = self.body(response).await?;
        if let Ok(Refusal { error, kind }) = serde_json::from_slice::<Refusal>(&body) {
            return Err(ToolError::new(
                match kind.as_str() {
                    "bad_data" => ErrorKind::InvalidArgument,
                    "timeout" | "canceled" => ErrorKind::Timeout,
                    "not_found" => ErrorKind::NotFound,
                    "unavailable" => ErrorKind::Unavailable,
                    _ => ErrorKind::Failed,
                },
                shown(&error),
            ));
        }
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(ToolError::new(
                ErrorKind::Forbidden,
                format!("the Prometheus server refuses the account ({status})"),
            )
            .with_hint("tell the user: a token or password is missing or wrong")),
            status if !status.is_success() => {
                Err(ToolError::unavailable(format!("{} answered {status}, which Prometheus does not", self.address()))
                    .with_hint("tell the user: something else may answer at that address"))
            }
            _ => serde_json::from_slice(&body).map_err(|error| {
                ToolError::unavailable(format!("{} did not answer as Prometheus does: {error}", self.address()))
                    .with_hint("tell the user: something else may answer at that address")
            }),
        }
    }

    async fn body(&self, mut response: Response) -> Result<Vec<u8>, ToolError> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.unreachable(error))? {
            if chunk.len() > self.answer_bytes.saturating_sub(body.len()) {
                let message = format!("the answer has more than {} bytes", self.answer_bytes);
                return Err(ToolError::failed(message)
                    .with_hint("ask for less: more labels in the selector, sum by (…), topk(…), a shorter time"));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    fn unreachable(&self, error: reqwest::Error) -> ToolError {
        let address = self.address();
        if error.is_timeout() {
            let message = format!("{address} did not answer within {} s", self.timeout_s);
            return ToolError::new(ErrorKind::Timeout, message).with_hint("ask for less, or for a shorter time");
        }
        let error = error.without_url();
        let mut cause: &dyn std::error::Error = &error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        ToolError::unavailable(format!("the Prometheus server at {address} cannot be reached: {cause}"))
    }

    /// The server without the password.
    fn address(&self) -> String {
        self.base.origin().ascii_serialization()
    }
}

/// A server on this machine is not behind a proxy, whatever the environment says of the others.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[derive(Deserialize)]
struct Refusal {
    #[serde(rename = "errorType")]
    kind: String,
    error: String,
}

fn shown(text: &str) -> String {
    let mut characters = text.trim().chars().map(|character| if character.is_control() { ' ' } else { character });
    let mut short: String = characters.by_ref().take(SHOWN_CHARACTERS).collect();
    if characters.next().is_some() {
        short.push('…');
    }
    short
}
