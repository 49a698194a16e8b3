//! What a session may keep: turns captured variables into stored ones and leaves out what is too large. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::interpreter::Captured;
use crate::program::head;
use crate::record::{Variable, WrittenVariable};
use crate::store::packing::content_hash;

/// What a session may keep, and how many may be at work. Named in the configuration under `session`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The content of one variable in KiB. Default 8,192.
    pub variable_kib: u64,
    /// The contents of all variables that a session has at a time, in KiB. Default 65,536.
    pub variables_kib: u64,
    /// Sessions of one user that may be at work at a time; those that are, are never disturbed. Default 16.
    pub at_once: u32,
    /// Seconds for which a further one waits for its turn before it is refused. Default 0.
    pub wait_s: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { variable_kib: 8_192, variables_kib: 65_536, at_once: 16, wait_s: 0 }
    }
}

/// What a program left under a name, as `round` writes it.
pub fn written_variable(captured: Captured, round: u64) -> WrittenVariable {
    let Captured { name, kind, content, type_name, preview, line, references } = captured;
    let (size, hash) = (content.len() as u64, content_hash(&content));
    let preview = head(kind, &content).unwrap_or(preview);
    WrittenVariable {
        variable: Variable { name, kind, type_name, preview, size, hash, round, line, references },
        content,
    }
}

/// Splits what was written into what fits, in its order, and the names of the rest with the reason.
pub(super) fn fit(
    config: Config,
    variables: &BTreeMap<String, Variable>,
    written: Vec<WrittenVariable>,
    removed: &[String],
) -> (Vec<WrittenVariable>, Vec<(String, String)>) {
    // What is written or removed makes room first.
    let mut sizes: BTreeMap<&str, u64> =
        variables.values().map(|variable| (variable.name.as_str(), variable.size)).collect();
    for name in written.iter().map(|written| &written.variable.name).chain(removed) {
        sizes.remove(name.as_str());
    }
    let mut total: u64 = sizes.into_values().sum();
    let (mut fitting, mut kept_out) = (Vec::with_capacity(written.len()), Vec::new());
    for written in written {
        let size = written.content.len() as u64;
        if size > config.variable_kib.saturating_mul(1024) {
            let reason = format!("{} is over the limit of a variable: {} KiB", kib(size), config.variable_kib);
            kept_out.push((written.variable.name, reason));
        } else if total.saturating_add(size) > config.variables_kib.saturating_mul(1024) {
            let reason = format!(
                "with {} more the variables are over the limit of a session: {} KiB; delete what is no longer needed",
                kib(size),
                config.variables_kib
            );
            kept_out.push((written.variable.name, reason));
        } else {
            total += size;
            fitting.push(written);
        }
    }
    (fitting, kept_out)
}

fn kib(bytes: u64) -> String {
    format!("{} KiB", bytes.div_ceil(1024))
}
