//! Toolkits that are services elsewhere: OpenAPI documents and A2A agents. Secrets are named here, never written.

use std::collections::BTreeMap;

use fimble_toolkit::Risk;
use serde::{Deserialize, Serialize};

/// One OpenAPI document, an item of `toolkits.openapi`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OpenApi {
    /// The toolkit's name without `_toolkit`. Default: the document's title.
    pub name: Option<String>,
    /// The document's file or URL; must be given.
    pub document: String,
    /// The address of the server, in place of those that the document names. Default: the document's first.
    pub base_url: Option<String>,
    /// The environment variable with the token, the API key or `user:password`. Default none.
    pub token: Option<String>,
    /// Environment variables by the name of the document's security scheme, where `token` is not enough. Default none.
    pub credentials: BTreeMap<String, String>,
    /// Environment variables by the name of the header that they are sent in with every request. Default none.
    pub headers: BTreeMap<String, String>,
    /// Values of the variables in the document's server address. Default: the document's.
    pub variables: BTreeMap<String, String>,
    /// Only operations with one of these tags. Default all.
    pub tags: Vec<String>,
    /// Only operations that match one of these patterns (`*` is any characters), by name or as in `GET /pets/*`. Default all.
    pub include: Vec<String>,
    /// No operations that match one of these patterns. Default none.
    pub exclude: Vec<String>,
    /// Risks by pattern, `[["POST /search", "read"]]`; the first that matches counts. Default: by the method.
    pub risks: Vec<(String, Risk)>,
}

/// One A2A agent, an item of `toolkits.a2a`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct A2a {
    /// The toolkit's name without `_toolkit`. Default: what the agent calls itself.
    pub name: String,
    /// The agent's address; must be given.
    pub url: String,
    /// The environment variable with the bearer token. Default none.
    pub token: Option<String>,
    /// Environment variables by the name of the header that they are sent in with every request. Default none.
    pub headers: BTreeMap<String, String>,
}

impl OpenApi {
    /// The environment variables that hold secrets.
    pub fn secrets(&self) -> impl Iterator<Item = &String> {
        self.token.iter().chain(self.credentials.values()).chain(self.headers.values())
    }
}

impl A2a {
    /// The environment variables that hold secrets.
    pub fn secrets(&self) -> impl Iterator<Item = &String> {
        self.token.iter().chain(self.headers.values())
    }
}
