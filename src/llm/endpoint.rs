//! A model behind an OpenAI-compatible address: writes requests, retries, and checks what the server counted. It does
//! not know who runs the server.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use reqwest::{Client, Url, redirect};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::config::{Config, Secret, Timeouts, seconds};
use super::exchange::{Answer, Exchange, Piece};
use super::family::Family;
use super::refusal::{Failure, Peer};
use super::retry::{Advice, pause};
use super::truncation::silent_cut;
use super::{Abilities, Completion, Finish, Input, LlmError, Model, OnText, Request, chat, detect, fill};

/// The address that a key without an address belongs to.
const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";

/// A model at an address.
pub struct Endpoint {
    pub(super) client: Client,
    /// Ends with a slash, so that paths can be joined.
    pub(super) base: Url,
    pub(super) model: String,
    pub(super) key: Option<Secret>,
    pub(super) timeouts: Timeouts,
    pub(super) family: Option<Family>,
    pub(super) context_tokens: Option<u32>,
    retries: u32,
    response_bytes: u64,
    fill: Option<Fill>,
    quirks: Mutex<Vec<Quirk>>,
}

/// How this server fills a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fill {
    Tokens(Family),
    Infill,
    Suffix,
    Mistral,
}

/// A field of our requests that a server does not take as we write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quirk {
    NoStreamOptions,
    MaxCompletionTokens,
    NoTemperature,
}

impl Endpoint {
    /// The endpoint of the configuration. Asks the server for what the configuration leaves open: the model's name,
    /// how a hole is filled.
    pub async fn connect(config: &Config) -> Result<Self, LlmError> {
        // A second installation is refused, and means the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let base = base_url(config.base_url.as_deref().unwrap_or(DEFAULT_BASE_URL))?;
        let mut client = Client::builder()
            .connect_timeout(seconds(config.timeouts.connect_s))
            // A request with a key goes where it was sent, nowhere else.
            .redirect(redirect::Policy::none())
            .user_agent(concat!("fimble/", env!("CARGO_PKG_VERSION")));
        if is_loopback(&base) {
            // A new connection costs nothing here, and llama.cpp closes kept ones just when they are used again.
            client = client.no_proxy().pool_max_idle_per_host(0);
        }
        let client = client.build().map_err(|error| {
            LlmError::permanent(format!("no HTTP client can be made: {error}"), "check the proxy variables")
        })?;
        let model = config.model.clone().unwrap_or_default();
        let mut endpoint = Self {
            client,
            base,
            family: config.template.or_else(|| Family::of_model(&model)),
            model,
            key: config.api_key.clone(),
            timeouts: config.timeouts,
            context_tokens: config.context_tokens,
            retries: config.retries,
            response_bytes: config.response_kib.saturating_mul(1024),
            fill: None,
            quirks: Mutex::default(),
        };
        endpoint.fill = detect::complete(&mut endpoint, config).await?;
        Ok(endpoint)
    }

    /// Asks the server to fill a hole in the given way.
    pub(super) async fn fill_by(
        &self,
        fill: Fill,
        (prefix, suffix): (&str, &str),
        request: &Request,
        on_text: OnText<'_>,
    ) -> Result<Answer, LlmError> {
        let mut stops = request.stop.clone();
        let family = self.family;
        let (path, mut body, read): (_, _, fn(&Value) -> Piece) = match fill {
            Fill::Tokens(family) => {
                stops.extend(family.stops().iter().map(ToString::to_string));
                ("completions", fill::tokens_body(prefix, suffix, family), fill::read_completion)
            }
            Fill::Infill => ("../infill", fill::infill_body(prefix, suffix, family), fill::read_infill),
            Fill::Suffix => (self.suffix_path(), fill::suffix_body(prefix, suffix, family), fill::read_completion),
            Fill::Mistral => ("fim/completions", fill::mistral_body(prefix, suffix, family), chat::read),
        };
        if !matches!(fill, Fill::Tokens(_)) {
            stops.extend(family.iter().flat_map(|family| family.stops()).map(ToString::to_string));
        }
        let takes_all = matches!(fill, Fill::Tokens(_) | Fill::Infill);
        let sent = if takes_all { &stops[..] } else { &stops[..stops.len().min(chat::SENT_STOPS)] };
        self.complete_body(&mut body, request, sent);
        if fill == Fill::Infill {
            body["n_predict"] = json!(request.max_tokens);
        }
        self.ask(path, body, &stops, read, on_text).await
    }

    async fn chat(&self, body: Value, request: &Request, on_text: OnText<'_>) -> Result<Answer, LlmError> {
        let mut body = body;
        let sent = &request.stop[..request.stop.len().min(chat::SENT_STOPS)];
        self.complete_body(&mut body, request, sent);
        self.ask("chat/completions", body, &request.stop, chat::read, on_text).await
    }

    fn complete_body(&self, body: &mut Value, request: &Request, stops: &[String]) {
        body["model"] = json!(self.model);
        body["max_tokens"] = json!(request.max_tokens);
        // As a person would write it: 0.2, not 0.20000000298.
        body["temperature"] = json!((f64::from(request.temperature) * 1_000.0).round() / 1_000.0);
        body["stream"] = json!(true);
        if !stops.is_empty() {
            body["stop"] = json!(stops);
        }
    }

    /// Has a llama.cpp server read a prompt into one of its slots.
    pub(super) async fn read_prompt(&self, request: &Request, slot: u32) -> Result<(), LlmError> {
        let (path, mut body) = match (&request.input, self.fill) {
            (Input::Chat(messages), _) => ("chat/completions", chat::body(messages, self.family)),
            (Input::Fill { prefix, suffix }, Some(Fill::Tokens(family))) => {
                ("completions", fill::tokens_body(prefix, suffix, family))
            }
            (Input::Fill { prefix, suffix }, Some(Fill::Infill)) => {
                ("../infill", fill::infill_body(prefix, suffix, self.family))
            }
            (Input::Fill { .. }, _) => return Ok(()),
        };
        Quirk::NoStreamOptions.apply(&mut body);
        for (name, value) in [("max_tokens", 1), ("n_predict", 1), ("id_slot", slot)] {
            body[name] = json!(value);
        }
        self.post(path, &body).await
    }

    /// Posts a body and waits for the answer, whose content does not matter.
    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<(), LlmError> {
        let url = self.url(path)?;
        let mut request = self.client.post(url.clone()).json(body).timeout(seconds(self.timeouts.total_s));
        if let Some(key) = &self.key {
            request = request.bearer_auth(key.reveal());
        }
        let answer = request.send().await.and_then(|answer| answer.error_for_status());
        let failed = |error| LlmError::transient(format!("{} did not do it: {error}", url.path()), "");
        answer.map(drop).map_err(failed)
    }

    /// Sends a request until it is answered, refused for good, or the tries are used up.
    async fn ask(
        &self,
        path: &str,
        mut body: Value,
        stops: &[String],
        read: fn(&Value) -> Piece,
        on_text: OnText<'_>,
    ) -> Result<Answer, LlmError> {
        let url = self.url(path)?;
        let deadline = Instant::now() + seconds(self.timeouts.total_s);
        let mut attempt = 0;
        for quirk in self.known_quirks() {
            quirk.apply(&mut body);
        }
        loop {
            let exchange = Exchange {
                client: &self.client,
                url: &url,
                model: &self.model,
                key: self.key.as_ref(),
                timeouts: &self.timeouts,
                response_bytes: self.response_bytes,
                body: &body,
                stops,
                read,
                deadline,
            };
            let Failure { error, advice } = match exchange.run(on_text).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            if self.learn(&error, &mut body) {
                continue;
            }
            let Advice::Retry(asked) = advice else { return Err(error) };
            let wait = pause(attempt, asked);
            if attempt >= self.retries || Instant::now() + wait >= deadline {
                return Err(error);
            }
            tracing::info!(%error, wait_ms = wait.as_millis(), "the request is sent again");
            sleep(wait).await;
            attempt += 1;
        }
    }

    /// Changes the body if the server refused a field that it can do without. Each quirk is learnt once.
    fn learn(&self, error: &LlmError, body: &mut Value) -> bool {
        let Some(quirk) = Quirk::of(error) else { return false };
        let mut quirks = self.quirks.lock().unwrap_or_else(PoisonError::into_inner);
        if !quirks.contains(&quirk) {
            quirks.push(quirk);
        }
        quirk.apply(body)
    }

    fn known_quirks(&self) -> Vec<Quirk> {
        self.quirks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The address of a path; `../` leaves the `/v1`.
    pub(super) fn url(&self, path: &str) -> Result<Url, LlmError> {
        let (base, path) = match path.strip_prefix("../") {
            Some(rest) => (self.root(), rest),
            None => (self.base.clone(), path),
        };
        base.join(path).map_err(|error| wrong_address(base.as_str(), &error.to_string()))
    }

    pub(super) fn peer<'a>(&'a self, url: &'a Url) -> Peer<'a> {
        Peer { url, model: &self.model, key: self.key.as_ref() }
    }

    /// DeepSeek keeps the parameter on a path of its own.
    fn suffix_path(&self) -> &'static str {
        if self.is_host("deepseek.com") { "../beta/completions" } else { "completions" }
    }

    /// True for the host itself and those below it.
    pub(super) fn is_host(&self, domain: &str) -> bool {
        let below = |host: &str| host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        self.base.host_str().is_some_and(below)
    }

    fn root(&self) -> Url {
        let mut root = self.base.clone();
        let path = root.path().trim_end_matches('/').trim_end_matches("/v1").to_owned();
        root.set_path(&format!("{path}/"));
        root
    }
}

#[async_trait]
impl Model for Endpoint {
    fn name(&self) -> &str {
        &self.model
    }

    fn abilities(&self) -> Abilities {
        Abilities { fill: self.fill.is_some(), chat: true, context_tokens: self.context_tokens }
    }

    async fn complete(&self, request: &Request, on_text: OnText<'_>) -> Result<Completion, LlmError> {
        let started = Instant::now();
        let (answer, texts) = match (&request.input, self.fill) {
            (Input::Chat(messages), _) => {
                let answer = self.chat(chat::body(messages, self.family), request, on_text).await?;
                (answer, messages.iter().map(|message| message.content.as_str()).collect::<Vec<_>>())
            }
            (Input::Fill { prefix, suffix }, Some(fill)) => {
                let answer = self.fill_by(fill, (prefix, suffix), request, on_text).await?;
                (answer, vec![prefix.as_str(), suffix])
            }
            (Input::Fill { .. }, None) => {
                return Err(LlmError::permanent(
                    format!("`{}` at {} does not fill holes", self.model, self.peer(&self.base).address()),
                    "use a conversation, or set `llm.fill` if it does",
                ));
            }
        };
        let usage = answer.usage.unwrap_or_default();
        if let Some(overflow) = silent_cut(texts.into_iter(), usage, self.context_tokens) {
            return Err(overflow);
        }
        let finish = answer.finish.unwrap_or(Finish::Ended);
        Ok(Completion { text: answer.text, finish, usage, duration: started.elapsed() })
    }
}

impl Quirk {
    fn of(error: &LlmError) -> Option<Self> {
        let LlmError::Permanent { message, .. } = error else { return None };
        if message.contains("max_completion_tokens") {
            Some(Quirk::MaxCompletionTokens)
        } else if message.contains("stream_options") {
            Some(Quirk::NoStreamOptions)
        } else if message.contains("'temperature'") || message.contains("`temperature`") {
            Some(Quirk::NoTemperature)
        } else {
            None
        }
    }

    /// True if that changed anything.
    fn apply(self, body: &mut Value) -> bool {
        let Some(fields) = body.as_object_mut() else { return false };
        match self {
            Quirk::NoStreamOptions => fields.remove("stream_options").is_some(),
            Quirk::NoTemperature => fields.remove("temperature").is_some(),
            Quirk::MaxCompletionTokens => {
                let Some(most) = fields.remove("max_tokens") else { return false };
                fields.insert("max_completion_tokens".to_owned(), most);
                true
            }
        }
    }
}

fn base_url(text: &str) -> Result<Url, LlmError> {
    let mut url = Url::parse(text.trim()).map_err(|error| wrong_address(text, &error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong_address(text, "it is neither http nor https"));
    }
    let path = url.path().trim_end_matches('/').to_owned();
    let path = path.trim_end_matches("/chat/completions").to_owned();
    url.set_path(&if path.is_empty() { "/v1/".to_owned() } else { format!("{path}/") });
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}

fn wrong_address(text: &str, why: &str) -> LlmError {
    // What stands before an `@` may be a password.
    let shown = text.rsplit('@').next().unwrap_or_default();
    let message = format!("`{shown}` is no address of a server: {why}");
    LlmError::permanent(message, "write it like `http://127.0.0.1:8080/v1` in `llm.base_url`")
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    host == "localhost" || host == "[::1]" || host.starts_with("127.")
}
