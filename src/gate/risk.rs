//! Who looks at a call before it is made, apart from the policy: a chain, each link one file. A link can only make what was
//! decided stricter, and the first that refuses ends the chain.
//!
//! They read texts, not systems: what they do not see is not safe. The policy and the declared risk are what protects.

mod commands;
mod credentials;
mod rating;
mod secrets;
mod sql;
mod wildcards;

pub(super) use rating::rating;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Secrets;
use super::policy::{Decision, Subject};

/// What the analysers do when they find something, `[gate.analysers]` in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// A value that the host keeps secret leaves in an argument. Default `deny`.
    pub secrets: Reaction,
    /// What looks like a key or a password leaves in an argument. Default `ask`.
    pub credentials: Reaction,
    /// A command that destroys much, e.g. `rm -rf /` or `git push --force`. Default `ask`.
    pub commands: Reaction,
    /// SQL that changes whole tables: `DELETE` or `UPDATE` without `WHERE`, `DROP`, `TRUNCATE`. Default `ask`.
    pub sql: Reaction,
    /// Something is deleted by a wildcard. Default `ask`.
    pub wildcards: Reaction,
    /// The program says `# risk: destructive` in its first comment, above the call or beside it. Default `ask`.
    pub rating: Reaction,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            secrets: Reaction::Deny,
            credentials: Reaction::Ask,
            commands: Reaction::Ask,
            sql: Reaction::Ask,
            wildcards: Reaction::Ask,
            rating: Reaction::Ask,
        }
    }
}

/// What an analyser does when it finds something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reaction {
    /// It does not look.
    Off,
    /// A person is asked.
    Ask,
    /// The call is refused.
    Deny,
}

/// What an analyser found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The analyser's name in the configuration.
    pub analyser: &'static str,
    /// How strict it is.
    pub decision: Decision,
    /// What was found, in words.
    pub reason: String,
}

/// Looks at a call and says what it found, in words that follow the call's name.
trait Analyser: Send + Sync {
    fn analyse(&self, call: &Subject<'_>) -> Option<String>;
}

struct Link {
    name: &'static str,
    decision: Decision,
    analyser: Box<dyn Analyser>,
}

/// All that look, in their order.
pub(super) struct Chain {
    links: Vec<Link>,
}

impl Chain {
    /// Those that are switched on.
    pub(super) fn new(config: &Config, hidden: &Secrets) -> Self {
        let secrets = Box::new(secrets::KnownSecrets { hidden: hidden.clone() });
        let all: [(&'static str, Reaction, Box<dyn Analyser>); 6] = [
            ("secrets", config.secrets, secrets),
            ("credentials", config.credentials, Box::new(credentials::Credentials)),
            ("commands", config.commands, Box::new(commands::Commands)),
            ("sql", config.sql, Box::new(sql::Statements)),
            ("wildcards", config.wildcards, Box::new(wildcards::Wildcards)),
            ("rating", config.rating, Box::new(rating::OwnRating)),
        ];
        let switched_on = all.into_iter().filter_map(|(name, reaction, analyser)| match reaction {
            Reaction::Off => None,
            Reaction::Ask => Some(Link { name, decision: Decision::Ask, analyser }),
            Reaction::Deny => Some(Link { name, decision: Decision::Deny, analyser }),
        });
        Self { links: switched_on.collect() }
    }

    /// What they find of a call, up to the first refusal.
    pub(super) fn findings(&self, call: &Subject<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for link in &self.links {
            let Some(reason) = link.analyser.analyse(call) else { continue };
            findings.push(Finding { analyser: link.name, decision: link.decision, reason });
            if link.decision == Decision::Deny {
                break;
            }
        }
        findings
    }
}

/// How deep arguments are looked into.
const DEPTH: usize = 32;

/// The first answer about a text in the arguments, however deep it lies.
fn in_texts<T>(arguments: &Map<String, Value>, look: &mut dyn FnMut(&str) -> Option<T>) -> Option<T> {
    arguments.values().find_map(|value| in_value(value, DEPTH, look))
}

fn in_value<T>(value: &Value, depth: usize, look: &mut dyn FnMut(&str) -> Option<T>) -> Option<T> {
    match value {
        Value::String(text) => look(text),
        _ if depth == 0 => None,
        Value::Array(items) => items.iter().find_map(|item| in_value(item, depth - 1, look)),
        Value::Object(fields) => {
            fields.iter().find_map(|(name, item)| look(name).or_else(|| in_value(item, depth - 1, look)))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Names of arguments that are run.
const CODE: [&str; 15] = [
    "args",
    "arguments",
    "argv",
    "cmd",
    "cmdline",
    "code",
    "command",
    "commands",
    "line",
    "queries",
    "query",
    "script",
    "sql",
    "statement",
    "statements",
];

/// The arguments that are run: a commit's message may well say `rm -rf`.
fn code_arguments<'a>(call: &Subject<'a>) -> impl Iterator<Item = &'a Value> {
    call.arguments.iter().filter(|(name, _)| CODE.contains(&name.to_lowercase().as_str())).map(|(_, value)| value)
}

#[cfg(test)]
mod tests;
