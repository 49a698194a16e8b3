//! The answering side: a socket of this process, and the lines that come in through it.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use uuid::Uuid;

use super::{Answer, ENDING, KILLED_WITHIN, PATIENCE, Request, machine, open_folder, within};
use crate::gate::Live;

/// The most bytes of a request.
const REQUEST_BYTES: u64 = 4_096;

/// A listening process. The socket is gone once this is dropped.
#[derive(Debug)]
pub struct Listener {
    path: PathBuf,
    task: AbortHandle,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
        let _ = fs::remove_file(&self.path);
    }
}

/// Lets this user's other processes see and end the rounds of `live`, through a socket in `folder`. Call it within a
/// runtime.
///
/// # Errors
/// The folder cannot be made or is not this user's alone, or the system has no more sockets.
pub fn listen(folder: &Path, live: Arc<Live>) -> io::Result<Listener> {
    let opened = open_folder(folder)?;
    let id = Uuid::now_v7().simple();
    let (new, name) = (format!(".{id}"), format!("{}-{id}{ENDING}", machine()));
    let listener = UnixListener::bind(within(&opened, &new))?;
    // Seen only when it listens: one that does not would be taken for a dead one's.
    fs::set_permissions(within(&opened, &new), Permissions::from_mode(0o600))?;
    fs::rename(within(&opened, &new), within(&opened, &name))?;
    let task = tokio::spawn(accept(listener, live)).abort_handle();
    Ok(Listener { path: folder.join(name), task })
}

async fn accept(listener: UnixListener, live: Arc<Live>) {
    // An error is of one connection, or of too many open files: nobody can be told.
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(serve(stream, Arc::clone(&live)))),
            Err(_) => tokio::time::sleep(PATIENCE).await,
        }
    }
}

async fn serve(mut stream: UnixStream, live: Arc<Live>) {
    let own = nix::unistd::geteuid().as_raw();
    if !stream.peer_cred().is_ok_and(|peer| peer.uid() == own || peer.uid() == 0) {
        return;
    }
    let mut line = String::new();
    let (reader, mut writer) = stream.split();
    let mut reader = BufReader::new(reader.take(REQUEST_BYTES));
    if !matches!(timeout(PATIENCE, reader.read_line(&mut line)).await, Ok(Ok(_))) {
        return;
    }
    let answer = match serde_json::from_str(&line) {
        Ok(Request::Rounds) => Answer::Rounds { rounds: live.rounds() },
        Ok(Request::Kill { session, round }) => match timeout(KILLED_WITHIN, live.kill(&session, round)).await {
            Ok(found) => Answer::Killed { found },
            Err(_) => Answer::Refused { reason: "it was told to end and has not ended yet".to_owned() },
        },
        Err(error) => Answer::Refused { reason: format!("the request is not understood: {error}") },
    };
    let mut body = serde_json::to_vec(&answer).unwrap_or_default();
    body.push(b'\n');
    let _ = timeout(PATIENCE, writer.write_all(&body)).await;
}
