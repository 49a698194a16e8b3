//! What a person said `always` to: kept in one file of the user's, read anew whenever something would be asked, so that it can
//! be taken back while programs run.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Pattern, Subject, text_of};

/// Bytes of the file; a longer one is not read.
const FILE_BYTES: u64 = 4 * 1024 * 1024;
/// What is remembered at once.
const MOST: usize = 1_000;
/// The form of the file.
const VERSION: u32 = 1;

/// One thing that a person said `always` to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remembered {
    /// What it is revoked by: eight hexadecimal digits.
    pub id: String,
    /// For this tenant only.
    pub tenant: String,
    /// For this user only.
    pub user: String,
    /// `toolkit.operation`.
    pub operation: String,
    /// For which arguments.
    pub arguments: Extent,
    /// When it was said.
    pub since: Timestamp,
}

/// For which arguments something was allowed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// Exactly these.
    Exactly(Map<String, Value>),
    /// Those whose texts match these patterns; the others may be anything.
    Matching(BTreeMap<String, Pattern>),
    /// Any.
    Any,
}

impl Extent {
    /// True if these arguments are among them.
    pub fn covers(&self, arguments: &Map<String, Value>) -> bool {
        match self {
            Extent::Exactly(exact) => exact == arguments,
            Extent::Matching(patterns) => patterns
                .iter()
                .all(|(name, pattern)| arguments.get(name).is_some_and(|value| pattern.allows(&text_of(value)))),
            Extent::Any => true,
        }
    }
}

impl std::fmt::Display for Extent {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Extent::Exactly(exact) => write!(formatter, "({})", Value::Object(exact.clone())),
            Extent::Matching(patterns) => {
                let patterns = patterns.iter().map(|(name, pattern)| format!("{name}={:?}", pattern.as_str()));
                write!(formatter, "(… {})", patterns.collect::<Vec<_>>().join(" "))
            }
            Extent::Any => formatter.write_str("(…)"),
        }
    }
}

impl Remembered {
    /// True if the call is one of those that were allowed; with `exactly`, only if it is this very call.
    pub fn allows(&self, subject: &Subject<'_>, exactly: bool) -> bool {
        self.operation.split_once('.') == Some((subject.toolkit, subject.operation))
            && self.tenant == subject.tenant
            && self.user == subject.user
            && (!exactly || matches!(self.arguments, Extent::Exactly(_)))
            && self.arguments.covers(subject.arguments)
    }
}

/// Where it is kept.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    file: Option<PathBuf>,
}

/// Why something cannot be remembered, or is not known.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// There is no place for it.
    #[error("there is no file to remember it in")]
    Nowhere,
    /// The file cannot be read or written.
    #[error("`{}`: {error}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What went wrong.
        error: std::io::Error,
    },
    /// The file is not what this program writes.
    #[error("`{}` cannot be understood: {reason}", file.display())]
    Broken {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The file is full.
    #[error("{MOST} calls are remembered, the most there can be")]
    Full,
    /// The file would be longer than what is read of it.
    #[error("what is remembered would have more than {FILE_BYTES} bytes")]
    TooLong,
}

impl MemoryError {
    /// What the user can do.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Nowhere => "this user has no data folder; set XDG_DATA_HOME",
            Self::Io { .. } => "see that its folder can be written and that it is your own file",
            Self::Broken { .. } => "remove the file; what was remembered is asked again then",
            Self::Full | Self::TooLong => {
                "`fimble policy revoke --all` forgets them; a rule in the configuration can stand for many"
            }
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: u32,
    approvals: Vec<Remembered>,
}

impl Memory {
    /// In this file, which need not be there.
    pub fn in_file(file: PathBuf) -> Self {
        Self { file: Some(file) }
    }

    /// Where it is kept, if anywhere.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// What is remembered, the oldest first.
    ///
    /// # Errors
    /// A file that cannot be read or understood.
    pub fn list(&self) -> Result<Vec<Remembered>, MemoryError> {
        let Some(path) = &self.file else { return Ok(Vec::new()) };
        let failed = |error| MemoryError::Io { file: path.clone(), error };
        let broken = |reason: String| MemoryError::Broken { file: path.clone(), reason };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut bytes = Vec::new();
        file.take(FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > FILE_BYTES {
            return Err(broken(format!("it has more than {FILE_BYTES} bytes")));
        }
        let written: Written = serde_json::from_slice(&bytes).map_err(|error| broken(error.to_string()))?;
        match written.version {
            VERSION => Ok(written.approvals),
            version => Err(broken(format!("its version is {version}, and {VERSION} is known"))),
        }
    }

    /// What allows this call, if something does; see [`Remembered::allows`].
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub fn find(&self, subject: &Subject<'_>, exactly: bool) -> Result<Option<Remembered>, MemoryError> {
        Ok(self.list()?.into_iter().find(|remembered| remembered.allows(subject, exactly)))
    }

    /// Remembers that calls like this one are allowed, within `arguments`. What is remembered already is not remembered twice.
    ///
    /// # Errors
    /// There is no file, or it cannot be read, understood or written, or it is full.
    pub fn remember(&self, subject: &Subject<'_>, arguments: Extent) -> Result<Remembered, MemoryError> {
        let new = Remembered {
            id: uuid::Uuid::new_v4().simple().to_string().chars().take(8).collect(),
            tenant: subject.tenant.to_owned(),
            user: subject.user.to_owned(),
            operation: format!("{}.{}", subject.toolkit, subject.operation),
            arguments,
            since: Timestamp::now(),
        };
        self.change(|approvals| {
            let same = |known: &&Remembered| {
                (&known.tenant, &known.user, &known.operation, &known.arguments)
                    == (&new.tenant, &new.user, &new.operation, &new.arguments)
            };
            if let Some(known) = approvals.iter().find(same) {
                return Ok(known.clone());
            }
            if approvals.len() >= MOST {
                return Err(MemoryError::Full);
            }
            approvals.push(new.clone());
            Ok(new)
        })
    }

    /// Forgets those that `revoked` is true of, and returns them.
    ///
    /// # Errors
    /// As [`remember`](Self::remember).
    pub fn revoke(&self, revoked: impl Fn(&Remembered) -> bool) -> Result<Vec<Remembered>, MemoryError> {
        self.change(|approvals| {
            let (gone, kept) = std::mem::take(approvals).into_iter().partition(|remembered| revoked(remembered));
            *approvals = kept;
            Ok(gone)
        })
    }

    /// Changes the list, alone among all processes; the file is the old one or the new one at any moment.
    fn change<T>(&self, change: impl FnOnce(&mut Vec<Remembered>) -> Result<T, MemoryError>) -> Result<T, MemoryError> {
        let path = self.file.as_ref().ok_or(MemoryError::Nowhere)?;
        let failed = |error| MemoryError::Io { file: path.clone(), error };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        // A file of its own: the other one is replaced.
        let lock = private().open(path.with_extension("lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut approvals = self.list()?;
        let before = approvals.clone();
        let result = change(&mut approvals)?;
        if approvals != before {
            let written = Written { version: VERSION, approvals };
            let text = serde_json::to_vec_pretty(&written)
                .map_err(|error| MemoryError::Broken { file: path.clone(), reason: error.to_string() })?;
            if text.len() as u64 > FILE_BYTES {
                return Err(MemoryError::TooLong);
            }
            let beside = path.with_extension("new");
            let mut file = private().truncate(true).open(&beside).map_err(failed)?;
            file.write_all(&text).and_then(|()| file.sync_all()).map_err(failed)?;
            std::fs::rename(&beside, path).map_err(failed)?;
        }
        Ok(result)
    }
}

/// For the user alone.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use fimble_toolkit::Risk;
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        let Value::Object(map) = value else { panic!("no object") };
        map
    }

    fn subject<'a>(arguments: &'a Map<String, Value>, tenant: &'a str) -> Subject<'a> {
        Subject {
            toolkit: "light_toolkit",
            operation: "switch",
            risk: Risk::Write,
            arguments,
            tenant,
            user: "ada",
            program: "",
            line: 0,
        }
    }

    #[test]
    fn what_would_make_the_file_too_long_to_be_read_is_not_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::in_file(folder.path().join("approvals.json"));
        let small = object(json!({"text": "x"}));
        memory.remember(&subject(&small, "local"), Extent::Exactly(small.clone())).unwrap();
        let (large, mut last) = ("x".repeat(1024 * 1024), None);
        for number in 0..4 {
            let arguments = object(json!({"text": large, "number": number}));
            last = Some(memory.remember(&subject(&arguments, "local"), Extent::Exactly(arguments.clone())));
        }
        assert!(matches!(last, Some(Err(MemoryError::TooLong))), "{last:?}");
        assert_eq!(memory.list().unwrap().len(), 4, "those before it are still known");
        assert!(memory.find(&subject(&small, "local"), true).unwrap().is_some());
    }

    #[test]
    fn what_is_remembered_holds_for_its_tenant_and_arguments_until_it_is_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::in_file(folder.path().join("data/approvals.json"));
        let (on, off) =
            (object(json!({"on": true, "place": "/a/b"})), object(json!({"on": false, "place": "/a/../c"})));
        assert_eq!(memory.list().unwrap(), []);
        let exact = memory.remember(&subject(&on, "local"), Extent::Exactly(on.clone())).unwrap();
        assert_eq!(memory.remember(&subject(&on, "local"), Extent::Exactly(on.clone())).unwrap(), exact);
        let found = |arguments, tenant, exactly| {
            memory.find(&subject(arguments, tenant), exactly).unwrap().map(|found| found.id)
        };
        assert_eq!(found(&on, "local", true), Some(exact.id.clone()));
        assert_eq!((found(&on, "other", false), found(&off, "local", false)), (None, None));

        let place = BTreeMap::from([("place".to_owned(), "/a/*".parse().unwrap())]);
        let matching = memory.remember(&subject(&on, "other"), Extent::Matching(place)).unwrap();
        assert_eq!(found(&on, "other", false), Some(matching.id));
        assert_eq!(
            (found(&on, "other", true), found(&off, "other", false)),
            (None, None),
            "only exactly, and no climbing"
        );

        let mode = std::fs::metadata(memory.file().unwrap()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(memory.revoke(|remembered| remembered.id == exact.id).unwrap(), [exact]);
        assert_eq!((found(&on, "local", true), memory.list().unwrap().len()), (None, 1));
    }

    #[test]
    fn processes_that_remember_at_once_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::in_file(folder.path().join("approvals.json"));
        std::thread::scope(|scope| {
            for number in 0..8 {
                let memory = &memory;
                scope.spawn(move || {
                    let arguments = object(json!({"number": number}));
                    memory.remember(&subject(&arguments, "local"), Extent::Exactly(arguments.clone())).unwrap();
                });
            }
        });
        assert_eq!(memory.list().unwrap().len(), 8);
    }

    #[test]
    fn a_file_that_is_broken_or_of_another_version_is_named_and_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("approvals.json");
        let memory = Memory::in_file(file.clone());
        for (text, reason) in
            [("{", "EOF"), ("{\"version\": 2, \"approvals\": []}", "its version is 2, and 1 is known")]
        {
            std::fs::write(&file, text).unwrap();
            let error = memory.list().unwrap_err().to_string();
            assert!(error.contains("approvals.json` cannot be understood: ") && error.contains(reason), "{error}");
            assert!(memory.revoke(|_| true).is_err());
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
    }
}
