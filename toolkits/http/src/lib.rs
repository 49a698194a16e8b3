//! HTTP requests from this machine, to JSON and text alike.
//!
//! Bodies are bounded, redirects of reads are followed a few times, and every request ends in time. Where a request may
//! go: to the configured hosts, by default to all. Link-local addresses and the others at which clouds hand out
//! credentials (169.254.169.254 and its like) are refused always, whether a URL, a redirect or a name's DNS answer leads
//! there; loopback and private networks are not. Proxies of the environment are not used: they would look up names by
//! themselves.
//!
//! A secret is named in a header's value, as in `Bearer ${NAME}`; its value is put in here, only towards the hosts that
//! it is for, and masked in what comes back. What it does not protect: with no list of hosts a read can carry whatever a
//! program knows to anybody, in its address.

mod address;
mod exchange;
mod payload;
mod request;
mod secret;

use std::collections::BTreeMap;
use std::time::Duration;

use fimble_toolkit::{Call, Number, ToolError, toolkit};
pub use request::{Content, Request};
pub use reqwest::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use exchange::Exchange;

/// The toolkit `http_toolkit`.
#[derive(Debug, Clone)]
pub struct Http {
    exchange: Exchange,
}

/// Where requests may go and how much may come back, `[toolkits.http]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Hosts that requests may go to: `api.example.com`, `*.example.com` (every name below it), an address, each with
    /// `:port` if only that one is meant. Empty (the default): all.
    pub hosts: Vec<String>,
    /// Secrets by the name by which headers refer to them. Default none.
    pub secrets: BTreeMap<String, SecretUse>,
    /// Seconds that a request gets if the call says none, with its redirects and its body; above 0, at most 300. Default 30.
    pub timeout_s: f64,
    /// Bytes of a response's body that are kept, 1 to 1,073,741,824; the rest is not read. Default 1,048,576.
    pub body_bytes: usize,
    /// Bytes of a request's body, at most 1,073,741,824. Default 1,048,576.
    pub request_bytes: usize,
    /// Redirects that `get` and `head` follow, at most 100. Default 5.
    pub redirects: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            secrets: BTreeMap::new(),
            timeout_s: 30.0,
            body_bytes: 1024 * 1024,
            request_bytes: 1024 * 1024,
            redirects: 5,
        }
    }
}

/// What a secret is for. Its value comes from the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretUse {
    /// The environment variable that holds the value, for a host that looks there. Default: the secret's own name.
    #[serde(default)]
    pub env: Option<String>,
    /// Hosts that may be sent it, written as in [`Config::hosts`]; at least one.
    pub hosts: Vec<String>,
}

impl Config {
    /// The numbers in the settings, and what they may be.
    pub fn numbers(&self) -> Vec<Number> {
        let most = 1 << 30;
        vec![
            Number::above_zero("toolkits.http.timeout_s", self.timeout_s, MOST_TIMEOUT_S, "seconds"),
            Number::whole("toolkits.http.body_bytes", self.body_bytes as u64, 1..=most, "bytes"),
            Number::whole("toolkits.http.request_bytes", self.request_bytes as u64, 0..=most, "bytes"),
            Number::whole("toolkits.http.redirects", self.redirects.into(), 0..=100, "redirects"),
        ]
    }

    /// The variable that holds the value of each secret, by the secret's name.
    pub fn variables(&self) -> BTreeMap<String, String> {
        let variable = |name: &String, used: &SecretUse| used.env.clone().unwrap_or_else(|| name.clone());
        self.secrets.iter().map(|(name, used)| (name.clone(), variable(name, used))).collect()
    }
}

/// The most that a call may give for its timeout, in seconds.
const MOST_TIMEOUT_S: f64 = 300.0;

/// What came back.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Response {
    /// The address that answered, after redirects.
    pub url: String,
    /// E.g. 200.
    pub status_code: u16,
    /// True if it is 200 to 299.
    pub ok: bool,
    /// By lower-case name.
    pub headers: BTreeMap<String, String>,
    /// Parsed if it is JSON, else text; `None` if there is none or it is neither.
    pub body: Value,
    /// Bytes of the body that were read.
    pub size_bytes: u64,
    /// True if the body went on; what was read of it is text.
    pub cut: bool,
}

/// What came back to a toolkit that sends requests of its own by [`Http::answer`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// E.g. 200.
    pub status_code: u16,
    /// The body; `None` if it is no text. Empty if there was none.
    pub text: Option<String>,
    /// Bytes of the body that were read.
    pub size_bytes: u64,
    /// True if the body went on.
    pub cut: bool,
}

impl Http {
    /// The toolkit. `secrets` are the values of [`Config::secrets`] by their names.
    ///
    /// # Errors
    /// What is wrong with the settings, with a hint.
    pub fn new(config: Config, secrets: BTreeMap<String, String>) -> Result<Self, ToolError> {
        config.numbers().iter().try_for_each(Number::check)?;
        Ok(Self { exchange: Exchange::new(config, secrets)? })
    }

    /// Sends a request of another toolkit's, with the protections of this one's. `key` is the call's.
    ///
    /// # Errors
    /// `InvalidArgument`, `Denied`, `NotFound` for an unknown secret, `Unavailable`, or `Timeout` after `limit`. A status such as
    /// 404 is none.
    pub async fn answer(&self, request: Request, limit: Duration, key: &str) -> Result<Answer, ToolError> {
        self.exchange.answer(request, limit, key).await
    }

    async fn send(&self, request: Request, timeout_s: Option<f64>, call: &Call) -> Result<Response, ToolError> {
        let timeout_s = timeout_s.unwrap_or(self.exchange.config().timeout_s);
        if !(timeout_s > 0.0 && timeout_s <= MOST_TIMEOUT_S) {
            let message = format!("`timeout_s` is above 0 and at most {MOST_TIMEOUT_S}, not {timeout_s}");
            return Err(ToolError::invalid_argument(message));
        }
        self.exchange.run(request, Duration::from_secs_f64(timeout_s), &call.key).await
    }
}

/// HTTP requests. A status such as 404 raises nothing: look at `ok`. In a header `${NAME}` stands for a secret of the host.
#[toolkit(name = "http_toolkit")]
impl Http {
    /// Fetches a URL; redirects are followed.
    #[operation(risk = "read", timeout_s = 310)]
    async fn get(
        &self,
        /// `http://…` or `https://…`.
        url: String,
        /// The query: texts, numbers, lists of them.
        params: Option<BTreeMap<String, Value>>,
        /// Headers by name.
        headers: Option<BTreeMap<String, String>>,
        /// Seconds for all of it. Default: the host's setting, as a rule 30.
        timeout_s: Option<f64>,
        call: &Call,
    ) -> Result<Response, ToolError> {
        self.send(Request::new(Method::GET, url, params, headers, Content::None), timeout_s, call).await
    }

    /// Status and headers of a URL, without its body.
    #[operation(risk = "read", timeout_s = 310)]
    async fn head(
        &self,
        /// `http://…` or `https://…`.
        url: String,
        /// The query: texts, numbers, lists of them.
        params: Option<BTreeMap<String, Value>>,
        /// Headers by name.
        headers: Option<BTreeMap<String, String>>,
        /// Seconds for all of it. Default: the host's setting, as a rule 30.
        timeout_s: Option<f64>,
        call: &Call,
    ) -> Result<Response, ToolError> {
        self.send(Request::new(Method::HEAD, url, params, headers, Content::None), timeout_s, call).await
    }

    /// Posts JSON (`json`) or text (`data`); redirects are not followed.
    #[operation(risk = "write", timeout_s = 310)]
    #[expect(clippy::too_many_arguments, reason = "each is a parameter that programs name")]
    async fn post(
        &self,
        /// `http://…` or `https://…`.
        url: String,
        /// Sent as JSON.
        json: Option<Value>,
        /// Sent as it is.
        data: Option<String>,
        /// The query: texts, numbers, lists of them.
        params: Option<BTreeMap<String, Value>>,
        /// Headers by name.
        headers: Option<BTreeMap<String, String>>,
        /// Seconds for all of it. Default: the host's setting, as a rule 30.
        timeout_s: Option<f64>,
        call: &Call,
    ) -> Result<Response, ToolError> {
        let content = Content::of(json, data)?;
        self.send(Request::new(Method::POST, url, params, headers, content), timeout_s, call).await
    }

    /// Puts JSON (`json`) or text (`data`) at a URL; redirects are not followed.
    #[operation(risk = "write", idempotent, timeout_s = 310)]
    #[expect(clippy::too_many_arguments, reason = "each is a parameter that programs name")]
    async fn put(
        &self,
        /// `http://…` or `https://…`.
        url: String,
        /// Sent as JSON.
        json: Option<Value>,
        /// Sent as it is.
        data: Option<String>,
        /// The query: texts, numbers, lists of them.
        params: Option<BTreeMap<String, Value>>,
        /// Headers by name.
        headers: Option<BTreeMap<String, String>>,
        /// Seconds for all of it. Default: the host's setting, as a rule 30.
        timeout_s: Option<f64>,
        call: &Call,
    ) -> Result<Response, ToolError> {
        let content = Content::of(json, data)?;
        self.send(Request::new(Method::PUT, url, params, headers, content), timeout_s, call).await
    }

    /// Changes what is at a URL by JSON (`json`) or text (`data`); redirects are not followed.
    #[operation(risk = "write", timeout_s = 310)]
    #[expect(clippy::too_many_arguments, reason = "each is a parameter that programs name")]
    async fn patch(
        &self,
        /// `http://…` or `https://…`.
        url: String,
        /// Sent as JSON.
        json: Option<Value>,
        /// Sent as it is.
        data: Option<String>,
        /// The query: texts, numbers, lists of them.
        params: Option<BTreeMap<String, Value>>,
        /// Headers by name.
        headers: Option<BTreeMap<String, String>>,
        /// Seconds for all of it. Default: the host's setting, as a rule 30.
        timeout_s: Option<f64>,
        call: &Call,
    ) -> Result<Response, ToolError> {
        let content = Content::of(json, data)?;
        self.send(Request::new(Method::PATCH, url, params, headers, content), timeout_s, call).await
    }

    /// Deletes what is at a URL; redirects are not followed.
    #[operation(risk = "destructive", idempotent, timeout_s = 310)]
    async fn delete(
        &self,
        /// `http://…` or `https://…`.
        url: String,
        /// The query: texts, numbers, lists of them.
        params: Option<BTreeMap<String, Value>>,
        /// Headers by name.
        headers: Option<BTreeMap<String, String>>,
        /// Seconds for all of it. Default: the host's setting, as a rule 30.
        timeout_s: Option<f64>,
        call: &Call,
    ) -> Result<Response, ToolError> {
        self.send(Request::new(Method::DELETE, url, params, headers, Content::None), timeout_s, call).await
    }
}
