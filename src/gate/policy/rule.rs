//! One rule of the policy: which calls it is about, and what becomes of them.

use std::collections::BTreeMap;

use fimble_toolkit::Risk;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::{Decision, Pattern, Subject};

/// The name in [`Rule::arguments`] that means all arguments.
const ANY: &str = "*";

/// One rule, an item of `gate.policy.rules`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// A pattern for `toolkit.operation`; a toolkit's name alone means all of its operations. Must be given.
    pub operation: Pattern,
    /// What becomes of the calls. Must be given.
    pub decision: Decision,
    /// Patterns for the texts of arguments by name, all of which must match; `"*"` is any argument. A list of texts is read as
    /// one, with spaces between; what is no text is read as JSON. An argument that is not given matches no pattern. Default none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, Pattern>,
    /// Only operations of this risk. Default any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<Risk>,
    /// A pattern for the tenant. Default any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Pattern>,
    /// Why, for whoever reads a refusal or a question. Default empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub because: String,
}

impl Rule {
    /// True if the rule is about this call.
    pub fn matches(&self, subject: &Subject<'_>) -> bool {
        // What lets a call pass is read more narrowly than what stops one.
        let is = |pattern: &Pattern, text: &str| match self.decision {
            Decision::Allow => pattern.allows(text),
            Decision::Ask | Decision::Deny => pattern.matches(text),
        };
        self.names(subject.toolkit, subject.operation)
            && self.risk.is_none_or(|risk| risk == subject.risk)
            && self.tenant.as_ref().is_none_or(|tenant| tenant.matches(subject.tenant))
            && self.arguments.iter().all(|(name, pattern)| match name.as_str() {
                ANY => subject.arguments.values().any(|value| is(pattern, &text_of(value))),
                name => subject.arguments.get(name).is_some_and(|value| is(pattern, &text_of(value))),
            })
    }

    /// True if the rule is about this operation.
    pub fn names(&self, toolkit: &str, operation: &str) -> bool {
        match self.operation.as_str().contains('.') {
            true => self.operation.matches(&format!("{toolkit}.{operation}")),
            false => self.operation.matches(toolkit),
        }
    }
}

/// As it would be said: `deny shell_toolkit.* where argv is "rm *"`.
impl std::fmt::Display for Rule {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.decision, self.operation)?;
        if let Some(risk) = self.risk {
            write!(formatter, ", only {risk}")?;
        }
        if let Some(tenant) = &self.tenant {
            write!(formatter, ", tenant {tenant}")?;
        }
        for (index, (name, pattern)) in self.arguments.iter().enumerate() {
            let joint = if index == 0 { " where" } else { " and" };
            let name = if name == ANY { "any argument" } else { name };
            write!(formatter, "{joint} {name} is {:?}", pattern.as_str())?;
        }
        if !self.because.is_empty() {
            write!(formatter, ": {}", self.because)?;
        }
        Ok(())
    }
}

/// The text that patterns are matched against.
pub(in crate::gate) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}

/// Reads the rules one by one, so that an error says which it is about.
pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Rule>, D::Error> {
    let written = Vec::<Map<String, Value>>::deserialize(deserializer)?;
    let numbered = written.into_iter().enumerate();
    numbered
        .map(|(index, written)| {
            serde_json::from_value(Value::Object(written)).map_err(|error| {
                let hint = "a rule has `operation` and `decision`, and may have `arguments`, `risk`, `tenant` and \
                            `because`; `fimble policy` shows those that are read";
                Error::custom(format!("rule {} of `gate.policy.rules`: {error}\n\nhint: {hint}", index + 1))
            })
        })
        .collect()
}
