//! `fimble store`: how much is stored, what is cleared away, and the way to another store.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, ErrorKind, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Subcommand;
use jiff::Timestamp;

use super::output::hidden;
use super::show::clip;
use super::{Failure, open};
use crate::config::{Config, StorePlace};
use crate::record::SessionRecord;
use crate::store::StoreError;
use crate::store::transfer::{self, Limits, TransferError};
use crate::store::upkeep::{Statistics, Upkeep};

/// Seconds of a day.
const DAY: u64 = 24 * 60 * 60;

/// How strongly a file is compressed: zstd's own default.
const LEVEL: i32 = 3;

/// Count, clear and carry what is stored.
#[derive(Debug, Subcommand)]
pub(super) enum Upkeeping {
    /// How many sessions, rounds, variables and bytes there are, of all users.
    Stats,
    /// Remove old sessions and contents that nothing refers to, and make the file shorter.
    Gc {
        /// Remove your sessions that were not updated for so many days. Without it: for `store_keep_s`, if that is set.
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(0..=36_500))]
        older_than: Option<u64>,
        /// Sessions of all users.
        #[arg(long)]
        all_users: bool,
        /// Only say what would be removed.
        #[arg(long)]
        dry_run: bool,
    },
    /// Write sessions with all that belongs to them as JSON lines, for `fimble store import` into any store.
    Export {
        /// The sessions' ids; without one, all of yours.
        #[arg(value_name = "ID")]
        ids: Vec<String>,
        /// A file that is not there yet, compressed with zstd if its name ends in `.zst`; `-` is standard output.
        #[arg(long, value_name = "FILE", default_value = "-")]
        to: PathBuf,
        /// Sessions of all users.
        #[arg(long)]
        all_users: bool,
    },
    /// Take in what `fimble store export` wrote. Each session is stored whole or not at all.
    Import {
        /// The file, compressed with zstd if its name ends in `.zst`; `-` is standard input.
        file: PathBuf,
        /// Put the file's sessions in the place of those that are there.
        #[arg(long)]
        replace: bool,
    },
}

impl Upkeeping {
    pub(super) async fn execute(self, config: Config) -> Result<ExitCode, Failure> {
        let store = open::upkeep(&config).await?;
        let store = store.as_ref();
        match self {
            Upkeeping::Stats => print(&config, &store.statistics().await?)?,
            Upkeeping::Gc { older_than, all_users, dry_run } => {
                let keep = older_than.map(|days| days * DAY).or(config.store_keep_s);
                clear(&config, store, keep.map(Duration::from_secs), all_users, dry_run).await?;
            }
            Upkeeping::Export { ids, to, all_users } => {
                if let Some(sessions) = export(store, &chosen(store, ids, all_users).await?, &to).await? {
                    note!("exported {}", counted(sessions, "session"));
                }
            }
            Upkeeping::Import { file, replace } => import(store, &file, replace).await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn print(config: &Config, statistics: &Statistics) -> Result<(), Failure> {
    let Statistics { schema, sessions, forks, segments, rounds, calls, events, .. } = statistics;
    let Statistics { variables, versions, contents, content_bytes, shared, unused, bytes, free_bytes, .. } = statistics;
    let (place, size) = match config.store_place()? {
        StorePlace::File(file) => {
            (file.display().to_string(), format!("{} file, {} of it free", size(*bytes), size(*free_bytes)))
        }
        StorePlace::Redis(address, _) => (address.to_string(), format!("{} of the server's memory", size(*bytes))),
    };
    let day = |at: &Option<Timestamp>| at.map_or("-".to_owned(), |at| at.strftime("%Y-%m-%d %H:%M").to_string());
    out!("store      {place}");
    out!("schema     {schema}");
    out!("sessions   {sessions}, {forks} of them forks");
    out!("oldest     {}", day(&statistics.oldest));
    out!("newest     {}", day(&statistics.newest));
    out!("segments   {segments}");
    out!("rounds     {rounds}");
    out!("calls      {calls}");
    out!("events     {events}");
    out!("variables  {variables}, {versions} versions");
    out!("contents   {contents} of {}, {shared} shared, {unused} unused", self::size(*content_bytes));
    out!("size       {size}");
    Ok(())
}

/// Removes what is older than `keep`, and what nothing refers to.
async fn clear(
    config: &Config,
    store: &dyn Upkeep,
    keep: Option<Duration>,
    all_users: bool,
    dry_run: bool,
) -> Result<(), Failure> {
    let before = store.statistics().await?;
    let sessions = open::store(config).await?;
    let mut removed = 0;
    if let Some(keep) = keep {
        let until = Timestamp::now() - keep;
        let is_old = |session: &SessionRecord| session.updated_at < until && (all_users || is_own(session));
        for session in store.all_sessions().await?.iter().filter(|session| is_old(session)) {
            let line = format!(
                "{}  {}  {}",
                session.id,
                session.updated_at.strftime("%Y-%m-%d %H:%M"),
                clip(&session.title, 80)
            );
            if dry_run {
                removed += 1;
                out!("would remove  {line}");
                continue;
            }
            // Who works in it keeps it, and so does who has just written to it.
            let (Ok(hold), true) = (
                open::hold_id(config, Arc::clone(&sessions), &session.id).await,
                store.session(&session.id).await?.as_ref().is_some_and(is_old),
            ) else {
                note!("kept, because another fimble is at work in it: {line}");
                continue;
            };
            store.delete_session(&session.id).await?;
            hold.of_removed();
            removed += 1;
            out!("removed  {line}");
        }
    }
    let swept = store.sweep(dry_run).await?;
    let sessions = counted(removed, "session");
    if dry_run {
        let (contents, bytes) = (counted(swept.contents, "content"), size(swept.content_bytes));
        out!("would remove {sessions} and what only they refer to, {contents} ({bytes}) that nothing refers to");
        return Ok(());
    }
    let after = store.statistics().await?;
    let contents = counted(before.contents.saturating_sub(after.contents), "content");
    let bytes = size(before.content_bytes.saturating_sub(after.content_bytes));
    let shorter = size(before.bytes.saturating_sub(after.bytes));
    out!("removed {sessions}, {contents} ({bytes}); the store is {shorter} smaller");
    Ok(())
}

/// The ids that were named and are there, or all.
async fn chosen(store: &dyn Upkeep, ids: Vec<String>, all_users: bool) -> Result<Vec<String>, Failure> {
    if ids.is_empty() {
        let sessions = store.all_sessions().await?.into_iter();
        return Ok(sessions.filter(|session| all_users || is_own(session)).map(|session| session.id).collect());
    }
    for id in &ids {
        if !store.session(id).await?.is_some_and(|session| all_users || is_own(&session)) {
            return Err(StoreError::UnknownSession(id.clone()).into());
        }
    }
    Ok(ids)
}

/// `text` without secrets, if there are any in it.
fn hide(text: &str) -> Option<String> {
    let secrets = hidden();
    secrets.finds(text).then(|| secrets.mask(text))
}

fn is_own(session: &SessionRecord) -> bool {
    session.tenant == open::TENANT && session.user == open::user()
}

/// How many sessions were written; `None` if the reader of standard output went away.
async fn export(store: &dyn Upkeep, ids: &[String], to: &Path) -> Result<Option<u64>, Failure> {
    let limits = Limits::default();
    if to == Path::new("-") {
        // What a program wrote must not drive the terminal, and what is cleaned could not be taken in again.
        if std::io::stdout().is_terminal() {
            let hint = "name a file with `--to FILE`, or send standard output to a file or a program";
            return Err(Failure::usage("sessions are not written to a terminal").with_hint(hint));
        }
        let mut output = BufWriter::new(std::io::stdout());
        return match transfer::export_without(store, ids, &mut output, limits, &hide).await {
            Err(TransferError::File(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(None),
            exported => Ok(Some(exported?)),
        };
    }
    if to.try_exists()? {
        return Err(Failure::usage(format!("`{}` is there already", to.display()))
            .with_hint("name a file that is not there yet"));
    }
    // Under its name only when it is whole.
    let mut partial = to.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let refused = |error: std::io::Error| Failure::usage(format!("cannot write `{}`: {error}", to.display()));
    let file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&partial).map_err(refused)?;
    let written = write(store, ids, file, is_compressed(to), limits).await;
    match written {
        Ok(sessions) => {
            std::fs::rename(&partial, to).map_err(refused)?;
            Ok(Some(sessions))
        }
        Err(error) => {
            // The first error is the one to tell.
            let _ = std::fs::remove_file(&partial);
            Err(error.into())
        }
    }
}

async fn write(
    store: &dyn Upkeep,
    ids: &[String],
    file: File,
    compressed: bool,
    limits: Limits,
) -> Result<u64, TransferError> {
    let mut file = BufWriter::new(file);
    let sessions = if compressed {
        let mut encoder = zstd::Encoder::new(&mut file, LEVEL)?;
        let sessions = transfer::export_without(store, ids, &mut encoder, limits, &hide).await?;
        encoder.finish()?;
        sessions
    } else {
        transfer::export_without(store, ids, &mut file, limits, &hide).await?
    };
    file.flush()?;
    file.get_ref().sync_all()?;
    Ok(sessions)
}

async fn import(store: &dyn Upkeep, file: &Path, replace: bool) -> Result<(), Failure> {
    let limits = Limits::default();
    let imported = if file == Path::new("-") {
        transfer::import(store, &mut BufReader::new(std::io::stdin()), replace, limits).await?
    } else {
        let refused = |error: std::io::Error| Failure::usage(format!("cannot read `{}`: {error}", file.display()));
        let opened = File::open(file).map_err(refused)?;
        if is_compressed(file) {
            let decoder = zstd::Decoder::new(opened).map_err(refused)?;
            transfer::import(store, &mut BufReader::new(decoder), replace, limits).await?
        } else {
            transfer::import(store, &mut BufReader::new(opened), replace, limits).await?
        }
    };
    note!("imported {}", counted(imported.sessions, "session"));
    if imported.refused.is_empty() {
        return Ok(());
    }
    let (those, hint) = if replace {
        ("belong to other users here", "sign in as their user, or name another store with `-c store=…`")
    } else {
        ("are there already", "`--replace` puts those of the file in their place")
    };
    let refused = counted(imported.refused.len() as u64, "session");
    Err(Failure::usage(format!("{refused} of the file {those}: {}", imported.refused.join(", "))).with_hint(hint))
}

fn is_compressed(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "zst")
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Bytes for a reader.
fn size(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "two digits are shown")]
    let kib = bytes as f64 / 1024.0;
    match kib {
        kib if kib < 1.0 => format!("{bytes} bytes"),
        kib if kib < 1024.0 => format!("{kib:.1} KiB"),
        kib if kib < 1024.0 * 1024.0 => format!("{:.1} MiB", kib / 1024.0),
        kib => format!("{:.1} GiB", kib / 1024.0 / 1024.0),
    }
}

impl From<TransferError> for Failure {
    fn from(error: TransferError) -> Self {
        match error {
            TransferError::Store(error) => error.into(),
            error => {
                let code = if matches!(error, TransferError::File(_)) { 5 } else { 2 };
                Self { code, hint: error.hint(), message: error.to_string() }
            }
        }
    }
}
