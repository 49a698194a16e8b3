//! `fimble doctor`: what of this machine Fimble can use, one line a check.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{Failure, hops, open};
use crate::config::{Config, StorePlace};
use crate::gate::HookEvent;
use crate::interpreter::{Ending, Interpreter, Nobody, Run, packages};
use crate::llm::local;
use crate::store::Store;
use crate::store::redis::Redis;
use crate::store::sqlite::Sqlite;

/// What comes before the sentence about a check that succeeds and leaves a danger.
const WARNING: &str = "\n      warning: ";

pub(super) async fn execute(config: Config) -> Result<ExitCode, Failure> {
    let mut healthy = true;
    let mut report = |name: &str, result: Result<String, Failure>| match result {
        Ok(text) => out!("{} {name}: {text}", if text.contains(WARNING) { "warn " } else { "ok   " }),
        Err(failure) => {
            healthy = false;
            out!("FAIL  {name}: {}", failure.message);
            if let Some(hint) = failure.hint {
                out!("      hint: {hint}");
            }
        }
    };
    report("interpreter", check_interpreter(&config).await);
    report("packages", check_packages(&config));
    report("store", check_store(&config).await);
    for (name, result) in hops::check(&config).await? {
        report(&name, result);
    }
    for (name, result) in check_hooks(&config) {
        report(&name, result);
    }
    report("toolkits", check_toolkits(&config).await);
    report("model", check_model(&config).await);
    Ok(if healthy { ExitCode::SUCCESS } else { ExitCode::from(5) })
}

/// Starts a zygote and runs a program in it.
async fn check_interpreter(config: &Config) -> Result<String, Failure> {
    let interpreter = Interpreter::start(&config.interpreter).await?;
    let limits = config.interpreter.limits.clone();
    let run = Run { limits, ..Run::of("import sys\nsys.version.split()[0]") };
    let finished = interpreter.run(run, Arc::new(Nobody), CancellationToken::new()).await?;
    let isolation = interpreter.isolation();
    let mut layers = isolation.layers.join(", ");
    if !isolation.missing.is_empty() {
        layers = format!("{layers}; not there: {}", isolation.missing.join(", "));
    }
    let took = finished.usage.wall.as_secs_f64() * 1_000.0;
    let warning = isolation.warning().map(|warning| format!("{WARNING}{warning}")).unwrap_or_default();
    match finished.ending {
        Ending::Returned { value } => Ok(format!(
            "CPython {}, isolation {} ({layers}), a round in {took:.1} ms{warning}",
            value.unwrap_or_default().trim_matches('\''),
            isolation.level.as_str(),
        )),
        ending => Err(Failure::new(5, format!("the check's program ended as {ending:?}"))),
    }
}

fn check_packages(config: &Config) -> Result<String, Failure> {
    let prepared = packages::find(&config.interpreter)?;
    let none = || "none besides the standard library (`interpreter.packages`)".to_owned();
    Ok(prepared.as_ref().map_or_else(none, super::packages::described))
}

/// Which store it is, and whether it answers.
async fn check_store(config: &Config) -> Result<String, Failure> {
    let sessions = async |store: &dyn Store| store.sessions(open::TENANT, &open::user(), u32::MAX).await;
    Ok(match config.store_place()? {
        StorePlace::File(file) => {
            let count = sessions(&Sqlite::open(&file)?).await?.len();
            format!("{}, {count} sessions", file.display())
        }
        StorePlace::Redis(address, settings) => {
            let store = Redis::open(&address, settings).await?;
            format!("{address}, {} sessions; {}", sessions(&store).await?.len(), store.health().await?)
        }
    })
}

/// The hooks, and whether their programs are there. None of them is run.
fn check_hooks(config: &Config) -> Vec<(String, Result<String, Failure>)> {
    let all =
        HookEvent::ALL.into_iter().flat_map(|event| config.gate.hooks.of(event).iter().map(move |hook| (event, hook)));
    let described = all.map(|(event, hook)| {
        let of = match event {
            HookEvent::PreToolUse | HookEvent::PostToolUse => format!(" for {}", hook.matcher),
            _ => String::new(),
        };
        let text = format!("`{}`{of}, at most {} s", hook.command.join(" "), hook.timeout_s);
        let result = match found(hook.name()) {
            true => Ok(text),
            false => Err(Failure::new(5, format!("`{}` is no program that can be run", hook.name()))
                .with_hint(format!("correct `command` in `[[gate.hooks.{}]]`", event.as_str()))),
        };
        (format!("hook {}", event.as_str()), result)
    });
    described.collect()
}

/// True if there is such a program, by its path or in `PATH`.
fn found(program: &str) -> bool {
    let runs = |path: &Path| path.is_file() && nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).is_ok();
    if program.contains('/') {
        return runs(Path::new(program));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    !program.is_empty() && std::env::split_paths(&path).any(|folder| runs(&folder.join(program)))
}

async fn check_toolkits(config: &Config) -> Result<String, Failure> {
    let gate = open::gate(config).await?;
    let names: Vec<String> = gate
        .declarations_in(&gate.scope(open::TENANT))
        .iter()
        .map(|declaration| format!("{} ({})", declaration.name, declaration.operations.len()))
        .collect();
    Ok(names.join(", "))
}

/// Asks nothing of the model: an endpoint may cost money, and the local one takes seconds to load.
async fn check_model(config: &Config) -> Result<String, Failure> {
    if config.llm.names_endpoint() {
        let model = config.llm.model.as_deref().unwrap_or("the only model");
        let address = config.llm.base_url.as_deref().unwrap_or("the default endpoint");
        // A user and a password in an address are not for the screen.
        let address = address.split_once('@').map_or(address, |(_, host)| host);
        return Ok(format!("{model} at {address}"));
    }
    let status = local::status(&config.llm.local).await?;
    let text = super::model::described(&status).replace('\n', "; ");
    if status.bytes.is_none() || !status.installed {
        return Err(Failure::new(5, text).with_hint("`fimble model pull` fetches it"));
    }
    Ok(text)
}
