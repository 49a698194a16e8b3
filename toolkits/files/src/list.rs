//! What is in a folder, and what one file is.

use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::SystemTime;

use fimble_toolkit::ToolError;
use globset::{GlobBuilder, GlobMatcher};
use ignore::WalkBuilder;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::roots::Roots;

/// The contents of a folder.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Listing {
    /// The folder.
    pub path: String,
    /// Its files and folders, by path.
    pub entries: Vec<Entry>,
    /// True if there are more than were asked for.
    pub truncated: bool,
}

/// A file or folder in a folder.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Entry {
    /// The path, as the other operations take it.
    pub path: String,
    /// The last part of the path.
    pub name: String,
    /// What it is.
    #[schemars(extend("enum" = ["file", "directory", "symlink", "other"]))]
    pub kind: String,
    /// Bytes, for files.
    pub size: Option<u64>,
    /// When it was last changed, RFC 3339 in UTC.
    pub modified: Option<String>,
}

/// One file or folder; a link is followed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Stat {
    /// The path, with links followed.
    pub path: String,
    /// What it is.
    #[schemars(extend("enum" = ["file", "directory", "other"]))]
    pub kind: String,
    /// Bytes.
    pub size: u64,
    /// When it was last changed, RFC 3339 in UTC.
    pub modified: Option<String>,
    /// Permissions in octal, e.g. `644`.
    pub mode: String,
    /// The owner's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
}

/// The files and folders in a folder, by path.
pub(crate) fn list(
    roots: &Roots,
    path: &str,
    pattern: Option<&str>,
    recursive: bool,
    limit: usize,
    cancelled: &CancellationToken,
) -> Result<Listing, ToolError> {
    let folder = roots.resolve(path)?;
    if !folder.path.is_dir() {
        return Err(ToolError::invalid_argument(format!("`{path}` is a file")).with_hint("read() gives its text"));
    }
    let pattern = pattern.map(glob).transpose()?;
    let mut walk = WalkBuilder::new(&folder.path);
    walk.standard_filters(recursive).require_git(false).sort_by_file_path(Path::cmp);
    walk.max_depth(if recursive { None } else { Some(1) });
    let mut listing = Listing { path: roots.shown(&folder.path), entries: Vec::new(), truncated: false };
    for entry in walk.build().flatten() {
        if cancelled.is_cancelled() {
            break;
        }
        // The folder itself is not in the folder.
        if entry.depth() == 0 {
            continue;
        }
        let within = entry.path().strip_prefix(&folder.path).unwrap_or(entry.path());
        if !pattern.as_ref().is_none_or(|pattern| matches(pattern, within)) {
            continue;
        }
        if listing.entries.len() == limit {
            listing.truncated = true;
            break;
        }
        // The link itself, not what it leads to: that may be outside.
        let Ok(metadata) = entry.path().symlink_metadata() else { continue };
        listing.entries.push(Entry {
            path: roots.shown(entry.path()),
            name: entry.file_name().display().to_string(),
            kind: kind(&metadata).to_owned(),
            size: metadata.is_file().then_some(metadata.len()),
            modified: modified(&metadata),
        });
    }
    Ok(listing)
}

/// One file or folder.
pub(crate) fn stat(roots: &Roots, path: &str) -> Result<Stat, ToolError> {
    let found = roots.resolve(path)?;
    let metadata = found.path.symlink_metadata().map_err(|error| roots.failed(path, &error))?;
    Ok(Stat {
        path: roots.shown(&found.path),
        kind: kind(&metadata).to_owned(),
        size: metadata.len(),
        modified: modified(&metadata),
        mode: format!("{:03o}", metadata.permissions().mode() & 0o7777),
        uid: metadata.uid(),
        gid: metadata.gid(),
    })
}

/// A pattern for paths, in which `*` stays within one folder.
pub(crate) fn glob(pattern: &str) -> Result<GlobMatcher, ToolError> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    Ok(glob
        .map_err(|error| {
            ToolError::invalid_argument(format!("`{pattern}` is no glob: {}", error.kind()))
                .with_hint("write e.g. `*.py` or `src/**/*.py`")
        })?
        .compile_matcher())
}

/// A pattern is matched against the path within the folder, or, having no `/`, against the name, as in `.gitignore`.
pub(crate) fn matches(pattern: &GlobMatcher, within: &Path) -> bool {
    let by_name = !pattern.glob().glob().contains('/');
    pattern.is_match(within) || (by_name && within.file_name().is_some_and(|name| pattern.is_match(name)))
}

fn kind(metadata: &Metadata) -> &'static str {
    let kind = metadata.file_type();
    if kind.is_file() {
        "file"
    } else if kind.is_dir() {
        "directory"
    } else if kind.is_symlink() {
        "symlink"
    } else {
        "other"
    }
}

fn modified(metadata: &Metadata) -> Option<String> {
    let since = metadata.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(Timestamp::from_second(i64::try_from(since.as_secs()).ok()?).ok()?.to_string())
}
