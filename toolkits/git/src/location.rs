//! Which repository, which commit and which path within it a call means, and that it is allowed to.

use std::path::{Component, Path, PathBuf};

use fimble_toolkit::{ErrorKind, ToolError};
use git2::{ErrorCode, Repository};

/// The roots, canonical where they exist.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    roots: Vec<PathBuf>,
}

impl Location {
    pub(crate) fn new(roots: Vec<PathBuf>) -> Self {
        Self { roots: roots.into_iter().map(|root| root.canonicalize().unwrap_or(root)).collect() }
    }

    /// The repository at `folder`, or the one that the first root lies in.
    pub(crate) fn open(&self, folder: Option<&str>) -> Result<Repository, ToolError> {
        let first = self.roots.first().ok_or_else(|| ToolError::unavailable("no folder is open to git_toolkit"))?;
        let Some(folder) = folder else {
            // The root was the host's choice: the repository around it is what the user works in.
            return Repository::discover(first).map_err(|error| not_a_repository(first, &error));
        };
        let asked = first.join(folder);
        let path = asked.canonicalize().map_err(|_| {
            ToolError::not_found(format!("there is no folder `{}`", asked.display())).with_hint(self.hint())
        })?;
        let repository = if self.allows(&path) || self.encloses_first(&path) {
            Repository::discover(&path).map_err(|error| not_a_repository(&path, &error))?
        } else {
            return Err(self.denied(&path));
        };
        let working_tree = repository.workdir().unwrap_or_else(|| repository.path());
        let working_tree = working_tree.canonicalize().unwrap_or_else(|_| working_tree.to_owned());
        if self.allows(&working_tree) || self.encloses_first(&working_tree) {
            return Ok(repository);
        }
        Err(not_a_repository(&path, &git2::Error::from_str("the repository around it is outside the roots")))
    }

    fn allows(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root))
    }

    /// True for the working tree of the default repository, which a model may name by its full path.
    fn encloses_first(&self, path: &Path) -> bool {
        let Some(first) = self.roots.first() else { return false };
        let default = Repository::discover(first).ok();
        default.and_then(|default| default.workdir()?.canonicalize().ok()).is_some_and(|default| default == path)
    }

    fn denied(&self, path: &Path) -> ToolError {
        let message = format!("`{}` is outside the folders that git_toolkit may read", path.display());
        ToolError::new(ErrorKind::Forbidden, message).with_hint(self.hint())
    }

    fn hint(&self) -> String {
        let roots: Vec<String> = self.roots.iter().map(|root| format!("`{}`", root.display())).collect();
        format!("leave `repository` out for the current one; others are within {}", roots.join(" or "))
    }
}

/// The commit that a revision names.
pub(crate) fn commit<'repository>(
    repository: &'repository Repository,
    revision: &str,
) -> Result<git2::Commit<'repository>, ToolError> {
    let found = repository.revparse_single(revision).and_then(|object| object.peel_to_commit());
    found.map_err(|error| match error.code() {
        _ if revision == "HEAD" && unborn(repository) => ToolError::not_found("the repository has no commits yet"),
        // Libgit2 calls a beginning of fewer than four characters ambiguous, whatever there is.
        ErrorCode::Ambiguous if revision.len() >= 4 => {
            ToolError::invalid_argument(format!("`{revision}` is the beginning of more than one commit's sha"))
                .with_hint("give more characters of it")
        }
        _ => ToolError::not_found(format!("there is no commit, branch or tag `{revision}`"))
            .with_hint("log() lists the commits, branches() and tags() the names"),
    })
}

/// `path` relative to the working tree, with `/`, without `.` and `..`. Empty for the working tree itself.
pub(crate) fn path_within(repository: &Repository, path: &str) -> Result<String, ToolError> {
    let outside = || {
        ToolError::invalid_argument(format!("`{path}` is not in the repository"))
            .with_hint("give it relative to the repository's top folder, e.g. `src/main.rs`")
    };
    let mut relative = Path::new(path);
    if relative.is_absolute() {
        let working_tree = repository.workdir().ok_or_else(outside)?;
        relative = relative.strip_prefix(working_tree).map_err(|_| outside())?;
    }
    let mut parts: Vec<&str> = Vec::new();
    for component in relative.components() {
        match component {
            Component::Normal(part) => parts.push(part.to_str().ok_or_else(outside)?),
            Component::CurDir => {}
            Component::ParentDir => {
                parts.pop().ok_or_else(outside)?;
            }
            Component::RootDir | Component::Prefix(_) => return Err(outside()),
        }
    }
    Ok(parts.join("/"))
}

/// True before the first commit of what is checked out.
fn unborn(repository: &Repository) -> bool {
    repository.head().is_err_and(|error| error.code() == ErrorCode::UnbornBranch)
}

/// What git said, for whatever has no better words.
pub(crate) fn failed(what: &str, error: &git2::Error) -> ToolError {
    ToolError::failed(format!("{what}: {}", error.message()))
}

/// `limit`, if it is within what one call may return.
pub(crate) fn checked_limit(limit: u32) -> Result<usize, ToolError> {
    match limit {
        1..=1_000 => Ok(limit as usize),
        _ => Err(ToolError::invalid_argument(format!("`limit` is from 1 to 1000, not {limit}"))),
    }
}

fn not_a_repository(path: &Path, error: &git2::Error) -> ToolError {
    if error.code() == ErrorCode::Owner {
        let message = format!("the repository at `{}` belongs to another user", path.display());
        let hint = format!("the user can allow it with `git config --global --add safe.directory {}`", path.display());
        return ToolError::new(ErrorKind::Forbidden, message).with_hint(hint);
    }
    ToolError::not_found(format!("`{}` is not in a git repository", path.display()))
        .with_hint("name the folder of one with `repository=`")
}
