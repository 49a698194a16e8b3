//! The journal of one round's calls, and the key that names a call. It does not know what a toolkit does.

use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::record::{CallRecord, Site};
use crate::store::packing::hexadecimal;
use crate::store::{Store, StoreError};

/// The journal of one round. Clones write to the same one; they may be used from concurrent tasks.
#[derive(Clone)]
pub struct Journal {
    store: Arc<dyn Store>,
    session: String,
    round: u64,
}

impl Journal {
    /// The journal of a round that was opened in `store`.
    pub fn new(store: Arc<dyn Store>, session: impl Into<String>, round: u64) -> Self {
        Self { store, session: session.into(), round }
    }

    /// Journals a call; returns when it is durable, so that the toolkit may act.
    ///
    /// # Errors
    /// `AlreadyExists` if the call was journaled before: its record in [`calls`](Self::calls) says how far it got.
    pub async fn request(&self, record: &CallRecord) -> Result<(), StoreError> {
        self.store.request_call(&self.session, self.round, record).await
    }

    /// Journals a call's end; returns when it is durable, so that the program may see it.
    ///
    /// # Errors
    /// `Failed` if the call was never requested.
    pub async fn finish(&self, record: &CallRecord) -> Result<(), StoreError> {
        self.store.finish_call(&self.session, self.round, record).await
    }

    /// What was journaled so far, in the order of the requests.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn calls(&self) -> Result<Vec<CallRecord>, StoreError> {
        self.store.calls(&self.session, self.round).await
    }

    /// The key of a call in this round, see [`call_key`].
    pub fn key(
        &self,
        site: Site,
        ordinal: u32,
        toolkit: &str,
        operation: &str,
        arguments: &Map<String, Value>,
    ) -> String {
        call_key(&self.session, self.round, site, ordinal, toolkit, operation, arguments)
    }
}

/// The idempotency key of a call: 32 hexadecimal digits, the same when the round is executed again and different for every
/// other call. The order of the arguments' names does not matter, at any depth.
pub fn call_key(
    session: &str,
    round: u64,
    site: Site,
    ordinal: u32,
    toolkit: &str,
    operation: &str,
    arguments: &Map<String, Value>,
) -> String {
    let mut canonical = String::new();
    write_object(&mut canonical, arguments);
    let (round, line, column) = (round.to_string(), site.line.to_string(), site.column.to_string());
    let ordinal = ordinal.to_string();
    let mut hash = Sha256::new();
    // A field's length goes ahead of it, so that no two lists of fields read the same.
    for field in ["call 1", session, &round, &line, &column, &ordinal, toolkit, operation, &canonical] {
        hash.update((field.len() as u64).to_be_bytes());
        hash.update(field);
    }
    let mut key = hexadecimal(&hash.finalize());
    key.truncate(32);
    key
}

fn write_value(canonical: &mut String, value: &Value) {
    match value {
        Value::Object(members) => write_object(canonical, members),
        Value::Array(items) => {
            canonical.push('[');
            for item in items {
                write_value(canonical, item);
                canonical.push(',');
            }
            canonical.push(']');
        }
        scalar => canonical.push_str(&scalar.to_string()),
    }
}

fn write_object(canonical: &mut String, members: &Map<String, Value>) {
    let mut members: Vec<_> = members.iter().collect();
    members.sort_by_key(|(name, _)| *name);
    canonical.push('{');
    for (name, value) in members {
        canonical.push_str(&Value::from(name.as_str()).to_string());
        canonical.push(':');
        write_value(canonical, value);
        canonical.push(',');
    }
    canonical.push('}');
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    fn key(session: &str, round: u64, place: (u32, u32, u32), operation: (&str, &str), arguments: Value) -> String {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let (line, column, ordinal) = place;
        call_key(session, round, Site { line, column }, ordinal, operation.0, operation.1, &arguments)
    }

    #[test]
    fn the_key_of_a_call_never_changes() {
        let first = key("s", 1, (2, 3, 4), ("git", "log"), json!({"b": {"y": 1, "x": [true, 0.5]}, "a": "é\n"}));
        let again = key("s", 1, (2, 3, 4), ("git", "log"), json!({"a": "é\n", "b": {"x": [true, 0.5], "y": 1}}));
        // Keys outlive the program in stores and in the systems behind toolkits.
        assert_eq!(
            (first.as_str(), again.as_str()),
            ("943d7fe88e0f7dbe18ebe6831c3b46c3", "943d7fe88e0f7dbe18ebe6831c3b46c3")
        );
    }

    #[test]
    fn calls_that_differ_anywhere_have_other_keys() {
        let git = ("git", "log");
        let keys = BTreeSet::from([
            key("s", 1, (2, 3, 4), git, json!({"a": 1})),
            key("t", 1, (2, 3, 4), git, json!({"a": 1})),
            key("s", 2, (2, 3, 4), git, json!({"a": 1})),
            key("s", 1, (5, 3, 4), git, json!({"a": 1})),
            key("s", 1, (2, 5, 4), git, json!({"a": 1})),
            key("s", 1, (2, 3, 5), git, json!({"a": 1})),
            key("s", 1, (23, 0, 4), git, json!({"a": 1})),
            key("s", 1, (2, 30, 4), git, json!({"a": 1})),
            key("s", 1, (2, 3, 4), ("gitl", "og"), json!({"a": 1})),
            key("s", 1, (2, 3, 4), git, json!({"a": "1"})),
            key("s", 1, (2, 3, 4), git, json!({"a": 1.0})),
            key("s", 1, (2, 3, 4), git, json!({"a": [1]})),
            key("s", 1, (2, 3, 4), git, json!({"a": null})),
            key("s", 1, (2, 3, 4), git, json!({})),
        ]);
        assert_eq!(keys.len(), 14);
        assert!(keys.iter().all(|key| key.len() == 32), "{keys:?}");
    }
}
