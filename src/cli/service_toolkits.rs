//! Toolkits that are services elsewhere: OpenAPI documents, a Kubernetes cluster, and A2A agents. One that cannot be used is told on standard
//! error and left out.

use std::collections::BTreeMap;
use std::sync::Arc;

use fimble_openapi::{Credential, Filter, Secret, Source};
use fimble_toolkit::{Toolkit, named_value};
use futures_util::future::join_all;

use super::Failure;
use crate::config::{A2a, Config, OpenApi};

/// Most problems of one document that are told.
const TOLD_PROBLEMS: usize = 3;

/// A toolkit, and what is to be told of it.
pub(super) struct Loaded {
    pub(super) toolkit: Arc<dyn Toolkit>,
    pub(super) warnings: Vec<String>,
}

/// The toolkits of the configured documents, cluster and agents, the documents and agents fetched side by side.
pub(super) async fn load(config: &Config) -> Vec<Arc<dyn Toolkit>> {
    let documents = join_all(config.toolkits.openapi.iter().map(document)).await;
    let agents = join_all(config.toolkits.a2a.iter().map(agent)).await;
    let cluster = match &config.toolkits.kubernetes {
        Some(kubernetes) => Some(cluster(kubernetes).await),
        None => None,
    };
    documents.into_iter().chain(cluster).chain(agents).filter_map(told).collect()
}

fn told(loaded: Result<Loaded, Failure>) -> Option<Arc<dyn Toolkit>> {
    match loaded {
        Ok(Loaded { toolkit, warnings }) => {
            warnings.iter().for_each(|warning| note!("warning: {warning}"));
            Some(toolkit)
        }
        Err(failure) => {
            note!("warning: {}\n\nhint: {}", failure.message, failure.hint.unwrap_or_default());
            None
        }
    }
}

/// The secrets of the configured services.
pub(super) fn secrets(config: &Config) -> impl Iterator<Item = String> {
    let documents = config.toolkits.openapi.iter().flat_map(OpenApi::secrets);
    let agents = config.toolkits.a2a.iter().flat_map(A2a::secrets);
    let cluster = config.toolkits.kubernetes.iter().filter_map(|kubernetes| kubernetes.token.as_ref());
    documents.chain(agents).chain(cluster).filter_map(|name| named_value(name))
}

/// The toolkit of an OpenAPI document.
///
/// # Errors
/// A secret that is not there, or a document that cannot be used.
pub(super) async fn document(written: &OpenApi) -> Result<Loaded, Failure> {
    let secret = |name: &String| value(name, &written.document).map(Secret::new);
    let credential = match &written.token {
        Some(name) => Some(Credential::Token(secret(name)?)),
        None => None,
    };
    let mut credentials = BTreeMap::new();
    for (scheme, name) in &written.credentials {
        credentials.insert(scheme.clone(), Credential::Token(secret(name)?));
    }
    let mut headers = BTreeMap::new();
    for (header, name) in &written.headers {
        headers.insert(header.clone(), secret(name)?);
    }
    let filter =
        Filter { tags: written.tags.clone(), include: written.include.clone(), exclude: written.exclude.clone() };
    let config = fimble_openapi::Config {
        name: written.name.clone(),
        base_url: written.base_url.clone(),
        server_variables: written.variables.clone(),
        credentials,
        credential,
        headers,
        filter,
        risks: written.risks.clone(),
        ..fimble_openapi::Config::default()
    };
    let loaded = fimble_openapi::load(Source::of(&written.document), config).await;
    used(loaded, &written.document)
}

/// The toolkit of a Kubernetes cluster.
///
/// # Errors
/// No access to it that can be used, or a server that does not give its document.
async fn cluster(written: &fimble_kubernetes::Config) -> Result<Loaded, Failure> {
    used(fimble_kubernetes::load(written).await, "kubernetes_toolkit").map_err(|failure| Failure {
        message: format!("kubernetes_toolkit is left out: {}", failure.message),
        ..failure
    })
}

fn used(loaded: Result<fimble_openapi::Loaded, fimble_openapi::Error>, source: &str) -> Result<Loaded, Failure> {
    let loaded = loaded.map_err(|error| Failure::new(5, error.to_string()).with_hint(error.hint()))?;
    let told = loaded.problems.iter().take(TOLD_PROBLEMS);
    let mut warnings: Vec<String> = told.map(|problem| format!("{source}: {problem}")).collect();
    if let Some(more) = loaded.problems.len().checked_sub(TOLD_PROBLEMS).filter(|more| *more > 0) {
        warnings.push(format!("{source}: {more} more problems"));
    }
    Ok(Loaded { toolkit: loaded.toolkit, warnings })
}

/// The toolkit of an A2A agent.
///
/// # Errors
/// A secret that is not there, or an agent that does not answer.
pub(super) async fn agent(written: &A2a) -> Result<Loaded, Failure> {
    let token = match &written.token {
        Some(name) => Some(value(name, &written.url)?),
        None => None,
    };
    let mut headers = BTreeMap::new();
    for (header, name) in &written.headers {
        headers.insert(header.clone(), value(name, &written.url)?);
    }
    let agent = fimble_a2a::Agent { name: written.name.clone(), url: written.url.clone(), token, headers };
    let connected = fimble_a2a::connect(agent, fimble_a2a::Limits::default()).await;
    let toolkit = connected.map_err(|error| Failure::new(5, error.to_string()).with_hint(error.hint()))?;
    Ok(Loaded { toolkit, warnings: Vec::new() })
}

/// The value of a secret or an environment variable: without its secret a service is of no use.
fn value(name: &str, service: &str) -> Result<String, Failure> {
    named_value(name).filter(|value| !value.trim().is_empty()).ok_or_else(|| {
        Failure::usage(format!("{service} is left out: there is no secret and no environment variable `{name}`"))
            .with_hint(format!("`fimble secrets set {name}` keeps it, or set the variable"))
    })
}
