//! Values that the host keeps secret: no program should have one, let alone send it.

use serde_json::Value;

use super::{Analyser, Secrets};
use crate::gate::policy::Subject;

pub(super) struct KnownSecrets {
    pub(super) hidden: Secrets,
}

impl Analyser for KnownSecrets {
    fn analyse(&self, call: &Subject<'_>) -> Option<String> {
        call.arguments.iter().find_map(|(name, value)| {
            let mut masked = Value::Null;
            let is_hidden = match value {
                Value::Null | Value::Bool(_) | Value::Number(_) => false,
                Value::String(text) => self.hidden.mask(text) != *text,
                nested => {
                    masked.clone_from(nested);
                    self.hidden.mask_value(&mut masked);
                    masked != *nested
                }
            };
            is_hidden.then(|| format!("would send a secret of this host in `{name}`"))
        })
    }
}
