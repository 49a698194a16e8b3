//! What changed between two states, file by file, with bounded patch text.

use fimble_toolkit::ToolError;
use git2::{Delta, DiffOptions, Patch, Repository};
use schemars::JsonSchema;
use serde::Serialize;

use crate::location::{commit, failed, path_within};

/// Most files in one result.
const FILES: usize = 500;
/// Most bytes of one file's patch.
const FILE_PATCH_BYTES: usize = 64 * 1024;
/// Most bytes of all patches together.
const PATCH_BYTES: usize = 512 * 1024;

/// What changed between two states.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Diff {
    /// What was compared from: a full commit id.
    pub from_sha: String,
    /// What was compared to: a full commit id, or `None` for the working tree.
    pub to_sha: Option<String>,
    /// The changed files; at most 500.
    pub files: Vec<FileDiff>,
    /// How many files changed.
    pub files_changed: u64,
    /// Lines added in all files.
    pub additions: u64,
    /// Lines removed in all files.
    pub deletions: u64,
    /// True if `files` does not hold all files, or some patch is cut.
    pub truncated: bool,
}

/// A changed file and how it changed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FileDiff {
    /// The path, relative to the repository.
    pub path: String,
    /// The path before a rename.
    pub old_path: Option<String>,
    /// What happened to it.
    #[schemars(extend("enum" = ["added", "modified", "deleted", "renamed", "copied", "type_changed", "untracked", "conflicted"]))]
    pub status: String,
    /// Lines added.
    pub additions: u64,
    /// Lines removed.
    pub deletions: u64,
    /// True if it is no text.
    pub binary: bool,
    /// The unified diff; empty for binary files.
    pub patch: String,
    /// True if `patch` is cut.
    pub truncated: bool,
}

/// A changed file.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FileChange {
    /// The path, relative to the repository.
    pub path: String,
    /// The path before a rename.
    pub old_path: Option<String>,
    /// What happened to it.
    #[schemars(extend("enum" = ["added", "modified", "deleted", "renamed", "copied", "type_changed", "untracked", "conflicted"]))]
    pub status: String,
    /// Lines added.
    pub additions: u64,
    /// Lines removed.
    pub deletions: u64,
    /// True if it is no text.
    pub binary: bool,
}

/// The difference between two revisions, or between one and the working tree.
pub(crate) fn diff(
    repository: &Repository,
    from: &str,
    to: Option<&str>,
    path: Option<&str>,
) -> Result<Diff, ToolError> {
    let broken = |error| failed("the revisions cannot be compared", &error);
    let (from, to) = ends(repository, from, to)?;
    let mut options = DiffOptions::new();
    // The path is a name, not a pattern: `[` is a letter of some file names.
    options.disable_pathspec_match(true);
    if let Some(path) = path.map(|path| path_within(repository, path)).transpose()?.filter(|path| !path.is_empty()) {
        options.pathspec(path);
    }
    let from_tree = from.tree().map_err(broken)?;
    let mut changed = match &to {
        Some(to) => {
            let to_tree = to.tree().map_err(broken)?;
            repository.diff_tree_to_tree(Some(&from_tree), Some(&to_tree), Some(&mut options))
        }
        None => repository.diff_tree_to_workdir_with_index(Some(&from_tree), Some(&mut options)),
    }
    .map_err(broken)?;
    changed.find_similar(None).map_err(broken)?;
    let stats = changed.stats().map_err(broken)?;
    let files = patches(&changed)?;
    Ok(Diff {
        from_sha: from.id().to_string(),
        to_sha: to.map(|to| to.id().to_string()),
        truncated: files.len() < changed.deltas().len() || files.iter().any(|file| file.truncated),
        files,
        files_changed: stats.files_changed() as u64,
        additions: stats.insertions() as u64,
        deletions: stats.deletions() as u64,
    })
}

/// The changed files without their patches.
pub(crate) fn changes(diff: &git2::Diff<'_>) -> Result<Vec<FileChange>, ToolError> {
    (0..diff.deltas().len().min(FILES)).map(|index| Ok(change(diff, index)?.0)).collect()
}

/// `a..b` compares the ends; `a...b` compares `b` with where it left `a`, as git does.
fn ends<'repository>(
    repository: &'repository Repository,
    from: &str,
    to: Option<&str>,
) -> Result<(git2::Commit<'repository>, Option<git2::Commit<'repository>>), ToolError> {
    let named = |revision: &str| commit(repository, if revision.is_empty() { "HEAD" } else { revision });
    if let Some(to) = to {
        return Ok((named(from)?, Some(named(to)?)));
    }
    if let Some((left, right)) = from.split_once("...") {
        let (left, right) = (named(left)?, named(right)?);
        let base = repository.merge_base(left.id(), right.id()).and_then(|base| repository.find_commit(base));
        let base = base.map_err(|_| ToolError::failed(format!("the two ends of `{from}` share no commit")))?;
        return Ok((base, Some(right)));
    }
    match from.split_once("..") {
        Some((left, right)) => Ok((named(left)?, Some(named(right)?))),
        None => Ok((named(from)?, None)),
    }
}

fn patches(diff: &git2::Diff<'_>) -> Result<Vec<FileDiff>, ToolError> {
    let mut left = PATCH_BYTES;
    let mut files = Vec::new();
    for index in 0..diff.deltas().len().min(FILES) {
        let (FileChange { path, old_path, status, additions, deletions, binary }, patch) = change(diff, index)?;
        let (patch, truncated) = match patch {
            Some(mut patch) if !binary => patch_text(&mut patch, left.min(FILE_PATCH_BYTES)),
            _ => (String::new(), false),
        };
        left = left.saturating_sub(patch.len());
        files.push(FileDiff { path, old_path, status, additions, deletions, binary, patch, truncated });
    }
    Ok(files)
}

fn change<'diff>(diff: &git2::Diff<'diff>, index: usize) -> Result<(FileChange, Option<Patch<'diff>>), ToolError> {
    let broken = |error| failed("a changed file cannot be read", &error);
    let patch = Patch::from_diff(diff, index).map_err(broken)?;
    // Loading the patch is what finds out whether a file is binary, so the delta is read after it.
    let delta = diff.get_delta(index).ok_or_else(|| ToolError::failed("the difference changed while it was read"))?;
    let (additions, deletions) = match &patch {
        Some(patch) => patch.line_stats().map(|(_, added, removed)| (added, removed)).map_err(broken)?,
        None => (0, 0),
    };
    let name = |file: git2::DiffFile<'_>| file.path_bytes().map(|path| String::from_utf8_lossy(path).into_owned());
    let path = name(delta.new_file()).or_else(|| name(delta.old_file())).unwrap_or_default();
    let old_path = name(delta.old_file()).filter(|old| *old != path);
    let change = FileChange {
        path,
        old_path,
        status: status(delta.status()).to_owned(),
        additions: additions as u64,
        deletions: deletions as u64,
        binary: delta.flags().is_binary(),
    };
    Ok((change, patch))
}

/// The patch up to `most` bytes, whole lines only, and whether it was cut.
fn patch_text(patch: &mut Patch<'_>, most: usize) -> (String, bool) {
    let mut text = Vec::new();
    let mut cut = false;
    // Returning false ends the printing with an error, which is no failure here.
    let _ = patch.print(&mut |_, _, line| {
        let marked = matches!(line.origin(), '+' | '-' | ' ');
        if text.len() + line.content().len() + usize::from(marked) > most {
            cut = true;
            return false;
        }
        if marked {
            text.push(line.origin() as u8);
        }
        text.extend_from_slice(line.content());
        true
    });
    (String::from_utf8_lossy(&text).into_owned(), cut)
}

fn status(delta: Delta) -> &'static str {
    match delta {
        Delta::Added => "added",
        Delta::Deleted => "deleted",
        Delta::Renamed => "renamed",
        Delta::Copied => "copied",
        Delta::Typechange => "type_changed",
        Delta::Untracked => "untracked",
        Delta::Conflicted => "conflicted",
        _ => "modified",
    }
}
