//! What may happen without asking. Decided here and nowhere else.
//!
//! The first rule that is about a call decides; if none is, the profile does, by the risk that the operation declares. Whoever
//! looks at a call after that can only be stricter.

mod pattern;
mod remembered;
mod rule;

use std::fmt;
use std::str::FromStr;

use fimble_toolkit::Risk;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use pattern::{Pattern, PatternError};
pub use remembered::{Extent, Memory, MemoryError, Remembered};
pub use rule::Rule;

pub(super) use rule::text_of;

/// What happens to calls, `[gate.policy]` in the configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// What happens to calls that no rule is about. Default `ask`.
    pub profile: Profile,
    /// Operations that only look, in place of what the profile says. Default none.
    pub read: Option<Decision>,
    /// Operations that change what can be changed back, in place of what the profile says. Default none.
    pub write: Option<Decision>,
    /// Operations that lose or interrupt something, in place of what the profile says. Default none.
    pub destructive: Option<Decision>,
    /// Calls that are decided on by themselves; the first rule that is about a call decides. Default none.
    #[serde(deserialize_with = "rule::read")]
    pub rules: Vec<Rule>,
    /// What would be asked is answered by yes.
    #[serde(skip)]
    approves: bool,
    /// Programs say what they would do before they do it.
    #[serde(skip)]
    plans: bool,
}

/// What happens to a call. Ordered from lenient to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It is made.
    Allow,
    /// A person is asked.
    Ask,
    /// It is refused.
    Deny,
}

impl fmt::Display for Decision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Decision::Allow => "allow",
            Decision::Ask => "ask",
            Decision::Deny => "deny",
        })
    }
}

/// What happens to calls by their risk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Only what looks is done, whatever rules allow.
    ReadOnly,
    /// Whatever changes something is asked for.
    #[default]
    Ask,
    /// Only what loses or interrupts something is asked for.
    Auto,
    /// All that a program would change is asked for at once, before it changes anything.
    Plan,
}

/// The profiles, in the order in which a person reads them.
pub const PROFILES: [Profile; 4] = [Profile::ReadOnly, Profile::Ask, Profile::Auto, Profile::Plan];

impl Profile {
    /// Its word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Profile::ReadOnly => "read-only",
            Profile::Ask => "ask",
            Profile::Auto => "auto",
            Profile::Plan => "plan",
        }
    }

    /// What happens to a call of that risk.
    pub fn decide(self, risk: Risk) -> Decision {
        match (self, risk) {
            (_, Risk::Read) | (Profile::Auto, Risk::Write) => Decision::Allow,
            (Profile::ReadOnly, _) => Decision::Deny,
            (Profile::Ask | Profile::Auto | Profile::Plan, _) => Decision::Ask,
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        PROFILES.into_iter().find(|profile| profile.as_str() == text).ok_or_else(|| {
            let names = PROFILES.map(Profile::as_str).join(", ");
            format!("there is no policy `{text}`; there are {names}")
        })
    }
}

/// A call that is judged.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The toolkit's name.
    pub toolkit: &'a str,
    /// The operation's name.
    pub operation: &'a str,
    /// The declared risk.
    pub risk: Risk,
    /// The bound arguments.
    pub arguments: &'a Map<String, Value>,
    /// On whose behalf.
    pub tenant: &'a str,
    /// The user.
    pub user: &'a str,
    /// The program that makes it, empty if none does.
    pub program: &'a str,
    /// The line of the program, from 1; 0 if unknown.
    pub line: u32,
}

/// What decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The rule of that number, from 1.
    Rule(usize),
    /// `read`, `write` or `destructive` in the configuration.
    Setting(Risk),
    /// The profile.
    Profile(Profile),
}

impl Policy {
    /// What happens to a call, and what says so.
    pub fn decide(&self, subject: &Subject<'_>) -> (Decision, Source) {
        let risk = subject.risk;
        let by_profile = (self.profile.decide(risk), Source::Profile(self.profile));
        let found = self.rules.iter().position(|rule| rule.matches(subject));
        let decided = match (found, self.setting(risk)) {
            (Some(index), _) => (self.rules[index].decision, Source::Rule(index + 1)),
            (None, Some(decision)) => (decision, Source::Setting(risk)),
            (None, None) => return by_profile,
        };
        // It says what it is: nothing lifts it.
        if self.profile == Profile::ReadOnly && by_profile.0 > decided.0 { by_profile } else { decided }
    }

    fn setting(&self, risk: Risk) -> Option<Decision> {
        match risk {
            Risk::Read => self.read,
            Risk::Write => self.write,
            Risk::Destructive => self.destructive,
        }
    }

    /// What was decided and why, in words that follow the name of the operation.
    pub fn words(&self, source: Source, decision: Decision) -> String {
        match source {
            Source::Rule(number) => {
                let rule = number.checked_sub(1).and_then(|index| self.rules.get(index));
                let because = rule.filter(|rule| !rule.because.is_empty());
                let because = because.map_or(String::new(), |rule| format!(" ({})", rule.because));
                format!("rule {number} of the policy says {decision}{because}")
            }
            Source::Setting(risk) => format!("`gate.policy.{risk}` says {decision}"),
            Source::Profile(profile) => format!("the profile `{profile}` says {decision}"),
        }
    }

    /// Another profile, in place of what the configuration says of risks. Rules stay.
    #[must_use]
    pub fn with_profile(self, profile: Profile) -> Self {
        Self { profile, read: None, write: None, destructive: None, ..self }
    }

    /// The same policy without its rules.
    #[must_use]
    pub fn without_rules(self) -> Self {
        Self { rules: Vec::new(), ..self }
    }

    /// The same policy with every `ask` answered by yes (`--yes`). What is denied stays denied.
    #[must_use]
    pub fn approving(self) -> Self {
        Self { approves: true, ..self }
    }

    /// The same policy for programs that say what they would do before they do it (`--dry-run`).
    #[must_use]
    pub fn planning(self) -> Self {
        Self { plans: true, ..self }
    }

    /// True if programs say what they would do before they do it.
    pub fn plans(&self) -> bool {
        self.plans || self.profile == Profile::Plan
    }

    /// True if what would be asked is answered by yes.
    pub fn approves(&self) -> bool {
        self.approves
    }
}

#[cfg(test)]
mod tests;
