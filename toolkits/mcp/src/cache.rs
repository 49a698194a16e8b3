//! What is remembered of a server, so that it need not be started to say what it can do. It is only a hint: whatever
//! cannot be read is as good as not there.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::login::write_private;
use crate::opening::Way;
use crate::{Endpoint, Limits, Server};

/// What a server said last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Remembered {
    /// How it was reached.
    pub(crate) way: Way,
    /// What it said of itself.
    pub(crate) about: Option<String>,
    /// Its tools as it described them.
    pub(crate) tools: Vec<Value>,
    /// When, in seconds since 1970.
    pub(crate) at: u64,
}

/// The place of one server's memory.
pub(crate) struct Cache {
    file: Option<PathBuf>,
}

impl Cache {
    /// The place for a server with these settings, below `folder`. Another setting, another version of its program or of
    /// ours is another place.
    pub(crate) fn of(folder: Option<&Path>, server: &Server) -> Self {
        let endpoint = match &server.endpoint {
            Endpoint::Command { command, args, env, cwd } => json!([command, args, env, cwd, program(command)]),
            Endpoint::Url { url, headers, .. } => json!([url, headers]),
        };
        let key = json!([env!("CARGO_PKG_VERSION"), server.name, endpoint]).to_string();
        let hash: String = Sha256::digest(key).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Self { file: folder.map(|folder| folder.join(format!("{hash}.json"))) }
    }

    /// What is remembered, unless it is too old.
    pub(crate) fn read(&self, limits: &Limits) -> Option<Remembered> {
        let mut bytes = Vec::new();
        File::open(self.file.as_ref()?).ok()?.take(limits.message_bytes as u64).read_to_end(&mut bytes).ok()?;
        let remembered: Remembered = serde_json::from_slice(&bytes).ok()?;
        let age = now().checked_sub(remembered.at)?;
        (age < limits.remembered.as_secs()).then_some(remembered)
    }

    pub(crate) fn write(&self, way: Way, about: Option<&str>, tools: &[Value]) {
        let Some(file) = &self.file else { return };
        let remembered = Remembered { way, about: about.map(str::to_owned), tools: tools.to_vec(), at: now() };
        let bytes = serde_json::to_vec(&remembered).unwrap_or_default();
        if let Err(error) = write_private(file, &bytes) {
            tracing::debug!(%error, "the tools of an MCP server cannot be remembered");
        }
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// What tells one version of a program from another, without starting it.
fn program(command: &str) -> Option<(PathBuf, u64, u128)> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let candidates = std::env::split_paths(&path).map(|folder| folder.join(command));
    std::iter::once(PathBuf::from(command)).chain(candidates).find_map(|file| {
        let metadata = fs::metadata(&file).ok().filter(fs::Metadata::is_file)?;
        let changed = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some((file, metadata.len(), changed.as_nanos()))
    })
}
