//! Who last changed each line of a file.

use std::path::Path;

use fimble_toolkit::ToolError;
use git2::{BlameOptions, Repository};
use schemars::JsonSchema;
use serde::Serialize;

use crate::commit::{short, subject};
use crate::date::rfc3339;
use crate::location::{commit, failed, path_within};

/// Most lines in one result.
const LINES: u32 = 1_000;
/// Longest line in characters; the rest is cut.
const LINE_CHARACTERS: usize = 1_000;
/// Largest file in bytes.
const FILE_BYTES: usize = 8 * 1024 * 1024;

/// Authorship of a file's lines.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Blame {
    /// The path, relative to the repository.
    pub path: String,
    /// The lines asked for; at most 1000.
    pub lines: Vec<BlameLine>,
    /// How many lines the file has.
    pub total_lines: u32,
    /// True if lines that were asked for are missing.
    pub truncated: bool,
}

/// One line and the commit that last changed it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BlameLine {
    /// The line's number, from 1.
    pub line: u32,
    /// The commit's full id.
    pub sha: String,
    /// The first seven characters of the id.
    pub short_sha: String,
    /// The author's name.
    pub author: String,
    /// The author's email address.
    pub email: String,
    /// When the commit was authored, RFC 3339.
    pub date: String,
    /// The first line of the commit's message.
    pub subject: String,
    /// The line's text, cut to 1000 characters.
    pub text: String,
}

/// The lines of a file with their commits.
pub(crate) fn blame(
    repository: &Repository,
    path: &str,
    start: u32,
    end: Option<u32>,
    revision: &str,
) -> Result<Blame, ToolError> {
    let path = path_within(repository, path)?;
    let newest = commit(repository, revision)?;
    let content = content(repository, &newest, &path, revision)?;
    let lines: Vec<&str> = content.lines().collect();
    let total = u32::try_from(lines.len()).unwrap_or(u32::MAX);
    if start == 0 || start > total.max(1) || end.is_some_and(|end| end < start) {
        let asked = end.map_or_else(|| format!("{start} on"), |end| format!("{start} to {end}"));
        return Err(ToolError::invalid_argument(format!("`{path}` has lines 1 to {total}, not {asked}")));
    }
    let wanted = end.unwrap_or(total).min(total);
    let last = wanted.min(start.saturating_add(LINES - 1));
    let mut options = BlameOptions::new();
    options.newest_commit(newest.id()).min_line(start as usize).max_line(last as usize);
    let broken = |error| failed("the file's history cannot be read", &error);
    let found = if total == 0 {
        None
    } else {
        Some(repository.blame_file(Path::new(&path), Some(&mut options)).map_err(broken)?)
    };
    let mut result = Vec::new();
    for number in start..=last {
        let Some(hunk) = found.as_ref().and_then(|blame| blame.get_line(number as usize)) else { continue };
        let changed = repository.find_commit(hunk.final_commit_id()).map_err(broken)?;
        let author = changed.author();
        let text = lines.get(number as usize - 1).copied().unwrap_or_default();
        result.push(BlameLine {
            line: number,
            sha: changed.id().to_string(),
            short_sha: short(changed.id()),
            author: String::from_utf8_lossy(author.name_bytes()).into_owned(),
            email: String::from_utf8_lossy(author.email_bytes()).into_owned(),
            date: rfc3339(author.when()),
            subject: subject(&changed),
            text: text.chars().take(LINE_CHARACTERS).collect(),
        });
    }
    Ok(Blame { path, lines: result, total_lines: total, truncated: last < wanted })
}

fn content(
    repository: &Repository,
    commit: &git2::Commit<'_>,
    path: &str,
    revision: &str,
) -> Result<String, ToolError> {
    let missing = || {
        ToolError::not_found(format!("there is no file `{path}` at `{revision}`"))
            .with_hint("the path is relative to the repository's top folder")
    };
    let tree = commit.tree().map_err(|error| failed("the commit cannot be read", &error))?;
    let object = tree.get_path(Path::new(path)).and_then(|entry| entry.to_object(repository)).map_err(|_| missing())?;
    let blob = object.into_blob().map_err(|_| {
        ToolError::invalid_argument(format!("`{path}` is a folder")).with_hint("blame() takes one file")
    })?;
    if blob.is_binary() || blob.content().len() > FILE_BYTES {
        return Err(ToolError::invalid_argument(format!("`{path}` is no text file of at most 8 MiB")));
    }
    Ok(String::from_utf8_lossy(blob.content()).into_owned())
}
