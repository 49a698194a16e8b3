//! `fimble kill`: ends one running round from outside. Its process stores what it came to, and its session goes on.

use std::process::ExitCode;

use clap::Args;

use super::{Failure, ps};
use crate::live::{self, Found};

/// End one running program; its session goes on.
#[derive(Debug, Args)]
pub(super) struct Kill {
    /// The round as `fimble ps` names it, its session, or the beginning of either.
    #[arg(value_name = "ROUND")]
    round: String,
}

impl Kill {
    pub(super) async fn execute(self) -> Result<ExitCode, Failure> {
        let found = ps::rounds().await?;
        let round = pick(&found, &self.round)?;
        let name = ps::name(&round.view);
        match live::kill(round).await {
            Ok(true) => note!("ended {name}"),
            Ok(false) => note!("{name} had ended already"),
            Err(error) => {
                return Err(Failure::new(5, format!("{name} cannot be ended: {error}"))
                    .with_hint(format!("its process is {}; `kill {0}` ends it whole", round.view.host_pid)));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The one round that is meant.
fn pick<'a>(found: &'a [Found], meant: &str) -> Result<&'a Found, Failure> {
    let named: Vec<&Found> = found.iter().filter(|found| ps::name(&found.view).starts_with(meant)).collect();
    let exact = named.iter().find(|found| ps::name(&found.view) == meant || found.view.session == meant);
    match (exact, named.as_slice()) {
        (Some(one), _) | (None, [one]) if !meant.is_empty() => Ok(one),
        (_, []) => Err(Failure::usage(format!("no running round is called `{meant}`"))
            .with_hint("`fimble ps` shows those that run")),
        (_, several) => {
            let names: Vec<String> = several.iter().map(|found| ps::name(&found.view)).collect();
            Err(Failure::usage(format!("`{meant}` can be any of {}", names.join(", "))).with_hint("write more of it"))
        }
    }
}
