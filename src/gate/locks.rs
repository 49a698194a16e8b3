//! Resources that one call at a time may change, in all sessions of this process and all processes of this user on this
//! machine. It does not know what the resources are.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use fimble_toolkit::ToolError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::Instant;

use super::glob;

/// Which resource a call changes, `[[gate.locks]]` in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceLock {
    /// Which operations, as in `systemd_toolkit.start|systemd_toolkit.stop`.
    pub operations: String,
    /// The resource, in which `{name}` is the value of that argument, as in `service/{unit}`.
    pub resource: String,
}

impl ResourceLock {
    /// What the shipped toolkits need: one change of a service or of nginx at a time.
    pub fn shipped() -> Vec<Self> {
        let lock = |operations: &str, resource: &str| Self {
            operations: operations.to_owned(),
            resource: resource.to_owned(),
        };
        vec![
            lock(
                "systemd_toolkit.start|systemd_toolkit.stop|systemd_toolkit.restart|systemd_toolkit.reload",
                "service/{unit}",
            ),
            lock("nginx_toolkit.reload", "service/nginx"),
            lock("nginx_toolkit.reload", "service/nginx.service"),
        ]
    }

    /// The resource of a call with these arguments.
    fn of(&self, arguments: &Map<String, Value>) -> String {
        let (mut resource, mut rest) = (String::new(), self.resource.as_str());
        while let Some((before, (name, after))) =
            rest.split_once('{').and_then(|(before, behind)| Some((before, behind.split_once('}')?)))
        {
            resource.push_str(before);
            match arguments.get(name) {
                Some(Value::String(text)) => resource.push_str(text),
                Some(value) => resource.push_str(&value.to_string()),
                None => {}
            }
            rest = after;
        }
        resource + rest
    }
}

/// Resources share so many places, so that names that a program makes up do not add up. Two in one place wait for each other.
const PLACES: u32 = 4_096;

/// How often a lock that another process has is tried: the system tells nobody when it is free.
const EVERY: Duration = Duration::from_millis(25);

/// Characters of a resource's name that a message shows.
const SHOWN: usize = 100;

static HERE: LazyLock<Vec<Arc<Mutex<()>>>> = LazyLock::new(|| (0..PLACES).map(|_| Arc::default()).collect());

/// The locks of one gate.
#[derive(Debug, Default)]
pub(super) struct Locks {
    locks: Vec<ResourceLock>,
    wait: Duration,
    /// Where processes of this machine meet; `None` if they need not.
    folder: Option<PathBuf>,
}

/// A call's hold on its resources, until this is dropped.
#[derive(Debug, Default)]
pub(super) struct Held {
    // In this order: nobody here may find the file locked by us.
    _files: Vec<File>,
    here: Vec<OwnedMutexGuard<()>>,
}

impl Held {
    /// True if the call changes nothing that others may want.
    pub fn is_empty(&self) -> bool {
        self.here.is_empty()
    }
}

impl Locks {
    /// `wait` is how long a call waits at most for all its resources together.
    pub fn new(locks: Vec<ResourceLock>, wait: Duration, folder: Option<PathBuf>) -> Self {
        Self { locks, wait, folder }
    }

    /// Takes the resources of a call.
    ///
    /// # Errors
    /// Another call has one for too long, or the folder of locks cannot be used: the call must not be made.
    pub async fn take(&self, called: &str, arguments: &Map<String, Value>) -> Result<Held, ToolError> {
        let own = self.locks.iter().filter(|lock| glob::matches(&lock.operations, called));
        // All take them in one order, so that no two wait for each other.
        let wanted: BTreeSet<(u32, String)> =
            own.map(|lock| lock.of(arguments)).map(|name| (place(&name), name)).collect();
        let mut held = Held::default();
        let until = Instant::now() + self.wait;
        let mut last = None;
        for (place, name) in wanted {
            if last.replace(place) == Some(place) {
                continue;
            }
            let busy = || {
                let (name, seconds) = (name.chars().take(SHOWN).collect::<String>(), self.wait.as_secs_f64());
                ToolError::unavailable(format!(
                    "{called} was not called: another call has had `{name}` for {seconds} s"
                ))
                .with_hint("do something else first, or tell the user")
            };
            let Some(mutex) = HERE.get(place as usize) else { continue };
            let here = tokio::time::timeout_at(until, Arc::clone(mutex).lock_owned()).await.map_err(|_| busy())?;
            held.here.push(here);
            if let Some(folder) = &self.folder {
                let file = open(folder, place).map_err(|error| unusable(called, folder, &error))?;
                loop {
                    match file.try_lock() {
                        Ok(()) => break,
                        Err(TryLockError::WouldBlock) if Instant::now() >= until => return Err(busy()),
                        Err(TryLockError::WouldBlock) => tokio::time::sleep(EVERY).await,
                        Err(TryLockError::Error(error)) => return Err(unusable(called, folder, &error)),
                    }
                }
                held._files.push(file);
            }
        }
        Ok(held)
    }
}

fn place(name: &str) -> u32 {
    let hash = Sha256::digest(name);
    u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]) % PLACES
}

fn open(folder: &Path, place: u32) -> std::io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(folder.join(place.to_string()))
}

fn unusable(called: &str, folder: &Path, error: &std::io::Error) -> ToolError {
    ToolError::unavailable(format!(
        "{called} was not called: the folder of locks `{}` cannot be used: {error}",
        folder.display()
    ))
    .with_hint("tell the user to correct `gate.lock_folder`")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn arguments(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    fn locks(wait: f64, folder: Option<&Path>) -> Locks {
        Locks::new(ResourceLock::shipped(), Duration::from_secs_f64(wait), folder.map(Path::to_owned))
    }

    #[tokio::test]
    async fn one_change_of_a_service_at_a_time() {
        let (one, two) = (arguments(json!({"unit": "one.service"})), arguments(json!({"unit": "two.service"})));
        let first = locks(20.0, None).take("systemd_toolkit.restart", &one).await.unwrap();
        let busy = locks(0.05, None).take("systemd_toolkit.stop", &one).await.unwrap_err().to_string();
        let expected = "systemd_toolkit.stop was not called: another call has had `service/one.service` for 0.05 s (hint: do \
                        something else first, or tell the user)";
        assert_eq!(busy, expected);
        locks(0.05, None).take("systemd_toolkit.stop", &two).await.unwrap();
        locks(0.05, None).take("systemd_toolkit.status", &one).await.unwrap();
        let (next, ()) =
            tokio::join!(async { locks(20.0, None).take("systemd_toolkit.start", &one).await }, async { drop(first) });
        drop(next.unwrap());
    }

    #[tokio::test]
    async fn another_process_that_has_a_resource_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let unit = arguments(json!({"unit": "elsewhere.service"}));
        let theirs = open(folder.path(), place("service/elsewhere.service")).unwrap();
        theirs.try_lock().unwrap();
        let busy = locks(0.05, Some(folder.path())).take("systemd_toolkit.stop", &unit).await.unwrap_err().to_string();
        assert!(busy.contains("another call has had `service/elsewhere.service`"), "{busy}");
        drop(theirs);
        locks(20.0, Some(folder.path())).take("systemd_toolkit.stop", &unit).await.unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let unusable = locks(0.05, Some(&file)).take("systemd_toolkit.stop", &unit).await.unwrap_err().to_string();
        assert!(unusable.contains("the folder of locks"), "{unusable}");
    }

    #[tokio::test]
    async fn calls_that_need_the_same_resources_in_any_order_do_not_wait_for_each_other_for_ever() {
        let lock = |resource: &str| ResourceLock { operations: "*".to_owned(), resource: resource.to_owned() };
        let (one, other) =
            (vec![lock("a-left"), lock("a-right")], vec![lock("a-right"), lock("a-left"), lock("a-left")]);
        let (one, other) =
            (Locks::new(one, Duration::from_secs(20), None), Locks::new(other, Duration::from_secs(20), None));
        for _ in 0..50 {
            let nothing = Map::new();
            let (first, second) = tokio::join!(async { one.take("x", &nothing).await.map(drop) }, async {
                other.take("x", &nothing).await.map(drop)
            });
            first.and(second).unwrap();
        }
    }

    proptest! {
        #[test]
        fn any_template_and_argument_names_a_resource(template in "[{}a/]{0,12}", value in any::<String>()) {
            let lock = ResourceLock { operations: "*".to_owned(), resource: template };
            let name = lock.of(&arguments(json!({"a": value, "": [1]})));
            prop_assert!(place(&name) < PLACES);
        }

        #[test]
        fn an_argument_stands_where_its_name_does(value in "[^{}]*", number in any::<u32>()) {
            let lock = ResourceLock { operations: "*".to_owned(), resource: "x/{a}/{b}/{none}/y".to_owned() };
            prop_assert_eq!(lock.of(&arguments(json!({"a": value, "b": number}))), format!("x/{value}/{number}//y"));
        }
    }
}
