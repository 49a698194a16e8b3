//! Asks a server what the configuration leaves open: the model's name, how much it takes, how it fills a hole. It does
//! not keep anything.

use std::ops::ControlFlow;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::config::{Config, FillFormat, seconds};
use super::endpoint::{Endpoint, Fill};
use super::exchange::{Answer, read_up_to};
use super::family::Family;
use super::refusal::{of_answer, of_transport};
use super::retry::{Advice, pause};
use super::{Input, LlmError, Request};

/// Most bytes of a list of models.
const LIST_BYTES: usize = 4 * 1024 * 1024;
/// How long a question about the server itself may take.
const QUESTION_TIME: Duration = Duration::from_secs(10);
/// Hosts that fill no holes; they are not asked.
const CHAT_ONLY: [&str; 4] = ["openai.com", "anthropic.com", "googleapis.com", "openrouter.ai"];

/// Names the endpoint's model and context if they are open, and says how it fills.
pub(super) async fn complete(endpoint: &mut Endpoint, config: &Config) -> Result<Option<Fill>, LlmError> {
    let mut is_llama = false;
    if config.fill == FillFormat::Auto || config.model.is_none() {
        let list = models(endpoint, config).await?;
        if config.model.is_none() {
            endpoint.model = only_model(endpoint, &list)?;
            endpoint.family = config.template.or_else(|| Family::of_model(&endpoint.model));
        }
        let this =
            list.iter().find(|model| id(model) == endpoint.model).or_else(|| list.first().filter(|_| list.len() == 1));
        is_llama = this.is_some_and(|model| model.get("owned_by").and_then(Value::as_str) == Some("llamacpp"));
        if endpoint.context_tokens.is_none() {
            endpoint.context_tokens = match this.and_then(listed_context) {
                None if is_llama => running_context(endpoint).await,
                context => context,
            };
        }
    }
    match config.fill {
        FillFormat::None => Ok(None),
        FillFormat::Infill => Ok(Some(Fill::Infill)),
        FillFormat::Mistral => Ok(Some(Fill::Mistral)),
        FillFormat::Tokens => match endpoint.family {
            Some(family) => Ok(Some(Fill::Tokens(family))),
            None => Err(LlmError::permanent(
                format!("the fill tokens of `{}` are not known", endpoint.model),
                "set `llm.template`, or another `llm.fill`",
            )),
        },
        FillFormat::Suffix if honours_suffix(endpoint).await? => Ok(Some(Fill::Suffix)),
        FillFormat::Suffix => Err(LlmError::permanent(
            format!("{} takes no `suffix`, or ignores it", endpoint.peer(&endpoint.base).address()),
            "set `llm.fill` to `tokens`, `infill` or `none`",
        )),
        FillFormat::Auto => best_fill(endpoint, is_llama).await,
    }
}

/// The first way that works. A known family's tokens come before `/infill`, which cuts a prefix to three quarters of a
/// batch without saying so.
async fn best_fill(endpoint: &Endpoint, is_llama: bool) -> Result<Option<Fill>, LlmError> {
    if CHAT_ONLY.iter().any(|host| endpoint.is_host(host)) {
        return Ok(None);
    }
    if endpoint.is_host("mistral.ai") {
        return Ok((endpoint.family == Some(Family::Codestral)).then_some(Fill::Mistral));
    }
    if let Some(family) = endpoint.family.filter(|_| !endpoint.is_host("deepseek.com"))
        && works(endpoint, Fill::Tokens(family)).await?
    {
        return Ok(Some(Fill::Tokens(family)));
    }
    if is_llama {
        return Ok(works(endpoint, Fill::Infill).await?.then_some(Fill::Infill));
    }
    Ok(honours_suffix(endpoint).await?.then_some(Fill::Suffix))
}

async fn works(endpoint: &Endpoint, fill: Fill) -> Result<bool, LlmError> {
    Ok(probe(endpoint, fill, "").await?.is_some())
}

/// A server that ignores the parameter answers all the same; but it counts the same prompt tokens with and without.
async fn honours_suffix(endpoint: &Endpoint) -> Result<bool, LlmError> {
    const SUFFIX: &str = "\n\n\nfor name in sorted(open_files):\n    print(name, open_files[name].size)\n";
    let Some(with) = probe(endpoint, Fill::Suffix, SUFFIX).await? else { return Ok(false) };
    let Some(without) = probe(endpoint, Fill::Suffix, "").await? else { return Ok(false) };
    let prompt = |answer: Answer| answer.usage.map(|usage| usage.prompt);
    Ok(prompt(with).zip(prompt(without)).is_some_and(|(with, without)| with >= without.saturating_add(8)))
}

/// One token of a filling, or `None` if the server refuses the request for good. Failures that may pass are errors:
/// they say nothing about the format.
async fn probe(endpoint: &Endpoint, fill: Fill, suffix: &str) -> Result<Option<Answer>, LlmError> {
    let prefix = "open_files = list_files()\n";
    let request = Request { input: Input::Chat(Vec::new()), max_tokens: 1, temperature: 0.0, stop: Vec::new() };
    match endpoint.fill_by(fill, (prefix, suffix), &request, &mut |_| ControlFlow::Continue(())).await {
        Ok(answer) => Ok(Some(answer)),
        Err(LlmError::Permanent { message, .. }) => {
            tracing::debug!(?fill, message, "the server does not fill this way");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The models the server lists; empty if it does not. A server that cannot be reached or refuses the key is an error.
async fn models(endpoint: &Endpoint, config: &Config) -> Result<Vec<Value>, LlmError> {
    let mut attempt = 0;
    loop {
        let failure = match get(endpoint, "models").await {
            Ok(list) => return Ok(list.get("data").and_then(Value::as_array).cloned().unwrap_or_default()),
            Err(failure) => failure,
        };
        let Failed { error, advice, status } = failure;
        match advice {
            // A key may well lack the right to list (403), and many servers have no list (404).
            Advice::GiveUp if status == Some(401) || status.is_none() => return Err(error),
            Advice::GiveUp => return Ok(Vec::new()),
            Advice::Retry(_) if attempt >= config.retries => return Err(error),
            Advice::Retry(asked) => sleep(pause(attempt, asked)).await,
        }
        attempt += 1;
    }
}

struct Failed {
    error: LlmError,
    advice: Advice,
    status: Option<u16>,
}

async fn get(endpoint: &Endpoint, path: &str) -> Result<Value, Failed> {
    let of_error = |error| Failed { error, advice: Advice::GiveUp, status: None };
    let url = endpoint.url(path).map_err(of_error)?;
    let peer = endpoint.peer(&url);
    let mut request = endpoint.client.get(url.clone());
    if let Some(key) = &endpoint.key {
        request = request.bearer_auth(key.reveal());
    }
    let question = async {
        let response = request.send().await?;
        let (status, headers) = (response.status(), response.headers().clone());
        Ok((status, headers, read_up_to(response, LIST_BYTES).await))
    };
    let limit = QUESTION_TIME + seconds(endpoint.timeouts.connect_s);
    let answered = timeout(limit, question).await.map_err(|_| {
        let message = format!("{} did not answer in {} s", peer.address(), limit.as_secs());
        of_error(LlmError::transient(message, "see what the server does"))
    })?;
    let (status, headers, body) = answered.map_err(|error| {
        let failure = of_transport(&peer, error, seconds(endpoint.timeouts.connect_s));
        Failed { error: failure.error, advice: failure.advice, status: None }
    })?;
    let body = String::from_utf8_lossy(&body);
    match serde_json::from_str(&body) {
        Ok(answer) if status.is_success() => Ok(answer),
        _ => {
            let failure = of_answer(&peer, status, &headers, &body);
            Err(Failed { error: failure.error, advice: failure.advice, status: Some(status.as_u16()) })
        }
    }
}

fn only_model(endpoint: &Endpoint, list: &[Value]) -> Result<String, LlmError> {
    let address = endpoint.peer(&endpoint.base).address();
    match list {
        [model] => Ok(id(model).to_owned()),
        [] => Err(LlmError::permanent(format!("no model is named, and {address} lists none"), "set `llm.model`")),
        _ => {
            let names: Vec<String> =
                list.iter().take(8).map(|model| endpoint.peer(&endpoint.base).quote(id(model))).collect();
            let more = if list.len() > names.len() { ", …" } else { "" };
            let hint = format!("set `llm.model` to one of: {}{more}", names.join(", "));
            Err(LlmError::permanent(format!("no model is named, and {address} has {}", list.len()), hint))
        }
    }
}

fn id(model: &Value) -> &str {
    model.get("id").and_then(Value::as_str).unwrap_or_default()
}

/// vLLM and newer llama.cpp tell in the list.
fn listed_context(model: &Value) -> Option<u32> {
    let context = model.get("max_model_len").or_else(|| model.pointer("/meta/n_ctx"))?;
    u32::try_from(context.as_u64()?).ok()
}

/// Older llama.cpp tells among its properties.
async fn running_context(endpoint: &Endpoint) -> Option<u32> {
    let properties = get(endpoint, "../props").await.ok()?;
    u32::try_from(properties.pointer("/default_generation_settings/n_ctx")?.as_u64()?).ok()
}
