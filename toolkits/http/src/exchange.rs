//! One request and what comes of it: redirects looked at one by one, the body up to its limit, all of it in time.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use fimble_toolkit::{ErrorKind, ToolError};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, LOCATION};
use reqwest::{Client, Method, StatusCode, Url, redirect};

use crate::address::{self, Host, Lookup, RefusedName};
use crate::request::{Request, checked};
use crate::secret::Secrets;
use crate::{Answer, Config, Response, payload};

/// Characters of a response's header that are kept.
const HEADER_CHARACTERS: usize = 2_000;

/// Lets a server tell a repeated request from a new one.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    client: Client,
    config: Config,
    hosts: Vec<Host>,
    secrets: Secrets,
}

impl Exchange {
    pub(crate) fn new(config: Config, secrets: BTreeMap<String, String>) -> Result<Self, ToolError> {
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Only fails if somebody else installed one meanwhile, which is as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let client = Client::builder()
            .redirect(redirect::Policy::none())
            .no_proxy()
            .dns_resolver(Arc::new(Lookup))
            .user_agent(concat!("fimble/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| {
                ToolError::invalid_argument(format!("the HTTP client cannot be made: {error}"))
                    .with_hint("check the system's certificates")
            })?;
        let hosts = config.hosts.iter().map(|host| Host::parse(host)).collect::<Result<_, _>>()?;
        let secrets = Secrets::new(&config.secrets, secrets)?;
        Ok(Self { client, config, hosts, secrets })
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) async fn run(&self, request: Request, limit: Duration, key: &str) -> Result<Response, ToolError> {
        let received = self.receive(request, limit, key).await.map_err(|error| match error.kind {
            ErrorKind::Timeout => error.with_hint("give a longer `timeout_s`, or ask for less"),
            _ => error,
        })?;
        Ok(received.response(&self.secrets))
    }

    /// The answer with its body as text, if it is one.
    pub(crate) async fn answer(&self, request: Request, limit: Duration, key: &str) -> Result<Answer, ToolError> {
        Ok(self.receive(request, limit, key).await?.answer(&self.secrets))
    }

    async fn receive(&self, request: Request, limit: Duration, key: &str) -> Result<Received, ToolError> {
        tokio::time::timeout(limit, self.follow(request, key)).await.unwrap_or_else(|_| {
            let message = format!("the request did not end within {} s", limit.as_secs_f64());
            Err(ToolError::new(ErrorKind::Timeout, message))
        })
    }

    async fn follow(&self, request: Request, key: &str) -> Result<Received, ToolError> {
        let first = request.url()?;
        let mut url = first.clone();
        let headers = request.headers()?;
        let content = request.content.bytes(self.config.request_bytes)?;
        let may_follow = matches!(request.method, Method::GET | Method::HEAD);
        let most = request.body_bytes.unwrap_or(self.config.body_bytes);
        for _ in 0..=self.config.redirects {
            address::check(&url, &self.hosts)?;
            let mut sent = self.client.request(request.method.clone(), url.clone());
            for (name, value) in self.filled(&headers, &first, &url)? {
                sent = sent.header(name, value);
            }
            if let Some((bytes, kind)) = &content {
                if !headers.iter().any(|(name, _)| name == CONTENT_TYPE) {
                    sent = sent.header(CONTENT_TYPE, *kind);
                }
                sent = sent.body(bytes.clone());
            }
            let is_repeatable = may_follow || matches!(request.method, Method::PUT | Method::DELETE);
            if !is_repeatable && !key.is_empty() && !headers.iter().any(|(name, _)| name == IDEMPOTENCY_KEY) {
                sent = sent.header(IDEMPOTENCY_KEY, key);
            }
            let response = sent.send().await.map_err(|error| self.failed(&url, error))?;
            let next = Some(&response)
                .filter(|response| may_follow && response.status().is_redirection())
                .and_then(|response| response.headers().get(LOCATION)?.to_str().ok())
                .and_then(|location| url.join(location).ok());
            match next {
                Some(next) => url = next,
                None => return self.read(response, url, most).await,
            }
        }
        let message = format!("there are more than {} redirects, the last to `{}`", self.config.redirects, shown(&url));
        Err(ToolError::failed(message).with_hint("ask the last one yourself if it is right"))
    }

    /// The headers for `url`. What a program meant for the first server, and every secret, is not told to another one.
    fn filled(
        &self,
        headers: &[(HeaderName, String)],
        first: &Url,
        url: &Url,
    ) -> Result<Vec<(HeaderName, reqwest::header::HeaderValue)>, ToolError> {
        let is_first = first.origin() == url.origin();
        let mut filled = Vec::new();
        for (name, text) in headers {
            let is_credential = *name == AUTHORIZATION || *name == COOKIE;
            // Filled for the first server, so that what is wrong with it is told before a redirect hides it.
            let (value, is_secret) = self.secrets.fill(text, if is_first { url } else { first })?;
            if !is_first && (is_credential || is_secret) {
                continue;
            }
            let mut value = checked(name, &value)?;
            value.set_sensitive(is_secret || is_credential);
            filled.push((name.clone(), value));
        }
        Ok(filled)
    }

    async fn read(&self, mut response: reqwest::Response, url: Url, most: usize) -> Result<Received, ToolError> {
        let status = response.status();
        let headers = self.headers(response.headers());
        let (mut body, mut cut) = (Vec::new(), false);
        while let Some(chunk) = response.chunk().await.map_err(|error| self.failed(&url, error))? {
            let room = most.saturating_sub(body.len());
            body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
            if chunk.len() > room {
                cut = true;
                break;
            }
        }
        Ok(Received { url, status, headers, body, cut })
    }

    fn headers(&self, headers: &HeaderMap) -> BTreeMap<String, String> {
        let mut read: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in headers {
            let value = String::from_utf8_lossy(value.as_bytes());
            let value = self.secrets.mask(value.chars().take(HEADER_CHARACTERS).collect());
            match read.get_mut(name.as_str()) {
                Some(earlier) => {
                    earlier.push_str(", ");
                    earlier.push_str(&value);
                }
                None => drop(read.insert(name.to_string(), value)),
            }
        }
        read
    }

    fn failed(&self, url: &Url, error: reqwest::Error) -> ToolError {
        let what = if error.is_connect() { "cannot be reached" } else { "did not answer as HTTP servers do" };
        let error = error.without_url();
        let mut cause: &dyn Error = &error;
        loop {
            if cause.is::<RefusedName>() {
                return ToolError::new(ErrorKind::Denied, cause.to_string());
            }
            match cause.source() {
                Some(deeper) => cause = deeper,
                None => break,
            }
        }
        ToolError::unavailable(self.secrets.mask(format!("`{}` {what}: {cause}", shown(url))))
    }
}

/// What a server answered, read up to the limit, masked but for its body.
struct Received {
    url: Url,
    status: StatusCode,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
    cut: bool,
}

impl Received {
    fn kind(&self) -> &str {
        self.headers.get(CONTENT_TYPE.as_str()).map_or("", String::as_str)
    }

    fn response(self, secrets: &Secrets) -> Response {
        Response {
            status_code: self.status.as_u16(),
            ok: self.status.is_success(),
            body: payload::value(&self.body, self.kind(), self.cut, secrets),
            url: secrets.mask(self.url.to_string()),
            size_bytes: self.body.len() as u64,
            cut: self.cut,
            headers: self.headers,
        }
    }

    fn answer(self, secrets: &Secrets) -> Answer {
        let text = payload::text(&self.body, self.kind(), self.cut).map(|text| secrets.mask(text));
        Answer { status_code: self.status.as_u16(), text, size_bytes: self.body.len() as u64, cut: self.cut }
    }
}

/// The URL without its query, which may be long.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.to_string().chars().take(200).collect()
}
