//! The commits of a repository: some of them by filter, or one in full.

use fimble_toolkit::ToolError;
use git2::{Oid, Repository, Sort};
use jiff::Zoned;
use schemars::JsonSchema;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::commit::Commit;
use crate::date::{self, End};
use crate::diff::{self, FileChange};
use crate::location::{checked_limit, commit, failed, path_within};

/// A commit with what it changed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CommitDetails {
    /// The full id.
    pub sha: String,
    /// The first seven characters of the id.
    pub short_sha: String,
    /// The author's name.
    pub author: String,
    /// The author's email address.
    pub email: String,
    /// When it was authored, RFC 3339 with the author's offset.
    pub date: String,
    /// The first line of the message.
    pub subject: String,
    /// The whole message, cut to 4000 characters.
    pub message: String,
    /// The full ids of the parents: none for the first commit, several for a merge.
    pub parents: Vec<String>,
    /// What it changed against its first parent; at most 500 files.
    pub files: Vec<FileChange>,
    /// How many files it changed.
    pub files_changed: u64,
    /// Lines added in all files.
    pub additions: u64,
    /// Lines removed in all files.
    pub deletions: u64,
    /// True if `files` does not hold all files.
    pub truncated: bool,
}

/// Which commits `log` wants.
pub(crate) struct Filter {
    limit: usize,
    path: Option<String>,
    author: Option<String>,
    since: Option<i64>,
    until: Option<i64>,
    branch: Option<String>,
}

impl Filter {
    pub(crate) fn new(
        limit: u32,
        path: Option<String>,
        author: Option<String>,
        since: Option<String>,
        until: Option<String>,
        branch: Option<String>,
    ) -> Result<Self, ToolError> {
        let now = Zoned::now();
        Ok(Self {
            limit: checked_limit(limit)?,
            path,
            author: author.map(|author| author.to_lowercase()),
            since: since.map(|text| date::parse(&text, End::First, &now)).transpose()?,
            until: until.map(|text| date::parse(&text, End::Last, &now)).transpose()?,
            branch,
        })
    }

    /// Dates are the committer's, which grow along history; the author's do not.
    fn takes(&self, commit: &git2::Commit<'_>) -> bool {
        let time = commit.time().seconds();
        let author = commit.author();
        self.since.is_none_or(|since| time >= since)
            && self.until.is_none_or(|until| time <= until)
            && self.author.as_ref().is_none_or(|wanted| {
                let name = String::from_utf8_lossy(author.name_bytes()).to_lowercase();
                let email = String::from_utf8_lossy(author.email_bytes()).to_lowercase();
                format!("{name} <{email}>").contains(wanted)
            })
    }
}

/// Commits, newest first.
pub(crate) fn log(
    repository: &Repository,
    filter: &Filter,
    cancelled: &CancellationToken,
) -> Result<Vec<Commit>, ToolError> {
    let start = commit(repository, filter.branch.as_deref().unwrap_or("HEAD"))?;
    let path = filter.path.as_deref().map(|path| path_within(repository, path)).transpose()?;
    let path = path.filter(|path| !path.is_empty());
    let walked = |error| failed("the history cannot be read", &error);
    let mut walk = repository.revwalk().map_err(walked)?;
    walk.set_sorting(Sort::TIME | Sort::TOPOLOGICAL).map_err(walked)?;
    walk.push(start.id()).map_err(walked)?;
    let mut commits = Vec::new();
    for id in walk {
        if commits.len() == filter.limit || cancelled.is_cancelled() {
            break;
        }
        let commit = repository.find_commit(id.map_err(walked)?).map_err(walked)?;
        if filter.takes(&commit) && path.as_deref().is_none_or(|path| changes(&commit, path)) {
            commits.push(Commit::new(&commit));
        }
    }
    let unfiltered = filter.author.is_none() && filter.since.is_none() && filter.until.is_none();
    if let (true, true, Some(path)) = (commits.is_empty(), unfiltered, path) {
        return Err(ToolError::not_found(format!("no commit changed a file `{path}`"))
            .with_hint("the path is relative to the repository's top folder"));
    }
    Ok(commits)
}

/// One commit in full.
pub(crate) fn show(repository: &Repository, revision: &str) -> Result<CommitDetails, ToolError> {
    let found = commit(repository, revision)?;
    let broken = |error| failed("the commit cannot be compared with its parent", &error);
    let parent = found.parent(0).ok().map(|parent| parent.tree()).transpose().map_err(broken)?;
    let tree = found.tree().map_err(broken)?;
    let mut changed = repository.diff_tree_to_tree(parent.as_ref(), Some(&tree), None).map_err(broken)?;
    changed.find_similar(None).map_err(broken)?;
    let stats = changed.stats().map_err(broken)?;
    let Commit { sha, short_sha, author, email, date, subject, message, parents } = Commit::new(&found);
    let files = diff::changes(&changed)?;
    Ok(CommitDetails {
        sha,
        short_sha,
        author,
        email,
        date,
        subject,
        message,
        parents,
        truncated: files.len() < stats.files_changed(),
        files,
        files_changed: stats.files_changed() as u64,
        additions: stats.insertions() as u64,
        deletions: stats.deletions() as u64,
    })
}

/// True if the path differs from what every parent has there; a merge that only takes one side over did not change it.
fn changes(commit: &git2::Commit<'_>, path: &str) -> bool {
    let here = entry(commit, path);
    if commit.parent_count() == 0 {
        return here.is_some();
    }
    commit.parents().all(|parent| entry(&parent, path) != here)
}

fn entry(commit: &git2::Commit<'_>, path: &str) -> Option<(Oid, i32)> {
    let entry = commit.tree().ok()?.get_path(path.as_ref()).ok()?;
    Some((entry.id(), entry.filemode()))
}
