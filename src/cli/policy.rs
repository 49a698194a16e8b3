//! `fimble policy`: what may happen unasked, which rule decides about a call, and what was said `always` to.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use fimble_toolkit::Risk;

use super::show::clip;
use super::toolkits::keyword;
use super::{Failure, open};
use crate::config::Config;
use crate::gate::{
    Decision, Gate, Lifted, Memory, MemoryError, PROFILES, Policy, Profile, Remembered, SYSTEM_TOOLKIT, Subject,
};

/// Characters of arguments that a list shows.
const SHOWN_CHARACTERS: usize = 120;

/// Show what may happen unasked.
#[derive(Debug, Args)]
pub(super) struct PolicyCommand {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    choice: Choice,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// The profile, the rules in their order, the analysers, and what was said `always` to.
    List,
    /// What would become of a call, and what says so. Nothing is called.
    Check {
        /// `TOOLKIT.OPERATION`.
        operation: String,
        /// Arguments as `name=value`; a value that is JSON is read as such.
        #[arg(value_name = "K=V")]
        arguments: Vec<String>,
        /// On behalf of this tenant.
        #[arg(long, value_name = "NAME", default_value = open::TENANT)]
        tenant: String,
    },
    /// Take back what was said `always` to; it is asked again then, also by programs that run.
    Revoke {
        /// As `fimble policy list` shows them.
        #[arg(required_unless_present = "all")]
        ids: Vec<String>,
        /// All of them.
        #[arg(long, conflicts_with = "ids")]
        all: bool,
    },
}

/// Which policy holds.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct Choice {
    /// What may happen unasked: `read-only` (nothing that changes anything), `ask`, `auto` (all but what is destructive),
    /// or `plan` (each program first says all that it would change).
    /// In place of the configured profile; rules stay.
    #[arg(long, value_name = "NAME")]
    policy: Option<Profile>,
}

impl Choice {
    /// Puts it in place of what is configured.
    pub(super) fn apply(self, config: &mut Config) {
        if let Some(profile) = self.policy {
            config.gate.policy = std::mem::take(&mut config.gate.policy).with_profile(profile);
        }
    }
}

impl PolicyCommand {
    pub(super) async fn execute(self, mut config: Config) -> Result<ExitCode, Failure> {
        self.choice.apply(&mut config);
        match self.action {
            None | Some(Action::List) => list(open::gate(&config).await?.as_ref())?,
            Some(Action::Check { operation, arguments, tenant }) => {
                check(open::gate(&config).await?.as_ref(), &operation, &arguments, &tenant)?;
            }
            Some(Action::Revoke { ids, all }) => revoke(&open::memory(), &ids, all)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn list(gate: &Gate) -> Result<(), Failure> {
    let policy = gate.policy();
    out!("{}", summary(&policy));
    for (index, rule) in policy.rules.iter().enumerate() {
        out!("rule {}: {rule}", index + 1);
        let declarations = gate.declarations();
        let is_used = declarations
            .iter()
            .any(|toolkit| toolkit.operations.iter().any(|operation| rule.names(&toolkit.name, &operation.name)));
        if !is_used {
            note!("warning: rule {} is about no operation that there is: `{}`", index + 1, rule.operation);
        }
    }
    let analysers = serde_json::to_value(gate.analysers()).unwrap_or_default();
    let analysers = analysers.as_object().into_iter().flatten();
    let analysers = analysers.map(|(name, reaction)| format!("{name} {}", reaction.as_str().unwrap_or_default()));
    out!("analysers: {}", analysers.collect::<Vec<_>>().join(", "));
    let remembered = gate.memory().list()?;
    if let (Some(file), false) = (gate.memory().file(), remembered.is_empty()) {
        out!("said `always` to, in {}:", file.display());
        remembered.iter().for_each(print);
    }
    let others = PROFILES.into_iter().filter(|profile| *profile != policy.profile).map(Profile::as_str);
    note!("hint: `--policy NAME` chooses another profile: {}", others.collect::<Vec<_>>().join(", "));
    Ok(())
}

/// Chooses another profile, if one is named, for what this process does from now on. Answers what holds then.
pub(super) fn choose(gate: &Gate, name: &str) -> Result<String, Failure> {
    if !name.is_empty() {
        gate.choose_policy(name.parse().map_err(|error: String| Failure::usage(error).with_hint("/policy auto"))?);
    }
    Ok(summary(&gate.policy()))
}

/// The profile, and what becomes of calls by their risk.
fn summary(policy: &Policy) -> String {
    let decisions =
        [Risk::Read, Risk::Write, Risk::Destructive].map(|risk| format!("{risk} {}", by_risk(policy, risk)));
    format!("profile {}: {}", policy.profile, decisions.join(", "))
}

/// What becomes of a call of that risk that no rule is about.
fn by_risk(policy: &Policy, risk: Risk) -> Decision {
    let arguments = serde_json::Map::new();
    policy.clone().without_rules().decide(&subject("", "", risk, &arguments, open::TENANT, "")).0
}

fn subject<'a>(
    toolkit: &'a str,
    operation: &'a str,
    risk: Risk,
    arguments: &'a serde_json::Map<String, serde_json::Value>,
    tenant: &'a str,
    user: &'a str,
) -> Subject<'a> {
    Subject { toolkit, operation, risk, arguments, tenant, user, program: "", line: 0 }
}

fn print(remembered: &Remembered) {
    let Remembered { id, tenant, operation, arguments, since, .. } = remembered;
    let of = if tenant == open::TENANT { String::new() } else { format!("  tenant {tenant}") };
    let what = clip(&format!("{operation}{arguments}"), SHOWN_CHARACTERS);
    out!("{id}  {what}{of}  since {}", since.strftime("%Y-%m-%d"));
}

/// The decision on the first line, what says so below it.
fn check(gate: &Gate, name: &str, pairs: &[String], tenant: &str) -> Result<(), Failure> {
    let Some((toolkit, operation)) = name.split_once('.') else {
        return Err(Failure::usage(format!("`{name}` is no operation"))
            .with_hint("write TOOLKIT.OPERATION; `fimble toolkits show TOOLKIT` lists the operations"));
    };
    if toolkit == SYSTEM_TOOLKIT {
        return Err(Failure::usage(format!("policy is not about `{SYSTEM_TOOLKIT}`"))
            .with_hint("it acts on its own session alone"));
    }
    let (_, found) = gate.registry().find(toolkit, operation).map_err(|error| Failure {
        code: 2,
        message: error.message,
        hint: error.hint,
    })?;
    let (arguments, user) = (keyword(&found, pairs)?, open::user());
    let judgement = gate.judge(&subject(toolkit, operation, found.risk, &arguments, tenant, &user));
    out!("{}", judgement.decision);
    let (decision, source) = judgement.policy;
    out!("{} operation: {}", found.risk, gate.policy().words(source, decision));
    for finding in &judgement.findings {
        out!("{} says {}: it {}", finding.analyser, finding.decision, finding.reason);
    }
    if let Some(Lifted::ByMemory(remembered)) = &judgement.lifted {
        out!("allowed by what was said before: {}{}", remembered.id, remembered.arguments);
    }
    Ok(())
}

fn revoke(memory: &Memory, ids: &[String], all: bool) -> Result<(), Failure> {
    let known = memory.list()?;
    if let Some(unknown) = ids.iter().find(|id| !known.iter().any(|remembered| remembered.id == **id)) {
        return Err(Failure::usage(format!("nothing is remembered as `{unknown}`"))
            .with_hint("`fimble policy list` shows what is"));
    }
    memory.revoke(|remembered| all || ids.contains(&remembered.id))?.iter().for_each(print);
    Ok(())
}

impl From<MemoryError> for Failure {
    fn from(error: MemoryError) -> Self {
        Self::new(5, error.to_string()).with_hint(error.hint())
    }
}
