//! Toolkits that are services elsewhere: OpenAPI documents, a Kubernetes cluster, and A2A agents.

use std::collections::BTreeMap;
use std::sync::Arc;

use fimble_openapi::{Credential, Filter, Secret, Source};
use fimble_toolkit::{Toolkit, named_value};

use super::Failure;
use crate::config::{A2a, OpenApi};

/// Most problems of one document that are told.
const TOLD_PROBLEMS: usize = 3;

/// A toolkit, and what is to be told of it.
pub(super) struct Loaded {
    pub(super) toolkit: Arc<dyn Toolkit>,
    pub(super) warnings: Vec<String>,
}

impl Loaded {
    /// With these told before its own.
    pub(super) fn warned(mut self, mut warnings: Vec<String>) -> Self {
        warnings.append(&mut self.warnings);
        Self { warnings, ..self }
    }
}

/// The toolkit of an OpenAPI document.
///
/// # Errors
/// A secret that is not there, or a document that cannot be used.
pub(super) async fn document(written: &OpenApi) -> Result<Loaded, Failure> {
    let loaded = fimble_openapi::load(Source::of(&written.document), document_settings(written)?).await;
    used(loaded, &written.document)
}

/// The toolkit of a Kubernetes cluster.
///
/// # Errors
/// No access to it that can be used, or a server that does not give its document.
pub(super) async fn cluster(written: &fimble_kubernetes::Config) -> Result<Loaded, Failure> {
    used(fimble_kubernetes::load(written).await, "kubernetes_toolkit").map_err(|failure| Failure {
        message: format!("kubernetes_toolkit is left out: {}", failure.message),
        ..failure
    })
}

fn used(loaded: Result<fimble_openapi::Loaded, fimble_openapi::Error>, source: &str) -> Result<Loaded, Failure> {
    let loaded = loaded.map_err(|error| {
        // A wrong setting does not pass by itself.
        let code = if matches!(error, fimble_openapi::Error::Setting { .. }) { 2 } else { 5 };
        Failure::new(code, error.to_string()).with_hint(error.hint())
    })?;
    let told = loaded.problems.iter().take(TOLD_PROBLEMS);
    let mut warnings: Vec<String> = told.map(|problem| format!("{source}: {problem}")).collect();
    if let Some(more) = loaded.problems.len().checked_sub(TOLD_PROBLEMS).filter(|more| *more > 0) {
        warnings.push(format!("{source}: {more} more problems"));
    }
    Ok(Loaded { toolkit: loaded.toolkit, warnings })
}

/// How a document is read.
///
/// # Errors
/// A secret that is not there.
pub(super) fn document_settings(written: &OpenApi) -> Result<fimble_openapi::Config, Failure> {
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
    Ok(fimble_openapi::Config {
        name: written.name.clone(),
        base_url: written.base_url.clone(),
        server_variables: written.variables.clone(),
        credentials,
        credential,
        headers,
        filter,
        risks: written.risks.clone(),
        ..fimble_openapi::Config::default()
    })
}

/// The toolkit of an A2A agent.
///
/// # Errors
/// A secret that is not there, or an agent that does not answer.
pub(super) async fn agent(written: &A2a) -> Result<Loaded, Failure> {
    let connected = fimble_a2a::connect(agent_settings(written)?, fimble_a2a::Limits::default()).await;
    let toolkit = connected.map_err(|error| Failure::new(5, error.to_string()).with_hint(error.hint()))?;
    Ok(Loaded { toolkit, warnings: Vec::new() })
}

/// Where an agent is.
///
/// # Errors
/// A secret that is not there.
pub(super) fn agent_settings(written: &A2a) -> Result<fimble_a2a::Agent, Failure> {
    let token = match &written.token {
        Some(name) => Some(value(name, &written.url)?),
        None => None,
    };
    let mut headers = BTreeMap::new();
    for (header, name) in &written.headers {
        headers.insert(header.clone(), value(name, &written.url)?);
    }
    Ok(fimble_a2a::Agent { name: written.name.clone(), url: written.url.clone(), token, headers })
}

/// True if there is such a secret or environment variable.
pub(super) fn is_there(name: &str) -> bool {
    named_value(name).is_some_and(|value| !value.trim().is_empty())
}

/// The value of a secret or an environment variable: without its secret a service is of no use.
fn value(name: &str, service: &str) -> Result<String, Failure> {
    named_value(name).filter(|value| !value.trim().is_empty()).ok_or_else(|| {
        Failure::usage(format!("{service} is left out: there is no secret and no environment variable `{name}`"))
            .with_hint(format!("`fimble secrets set {name}` keeps it, or set the variable"))
    })
}
