//! `fimble secrets`: which named secrets there are, and how one gets in. No command shows a value.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Read};
use std::process::ExitCode;
use std::time::Duration;

use clap::Subcommand;
use fimble_toolkit::offer_values;
use nix::sys::termios::{LocalFlags, SetArg, tcgetattr, tcsetattr};

use super::{Failure, output};
use crate::config::{Config, is_secret_name};
use crate::gate::{CommandLimits, SHORTEST_SECRET, Secrets, ask};

/// How the names of variables end that hold keys for one program or another.
const KEYS: [&str; 8] =
    ["_API_KEY", "_TOKEN", "_PASSWORD", "_SECRET", "_SECRET_KEY", "_ACCESS_KEY", "_PRIVATE_KEY", "PGPASSWORD"];

/// Bytes of a value.
const MOST_BYTES: u64 = 64 * 1024;

/// Keep tokens and passwords that settings name. A value is never shown: not by these commands, and not in what programs see,
/// print or leave behind.
#[derive(Debug, Subcommand)]
pub(super) enum SecretCommand {
    /// The names, and where each has its value from.
    List,
    /// Keep a value, read from standard input: a line that is not echoed in a terminal, otherwise all of it.
    Set {
        /// The name by which settings refer to it, e.g. `GITHUB_TOKEN`.
        name: String,
    },
    /// Forget a value.
    Remove {
        /// Its name.
        name: String,
    },
}

impl SecretCommand {
    pub(super) fn execute(self, config: &Config) -> Result<ExitCode, Failure> {
        let file = config.secret_file()?;
        match self {
            SecretCommand::List => list(config)?,
            SecretCommand::Set { name } => {
                if !is_secret_name(&name) {
                    return Err(Failure::usage(format!("`{name}` is no name of a secret"))
                        .with_hint("use ASCII letters, digits and `_`, no digit first"));
                }
                let value = read_value(&name)?;
                let is_short = value.trim().len() < SHORTEST_SECRET;
                let was_there = file.set(&name, value)?;
                note!("{} `{name}` in {}", if was_there { "replaced" } else { "kept" }, file.path().display());
                if is_short {
                    note!(
                        "warning: it has fewer than {SHORTEST_SECRET} bytes, so it is not masked: it would blot out ordinary text"
                    );
                }
                if std::env::var_os(&name).is_some_and(|value| !value.is_empty()) {
                    note!("warning: the environment variable `{name}` is set and comes before it");
                }
            }
            SecretCommand::Remove { name } => {
                if !file.remove(&name)? {
                    return Err(Failure::usage(format!("there is no secret `{name}` in {}", file.path().display()))
                        .with_hint("`fimble secrets list` shows the names"));
                }
                note!("removed `{name}`");
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn list(config: &Config) -> Result<(), Failure> {
    let kept = config.kept_secrets()?;
    let named = config.secret_names();
    let names: BTreeSet<&String> = kept.keys().chain(&named).collect();
    for name in names {
        let is_set = std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let place = match (is_set, config.secrets.names.contains(name), kept.contains_key(name)) {
            (true, ..) => "environment",
            (_, true, _) => "command",
            (.., true) => "file",
            _ => "not there",
        };
        let used = if named.contains(name) { "  named in the settings" } else { "" };
        out!("{name:<32} {place}{used}");
    }
    Ok(())
}

/// The value, without the end of its last line.
fn read_value(name: &str) -> Result<String, Failure> {
    let unreadable = |error: std::io::Error| Failure::usage(format!("cannot read standard input: {error}"));
    let mut value = String::new();
    if std::io::stdin().is_terminal() {
        output::write_note(&format!("{name}: "));
        let _silent = Silent::new();
        std::io::stdin().read_line(&mut value).map_err(unreadable)?;
        output::write_note("\n");
    } else {
        std::io::stdin().lock().take(MOST_BYTES + 1).read_to_string(&mut value).map_err(unreadable)?;
    }
    if value.len() as u64 > MOST_BYTES {
        return Err(
            Failure::usage(format!("the value has more than {MOST_BYTES} bytes")).with_hint("keep a key, not a file")
        );
    }
    let line = value.strip_suffix('\n').unwrap_or(&value);
    let value = line.strip_suffix('\r').unwrap_or(line).to_owned();
    if value.trim().is_empty() {
        return Err(Failure::usage("the value is empty")
            .with_hint(format!("give it on standard input: `fimble secrets set {name} < FILE`")));
    }
    Ok(value)
}

/// A terminal that does not show what is typed, as long as this lives.
struct Silent(Option<nix::sys::termios::Termios>);

impl Silent {
    fn new() -> Self {
        let before = tcgetattr(std::io::stdin()).ok();
        if let Some(before) = &before {
            let mut silent = before.clone();
            silent.local_flags.remove(LocalFlags::ECHO);
            // A terminal that cannot be set shows what is typed, as it shows all else.
            let _ = tcsetattr(std::io::stdin(), SetArg::TCSAFLUSH, &silent);
        }
        Self(before)
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = tcsetattr(std::io::stdin(), SetArg::TCSAFLUSH, before);
        }
    }
}

/// What no output of any command may show, as far as that is known without asking anybody.
pub(super) fn known(config: &Config) -> Result<&'static Secrets, Failure> {
    let kept = config.kept_secrets()?;
    let variables = config.secret_names().into_iter().filter_map(|name| std::env::var(name).ok());
    let own = config.llm.api_key.iter().map(|key| key.reveal().to_owned());
    // Keys that lie in the environment for other programs must not be seen either.
    let is_key = |name: &str| KEYS.iter().any(|end| name.ends_with(end));
    let environment = std::env::vars().filter(|(name, _)| is_key(name)).map(|(_, value)| value);
    let secrets = output::hidden();
    secrets.add(kept.values().cloned().chain(variables).chain(own).chain(environment));
    offer_values(kept);
    Ok(secrets)
}

/// Those that are [`known`], and what the configured command prints, which toolkits get from then on.
pub(super) async fn all(config: &Config) -> Result<&'static Secrets, Failure> {
    let secrets = known(config)?;
    let mut offered: BTreeMap<String, String> = config.kept_secrets()?;
    for name in &config.secrets.names {
        let value = asked(config, name).await.map_err(|reason| {
            Failure::usage(format!("the secret `{name}` cannot be had: {reason}"))
                .with_hint("try `secrets.command` by hand, or take the name out of `secrets.names`")
        })?;
        secrets.add([value.clone()]);
        offered.insert(name.clone(), value);
    }
    offer_values(offered);
    Ok(secrets)
}

/// What the configured command prints for a name.
async fn asked(config: &Config, name: &str) -> Result<String, String> {
    if !is_secret_name(name) {
        return Err("its name is none".to_owned());
    }
    let places = &config.secrets;
    let command: Vec<String> = places.command.iter().map(|part| part.replace("{name}", name)).collect();
    let time = Duration::try_from_secs_f64(places.command_s).unwrap_or(Duration::from_secs(10));
    let bytes = usize::try_from(MOST_BYTES).unwrap_or(usize::MAX);
    let said = ask(&command, b"", CommandLimits { time, bytes }).await.map_err(|error| error.to_string())?;
    if !said.status.success() {
        let errors = String::from_utf8_lossy(&said.errors);
        let line = errors.trim().lines().next_back().unwrap_or_default().chars().take(200).collect::<String>();
        return Err(format!("`{}` ended with {}: {line}", command[0], said.status));
    }
    let value = String::from_utf8(said.output).map_err(|_| "it is no UTF-8 text".to_owned())?;
    let value = value.trim_end_matches(['\n', '\r']).to_owned();
    if value.is_empty() { Err("the command printed nothing".to_owned()) } else { Ok(value) }
}
