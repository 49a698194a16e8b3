//! A Kubernetes cluster as a toolkit: its own OpenAPI document, the operations of it that are used every day, under the names
//! that its Python client has for them.
//!
//! Whom it asks and who it is come from the settings, a kubeconfig, or the pod that it runs in. What it may do is what the
//! cluster lets that user do; secrets of the cluster are not among the usual operations. Tokens are read once, when the
//! toolkit is loaded. Users of a kubeconfig whose credential another program makes (`exec`) are refused: give a token.
//!
//! It does not know how a document becomes operations or how they are sent: that is `fimble-openapi`'s.

mod access;
mod kubeconfig;
mod usual;

use std::path::PathBuf;

use fimble_openapi::{Error, Filter, Limits, Loaded, Source};
use serde::{Deserialize, Serialize};

/// Which cluster, who asks, and what for, `[toolkits.kubernetes]`. An empty table is the current context of the kubeconfig.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The kubeconfig. Default: the first file of `$KUBECONFIG`, else `~/.kube/config`, else the pod's own account; none of them
    /// where `server` is given.
    pub kubeconfig: Option<PathBuf>,
    /// The context in it. Default: its current one.
    pub context: Option<String>,
    /// The API server, e.g. `https://10.0.0.1:6443`. Default: the context's.
    pub server: Option<String>,
    /// The secret or environment variable with the bearer token. Default: what the context has.
    pub token: Option<String>,
    /// The file of the server's certificate authority (PEM). Default: the context's, else the machine's.
    pub ca: Option<PathBuf>,
    /// The file of the client's certificate (PEM). Default: what the context has.
    pub client_certificate: Option<PathBuf>,
    /// The file of its key (PEM). Default: what the context has.
    pub client_key: Option<PathBuf>,
    /// The OpenAPI document's file or URL. Default: `/openapi/v2` of the server.
    pub document: Option<String>,
    /// Patterns of operations beside the usual ones, by `operationId` or as in `GET /apis/batch/*`. Default none.
    pub more: Vec<String>,
}

/// Levels of objects that stubs show: what is in a list, its metadata and status, and their fields.
const LEVELS: usize = 4;

/// Schemas in one result: enough for the fields of a pod's metadata, spec and status, not for those of its containers.
const SCHEMAS: usize = 100;

/// The toolkit `kubernetes_toolkit`. Needs a tokio runtime.
///
/// # Errors
/// No cluster or credential that can be used, or a server that does not give its document.
pub async fn load(config: &Config) -> Result<Loaded, Error> {
    let access = access::of(config)?;
    let document = config.document.clone().unwrap_or_else(|| format!("{}/openapi/v2", access.server));
    let include = usual::OPERATIONS.iter().map(|(id, _)| (*id).to_owned()).chain(config.more.iter().cloned());
    let config = fimble_openapi::Config {
        name: Some("kubernetes".to_owned()),
        base_url: Some(access.server),
        credential: access.credential,
        tls: access.tls,
        filter: Filter { include: include.collect(), ..Filter::default() },
        names: usual::OPERATIONS.iter().map(|(id, name)| ((*id).to_owned(), (*name).to_owned())).collect(),
        hidden: usual::HIDDEN.map(str::to_owned).to_vec(),
        limits: Limits { schema_depth: LEVELS, schema_nodes: SCHEMAS, ..Limits::default() },
        ..fimble_openapi::Config::default()
    };
    fimble_openapi::load(Source::of(&document), config).await
}
