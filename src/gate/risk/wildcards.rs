//! Deletions by a wildcard: what is deleted is not written in the call.

use serde_json::Value;

use super::{Analyser, in_value};
use crate::gate::policy::Subject;

/// Words in an operation's name that mean that something goes.
const DELETING: [&str; 9] = ["clear", "delete", "destroy", "drop", "flush", "prune", "purge", "remove", "truncate"];

pub(super) struct Wildcards;

impl Analyser for Wildcards {
    fn analyse(&self, call: &Subject<'_>) -> Option<String> {
        let words: Vec<&str> = call.operation.split('_').collect();
        if call.risk == fimble_toolkit::Risk::Read || !words.iter().any(|word| DELETING.contains(word)) {
            return None;
        }
        call.arguments.iter().find_map(|(name, value)| {
            if name == "all" && *value == Value::Bool(true) {
                return Some("would delete all there is (`all`)".to_owned());
            }
            let mut wild = |text: &str| text.contains(['*', '?']).then(|| text.to_owned());
            let text = in_value(value, 1, &mut wild)?;
            let shown: String = text.chars().take(60).collect();
            Some(format!("would delete by a wildcard (`{name}`: `{shown}`)"))
        })
    }
}
