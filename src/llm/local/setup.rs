//! Makes the Python environment that the local model's server runs in. It does not start the server.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use nix::fcntl::{Flock, FlockArg};
use sha2::{Digest, Sha256};
use tokio::process::Command;

use super::place::{Place, make_folder};
use super::{Config, Progress, SERVER_PACKAGE, Step};
use crate::llm::LlmError;

const SERVER_SCRIPT: (&str, &str) = ("llama_server", include_str!("../../../python/llama_server.py"));
const PULL_SCRIPT: (&str, &str) = ("model_pull", include_str!("../../../python/model_pull.py"));

/// Makes the environment with pip, for what needs no server.
pub(super) async fn make_environment(place: &Place, config: &Config, progress: Progress<'_>) -> Result<(), LlmError> {
    if Command::new(place.python())
        .args(["-I", "-m", "pip", "--version"])
        .output()
        .await
        .is_ok_and(|it| it.status.success())
    {
        return Ok(());
    }
    make_folder(&place.cache)?;
    let _lock = lock(&place.cache.join("venv.lock")).await?;
    let environment = place.environment();
    progress(Step::Note(format!("making a Python environment in {}", environment.display())));
    let made = Command::new(&config.python)
        .args(["-I", "-m", "venv", "--clear"])
        .arg(&environment)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| {
            let message = format!("{} cannot be started: {error}", config.python.display());
            LlmError::permanent(message, "install Python 3, or set `llm.local.python`")
        })?;
    if made.status.success() {
        return Ok(());
    }
    let said = said(&made);
    if said.contains("ensurepip") || said.contains("No module named venv") {
        let hint = "install it: `apt install python3-venv` on Debian and Ubuntu";
        return Err(LlmError::permanent("Python has no module to make environments with (python3-venv)", hint));
    }
    Err(LlmError::permanent(
        format!("no Python environment can be made: {}", last_line(&said)),
        "see that Python is whole",
    ))
}

/// Puts the server into the environment, once for each version.
pub(super) async fn install_server(place: &Place, config: &Config, progress: Progress<'_>) -> Result<(), LlmError> {
    if is_installed(place) {
        return Ok(());
    }
    make_environment(place, config, &mut *progress).await?;
    let _lock = lock(&place.cache.join("venv.lock")).await?;
    if is_installed(place) {
        return Ok(());
    }
    progress(Step::Note(format!("installing the model server ({SERVER_PACKAGE}, 34 MB)")));
    let installed = Command::new(place.python())
        .args(["-I", "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--no-cache-dir"])
        .args(["--only-binary", ":all:", "--progress-bar", "off", SERVER_PACKAGE])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| LlmError::permanent(format!("pip cannot be started: {error}"), "remove the environment"))?;
    let said = said(&installed);
    if !installed.status.success() {
        return Err(pip_failure(&said));
    }
    fs::write(marker(place), SERVER_PACKAGE)
        .map_err(|error| LlmError::permanent(format!("the environment cannot be written: {error}"), "check the disk"))
}

/// True if the environment holds the server in the version we want.
pub(super) fn is_installed(place: &Place) -> bool {
    fs::read_to_string(marker(place)).is_ok_and(|version| version == SERVER_PACKAGE) && place.python().exists()
}

/// The server's script on disk.
pub(super) fn server_script(place: &Place) -> Result<PathBuf, LlmError> {
    script(place, SERVER_SCRIPT)
}

/// The pull's script on disk.
pub(super) fn pull_script(place: &Place) -> Result<PathBuf, LlmError> {
    script(place, PULL_SCRIPT)
}

/// Waits for an exclusive lock; it ends with its holder.
pub(super) async fn lock(path: &Path) -> Result<Flock<fs::File>, LlmError> {
    let cannot = |error: io::Error| {
        LlmError::permanent(format!("{} cannot be locked: {error}", path.display()), "check who owns it")
    };
    let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(path).map_err(cannot)?;
    let locked = tokio::task::spawn_blocking(|| Flock::lock(file, FlockArg::LockExclusive)).await;
    let locked = locked.map_err(io::Error::other).map_err(cannot)?;
    locked.map_err(|(_, error)| cannot(error.into()))
}

fn marker(place: &Place) -> PathBuf {
    place.environment().join("fimble-server")
}

/// Written under a name of its content, so that two versions of Fimble do not change each other's.
fn script(place: &Place, (name, text): (&str, &str)) -> Result<PathBuf, LlmError> {
    let folder = place.cache.join("scripts");
    make_folder(&folder)?;
    let hex: String = Sha256::digest(text.as_bytes()).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let path = folder.join(format!("{name}-{hex}.py"));
    if fs::read_to_string(&path).is_ok_and(|there| there == text) {
        return Ok(path);
    }
    let new = folder.join(format!("{name}-{hex}.{}.new", std::process::id()));
    fs::write(&new, text).and_then(|()| fs::rename(&new, &path)).map_err(|error| {
        LlmError::permanent(format!("{} cannot be written: {error}", path.display()), "check the disk and who owns it")
    })?;
    Ok(path)
}

fn pip_failure(said: &str) -> LlmError {
    let why = last_line(said);
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if has(&["No space left on device", "Disk quota exceeded"]) {
        LlmError::permanent(format!("the model server does not fit on the disk: {why}"), "free 200 MB")
    } else if has(&["Connection", "Temporary failure", "Retrying", "timed out", "ProxyError", "SSLError"]) {
        let message = format!("the model server cannot be fetched, the package index does not answer: {why}");
        LlmError::transient(message, "check the network; pip's own configuration applies")
    } else if has(&["from versions: none"]) {
        let message =
            "the model server cannot be fetched, the package index does not answer or has none for this machine";
        LlmError::transient(message, "check the network and pip's configuration, or point `llm.base_url` at a server")
    } else {
        let hint = "point `llm.base_url` at another server if there is none for this machine";
        LlmError::permanent(format!("the model server cannot be installed: {why}"), hint)
    }
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn last_line(said: &str) -> String {
    let line = said.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it did not say why");
    line.trim_start_matches("ERROR:").trim().chars().take(300).collect()
}
