//! The names of the keys, and the numbers in them. Everything of one session has its id between braces, which Redis Cluster
//! hashes alone: so it lies in one slot and can be changed by one script.

use std::fmt::Write;

use crate::store::StoreError;

/// The key that holds the schema version of the whole store.
pub const SCHEMA: &str = "fimble:schema";

/// The largest number that a script, whose numbers are floating, counts without a loss: 2^53.
const LARGEST: u64 = 1 << 53;

/// The parts of a session, in the order in which scripts take them. The row is first: what has none is not there.
const PARTS: [&str; 10] = [
    "",           // hash: the row
    ":segments",  // list: records in order
    ":events",    // stream: records, the entry's id is the number
    ":numbers",   // sorted set: the numbers of the rounds
    ":rounds",    // hash: number -> record
    ":open",      // set: numbers of rounds that can still go on
    ":calls",     // hash, see `scripts/request_call.lua`
    ":contents",  // hash: hash in hexadecimal -> packed content
    ":versions",  // hash: round/name -> hash of the content and record; empty where the round removed the name
    ":variables", // hash: name -> round of its last version
];

/// The keys of a session, for a script that only reads.
pub fn of_session(id: &str) -> Vec<String> {
    let tag = escaped(id);
    PARTS.iter().map(|part| format!("fimble:{{{tag}}}{part}")).collect()
}

/// The keys of a session and the mark of one write, for a script that changes it.
pub fn of_write(id: &str) -> Vec<String> {
    let mut keys = of_session(id);
    keys.push(format!("fimble:{{{}}}:write:{}", escaped(id), uuid::Uuid::now_v7().simple()));
    keys.push(lease(id));
    keys
}

/// The keys of a session and its lease, for a script that takes or ends it.
pub fn of_lease(id: &str) -> Vec<String> {
    let mut keys = of_session(id);
    keys.push(lease(id));
    keys
}

/// The key that names the session's owner, as long as it has one.
fn lease(id: &str) -> String {
    format!("fimble:{{{}}}:lease", escaped(id))
}

/// The sorted set of a user's sessions.
pub fn of_user(tenant: &str, user: &str) -> String {
    format!("fimble:sessions:{{{}/{}}}", escaped(tenant), escaped(user))
}

/// A counter as text.
///
/// # Errors
/// `Failed` if scripts cannot count so far.
pub fn number(number: u64) -> Result<String, StoreError> {
    if number > LARGEST {
        return Err(StoreError::Failed(format!("a number is too large to be stored: {number}")));
    }
    Ok(number.to_string())
}

/// Nothing but letters, digits, `-`, `_` and `.`; the rest as `%XX`: a brace or a slash within an id would change its slot
/// or its meaning.
fn escaped(text: &str) -> String {
    // An empty tag would not be hashed alone.
    if text.is_empty() {
        return "%".to_owned();
    }
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_has_one_tag_of_its_own() {
        let tags: Vec<String> = ["s", "", "%", "}", "a}b{", "é/ü", "a:segments"].map(escaped).into();
        assert_eq!(tags, ["s", "%", "%25", "%7D", "a%7Db%7B", "%C3%A9%2F%C3%BC", "a%3Asegments"]);
        assert_eq!(of_session("}")[..2], ["fimble:{%7D}", "fimble:{%7D}:segments"]);
        assert_ne!(of_user("a", "b/c"), of_user("a/b", "c"));
    }
}
