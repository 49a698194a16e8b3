//! `/edit` and `fimble sessions edit`: what is left of a program is written by a person, and goes on from where it stood.

use std::io::{Read, Write};
use std::process::{Command, ExitCode};
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::resume::{How, turn_code};
use super::show::{Format, Screen};
use super::{Failure, open};
use crate::agent::{Agent, Edited, Pending, Verdict};
use crate::config::Config;
use crate::event::Event;
use crate::program::Refusal;
use crate::session::Session;

/// What begins a line that is for the person and no part of the program.
const MARK: &str = "#: ";

/// The most bytes of an edited program.
const PROGRAM_BYTES: u64 = 1024 * 1024;

/// Lets a person edit what is left of the session's last program, by `file` (`-` is standard input) or in an editor, and goes
/// on with it.
pub(super) async fn edit_and_go_on(
    mut config: Config,
    id: &str,
    file: Option<&str>,
    how: How,
) -> Result<ExitCode, Failure> {
    how.apply(&mut config);
    let store = open::store(&config).await?;
    let mut session = open::session(&config, store, Some(id)).await?;
    let hold = open::hold(&config, &session).await?;
    let pending = pending(&session).await?;
    let text = match file {
        Some(file) => Some(read(file)?),
        None => rewritten(&pending, &pending.rest, None).await?,
    };
    let Some(text) = text else { return Ok(ExitCode::SUCCESS) };
    if text.trim().is_empty() {
        return Err(Failure::usage("the program is empty"));
    }
    let agent = open::agent(&config).await?;
    let mut events = session.subscribe();
    let mut screen = Screen::of_conversation(if how.json { Format::Json } else { Format::Text });
    screen.recall(&session.events_of_open_round().await?);
    let _listener = open::listen(&agent.parts.gate);
    let mut work = Work { agent: &agent, session: &mut session, screen: &mut screen, events: &mut events, hold: &hold };
    let verdict = match (work.run(&text).await?, file) {
        (Edited::Ran(verdict), _) => verdict,
        (Edited::Refused(refusal), Some(_)) => return Err(refused(&refusal)),
        (Edited::Refused(refusal), None) => work.edit_refused(&pending, text, refusal).await?,
    };
    Ok(turn_code(id, &verdict))
}

/// What is left of the session's last program.
pub(super) async fn pending(session: &Session) -> Result<Pending, Failure> {
    Pending::of(session).await?.ok_or_else(|| {
        Failure::usage("there is no program to edit")
            .with_hint("a program can be edited while it waits for you, and after it failed or was stopped")
    })
}

/// A conversation whose program is edited.
pub(super) struct Work<'a> {
    pub(super) agent: &'a Agent,
    pub(super) session: &'a mut Session,
    pub(super) screen: &'a mut Screen,
    pub(super) events: &'a mut tokio::sync::mpsc::UnboundedReceiver<Event>,
    pub(super) hold: &'a open::Hold,
}

impl Work<'_> {
    /// Lets the person edit what is left, and runs it; nothing if they leave it as it is.
    pub(super) async fn edit(&mut self, pending: &Pending) -> Result<(), Failure> {
        let Some(text) = rewritten(pending, &pending.rest, None).await? else { return Ok(()) };
        if let Edited::Refused(refusal) = self.run(&text).await? {
            self.edit_refused(pending, text, refusal).await?;
        }
        Ok(())
    }

    /// Asks for another text until it can run; the error is the refusal of one that is left as it is.
    async fn edit_refused(
        &mut self,
        pending: &Pending,
        mut text: String,
        mut refusal: Refusal,
    ) -> Result<Verdict, Failure> {
        loop {
            let Some(edited) = rewritten(pending, &text, Some(&refusal)).await? else { return Err(refused(&refusal)) };
            text = edited;
            match self.run(&text).await? {
                Edited::Ran(verdict) => return Ok(verdict),
                Edited::Refused(why) => refusal = why,
            }
        }
    }

    async fn run(&mut self, text: &str) -> Result<Edited, Failure> {
        let cancel = CancellationToken::new();
        let stop = open::cancel_on_interrupt(&cancel);
        let attendant = Arc::new(self.screen.person());
        let work = self.agent.edit(self.session, text, attendant, &cancel);
        let edited = self.hold.while_held(self.screen.watch(self.events, work)).await;
        stop.abort();
        edited?.ok_or_else(|| Failure::usage("the program has changed meanwhile").with_hint("look at it again"))
    }
}

fn refused(refusal: &Refusal) -> Failure {
    Failure::usage(refusal.to_string()).with_hint("edit it again; what ran before it is kept")
}

/// What a person makes of `text` in their editor; `None` if they leave it as it is, or leave nothing.
async fn rewritten(pending: &Pending, text: &str, refusal: Option<&Refusal>) -> Result<Option<String>, Failure> {
    let shown = shown(pending, text, refusal);
    let words = editor()?;
    // A Ctrl-C within the editor is the editor's.
    let _interrupts = signal(SignalKind::interrupt());
    let edited = tokio::task::spawn_blocking(move || edited(&words, &shown)).await;
    let edited = edited.map_err(|error| Failure::new(1, error.to_string()))??;
    let lines = edited.lines().filter(|line| !line.starts_with(MARK.trim_end()));
    let edited: String = lines.map(|line| format!("{line}\n")).collect();
    if edited.trim() == text.trim() || edited.trim().is_empty() {
        note!("nothing was changed");
        return Ok(None);
    }
    Ok(Some(edited))
}

/// The program with what a person must know of it.
fn shown(pending: &Pending, text: &str, refusal: Option<&Refusal>) -> String {
    let mut notes = vec![format!(
        "What is left of the program of round {}. Save it to run it, empty it to leave it.",
        pending.round
    )];
    if !pending.done.is_empty() {
        notes.push("These statements ran, and are not run again; their names are there:".to_owned());
        notes.extend(pending.done.iter().flat_map(|statement| statement.lines()).map(|line| format!("    {line}")));
    }
    for finding in refusal.iter().flat_map(|refusal| &refusal.findings) {
        notes.push(format!("It cannot run: {}", finding.to_string().replace('\n', " ")));
    }
    let notes: String = notes.iter().map(|note| format!("{MARK}{note}\n")).collect();
    format!("{notes}{}\n", text.trim_matches('\n'))
}

/// The words of the editor's command.
fn editor() -> Result<Vec<String>, Failure> {
    let named = ["VISUAL", "EDITOR"].iter().find_map(|name| Some((*name, std::env::var(name).ok()?)));
    let (name, command) =
        named.filter(|(_, command)| !command.trim().is_empty()).unwrap_or(("EDITOR", "vi".to_owned()));
    let words = shell_words::split(&command)
        .map_err(|error| Failure::usage(format!("{name} is no command: {error}")).with_hint("set it to e.g. `nano`"))?;
    Ok(words)
}

fn edited(words: &[String], text: &str) -> Result<String, Failure> {
    let failed = |what: &str, error: &dyn std::fmt::Display| Failure::new(1, format!("{what}: {error}"));
    let mut file = tempfile::Builder::new()
        .prefix("fimble-")
        .suffix(".py")
        .tempfile()
        .map_err(|error| failed("a file for the editor cannot be written", &error))?;
    file.write_all(text.as_bytes()).map_err(|error| failed("a file for the editor cannot be written", &error))?;
    let [program, arguments @ ..] = words else {
        return Err(Failure::usage("no editor is set").with_hint("set EDITOR"));
    };
    let status = Command::new(program).args(arguments).arg(file.path()).status().map_err(|error| {
        Failure::usage(format!("the editor `{program}` cannot be started: {error}"))
            .with_hint("set VISUAL or EDITOR to one")
    })?;
    if !status.success() {
        return Err(Failure::usage(format!("the editor ended with {status}; nothing was changed")));
    }
    // It may have put another file in its place.
    read(&file.path().display().to_string())
}

fn read(file: &str) -> Result<String, Failure> {
    let failed = |error: std::io::Error| Failure::usage(format!("cannot read `{file}`: {error}"));
    let mut text = String::new();
    let input: Box<dyn Read> = match file {
        "-" => Box::new(std::io::stdin()),
        file => Box::new(std::fs::File::open(file).map_err(failed)?),
    };
    input.take(PROGRAM_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > PROGRAM_BYTES {
        return Err(Failure::usage(format!("`{file}` has more than {PROGRAM_BYTES} bytes")));
    }
    Ok(text)
}
