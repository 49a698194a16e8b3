//! Lines that match a regular expression, found with ripgrep's own libraries.

use std::path::{Path, PathBuf};

use fimble_toolkit::ToolError;
use globset::GlobMatcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::sinks::Lossy;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::WalkBuilder;
use schemars::JsonSchema;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::Limits;
use crate::list::{glob, matches};
use crate::roots::{Allowed, Roots};

/// What a search found.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Matches {
    /// The matching lines, by path and line.
    pub matches: Vec<Match>,
    /// How many files were searched.
    pub files_searched: u64,
    /// True if there are more matches than were asked for.
    pub truncated: bool,
}

/// A matching line.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Match {
    /// The file, as the other operations take it.
    pub path: String,
    /// The line's number, from 1.
    pub line: u64,
    /// The line, cut to 500 characters.
    pub text: String,
}

/// What is looked for.
pub(crate) struct Search {
    expression: RegexMatcher,
    glob: Option<GlobMatcher>,
    limit: usize,
    limits: Limits,
}

impl Search {
    pub(crate) fn new(
        pattern: &str,
        pattern_of_files: Option<&str>,
        ignore_case: bool,
        limit: usize,
        limits: Limits,
    ) -> Result<Self, ToolError> {
        let mut builder = RegexMatcherBuilder::new();
        builder.case_insensitive(ignore_case).line_terminator(Some(b'\n'));
        let expression = builder.build(pattern).map_err(|error| {
            ToolError::invalid_argument(format!("`{pattern}` is no regular expression: {}", reason(&error))).with_hint(
                "escape `.`, `(`, `[`, `{`, `*`, `+`, `?` and `\\` with a backslash where you mean the letter",
            )
        })?;
        Ok(Self { expression, glob: pattern_of_files.map(glob).transpose()?, limit, limits })
    }

    /// Searches a file, or the files of a folder in the order of their paths.
    pub(crate) fn run(self, roots: &Roots, path: &str, cancelled: &CancellationToken) -> Result<Matches, ToolError> {
        let start = roots.resolve(path)?;
        let mut searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            // One line without end must not fill the memory.
            .heap_limit(Some(4 * 1024 * 1024))
            .build();
        let mut found = Matches { matches: Vec::new(), files_searched: 0, truncated: false };
        let mut walk = WalkBuilder::new(&start.path);
        walk.require_git(false).sort_by_file_path(Path::cmp);
        for entry in walk.build().flatten() {
            if found.truncated || cancelled.is_cancelled() {
                break;
            }
            // A link is passed over: what it leads to is found where it is, or is outside.
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            let within = entry.path().strip_prefix(&start.path).unwrap_or(entry.path());
            let within = if within.as_os_str().is_empty() { Path::new(entry.file_name()) } else { within };
            if self.glob.as_ref().is_none_or(|glob| matches(glob, within)) {
                self.search_file(&mut searcher, roots, &start, entry.path().to_owned(), &mut found);
            }
        }
        Ok(found)
    }

    /// A file that cannot be read, or is no text, has no matches.
    fn search_file(
        &self,
        searcher: &mut Searcher,
        roots: &Roots,
        start: &Allowed<'_>,
        path: PathBuf,
        found: &mut Matches,
    ) {
        let shown = roots.shown(&path);
        let Ok(file) = start.beside(path).open() else { return };
        if !file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() <= self.limits.search_file_bytes)
        {
            return;
        }
        found.files_searched += 1;
        let before = found.matches.len();
        let sink = Lossy(|line, text| {
            if found.matches.len() == self.limit {
                found.truncated = true;
                return Ok(false);
            }
            let text = text.trim_end_matches(['\r', '\n']).chars().take(self.limits.match_characters).collect();
            found.matches.push(Match { path: shown.clone(), line, text });
            Ok(true)
        });
        if searcher.search_file(&self.expression, &file, sink).is_err() {
            found.matches.truncate(before);
        }
    }
}

/// The last line of a message that draws the place; it says what is wrong.
fn reason(error: &grep_regex::Error) -> String {
    let text = error.to_string();
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}
