//! Where it is kept what results looked like: one file among the caches. It may be lost at any time.

use std::path::{Path, PathBuf};

use super::Gate;

/// The most bytes that are read.
const LARGEST: u64 = 4 * 1024 * 1024;

impl Gate {
    /// The gate with what was learnt in earlier processes, kept in `file`.
    pub fn with_learnt(mut self, file: Option<PathBuf>) -> Self {
        if let Some(text) = file.as_deref().and_then(read) {
            self.registry.recall(&text);
        }
        self.learnt = file;
        self
    }

    /// Writes down what was learnt since the last time. A failure costs only what was learnt.
    pub(super) async fn keep_learnt(&self) {
        let (Some(file), Some(text)) = (self.learnt.clone(), self.registry.news()) else { return };
        let written = tokio::task::spawn_blocking(move || write(&file, &text)).await;
        if let Ok(Err(error)) = written {
            tracing::warn!("what results look like could not be kept: {error}");
        }
    }
}

fn read(file: &Path) -> Option<String> {
    let size = std::fs::metadata(file).ok().filter(std::fs::Metadata::is_file)?.len();
    if size > LARGEST { None } else { std::fs::read_to_string(file).ok() }
}

/// Another process may do the same: the last one wins, and no reader sees half a file.
fn write(file: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;

    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let beside = file.with_extension(format!("{}.part", std::process::id()));
    let mut part = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    part.write_all(text.as_bytes())?;
    drop(part);
    std::fs::rename(&beside, file)
}
