//! A session and its forks are one family: they share contents, and a store that is spread over several machines keeps them on
//! one. The id says which: that of a fork is `ROOT.XXXXXXXX`, eight hexadecimal digits after the id that all began with. Pure.

use uuid::Uuid;

/// Hexadecimal digits that tell the forks of a family apart.
const DIGITS: usize = 8;

/// The id that a family began with; a session that is no fork is its own.
pub fn root(id: &str) -> &str {
    split(id).map_or(id, |(root, _)| root)
}

/// What tells a fork from the others of its family; `None` for a session that is none.
pub fn mark(id: &str) -> Option<&str> {
    split(id).map(|(_, mark)| mark)
}

/// A new id in the family of `id`.
pub fn new_member(id: &str) -> String {
    let mut mark = Uuid::new_v4().simple().to_string();
    mark.truncate(DIGITS);
    format!("{}.{mark}", root(id))
}

fn split(id: &str) -> Option<(&str, &str)> {
    let (root, mark) = id.rsplit_once('.')?;
    let is_mark = mark.len() == DIGITS && mark.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (is_mark && !root.is_empty()).then_some((root, mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_and_its_forks_have_one_root() {
        let id = Uuid::now_v7().to_string();
        let fork = new_member(&id);
        let again = new_member(&fork);
        assert_eq!((root(&id), root(&fork), root(&again)), (id.as_str(), id.as_str(), id.as_str()));
        assert!(mark(&id).is_none() && mark(&fork).is_some_and(|mark| mark.len() == 8) && fork != again);
    }

    #[test]
    fn other_dots_are_part_of_an_id() {
        for id in ["a.b", "a.", ".01234567", "a.0123456", "a.012345678", "a.0123456G", "a.ABCDEF01", ""] {
            assert_eq!((root(id), mark(id)), (id, None));
        }
    }
}
