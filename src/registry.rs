//! Which toolkits there are, and which of them a call means. Toolkits come and go while sessions run.
//!
//! It does not know sessions, policy or Python programs: it names, finds and binds, and calls nothing.

mod bind;
mod folders;
mod learnt;
mod nearest;
mod python_type;
mod source;
mod unknown;
mod view;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use fimble_toolkit::{Declaration, Operation, ToolError, Toolkit, is_python_name};
use serde_json::Value;

pub use bind::{bind, bind_call};
pub use folders::{Changes, Limits};
pub use source::{Read, ReadToolkit, Source, Unread};
pub use unknown::unknown_operation;
pub use view::{Scope, View};

use folders::Folders;
use learnt::{Learnt, is_untyped};
use unknown::{switched_off, unknown_here, unknown_toolkit};

/// The toolkits by name, in registration order.
#[derive(Default)]
pub struct Registry {
    entries: RwLock<Vec<Entry>>,
    /// What results looked like. Whoever holds both locks took the other one first.
    learnt: Mutex<Learnt>,
    /// What programs can use, until something changes.
    shared: Mutex<Option<Arc<Vec<Declaration>>>>,
    folders: OnceLock<Folders>,
    /// Kinds of toolkits that are switched off.
    off: RwLock<BTreeSet<Origin>>,
}

/// How a toolkit came to be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// It is compiled in: its operations are declared in its source.
    Declared,
    /// Its operations are learnt at run time, from a file, a server, a document or an agent.
    Dynamic,
}

/// One toolkit, with the declaration that it had at a revision.
struct Entry {
    toolkit: Arc<dyn Toolkit>,
    revision: u64,
    declaration: Declaration,
    origin: Origin,
    enabled: bool,
    /// Operations that are switched off here, whatever the toolkit says.
    off: BTreeSet<String>,
}

impl Entry {
    fn is_enabled(&self, operation: &Operation) -> bool {
        operation.enabled && !self.off.contains(&operation.name)
    }
}

/// Why a toolkit cannot be registered, or is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// Another toolkit has the name.
    #[error("there is already a toolkit `{0}`")]
    NameTaken(String),
    /// The toolkit's, an operation's or a parameter's name cannot be written in a program.
    #[error("`{name}`, the name of {what}, is no Python name")]
    NotAName {
        /// What has the name, e.g. `operation 2 of git_toolkit`.
        what: String,
        /// The name.
        name: String,
    },
    /// Two operations of a toolkit, or two parameters of an operation, have one name.
    #[error("{within} declares `{name}` twice")]
    Duplicate {
        /// The toolkit, or the operation.
        within: String,
        /// The name.
        name: String,
    },
    /// There is no toolkit of that name.
    #[error("there is no toolkit `{0}`")]
    Unknown(String),
}

impl RegistryError {
    /// What the user can do.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NameTaken(_) => "give one of them another name, or remove the other first",
            Self::NotAName { .. } => "use ASCII letters, digits and `_`, no digit first, and no Python keyword",
            Self::Duplicate { .. } => "rename or remove one of them",
            Self::Unknown(_) => "`fimble toolkits list` shows the toolkits there are",
        }
    }
}

impl Registry {
    /// A registry without toolkits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a toolkit that is compiled in, switched on.
    ///
    /// # Errors
    /// A taken name, a name that Python does not take, or a name declared twice; nothing is added then.
    pub fn register(&self, toolkit: Arc<dyn Toolkit>) -> Result<(), RegistryError> {
        self.register_from(Origin::Declared, toolkit)
    }

    /// Adds a toolkit of either kind, switched on.
    ///
    /// # Errors
    /// As [`register`](Self::register).
    pub fn register_from(&self, origin: Origin, toolkit: Arc<dyn Toolkit>) -> Result<(), RegistryError> {
        // The declaration is the toolkit's own code: not under the lock. Its revision is asked for first: a change in
        // between is seen the next time.
        let revision = toolkit.revision();
        let declaration = toolkit.declaration();
        check(&declaration)?;
        let mut entries = self.write();
        if entries.iter().any(|entry| entry.declaration.name == declaration.name) {
            return Err(RegistryError::NameTaken(declaration.name));
        }
        entries.push(Entry { toolkit, revision, declaration, origin, enabled: true, off: BTreeSet::new() });
        Ok(())
    }

    /// Puts a toolkit in the place of the one that has its name. Its place and its switch stay; calls that already found the
    /// other one go on with that.
    ///
    /// # Errors
    /// `Unknown`, or what [`register`](Self::register) would say; the other one stays then.
    pub fn replace(&self, toolkit: Arc<dyn Toolkit>) -> Result<(), RegistryError> {
        let revision = toolkit.revision();
        let declaration = toolkit.declaration();
        check(&declaration)?;
        let mut entries = self.write();
        let entry = entries.iter_mut().find(|entry| entry.declaration.name == declaration.name);
        let entry = entry.ok_or_else(|| RegistryError::Unknown(declaration.name.clone()))?;
        (entry.toolkit, entry.revision, entry.declaration) = (toolkit, revision, declaration);
        Ok(())
    }

    /// Names the folders whose `*.toml` files are toolkits, and what else is one, once; [`look`](Self::look) reads them.
    pub fn set_sources(
        &self,
        folders: Vec<PathBuf>,
        settings: Vec<Source>,
        reader: Arc<dyn ReadToolkit>,
        limits: Limits,
    ) {
        // A second naming would leave the first one's toolkits without a source.
        let _ = self.folders.set(Folders::new(folders, settings, reader, limits));
    }

    /// Looks at the sources: what came there is added, what changed is replaced, what went is removed. Of one that cannot be used
    /// the last good toolkit stays. Waits up to [`Limits::patience`] for those that are read anew. Needs a tokio runtime.
    pub async fn look(&self) -> Changes {
        match self.folders.get() {
            Some(folders) => folders.look(self).await,
            None => Changes::default(),
        }
    }

    /// Reads a toolkit's declaration again, after its operations changed. Its place and its switch stay.
    ///
    /// # Errors
    /// `Unknown`, or what [`register`](Self::register) would say; the old declaration stays then.
    pub fn refresh(&self, name: &str) -> Result<(), RegistryError> {
        let toolkit = self
            .read()
            .iter()
            .find(|entry| entry.declaration.name == name)
            .map(|entry| Arc::clone(&entry.toolkit))
            .ok_or_else(|| RegistryError::Unknown(name.to_owned()))?;
        let declaration = toolkit.declaration();
        check(&declaration)?;
        let mut entries = self.write();
        if declaration.name != name && entries.iter().any(|entry| entry.declaration.name == declaration.name) {
            return Err(RegistryError::NameTaken(declaration.name));
        }
        // It may have been removed or replaced while it was asked.
        let entry = entries.iter_mut().find(|entry| Arc::ptr_eq(&entry.toolkit, &toolkit));
        entry.ok_or_else(|| RegistryError::Unknown(name.to_owned()))?.declaration = declaration;
        Ok(())
    }

    /// Reads the declarations of the toolkits again that say that theirs changed. One that cannot be used is passed over.
    fn catch_up(&self) {
        let changed: Vec<(Arc<dyn Toolkit>, String, u64)> = self
            .read()
            .iter()
            .map(|entry| (entry, entry.toolkit.revision()))
            .filter(|(entry, revision)| entry.revision != *revision)
            .map(|(entry, revision)| (Arc::clone(&entry.toolkit), entry.declaration.name.clone(), revision))
            .collect();
        for (toolkit, name, revision) in changed {
            let declaration = toolkit.declaration();
            let problem = match check(&declaration) {
                Ok(()) if declaration.name == name => None,
                Ok(()) => Some(format!("its name is `{}` now", declaration.name)),
                Err(error) => Some(error.to_string()),
            };
            let mut entries = self.write();
            // It may have been removed while it was asked.
            let Some(entry) = entries.iter_mut().find(|entry| Arc::ptr_eq(&entry.toolkit, &toolkit)) else { continue };
            entry.revision = revision;
            match problem {
                None => entry.declaration = declaration,
                Some(problem) => tracing::warn!("{name} changed and stays as it was: {problem}"),
            }
        }
    }

    /// Takes a toolkit out. Calls that already found it go on. False if there was none of that name.
    pub fn remove(&self, name: &str) -> bool {
        let mut entries = self.write();
        let before = entries.len();
        entries.retain(|entry| entry.declaration.name != name);
        entries.len() < before
    }

    /// True if this very toolkit is registered.
    fn holds(&self, toolkit: &Arc<dyn Toolkit>) -> bool {
        self.read().iter().any(|entry| Arc::ptr_eq(&entry.toolkit, toolkit))
    }

    /// Switches a toolkit on or off. False if there is none of that name.
    pub fn set_enabled(&self, name: &str, enabled: bool) -> bool {
        let mut entries = self.write();
        let entry = entries.iter_mut().find(|entry| entry.declaration.name == name);
        entry.map(|entry| entry.enabled = enabled).is_some()
    }

    /// Switches one operation on or off; it stays so when the toolkit changes. One that the toolkit itself has off stays off.
    /// False if there is no such toolkit.
    pub fn set_operation_enabled(&self, toolkit: &str, operation: &str, enabled: bool) -> bool {
        let mut entries = self.write();
        let Some(entry) = entries.iter_mut().find(|entry| entry.declaration.name == toolkit) else { return false };
        if enabled {
            entry.off.remove(operation)
        } else {
            entry.off.insert(operation.to_owned())
        };
        true
    }

    /// Switches all toolkits of a kind on or off, those too that come later.
    pub fn set_origin_enabled(&self, origin: Origin, enabled: bool) {
        let mut off = self.off.write().unwrap_or_else(PoisonError::into_inner);
        if enabled {
            off.remove(&origin)
        } else {
            off.insert(origin)
        };
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// What a program can use whose owner sees everything, see [`declarations_in`](Self::declarations_in).
    pub fn declarations(&self) -> Vec<Declaration> {
        self.shared_declarations().to_vec()
    }

    /// The same without a copy: equal as long as nothing changes. Operations that do not say what they return have what was
    /// seen of them, see [`show_learnt`](Self::show_learnt).
    pub fn shared_declarations(&self) -> Arc<Vec<Declaration>> {
        self.catch_up();
        let entries = self.read();
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(declarations) = shared.as_ref() {
            return Arc::clone(declarations);
        }
        let learnt = self.learnt();
        let everything = Scope::default();
        let declarations = entries.iter().filter_map(|entry| {
            let mut declaration = self.shown(entry, &everything)?;
            learnt.tell(&mut declaration);
            Some(declaration)
        });
        let declarations = Arc::new(declarations.collect());
        *shared = Some(Arc::clone(&declarations));
        declarations
    }

    /// Learns what results of an operation look like, if it does not say that itself.
    pub fn observe(&self, toolkit: &str, operation: &Operation, result: &Value) {
        if is_untyped(operation) {
            self.learnt().observe(toolkit, operation, result);
        }
    }

    /// Shows in declarations what was learnt until now. It is not shown at once, because a prompt's head should stay as it is
    /// while a session goes on.
    pub fn show_learnt(&self) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if self.learnt().show() {
            *shared = None;
        }
    }

    /// What was learnt, as text for [`recall`](Self::recall), if that is news since it was last asked for.
    pub fn news(&self) -> Option<String> {
        self.learnt().news()
    }

    /// Takes in what was learnt before, and shows it. What cannot be read is left out.
    pub fn recall(&self, text: &str) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        self.learnt().recall(text);
        *shared = None;
    }

    fn learnt(&self) -> MutexGuard<'_, Learnt> {
        self.learnt.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a program can use: the declarations of the toolkits that are on and in `scope`, in registration order, each without
    /// the operations that are off or outside.
    pub fn declarations_in(&self, scope: &Scope) -> Arc<Vec<Declaration>> {
        let all = self.shared_declarations();
        if *scope == Scope::default() {
            return all;
        }
        Arc::new(all.iter().cloned().filter_map(|declaration| scope.narrow(declaration)).collect())
    }

    /// The one place that says what is seen of a toolkit; prompts, checker and gate all come here.
    fn shown(&self, entry: &Entry, scope: &Scope) -> Option<Declaration> {
        if !self.is_on(entry) {
            return None;
        }
        let Declaration { name, description, operations } = &entry.declaration;
        let operations = operations.iter().filter(|operation| entry.is_enabled(operation)).cloned().collect();
        scope.narrow(Declaration { name: name.clone(), description: description.clone(), operations })
    }

    fn is_on(&self, entry: &Entry) -> bool {
        entry.enabled && !self.off.read().unwrap_or_else(PoisonError::into_inner).contains(&entry.origin)
    }

    /// The names of all toolkits in registration order, and whether each is on.
    pub fn names(&self) -> Vec<(String, bool)> {
        self.read().iter().map(|entry| (entry.declaration.name.clone(), entry.enabled)).collect()
    }

    /// The toolkit and the operation that a call means, for an owner who sees everything, see [`find_in`](Self::find_in).
    ///
    /// # Errors
    /// As there.
    pub fn find(&self, toolkit: &str, operation: &str) -> Result<(Arc<dyn Toolkit>, Operation), ToolError> {
        self.find_in(&Scope::default(), toolkit, operation)
    }

    /// The toolkit and the operation that a call means.
    ///
    /// # Errors
    /// `UnknownOperation` with the nearest names, also for what is there and outside of `scope`; or `Denied` for what is switched
    /// off.
    pub fn find_in(
        &self,
        scope: &Scope,
        toolkit: &str,
        operation: &str,
    ) -> Result<(Arc<dyn Toolkit>, Operation), ToolError> {
        self.catch_up();
        let entries = self.read();
        let found = entries.iter().find(|entry| entry.declaration.name == toolkit);
        if let Some(entry) = found
            && let Some(declared) = entry.declaration.operations.iter().find(|declared| declared.name == operation)
            && scope.shows(toolkit, operation)
        {
            return match (self.is_on(entry), entry.is_enabled(declared)) {
                (true, true) => Ok((Arc::clone(&entry.toolkit), declared.clone())),
                (false, _) => Err(switched_off(toolkit.to_owned())),
                (true, false) => Err(switched_off(format!("{toolkit}.{operation}()"))),
            };
        }
        // From here on, what is outside of the scope is not there.
        let shown: Vec<Declaration> = entries.iter().filter_map(|entry| self.shown(entry, scope)).collect();
        match shown.iter().find(|declaration| declaration.name == toolkit) {
            Some(declaration) => Err(unknown_here(&shown, declaration, operation)),
            None => Err(unknown_toolkit(&shown, toolkit, operation)),
        }
    }

    /// A panic while the lock was held left nothing half done: each change is one assignment, push or retain.
    fn read(&self) -> RwLockReadGuard<'_, Vec<Entry>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Vec<Entry>> {
        let entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = None;
        entries
    }
}

/// What each round makes for itself.
const KEPT_NAMES: [&str; 2] = ["system_toolkit", "card_toolkit"];

fn check(declaration: &Declaration) -> Result<(), RegistryError> {
    let toolkit = &declaration.name;
    if KEPT_NAMES.contains(&toolkit.as_str()) {
        return Err(RegistryError::NameTaken(toolkit.clone()));
    }
    check_name(toolkit, || "a toolkit".into())?;
    for (index, operation) in declaration.operations.iter().enumerate() {
        check_name(&operation.name, || format!("operation {} of {toolkit}", index + 1))?;
        if declaration.operations.iter().take(index).any(|earlier| earlier.name == operation.name) {
            return Err(RegistryError::Duplicate { within: toolkit.clone(), name: operation.name.clone() });
        }
        for (index, parameter) in operation.parameters.iter().enumerate() {
            let within = || format!("{toolkit}.{}", operation.name);
            check_name(&parameter.name, || format!("parameter {} of {}", index + 1, within()))?;
            if operation.parameters.iter().take(index).any(|earlier| earlier.name == parameter.name) {
                return Err(RegistryError::Duplicate { within: within(), name: parameter.name.clone() });
            }
        }
    }
    Ok(())
}

fn check_name(name: &str, what: impl FnOnce() -> String) -> Result<(), RegistryError> {
    if is_python_name(name) {
        return Ok(());
    }
    Err(RegistryError::NotAName { what: what(), name: name.to_owned() })
}

#[cfg(test)]
mod folders_tests;
#[cfg(test)]
mod tests;
