//! Every module's own settings, read once and handed down in parts.
//!
//! Sources, the first that names a value wins: flags, environment (`FIMBLE_…`, `OPENAI_API_KEY`, `OPENAI_BASE_URL`), the
//! project's `.fimble/config.toml`, the user's `$XDG_CONFIG_HOME/fimble/config.toml`, `REDIS_URL`, defaults. `REDIS_URL` comes
//! so late because many programs read it: any `store` that was meant for Fimble wins.

mod numbers;
mod place;
mod secrets;
mod services;
mod toolkits;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

pub use self::place::{Place, StorePlace};
pub use self::secrets::{SecretFile, SecretPlaces, is_secret_name};
pub use self::services::{A2a, OpenApi};
pub use self::toolkits::{On, Toolkits};
use crate::{agent, gate, interpreter, llm, program, prompt, session};

/// All settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where sessions are kept: a file (SQLite), or the URL of Redis: `redis://[user:password@]host[:port][/db]`,
    /// `rediss://…` (TLS), `redis+unix:///path`, `redis+cluster://host:port,host:port`,
    /// `redis+sentinel://host:port,host:port/master[/db]`. Empty is `$XDG_DATA_HOME/fimble/fimble.db`. Default: `REDIS_URL` of
    /// the environment, else empty.
    pub store: Place,
    /// Seconds for which Redis keeps a session after its last write, at least 1. Default none: for ever. A file keeps sessions
    /// until they are deleted, or `fimble store gc` finds that they are older.
    pub store_keep_s: Option<u64>,
    /// Replicas of Redis that must have a write before it counts as written. Default 0: a failover may lose the last writes.
    pub store_replicas: u32,
    /// Milliseconds for which one attempt waits for them, 1 to 60,000; then the write is asked again. Default 1,000.
    pub store_replicas_ms: Option<u64>,
    /// The model.
    pub llm: llm::Config,
    /// The jail and its limits.
    pub interpreter: interpreter::Config,
    /// The turn.
    pub agent: agent::Config,
    /// Policy and deadlines.
    pub gate: gate::Config,
    /// What a session keeps.
    pub session: session::Config,
    /// What a program may be.
    pub program: program::Config,
    /// What the model reads.
    pub prompt: prompt::Config,
    /// Where named secrets are kept.
    pub secrets: SecretPlaces,
    /// The shipped toolkits.
    pub toolkits: Toolkits,
}

/// What a project's file may not set: it comes with a folder that somebody else may have written, and these decide what
/// runs with the user's rights, what leaves the machine, and where things are kept.
const USER_ONLY: [&str; 40] = [
    "store",
    "store_keep_s",
    "store_replicas",
    "store_replicas_ms",
    "llm.api_key",
    "llm.base_url",
    "llm.local",
    "interpreter.executable",
    "interpreter.python_home",
    "interpreter.isolation",
    "interpreter.packages",
    "interpreter.packages_folder",
    "interpreter.uid",
    "interpreter.scratch_folder",
    "gate.policy",
    "gate.hooks",
    "gate.limits",
    "gate.locks",
    "gate.turn_s",
    "gate.lock_folder",
    "secrets",
    "gate.analysers",
    "toolkits.disabled",
    "toolkits.declared",
    "toolkits.dynamic",
    "toolkits.view",
    "toolkits.tenants",
    "toolkits.roots",
    "toolkits.manifests",
    "toolkits.mcp",
    "toolkits.prometheus.token_env",
    "toolkits.postgres",
    "toolkits.redis",
    "toolkits.http",
    "toolkits.shell",
    "toolkits.kubernetes",
    "toolkits.nginx",
    "toolkits.systemd",
    "toolkits.openapi",
    "toolkits.a2a",
];

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{origin}: {message}")]
pub struct ConfigError {
    /// The file, variable or flag.
    pub origin: String,
    /// What is wrong with it.
    pub message: String,
}

/// Where settings come from, apart from the defaults. [`Sources::of_process`] is the ordinary one.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The user's file; may be missing.
    pub user_file: Option<PathBuf>,
    /// The project's file; may be missing.
    pub project_file: Option<PathBuf>,
    /// Environment variables.
    pub environment: Vec<(OsString, OsString)>,
    /// `key.path=value` from the command line.
    pub flags: Vec<String>,
}

impl Sources {
    /// The user's file, the project's file in `folder` or the nearest folder above it, and this process's environment.
    pub fn of_process(folder: &Path, flags: Vec<String>) -> Self {
        Self {
            user_file: folders().map(|folders| folders.config.join("config.toml")),
            project_file: folder
                .ancestors()
                .map(|folder| folder.join(".fimble/config.toml"))
                .find(|file| file.is_file()),
            environment: std::env::vars_os().collect(),
            flags,
        }
    }
}

/// Fimble's folders by the XDG base directory specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// `$XDG_CONFIG_HOME/fimble`.
    pub config: PathBuf,
    /// `$XDG_DATA_HOME/fimble`.
    pub data: PathBuf,
    /// `$XDG_CACHE_HOME/fimble`.
    pub cache: PathBuf,
}

/// Fimble's folders; `None` if the user has no home.
pub fn folders() -> Option<Folders> {
    let base = etcetera::choose_base_strategy().ok()?;
    Some(Folders {
        config: base.config_dir().join("fimble"),
        data: base.data_dir().join("fimble"),
        cache: base.cache_dir().join("fimble"),
    })
}

/// Where processes of this user listen for `fimble ps`, the folder for a new one first: the session's runtime folder, then
/// the data folder, for those that were started without a session. Empty if the user has no home.
pub fn live_folders() -> Vec<PathBuf> {
    let user = nix::unistd::geteuid();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
    let runtime = runtime.map_or_else(|| PathBuf::from(format!("/run/user/{user}")), PathBuf::from);
    let runtime = Some(runtime).filter(|folder| folder.is_absolute() && folder.is_dir());
    let runtime = runtime.map(|folder| folder.join("fimble/live"));
    runtime.into_iter().chain(folders().map(|folders| folders.data.join("run"))).collect()
}

/// Where packages are kept: among the caches, for root where the user that programs run as may enter.
fn packages_folder() -> Option<PathBuf> {
    let is_named = std::env::var_os("XDG_CACHE_HOME").is_some_and(|folder| !folder.is_empty());
    if nix::unistd::geteuid().is_root() && !is_named {
        return Some(PathBuf::from("/var/cache/fimble/packages"));
    }
    folders().map(|folders| folders.cache.join("packages"))
}

impl Config {
    /// Reads and merges all sources.
    ///
    /// # Errors
    /// A file that is no TOML, an unknown key, or a value of the wrong type, each with its origin.
    pub fn read(sources: &Sources) -> Result<Self, ConfigError> {
        let mut merged = Table::new();
        let mut servers = (None, None);
        for file in [&sources.user_file, &sources.project_file].into_iter().flatten() {
            if let Some(table) = read_file(file)? {
                check(&table, &file.display().to_string())?;
                if Some(file) == sources.project_file.as_ref() {
                    check_project(&table, file)?;
                    servers = (toolkits::prometheus_url(&merged), toolkits::prometheus_url(&table));
                }
                merge(&mut merged, table);
            }
        }
        // Fimble's own names win over the borrowed ones.
        let mut environment: Vec<_> = sources.environment.iter().collect();
        environment.sort_by_key(|(name, _)| (name.to_string_lossy().starts_with("FIMBLE_"), name.clone()));
        for (name, value) in environment {
            let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
            if let Some(path) = environment_key(name).filter(|_| !value.is_empty()) {
                let table = nested(&path, literal(value, &path));
                check(&table, &format!("the environment variable `{name}`"))?;
                merge(&mut merged, table);
            }
        }
        for flag in &sources.flags {
            let (key, value) = flag.split_once('=').ok_or_else(|| ConfigError {
                origin: format!("the setting `{flag}`"),
                message: "it has no `=`\n\nhint: write `-c llm.model=NAME`".to_owned(),
            })?;
            let path: Vec<String> = key.split('.').map(str::to_owned).collect();
            let table = nested(&path, literal(value, &path));
            check(&table, &format!("the setting `{key}`"))?;
            merge(&mut merged, table);
        }
        let (own, project) = servers;
        if project.is_some() && project != own && project == toolkits::prometheus_url(&merged) {
            toolkits::remove_token(&mut merged);
        }
        if !merged.contains_key("store")
            && let Some(url) = place::redis_url(&sources.environment)?
        {
            merged.insert("store".to_owned(), Value::String(url));
        }
        let mut config = typed(merged, "the configuration")?;
        config.check_numbers()?;
        let packages = &mut config.interpreter.packages_folder;
        *packages = packages.take().or_else(packages_folder);
        let locks = &mut config.gate.lock_folder;
        *locks = locks.take().or_else(|| Some(folders()?.data.join("resources")));
        Ok(config)
    }
}

fn read_file(file: &Path) -> Result<Option<Table>, ConfigError> {
    let failed = |message: String| ConfigError { origin: file.display().to_string(), message };
    match std::fs::read_to_string(file) {
        Ok(text) => text.parse().map(Some).map_err(|error: toml::de::Error| failed(without_values(&error, &text))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// What is wrong and in which line. The line itself is not shown: it may hold a key.
fn without_values(error: &toml::de::Error, text: &str) -> String {
    let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    match line {
        Some(line) => format!("line {line}: {}", error.message()),
        None => error.message().to_owned(),
    }
}

/// Refuses what only the user may set.
fn check_project(table: &Table, file: &Path) -> Result<(), ConfigError> {
    let is_set = |key: &&&str| {
        let mut parts = key.split('.');
        let first = parts.next().and_then(|part| table.get(part));
        parts.try_fold(first, |value, part| value.map(|value| value.get(part))).flatten().is_some()
    };
    match USER_ONLY.iter().find(is_set) {
        None => Ok(()),
        Some(key) => Err(ConfigError {
            origin: file.display().to_string(),
            message: format!("a project may not set `{key}`\n\nhint: set it in your own configuration or by a flag"),
        }),
    }
}

/// Which setting an environment variable names: `FIMBLE_LLM__MODEL` is `llm.model`.
fn environment_key(name: &str) -> Option<Vec<String>> {
    let dotted = match name {
        "OPENAI_API_KEY" => "llm.api_key".to_owned(),
        "OPENAI_BASE_URL" => "llm.base_url".to_owned(),
        "REDIS_URL" => return None,
        _ => name.strip_prefix("FIMBLE_").filter(|rest| !rest.is_empty())?.to_lowercase().replace("__", "."),
    };
    Some(dotted.split('.').map(str::to_owned).collect())
}

/// The text as a TOML value if it is one, otherwise as a string. Keys, names and addresses are always strings.
fn literal(text: &str, path: &[String]) -> Value {
    let is_text = matches!(path.last().map(String::as_str), Some("api_key" | "model" | "base_url" | "store"));
    let parsed = format!("value = {text}").parse::<Table>().ok().and_then(|mut table| table.remove("value"));
    parsed.filter(|_| !is_text).unwrap_or_else(|| Value::String(text.to_owned()))
}

fn nested(path: &[String], value: Value) -> Table {
    let mut table = Table::new();
    match path {
        [] => {}
        [key] => {
            table.insert(key.clone(), value);
        }
        [key, rest @ ..] => {
            table.insert(key.clone(), Value::Table(nested(rest, value)));
        }
    }
    table
}

/// Lays `above` over `below`; tables are merged, everything else is replaced.
fn merge(below: &mut Table, above: Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge(below, above),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

/// Reads one source alone, so that an error names it.
fn check(table: &Table, origin: &str) -> Result<(), ConfigError> {
    typed(table.clone(), origin).map(|_| ())
}

fn typed(table: Table, origin: &str) -> Result<Config, ConfigError> {
    serde_path_to_error::deserialize(Value::Table(table)).map_err(|error| {
        let setting = error.path().to_string();
        let message = numbers::explained(&setting, error.inner().message());
        // Of a file it is not known yet which of its settings is meant.
        let name = format!("`{setting}`");
        let is_known = setting == "." || origin.contains(&name) || message.contains(&name);
        let message = if is_known { message } else { format!("{name}: {message}") };
        ConfigError { origin: origin.to_owned(), message }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(folder: &Path, name: &str, text: &str) -> PathBuf {
        let file = folder.join(name);
        std::fs::write(&file, text).unwrap();
        file
    }

    #[test]
    fn flags_win_over_environment_over_project_over_user() {
        let folder = tempfile::tempdir().unwrap();
        let user = "store = 'user'\n[agent]\nmax_rounds = 2\n[llm]\nmodel = 'user'\nbase_url = 'http://user'\n";
        let project = "[agent]\nmax_rounds = 3\n[llm]\nmodel = 'project'\n";
        let sources = Sources {
            user_file: Some(written(folder.path(), "user.toml", user)),
            project_file: Some(written(folder.path(), "project.toml", project)),
            environment: vec![("FIMBLE_AGENT__MAX_ROUNDS".into(), "4".into()), ("OPENAI_API_KEY".into(), "123".into())],
            flags: vec!["agent.max_rounds=5".to_owned()],
        };
        let config = Config::read(&sources).unwrap();
        assert_eq!(
            (
                config.store.reveal(),
                config.agent.max_rounds,
                config.llm.model.as_deref(),
                config.llm.base_url.as_deref()
            ),
            ("user", 5, Some("project"), Some("http://user"))
        );
    }

    #[test]
    fn redis_url_names_the_store_unless_anything_else_does() {
        let folder = tempfile::tempdir().unwrap();
        let file = written(folder.path(), "user.toml", "store = 'user.db'\n");
        let redis = ("REDIS_URL".into(), "redis://:secret@host/1".into());
        let own = ("FIMBLE_STORE".into(), "own.db".into());
        let store = |user_file: Option<&PathBuf>, environment: &[(OsString, OsString)], flags: &[&str]| {
            let flags = flags.iter().map(ToString::to_string).collect();
            let sources =
                Sources { user_file: user_file.cloned(), environment: environment.into(), flags, project_file: None };
            Config::read(&sources).unwrap().store
        };
        let alone = store(None, std::slice::from_ref(&redis), &[]);
        assert_eq!((alone.reveal(), format!("{alone:?}")), ("redis://:secret@host/1", "\"redis://host/1\"".to_owned()));
        assert_eq!(serde_json::to_value(&alone).unwrap(), "redis://host/1");
        assert_eq!(store(Some(&file), std::slice::from_ref(&redis), &[]).reveal(), "user.db");
        assert_eq!(store(None, &[redis.clone(), own], &[]).reveal(), "own.db");
        assert_eq!(store(None, &[redis], &["store="]).reveal(), "");
        let environment = vec![("REDIS_URL".into(), "secret@localhost:6379".into())];
        let error = Config::read(&Sources { environment, ..Sources::default() }).unwrap_err().to_string();
        assert!(error.starts_with("the environment variable `REDIS_URL`") && !error.contains("secret"), "{error}");
    }

    #[test]
    fn an_unknown_key_names_its_file_and_the_key() {
        let folder = tempfile::tempdir().unwrap();
        let file = written(folder.path(), "config.toml", "[agent]\nmax_round = 3\n");
        let error = Config::read(&Sources { user_file: Some(file.clone()), ..Sources::default() }).unwrap_err();
        assert!(error.to_string().starts_with(&file.display().to_string()), "{error}");
        assert!(error.to_string().contains("unknown field `max_round`"), "{error}");
    }

    #[test]
    fn a_project_may_not_set_what_decides_over_the_user() {
        let folder = tempfile::tempdir().unwrap();
        for (key, text) in [
            ("interpreter.executable", "[interpreter]\nexecutable = '/tmp/own'\n"),
            ("gate.policy", "[gate.policy]\nwrite = 'allow'\n"),
            ("llm.base_url", "[llm]\nbase_url = 'https://elsewhere'\n"),
            ("store", "store = '/tmp/x'\n"),
        ] {
            let project_file = Some(written(folder.path(), "project.toml", text));
            let error = Config::read(&Sources { project_file, ..Sources::default() }).unwrap_err();
            assert!(error.message.starts_with(&format!("a project may not set `{key}`")), "{error}");
        }
        let project_file = Some(written(folder.path(), "project.toml", "[agent]\nmax_rounds = 3\n"));
        assert_eq!(Config::read(&Sources { project_file, ..Sources::default() }).unwrap().agent.max_rounds, 3);
    }

    #[test]
    fn a_broken_file_is_named_by_line_and_shows_no_value() {
        let folder = tempfile::tempdir().unwrap();
        let file = written(folder.path(), "config.toml", "[llm]\napi_key = sk-secret\n");
        let error = Config::read(&Sources { user_file: Some(file.clone()), ..Sources::default() }).unwrap_err();
        assert!(error.message.starts_with("line 2: ") && !error.message.contains("sk-secret"), "{error}");
    }

    #[test]
    fn fimbles_own_variables_win_over_borrowed_ones_and_limits_cannot_be_switched_off() {
        let own = ("FIMBLE_LLM__BASE_URL".into(), "http://own".into());
        let borrowed = ("OPENAI_BASE_URL".into(), "http://borrowed".into());
        for environment in [vec![own.clone(), borrowed.clone()], vec![borrowed, own]] {
            let config = Config::read(&Sources { environment, ..Sources::default() }).unwrap();
            assert_eq!(config.llm.base_url.as_deref(), Some("http://own"));
        }
        let flags = vec!["interpreter.limits.wall_s=-5.0".to_owned()];
        let error = Config::read(&Sources { flags, ..Sources::default() }).unwrap_err();
        assert!(error.to_string().starts_with("interpreter.limits.wall_s: -5 is out of range"), "{error}");
    }

    #[test]
    fn a_variable_of_the_wrong_type_names_itself() {
        let environment = vec![("FIMBLE_AGENT__MAX_ROUNDS".into(), "many".into())];
        let error = Config::read(&Sources { environment, ..Sources::default() }).unwrap_err();
        assert!(error.to_string().starts_with("the environment variable `FIMBLE_AGENT__MAX_ROUNDS`"), "{error}");
    }
}
