//! Sessions as one file of JSON lines, which any store writes alike and any store takes in. It does not know which stores there
//! are, nor where the lines go.
//!
//! The first line says the version, the last one how many sessions there were. Between them each session is its record, its
//! segments, events, rounds with their calls, contents and versions, and a line that ends it. A fork comes after the session
//! that it began with, and contents that its family had before are not repeated.
//!
//! What is taken in is read as if a stranger had written it: every line is bounded, and a session is stored when its last
//! line was read and all of it fits together, or not at all.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, Read, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::packing::content_hash;
use super::upkeep::{self, Upkeep, Version, Whole};
use super::{StoreError, family};
use crate::event::Event;
use crate::record::{CallRecord, Round, SessionRecord, Variable};
use crate::segment::Segment;

/// The version of the file that this program writes, and the newest that it reads.
pub const VERSION: u32 = 1;

/// How large a file's parts may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one line. Default 384 MiB.
    pub line: usize,
    /// Bytes of the lines of one session and its forks, which are held in memory. Default 2 GiB.
    pub family: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { line: 384 * 1024 * 1024, family: 2 * 1024 * 1024 * 1024 }
    }
}

/// What came of taking in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// Sessions that were stored.
    pub sessions: u64,
    /// Ids of those that were there already, or are somebody else's; nothing of them was changed.
    pub refused: Vec<String>,
}

/// Why sessions could not be written out or taken in.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// A line is not what it should be; the sessions before it are stored, nothing of the one that it belongs to is.
    #[error("line {number} of the file cannot be taken in: {message}")]
    Line {
        /// From 1.
        number: u64,
        /// What is wrong with it.
        message: String,
        /// What came of those before it.
        before: Imported,
    },
    /// The file was written by a newer Fimble; nothing was stored.
    #[error("the file has version {found}, this Fimble reads up to {VERSION}")]
    TooNew {
        /// The version found.
        found: u32,
    },
    /// The file cannot be read or written.
    #[error("the file cannot be read or written: {0}")]
    File(#[from] std::io::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl TransferError {
    /// What the user can do, if there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            TransferError::Line { before, .. } => Some(format!(
                "{} sessions before it are stored; export again, or cut the damaged session out of the file",
                before.sessions
            )),
            TransferError::TooNew { .. } => Some("upgrade Fimble".to_owned()),
            TransferError::File(_) => None,
            TransferError::Store(error) => error.hint().map(str::to_owned),
        }
    }
}

/// A line: an object of one field, whose name says what it is.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Line<'line> {
    /// The first one.
    Fimble {
        version: u32,
    },
    /// Begins a session.
    Session(Cow<'line, SessionRecord>),
    Segment(Cow<'line, Segment>),
    Event(Cow<'line, Event>),
    Round(Cow<'line, Round>),
    Call {
        round: u64,
        record: Cow<'line, CallRecord>,
    },
    Content {
        hash: Cow<'line, str>,
        text: Cow<'line, str>,
    },
    Version {
        round: u64,
        name: Cow<'line, str>,
        variable: Option<Cow<'line, Variable>>,
    },
    /// Ends a session: its id, and how many lines it had.
    EndOfSession {
        id: Cow<'line, str>,
        lines: u64,
    },
    /// The last one.
    End {
        sessions: u64,
    },
}

/// Of a first line only what every version has.
#[derive(Deserialize)]
struct First {
    fimble: Header,
}

#[derive(Deserialize)]
struct Header {
    version: u32,
}

/// What of a text may be written out; `None` if all of it may.
pub type Hide<'hide> = &'hide (dyn Fn(&str) -> Option<String> + Sync);

/// [`export_without`] with nothing to hide.
///
/// # Errors
/// As of [`export_without`].
pub async fn export(
    store: &dyn Upkeep,
    ids: &[String],
    to: &mut (dyn Write + Send),
    limits: Limits,
) -> Result<u64, TransferError> {
    export_without(store, ids, to, limits, &|_| None).await
}

/// Writes sessions out, families together, and answers how many. Texts are written as `hide` leaves them. A variable whose
/// content it would change is written as one that was removed: half a value is none.
///
/// # Errors
/// `UnknownSession` for an id that is not there; then the lines end without the last one.
pub async fn export_without(
    store: &dyn Upkeep,
    ids: &[String],
    to: &mut (dyn Write + Send),
    limits: Limits,
    hide: Hide<'_>,
) -> Result<u64, TransferError> {
    let ids: BTreeSet<(&str, &str)> = ids.iter().map(|id| (family::root(id), id.as_str())).collect();
    let mut lines = Lines { to, limits, hide, written: 0 };
    lines.write(&Line::Fimble { version: VERSION })?;
    // Whether each content of the family may be written out.
    let (mut root, mut known) = ("", BTreeMap::new());
    for (family, id) in &ids {
        if *family != root {
            (root, known) = (family, BTreeMap::new());
        }
        let whole = upkeep::read(store, id).await?.ok_or_else(|| StoreError::UnknownSession((*id).to_owned()))?;
        let begun = lines.written;
        lines.write_session(&whole)?;
        for variable in whole.versions.iter().filter_map(|version| version.variable.as_ref()) {
            if !known.contains_key(&variable.hash) {
                let gone = || StoreError::Stale(whole.session.id.clone());
                let text = store.content(id, &variable.hash).await?.ok_or_else(gone)?;
                let is_open = hide(&text).is_none();
                known.insert(variable.hash.clone(), is_open);
                if is_open {
                    lines.write(&Line::Content { hash: Cow::Borrowed(&variable.hash), text: text.into() })?;
                }
            }
        }
        for Version { name, round, variable } in &whole.versions {
            let is_open = |variable: &&Variable| known.get(&variable.hash) == Some(&true);
            let variable = variable.as_ref().filter(is_open).map(Cow::Borrowed);
            lines.write(&Line::Version { round: *round, name: name.into(), variable })?;
        }
        lines.write(&Line::EndOfSession { id: Cow::Borrowed(id), lines: lines.written - begun })?;
    }
    let sessions = ids.len() as u64;
    lines.write(&Line::End { sessions })?;
    lines.to.flush()?;
    Ok(sessions)
}

struct Lines<'file> {
    to: &'file mut (dyn Write + Send),
    limits: Limits,
    hide: Hide<'file>,
    written: u64,
}

impl Lines<'_> {
    /// All of a session but its contents and versions.
    fn write_session(&mut self, whole: &Whole) -> Result<(), TransferError> {
        self.write(&Line::Session(Cow::Borrowed(&whole.session)))?;
        for segment in &whole.segments {
            self.write(&Line::Segment(Cow::Borrowed(segment)))?;
        }
        for event in &whole.events {
            self.write(&Line::Event(Cow::Borrowed(event)))?;
        }
        let mut calls = whole.calls.iter().peekable();
        for round in &whole.rounds {
            self.write(&Line::Round(Cow::Borrowed(round)))?;
            while let Some((number, record)) = calls.next_if(|(number, _)| *number == round.number) {
                self.write(&Line::Call { round: *number, record: Cow::Borrowed(record) })?;
            }
        }
        Ok(())
    }

    /// The line with its texts as they may be written out. It must be a line all the same.
    fn hidden(&self, line: &Line<'_>) -> Result<String, TransferError> {
        let mut value = serde_json::to_value(line).map_err(std::io::Error::from)?;
        hide_in(&mut value, self.hide);
        let text = value.to_string();
        match serde_json::from_str::<Line<'_>>(&text) {
            Ok(_) => Ok(text),
            Err(_) => {
                Err(StoreError::Failed("something that must be hidden stands in a name or a number".to_owned()).into())
            }
        }
    }

    fn write(&mut self, line: &Line<'_>) -> Result<(), TransferError> {
        let mut text = serde_json::to_string(line).map_err(std::io::Error::from)?;
        // What may be written out of a content was asked of the content itself.
        if !matches!(line, Line::Content { .. }) && (self.hide)(&text).is_some() {
            text = self.hidden(line)?;
        }
        let mut text = text.into_bytes();
        if text.len() > self.limits.line {
            let message = format!("a line of {} bytes is over the limit: {}", text.len(), self.limits.line);
            return Err(StoreError::Failed(message).into());
        }
        text.push(b'\n');
        self.to.write_all(&text)?;
        self.written += 1;
        Ok(())
    }
}

/// Changes the texts within `value` as `hide` says. How deep it goes is bounded by what stores take.
fn hide_in(value: &mut Value, hide: Hide<'_>) {
    match value {
        Value::String(text) => {
            if let Some(open) = hide(text) {
                *text = open;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| hide_in(item, hide)),
        Value::Object(fields) => fields.values_mut().for_each(|item| hide_in(item, hide)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Takes sessions in: with `replace`, in the place of those that are there.
///
/// # Errors
/// What is wrong with the file, and where.
pub async fn import(
    store: &dyn Upkeep,
    from: &mut (dyn BufRead + Send),
    replace: bool,
    limits: Limits,
) -> Result<Imported, TransferError> {
    let mut reader = Reader { from, limits, number: 0, family_bytes: 0, text: Vec::new() };
    let mut imported = Imported::default();
    match take(store, &mut reader, replace, &mut imported).await {
        Ok(()) => Ok(imported),
        Err(Refusal::Line(message)) => Err(TransferError::Line { number: reader.number, message, before: imported }),
        Err(Refusal::Other(error)) => Err(error),
    }
}

/// Why no more is taken in.
enum Refusal {
    /// This is wrong with the line that was read last.
    Line(String),
    Other(TransferError),
}

impl<E: Into<TransferError>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Refusal::Other(error.into())
    }
}

async fn take(
    store: &dyn Upkeep,
    reader: &mut Reader<'_>,
    replace: bool,
    imported: &mut Imported,
) -> Result<(), Refusal> {
    let wrong = |message: &str| Err(Refusal::Line(message.to_owned()));
    reader.first()?;
    let (mut root, mut contents) = (String::new(), BTreeMap::<String, Arc<str>>::new());
    let mut seen: u64 = 0;
    loop {
        let session = match reader.line()? {
            Line::Session(session) => session.into_owned(),
            Line::End { sessions } if sessions == seen => break,
            Line::End { .. } => return wrong("the file had another count of sessions"),
            _ => return wrong("a session must begin here, or the file end"),
        };
        if family::root(&session.id) != root {
            root = family::root(&session.id).to_owned();
            contents.clear();
            reader.family_bytes = 0;
        }
        let whole = reader.session(session, &mut contents)?;
        let id = whole.session.id.clone();
        match store.put_session(whole, replace).await {
            Ok(()) => imported.sessions += 1,
            Err(StoreError::AlreadyExists(_) | StoreError::UnknownSession(_)) => imported.refused.push(id),
            // It contradicts itself, or is more than this store takes.
            Err(StoreError::Failed(message)) => return Err(Refusal::Line(message)),
            Err(error) => return Err(error.into()),
        }
        seen += 1;
    }
    if reader.read()? { wrong("something follows the end") } else { Ok(()) }
}

struct Reader<'file> {
    from: &'file mut (dyn BufRead + Send),
    limits: Limits,
    /// The line that was read last, from 1.
    number: u64,
    /// Bytes read since the family began.
    family_bytes: usize,
    text: Vec<u8>,
}

impl Reader<'_> {
    fn first(&mut self) -> Result<(), Refusal> {
        let none = || Refusal::Line("it is no file of sessions that `fimble store export` wrote".to_owned());
        if !self.read()? {
            self.number = 1;
            return Err(none());
        }
        let First { fimble: Header { version } } = serde_json::from_slice(&self.text).map_err(|_| none())?;
        match version {
            0 => Err(none()),
            VERSION => Ok(()),
            found => Err(TransferError::TooNew { found }.into()),
        }
    }

    /// The lines of a session after its first one; contents that its family had before are in `contents`.
    fn session(&mut self, session: SessionRecord, contents: &mut BTreeMap<String, Arc<str>>) -> Result<Whole, Refusal> {
        let wrong = |message: &str| Err(Refusal::Line(message.to_owned()));
        let (segments, events, rounds, calls, versions) = (vec![], vec![], vec![], vec![], vec![]);
        let mut whole = Whole { session, segments, events, rounds, calls, versions, contents: BTreeMap::new() };
        let begun = self.number;
        loop {
            match self.line()? {
                Line::Segment(segment) => whole.segments.push(segment.into_owned()),
                Line::Event(event) => whole.events.push(event.into_owned()),
                Line::Round(round) => whole.rounds.push(round.into_owned()),
                Line::Call { round, record } => whole.calls.push((round, record.into_owned())),
                Line::Content { hash, text } if content_hash(&text) == hash => {
                    contents.insert(hash.into_owned(), text.into());
                }
                Line::Content { .. } => return wrong("the content is not what its hash says"),
                Line::Version { round, name, variable } => {
                    let variable = variable.map(Cow::into_owned);
                    whole.versions.push(Version { name: name.into_owned(), round, variable });
                }
                Line::EndOfSession { id, lines } if id == whole.session.id && lines == self.number - begun => break,
                Line::EndOfSession { .. } => return wrong("the session had another id or count of lines"),
                Line::Fimble { .. } | Line::Session(_) | Line::End { .. } => return wrong("the session has not ended"),
            }
        }
        for variable in whole.versions.iter().filter_map(|version| version.variable.as_ref()) {
            if let Some(content) = contents.get(&variable.hash) {
                whole.contents.insert(variable.hash.clone(), Arc::clone(content));
            }
        }
        Ok(whole)
    }

    /// The next line, which must be there.
    fn line(&mut self) -> Result<Line<'static>, Refusal> {
        if !self.read()? {
            self.number += 1;
            return Err(Refusal::Line("the file ends before its last line".to_owned()));
        }
        serde_json::from_slice(&self.text).map_err(|error| Refusal::Line(format!("it is damaged: {error}")))
    }

    /// Reads a line; false at the end of the file.
    fn read(&mut self) -> Result<bool, Refusal> {
        self.text.clear();
        let most = self.limits.line as u64 + 2;
        let read = self.from.take(most).read_until(b'\n', &mut self.text)?;
        if read == 0 {
            return Ok(false);
        }
        self.number += 1;
        if self.text.last() == Some(&b'\n') {
            self.text.pop();
        }
        if self.text.len() > self.limits.line {
            return Err(Refusal::Line(format!("it is longer than {} bytes", self.limits.line)));
        }
        self.family_bytes = self.family_bytes.saturating_add(read);
        if self.family_bytes > self.limits.family {
            let message = format!("the session and its forks have more than {} bytes", self.limits.family);
            return Err(Refusal::Line(message));
        }
        Ok(true)
    }
}
