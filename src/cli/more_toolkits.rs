//! Toolkits that the command line or the configuration adds to the shipped ones: manifests, MCP servers, OpenAPI documents and
//! A2A agents.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use fimble_toolkit::Toolkit;
use futures_util::future::join_all;

use super::{Failure, service_toolkits};

use crate::config::{A2a, Config, OpenApi};

/// Where further toolkits come from.
#[derive(Debug, Args)]
pub(super) struct MoreToolkits {
    /// Add the toolkits that the `*.toml` manifests in this folder describe.
    #[arg(long = "toolkits", value_name = "DIR", global = true)]
    folders: Vec<PathBuf>,
    /// Add the MCP servers of this `mcpServers` JSON file.
    #[arg(long = "mcp", value_name = "FILE", global = true)]
    servers: Vec<PathBuf>,
    /// Add the API of this OpenAPI document.
    #[arg(long = "openapi", value_name = "FILE|URL", global = true)]
    documents: Vec<String>,
    /// Add the A2A agent at this address.
    #[arg(long = "a2a", value_name = "URL", global = true)]
    agents: Vec<String>,
}

impl MoreToolkits {
    /// Adds them to what the configuration names.
    pub(super) fn add_to(&self, config: &mut Config) {
        config.toolkits.manifests.extend(self.folders.iter().cloned());
        config.toolkits.mcp.extend(self.servers.iter().cloned());
        let document = |document: &String| OpenApi { document: document.clone(), ..OpenApi::default() };
        config.toolkits.openapi.extend(self.documents.iter().map(document));
        config.toolkits.a2a.extend(self.agents.iter().map(|url| A2a { url: url.clone(), ..A2a::default() }));
    }
}

/// The toolkits of the configured manifests, servers, documents and agents. One that cannot be used is told on standard error and left out;
/// servers start side by side.
///
/// # Errors
/// A file of servers that cannot be read.
pub(super) async fn load(config: &Config) -> Result<Vec<Arc<dyn Toolkit>>, Failure> {
    let mut toolkits = Vec::new();
    for folder in &config.toolkits.manifests {
        let loaded = fimble_manifest::load(folder);
        for problem in loaded.problems {
            let hint = problem.hint.as_ref().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
            note!("warning: {problem}{hint}");
        }
        toolkits.extend(loaded.toolkits);
    }
    let mut servers = Vec::new();
    for file in &config.toolkits.mcp {
        let read = fimble_mcp::read(file).map_err(|error| Failure::usage(error.to_string()).with_hint(error.hint()))?;
        servers.extend(read.into_iter().filter(|server| !server.disabled));
    }
    let started = servers.into_iter().map(|server| fimble_mcp::connect(server, fimble_mcp::Limits::default()));
    for connected in join_all(started).await {
        match connected {
            Ok(toolkit) => toolkits.push(toolkit),
            Err(error) => note!("warning: {error}\n\nhint: {}", error.hint()),
        }
    }
    toolkits.extend(service_toolkits::load(config).await);
    Ok(toolkits)
}
