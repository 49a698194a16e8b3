//! An author's HTTP request with its placeholders, and what it becomes with a call's arguments in it.
//!
//! Where it goes is the author's word: a value is one piece of the path, of the query, of a header or of the body, and never
//! of the host. Secrets are named in headers, and sent only to the host of the request's own URL.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fimble_http::{Answer, Config, Content, Http, SecretUse};
use fimble_toolkit::{Call, ErrorKind, Operation as Declared, Preview, Risk, ToolError, named_value};
use serde_json::{Map, Value, json};
use toml::Spanned;

use crate::body::{Body, Problem};
use crate::output::Output;
use crate::parameter::{Argument, Parameter, Text};
use crate::problem::Mistake;
use crate::running::said;
use crate::template::{self, Piece};
use crate::url::Url;
use crate::written::{self, Kind, Method};

/// What a request gets without `timeout_s`.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A request that makes sense.
#[derive(Debug)]
pub(crate) struct Request {
    method: Method,
    url: Url,
    query: Vec<(String, Vec<Piece>)>,
    headers: Vec<(String, Vec<Piece>)>,
    body: Body,
    /// The names of the secrets that headers mention.
    secrets: Vec<String>,
    output: Output,
    output_kib: u64,
    client: Mutex<Option<Client>>,
}

/// What sends, and the secrets that it was made with.
#[derive(Debug)]
struct Client {
    secrets: BTreeMap<String, String>,
    http: Http,
}

/// A request that can be sent, with secrets still named.
struct Filled {
    url: String,
    query: BTreeMap<String, Value>,
    headers: BTreeMap<String, String>,
    content: Content,
}

impl Request {
    /// `environment` are the names that the manifest declares, which headers may mention as `${NAME}`.
    ///
    /// # Errors
    /// What makes no sense: an address whose host is not the author's, a placeholder without parameter or in a wrong place, a
    /// parameter without placeholder, an undeclared secret.
    pub(crate) fn new(
        operation: &str,
        written: written::Request,
        parameters: &[Parameter],
        places: &[Range<usize>],
        environment: &[String],
        output: Output,
        output_kib: u64,
    ) -> Result<Self, Mistake> {
        let whose = format!("the request of `{operation}`");
        let wrong = |place: Range<usize>| {
            let whose = &whose;
            move |(reason, hint): Problem| Mistake::at(place, format!("{whose} {reason}")).with_hint(hint)
        };
        let url = Url::new(written.url.get_ref(), parameters).map_err(wrong(written.url.span()))?;
        let pieces = |text: &Spanned<String>, is_header: bool| {
            let pieces = template::pieces(text.get_ref(), is_header, parameters).map_err(wrong(text.span()))?;
            let lists = template::values(&pieces).any(|index| parameters[index].kind == Kind::List);
            if lists && (is_header || pieces.len() > 1) {
                let problem =
                    ("has a list within a text".to_owned(), "give a list an entry of `query` or `json` alone");
                return Err(wrong(text.span())(problem));
            }
            Ok(pieces)
        };
        let mut query = Vec::new();
        for (name, text) in &written.query {
            query.push((name.clone(), pieces(text, false)?));
        }
        let (mut headers, mut secrets) = (Vec::new(), Vec::new());
        for (name, text) in &written.headers {
            headers.push((name.clone(), pieces(text, true)?));
            for secret in secrets_of(text.get_ref()) {
                if !environment.iter().any(|declared| declared == secret) {
                    let problem = (format!("names `{secret}`, which `environment` does not list"), "list it there");
                    return Err(wrong(text.span())(problem));
                }
                secrets.push(secret.to_owned());
            }
        }
        let body = match (written.json, written.body) {
            (None, None) => Body::None,
            (Some(value), None) => Body::json(value.get_ref(), parameters).map_err(wrong(value.span()))?,
            (None, Some(text)) => Body::Text(pieces(&text, false)?),
            (Some(_), Some(text)) => {
                return Err(wrong(text.span())(("has `json` and `body`".to_owned(), "leave one of them out")));
            }
        };
        let lists = [&query, &headers].into_iter().flatten().map(|(_, pieces)| pieces);
        let used = lists.flat_map(|pieces| template::values(pieces)).chain(url.values()).chain(body.values());
        template::all_used(&used.collect::<Vec<_>>(), &whose, parameters, places)?;
        let (method, client) = (written.method, Mutex::new(None));
        Ok(Self { method, url, query, headers, body, secrets, output, output_kib, client })
    }

    /// Sends it for a call.
    ///
    /// # Errors
    /// `InvalidArgument`, `Denied`, `Unavailable`, `Timeout`, or what the server said.
    pub(crate) async fn send(
        &self,
        call: &Call,
        declared: &Declared,
        parameters: &[Parameter],
        arguments: &[Option<Argument>],
    ) -> Result<Value, ToolError> {
        let filled = self.fill(parameters, arguments)?;
        let http = self.http(&filled.url)?;
        let called = self.called(&filled.url);
        let most = usize::try_from(self.output_kib * 1_024).unwrap_or(usize::MAX);
        let (query, headers) = (Some(filled.query), Some(filled.headers));
        let request =
            fimble_http::Request::new(self.sent_method(), filled.url, query, headers, filled.content).reading(most);
        let answer = tokio::select! {
            answer = http.answer(request, declared.timeout.unwrap_or(TIMEOUT), &call.key) => answer?,
            () = call.cancellation.cancelled() => {
                return Err(ToolError::failed(format!("{called} was broken off: the call was cancelled")));
            }
        };
        self.value(&answer, &called, declared.risk)
    }

    /// The request that a call would send, with the names of its secrets.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub(crate) fn preview(
        &self,
        parameters: &[Parameter],
        arguments: &[Option<Argument>],
    ) -> Result<Preview, ToolError> {
        let filled = self.fill(parameters, arguments)?;
        let mut effect = Map::from_iter([("request".to_owned(), Value::from(self.called(&filled.url)))]);
        let content = match filled.content {
            Content::None => Value::Null,
            Content::Json(value) => value,
            Content::Text(text) => Value::from(text),
        };
        let parts = [("query", json!(filled.query)), ("headers", json!(filled.headers)), ("body", content)];
        let is_empty = |value: &Value| value.is_null() || value.as_object().is_some_and(Map::is_empty);
        effect.extend(
            parts.into_iter().filter(|(_, value)| !is_empty(value)).map(|(name, value)| (name.to_owned(), value)),
        );
        Ok(Preview::of(Value::Object(effect)))
    }

    fn fill(&self, parameters: &[Parameter], arguments: &[Option<Argument>]) -> Result<Filled, ToolError> {
        let mut query = BTreeMap::new();
        for (name, pieces) in &self.query {
            let list = match pieces.as_slice() {
                [Piece::Value(index)] => arguments.get(*index).and_then(Option::as_ref),
                _ => None,
            };
            match list.map(|argument| &argument.text) {
                Some(Text::Many(items)) => drop(query.insert(name.clone(), json!(items))),
                _ => drop(text(pieces, arguments).and_then(|text| query.insert(name.clone(), Value::from(text)))),
            }
        }
        let mut headers = BTreeMap::new();
        for (name, pieces) in &self.headers {
            let named = template::values(pieces).find(|index| {
                let argument = arguments.get(*index).and_then(Option::as_ref);
                argument.is_some_and(|argument| matches!(&argument.text, Text::One(text) if text.contains("${")))
            });
            if let Some(index) = named {
                // It would be read as a secret's name.
                let name = &parameters[index].declared.name;
                return Err(ToolError::invalid_argument(format!("argument `{name}` has `${{` in it"))
                    .with_hint("a header takes no value with these characters"));
            }
            if let Some(text) = text(pieces, arguments) {
                headers.insert(name.clone(), text);
            }
        }
        let content = match &self.body {
            Body::None => Content::None,
            Body::Json(json) => Content::Json(json.fill(arguments).unwrap_or_default()),
            Body::Text(pieces) => text(pieces, arguments).map_or(Content::None, Content::Text),
        };
        Ok(Filled { url: self.url.fill(parameters, arguments)?, query, headers, content })
    }

    /// The client, made anew when a secret has another value than before.
    fn http(&self, url: &str) -> Result<Http, ToolError> {
        let mut secrets = BTreeMap::new();
        for name in &self.secrets {
            let value = named_value(name).filter(|value| !value.trim().is_empty());
            let Some(value) = value else {
                return Err(ToolError::unavailable(format!("the secret `{name}` has no value"))
                    .with_hint("tell the user: `fimble secrets` keeps it, or an environment variable of this name"));
            };
            secrets.insert(name.clone(), value);
        }
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = client.as_ref().filter(|client| client.secrets == secrets) {
            return Ok(client.http.clone());
        }
        let host = SecretUse { env: None, hosts: vec![crate::url::authority(url).to_owned()] };
        let uses = secrets.keys().map(|name| (name.clone(), host.clone())).collect();
        let http = Http::new(Config { secrets: uses, ..Config::default() }, secrets.clone())?;
        *client = Some(Client { secrets, http: http.clone() });
        Ok(http)
    }

    fn value(&self, answer: &Answer, called: &str, risk: Risk) -> Result<Value, ToolError> {
        let status = answer.status_code;
        let text = answer.text.as_deref();
        if !(200..300).contains(&status) {
            let said = said(text.unwrap_or_default().as_bytes());
            let said = if said.is_empty() { String::new() } else { format!(": {said}") };
            return Err(ToolError::new(kind_of(status), format!("{called}: the server answered {status}{said}")));
        }
        if answer.cut {
            let error =
                ToolError::failed(format!("{called}: the answer is longer than the {} KiB allowed", self.output_kib));
            return Err(error.with_hint(match risk {
                Risk::Read => "ask for less: a limit, a range or a filter",
                Risk::Write | Risk::Destructive => "what it does is done; do not repeat it for its answer",
            }));
        }
        let Some(text) = text else {
            return Err(ToolError::failed(format!("{called}: the server answered bytes that are no text")));
        };
        if text.is_empty() && matches!(self.output, Output::Json) {
            return Ok(Value::Null);
        }
        self.output
            .value(text.as_bytes())
            .map_err(|problem| ToolError::failed(format!("the server of {called} {problem}")))
    }

    fn called(&self, url: &str) -> String {
        let url = url.split('?').next().unwrap_or_default();
        format!("`{} {url}`", self.sent_method())
    }

    fn sent_method(&self) -> fimble_http::Method {
        match self.method {
            Method::Get => fimble_http::Method::GET,
            Method::Post => fimble_http::Method::POST,
            Method::Put => fimble_http::Method::PUT,
            Method::Patch => fimble_http::Method::PATCH,
            Method::Delete => fimble_http::Method::DELETE,
        }
    }
}

/// What a status means, as RFC 9110 defines it.
fn kind_of(status: u16) -> ErrorKind {
    match status {
        400 | 405 | 406 | 411 | 413 | 414 | 415 | 422 => ErrorKind::InvalidArgument,
        401 | 403 | 407 | 451 => ErrorKind::Denied,
        404 | 410 => ErrorKind::NotFound,
        408 | 504 => ErrorKind::Timeout,
        429 | 502 | 503 => ErrorKind::Unavailable,
        _ => ErrorKind::Failed,
    }
}

/// The text with values in place; `None` if one of them is absent.
pub(crate) fn text(pieces: &[Piece], arguments: &[Option<Argument>]) -> Option<String> {
    let mut whole = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => whole.push_str(text),
            Piece::Value(index) => match &arguments.get(*index)?.as_ref()?.text {
                Text::One(text) => whole.push_str(text),
                Text::Many(items) => whole.push_str(&items.join(",")),
            },
        }
    }
    Some(whole)
}

/// The names in `${NAME}`.
fn secrets_of(text: &str) -> impl Iterator<Item = &str> {
    let named = text.split("${").skip(1).filter_map(|rest| rest.split_once('}'));
    named.map(|(name, _)| name).filter(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
}
