//! The names of commits: branches and tags.

use fimble_toolkit::ToolError;
use git2::{BranchType, Repository};
use schemars::JsonSchema;
use serde::Serialize;

use crate::commit::{short, subject};
use crate::date::rfc3339;
use crate::location::{checked_limit, failed};

/// A branch and its newest commit.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Branch {
    /// The name, e.g. `main` or `origin/main`.
    pub name: String,
    /// True if it is checked out.
    pub current: bool,
    /// True for a branch of a remote, as it was at the last fetch.
    pub remote: bool,
    /// The full id of its newest commit.
    pub sha: String,
    /// The first seven characters of the id.
    pub short_sha: String,
    /// The first line of that commit's message.
    pub subject: String,
    /// That commit's author.
    pub author: String,
    /// When that commit was made, RFC 3339.
    pub date: String,
    /// The branch it follows, e.g. `origin/main`.
    pub upstream: Option<String>,
    /// Commits that the upstream lacks.
    pub ahead: Option<u64>,
    /// Commits that only the upstream has.
    pub behind: Option<u64>,
}

/// A tag and its commit.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Tag {
    /// The name.
    pub name: String,
    /// The full id of the commit.
    pub sha: String,
    /// The first seven characters of the id.
    pub short_sha: String,
    /// The first line of the commit's message.
    pub subject: String,
    /// When the tag was made, or the commit if the tag is a bare name; RFC 3339.
    pub date: String,
    /// The tag's own message, if it has one.
    pub message: Option<String>,
}

/// Branches, most recently changed first.
pub(crate) fn branches(repository: &Repository, limit: u32) -> Result<Vec<Branch>, ToolError> {
    let limit = checked_limit(limit)?;
    let broken = |error| failed("the branches cannot be read", &error);
    let mut found = Vec::new();
    for branch in repository.branches(None).map_err(broken)? {
        let (branch, kind) = branch.map_err(broken)?;
        // `origin/HEAD` is another name of a branch that is listed itself.
        let Some(id) = branch.get().target() else { continue };
        let Ok(commit) = repository.find_commit(id) else { continue };
        found.push((commit.time().seconds(), branch, kind, commit));
    }
    found.sort_by_key(|(time, ..)| std::cmp::Reverse(*time));
    let branches = found.into_iter().take(limit).map(|(_, branch, kind, commit)| {
        let (upstream, counts) = upstream(repository, &branch);
        Branch {
            name: String::from_utf8_lossy(branch.name_bytes().unwrap_or_default()).into_owned(),
            current: branch.is_head(),
            remote: kind == BranchType::Remote,
            sha: commit.id().to_string(),
            short_sha: short(commit.id()),
            subject: subject(&commit),
            author: String::from_utf8_lossy(commit.author().name_bytes()).into_owned(),
            date: rfc3339(commit.time()),
            upstream,
            ahead: counts.map(|(ahead, _)| ahead),
            behind: counts.map(|(_, behind)| behind),
        }
    });
    Ok(branches.collect())
}

/// Tags, newest first.
pub(crate) fn tags(repository: &Repository, limit: u32) -> Result<Vec<Tag>, ToolError> {
    let limit = checked_limit(limit)?;
    let broken = |error| failed("the tags cannot be read", &error);
    let mut found = Vec::new();
    for reference in repository.references_glob("refs/tags/*").map_err(broken)? {
        let reference = reference.map_err(broken)?;
        let name = String::from_utf8_lossy(reference.shorthand_bytes()).into_owned();
        // A tag may name a file or a tree; those are no releases.
        let Ok(commit) = reference.peel_to_commit() else { continue };
        let annotated = reference.target().and_then(|id| repository.find_tag(id).ok());
        let message = annotated.as_ref().and_then(|tag| tag.message_bytes());
        let message = message.map(|message| String::from_utf8_lossy(message).trim().chars().take(4_000).collect());
        let tagger = annotated.as_ref().and_then(|tag| tag.tagger());
        let time = tagger.map_or_else(|| commit.time(), |tagger| tagger.when());
        found.push((
            time.seconds(),
            Tag {
                name,
                sha: commit.id().to_string(),
                short_sha: short(commit.id()),
                subject: subject(&commit),
                date: rfc3339(time),
                message,
            },
        ));
    }
    found.sort_by(|(left, _), (right, _)| right.cmp(left));
    Ok(found.into_iter().take(limit).map(|(_, tag)| tag).collect())
}

/// The name of what the branch follows, and how far the two are apart.
pub(crate) fn upstream(repository: &Repository, branch: &git2::Branch<'_>) -> (Option<String>, Option<(u64, u64)>) {
    let Ok(upstream) = branch.upstream() else { return (None, None) };
    let name = upstream.name_bytes().ok().map(|name| String::from_utf8_lossy(name).into_owned());
    let ends = branch.get().target().zip(upstream.get().target());
    let counts = ends.and_then(|(local, remote)| repository.graph_ahead_behind(local, remote).ok());
    (name, counts.map(|(ahead, behind)| (ahead as u64, behind as u64)))
}
