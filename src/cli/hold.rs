//! Which process works in a session: one at a time, and of one user's sessions only so many at a time.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::Failure;
use crate::config::{Config, StorePlace};
use crate::crash;
use crate::record::SessionRecord;
use crate::session::Session;
use crate::store::packing::content_hash;
use crate::store::{Store, StoreError};

/// How long a session in Redis belongs to a process that is not heard of.
const LEASE: Duration = Duration::from_secs(15);

/// How often a session that waits for a place looks for one.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// A session that this process alone works in, as long as this lives. When the process dies, a file's lock goes at once, a
/// lease in Redis within [`LEASE`].
pub(super) enum Hold {
    /// Among the processes of this machine.
    File { _lock: File, path: PathBuf, _place: Option<File> },
    /// Among all that use the store.
    Lease {
        store: Arc<dyn Store>,
        session: String,
        owner: String,
        place: Option<Box<SessionRecord>>,
        /// Cancelled when somebody else has it.
        lost: CancellationToken,
        _renewing: AbortOnDropHandle<()>,
    },
}

impl Hold {
    /// What `work` in the session comes to. Once somebody else has the session, it is dropped where it is: nothing that it would
    /// still write is taken.
    ///
    /// # Errors
    /// Those of the work, or that another process took the session over.
    pub(super) async fn while_held<T, E>(&self, work: impl Future<Output = Result<T, E>>) -> Result<T, Failure>
    where
        Failure: From<E>,
    {
        let Hold::Lease { lost, session, .. } = self else { return Ok(work.await?) };
        let done = tokio::select! {
            biased;
            () = lost.cancelled() => return Err(taken_over(session)),
            done = work => done,
        };
        done.map_err(|error| {
            let failure = Failure::from(error);
            // A write may find it before the next renewal does.
            let found = [StoreError::NotOwner(session.clone()), StoreError::Stale(session.clone())];
            if !found.iter().any(|error| error.to_string() == failure.message) {
                return failure;
            }
            lost.cancel();
            taken_over(session)
        })
    }

    /// True if somebody else was found to have the session.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self, Hold::Lease { lost, .. } if lost.is_cancelled())
    }

    /// Leaves nothing of a session that is gone: whoever still waits for it finds that out.
    pub(super) fn of_removed(self) {
        if let Hold::File { path, .. } = &self {
            // A file that stays is no harm.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let Hold::Lease { store, session, owner, place, lost, .. } = self else { return };
        // Its place is counted for whoever works in it now.
        if lost.is_cancelled() {
            return;
        }
        let release = async {
            if let Some(record) = place {
                store.release_place(record).await?;
            }
            store.release_lease(session, owner).await
        };
        // The next command may come at once.
        if let Err(error) = tokio::task::block_in_place(|| Handle::current().block_on(release)) {
            tracing::warn!("{error}");
        }
    }
}

fn taken_over(session: &str) -> Failure {
    Failure::new(5, "another fimble took this session over, so this one stopped its work in it")
        .with_hint(format!("`fimble sessions follow {session}` shows what it does"))
}

/// Takes a session for this process, to work in it.
///
/// # Errors
/// Another process works in it, or as many sessions of its user are at work as may be (`session.at_once`).
pub(super) async fn hold(config: &Config, session: &Session) -> Result<Hold, Failure> {
    take(config, session.store(), session.record().id.clone(), Some(Box::new(session.record().clone()))).await
}

/// Takes the session of that id for this process, to look after it: it counts as no work.
///
/// # Errors
/// Another process works in it.
pub(super) async fn hold_id(config: &Config, store: Arc<dyn Store>, id: &str) -> Result<Hold, Failure> {
    take(config, store, id.to_owned(), None).await
}

async fn take(
    config: &Config,
    store: Arc<dyn Store>,
    id: String,
    place: Option<Box<SessionRecord>>,
) -> Result<Hold, Failure> {
    let held = || {
        Failure::new(5, "another fimble is at work in this session")
            .with_hint("wait for it, or start a new session; `fimble sessions follow` shows what it does")
    };
    if let StorePlace::File(_) = config.store_place()? {
        let folder = config.locks_folder()?;
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(&id);
        let lock = try_lock(&path)?.ok_or_else(held)?;
        let place = match place {
            Some(record) => Some(file_place(config, &folder, &record).await?),
            None => None,
        };
        crash::point("session held");
        return Ok(Hold::File { _lock: lock, path, _place: place });
    }
    if let Some(record) = &place {
        let enter = || async { Ok(store.take_place(record, config.session.at_once, LEASE).await?.then_some(())) };
        with_patience(config, enter).await?;
    }
    let owner = process_name();
    match store.take_lease(&id, &owner, LEASE).await {
        Ok(true) => {}
        // Its place is counted for whoever works in it.
        Ok(false) => return Err(held()),
        Err(error) => {
            if let Some(record) = &place {
                store.release_place(record).await?;
            }
            return Err(error.into());
        }
    }
    crash::point("session held");
    let lost = CancellationToken::new();
    let renewing = {
        let (store, id, owner, place) = (Arc::clone(&store), id.clone(), owner.clone(), place.clone());
        renew(store, id, owner, place, config.session.at_once, lost.clone())
    };
    let renewing = AbortOnDropHandle::new(tokio::spawn(renewing));
    Ok(Hold::Lease { store, session: id, owner, place, lost, _renewing: renewing })
}

/// Prolongs a lease until somebody else has it.
async fn renew(
    store: Arc<dyn Store>,
    id: String,
    owner: String,
    place: Option<Box<SessionRecord>>,
    most: u32,
    lost: CancellationToken,
) {
    loop {
        tokio::time::sleep(LEASE / 3).await;
        match store.take_lease(&id, &owner, LEASE).await {
            Ok(true) => {}
            Ok(false) => return lost.cancel(),
            // It is ours as long as nobody else takes it.
            Err(error) => tracing::warn!("{error}"),
        }
        if let Some(record) = &place
            && let Err(error) = store.take_place(record, most, LEASE).await
        {
            tracing::warn!("{error}");
        }
    }
}

/// One of the places of a session's user, among the processes that use the same file: there is a lock for each.
async fn file_place(config: &Config, folder: &Path, record: &SessionRecord) -> Result<File, Failure> {
    let owner = content_hash(&format!("{}\0{}", record.tenant, record.user));
    let folder = folder.join(format!("of-{}", owner.get(..16).unwrap_or_default()));
    std::fs::create_dir_all(&folder)?;
    with_patience(config, || async {
        for number in 0..config.session.at_once {
            if let Some(place) = try_lock(&folder.join(number.to_string()))? {
                return Ok(Some(place));
            }
        }
        Ok(None)
    })
    .await
}

/// Tries until there is a place, for as long as the configuration says.
async fn with_patience<T, F>(config: &Config, enter: impl Fn() -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<Option<T>, Failure>>,
{
    let deadline = Instant::now() + Duration::from_secs(config.session.wait_s);
    loop {
        if let Some(place) = enter().await? {
            return Ok(place);
        }
        if Instant::now() >= deadline {
            let most = config.session.at_once;
            return Err(Failure::new(5, format!("{most} of your sessions are at work, as many as may be at a time"))
                .with_hint("wait until one is done, or let this one wait with `-c session.wait_s=60`; `session.at_once` sets how many"));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// The file, locked; `None` if somebody else has it.
fn try_lock(path: &Path) -> Result<Option<File>, Failure> {
    let file = File::create(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// A name for this process that no other has.
pub(super) fn process_name() -> String {
    let host = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok()).unwrap_or_default();
    format!("{host}-{}-{}", std::process::id(), uuid::Uuid::now_v7().simple())
}
