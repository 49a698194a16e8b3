//! The names of the keys, and the numbers in them. Everything of one session and its forks has the id that they began with
//! between braces, which Redis Cluster hashes alone: so it lies in one slot and can be changed by one script.

use std::fmt::Write;

use crate::store::{StoreError, family};

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

/// The part that a session shares with its forks.
const SHARED: &str = ":contents";

/// The keys of a session, for a script that only reads: its own, then the hash of its family's forks, see
/// `scripts/family.lua`, and the row of the session that the family began with.
pub fn of_session(id: &str) -> Vec<String> {
    let mut keys = own(id);
    let root = escaped(family::root(id));
    keys.extend([format!("fimble:{{{root}}}:family"), format!("fimble:{{{root}}}")]);
    keys
}

/// The keys of a new fork, the mark of this write, and the keys of its source.
pub fn of_fork(id: &str, source: &str) -> Vec<String> {
    let mut keys = of_write(id);
    keys.extend(own(source));
    keys
}

fn own(id: &str) -> Vec<String> {
    let root = escaped(family::root(id));
    let mark = family::mark(id).map(|mark| format!(".{mark}")).unwrap_or_default();
    let mark_of = |part: &str| if part == SHARED { "" } else { &mark };
    PARTS.iter().map(|part| format!("fimble:{{{root}}}{}{part}", mark_of(part))).collect()
}

/// The keys of a session and the mark of one write, for a script that changes it.
pub fn of_write(id: &str) -> Vec<String> {
    let mut keys = of_session(id);
    keys.push(format!("fimble:{{{}}}:write:{}", escaped(family::root(id)), uuid::Uuid::now_v7().simple()));
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
    let mark = family::mark(id).map(|mark| format!(".{mark}")).unwrap_or_default();
    format!("fimble:{{{}}}{mark}:lease", escaped(family::root(id)))
}

/// What all keys of sessions match.
pub const ALL: &str = "fimble:{*";

/// The keys of a family, for a script that clears it: those of its root, and of every fork its row and its versions.
pub fn of_family(root: &str, forks: &[String]) -> Vec<String> {
    let mut keys = of_session(root);
    keys.extend(forks.iter().flat_map(|row| [row.clone(), format!("{row}:versions")]));
    keys
}

/// The session of which a key is the row; `None` for its other keys.
pub fn session_of_row(key: &str) -> Option<String> {
    let (root, mark) = key.strip_prefix("fimble:{")?.split_once('}')?;
    let id = format!("{}{mark}", unescaped(root)?);
    (mark.is_empty() || family::mark(&id).is_some_and(|own| mark == format!(".{own}"))).then_some(id)
}

/// The root of the family to which a key of shared contents belongs; `None` for other keys.
pub fn root_of_contents(key: &str) -> Option<String> {
    let (root, part) = key.strip_prefix("fimble:{")?.split_once('}')?;
    if part == SHARED { unescaped(root) } else { None }
}

/// The sorted set of a user's sessions.
pub fn of_user(tenant: &str, user: &str) -> String {
    format!("fimble:sessions:{{{}/{}}}", escaped(tenant), escaped(user))
}

/// The sorted set of a user's sessions that are at work.
pub fn of_places(tenant: &str, user: &str) -> String {
    format!("{}:places", of_user(tenant, user))
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

/// What [`escaped`] made this of.
fn unescaped(text: &str) -> Option<String> {
    if text == "%" {
        return Some(String::new());
    }
    let mut pieces = text.split('%');
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_has_one_tag_of_its_own() {
        let tags: Vec<String> = ["s", "", "%", "}", "a}b{", "é/ü", "a:segments"].map(escaped).into();
        assert_eq!(tags, ["s", "%", "%25", "%7D", "a%7Db%7B", "%C3%A9%2F%C3%BC", "a%3Asegments"]);
        assert_eq!(of_session("}")[..2], ["fimble:{%7D}", "fimble:{%7D}:segments"]);
        assert_eq!(of_session("s.01234567")[6..8], ["fimble:{s}.01234567:calls", "fimble:{s}:contents"]);
        assert_eq!(of_session("s.01234567")[10..], of_session("s")[10..]);
        assert_eq!(of_fork("s.01234567", "s")[14..], of_session("s")[..10]);
        for id in ["s", "", "%", "é/ü", "a.b", "s.01234567"] {
            let keys = of_session(id);
            assert_eq!(session_of_row(&keys[0]).as_deref(), Some(id));
            assert!(keys[1..11].iter().all(|key| session_of_row(key).is_none()), "{keys:?}");
            assert_eq!(root_of_contents(&keys[7]).as_deref(), Some(family::root(id)));
        }
        assert_eq!(session_of_row("fimble:{%Z}"), None);
        assert_ne!(of_user("a", "b/c"), of_user("a/b", "c"));
    }
}
