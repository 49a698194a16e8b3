//! One commit, as results show it.

use schemars::JsonSchema;
use serde::Serialize;

use crate::date::rfc3339;

/// Longest message in characters; the rest is cut.
const MESSAGE_CHARACTERS: usize = 4_000;

/// A commit.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Commit {
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
}

impl Commit {
    pub(crate) fn new(commit: &git2::Commit<'_>) -> Self {
        let author = commit.author();
        let message = String::from_utf8_lossy(commit.message_bytes());
        Self {
            sha: commit.id().to_string(),
            short_sha: short(commit.id()),
            author: String::from_utf8_lossy(author.name_bytes()).into_owned(),
            email: String::from_utf8_lossy(author.email_bytes()).into_owned(),
            date: rfc3339(author.when()),
            subject: subject(commit),
            message: message.trim().chars().take(MESSAGE_CHARACTERS).collect(),
            parents: commit.parent_ids().map(|id| id.to_string()).collect(),
        }
    }
}

/// The first line of the message.
pub(crate) fn subject(commit: &git2::Commit<'_>) -> String {
    let message = String::from_utf8_lossy(commit.message_bytes());
    message.trim().lines().next().unwrap_or_default().chars().take(MESSAGE_CHARACTERS).collect()
}

/// The first seven characters of an id.
pub(crate) fn short(id: git2::Oid) -> String {
    id.to_string().chars().take(7).collect()
}
