//! Which of the shipped toolkits there are and how they are set, `[toolkits]`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toml::Table;

use super::{A2a, OpenApi};
use crate::gate::Views;
use crate::registry::{Limits, View};

/// The shipped toolkits. Those with a table of their own are off until it is there: what nobody asked for does not stand in a
/// prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Toolkits {
    /// Folders that `git_toolkit` and `files_toolkit` may read. Default: the current folder.
    pub roots: Vec<PathBuf>,
    /// Folders of manifests, see `toolkits/machine.toml`. Default none.
    pub manifests: Vec<PathBuf>,
    /// Files of MCP servers in the `mcpServers` form. Default none.
    pub mcp: Vec<PathBuf>,
    /// OpenAPI documents. Default none.
    pub openapi: Vec<OpenApi>,
    /// A2A agents. Default none.
    pub a2a: Vec<A2a>,
    /// Seconds that a message waits for servers, documents and agents that nobody has heard of yet; what answers later is there
    /// at the next message. Default 10.
    pub patience_s: u32,
    /// Seconds for which one of those that failed is left alone before it is tried again; twice as long each time, up to a
    /// minute. Default 1.
    pub retry_s: f64,
    /// Files of each folder of `manifests`; those after them by name are told and passed over. Default 500.
    pub folder_files: usize,
    /// KiB at a file's head in which a change is seen while sessions run. Default 1,024.
    pub file_kib: u64,
    /// Seconds that an MCP server's program may take to end after its input was closed, and again after `SIGTERM`; then it is
    /// killed. Default 2.
    pub mcp_stop_s: f64,
    /// Toolkits by name that programs do not see. Default none.
    pub disabled: Vec<String>,
    /// False switches off all toolkits that are compiled in. Default true.
    pub declared: bool,
    /// False switches off all toolkits that are learnt at run time: files, MCP servers, documents, agents. Default true.
    pub dynamic: bool,
    /// What of the toolkits everybody's programs see. Default all.
    pub view: View,
    /// What of that is left to a tenant, by name; the command line is `local`. Default all.
    pub tenants: BTreeMap<String, View>,
    /// What of that is left to the sessions of this process, `--only`. Not written.
    #[serde(skip)]
    pub session: View,
    /// `prometheus_toolkit`; there if it has a `url`.
    pub prometheus: fimble_prometheus::Config,
    /// `postgres_toolkit`; there if it has a `url`.
    pub postgres: fimble_postgres::Config,
    /// `redis_toolkit`; there if it has a `url`.
    pub redis: fimble_redis::Config,
    /// `http_toolkit`; there if its table is, which may be empty.
    pub http: Option<fimble_http::Config>,
    /// `shell_toolkit`; there if its table is, which may be empty. Without `roots` of its own it has those above.
    pub shell: Option<fimble_shell::Config>,
    /// `kubernetes_toolkit`; there if its table is, which may be empty.
    pub kubernetes: Option<fimble_kubernetes::Config>,
    /// `nginx_toolkit`; there if its table is.
    pub nginx: Option<On>,
    /// `systemd_toolkit`; there if its table is.
    pub systemd: Option<On>,
    /// `card_toolkit`; there if its table is.
    pub card: Option<On>,
}

/// An empty table, which switches something on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct On {}

impl Default for Toolkits {
    fn default() -> Self {
        Self {
            roots: vec![PathBuf::from(".")],
            manifests: Vec::new(),
            mcp: Vec::new(),
            openapi: Vec::new(),
            a2a: Vec::new(),
            patience_s: 10,
            retry_s: 1.0,
            folder_files: 500,
            file_kib: 1_024,
            mcp_stop_s: 2.0,
            disabled: Vec::new(),
            declared: true,
            dynamic: true,
            view: View::default(),
            tenants: BTreeMap::new(),
            session: View::default(),
            prometheus: fimble_prometheus::Config::default(),
            postgres: fimble_postgres::Config::default(),
            redis: fimble_redis::Config::default(),
            http: None,
            shell: None,
            kubernetes: None,
            nginx: None,
            systemd: None,
            card: None,
        }
    }
}

impl Toolkits {
    /// Who sees what.
    pub fn views(&self) -> Views {
        let mut all = self.view.clone();
        all.without.extend(self.disabled.iter().cloned());
        Views { all, tenants: self.tenants.clone() }
    }

    /// How much of the folders is looked at, and how long servers, documents and agents are waited for.
    pub fn limits(&self) -> Limits {
        let default = Limits::default();
        Limits {
            files: self.folder_files,
            bytes: self.file_kib.saturating_mul(1_024),
            patience: Duration::from_secs(self.patience_s.into()),
            rest: Duration::try_from_secs_f64(self.retry_s).unwrap_or(default.rest),
        }
    }

    /// The values of the secrets that `http_toolkit` sends, by name, as far as their environment variables are set.
    pub fn http_secrets(&self) -> BTreeMap<String, String> {
        let variables = self.http.iter().flat_map(fimble_http::Config::variables);
        variables.filter_map(|(name, variable)| Some((name, fimble_toolkit::named_value(&variable)?))).collect()
    }

    /// What of these settings no output may show.
    pub fn secrets(&self) -> Vec<String> {
        let own = [self.prometheus.secrets(), self.postgres.secrets(), self.redis.secrets()];
        own.into_iter().flatten().chain(self.http_secrets().into_values()).collect()
    }
}

/// The server of `prometheus_toolkit` that a table names.
pub(super) fn prometheus_url(table: &Table) -> Option<String> {
    Some(table.get("toolkits")?.get("prometheus")?.get("url")?.as_str()?.to_owned())
}

/// Takes the token away from a server that only the project names: it is meant for the user's.
pub(super) fn remove_token(merged: &mut Table) {
    let own = merged.get_mut("toolkits").and_then(|table| table.get_mut("prometheus")?.as_table_mut());
    if let Some(own) = own {
        own.remove("token_env");
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, Sources};

    #[test]
    fn a_toolkit_is_there_if_it_was_asked_for_and_a_project_gets_no_token() {
        let folder = tempfile::tempdir().unwrap();
        let written = |name: &str, text: &str| {
            let file = folder.path().join(name);
            std::fs::write(&file, text).unwrap();
            Some(file)
        };
        let read = |user: &str, project: &str| {
            Config::read(&Sources {
                user_file: written("user.toml", user),
                project_file: written("project.toml", project),
                ..Sources::default()
            })
        };
        let none = read("", "").unwrap().toolkits;
        assert!(none.http.is_none() && none.shell.is_none() && none.nginx.is_none() && none.prometheus.url.is_empty());
        let own =
            "[toolkits.prometheus]\nurl = 'http://own'\ntoken_env = 'TOKEN'\n[toolkits.shell]\n[toolkits.nginx]\n";
        let mine = read(own, "").unwrap().toolkits;
        assert_eq!(
            (mine.prometheus.token_env.as_deref(), mine.shell),
            (Some("TOKEN"), Some(fimble_shell::Config::default()))
        );
        let theirs = read(own, "[toolkits.prometheus]\nurl = 'http://theirs'\n").unwrap().toolkits.prometheus;
        assert_eq!((theirs.url.as_str(), theirs.token_env), ("http://theirs", None));
        let same = read(own, "[toolkits.prometheus]\nmost = 7\n").unwrap().toolkits.prometheus;
        assert_eq!((same.most, same.token_env.as_deref()), (7, Some("TOKEN")));
        let environment = vec![("FIMBLE_TOOLKITS__PROMETHEUS__TOKEN_ENV".into(), "TOKEN".into())];
        let project_file = written("project.toml", "[toolkits.prometheus]\nurl = 'http://theirs'\n");
        let theirs = Config::read(&Sources { project_file, environment, ..Sources::default() }).unwrap();
        assert_eq!(theirs.toolkits.prometheus.token_env, None);
        for table in ["shell", "http", "postgres", "redis", "kubernetes", "nginx", "systemd"] {
            let error = read("", &format!("[toolkits.{table}]\n")).unwrap_err();
            assert!(error.message.starts_with(&format!("a project may not set `toolkits.{table}`")), "{error}");
        }
        let error = read("", "[toolkits.prometheus]\ntoken_env = 'HOME'\n").unwrap_err();
        assert!(error.message.starts_with("a project may not set `toolkits.prometheus.token_env`"), "{error}");
        let error = read("[toolkits.shell]\nroot = '/'\n", "").unwrap_err();
        assert!(error.message.contains("unknown field `root`"), "{error}");
    }
}
