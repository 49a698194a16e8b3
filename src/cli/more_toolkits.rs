//! Toolkits that the command line or the configuration adds to the shipped ones: manifests, MCP servers, OpenAPI documents, a
//! Kubernetes cluster and A2A agents.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use fimble_mcp::Server;
use fimble_toolkit::{Toolkit, named_value, python_name};

use super::service_toolkits::Loaded;
use super::toolkit_files::{self, Named};
use super::{Failure, output, service_toolkits};
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
pub(super) fn server_settings(config: &Config) -> fimble_mcp::Settings {
    let folders = folders();
    // Whoever reads toolkits waits no longer than `toolkits.patience_s`.
    let default = fimble_mcp::Limits::default();
    let stop = Duration::try_from_secs_f64(config.toolkits.mcp_stop_s).unwrap_or(default.stop);
    let limits = fimble_mcp::Limits { patience: NOBODY_WAITS, stop, ..default };
    fimble_mcp::Settings {
        limits,
        cache: folders.as_ref().map(|folders| folders.cache.join("mcp")),
        tokens: folders.map(|folders| folders.data.join("mcp")),
    }
}

/// Longer than a server is tried.
const NOBODY_WAITS: Duration = Duration::from_secs(3_600);

/// What the settings name that is not on this side of the process: a server, a document, a cluster or an agent.
pub(super) enum Service {
    /// An MCP server.
    Mcp(Box<Server>),
    /// An OpenAPI document.
    Document(Box<OpenApi>),
    /// A Kubernetes cluster.
    Cluster(Box<fimble_kubernetes::Config>),
    /// An A2A agent.
    Agent(A2a),
}

impl Service {
    /// All that the settings name. `taken` are the names of the toolkits that are there already.
    ///
    /// # Errors
    /// A file of servers that cannot be read.
    pub(super) fn all(config: &Config, taken: &[String]) -> Result<Vec<Self>, Failure> {
        let servers = servers(config, taken)?.into_iter().map(|named| Self::Mcp(Box::new(named.server)));
        let documents = config.toolkits.openapi.iter().map(|document| Self::Document(Box::new(document.clone())));
        let cluster = config.toolkits.kubernetes.iter().map(|cluster| Self::Cluster(Box::new(cluster.clone())));
        let agents = config.toolkits.a2a.iter().cloned().map(Self::Agent);
        Ok(servers.chain(documents).chain(cluster).chain(agents).collect())
    }

    /// What it is called in messages.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Mcp(server) => format!("the MCP server `{}`", server.name),
            Self::Document(document) => document.document.clone(),
            Self::Cluster(_) => "the Kubernetes cluster".to_owned(),
            Self::Agent(agent) => format!("the agent at {}", agent.url),
        }
    }

    /// What programs will call it by, if that is known before it is asked.
    pub(super) fn expected(&self) -> Option<String> {
        let named = |name: &String, other| format!("{}_toolkit", python_name(name, other).trim_end_matches('_'));
        match self {
            Self::Mcp(server) => Some(server.toolkit_name()),
            Self::Document(document) => document.name.as_ref().map(|name| named(&name.to_lowercase(), "api")),
            Self::Cluster(_) => Some("kubernetes_toolkit".to_owned()),
            Self::Agent(agent) => Some(&agent.name).filter(|name| !name.is_empty()).map(|name| named(name, "agent")),
        }
    }

    /// What of its settings no output may show.
    pub(super) fn secrets(&self) -> Vec<String> {
        let named = |names: Vec<&String>| names.into_iter().filter_map(|name| named_value(name)).collect();
        match self {
            Self::Mcp(server) => server.secrets(),
            Self::Document(document) => named(document.secrets().collect()),
            Self::Cluster(cluster) => named(cluster.token.iter().collect()),
            Self::Agent(agent) => named(agent.secrets().collect()),
        }
    }

    /// Its toolkit; `servers` is for those of MCP. From here on no output shows its secrets.
    ///
    /// # Errors
    /// Why it cannot be used; of [code 5](Failure) if that may pass.
    pub(super) async fn load(&self, servers: &fimble_mcp::Settings) -> Result<Loaded, Failure> {
        output::hidden().add(self.secrets());
        match self {
            Self::Mcp(server) => {
                Ok(Loaded { toolkit: connected(server.as_ref().clone(), servers.clone()).await?, warnings: Vec::new() })
            }
            Self::Document(document) => service_toolkits::document(document).await,
            Self::Cluster(cluster) => service_toolkits::cluster(cluster).await,
            Self::Agent(agent) => service_toolkits::agent(agent).await,
        }
    }
}

async fn connected(server: Server, settings: fimble_mcp::Settings) -> Result<Arc<dyn Toolkit>, Failure> {
    fimble_mcp::connect(server, settings).await.map_err(|error| {
        let code =
            if matches!(error, fimble_mcp::Error::Disabled(_) | fimble_mcp::Error::Variable { .. }) { 2 } else { 5 };
        Failure::new(code, error.to_string()).with_hint(error.hint())
    })
}
