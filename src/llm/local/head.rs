//! Prompts that begin alike, kept on disk as the server read them: a new server goes on where an older one was, in a
//! tenth of a second in place of half a minute. What is kept is what every first message has in common, nothing of the
//! user's.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use serde_json::json;
use sha2::{Digest, Sha256};

use super::SERVER_PACKAGE;
use super::place::Place;
use crate::llm::{Endpoint, Input, LlmError, Request};

/// Files that are kept; one is about 30 KB a token.
const KEPT: usize = 4;

/// The heads that a server was given by this process.
#[derive(Default)]
pub(super) struct Heads {
    known: Mutex<BTreeSet<String>>,
}

impl Heads {
    /// Gives the server the head of what it will be asked, from disk or by reading it. Once for each head.
    pub(super) async fn prepare(&self, place: &Place, endpoint: &Endpoint, head: &Request) -> Result<(), LlmError> {
        let name = name(place, head);
        if !self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone()) {
            return Ok(());
        }
        // A conversation and a text with a hole have nothing in common: each has a slot.
        let slot = match head.input {
            Input::Chat(_) => 0,
            Input::Fill { .. } => 1,
        };
        let file = place.heads().join(&name);
        let named = json!({ "filename": name });
        if file.exists() {
            match endpoint.post(&format!("../slots/{slot}?action=restore"), &named).await {
                Ok(()) => {
                    touch(&file);
                    return Ok(());
                }
                Err(error) => tracing::info!(%error, "a kept prompt is read anew"),
            }
        }
        endpoint.read_prompt(head, slot).await?;
        endpoint.post(&format!("../slots/{slot}?action=save"), &named).await?;
        keep_newest(&place.heads());
        Ok(())
    }
}

/// Equal names are equal prompts for the same weights in the same server.
fn name(place: &Place, head: &Request) -> String {
    let changed = fs::metadata(&place.model).and_then(|metadata| metadata.modified());
    let changed = changed.unwrap_or(SystemTime::UNIX_EPOCH);
    let told = format!("{}\0{changed:?}\0{SERVER_PACKAGE}\0{:?}", place.name, head.input);
    let hex: String = Sha256::digest(told.as_bytes()).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{hex}.bin")
}

/// A file that was used is a new one.
fn touch(file: &Path) {
    if let Err(error) =
        fs::File::options().append(true).open(file).and_then(|file| file.set_modified(SystemTime::now()))
    {
        tracing::debug!(%error, "the age of a kept prompt cannot be set");
    }
}

fn keep_newest(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut files: Vec<(SystemTime, PathBuf)> = entries
        .filter_map(|entry| entry.ok())
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    files.sort();
    for (_, old) in files.iter().rev().skip(KEPT) {
        if let Err(error) = fs::remove_file(old) {
            tracing::debug!(%error, "an old prompt cannot be removed");
        }
    }
}
