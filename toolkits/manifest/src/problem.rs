//! What is wrong with a manifest, for its author. It does not know what a manifest means.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Why a manifest cannot be used. It reads as `service.toml:12: …`, which most editors can jump to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, or the folder if that could not be read.
    pub path: PathBuf,
    /// The line, from 1; `None` if it is about the whole file.
    pub line: Option<usize>,
    /// What is wrong: one sentence without a full stop.
    pub reason: String,
    /// What the author can do.
    pub hint: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(formatter, ":{line}")?;
        }
        write!(formatter, ": {}", self.reason)
    }
}

impl std::error::Error for Problem {}

impl Problem {
    /// One that is about the whole file.
    pub(crate) fn of_file(path: &Path, reason: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: None, reason: reason.into(), hint: None }
    }
}

/// A mistake and its place in the text, before the file's name and the line are known.
#[derive(Debug)]
pub(crate) struct Mistake {
    place: Option<Range<usize>>,
    reason: String,
    hint: Option<String>,
}

impl Mistake {
    pub(crate) fn at(place: Range<usize>, reason: impl Into<String>) -> Self {
        Self { place: Some(place), reason: reason.into(), hint: None }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn into_problem(self, path: &Path, text: &str) -> Problem {
        let line = self.place.map(|place| {
            let before = text.as_bytes().get(..place.start).unwrap_or_default();
            before.iter().filter(|byte| **byte == b'\n').count() + 1
        });
        Problem { path: path.to_owned(), line, reason: self.reason, hint: self.hint }
    }
}

impl From<toml::de::Error> for Mistake {
    fn from(error: toml::de::Error) -> Self {
        // The parser may explain itself on further lines; the first says what is wrong.
        let reason = error.message().lines().next().unwrap_or_default().to_owned();
        Self { place: error.span(), reason, hint: None }
    }
}
