//! What is checked out, and how the working tree differs from it.

use fimble_toolkit::ToolError;
use git2::{BranchType, Repository, StatusOptions};
use schemars::JsonSchema;
use serde::Serialize;

use crate::branches::upstream;
use crate::location::failed;

/// Most files in one result.
const FILES: usize = 1_000;

/// State of a working tree.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Status {
    /// The folder of the working tree.
    pub repository: String,
    /// The branch, or `None` if a commit is checked out without one.
    pub branch: Option<String>,
    /// The full id of the commit that is checked out; `None` before the first.
    pub sha: Option<String>,
    /// The branch it follows, e.g. `origin/main`.
    pub upstream: Option<String>,
    /// Commits that the upstream lacks.
    pub ahead: Option<u64>,
    /// Commits that only the upstream has.
    pub behind: Option<u64>,
    /// True if nothing is staged, changed or untracked.
    pub clean: bool,
    /// What is under way: `clean`, `merge`, `rebase`, `cherry_pick`, `revert`, `bisect` or `other`.
    pub operation: String,
    /// The files that differ; at most 1000.
    pub files: Vec<FileStatus>,
    /// True if `files` does not hold all files.
    pub truncated: bool,
}

/// A file that differs from what is committed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FileStatus {
    /// The path, relative to the repository.
    pub path: String,
    /// What the next commit will do: `added`, `modified`, `deleted`, `renamed` or `type_changed`.
    #[schemars(extend("enum" = ["added", "modified", "deleted", "renamed", "type_changed", null]))]
    pub staged: Option<String>,
    /// What is not staged: `untracked`, `modified`, `deleted`, `renamed`, `type_changed` or `conflicted`.
    #[schemars(extend("enum" = ["untracked", "modified", "deleted", "renamed", "type_changed", "conflicted", null]))]
    pub unstaged: Option<String>,
}

/// The state of the working tree.
pub(crate) fn status(repository: &Repository) -> Result<Status, ToolError> {
    let Some(working_tree) = repository.workdir() else {
        return Err(ToolError::invalid_argument("the repository is bare: it has no working tree")
            .with_hint("log(), branches() and show() work"));
    };
    let mut options = StatusOptions::new();
    options.include_untracked(true).recurse_untracked_dirs(true).exclude_submodules(true);
    // Reading must not write: git would store refreshed file times in the index.
    options.update_index(false).renames_head_to_index(true);
    let statuses = repository
        .statuses(Some(&mut options))
        .map_err(|error| failed("the working tree cannot be compared", &error))?;
    let files: Vec<FileStatus> = statuses.iter().take(FILES).map(|entry| file(&entry)).collect();
    let head = repository.head().ok();
    // Before the first commit there is a branch without a commit: only the name in `HEAD` tells.
    let unborn = || {
        let reference = repository.find_reference("HEAD").ok()?;
        let target = String::from_utf8_lossy(reference.symbolic_target_bytes()?).into_owned();
        target.strip_prefix("refs/heads/").map(str::to_owned)
    };
    let name = match &head {
        Some(head) if head.is_branch() => Some(String::from_utf8_lossy(head.shorthand_bytes()).into_owned()),
        Some(_) => None,
        None => unborn(),
    };
    let branch = name.as_deref().and_then(|name| repository.find_branch(name, BranchType::Local).ok());
    let (upstream, counts) = branch.map_or((None, None), |branch| upstream(repository, &branch));
    Ok(Status {
        repository: working_tree.display().to_string(),
        branch: name,
        sha: head.and_then(|head| head.target()).map(|id| id.to_string()),
        upstream,
        ahead: counts.map(|(ahead, _)| ahead),
        behind: counts.map(|(_, behind)| behind),
        clean: statuses.is_empty(),
        operation: operation(repository.state()).to_owned(),
        truncated: files.len() < statuses.len(),
        files,
    })
}

fn file(entry: &git2::StatusEntry<'_>) -> FileStatus {
    let status = entry.status();
    let staged = if status.is_index_new() {
        Some("added")
    } else if status.is_index_renamed() {
        Some("renamed")
    } else if status.is_index_deleted() {
        Some("deleted")
    } else if status.is_index_typechange() {
        Some("type_changed")
    } else if status.is_index_modified() {
        Some("modified")
    } else {
        None
    };
    let unstaged = if status.is_conflicted() {
        Some("conflicted")
    } else if status.is_wt_new() {
        Some("untracked")
    } else if status.is_wt_deleted() {
        Some("deleted")
    } else if status.is_wt_renamed() {
        Some("renamed")
    } else if status.is_wt_typechange() {
        Some("type_changed")
    } else if status.is_wt_modified() {
        Some("modified")
    } else {
        None
    };
    // After a staged rename the entry's own path is the old one.
    let renamed = entry.head_to_index().and_then(|delta| delta.new_file().path_bytes().map(<[u8]>::to_vec));
    let path = renamed.unwrap_or_else(|| entry.path_bytes().to_vec());
    FileStatus {
        path: String::from_utf8_lossy(&path).into_owned(),
        staged: staged.map(str::to_owned),
        unstaged: unstaged.map(str::to_owned),
    }
}

fn operation(state: git2::RepositoryState) -> &'static str {
    use git2::RepositoryState as State;
    match state {
        State::Clean => "clean",
        State::Merge => "merge",
        State::Rebase | State::RebaseInteractive | State::RebaseMerge => "rebase",
        State::CherryPick | State::CherryPickSequence => "cherry_pick",
        State::Revert | State::RevertSequence => "revert",
        State::Bisect => "bisect",
        _ => "other",
    }
}
