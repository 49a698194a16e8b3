//! Named secrets: the file that holds them, and what else may. Settings name them; values are never shown.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::{Config, ConfigError, folders};

/// Where named secrets are kept, `[secrets]`. An environment variable of a secret's name comes before all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SecretPlaces {
    /// The file that `fimble secrets set` writes, which only you may read. Default:
    /// `$XDG_CONFIG_HOME/fimble/secrets.toml`.
    pub file: Option<PathBuf>,
    /// A program that prints a secret, as an argument vector in which `{name}` is its name: the way to a keyring, e.g.
    /// `["secret-tool", "lookup", "fimble", "{name}"]`. Default none.
    pub command: Vec<String>,
    /// The names that `command` is asked for, when toolkits are opened. Default none.
    pub names: Vec<String>,
    /// Seconds that `command` may take. Default 10.
    pub command_s: f64,
}

impl Default for SecretPlaces {
    fn default() -> Self {
        Self { file: None, command: Vec::new(), names: Vec::new(), command_s: 10.0 }
    }
}

/// Bytes that the file may have: 1 MiB.
const MOST_BYTES: u64 = 1024 * 1024;

/// Characters of a name.
const MOST_NAME: usize = 128;

/// True for ASCII letters, digits and `_`, no digit first: what an environment variable can be called too.
pub fn is_secret_name(name: &str) -> bool {
    let word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    !name.is_empty()
        && name.len() <= MOST_NAME
        && name.chars().all(word)
        && !name.starts_with(|first: char| first.is_ascii_digit())
}

impl Config {
    /// The file of secrets.
    ///
    /// # Errors
    /// A user without a home folder.
    pub fn secret_file(&self) -> Result<SecretFile, ConfigError> {
        let named = self.secrets.file.clone();
        let file = named.or_else(|| folders().map(|folders| folders.config.join("secrets.toml")));
        file.map(SecretFile).ok_or_else(|| ConfigError {
            origin: "secrets.file".to_owned(),
            message: "this user has no home folder\n\nhint: name a file with `-c secrets.file=PATH`".to_owned(),
        })
    }

    /// What the file of secrets holds, by name; nothing for a user without a home folder who names none.
    ///
    /// # Errors
    /// As of [`SecretFile::read`].
    pub fn kept_secrets(&self) -> Result<BTreeMap<String, String>, ConfigError> {
        self.secret_file().map_or_else(|_| Ok(BTreeMap::new()), |file| file.read())
    }

    /// The names of environment variables and secrets that the settings refer to. What manifests and files of MCP servers
    /// name is not among them.
    pub fn secret_names(&self) -> BTreeSet<String> {
        let toolkits = &self.toolkits;
        let documents = toolkits.openapi.iter().flat_map(super::OpenApi::secrets);
        let agents = toolkits.a2a.iter().flat_map(super::A2a::secrets);
        let http = toolkits.http.iter().flat_map(fimble_http::Config::variables).map(|(_, variable)| variable);
        let prometheus = toolkits.prometheus.token_env.iter();
        let kubernetes = toolkits.kubernetes.iter().filter_map(|kubernetes| kubernetes.token.as_ref());
        let listed = self.secrets.names.iter();
        documents.chain(agents).chain(prometheus).chain(kubernetes).chain(listed).cloned().chain(http).collect()
    }
}

/// A file of secrets: TOML, a name and a text a line, for the eyes of its owner.
#[derive(Debug, Clone)]
pub struct SecretFile(PathBuf);

impl SecretFile {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The values by name; empty if there is no file.
    ///
    /// # Errors
    /// A file that others may read or change, or that is no file of secrets. No error shows a value.
    pub fn read(&self) -> Result<BTreeMap<String, String>, ConfigError> {
        // What is checked is what is read, whatever the path means by then.
        let file = match OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&self.0) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(self.wrong(format!("it cannot be read: {error}"), "see that you may read it")),
        };
        self.check(&file)?;
        let mut text = String::new();
        file.take(MOST_BYTES + 1)
            .read_to_string(&mut text)
            .map_err(|error| self.wrong(format!("it cannot be read: {error}"), "it must be UTF-8 text"))?;
        if text.len() as u64 > MOST_BYTES {
            return Err(
                self.wrong(format!("it has more than {MOST_BYTES} bytes"), "keep fewer or shorter secrets in it")
            );
        }
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            self.wrong(
                format!("line {line} is no `NAME = \"value\"`"),
                "correct it; `fimble secrets set NAME` writes it right",
            )
        })?;
        let mut values = BTreeMap::new();
        for (name, value) in table {
            if !is_secret_name(&name) {
                return Err(self.wrong("a name in it is none".to_owned(), NAMES));
            }
            let Value::String(value) = value else {
                return Err(self.wrong(format!("`{name}` is no text"), "write its value in quotes"));
            };
            values.insert(name, value);
        }
        Ok(values)
    }

    /// Keeps `value` under `name`; true if there was one of that name.
    ///
    /// # Errors
    /// As of [`read`](Self::read); a name that is none, or an empty value; a file that cannot be written.
    pub fn set(&self, name: &str, value: String) -> Result<bool, ConfigError> {
        if !is_secret_name(name) {
            return Err(ConfigError {
                origin: format!("the secret `{name}`"),
                message: format!("it has no plain name\n\nhint: {NAMES}"),
            });
        }
        if value.is_empty() {
            let message = "its value is empty\n\nhint: give it on standard input".to_owned();
            return Err(ConfigError { origin: format!("the secret `{name}`"), message });
        }
        let _lock = self.lock()?;
        let mut values = self.read()?;
        let before = values.insert(name.to_owned(), value);
        self.write(values)?;
        Ok(before.is_some())
    }

    /// Forgets a secret; false if there was none of that name.
    ///
    /// # Errors
    /// As of [`set`](Self::set).
    pub fn remove(&self, name: &str) -> Result<bool, ConfigError> {
        let _lock = self.lock()?;
        let mut values = self.read()?;
        if values.remove(name).is_none() {
            return Ok(false);
        }
        self.write(values)?;
        Ok(true)
    }

    fn check(&self, file: &File) -> Result<(), ConfigError> {
        let metadata = file.metadata().map_err(|error| self.unwritable(&error))?;
        let (mode, path) = (metadata.mode() & 0o7777, self.0.display());
        if !metadata.is_file() {
            return Err(self.wrong("it is no file".to_owned(), "name a file in `secrets.file`"));
        }
        if metadata.uid() != nix::unistd::geteuid().as_raw() {
            return Err(self.wrong(
                "it belongs to another user".to_owned(),
                "take it over, or name a file of your own in `secrets.file`",
            ));
        }
        if mode & 0o077 != 0 {
            let message = format!("others may read or change it (mode {mode:04o}), so no secret is taken from it");
            return Err(self.wrong(message, &format!("chmod 600 '{path}', and replace what others may have read")));
        }
        Ok(())
    }

    /// Held while the file is changed.
    fn lock(&self) -> Result<File, ConfigError> {
        let folder = self.0.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| self.unwritable(&error))?;
        let path = self.beside("lock");
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
        let locked = file.and_then(|file| file.lock().map(|()| file));
        locked.map_err(|error| self.unwritable(&error))
    }

    /// Under its name only when it is whole.
    fn write(&self, values: BTreeMap<String, String>) -> Result<(), ConfigError> {
        let table: Table = values.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
        let text = table.to_string();
        if text.len() as u64 > MOST_BYTES {
            return Err(self
                .wrong(format!("it would have more than {MOST_BYTES} bytes"), "keep fewer or shorter secrets in it"));
        }
        let partial = self.beside("partial");
        let write = || {
            match std::fs::remove_file(&partial) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            // A link stays a link.
            let place = std::fs::canonicalize(&self.0).unwrap_or_else(|_| self.0.clone());
            std::fs::rename(&partial, place)
        };
        write().map_err(|error| self.unwritable(&error))
    }

    fn beside(&self, extension: &str) -> PathBuf {
        let mut name = self.0.as_os_str().to_owned();
        name.push(".");
        name.push(extension);
        PathBuf::from(name)
    }

    fn unwritable(&self, error: &std::io::Error) -> ConfigError {
        self.wrong(format!("it cannot be written: {error}"), "see that you may write in its folder")
    }

    fn wrong(&self, message: String, hint: &str) -> ConfigError {
        ConfigError {
            origin: format!("the file of secrets `{}`", self.0.display()),
            message: format!("{message}\n\nhint: {hint}"),
        }
    }
}

/// What names are.
const NAMES: &str = "names are ASCII letters, digits and `_`, no digit first, at most 128";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use proptest::prelude::*;

    use super::*;

    fn file() -> (tempfile::TempDir, SecretFile) {
        let folder = tempfile::tempdir().unwrap();
        let file = SecretFile(folder.path().join("config/secrets.toml"));
        (folder, file)
    }

    #[test]
    fn what_is_set_is_read_by_its_owner_alone() {
        let (_folder, file) = file();
        assert_eq!(file.read().unwrap(), BTreeMap::new());
        assert!(!file.set("TOKEN", "one\ntwo \"three\"".to_owned()).unwrap());
        assert!(file.set("TOKEN", "other".to_owned()).unwrap());
        file.set("KEY", "value".to_owned()).unwrap();
        let mode = std::fs::metadata(file.path()).unwrap().mode() & 0o7777;
        let kept = [("KEY", "value"), ("TOKEN", "other")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!((mode, file.read().unwrap()), (0o600, kept.into()));
        assert_eq!((file.remove("KEY").unwrap(), file.remove("KEY").unwrap()), (true, false));
        assert_eq!(file.read().unwrap().into_keys().collect::<Vec<_>>(), ["TOKEN"]);
    }

    #[test]
    fn a_file_that_others_may_read_is_refused_whole() {
        let (_folder, file) = file();
        file.set("TOKEN", "hunter22".to_owned()).unwrap();
        for mode in [0o604, 0o640, 0o622, 0o601] {
            std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            for error in [file.read().unwrap_err(), file.set("OTHER", "value".to_owned()).unwrap_err()] {
                let text = error.to_string();
                assert!(text.contains(&format!("others may read or change it (mode {mode:04o})")), "{text}");
                assert!(text.contains("\n\nhint: chmod 600 ") && !text.contains("hunter22"), "{text}");
            }
        }
    }

    #[test]
    fn no_error_shows_a_value() {
        let (_folder, file) = file();
        file.set("TOKEN", "value".to_owned()).unwrap();
        for (text, expected) in [
            ("TOKEN = hunter22", "line 1 is no `NAME = \"value\"`"),
            ("A = \"b\"\nhunter22", "line 2 is no `NAME = \"value\"`"),
            ("[TOKEN]\na = \"hunter22\"", "`TOKEN` is no text"),
            ("\"hunter22 \" = \"b\"", "a name in it is none"),
            ("TOKEN = [\"hunter22\"]", "`TOKEN` is no text"),
        ] {
            std::fs::write(file.path(), text).unwrap();
            let error = file.read().unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains("hunter22"), "{error}");
        }
        for name in ["", "1A", "A B", "Ä", "a-b", &"A".repeat(129)] {
            assert!(file.set(name, "value".to_owned()).unwrap_err().to_string().contains("hint: names are"), "{name}");
        }
        assert!(file.set("A", String::new()).unwrap_err().to_string().contains("its value is empty"));
    }

    proptest! {
        #[test]
        fn any_value_comes_back_and_any_file_is_read_without_harm(value in "\\PC{1,40}|(?s).{1,40}", bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let (_folder, file) = file();
            file.set("VALUE", value.clone()).unwrap();
            prop_assert_eq!(file.read().unwrap().remove("VALUE"), Some(value));
            std::fs::write(file.path(), bytes).unwrap();
            let _ = file.read();
        }
    }
}
