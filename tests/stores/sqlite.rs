//! SQLite: the contract, and what only a file can promise.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use fimble::record::SessionRecord;
use fimble::store::packing::hexadecimal;
use fimble::store::sqlite::{Sqlite, VERSION};
use fimble::store::upkeep::Upkeep;
use fimble::store::{RoundCommit, Store, StoreError};
use rusqlite::Connection;
use sha2::{Digest, Sha256};

use crate::contract::Place;
use crate::examples::{call, commit, event, round, segment, session, written};

struct File {
    folder: tempfile::TempDir,
}

impl File {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("data/fimble.db")
    }

    fn raw(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }
}

impl Place for File {
    async fn open(&self) -> Arc<dyn Upkeep> {
        Arc::new(Sqlite::open(self.path()).unwrap())
    }

    async fn contents_stored(&self) -> u64 {
        u64::try_from(self.raw().query_row("SELECT count(*) FROM contents", (), |row| row.get::<_, i64>(0)).unwrap())
            .unwrap()
    }

    fn shares_contents(&self) -> bool {
        true
    }
}

mod on_disk {
    use crate::contract_tests;

    crate::contract_names!(contract_tests!(super::File::new()));
}

/// Plays both parts: the parent starts this very test again as the process that is killed.
#[tokio::test]
async fn a_requested_call_outlives_its_process() {
    const FILE: &str = "FIMBLE_TEST_KILLED_STORE";
    if let Some(path) = std::env::var_os(FILE) {
        let store = Sqlite::open(path).unwrap();
        store.create_session(&session("s")).await.unwrap();
        store.open_round("s", &round(1)).await.unwrap();
        store.request_call("s", 1, &call("k", 0)).await.unwrap();
        println!("acknowledged");
        std::future::pending::<()>().await;
    }
    let file = File::new();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "sqlite::a_requested_call_outlives_its_process"])
        .env(FILE, file.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let acknowledged = lines.any(|line| line.unwrap().ends_with("acknowledged"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(acknowledged);
    let store = file.open().await;
    assert_eq!(store.session("s").await.unwrap(), Some(SessionRecord { rounds: 1, ..session("s") }));
    assert_eq!(store.rounds("s", 0).await.unwrap(), [round(1)]);
    assert_eq!(store.calls("s", 1).await.unwrap(), [call("k", 0)]);
}

#[tokio::test]
async fn clones_of_a_store_in_memory_share_it() {
    let store = Sqlite::in_memory().unwrap();
    store.clone().create_session(&session("s")).await.unwrap();
    assert_eq!(store.session("s").await.unwrap(), Some(session("s")));
    assert_eq!(Sqlite::in_memory().unwrap().session("s").await.unwrap(), None);
}

#[tokio::test]
async fn a_damaged_row_is_corrupt_and_says_which() {
    let file = File::new();
    let store = file.open().await;
    store.create_session(&session("s")).await.unwrap();
    store.open_round("s", &round(1)).await.unwrap();
    store.request_call("s", 1, &call("k", 0)).await.unwrap();
    let commit = RoundCommit {
        session: SessionRecord { segments: 1, events: 1, ..commit(&session("s"), 1).session },
        written: vec![written("x", 1, "1")],
        segments: vec![segment(1)],
        events: vec![event("s", 1)],
        ..commit(&session("s"), 1)
    };
    store.commit_round(&commit).await.unwrap();
    let damages = [
        ("segment", "UPDATE segments SET content = x'07'"),
        ("segment", "UPDATE segments SET kind = 'Scream'"),
        ("segment", "UPDATE segments SET tokens = -1"),
        ("segment", "UPDATE segments SET at = 9223372036854775807, content = x''"),
        ("event", "UPDATE events SET record = x'007b7d'"),
        ("event", "UPDATE events SET seq = 9"),
        ("round", "UPDATE rounds SET record = x'01020304'"),
        ("call", "UPDATE calls SET record = x'00ff'"),
        ("variable", "UPDATE contents SET content = CAST(x'00' || '2' AS BLOB)"),
        ("variable", "UPDATE versions SET uses = '[1]'"),
        ("variable", "UPDATE versions SET kind = NULL"),
        ("session", "UPDATE sessions SET status = 'asleep'"),
        ("session", "UPDATE sessions SET segments = -1"),
        ("session", "UPDATE sessions SET title = CAST(x'ff' AS TEXT)"),
    ];
    for (what, damage) in damages {
        let raw = file.raw();
        raw.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
        let backup = file.folder.path().join("backup.db");
        raw.execute("VACUUM INTO ?1", [backup.to_str().unwrap()]).unwrap();
        let damaged = Connection::open(&backup).unwrap();
        damaged.execute_batch(&format!("PRAGMA foreign_keys = OFF; {damage}")).unwrap();
        drop(damaged);
        let store = Sqlite::open(&backup).unwrap();
        let read = match what {
            "segment" => store.segments("s", 0, u32::MAX).await.map(drop),
            "event" => store.events("s", 0, 10).await.map(drop),
            "round" => store.rounds("s", 0).await.map(drop),
            "call" => store.calls("s", 1).await.map(drop),
            "variable" => store.contents("s", &["x".into()]).await.map(drop),
            _ => store.session("s").await.map(drop),
        };
        assert!(matches!(&read, Err(StoreError::Corrupt { what: said, .. }) if *said == what), "{damage}: {read:?}");
        drop(store);
        std::fs::remove_file(&backup).unwrap();
    }
}

#[tokio::test]
async fn a_swept_file_is_shorter_while_others_have_it_open() {
    let file = File::new();
    let (store, other) = (file.open().await, file.open().await);
    for id in ["s", "t"] {
        store.create_session(&session(id)).await.unwrap();
        store.open_round(id, &round(1)).await.unwrap();
        // Not the same in both, and not much shorter when it is compressed.
        let content: String = (0..100_000).map(|number| format!("{id}{:x}", number * 7_919)).collect();
        let commit = RoundCommit { written: vec![written("x", 1, &content)], ..commit(&session(id), 1) };
        store.commit_round(&commit).await.unwrap();
    }
    // What an older program may have left.
    file.raw().execute("INSERT INTO contents VALUES (zeroblob(32), zeroblob(9999))", ()).unwrap();
    store.delete_session("t").await.unwrap();
    let before = store.statistics().await.unwrap();
    assert!(before.free_bytes > 100_000 && before.unused == 1, "{before:?}");
    let dry = store.sweep(true).await.unwrap();
    assert_eq!((dry.contents, dry.content_bytes, dry.file_bytes), (1, 9_999, before.free_bytes));
    assert_eq!(store.statistics().await.unwrap(), before);
    let swept = store.sweep(false).await.unwrap();
    assert!(swept.contents == 1 && swept.file_bytes >= before.free_bytes, "{swept:?} {before:?}");
    let after = store.statistics().await.unwrap();
    assert_eq!((after.bytes, after.free_bytes, after.unused), (before.bytes - swept.file_bytes, 0, 0));
    assert_eq!(std::fs::metadata(file.path()).unwrap().len(), after.bytes);
    assert_eq!(other.contents("s", &["x".into()]).await.unwrap().len(), 1);
    other.open_round("s", &round(2)).await.unwrap();
    assert_eq!(store.sweep(false).await.unwrap(), Default::default());
}

/// Every file of the folder with the hash of its bytes.
fn bytes(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), hexadecimal(&Sha256::digest(std::fs::read(path).unwrap()))))
        .collect();
    files.sort();
    files
}

#[test]
fn a_newer_file_is_refused_untouched() {
    let file = File::new();
    let _open = Sqlite::open(file.path()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("newer.db");
    file.raw().execute("VACUUM INTO ?1", [path.to_str().unwrap()]).unwrap();
    let newer = VERSION + 1;
    let refuse = || {
        let before = bytes(folder.path());
        let refused = Sqlite::open(&path).err();
        assert!(
            matches!(refused, Some(StoreError::TooNew { found, supported: VERSION }) if found == newer),
            "{refused:?}"
        );
        let after = bytes(folder.path());
        // The index of the log is no part of the data: whoever reads takes a lock in it.
        let data = |files: Vec<(PathBuf, String)>| {
            files.into_iter().filter(|(path, _)| !path.ends_with("newer.db-shm")).collect::<Vec<_>>()
        };
        assert_eq!(data(after), data(before));
    };
    let raw = Connection::open(&path).unwrap();
    raw.execute_batch(&format!("PRAGMA journal_mode = WAL; PRAGMA user_version = {newer}")).unwrap();
    refuse();
    drop(raw);
    refuse();
    assert_eq!(bytes(folder.path()).len(), 1, "nothing was left beside the file");
}

#[tokio::test]
async fn a_file_that_a_newer_program_changed_meanwhile_takes_no_write() {
    let file = File::new();
    let store = file.open().await;
    file.raw().execute_batch(&format!("PRAGMA user_version = {}", VERSION + 1)).unwrap();
    let refused = store.create_session(&session("s")).await;
    assert!(matches!(refused, Err(StoreError::TooNew { .. })), "{refused:?}");
    assert_eq!(file.raw().query_row("SELECT count(*) FROM sessions", (), |row| row.get::<_, u32>(0)).unwrap(), 0);
}

#[test]
fn what_cannot_be_a_store_is_unreachable_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "not a database, but a text that is longer than a header".repeat(9)).unwrap();
    let foreign = folder.path().join("foreign.db");
    Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE mail (body TEXT)").unwrap();
    let before = bytes(folder.path());
    for path in
        [text.clone(), foreign, folder.path().to_owned(), text.join("below/a/file.db"), "/proc/fimble.db".into()]
    {
        let refused = Sqlite::open(&path).err();
        let Some(StoreError::Unreachable { message, hint }) = &refused else { panic!("{path:?}: {refused:?}") };
        assert!(message.contains(path.to_str().unwrap()) && hint.contains("store = "), "{message} {hint}");
    }
    assert_eq!(bytes(folder.path()), before);
}

#[test]
fn files_and_folders_are_the_owners_alone() {
    let file = File::new();
    let store = Sqlite::open(file.path()).unwrap();
    let folder = file.path().parent().unwrap().to_owned();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let modes: Vec<_> = bytes(&folder).into_iter().map(|(path, _)| mode(&path)).collect();
    assert_eq!(modes, [0o600; 3]);
    drop(store);
}

#[test]
fn an_empty_file_becomes_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.db");
    std::fs::write(&path, "").unwrap();
    drop(Sqlite::open(&path).unwrap());
    assert!(std::fs::metadata(&path).unwrap().len() > 0);
}

#[test]
fn processes_that_create_the_file_at_once_all_open_it() {
    let file = File::new();
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..8).map(|_| scope.spawn(|| Sqlite::open(file.path()).map(drop))).collect();
        for handle in handles {
            handle.join().unwrap().unwrap();
        }
    });
}
