//! The shipped toolkits that are there only when the configuration has them.

use std::path::Path;
use std::sync::Arc;

use fimble_http::Http;
use fimble_manifest::Manifest;
use fimble_postgres::Postgres;
use fimble_prometheus::Prometheus;
use fimble_redis::Redis;
use fimble_shell::Shell;
use fimble_toolkit::{ToolError, Toolkit, named_value};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::{Failure, output};
use crate::config::Config;

/// The configured ones. None of them connects to anything yet. `here` is what relative folders start at.
///
/// # Errors
/// A setting that makes no sense.
pub(super) fn load(config: &Config, here: &Path) -> Result<Vec<Arc<dyn Toolkit>>, Failure> {
    let settings = &config.toolkits;
    let mut toolkits: Vec<Arc<dyn Toolkit>> = Vec::new();
    if !settings.prometheus.url.is_empty() {
        toolkits.push(Arc::new(Prometheus::new(settings.prometheus.clone()).map_err(wrong)?));
    }
    if !settings.postgres.url.is_empty() {
        let url = with_secrets(&settings.postgres.url, "toolkits.postgres.url")?;
        toolkits.push(Arc::new(
            Postgres::new(fimble_postgres::Config { url, ..settings.postgres.clone() }).map_err(wrong)?,
        ));
    }
    if !settings.redis.url.is_empty() {
        let url = with_secrets(&settings.redis.url, "toolkits.redis.url")?;
        toolkits.push(Arc::new(Redis::new(fimble_redis::Config { url, ..settings.redis.clone() }).map_err(wrong)?));
    }
    if let Some(http) = &settings.http {
        toolkits.push(Arc::new(Http::new(http.clone(), settings.http_secrets()).map_err(wrong)?));
    }
    if let Some(shell) = &settings.shell {
        let mut shell = shell.clone();
        if shell.roots.is_empty() {
            shell.roots.clone_from(&settings.roots);
        }
        shell.roots.iter_mut().for_each(|root| *root = here.join(&root));
        toolkits.push(Arc::new(Shell::new(shell).map_err(wrong)?));
    }
    let manifests = [
        (settings.nginx, "nginx.toml", include_str!("../../toolkits/nginx.toml")),
        (settings.systemd, "systemd.toml", include_str!("../../toolkits/systemd.toml")),
    ];
    for (_, name, text) in manifests.into_iter().filter(|(on, ..)| on.is_some()) {
        toolkits.push(Arc::new(Manifest::of_text(name, text).map_err(|problem| Failure::usage(problem.to_string()))?));
    }
    Ok(toolkits)
}

/// The address with the host's value in place of each `${NAME}`, encoded for an address. No output shows these values.
///
/// # Errors
/// A name without value.
fn with_secrets(url: &str, setting: &str) -> Result<String, Failure> {
    let (mut whole, mut rest) = (String::new(), url);
    while let Some((before, behind)) = rest.split_once("${") {
        let Some((name, after)) = behind.split_once('}') else { break };
        let value = named_value(name).ok_or_else(|| {
            Failure::usage(format!("`{setting}` names the secret `{name}`, which has no value"))
                .with_hint(format!("`fimble secrets set {name}` keeps it, or an environment variable of this name"))
        })?;
        whole.push_str(before);
        whole.extend(utf8_percent_encode(&value, NON_ALPHANUMERIC));
        output::hidden().add([value]);
        rest = after;
    }
    whole.push_str(rest);
    Ok(whole)
}

fn wrong(error: ToolError) -> Failure {
    let failure = Failure::usage(error.message);
    match error.hint {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}
