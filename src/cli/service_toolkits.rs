//! Toolkits that are services elsewhere: OpenAPI documents and A2A agents. One that cannot be used is told on standard
//! error and left out.

use std::collections::BTreeMap;
use std::sync::Arc;

use fimble_openapi::{Credential, Filter, Secret, Source};
use fimble_toolkit::{Toolkit, named_value};
use futures_util::future::join_all;

use crate::config::{A2a, Config, OpenApi};

/// Most problems of one document that are told.
const TOLD_PROBLEMS: usize = 3;

/// The toolkits of the configured documents and agents, fetched side by side.
pub(super) async fn load(config: &Config) -> Vec<Arc<dyn Toolkit>> {
    let documents = join_all(config.toolkits.openapi.iter().map(document)).await;
    let agents = join_all(config.toolkits.a2a.iter().map(agent)).await;
    documents.into_iter().chain(agents).flatten().collect()
}

/// The secrets of the configured services.
pub(super) fn secrets(config: &Config) -> impl Iterator<Item = String> {
    let documents = config.toolkits.openapi.iter().flat_map(OpenApi::secrets);
    let agents = config.toolkits.a2a.iter().flat_map(A2a::secrets);
    documents.chain(agents).filter_map(|name| named_value(name))
}

async fn document(written: &OpenApi) -> Option<Arc<dyn Toolkit>> {
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
    match fimble_openapi::load(Source::of(&written.document), config).await {
        Ok(loaded) => {
            for problem in loaded.problems.iter().take(TOLD_PROBLEMS) {
                note!("warning: {}: {problem}", written.document);
            }
            if let Some(more) = loaded.problems.len().checked_sub(TOLD_PROBLEMS).filter(|more| *more > 0) {
                note!("warning: {}: {more} more problems", written.document);
            }
            Some(loaded.toolkit)
        }
        Err(error) => {
            note!("warning: {error}\n\nhint: {}", error.hint());
            None
        }
    }
}

async fn agent(written: &A2a) -> Option<Arc<dyn Toolkit>> {
    let token = match &written.token {
        Some(name) => Some(value(name, &written.url)?),
        None => None,
    };
    let mut headers = BTreeMap::new();
    for (header, name) in &written.headers {
        headers.insert(header.clone(), value(name, &written.url)?);
    }
    let agent = fimble_a2a::Agent { name: written.name.clone(), url: written.url.clone(), token, headers };
    match fimble_a2a::connect(agent, fimble_a2a::Limits::default()).await {
        Ok(toolkit) => Some(toolkit),
        Err(error) => {
            note!("warning: {error}\n\nhint: {}", error.hint());
            None
        }
    }
}

/// The value of a secret or an environment variable. `None` is told: without its secret a service is of no use.
fn value(name: &str, service: &str) -> Option<String> {
    let value = named_value(name).filter(|value| !value.trim().is_empty());
    if value.is_none() {
        note!(
            "warning: {service} is left out: there is no secret and no environment variable `{name}`\n\nhint: `fimble secrets set {name}` keeps it, or set the variable"
        );
    }
    value
}
