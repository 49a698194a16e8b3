//! Files that an older Fimble has written.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use fimble::store::sqlite::{Sqlite, VERSION};
use fimble::store::upkeep::Upkeep;
use rusqlite::Connection;

use crate::branches::three_rounds;
use crate::contract::{Place, everything};

/// What the first Fimble made.
const FIRST: &str = include_str!("../../src/store/sqlite/schema/1.sql");

/// `Fmbl`.
const APPLICATION_ID: i32 = 0x466d_626c;

struct File(PathBuf);

impl Place for File {
    async fn open(&self) -> Arc<dyn Upkeep> {
        Arc::new(Sqlite::open(&self.0).unwrap())
    }

    async fn contents_stored(&self) -> u64 {
        let raw = Connection::open(&self.0).unwrap();
        u64::from(raw.query_row("SELECT count(*) FROM contents", (), |row| row.get::<_, u32>(0)).unwrap())
    }

    fn shares_contents(&self) -> bool {
        true
    }
}

/// A file of version 1 with what the file `filled` has.
fn first_version(file: &Path, filled: &Path) {
    let raw = Connection::open(file).unwrap();
    raw.execute_batch(FIRST).unwrap();
    raw.execute("ATTACH ?1 AS filled", [filled.to_str().unwrap()]).unwrap();
    raw.execute_batch(
        "INSERT INTO sessions SELECT key, id, tenant, user, title, status, created_at, updated_at, rounds, segments, events
             FROM filled.sessions",
    )
    .unwrap();
    // In an order in which whatever a row refers to is there.
    for table in ["segments", "events", "rounds", "calls", "contents", "versions", "variables"] {
        let copied = raw.execute(&format!("INSERT INTO {table} SELECT * FROM filled.{table}"), ()).unwrap();
        assert!(copied > 0, "{table}");
    }
    raw.execute_batch(&format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 1")).unwrap();
}

fn version(file: &Path) -> u32 {
    Connection::open(file).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn a_file_of_the_first_version_is_brought_up_to_date_with_all_that_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let (new, old) = (File(folder.path().join("new.db")), File(folder.path().join("old.db")));
    three_rounds(&new).await;
    first_version(&old.0, &new.0);
    assert_eq!(version(&old.0), 1);
    assert_eq!(everything(&old, "s").await, everything(&new, "s").await);
    assert_eq!((version(&old.0), old.contents_stored().await), (VERSION, new.contents_stored().await));
    // What came with the new version can be written.
    let (store, record) = (old.open().await, old.open().await.session("s").await.unwrap().unwrap());
    let record = fimble::record::SessionRecord { turn: Some("under way".into()), ..record };
    store.append(&record, &[], &[]).await.unwrap();
    assert_eq!(store.session("s").await.unwrap(), Some(record));
}

#[tokio::test]
async fn two_processes_bring_a_file_up_to_date_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let new = File(folder.path().join("new.db"));
    three_rounds(&new).await;
    for number in 0..5 {
        let old = File(folder.path().join(format!("{number}.db")));
        first_version(&old.0, &new.0);
        let list = || {
            Command::new(env!("CARGO_BIN_EXE_fimble"))
                .current_dir(folder.path())
                .args(["-c", &format!("store={}", old.0.display()), "store", "stats"])
                .env("XDG_CONFIG_HOME", folder.path())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        };
        for process in [list(), list(), list()] {
            let output = process.wait_with_output().unwrap();
            assert!(output.status.success(), "{output:?}");
            assert!(String::from_utf8(output.stdout).unwrap().contains("schema     2\n"));
        }
        assert_eq!(everything(&old, "s").await, everything(&new, "s").await);
    }
}
