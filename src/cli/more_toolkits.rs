//! Toolkits that the command line or the configuration adds to the shipped ones: manifests, MCP servers, OpenAPI documents and
//! A2A agents.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use fimble_toolkit::Toolkit;
use futures_util::future::join_all;

use super::toolkit_files::{self, Named};
use super::{Failure, service_toolkits};
use crate::config::{A2a, Config, OpenApi, folders};

/// Where further toolkits come from.
#[derive(Debug, Args)]
pub(super) struct MoreToolkits {
    /// Add the toolkits that the `*.toml` files in this folder describe.
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
    /// Let programs see only these toolkits or operations: `git_toolkit`, `files_toolkit.read*`.
    #[arg(long = "only", value_name = "PATTERN", global = true)]
    only: Vec<String>,
}

impl MoreToolkits {
    /// Adds them to what the configuration names.
    pub(super) fn add_to(&self, config: &mut Config) {
        config.toolkits.manifests.extend(self.folders.iter().cloned());
        config.toolkits.session.only.extend(self.only.iter().cloned());
        config.toolkits.mcp.extend(self.servers.iter().cloned());
        let document = |document: &String| OpenApi { document: document.clone(), ..OpenApi::default() };
        config.toolkits.openapi.extend(self.documents.iter().map(document));
        config.toolkits.a2a.extend(self.agents.iter().map(|url| A2a { url: url.clone(), ..A2a::default() }));
    }

    /// What `--mcp` names last.
    pub(super) fn server(&self) -> Option<String> {
        self.servers.last().map(|server| server.display().to_string())
    }

    /// What `--openapi` names last.
    pub(super) fn document(&self) -> Option<String> {
        self.documents.last().cloned()
    }
}

/// The configured MCP servers that are switched on. Each gets a toolkit name that is none of `taken` and no other's.
///
/// # Errors
/// A file of servers that cannot be read.
pub(super) fn servers(config: &Config, taken: &[String]) -> Result<Vec<Named>, Failure> {
    let mut servers: Vec<Named> = Vec::new();
    for file in &config.toolkits.mcp {
        for mut named in servers_in(file)? {
            let own = named.server.toolkit_name();
            let base = own.trim_end_matches("_toolkit");
            let numbered = (2_u32..).map(|number| format!("{base}_mcp_{number}_toolkit"));
            let mut names = [own.clone(), format!("{base}_mcp_toolkit")].into_iter().chain(numbered);
            let is_free = |name: &String| {
                !taken.contains(name) && servers.iter().all(|known| known.server.toolkit_name() != *name)
            };
            named.server.toolkit = Some(names.find(is_free).unwrap_or(own));
            servers.push(named);
        }
    }
    Ok(servers)
}

/// The servers of an `mcpServers` file that are switched on. What is not known in it is told on standard error.
///
/// # Errors
/// It cannot be read.
pub(super) fn servers_in(file: &Path) -> Result<impl Iterator<Item = Named>, Failure> {
    let read = fimble_mcp::read(file).map_err(|error| Failure::usage(error.to_string()).with_hint(error.hint()))?;
    read.warnings.iter().for_each(|warning| note!("warning: {warning}"));
    let file = file.to_owned();
    Ok(read.servers.into_iter().filter(|server| !server.disabled).map(move |mut server| {
        let (name, place) = (toolkit_files::word(&server.name), toolkit_files::word(&toolkit_files::absolute(&file)));
        server.login = Some(format!("fimble toolkits login {name} --mcp {place}"));
        Named { server, file: file.clone() }
    }))
}

/// What all MCP servers share.
pub(super) fn server_settings() -> fimble_mcp::Settings {
    let folders = folders();
    fimble_mcp::Settings {
        cache: folders.as_ref().map(|folders| folders.cache.join("mcp")),
        tokens: folders.map(|folders| folders.data.join("mcp")),
        ..fimble_mcp::Settings::default()
    }
}

/// The toolkits of the configured servers, documents and agents. One that cannot be used is told on standard error and
/// left out; servers start side by side. `taken` are the names of the toolkits that are there already.
///
/// # Errors
/// A file of servers that cannot be read.
pub(super) async fn load(config: &Config, taken: &[String]) -> Result<Vec<Arc<dyn Toolkit>>, Failure> {
    let mut toolkits = Vec::new();
    let settings = server_settings();
    let started = servers(config, taken)?.into_iter().map(|named| fimble_mcp::connect(named.server, settings.clone()));
    for connected in join_all(started).await {
        match connected {
            Ok(toolkit) => toolkits.push(toolkit),
            Err(error) => note!("warning: {error}\n\nhint: {}", error.hint()),
        }
    }
    toolkits.extend(service_toolkits::load(config).await);
    Ok(toolkits)
}
