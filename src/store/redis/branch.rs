//! Forks of a session, and its way back to an earlier round.

use super::answer::unexpected;
use super::{Redis, index, keys, scripts, write};
use crate::record::SessionRecord;
use crate::store::{Rewind, StoreError, check};

/// Stores a new session that is as another one was.
pub async fn fork(store: &Redis, source: &str, fork: &SessionRecord) -> Result<(), StoreError> {
    check::fork(source, fork)?;
    let arguments = write::create_session(fork)?;
    index::enter(store, fork).await?;
    let answer =
        store.write_keys(&scripts::FORK_SESSION, &fork.id, &keys::of_fork(&fork.id, source), arguments).await?;
    match answer.word.as_str() {
        "ok" => Ok(()),
        "exists" => Err(StoreError::AlreadyExists(fork.id.clone())),
        "unknown" => Err(StoreError::UnknownSession(source.to_owned())),
        "elsewhere" => Err(StoreError::Stale(source.to_owned())),
        word => Err(unexpected(word)),
    }
}

/// Takes a session back.
pub async fn rewind(store: &Redis, rewind: &Rewind) -> Result<(), StoreError> {
    let arguments = write::rewind_session(rewind)?;
    index::raise(store, &rewind.session).await?;
    let id = &rewind.session.id;
    let answer = store.write(&scripts::REWIND_SESSION, id, arguments).await?;
    match answer.word.as_str() {
        "ok" => Ok(()),
        "unknown" => Err(StoreError::UnknownSession(id.clone())),
        "elsewhere" => Err(StoreError::Stale(id.clone())),
        "absent" => {
            let name = answer.text("variable", 0)?;
            Err(StoreError::Failed(format!("the session has no such content of `{name}`")))
        }
        word => Err(unexpected(word)),
    }
}
