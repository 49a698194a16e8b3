//! A request as a program asks for it, checked before anything is sent.

use std::collections::BTreeMap;

use fimble_toolkit::ToolError;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Method, Url};
use serde_json::Value;

/// Headers in one request.
const HEADERS: usize = 50;
/// Characters of a URL with its query.
const URL_CHARACTERS: usize = 16 * 1024;

/// Headers that belong to the connection, not to the request.
const OWN_HEADERS: [&str; 8] =
    ["connection", "content-length", "expect", "host", "proxy-authorization", "te", "transfer-encoding", "upgrade"];

/// A request, not checked yet.
#[derive(Debug)]
pub struct Request {
    pub(crate) method: Method,
    url: String,
    params: BTreeMap<String, Value>,
    headers: BTreeMap<String, String>,
    pub(crate) content: Content,
    pub(crate) body_bytes: Option<usize>,
}

/// What it carries.
#[derive(Debug)]
pub enum Content {
    /// Nothing.
    None,
    /// A value, as `application/json`.
    Json(Value),
    /// A text, as `text/plain; charset=utf-8`.
    Text(String),
}

impl Content {
    pub(crate) fn of(json: Option<Value>, data: Option<String>) -> Result<Self, ToolError> {
        match (json, data) {
            (Some(_), Some(_)) => Err(ToolError::invalid_argument("a request carries `json` or `data`, not both")),
            (Some(json), None) => Ok(Self::Json(json)),
            (None, Some(data)) => Ok(Self::Text(data)),
            (None, None) => Ok(Self::None),
        }
    }

    /// The bytes and their type, `None` if nothing is sent.
    pub(crate) fn bytes(&self, limit: usize) -> Result<Option<(Vec<u8>, &'static str)>, ToolError> {
        let (bytes, kind) = match self {
            Self::None => return Ok(None),
            Self::Json(value) => (value.to_string().into_bytes(), "application/json"),
            Self::Text(text) => (text.clone().into_bytes(), "text/plain; charset=utf-8"),
        };
        if bytes.len() > limit {
            let message = format!("the body has {} bytes, more than the {limit} allowed", bytes.len());
            return Err(ToolError::invalid_argument(message).with_hint("send less, in several requests"));
        }
        Ok(Some((bytes, kind)))
    }
}

impl Request {
    /// `params` is added to the query of `url`; in a header `${NAME}` stands for a secret.
    pub fn new(
        method: Method,
        url: String,
        params: Option<BTreeMap<String, Value>>,
        headers: Option<BTreeMap<String, String>>,
        content: Content,
    ) -> Self {
        let (params, headers) = (params.unwrap_or_default(), headers.unwrap_or_default());
        Self { method, url, params, headers, content, body_bytes: None }
    }

    /// With another limit than [`Config::body_bytes`](crate::Config::body_bytes) for what is read of the answer.
    #[must_use]
    pub fn reading(mut self, bytes: usize) -> Self {
        self.body_bytes = Some(bytes);
        self
    }

    /// The URL with the query.
    pub(crate) fn url(&self) -> Result<Url, ToolError> {
        let mut url = Url::parse(&self.url).map_err(|error| {
            ToolError::invalid_argument(format!("`url` is no URL: {error}"))
                .with_hint("write all of it, such as https://example.com/path")
        })?;
        for (name, value) in &self.params {
            let values = match value {
                Value::Array(values) => values.as_slice(),
                value => std::slice::from_ref(value),
            };
            for value in values {
                let text = match value {
                    Value::Null => continue,
                    Value::String(text) => text.clone(),
                    Value::Bool(_) | Value::Number(_) => value.to_string(),
                    Value::Array(_) | Value::Object(_) => {
                        return Err(ToolError::invalid_argument(format!(
                            "`params` has a value that no query can have, at `{name}`"
                        ))
                        .with_hint("give texts, numbers, booleans, or lists of them"));
                    }
                };
                url.query_pairs_mut().append_pair(name, &text);
            }
        }
        if url.as_str().len() > URL_CHARACTERS {
            let message = format!("the URL with its query is longer than {URL_CHARACTERS} characters");
            return Err(ToolError::invalid_argument(message));
        }
        Ok(url)
    }

    /// The headers, with secrets still named.
    pub(crate) fn headers(&self) -> Result<Vec<(HeaderName, String)>, ToolError> {
        if self.headers.len() > HEADERS {
            return Err(ToolError::invalid_argument(format!("a request has at most {HEADERS} headers")));
        }
        let mut headers = Vec::new();
        for (name, value) in &self.headers {
            let header = HeaderName::try_from(name.as_str())
                .map_err(|_| ToolError::invalid_argument(format!("`{name}` is no name of a header")))?;
            if OWN_HEADERS.contains(&header.as_str()) {
                return Err(ToolError::invalid_argument(format!(
                    "the header `{header}` cannot be set: it is the connection's"
                )));
            }
            checked(&header, value)?;
            headers.push((header, value.clone()));
        }
        Ok(headers)
    }
}

pub(crate) fn checked(name: &HeaderName, value: &str) -> Result<HeaderValue, ToolError> {
    HeaderValue::from_str(value).map_err(|_| {
        ToolError::invalid_argument(format!("the header `{name}` has a line end or another control character in it"))
    })
}
