//! Git repositories on this machine, read with libgit2: history, differences, authorship, branches and state.
//!
//! It changes nothing and speaks to no server. It reads repositories whose working tree is within the allowed roots;
//! a linked worktree's objects may lie elsewhere, as git itself wrote them there.

mod blame;
mod branches;
mod commit;
mod date;
mod diff;
mod history;
mod location;
mod status;

use std::path::PathBuf;

use fimble_toolkit::{ToolError, blocking, toolkit};

pub use blame::{Blame, BlameLine};
pub use branches::{Branch, Tag};
pub use commit::Commit;
pub use diff::{Diff, FileChange, FileDiff};
pub use history::CommitDetails;
pub use status::{FileStatus, Status};

use location::Location;

/// The toolkit `git_toolkit`.
#[derive(Debug, Clone)]
pub struct Git {
    location: Location,
}

impl Git {
    /// Repositories within `root`. If `root` itself lies within a repository, that is the default one.
    pub fn new(root: PathBuf) -> Self {
        Self::with_roots(vec![root])
    }

    /// Repositories within any of `roots`; relative paths are meant from the first.
    pub fn with_roots(roots: Vec<PathBuf>) -> Self {
        Self { location: Location::new(roots) }
    }
}

/// The current git repository: commits, differences, authorship, branches, state. Read only.
#[toolkit(name = "git_toolkit")]
impl Git {
    /// Commits, newest first.
    #[operation(risk = "read", timeout_s = 30)]
    #[expect(clippy::too_many_arguments, reason = "they are keyword arguments, all of them optional")]
    async fn log(
        &self,
        /// Most commits to return, up to 1000.
        #[default(20)]
        limit: u32,
        /// Only commits that changed this file or folder, relative to the repository.
        path: Option<String>,
        /// Only commits whose author's name or email contains this, in any case.
        author: Option<String>,
        /// Only commits from then on: `2026-01-31`, `2026-01-31T12:00:00Z` or `2 weeks ago`. Dates are UTC.
        since: Option<String>,
        /// Only commits up to then, the day included.
        until: Option<String>,
        /// Branch, tag or commit to begin with. Default: what is checked out.
        branch: Option<String>,
        /// Folder of the repository. Default: the one at hand.
        repository: Option<String>,
    ) -> Result<Vec<Commit>, ToolError> {
        let location = self.location.clone();
        blocking(move |cancelled| {
            let repository = location.open(repository.as_deref())?;
            let filter = history::Filter::new(limit, path, author, since, until, branch)?;
            history::log(&repository, &filter, cancelled)
        })
        .await
    }

    /// One commit with its whole message, the files it changed and their line counts.
    #[operation(risk = "read", timeout_s = 30)]
    async fn show(
        &self,
        /// Commit, branch or tag, e.g. `HEAD~2`.
        #[default("HEAD")]
        revision: String,
        /// Folder of the repository. Default: the one at hand.
        repository: Option<String>,
    ) -> Result<CommitDetails, ToolError> {
        let location = self.location.clone();
        blocking(move |_| history::show(&location.open(repository.as_deref())?, &revision)).await
    }

    /// What changed between two revisions, or between one and the working tree, file by file.
    #[operation(risk = "read", timeout_s = 30)]
    async fn diff(
        &self,
        /// Revision to compare from. `a..b` and `a...b` name both ends.
        #[default("HEAD")]
        from_revision: String,
        /// Revision to compare to. Default: the working tree with what is staged.
        to_revision: Option<String>,
        /// Only this file or folder, relative to the repository.
        path: Option<String>,
        /// Folder of the repository. Default: the one at hand.
        repository: Option<String>,
    ) -> Result<Diff, ToolError> {
        let location = self.location.clone();
        blocking(move |_| {
            let repository = location.open(repository.as_deref())?;
            diff::diff(&repository, &from_revision, to_revision.as_deref(), path.as_deref())
        })
        .await
    }

    /// Who last changed each line of a file, and in which commit.
    #[operation(risk = "read", timeout_s = 60)]
    async fn blame(
        &self,
        /// The file, relative to the repository.
        path: String,
        /// First line, from 1.
        #[default(1)]
        start_line: u32,
        /// Last line. Default: the last of the file, at most 1000 lines after the first.
        end_line: Option<u32>,
        /// The file as it was at this revision.
        #[default("HEAD")]
        revision: String,
        /// Folder of the repository. Default: the one at hand.
        repository: Option<String>,
    ) -> Result<Blame, ToolError> {
        let location = self.location.clone();
        blocking(move |_| {
            let repository = location.open(repository.as_deref())?;
            blame::blame(&repository, &path, start_line, end_line, &revision)
        })
        .await
    }

    /// Local and remote branches, most recently changed first.
    #[operation(risk = "read", timeout_s = 30)]
    async fn branches(
        &self,
        /// Most branches to return, up to 1000.
        #[default(100)]
        limit: u32,
        /// Folder of the repository. Default: the one at hand.
        repository: Option<String>,
    ) -> Result<Vec<Branch>, ToolError> {
        let location = self.location.clone();
        blocking(move |_| branches::branches(&location.open(repository.as_deref())?, limit)).await
    }

    /// Tags, newest first.
    #[operation(risk = "read", timeout_s = 30)]
    async fn tags(
        &self,
        /// Most tags to return, up to 1000.
        #[default(100)]
        limit: u32,
        /// Folder of the repository. Default: the one at hand.
        repository: Option<String>,
    ) -> Result<Vec<Tag>, ToolError> {
        let location = self.location.clone();
        blocking(move |_| branches::tags(&location.open(repository.as_deref())?, limit)).await
    }

    /// What is checked out, and what is staged, changed or untracked in the working tree.
    #[operation(risk = "read", timeout_s = 30)]
    async fn status(
        &self,
        /// Folder of the repository. Default: the one at hand.
        repository: Option<String>,
    ) -> Result<Status, ToolError> {
        let location = self.location.clone();
        blocking(move |_| status::status(&location.open(repository.as_deref())?)).await
    }
}
