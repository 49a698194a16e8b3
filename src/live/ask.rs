//! The asking side: every process of this user on this machine that listens. What a dead one left is removed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::{Answer, ENDING, KILLED_WITHIN, PATIENCE, Request, machine, open_folder, within};
use crate::gate::RoundView;

/// The most bytes of an answer.
const ANSWER_BYTES: u64 = 16 * 1024 * 1024;

/// A running round and the socket of its process.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The round.
    pub view: RoundView,
    socket: PathBuf,
}

/// The rounds of all processes that listen in one of the folders, the oldest first, and one sentence for each process that
/// did not answer.
///
/// # Errors
/// A folder that is there cannot be read, or is not this user's alone.
pub async fn rounds(folders: &[PathBuf]) -> io::Result<(Vec<Found>, Vec<String>)> {
    let mut asked = Vec::new();
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        let opened = Arc::new(open_folder(folder)?);
        for name in sockets(folder)? {
            let opened = Arc::clone(&opened);
            asked.push(async move { (folder.join(&name), ask(&opened, &name, &Request::Rounds, PATIENCE).await) });
        }
    }
    let (mut found, mut silent) = (Vec::new(), Vec::new());
    for (socket, answer) in join_all(asked).await {
        match answer {
            Ok(Some(Answer::Rounds { rounds })) => {
                found.extend(rounds.into_iter().map(|view| Found { view, socket: socket.clone() }));
            }
            Ok(None) => {}
            Ok(Some(other)) => silent.push(format!("{}: an answer of another version: {other:?}", socket.display())),
            Err(error) => silent.push(format!("{}: {error}", socket.display())),
        }
    }
    found.sort_by_key(|one| one.view.started_at);
    Ok((found, silent))
}

/// Ends a round and waits until it has ended; false if it had ended before.
///
/// # Errors
/// Its process did not answer, or said why it could not be done.
pub async fn kill(found: &Found) -> io::Result<bool> {
    let request = Request::Kill { session: found.view.session.clone(), round: found.view.round };
    let (Some(folder), Some(name)) = (found.socket.parent(), found.socket.file_name().and_then(|name| name.to_str()))
    else {
        return Ok(false);
    };
    match ask(&open_folder(folder)?, name, &request, KILLED_WITHIN + PATIENCE).await? {
        Some(Answer::Killed { found }) => Ok(found),
        Some(Answer::Refused { reason }) => Err(io::Error::other(reason)),
        Some(Answer::Rounds { .. }) => Err(io::Error::other("it answered something else")),
        None => Ok(false),
    }
}

/// The names of this machine's sockets in a folder.
fn sockets(folder: &Path) -> io::Result<Vec<String>> {
    let machine = machine();
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let Ok(name) = entry?.file_name().into_string() else { continue };
        if name.starts_with(&machine) && name.ends_with(ENDING) {
            names.push(name);
        }
    }
    Ok(names)
}

/// One question; `None` if nobody is there to answer it.
async fn ask(folder: &File, name: &str, request: &Request, within_time: Duration) -> io::Result<Option<Answer>> {
    let Some(stream) = connect(folder, name).await? else { return Ok(None) };
    let answer = timeout(within_time, converse(stream, request)).await;
    answer.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "it does not answer"))?
}

async fn connect(folder: &File, name: &str) -> io::Result<Option<UnixStream>> {
    match UnixStream::connect(within(folder, name)).await {
        Ok(stream) => Ok(Some(stream)),
        // Its process died without a word. Names are never used again.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            let _ = fs::remove_file(within(folder, name));
            Ok(None)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

async fn converse(mut stream: UnixStream, request: &Request) -> io::Result<Option<Answer>> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    let mut body = Vec::new();
    let spoken = async {
        stream.write_all(&line).await?;
        stream.take(ANSWER_BYTES).read_to_end(&mut body).await
    };
    match spoken.await {
        Ok(0) => Ok(None),
        // It ended while it was asked.
        Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => Ok(None),
        Err(error) => Err(error),
        Ok(_) => Ok(Some(serde_json::from_slice(&body)?)),
    }
}
