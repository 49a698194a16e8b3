//! Folders whose files are toolkits, and services that the settings name, looked at anew when a turn begins: files come,
//! change and go while sessions run, and services are down and up again.
//!
//! What lies there is compared by content, not watched: a look costs less than a millisecond, needs no thread and no limit of
//! the kernel, is the same on a network's disk and in a container, and a turn sees one set of toolkits from its begin to its
//! end. Sources are read side by side. A look waits for them only so long; what comes later is there at the next look. What failed
//! and may pass is tried again at a look after its rest. It does not know what a source says; whoever opened the registry reads it.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fimble_toolkit::{Absent, Toolkit};
use futures_util::future::join_all;
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::source::{Read, ReadToolkit, Reading, Source, Unread};
use super::{Origin, Registry, RegistryError};

/// How much of a folder is looked at, and how long sources are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Files of a folder; those after them by name are told and passed over. Default 500.
    pub files: usize,
    /// Bytes of a file whose change is seen. Default 1 MiB.
    pub bytes: u64,
    /// How long a look waits for sources that are read anew. Default 10 s.
    pub patience: Duration,
    /// How long a source that failed is left alone before it is tried again; twice as long each time, up to a minute.
    /// Default 1 s.
    pub rest: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { files: 500, bytes: 1024 * 1024, patience: Duration::from_secs(10), rest: Duration::from_secs(1) }
    }
}

/// The longest time for which a source that fails is left alone.
const LONGEST_REST: Duration = Duration::from_secs(60);

/// Characters of a problem, and of its hint, that programs and models are told.
const REASON: usize = 400;

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

/// The folders of a registry, and what the settings name.
pub(super) struct Folders {
    paths: Vec<PathBuf>,
    settings: Vec<Source>,
    reader: Arc<dyn ReadToolkit>,
    limits: Limits,
    /// Held for a whole look, so that two turns that begin together see the same.
    known: Mutex<All>,
}

#[derive(Default)]
struct All {
    sources: BTreeMap<Source, Known>,
    /// What was told of folders.
    told: Vec<String>,
}

/// A source as it was last read.
#[derive(Default)]
struct Known {
    stamp: Stamp,
    also: Vec<PathBuf>,
    /// The attempt to read it that goes on.
    reading: Option<Reading>,
    /// Its last failures that may pass, one after another.
    failures: u32,
    /// Until when it is left alone; `None` if it is not to be tried again.
    rest: Option<Instant>,
    /// True if a look waited for it in vain: none does so again until it has answered.
    is_slow: bool,
    /// What stands in the registry as long as there is no toolkit.
    absent: Option<Arc<Absent>>,
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
    pub(super) fn new(
        paths: Vec<PathBuf>,
        settings: Vec<Source>,
        reader: Arc<dyn ReadToolkit>,
        limits: Limits,
    ) -> Self {
        Self { paths, settings, reader, limits, known: Mutex::default() }
    }

    /// Looks at all sources, and puts into `registry` what came and changed, and takes out what went.
    pub(super) async fn look(&self, registry: &Registry) -> Changes {
        let mut all = self.known.lock().await;
        let mut changes = Changes::default();
        let (found, problems) = self.list(&all).await;
        for problem in &problems {
            if !all.told.contains(problem) {
                changes.problems.push(problem.clone());
            }
        }
        all.told = problems;
        // First what is gone: a file that was renamed brings the same name.
        all.sources.retain(|source, known| {
            let stays = found.contains_key(source);
            if !stays {
                known.leave(registry);
            }
            if let (false, Some((name, _))) = (stays, &known.there) {
                registry.remove(name);
                changes.removed.push(name.clone());
            }
            stays
        });
        for (source, stamp) in found {
            let is_new = all.sources.get(&source).is_none_or(|known| known.stamp != stamp);
            let known = all.sources.entry(source.clone()).or_default();
            if is_new {
                known.forget(stamp);
            }
            if is_new || known.has_rested() {
                known.reading = Some(Reading::begin(&self.reader, &source));
            }
        }
        let begun = Instant::now();
        let patience = |known: &Known| if known.is_slow { Duration::ZERO } else { self.limits.patience };
        let read =
            all.sources.iter_mut().filter(|(_, known)| known.reading.is_some()).map(|(source, known)| async move {
                let until = begun + patience(known);
                let end = match &mut known.reading {
                    Some(reading) => reading.end(until).await,
                    None => None,
                };
                (source, known, end)
            });
        for (source, known, end) in join_all(read).await {
            let expected = self.reader.expected(source);
            match end {
                Some(Ok(read)) => known.was_read(read, &mut changes),
                Some(Err(unread)) => known.failed(unread, expected, self.limits, registry, &mut changes),
                None => known.is_late(source, expected, self.limits, registry, &mut changes),
            }
        }
        // Those that change their names give them up before others take them, unless a stranger has the new one.
        let renamed = |known: &Known| {
            let (last, _) = known.there.as_ref()?;
            let name = known.waits.as_ref()?.declaration().name;
            (name != *last).then(|| (last.clone(), name))
        };
        let renamed: Vec<(String, String)> = all.sources.values().filter_map(renamed).collect();
        let taken: Vec<String> = registry.names().into_iter().map(|(name, _)| name).collect();
        let given_up = |name: &String| renamed.iter().any(|(last, _)| last == name);
        for (last, name) in &renamed {
            if !taken.contains(name) || given_up(name) {
                registry.remove(last);
            }
        }
        // Who has a toolkit goes before who only has a reason.
        let come = all.sources.values().filter_map(|known| known.waits.as_ref());
        let come: Vec<String> = come.map(|toolkit| toolkit.declaration().name).collect();
        let stands_in_the_way = |known: &Known| known.absent.as_ref().is_some_and(|absent| come.contains(&absent.name));
        all.sources.values_mut().filter(|known| stands_in_the_way(known)).for_each(|known| known.leave(registry));
        for (source, known) in &mut all.sources {
            known.settle(source, registry, &mut changes);
        }
        for known in all.sources.values_mut() {
            known.return_to(registry);
        }
        // What is told as gone and come is the same one under another file's name.
        let (gone, come) = (changes.removed.clone(), changes.added.clone());
        changes.changed.extend(come.iter().filter(|name| gone.contains(name)).cloned());
        changes.removed.retain(|name| !come.contains(name));
        changes.added.retain(|name| !gone.contains(name));
        changes
    }

    /// The sources that there are with their stamps, and what is wrong with the folders.
    async fn list(&self, all: &All) -> (BTreeMap<Source, Stamp>, Vec<String>) {
        let also: BTreeMap<PathBuf, Vec<PathBuf>> = all
            .sources
            .iter()
            .filter_map(|(source, known)| match source {
                Source::File(path) => Some((path.clone(), known.also.clone())),
                Source::Setting { .. } => None,
            })
            .collect();
        let (paths, limits) = (self.paths.clone(), self.limits);
        let listed = tokio::task::spawn_blocking(move || list(&paths, &also, limits)).await;
        let (mut found, problems) = match listed {
            Ok((files, problems)) => {
                (files.into_iter().map(|(path, stamp)| (Source::File(path), stamp)).collect(), problems)
            }
            // A look that was lost changes nothing.
            Err(error) => {
                let same = all.sources.iter().map(|(source, known)| (source.clone(), known.stamp.clone()));
                (same.collect::<BTreeMap<_, _>>(), vec![format!("the folders of toolkits cannot be read: {error}")])
            }
        };
        // What the settings say does not change.
        let settings = self.settings.iter().map(|source| {
            let stamp = all.sources.get(source).map(|known| known.stamp.clone());
            (source.clone(), stamp.unwrap_or_default())
        });
        found.extend(settings);
        (found, problems)
    }
}

impl Known {
    /// The source says something else now: what it came to before counts no more, but for its last good toolkit.
    fn forget(&mut self, stamp: Stamp) {
        (self.stamp, self.waits, self.reading) = (stamp, None, None);
        (self.failures, self.rest, self.is_slow) = (0, None, false);
    }

    /// True if it failed and may be tried again now.
    fn has_rested(&self) -> bool {
        self.reading.is_none() && self.rest.is_some_and(|rest| rest <= Instant::now())
    }

    fn was_read(&mut self, read: Read, changes: &mut Changes) {
        let Read { toolkit, warnings, also } = read;
        let stamp = std::mem::take(&mut self.stamp);
        self.forget(Stamp { also: also.iter().map(|path| touched(path)).collect(), ..stamp });
        (self.also, self.told, self.waits) = (also, None, Some(toolkit));
        changes.problems.extend(warnings);
    }

    fn failed(
        &mut self,
        unread: Unread,
        expected: Option<String>,
        limits: Limits,
        registry: &Registry,
        changes: &mut Changes,
    ) {
        // One that fails late is not waited for the next time either.
        self.is_slow = self.reading.take().is_some_and(|reading| reading.age() > limits.patience);
        if unread.passes {
            let rest = limits.rest.saturating_mul(1 << self.failures.min(10)).min(LONGEST_REST);
            self.failures += 1;
            self.rest = Some(Instant::now() + rest);
            self.stand_in(expected, &unread.problem, registry);
        } else {
            self.rest = None;
            self.leave(registry);
        }
        self.tell(unread.problem, changes);
    }

    fn is_late(
        &mut self,
        source: &Source,
        expected: Option<String>,
        limits: Limits,
        registry: &Registry,
        changes: &mut Changes,
    ) {
        if std::mem::replace(&mut self.is_slow, true) {
            return;
        }
        let problem = format!("{source} did not answer within {:?}; it is there when it has", limits.patience);
        self.stand_in(expected, &problem, registry);
        self.tell(problem, changes);
    }

    /// Says in the registry why there is no toolkit, if its name is known and free.
    fn stand_in(&mut self, name: Option<String>, problem: &str, registry: &Registry) {
        let Some(name) = name.filter(|_| self.there.is_none()) else { return };
        let (what, hint) = problem.split_once('\n').unwrap_or((problem, ""));
        let short = |text: &str| text.chars().take(REASON).collect::<String>();
        // In a paragraph of its own, which stubs leave out: half a hint is none.
        let reason = format!("It cannot be used now: {}\n\n{}", short(what), short(hint));
        let reason = reason.trim_end().to_owned();
        if self.absent.as_ref().is_some_and(|absent| absent.reason == reason) {
            return;
        }
        self.leave(registry);
        let absent = Arc::new(Absent { name, reason });
        if registry.register_from(Origin::Dynamic, Arc::clone(&absent) as Arc<dyn Toolkit>).is_ok() {
            self.absent = Some(absent);
        }
    }

    /// Takes back what [`stand_in`](Self::stand_in) said.
    fn leave(&mut self, registry: &Registry) {
        if let Some(absent) = self.absent.take() {
            registry.remove(&absent.name);
        }
    }

    /// Puts a toolkit that waits into the registry, in the place of the last good one.
    fn settle(&mut self, source: &Source, registry: &Registry, changes: &mut Changes) {
        let Some(toolkit) = self.waits.take() else { return };
        self.leave(registry);
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
                self.tell(format!("{source}: {error}\nhint: {}", error.hint()), changes);
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
