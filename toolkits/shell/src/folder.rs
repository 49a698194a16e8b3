//! In which folders commands may start.

use std::path::{Path, PathBuf};

use fimble_toolkit::{ErrorKind, ToolError};

/// The folder with all links followed, if it is there and within a root. `roots` are canonical.
pub(crate) fn resolve(roots: &[PathBuf], cwd: &str) -> Result<PathBuf, ToolError> {
    let first = roots.first().ok_or_else(|| ToolError::unavailable("no folder is open to shell_toolkit"))?;
    let asked = first.join(cwd);
    let is_within = |path: &Path| roots.iter().any(|root| path.starts_with(root));
    match asked.canonicalize() {
        Ok(found) if !is_within(&found) => Err(outside(roots, cwd)),
        Ok(found) if found.is_dir() => Ok(found),
        Ok(_) => Err(ToolError::invalid_argument(format!("`cwd` is no folder: `{cwd}`"))),
        // What is outside is refused whether it is there or not, lest the answer tell.
        Err(_)
            if !asked
                .ancestors()
                .find_map(|there| there.canonicalize().ok())
                .is_some_and(|there| is_within(&there)) =>
        {
            Err(outside(roots, cwd))
        }
        Err(_) => Err(ToolError::not_found(format!("there is no folder `{cwd}`"))
            .with_hint(format!("`cwd` is meant from `{}`", first.display()))),
    }
}

fn outside(roots: &[PathBuf], cwd: &str) -> ToolError {
    let roots: Vec<String> = roots.iter().map(|root| format!("`{}`", root.display())).collect();
    ToolError::new(ErrorKind::Forbidden, format!("`cwd` is outside the folders in which commands may run: `{cwd}`"))
        .with_hint(format!("they may run in and below {}", roots.join(", ")))
}
