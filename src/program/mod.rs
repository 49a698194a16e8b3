//! The FIM program: the host's scaffold, the model's hole spliced into it, checked and repaired. Pure.
//!
//! It does not know which model wrote the hole, how it is run, or what a toolkit does. What it returns as a [`Program`]
//! parses, stays inside its `try`, binds no name of a toolkit, and calls toolkits as they are declared.

mod bindings;
mod check;
mod check_call;
mod check_result;
mod deferred;
mod edit;
mod fix;
mod head;
mod lines;
mod literal_type;
mod mutation;
mod names;
mod owner;
mod provenance;
mod quotes;
mod repair;
mod result_type;
mod rewrite;
mod scaffold;
mod splice;
mod statements;
mod stream;
mod suggest;
mod syntax;
mod toolkit_call;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use fimble_toolkit::Declaration;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use head::head;
pub use lines::lines_about;
pub use provenance::{Provenance, provenance};
pub use scaffold::{Failed, HOLE_INDENT, Scaffold, ScaffoldInput};
pub use splice::{from_file, reopened, splice};
pub use statements::{after_statements, statements};
pub use stream::{hole_end, is_complete};

use crate::record::Variable;

/// The settings of this module, under `program` in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Variables shown in a scaffold, newest first. Default 20.
    pub max_variables_shown: usize,
    /// The longest hole or file, in KiB. Default 256.
    pub max_source_kib: usize,
    /// Modules that cannot work in the jail, and what to use instead. Given ones replace the default.
    pub forbidden_imports: BTreeMap<String, String>,
}

impl Default for Config {
    fn default() -> Self {
        let forbidden = [
            ("subprocess", "no process can be started, call a toolkit"),
            ("multiprocessing", "no process can be started, use `asyncio.gather`"),
            ("ctypes", "native code cannot be loaded, call a toolkit"),
            ("socket", "there is no network, call a toolkit"),
            ("http.client", "there is no network, call a toolkit"),
            ("urllib.request", "there is no network, call a toolkit"),
            ("requests", "there is no network, call a toolkit"),
            ("httpx", "there is no network, call a toolkit"),
            ("aiohttp", "there is no network, call a toolkit"),
            ("paramiko", "there is no network, call a toolkit"),
            ("psutil", "the program sees no other process, call `host_toolkit` if it is there"),
            ("git", "call `git_toolkit` if it is there"),
        ];
        let forbidden_imports = forbidden.map(|(module, hint)| (module.to_owned(), hint.to_owned()));
        Self { max_variables_shown: 20, max_source_kib: 256, forbidden_imports: BTreeMap::from(forbidden_imports) }
    }
}

/// What is known when a program is checked.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// The toolkits there are.
    pub declarations: &'a [Declaration],
    /// The variables that the session carries.
    pub carried: &'a [Variable],
    /// JSON Schemas of those of them that are known to the last field, by name.
    pub shapes: &'a BTreeMap<String, Value>,
    /// Names that earlier programs left and that could not be kept, with the reason.
    pub not_kept: &'a BTreeMap<String, String>,
    /// True if the generation ended at its length limit, see [`Finish::Length`](crate::llm::Finish::Length).
    pub finish_length: bool,
    /// The settings.
    pub config: &'a Config,
}

impl<'a> Known<'a> {
    fn toolkit(&self, name: &str) -> Option<&'a Declaration> {
        self.declarations.iter().find(|declaration| declaration.name == name)
    }

    fn knows(&self, name: &str) -> bool {
        self.toolkit(name).is_some() || self.carried.iter().any(|variable| variable.name == name)
    }
}

/// A program that may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The host's part before the hole; empty for a file.
    pub prefix: String,
    /// What runs and what is shown: Python at no indentation, with a line end.
    pub hole: String,
    /// The host's part after the hole; empty for a file.
    pub suffix: String,
    /// What was changed in the text, one sentence each.
    pub repairs: Vec<String>,
    /// What is likely to fail, but was not refused: told with the traceback if the program raises.
    pub warnings: Vec<Finding>,
    /// All global names that the hole may read, those included that carried definitions need.
    pub names: BTreeSet<String>,
}

impl Program {
    /// The whole program, with the hole at its place.
    pub fn text(&self) -> String {
        if self.prefix.is_empty() && self.suffix.is_empty() {
            return self.hole.clone();
        }
        format!("{}{}{}", self.prefix, lines::indent(&self.hole, HOLE_INDENT), self.suffix)
    }
}

/// Why a program must not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The hole as far as it was repaired; the findings' lines count in it.
    pub hole: String,
    /// What is wrong, in the order of the lines; never empty.
    pub findings: Vec<Finding>,
}

/// One thing that is wrong, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The line of the hole, from 1.
    pub line: u32,
    /// One sentence without a full stop.
    pub message: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "line {}: {}", self.line, self.message)
    }
}

/// Findings that are told at once; a model does not read more.
const MAX_FINDINGS_TOLD: usize = 6;

impl std::fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("The program was not run")?;
        for finding in self.findings.iter().take(MAX_FINDINGS_TOLD) {
            write!(formatter, "\n- {finding}")?;
        }
        match self.findings.len().saturating_sub(MAX_FINDINGS_TOLD) {
            0 => Ok(()),
            more => write!(formatter, "\n- and {more} more"),
        }
    }
}
