//! The way to each toolkit that is learnt at run time, hop by hop, for `fimble doctor`: MCP servers, documents, agents and
//! manifests. Nothing is remembered, and nothing is registered.

use std::path::{Path, PathBuf};

use fimble_manifest::Manifest;
use fimble_openapi::Source;
use fimble_toolkit::Toolkit;
use futures_util::future::join_all;

use super::more_toolkits::{self, Service};
use super::service_toolkits::{agent_settings, document_settings, is_there};
use super::toolkit_files::{Written, files, written};
use super::{Failure, open, output};
use crate::config::{A2a, Config, OpenApi};

/// A check's name and what came of it.
pub(super) type Told = (String, Result<String, Failure>);

/// Goes all the ways side by side. A way ends at its first hop that fails, but for missing credentials, which are told last.
///
/// # Errors
/// A file of MCP servers that cannot be read.
pub(super) async fn check(config: &Config) -> Result<Vec<Told>, Failure> {
    let mut taken = open::shipped_names(config)?;
    let (ways, servers) = (ways(config, &taken)?, more_toolkits::server_settings(config));
    let gone = join_all(ways.iter().map(|(_, way)| way.go(&servers))).await;
    let mut told = Vec::new();
    for ((label, _), hops) in ways.iter().zip(gone) {
        for (hop, mut result) in hops {
            if let (NAME, Ok(text)) = (hop, &result) {
                let name = text.split([' ', ';']).next().unwrap_or_default().to_owned();
                if taken.contains(&name) {
                    let failure = Failure::new(5, format!("there is already a toolkit `{name}`"));
                    result = Err(failure.with_hint("give one of them another name"));
                }
                taken.push(name);
            }
            told.push((format!("{label} {hop}"), result));
        }
    }
    Ok(told)
}

/// The hop that ends with the toolkit's name at the begin of its text.
const NAME: &str = "name";

/// A hop, and what came of it.
type Hop = (&'static str, Result<String, Failure>);

enum Way {
    Service(Service),
    Manifest(PathBuf),
    /// A hop that failed before there was anything to ask.
    Broken(&'static str, Failure),
}

/// All ways with their labels, in the order in which names are given.
fn ways(config: &Config, taken: &[String]) -> Result<Vec<(String, Way)>, Failure> {
    let mut ways = Vec::new();
    for folder in &config.toolkits.manifests {
        match files(folder) {
            Ok(files) => ways.extend(files.into_iter().filter_map(way)),
            Err(failure) => {
                let failure =
                    Failure { code: 5, ..failure }.with_hint("correct `toolkits.manifests`, or make the folder");
                ways.push((format!("manifests {}", folder.display()), Way::Broken("file", failure)));
            }
        }
    }
    ways.extend(Service::all(config, taken)?.into_iter().map(|service| (label(&service), Way::Service(service))));
    Ok(ways)
}

/// The way to what a file describes; none if that is switched off.
fn way(file: PathBuf) -> Option<(String, Way)> {
    match written(&file) {
        Ok(Written::Service { service: Service::Mcp(server), .. }) if server.disabled => None,
        Ok(Written::Service { service, .. }) => Some((label(&service), Way::Service(service))),
        Ok(Written::Manifest) => Some((format!("manifest {}", file.display()), Way::Manifest(file))),
        Err(failure) => {
            let hint = failure.hint.clone().unwrap_or_else(|| "correct the file".to_owned());
            Some((format!("manifest {}", file.display()), Way::Broken("read", failure.with_hint(hint))))
        }
    }
}

fn label(service: &Service) -> String {
    match service {
        Service::Mcp(server) => format!("mcp {}", server.name),
        Service::Document(document) => format!("document {}", document.name.as_ref().unwrap_or(&document.document)),
        Service::Cluster(_) => "cluster kubernetes".to_owned(),
        Service::Agent(agent) => format!("agent {}", if agent.name.is_empty() { &agent.url } else { &agent.name }),
    }
}

impl Way {
    async fn go(&self, servers: &fimble_mcp::Settings) -> Vec<Hop> {
        match self {
            Self::Broken(hop, failure) => vec![(*hop, Err(failure.clone()))],
            Self::Manifest(file) => manifest(file),
            Self::Service(service) => {
                output::hidden().add(service.secrets());
                match service {
                    Service::Mcp(server) => self::server(server, servers).await,
                    Service::Document(written) => document(written).await,
                    Service::Cluster(written) => cluster(written).await,
                    Service::Agent(written) => agent(written).await,
                }
            }
        }
    }
}

async fn server(server: &fimble_mcp::Server, settings: &fimble_mcp::Settings) -> Vec<Hop> {
    let hops = fimble_mcp::diagnose(server, settings).await;
    let told = hops.into_iter().map(|hop| {
        let took = hop.took.as_secs_f64() * 1_000.0;
        let result = match (hop.outcome, hop.hint) {
            (Ok(text), Some(hint)) => Ok(format!("{text} ({hint}), {took:.0} ms")),
            (Ok(text), None) => Ok(format!("{text}, {took:.0} ms")),
            (Err(problem), hint) => Err(Failure { hint, ..Failure::new(5, format!("{problem}, {took:.0} ms")) }),
        };
        (hop.name, result)
    });
    told.collect()
}

/// Hops that went well before `failed`, with what is said of them, then that one.
fn until(failed: &str, before: &[(&'static str, &str)], hops: &[&'static str], failure: Failure) -> Vec<Hop> {
    let mut told = Vec::new();
    for hop in hops {
        if *hop == failed {
            told.push((*hop, Err(failure)));
            break;
        }
        let said = before.iter().find(|(name, _)| name == hop).map_or("done", |(_, said)| *said);
        told.push((*hop, Ok(said.to_owned())));
    }
    told
}

async fn document(written: &OpenApi) -> Vec<Hop> {
    let missing: Vec<String> = written.secrets().filter(|name| !is_there(name)).cloned().collect();
    // What a document says can be read without them.
    let mut open = written.clone();
    open.token = open.token.filter(|name| !missing.contains(name));
    open.credentials.retain(|_, name| !missing.contains(name));
    open.headers.retain(|_, name| !missing.contains(name));
    let loaded = match document_settings(&open) {
        Ok(settings) => fimble_openapi::load(Source::of(&open.document), settings).await,
        Err(failure) => return vec![("credential", Err(failure))],
    };
    let mut hops = read(loaded, &open.document);
    let is_told = hops.iter().any(|(hop, _)| *hop == "credential");
    hops.extend(Some(credential(&missing, written.secrets().count())).filter(|_| !is_told));
    hops
}

async fn cluster(written: &fimble_kubernetes::Config) -> Vec<Hop> {
    let missing: Vec<String> = written.token.iter().filter(|name| !is_there(name)).cloned().collect();
    if !missing.is_empty() {
        return vec![credential(&missing, missing.len())];
    }
    read(fimble_kubernetes::load(written).await, written.document.as_deref().unwrap_or("the cluster's own document"))
}

/// The hops of a document that was loaded from `source`.
fn read(loaded: Result<fimble_openapi::Loaded, fimble_openapi::Error>, source: &str) -> Vec<Hop> {
    match loaded {
        Ok(fimble_openapi::Loaded { toolkit, problems }) => {
            let declaration = toolkit.declaration();
            let read = match problems.first() {
                None => "all of it".to_owned(),
                Some(first) => format!("{} parts left out: {first}", problems.len()),
            };
            let count = declaration.operations.len();
            vec![
                ("fetch", Ok(source.to_owned())),
                ("read", Ok(read)),
                ("filter", Ok(format!("{count} operations are used"))),
                (NAME, Ok(declaration.name)),
            ]
        }
        Err(error) => {
            let failure = Failure::new(5, error.to_string()).with_hint(error.hint());
            let before = [("fetch", source), ("read", "it is an OpenAPI document"), ("filter", "some are used")];
            until(error.step(), &before, &["fetch", "read", "filter", "credential"], failure)
        }
    }
}

async fn agent(written: &A2a) -> Vec<Hop> {
    let missing: Vec<String> = written.secrets().filter(|name| !is_there(name)).cloned().collect();
    let mut open = written.clone();
    open.token = open.token.filter(|name| !missing.contains(name));
    open.headers.retain(|_, name| !missing.contains(name));
    let connected = match agent_settings(&open) {
        Ok(agent) => fimble_a2a::connect(agent, fimble_a2a::Limits::default()).await,
        Err(failure) => return vec![("credential", Err(failure))],
    };
    let mut hops = match connected {
        Ok(toolkit) => {
            let declaration = toolkit.declaration();
            let said = declaration.description.lines().next().unwrap_or_default().to_owned();
            vec![
                ("reach", Ok(open.url.clone())),
                ("card", Ok(said)),
                ("version", Ok("A2A 1.0 over JSON-RPC".to_owned())),
                (NAME, Ok(declaration.name)),
            ]
        }
        Err(error) => {
            let failure = Failure::new(5, error.to_string()).with_hint(error.hint());
            let before = [("reach", open.url.as_str()), ("card", "it has one")];
            until(error.step(), &before, &["reach", "card", "version"], failure)
        }
    };
    if !missing.is_empty() {
        hops.push(credential(&missing, missing.len()));
    }
    hops
}

fn credential(missing: &[String], count: usize) -> Hop {
    let result = match missing.first() {
        None if count == 0 => Ok("none is named".to_owned()),
        None => Ok(format!("{count} there")),
        Some(name) => {
            Err(Failure::new(5, format!("there is no secret and no environment variable `{}`", missing.join("`, `")))
                .with_hint(format!("`fimble secrets set {name}` keeps it, or set the variable")))
        }
    };
    ("credential", result)
}

fn manifest(file: &Path) -> Vec<Hop> {
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes.len(),
        Err(error) => {
            let failure = Failure::new(5, format!("{}: it cannot be read: {error}", file.display()));
            return vec![("file", Err(failure.with_hint("look at its owner and mode")))];
        }
    };
    let there = ("file", Ok(format!("{bytes} bytes")));
    match Manifest::read(file) {
        Ok(manifest) => {
            let declaration = manifest.declaration();
            let count = declaration.operations.len();
            vec![there, ("read", Ok(format!("{count} operations"))), (NAME, Ok(declaration.name))]
        }
        Err(problem) => {
            let hint = problem.hint.clone().unwrap_or_else(|| "correct the file".to_owned());
            vec![there, ("read", Err(Failure::new(5, problem.to_string()).with_hint(hint)))]
        }
    }
}
