//! Opens a database file: who may read it, which version its tables have, and what brings it up to date. It does not
//! know what the tables are used for.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::rows::failed;
use crate::store::StoreError;

/// How long a write waits for another process that holds the database. 5 s.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Each entry brings the tables from the version of its index to the next. Entries are appended, never edited: a file
/// in the world may have been written by any prefix of the list.
const MIGRATIONS: &[&str] = &[include_str!("schema/1.sql"), include_str!("schema/2.sql")];

/// The schema version that this program reads and writes.
#[expect(clippy::cast_possible_truncation, reason = "the list has a handful of entries")]
pub const VERSION: u32 = MIGRATIONS.len() as u32;

/// `Fmbl`: marks the file as ours, so that no other program's database is ever written to.
const APPLICATION_ID: i32 = 0x466d_626c;

/// The size in bytes to which the write-ahead log is cut after a checkpoint.
const LOG_LIMIT: i64 = 64 * 1024 * 1024;

/// KiB of pages that a connection keeps in memory at most. 8 MiB: the inner pages of the indexes of a large store.
const CACHE_KIB: i64 = 8 * 1024;

/// Pages in the write-ahead log after which it is brought into the file. 16 MiB: some hundred rounds.
const CHECKPOINT_PAGES: i64 = 4_096;

/// Makes sure that the file can be used: creates it with mode 0600, and the folders that are missing above it with
/// mode 0700, and brings its tables up to date.
///
/// # Errors
/// `TooNew` for a file of a newer Fimble and `Unreachable` for one of another program; neither is touched.
pub fn prepare(path: &Path) -> Result<(), StoreError> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| {
            let folder = folder.display();
            unreachable(path, format!("the folder `{folder}` cannot be created: {error}"))
        })?;
    }
    match std::fs::metadata(path) {
        Ok(file) if file.len() > 0 => inspect(path)?,
        // An empty file is a database without tables.
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => create(path)?,
        Err(error) => return Err(unreachable(path, error)),
    }
    let mut connection = connect(path)?;
    enter_log_mode(path, &connection)?;
    migrate(&mut connection).map_err(|error| match error {
        StoreError::Failed(message) => unreachable(path, message),
        error => error,
    })
}

/// A connection to a file that [`prepare`] accepted.
///
/// # Errors
/// `Unreachable`.
pub fn connect(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| unreachable(path, error))?;
    configure(&connection).map_err(|error| unreachable(path, error))?;
    Ok(connection)
}

/// A database that ends with its connection.
///
/// # Errors
/// `Unreachable` if there is no memory for it.
pub fn in_memory() -> Result<Connection, StoreError> {
    let path = Path::new(":memory:");
    let mut connection = Connection::open_in_memory().map_err(|error| unreachable(path, error))?;
    configure(&connection).map_err(|error| unreachable(path, error))?;
    migrate(&mut connection)?;
    Ok(connection)
}

/// Refuses a database that was changed by a newer Fimble while this one had it open.
///
/// # Errors
/// `TooNew`.
pub fn check_version(connection: &Connection) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached("PRAGMA user_version").map_err(failed("schema version"))?;
    let found = statement.query_row((), |row| row.get(0)).map_err(failed("schema version"))?;
    if found == VERSION { Ok(()) } else { Err(StoreError::TooNew { found, supported: VERSION }) }
}

fn create(path: &Path) -> Result<(), StoreError> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        // Another process was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(unreachable(path, error)),
    }
}

/// Looks at an existing file without writing to it.
fn inspect(path: &Path) -> Result<(), StoreError> {
    let (version, application, tables) = match read_header(path)? {
        // Even a reader leaves files beside a database in log mode; where there is no log the header says it all.
        (version, APPLICATION_ID) if !has_log(path) => (version, APPLICATION_ID, 1),
        _ => read_pragmas(path).map_err(|error| unreachable(path, error))?,
    };
    match (application == APPLICATION_ID, version) {
        (true, version) if version > VERSION => Err(StoreError::TooNew { found: version, supported: VERSION }),
        (true, _) => Ok(()),
        // Another process has made the file and is about to make its tables.
        (false, _) if tables == 0 => Ok(()),
        (false, _) => Err(unreachable(path, "it is the database of another program")),
    }
}

/// Schema version and application of the file format's header, <https://www.sqlite.org/fileformat.html#the_database_header>.
fn read_header(path: &Path) -> Result<(u32, i32), StoreError> {
    let mut header = [0; 72];
    File::open(path).and_then(|mut file| file.read_exact(&mut header)).map_err(|error| unreachable(path, error))?;
    let (magic, fields) = header.split_at(16);
    if magic != b"SQLite format 3\0" {
        return Err(unreachable(path, "it is not a database"));
    }
    let field = |at: usize| fields[at - 16..at - 12].iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    Ok((field(60), field(68).cast_signed()))
}

fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).is_ok_and(|log| log.len() > 0)
}

/// Schema version, application and number of tables, what is still in the log included.
fn read_pragmas(path: &Path) -> rusqlite::Result<(u32, i32, u32)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.query_row(
        "SELECT user_version, application_id, (SELECT count(*) FROM sqlite_schema)
         FROM pragma_user_version, pragma_application_id",
        (),
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // What a statement may have to take back is small: it needs no file.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update_and_check(None, "wal_autocheckpoint", CHECKPOINT_PAGES, |_| Ok(()))?;
    // A damaged file must not be able to run anything.
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_LIMIT, |_| Ok(()))?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// Two processes that open a new file at the same time may both be told that it is busy, without a wait.
fn enter_log_mode(path: &Path, connection: &Connection) -> Result<(), StoreError> {
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        match connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get::<_, String>(0)) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => return Err(unreachable(path, format!("the file system allows no write-ahead log: {mode}"))),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(unreachable(path, error)),
        }
    }
}

fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    let what = failed("schema");
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).map_err(&what)?;
    let found: u32 = transaction.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(&what)?;
    if found > VERSION {
        return Err(StoreError::TooNew { found, supported: VERSION });
    }
    for migration in MIGRATIONS.iter().skip(found as usize) {
        transaction.execute_batch(migration).map_err(&what)?;
    }
    if found < VERSION {
        transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(&what)?;
        transaction.pragma_update(None, "user_version", VERSION).map_err(&what)?;
    }
    transaction.commit().map_err(&what)
}

fn unreachable(path: &Path, message: impl std::fmt::Display) -> StoreError {
    StoreError::Unreachable {
        message: format!("`{}`: {message}", path.display()),
        hint: "name a file in a folder that you may write to with `store = …`, or move this one away".into(),
    }
}
