//! What may happen without asking. Decided here and nowhere else.

use fimble_toolkit::Risk;
use serde::{Deserialize, Serialize};

/// What happens to a call, by the risk that its operation declares. `[gate.policy]` in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Operations that only look. Default `allow`.
    pub read: Decision,
    /// Operations that change what can be changed back. Default `ask`.
    pub write: Decision,
    /// Operations that lose or interrupt something. Default `ask`.
    pub destructive: Decision,
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It is made.
    Allow,
    /// A person is asked.
    Ask,
    /// It is refused.
    Deny,
}

impl Default for Policy {
    fn default() -> Self {
        Self { read: Decision::Allow, write: Decision::Ask, destructive: Decision::Ask }
    }
}

impl Policy {
    /// What happens to a call of that risk.
    pub fn decide(&self, risk: Risk) -> Decision {
        match risk {
            Risk::Read => self.read,
            Risk::Write => self.write,
            Risk::Destructive => self.destructive,
        }
    }

    /// The same policy with every `ask` answered by yes (`--yes`). What is denied stays denied.
    #[must_use]
    pub fn approving(self) -> Self {
        let yes = |decision| if decision == Decision::Ask { Decision::Allow } else { decision };
        Self { read: yes(self.read), write: yes(self.write), destructive: yes(self.destructive) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yes_answers_questions_and_lifts_no_denial() {
        let policy = Policy { read: Decision::Allow, write: Decision::Ask, destructive: Decision::Deny };
        let expected = Policy { read: Decision::Allow, write: Decision::Allow, destructive: Decision::Deny };
        assert_eq!(policy.approving(), expected);
    }
}
