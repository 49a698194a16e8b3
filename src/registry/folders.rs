//! Folders whose files are toolkits, looked at anew when a turn begins: files come, change and go while sessions run.
//!
//! What lies there is compared by content, not watched: a look costs less than a millisecond, needs no thread and no limit of
//! the kernel, is the same on a network's disk and in a container, and a turn sees one set of toolkits from its begin to its
//! end. It does not know what a file says; whoever opened the registry reads it.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use fimble_toolkit::Toolkit;
use futures_util::future::join_all;
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;

use super::{Origin, Registry, RegistryError};

/// How much of a folder is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Files of a folder; those after them by name are told and passed over. Default 500.
    pub files: usize,
    /// Bytes of a file whose change is seen. Default 1 MiB.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { files: 500, bytes: 1024 * 1024 }
    }
}

/// Reads a file as a toolkit.
#[async_trait]
pub trait ReadToolkit: Send + Sync {
    /// The toolkit of `file`.
    ///
    /// # Errors
    /// What is wrong, for a person: a sentence that names the file, with its hint.
    async fn read(&self, file: &Path) -> Result<Read, String>;
}

/// What a file came to.
pub struct Read {
    /// Its toolkit.
    pub toolkit: Arc<dyn Toolkit>,
    /// What is to be told of it.
    pub warnings: Vec<String>,
    /// Other files that it was made from; when one of them changes, it is read again.
    pub also: Vec<PathBuf>,
}

/// What was different at a look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Toolkits that came.
    pub added: Vec<String>,
    /// Toolkits that changed.
    pub changed: Vec<String>,
    /// Toolkits that went.
    pub removed: Vec<String>,
    /// What cannot be used, a sentence each. What was there before stays.
    pub problems: Vec<String>,
}

impl Changes {
    /// True if all is as it was.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The folders of a registry.
pub(super) struct Folders {
    paths: Vec<PathBuf>,
    reader: Arc<dyn ReadToolkit>,
    limits: Limits,
    /// Held for a whole look, so that two turns that begin together see the same.
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    files: BTreeMap<PathBuf, File>,
    /// What was told of folders.
    told: Vec<String>,
}

/// A file as it was last read.
#[derive(Default)]
struct File {
    stamp: Stamp,
    also: Vec<PathBuf>,
    /// The toolkit in the registry.
    there: Option<(String, Arc<dyn Toolkit>)>,
    /// A good toolkit whose name another one has.
    waits: Option<Arc<dyn Toolkit>>,
    /// The problem that was told last.
    told: Option<String>,
}

/// Two are the same if nobody wrote the file in between.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Stamp {
    content: Vec<u8>,
    at: Option<SystemTime>,
    also: Vec<Option<(SystemTime, u64)>>,
}

impl Folders {
    pub(super) fn new(paths: Vec<PathBuf>, reader: Arc<dyn ReadToolkit>, limits: Limits) -> Self {
        Self { paths, reader, limits, known: Mutex::default() }
    }

    /// Looks at all files, and puts into `registry` what came and changed, and takes out what went.
    pub(super) async fn look(&self, registry: &Registry) -> Changes {
        let mut known = self.known.lock().await;
        let mut changes = Changes::default();
        let (found, problems) = self.list(&known).await;
        for problem in &problems {
            if !known.told.contains(problem) {
                changes.problems.push(problem.clone());
            }
        }
        known.told = problems;
        // First what is gone: a file that was renamed brings the same name.
        known.files.retain(|path, file| {
            let stays = found.contains_key(path);
            if let (false, Some((name, _))) = (stays, &file.there) {
                registry.remove(name);
                changes.removed.push(name.clone());
            }
            stays
        });
        let is_new = |path: &PathBuf, stamp: &Stamp| known.files.get(path).is_none_or(|file| file.stamp != *stamp);
        let new: Vec<_> = found.into_iter().filter(|(path, stamp)| is_new(path, stamp)).collect();
        let read = join_all(new.iter().map(|(path, _)| self.reader.read(path))).await;
        for ((path, stamp), read) in new.into_iter().zip(read) {
            let file = known.files.entry(path).or_default();
            file.stamp = stamp;
            file.waits = None;
            match read {
                Ok(Read { toolkit, warnings, also }) => {
                    file.stamp.also = also.iter().map(|path| touched(path)).collect();
                    (file.also, file.told) = (also, None);
                    changes.problems.extend(warnings);
                    file.waits = Some(toolkit);
                }
                Err(problem) => file.tell(problem, &mut changes),
            }
        }
        // Those that change their names give them up before others take them, unless a stranger has the new one.
        let renamed = |file: &File| {
            let (last, _) = file.there.as_ref()?;
            let name = file.waits.as_ref()?.declaration().name;
            (name != *last).then(|| (last.clone(), name))
        };
        let renamed: BTreeMap<PathBuf, (String, String)> =
            known.files.iter().filter_map(|(path, file)| Some((path.clone(), renamed(file)?))).collect();
        let taken: Vec<String> = registry.names().into_iter().map(|(name, _)| name).collect();
        let given_up = |name: &String| renamed.values().any(|(last, _)| last == name);
        for (last, name) in renamed.values() {
            if !taken.contains(name) || given_up(name) {
                registry.remove(last);
            }
        }
        for (path, file) in &mut known.files {
            file.settle(path, registry, &mut changes);
        }
        for file in known.files.values_mut() {
            file.return_to(registry);
        }
        // What is told as gone and come is the same one under another file's name.
        let (gone, come) = (changes.removed.clone(), changes.added.clone());
        changes.changed.extend(come.iter().filter(|name| gone.contains(name)).cloned());
        changes.removed.retain(|name| !come.contains(name));
        changes.added.retain(|name| !gone.contains(name));
        changes
    }

    /// The files that there are with their stamps, and what is wrong with the folders.
    async fn list(&self, known: &Known) -> (BTreeMap<PathBuf, Stamp>, Vec<String>) {
        let also: BTreeMap<PathBuf, Vec<PathBuf>> =
            known.files.iter().map(|(path, file)| (path.clone(), file.also.clone())).collect();
        let (paths, limits) = (self.paths.clone(), self.limits);
        let listed = tokio::task::spawn_blocking(move || list(&paths, &also, limits)).await;
        // A look that was lost changes nothing.
        listed.unwrap_or_else(|error| {
            let same = known.files.iter().map(|(path, file)| (path.clone(), file.stamp.clone()));
            (same.collect(), vec![format!("the folders of toolkits cannot be read: {error}")])
        })
    }
}

impl File {
    /// Puts a toolkit that waits into the registry, in the place of the last good one.
    fn settle(&mut self, path: &Path, registry: &Registry, changes: &mut Changes) {
        let Some(toolkit) = self.waits.take() else { return };
        let name = toolkit.declaration().name;
        let put = match &self.there {
            Some((last, _)) if *last == name => registry.replace(Arc::clone(&toolkit)),
            _ => registry.register_from(Origin::Dynamic, Arc::clone(&toolkit)),
        };
        match put {
            Ok(()) => {
                self.told = None;
                match self.there.replace((name.clone(), toolkit)) {
                    Some((last, _)) if last == name => changes.changed.push(name),
                    Some((last, _)) => {
                        changes.removed.push(last);
                        changes.added.push(name);
                    }
                    None => changes.added.push(name),
                }
            }
            Err(error) => {
                if matches!(error, RegistryError::NameTaken(_)) {
                    // Its name may be free at the next look.
                    self.waits = Some(toolkit);
                }
                self.tell(format!("{}: {error}\nhint: {}", path.display(), error.hint()), changes);
            }
        }
    }

    /// Puts the last good toolkit back if it gave its name up for nothing.
    fn return_to(&mut self, registry: &Registry) {
        if let Some((last, toolkit)) = &self.there
            && !registry.holds(toolkit)
            && registry.register_from(Origin::Dynamic, Arc::clone(toolkit)).is_err()
        {
            // Another file took it in the meantime.
            tracing::warn!("`{last}` is not there any more: its name is another toolkit's");
            self.there = None;
        }
    }

    /// Says a problem once, and what stays in spite of it.
    fn tell(&mut self, problem: String, changes: &mut Changes) {
        if self.told.as_ref() == Some(&problem) {
            return;
        }
        let stays = self.there.as_ref().map(|(name, _)| format!("\n`{name}` stays as it was before"));
        changes.problems.push(format!("{problem}{}", stays.unwrap_or_default()));
        self.told = Some(problem);
    }
}

fn list(
    folders: &[PathBuf],
    also: &BTreeMap<PathBuf, Vec<PathBuf>>,
    limits: Limits,
) -> (BTreeMap<PathBuf, Stamp>, Vec<String>) {
    let (mut found, mut problems) = (BTreeMap::new(), Vec::new());
    for folder in folders {
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => {
                problems.push(format!("{}: the folder cannot be read: {error}", folder.display()));
                // A disk that does not answer has not lost its files; a folder that is gone has.
                if error.kind() != std::io::ErrorKind::NotFound {
                    let last = also.iter().filter(|(path, _)| path.parent() == Some(folder));
                    found.extend(last.map(|(path, also)| (path.clone(), stamp(path, also, limits))));
                }
                continue;
            }
        };
        let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let is_toolkit = |path: &PathBuf| path.extension().is_some_and(|end| end == "toml") && path.is_file();
        let mut files: Vec<PathBuf> = files.filter(is_toolkit).collect();
        files.sort();
        if files.len() > limits.files {
            let (folder, count, most) = (folder.display(), files.len(), limits.files);
            problems.push(format!("{folder}: there are {count} files, and only the first {most} are read"));
            files.truncate(limits.files);
        }
        for path in files {
            let stamp = stamp(&path, also.get(&path).map(Vec::as_slice).unwrap_or_default(), limits);
            found.insert(path, stamp);
        }
    }
    (found, problems)
}

/// A file's time tells most changes, its content those that a coarse clock or a copy with times hides.
fn stamp(path: &Path, also: &[PathBuf], limits: Limits) -> Stamp {
    let mut content = Sha256::new();
    if let Ok(file) = std::fs::File::open(path) {
        let mut bytes = Vec::new();
        // What cannot be read is told by whoever reads it as a toolkit.
        let _ = file.take(limits.bytes).read_to_end(&mut bytes);
        content.update(&bytes);
    }
    Stamp {
        content: content.finalize().to_vec(),
        at: touched(path).map(|(at, _)| at),
        also: also.iter().map(|path| touched(path)).collect(),
    }
}

fn touched(path: &Path) -> Option<(SystemTime, u64)> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
