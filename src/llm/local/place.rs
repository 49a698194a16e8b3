//! Where the local model's things lie on disk. It makes folders, nothing else.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use sha2::{Digest, Sha256};

use super::{Config, MODEL_FILE};
use crate::llm::LlmError;

/// The folders and files.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// The folder of all that can be fetched again.
    pub cache: PathBuf,
    /// The folder of sockets, locks and logs; only its owner may enter it.
    pub run: PathBuf,
    /// The model file.
    pub model: PathBuf,
    /// The name of this server's socket, lock and log: equal settings share a server.
    pub name: String,
}

impl Place {
    pub(super) fn of(config: &Config) -> Result<Self, LlmError> {
        let base = etcetera::base_strategy::Xdg::new()
            .map_err(|error| LlmError::permanent(format!("there is no home folder: {error}"), "set `HOME`"))?;
        let cache = base.cache_dir().join("fimble");
        let run = base
            .runtime_dir()
            .filter(|folder| folder.is_dir())
            .map_or_else(|| cache.join("run"), |folder| folder.join("fimble"));
        let model = config.model.clone().unwrap_or_else(|| cache.join("models").join(MODEL_FILE));
        let model = fs::canonicalize(&model).unwrap_or(model);
        let name = server_name(&model, config);
        Ok(Self { cache, run, model, name })
    }

    /// The Python environment.
    pub(super) fn environment(&self) -> PathBuf {
        self.cache.join("venv")
    }

    /// Its interpreter.
    pub(super) fn python(&self) -> PathBuf {
        self.environment().join("bin").join("python")
    }

    /// What the server prints.
    pub(super) fn log(&self) -> PathBuf {
        self.run.join(format!("{}.log", self.name))
    }

    /// Where prompts are kept as the server read them.
    pub(super) fn heads(&self) -> PathBuf {
        self.cache.join("heads")
    }

    /// The model's name: its file's, without the ending.
    pub(super) fn model_name(&self) -> String {
        self.model.file_stem().map(OsStr::to_string_lossy).unwrap_or_default().into_owned()
    }

    /// Makes the folder of the sockets, and refuses one that others can enter: they could pose as the model.
    pub(super) fn make_run_folder(&self) -> Result<(), LlmError> {
        make_folder(&self.run)?;
        let metadata = fs::metadata(&self.run).map_err(|error| no_folder(&self.run, &error))?;
        if metadata.uid() != nix::unistd::geteuid().as_raw() {
            return Err(LlmError::permanent(format!("{} belongs to another user", self.run.display()), "remove it"));
        }
        if metadata.mode() & 0o077 != 0 {
            let only_mine = fs::Permissions::from_mode(0o700);
            fs::set_permissions(&self.run, only_mine).map_err(|error| no_folder(&self.run, &error))?;
        }
        Ok(())
    }
}

/// Makes a folder and those above it; new ones are for their owner alone.
pub(super) fn make_folder(path: &Path) -> Result<(), LlmError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| no_folder(path, &error))
}

fn no_folder(path: &Path, error: &io::Error) -> LlmError {
    LlmError::permanent(
        format!("{} cannot be used: {error}", path.display()),
        "check who owns it, or set `XDG_CACHE_HOME`",
    )
}

fn server_name(model: &Path, config: &Config) -> String {
    let told = format!("{}\0{}\0{}\0{}", model.display(), config.context_tokens, config.threads, config.port);
    let digest = Sha256::digest(told.as_bytes());
    let hex: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("llm-{hex}")
}
