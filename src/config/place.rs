//! Which store the settings name. It opens none.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Config, ConfigError, folders};
use crate::store::StoreError;
use crate::store::redis::{self, Address};

/// The name of a store, which may hold a password: it is shown and written out without it.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Place(String);

impl Place {
    /// The name as it was given.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The name as it may be shown.
    fn shown(&self) -> String {
        match Address::parse(&self.0) {
            Ok(address) => address.to_string(),
            Err(_) if self.0.contains("://") => "***".to_owned(),
            Err(_) => self.0.clone(),
        }
    }
}

impl std::fmt::Debug for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&self.shown(), formatter)
    }
}

impl Serialize for Place {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.shown())
    }
}

/// What the name of a store means.
#[derive(Debug, Clone)]
pub enum StorePlace {
    /// A file of SQLite.
    File(PathBuf),
    /// A Redis.
    Redis(Address, redis::Settings),
}

impl Config {
    /// What `store` and the settings beside it mean.
    ///
    /// # Errors
    /// A URL that is none of Redis, or a user without a home folder.
    pub fn store_place(&self) -> Result<StorePlace, ConfigError> {
        let refuse = |origin: &str, message: String| ConfigError { origin: origin.to_owned(), message };
        let name = self.store.reveal();
        if name.contains("://") {
            let address = Address::parse(name).map_err(|error| match error {
                StoreError::Unreachable { message, hint } => refuse("store", format!("{message}\n\nhint: {hint}")),
                error => refuse("store", error.to_string()),
            })?;
            let keep = self.store_keep_s.map(Duration::from_secs);
            let default = redis::Settings::default();
            let replicas_wait = self.store_replicas_ms.map_or(default.replicas_wait, Duration::from_millis);
            let settings = redis::Settings { keep, replicas: self.store_replicas, replicas_wait, ..default };
            return Ok(StorePlace::Redis(address, settings));
        }
        if !name.is_empty() {
            return Ok(StorePlace::File(PathBuf::from(name)));
        }
        Ok(StorePlace::File(data_folder()?.join("fimble.db")))
    }

    /// Where processes of this machine say in which session they are at work.
    ///
    /// # Errors
    /// As of [`store_place`](Self::store_place).
    pub fn locks_folder(&self) -> Result<PathBuf, ConfigError> {
        match self.store_place()? {
            StorePlace::File(file) => Ok(file.with_extension("locks")),
            StorePlace::Redis(..) => Ok(data_folder()?.join("redis.locks")),
        }
    }
}

/// The URL that many programs read; `None` if it is not set or empty.
pub(super) fn redis_url(environment: &[(OsString, OsString)]) -> Result<Option<String>, ConfigError> {
    let found = environment.iter().find(|(name, value)| name == "REDIS_URL" && !value.is_empty());
    match found.map(|(_, value)| value.to_str()) {
        None => Ok(None),
        Some(Some(url)) if redis::is_address(url) => Ok(Some(url.to_owned())),
        // Never taken for the name of a file.
        Some(_) => Err(ConfigError {
            origin: "the environment variable `REDIS_URL`".to_owned(),
            message: "it is no URL of Redis\n\nhint: correct it, or name the store with `-c store=…`".to_owned(),
        }),
    }
}

fn data_folder() -> Result<PathBuf, ConfigError> {
    folders().map(|folders| folders.data).ok_or_else(|| ConfigError {
        origin: "store".to_owned(),
        message: "this user has no home folder\n\nhint: name a file with `-c store=PATH`".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Sources;
    use super::*;

    #[test]
    fn a_store_is_a_file_or_a_redis_and_no_error_shows_a_password() {
        let of = |flags: &[&str]| {
            let flags = flags.iter().map(ToString::to_string).collect();
            Config::read(&Sources { flags, ..Sources::default() })?.store_place()
        };
        assert!(matches!(of(&["store=a/b.db"]), Ok(StorePlace::File(file)) if file == Path::new("a/b.db")));
        let redis = of(&["store=redis://u:secret@host:1", "store_keep_s=60"]);
        let keep = Some(Duration::from_secs(60));
        let Ok(StorePlace::Redis(address, settings)) = &redis else { panic!("{redis:?}") };
        assert_eq!(
            (address.to_string().as_str(), address.secrets(), settings.keep),
            ("redis://host:1", &["secret".to_owned()][..], keep)
        );
        for (flags, origin) in [
            (&["store=mysql://u:secret@host"][..], "store"),
            (&["store=redis://u:secret@host/x"], "store"),
            (&["store=redis://host", "store_keep_s=0"], "store_keep_s"),
            (&["store=redis://host", "store_replicas=1", "store_replicas_ms=0"], "store_replicas_ms"),
        ] {
            let error = of(flags).unwrap_err();
            assert!(error.origin == origin && !error.to_string().contains("secret"), "{error}");
            assert!(error.message.contains("\n\nhint: "), "{error}");
        }
    }
}
