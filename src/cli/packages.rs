//! `fimble packages`: what programs may import besides the standard library.

use std::process::ExitCode;

use clap::Subcommand;

use super::Failure;
use super::output::write_data;
use crate::config::Config;
use crate::interpreter::packages::{self, Prepared};

/// Make ready and show the packages that programs may import: `interpreter.packages = ["numpy"]` in your configuration names
/// them.
#[derive(Debug, Subcommand)]
pub(super) enum Packages {
    /// Fetch and install them, and try them in the jail; does nothing if they are there.
    Sync {
        /// Also if they are there: fetches the newest versions.
        #[arg(long)]
        again: bool,
    },
    /// Those that are ready, with what they need.
    List {
        /// Print one JSON object a package.
        #[arg(long)]
        json: bool,
    },
}

/// The configured packages with their versions, how many more they need, and where they are.
pub(super) fn described(prepared: &Prepared) -> String {
    let requested = prepared.packages.iter().filter(|package| package.requested);
    let names: Vec<String> = requested.map(|package| format!("{} {}", package.name, package.version)).collect();
    let others = prepared.packages.len() - names.len();
    let others = if others == 0 { String::new() } else { format!(" and {others} that they need") };
    format!("{}{others}, in {}", names.join(", "), prepared.folder.display())
}

impl Packages {
    pub(super) async fn execute(self, config: Config) -> Result<ExitCode, Failure> {
        match self {
            Packages::Sync { again } => {
                let made = packages::sync(&config.interpreter, again, &mut |step| note!("{step}")).await?;
                match packages::find(&config.interpreter)? {
                    None => {
                        note!("no packages are configured\n\nhint: `interpreter.packages = [\"numpy\"]` names some")
                    }
                    Some(prepared) => {
                        let done = if made { "ready" } else { "already there" };
                        note!("{done}: {}", described(&prepared));
                    }
                }
            }
            Packages::List { json } => {
                for package in packages::find(&config.interpreter)?.into_iter().flat_map(|prepared| prepared.packages) {
                    if json {
                        write_data(&format!("{}\n", serde_json::to_string(&package).unwrap_or_default()));
                        continue;
                    }
                    let why = if package.requested { "" } else { "  (needed by another)" };
                    let modules = package.modules.join(", ");
                    out!("{:<24} {:<12} import {modules}{why}", package.name, package.version);
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
