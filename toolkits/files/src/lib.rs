//! Files and folders on this machine: listed, read, searched and described, within allowed roots.
//!
//! It changes nothing. Every path is resolved before it is used, and every file is opened beneath its root without
//! following links, so that neither `..` nor a symbolic link, not even one that changes meanwhile, leads outside. What it
//! does not protect: everything within a root is readable, and hard links are files like any other.

mod list;
mod read;
mod roots;
mod search;

use std::path::PathBuf;
use std::sync::Arc;

use fimble_toolkit::{ToolError, blocking, toolkit};

pub use list::{Entry, Listing, Stat};
pub use read::FileText;
pub use search::{Match, Matches};

use roots::Roots;

/// The toolkit `files_toolkit`.
#[derive(Debug, Clone)]
pub struct Files {
    roots: Arc<Roots>,
    limits: Limits,
}

/// What one call may read and return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of text that `read` and `tail` return. Default 262,144.
    pub text_bytes: usize,
    /// Bytes of a file that `read` goes through to count its lines. Default 268,435,456.
    pub scan_bytes: u64,
    /// Entries that `list` returns, and matches that `search` does. Default 5,000.
    pub entries: u32,
    /// Bytes of a file that `search` looks into; larger files are passed over. Default 33,554,432.
    pub search_file_bytes: u64,
    /// Characters of a matching line; the rest is cut. Default 500.
    pub match_characters: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            text_bytes: 256 * 1024,
            scan_bytes: 256 * 1024 * 1024,
            entries: 5_000,
            search_file_bytes: 32 * 1024 * 1024,
            match_characters: 500,
        }
    }
}

impl Files {
    /// Files within any of `roots`; relative paths are meant from the first. A root that is not there is left out.
    pub fn new(roots: Vec<PathBuf>, limits: Limits) -> Self {
        Self { roots: Arc::new(Roots::new(roots)), limits }
    }

    fn checked_limit(&self, limit: u32) -> Result<usize, ToolError> {
        let most = self.limits.entries;
        if (1..=most).contains(&limit) {
            return Ok(limit as usize);
        }
        Err(ToolError::invalid_argument(format!("`limit` is from 1 to {most}, not {limit}")))
    }
}

/// Files and folders on this machine: list, read, search. Read only. Relative paths start at the first allowed folder.
#[toolkit(name = "files_toolkit")]
impl Files {
    /// The files and folders in a folder, by name.
    #[operation(risk = "read", timeout_s = 30)]
    async fn list(
        &self,
        /// The folder.
        #[default(".")]
        path: String,
        /// Only names or paths of this form, e.g. `*.rs` or `src/**/*.rs`.
        pattern: Option<String>,
        /// Also what is in the folders within, without hidden files and what `.gitignore` names.
        #[default(false)]
        recursive: bool,
        /// Most entries to return.
        #[default(500)]
        limit: u32,
    ) -> Result<Listing, ToolError> {
        let (roots, limit) = (Arc::clone(&self.roots), self.checked_limit(limit)?);
        blocking(move |cancelled| list::list(&roots, &path, pattern.as_deref(), recursive, limit, cancelled)).await
    }

    /// The text of a file, or some of its lines.
    #[operation(risk = "read", timeout_s = 30)]
    async fn read(
        &self,
        /// The file.
        path: String,
        /// First line, from 1.
        #[default(1)]
        start_line: u64,
        /// Last line. Default: the last of the file.
        end_line: Option<u64>,
    ) -> Result<FileText, ToolError> {
        let (roots, limits) = (Arc::clone(&self.roots), self.limits);
        blocking(move |cancelled| read::read(&roots, &path, start_line, end_line, &limits, cancelled)).await
    }

    /// The last lines of a file, e.g. of a log.
    #[operation(risk = "read", timeout_s = 30)]
    async fn tail(
        &self,
        /// The file.
        path: String,
        /// Most lines to return.
        #[default(50)]
        lines: u32,
    ) -> Result<FileText, ToolError> {
        let (roots, limits) = (Arc::clone(&self.roots), self.limits);
        blocking(move |cancelled| read::tail(&roots, &path, lines, &limits, cancelled)).await
    }

    /// The lines of files that match a regular expression, without hidden files and what `.gitignore` names.
    #[operation(risk = "read", timeout_s = 60)]
    async fn search(
        &self,
        /// Regular expression, as ripgrep reads it. `\b`, `\d` and `(?i)` work; look-around does not.
        pattern: String,
        /// The file or folder to search.
        #[default(".")]
        path: String,
        /// Only files of this form, e.g. `*.py`.
        glob: Option<String>,
        /// Most matches to return.
        #[default(200)]
        limit: u32,
        /// Whether `a` matches `A`.
        #[default(false)]
        ignore_case: bool,
    ) -> Result<Matches, ToolError> {
        let (roots, limits, limit) = (Arc::clone(&self.roots), self.limits, self.checked_limit(limit)?);
        blocking(move |cancelled| {
            let search = search::Search::new(&pattern, glob.as_deref(), ignore_case, limit, limits)?;
            search.run(&roots, &path, cancelled)
        })
        .await
    }

    /// Kind, size, times and permissions of a file or folder.
    #[operation(risk = "read", timeout_s = 10)]
    async fn stat(
        &self,
        /// The file or folder.
        path: String,
    ) -> Result<Stat, ToolError> {
        let roots = Arc::clone(&self.roots);
        blocking(move |_| list::stat(&roots, &path)).await
    }
}
