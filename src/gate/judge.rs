//! What is to become of a call: the policy says, analysers may say something stricter, and what a person said before may answer
//! what would be asked.

use std::sync::{Arc, PoisonError};

use fimble_toolkit::{ErrorKind, ToolError};

use super::policy::{Decision, Profile, Remembered, Source, Subject};
use super::risk::Finding;
use super::{Gate, Memory, Policy, answer};
use crate::record::CallRecord;

/// What is to become of a call, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// What is to become of it.
    pub decision: Decision,
    /// What the policy says by itself, and what in it says so.
    pub policy: (Decision, Source),
    /// What the analysers found.
    pub findings: Vec<Finding>,
    /// What lets a call pass that would have been asked for.
    pub lifted: Option<Lifted>,
}

/// What lets a call pass that would have been asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Lifted {
    /// `--yes`.
    ByYes,
    /// What a person said `always` to.
    ByMemory(Remembered),
}

impl Gate {
    /// What is to become of a call. Nothing is asked and nothing happens.
    pub fn judge(&self, subject: &Subject<'_>) -> Judgement {
        let chosen = self.policy();
        let policy = chosen.decide(subject);
        // What is refused anyway need not be looked at.
        let findings = if policy.0 == Decision::Deny { Vec::new() } else { self.analysers.findings(subject) };
        let strictest = findings.iter().map(|finding| finding.decision).max();
        let decision = policy.0.max(strictest.unwrap_or(Decision::Allow));
        let lifted = match decision {
            Decision::Ask if chosen.approves() => Some(Lifted::ByYes),
            Decision::Ask => self.lifted(subject, !findings.is_empty()),
            Decision::Allow | Decision::Deny => None,
        };
        let decision = if lifted.is_some() { Decision::Allow } else { decision };
        Judgement { decision, policy, findings, lifted }
    }

    fn lifted(&self, subject: &Subject<'_>, is_suspicious: bool) -> Option<Lifted> {
        // What is grave is only allowed as it was seen.
        let exactly = is_suspicious || subject.risk == fimble_toolkit::Risk::Destructive;
        match self.memory.find(subject, exactly) {
            Ok(found) => found.map(Lifted::ByMemory),
            Err(error) => {
                tracing::warn!("{error}; what was said `always` to is asked again");
                None
            }
        }
    }

    /// What is to happen to calls.
    pub fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// From the next call on, another profile holds, in place of what the configuration says of risks. Rules stay.
    pub fn choose_policy(&self, profile: Profile) {
        let mut policy = self.policy.write().unwrap_or_else(PoisonError::into_inner);
        *policy = Arc::new(Policy::clone(&policy).with_profile(profile));
    }

    /// Who looks at calls apart from the policy.
    pub fn analysers(&self) -> &super::AnalyserConfig {
        &self.config.analysers
    }

    /// What people said `always` to.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }
}

impl Judgement {
    /// Why a person is asked, if it is not the declared risk alone.
    pub fn reason(&self, policy: &Policy) -> Option<String> {
        let mut reasons: Vec<String> =
            self.findings.iter().map(|finding| format!("it {} ({})", finding.reason, finding.analyser)).collect();
        if let (decision @ Decision::Ask, source @ Source::Rule(_)) = self.policy {
            reasons.push(policy.words(source, decision));
        }
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// What the program reads of a call that is refused.
    pub(super) fn refusal(&self, policy: &Policy, record: &CallRecord) -> ToolError {
        let name = answer::name(record);
        let refused = self.findings.iter().find(|finding| finding.decision == Decision::Deny);
        let sentence = match (refused, self.policy) {
            (Some(finding), _) => format!("{name} {}, so it was not called", finding.reason),
            (None, (Decision::Deny, source @ Source::Rule(_))) => {
                format!("{}, so {name} was not called", policy.words(source, Decision::Deny))
            }
            (None, (Decision::Deny, _)) => {
                format!("policy denies {} operations, so {name} was not called", record.risk)
            }
            (None, _) => format!("the user did not approve {name}; it was not called"),
        };
        ToolError::new(ErrorKind::Denied, sentence)
    }
}
