//! Files that are toolkits: what kind one is, and the toolkit that it describes.
//!
//! A `*.toml` has either a table `[mcp]` (a server, as in an `mcpServers` file), `[openapi]` or `[a2a]` (as an item of the
//! configuration's), or is a manifest. Relative paths in it start at its folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use fimble_manifest::Manifest;
use fimble_mcp::Server;
use fimble_toolkit::is_python_name;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::more_toolkits::Service;
use super::service_toolkits::Loaded;
use super::{Failure, more_toolkits, service_toolkits};
use crate::config::{A2a, Config, OpenApi};
use crate::registry::{Read, ReadToolkit, Source, Unread};

/// What a `*.toml` describes.
pub(super) enum Written {
    Manifest,
    Service {
        service: Service,
        /// Files that it is made from besides.
        also: Vec<PathBuf>,
        warnings: Vec<String>,
    },
}

/// Reads the files of `toolkits.manifests`, and what else the settings name.
pub(super) struct Reader {
    services: Vec<Service>,
    servers: fimble_mcp::Settings,
}

impl Reader {
    /// `servers` is what all MCP servers share.
    pub(super) fn new(services: Vec<Service>, servers: fimble_mcp::Settings) -> Self {
        Self { services, servers }
    }

    /// The services as sources.
    pub(super) fn sources(&self) -> Vec<Source> {
        let source = |(number, service): (usize, &Service)| Source::Setting { number, name: service.name() };
        self.services.iter().enumerate().map(source).collect()
    }
}

#[async_trait]
impl ReadToolkit for Reader {
    async fn read(&self, source: &Source) -> Result<Read, Unread> {
        let unread = |failure: Failure| Unread {
            passes: failure.code == 5,
            problem: match failure.hint {
                Some(hint) => format!("{}\nhint: {hint}", failure.message),
                None => failure.message,
            },
        };
        let (loaded, also) = match source {
            Source::Setting { number, .. } => match self.services.get(*number) {
                Some(service) => (service.load(&self.servers).await, Vec::new()),
                None => return Err(Unread { problem: format!("there is no {source}"), passes: false }),
            },
            Source::File(file) => match written(file) {
                Ok(Written::Manifest) => (manifest(file), Vec::new()),
                Ok(Written::Service { service, also, warnings }) => {
                    let loaded = service.load(&self.servers).await.map(|loaded| loaded.warned(warnings));
                    (loaded, also)
                }
                Err(failure) => (Err(failure), Vec::new()),
            },
        };
        let Loaded { toolkit, warnings } = loaded.map_err(unread)?;
        Ok(Read { toolkit, warnings, also })
    }

    fn expected(&self, source: &Source) -> Option<String> {
        match source {
            Source::Setting { number, .. } => self.services.get(*number)?.expected(),
            Source::File(file) => match written(file).ok()? {
                Written::Service { service, .. } => service.expected(),
                Written::Manifest => None,
            },
        }
    }
}

/// Where the document of a file is, if that is a file too.
fn place(file: &Path, document: &str) -> Option<PathBuf> {
    (!document.contains("://")).then(|| file.parent().unwrap_or(Path::new("")).join(document))
}

/// The path that a command's argument means, if it means one and not a toolkit's name.
pub(super) fn as_path(text: &str) -> Option<&Path> {
    let is_name = is_python_name(text) && (text.ends_with("_toolkit") || !Path::new(text).exists());
    (!is_name).then_some(Path::new(text))
}

/// The toolkits of a file or a folder of them; `servers` is what all MCP servers share.
///
/// # Errors
/// The first file that is no toolkit; a folder without any.
pub(super) async fn load(path: &Path, servers: &fimble_mcp::Settings) -> Result<Vec<Loaded>, Failure> {
    if !path.is_dir() {
        return match path.extension().and_then(|extension| extension.to_str()) {
            Some("toml") => Ok(vec![read(path, servers).await?]),
            Some("json" | "yaml" | "yml") => described(path, servers).await,
            _ => Err(no_toolkit(path)),
        };
    }
    if path.join("Cargo.toml").is_file() {
        let path = path.display();
        return Err(Failure::usage(format!("`{path}` is a Rust crate, whose operations are known once it is built"))
            .with_hint(format!("its own test checks and calls them: cd {path} && cargo test")));
    }
    let mut loaded = Vec::new();
    for file in files(path)? {
        loaded.push(read(&file, servers).await?);
    }
    if loaded.is_empty() { Err(no_toolkit(path)) } else { Ok(loaded) }
}

/// Every `*.toml` in a folder, not in those below it, by name.
///
/// # Errors
/// It cannot be read.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable =
        |error: std::io::Error| Failure::usage(format!("{}: the folder cannot be read: {error}", folder.display()));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "toml") && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The toolkit of a `*.toml`.
///
/// # Errors
/// What is wrong with the file, or with what it names.
pub(super) async fn read(path: &Path, servers: &fimble_mcp::Settings) -> Result<Loaded, Failure> {
    match written(path)? {
        Written::Manifest => manifest(path),
        Written::Service { service, warnings, .. } => Ok(service.load(servers).await?.warned(warnings)),
    }
}

fn manifest(path: &Path) -> Result<Loaded, Failure> {
    let manifest = Manifest::read(path).map_err(|problem| {
        let failure = Failure::usage(problem.to_string());
        match problem.hint {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    })?;
    Ok(Loaded { toolkit: Arc::new(manifest), warnings: Vec::new() })
}

/// An MCP server, and the file that names it.
pub(super) struct Named {
    pub(super) server: Server,
    pub(super) file: PathBuf,
}

/// The configured MCP servers that are switched on, wherever they are written: in a file of `toolkits.mcp`, or in a file with
/// `[mcp]` in a folder of `toolkits.manifests`. Those of `toolkits.mcp` get toolkit names that are none of `taken`. A file of a
/// folder that cannot be read is told on standard error and passed over.
///
/// # Errors
/// A file of `toolkits.mcp` that cannot be read.
pub(super) fn servers(config: &Config, taken: &[String]) -> Result<Vec<Named>, Failure> {
    let mut servers = more_toolkits::servers(config, taken)?;
    // A folder that cannot be read is told by whoever reads its toolkits.
    for file in config.toolkits.manifests.iter().filter_map(|folder| files(folder).ok()).flatten() {
        match servers_at(&file) {
            Ok(found) => servers.extend(found),
            Err(failure) => note!("warning: {}", failure.message),
        }
    }
    Ok(servers)
}

/// The MCP servers of a file, or of all files of a folder, that are switched on; none if it has other toolkits.
///
/// # Errors
/// What is wrong with a file.
pub(super) fn servers_at(path: &Path) -> Result<Vec<Named>, Failure> {
    if path.is_dir() {
        let found = files(path)?.iter().map(|file| servers_at(file)).collect::<Result<Vec<_>, _>>()?;
        return Ok(found.into_iter().flatten().collect());
    }
    if names_servers(path) {
        return Ok(more_toolkits::servers_in(path)?.collect());
    }
    let is_table = path.extension().is_some_and(|extension| extension == "toml");
    if !is_table {
        return Ok(Vec::new());
    }
    let Written::Service { service: Service::Mcp(server), warnings, .. } = written(path)? else {
        return Ok(Vec::new());
    };
    warnings.iter().for_each(|warning| note!("warning: {warning}"));
    let named = Named { server: *server, file: path.to_owned() };
    Ok(Some(named).filter(|named| !named.server.disabled).into_iter().collect())
}

/// The server of an `[mcp]` table, and what is to be told of it.
fn server(path: &Path, table: Value) -> Result<(Server, Vec<String>), Failure> {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let value = serde_json::to_value(table).map_err(|error| wrong(path, &error.to_string()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let (mut server, warnings) = fimble_mcp::server_of(stem, value, folder).map_err(|problem| wrong(path, &problem))?;
    server.login = Some(format!("fimble toolkits login {}", word(&absolute(path))));
    Ok((server, warnings.into_iter().map(|warning| format!("{}: {warning}", path.display())).collect()))
}

/// A path that means the same in every folder.
pub(super) fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

/// A text as one word of a shell's command.
pub(super) fn word(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+:@%,".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

fn names_servers(path: &Path) -> bool {
    let is_json = path.extension().is_some_and(|extension| extension == "json");
    is_json && std::fs::read_to_string(path).is_ok_and(|text| text.contains("mcpServers"))
}

/// The toolkits of a file of MCP servers, or of an OpenAPI document.
async fn described(path: &Path, servers: &fimble_mcp::Settings) -> Result<Vec<Loaded>, Failure> {
    if !names_servers(path) {
        let document = OpenApi { document: path.display().to_string(), ..OpenApi::default() };
        return Ok(vec![service_toolkits::document(&document).await?]);
    }
    let mut loaded = Vec::new();
    for named in more_toolkits::servers_in(path)? {
        loaded.push(Service::Mcp(Box::new(named.server)).load(servers).await?);
    }
    Ok(loaded)
}

/// What a `*.toml` describes.
///
/// # Errors
/// What is wrong with its table.
pub(super) fn written(path: &Path) -> Result<Written, Failure> {
    let tables = || -> Option<Table> {
        let is_small = std::fs::metadata(path).ok()?.len() <= fimble_manifest::MOST_MANIFEST_BYTES;
        std::fs::read_to_string(path).ok().filter(|_| is_small)?.parse().ok()
    };
    // What is no TOML is told by whoever reads manifests, with its line.
    let Some(mut tables) = tables() else { return Ok(Written::Manifest) };
    let Some(kind) = ["mcp", "openapi", "a2a"].into_iter().find(|kind| tables.contains_key(*kind)) else {
        return Ok(Written::Manifest);
    };
    let table = tables.remove(kind).unwrap_or(Value::Table(Table::new()));
    if let Some(other) = tables.keys().next() {
        return Err(wrong(path, &format!("beside `[{kind}]` there is `{other}`"))
            .with_hint("one file is one toolkit: put it into a file of its own"));
    }
    let stem = || path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
    let (mut also, mut warnings) = (Vec::new(), Vec::new());
    let service = match kind {
        "mcp" => {
            let (server, told) = server(path, table)?;
            warnings = told;
            Service::Mcp(Box::new(server))
        }
        "openapi" => {
            let mut document: OpenApi = typed(table, path)?;
            if let Some(place) = place(path, &document.document) {
                document.document = place.display().to_string();
                also.push(place);
            }
            document.name.get_or_insert_with(stem);
            Service::Document(Box::new(document))
        }
        _ => {
            let mut agent: A2a = typed(table, path)?;
            if agent.name.is_empty() {
                agent.name = stem();
            }
            Service::Agent(agent)
        }
    };
    Ok(Written::Service { service, also, warnings })
}

fn typed<T: DeserializeOwned>(table: Value, path: &Path) -> Result<T, Failure> {
    table.try_into().map_err(|error: toml::de::Error| wrong(path, error.message()))
}

fn wrong(path: &Path, problem: &str) -> Failure {
    Failure::usage(format!("{}: {problem}", path.display()))
}

fn no_toolkit(path: &Path) -> Failure {
    if !path.exists() {
        return Failure::usage(format!("there is no `{}`", path.display()))
            .with_hint("`fimble toolkits list` shows the toolkits there are; `fimble toolkits new NAME` writes one");
    }
    Failure::usage(format!("there is no toolkit in `{}`", path.display()))
        .with_hint("name a *.toml, an `mcpServers` JSON, an OpenAPI document, or a folder of *.toml files")
}
