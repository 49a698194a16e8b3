//! Files that are toolkits: what kind one is, and the toolkit that it describes.
//!
//! A `*.toml` has either a table `[mcp]` (a server, as in an `mcpServers` file), `[openapi]` or `[a2a]` (as an item of the
//! configuration's), or is a manifest. Relative paths in it start at its folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use fimble_manifest::Manifest;
use fimble_toolkit::{Toolkit, is_python_name};
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::service_toolkits::Loaded;
use super::{Failure, more_toolkits, service_toolkits};
use crate::config::{A2a, OpenApi};
use crate::registry::{Read, ReadToolkit};

/// What a `*.toml` describes.
enum Written {
    Manifest,
    Mcp(Value),
    OpenApi(OpenApi),
    A2a(A2a),
}

/// Reads the files of `toolkits.manifests`.
pub(super) struct Reader;

#[async_trait]
impl ReadToolkit for Reader {
    async fn read(&self, file: &Path) -> Result<Read, String> {
        let failed = |failure: Failure| match failure.hint {
            Some(hint) => format!("{}\nhint: {hint}", failure.message),
            None => failure.message,
        };
        let also = match written(file).map_err(failed)? {
            Written::OpenApi(document) => place(file, &document.document).into_iter().collect(),
            _ => Vec::new(),
        };
        let Loaded { toolkit, warnings } = read(file).await.map_err(failed)?;
        Ok(Read { toolkit, warnings, also })
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

/// The toolkits of a file or a folder of them.
///
/// # Errors
/// The first file that is no toolkit; a folder without any.
pub(super) async fn load(path: &Path) -> Result<Vec<Loaded>, Failure> {
    if !path.is_dir() {
        return match path.extension().and_then(|extension| extension.to_str()) {
            Some("toml") => Ok(vec![read(path).await?]),
            Some("json" | "yaml" | "yml") => described(path).await,
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
        loaded.push(read(&file).await?);
    }
    if loaded.is_empty() { Err(no_toolkit(path)) } else { Ok(loaded) }
}

/// Every `*.toml` in a folder, not in those below it, by name.
///
/// # Errors
/// It cannot be read.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
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
pub(super) async fn read(path: &Path) -> Result<Loaded, Failure> {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
    let folder = path.parent().unwrap_or(Path::new(""));
    match written(path)? {
        Written::Manifest => {
            let manifest = Manifest::read(path).map_err(|problem| {
                let failure = Failure::usage(problem.to_string());
                match problem.hint {
                    Some(hint) => failure.with_hint(hint),
                    None => failure,
                }
            })?;
            Ok(Loaded { toolkit: Arc::new(manifest), warnings: Vec::new() })
        }
        Written::Mcp(table) => {
            let value = serde_json::to_value(table).map_err(|error| wrong(path, &error.to_string()))?;
            let (server, warnings) =
                fimble_mcp::server_of(&stem, value, folder).map_err(|problem| wrong(path, &problem))?;
            let toolkit = connected(server).await?;
            let warnings = warnings.into_iter().map(|warning| format!("{}: {warning}", path.display())).collect();
            Ok(Loaded { toolkit, warnings })
        }
        Written::OpenApi(mut document) => {
            if let Some(place) = place(path, &document.document) {
                document.document = place.display().to_string();
            }
            document.name.get_or_insert(stem);
            service_toolkits::document(&document).await
        }
        Written::A2a(mut agent) => {
            if agent.name.is_empty() {
                agent.name = stem;
            }
            service_toolkits::agent(&agent).await
        }
    }
}

/// The toolkits of a file of MCP servers, or of an OpenAPI document.
async fn described(path: &Path) -> Result<Vec<Loaded>, Failure> {
    let is_servers = std::fs::read_to_string(path).is_ok_and(|text| text.contains("mcpServers"));
    if !is_servers {
        let document = OpenApi { document: path.display().to_string(), ..OpenApi::default() };
        return Ok(vec![service_toolkits::document(&document).await?]);
    }
    let read = fimble_mcp::read(path).map_err(|error| Failure::usage(error.to_string()).with_hint(error.hint()))?;
    let mut loaded = Vec::new();
    for server in read.servers.into_iter().filter(|server| !server.disabled) {
        loaded.push(Loaded { toolkit: connected(server).await?, warnings: Vec::new() });
    }
    if let Some(first) = loaded.first_mut() {
        first.warnings = read.warnings;
    }
    Ok(loaded)
}

async fn connected(server: fimble_mcp::Server) -> Result<Arc<dyn Toolkit>, Failure> {
    let connected = fimble_mcp::connect(server, more_toolkits::server_settings()).await;
    connected.map_err(|error| Failure::new(5, error.to_string()).with_hint(error.hint()))
}

fn written(path: &Path) -> Result<Written, Failure> {
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
    Ok(match kind {
        "mcp" => Written::Mcp(table),
        "openapi" => Written::OpenApi(typed(table, path)?),
        _ => Written::A2a(typed(table, path)?),
    })
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
