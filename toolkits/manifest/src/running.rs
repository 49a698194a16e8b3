//! A command's run for one call: its environment, its limits, and what its end means.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use fimble_toolkit::{Call, ErrorKind, Preview, ToolError};
use serde_json::Value;

use crate::command::{Command, Filled};
use crate::output::Output;
use crate::parameter::{Argument, Parameter};
use crate::process::{self, Excess, Finished, Unfinished};

/// Characters of a failed command's or a server's own words that the model reads.
pub(crate) const SHOWN_CHARACTERS: usize = 1_000;

/// A command and how it is run.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) command: Command,
    pub(crate) output: Output,
    pub(crate) output_kib: u64,
    /// The manifest's folder.
    pub(crate) home: PathBuf,
    /// Where it runs; `None` is where the host does.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) is_read: bool,
}

impl Running {
    /// Runs the command, with `variables` as its environment. Dropping the future kills it.
    ///
    /// # Errors
    /// `InvalidArgument`, `Unavailable`, `Timeout`, or `Failed` with what the command said.
    pub(crate) async fn run(
        &self,
        call: &Call,
        parameters: &[Parameter],
        arguments: &[Option<Argument>],
        variables: Vec<(String, OsString)>,
    ) -> Result<Value, ToolError> {
        let filled = self.command.fill(parameters, arguments)?;
        let mut command = tokio::process::Command::new(program(&filled.program, &self.home));
        command.args(&filled.arguments).env_clear().envs(variables).envs(filled.variables.iter().cloned());
        if let Some(folder) = &self.folder {
            // Else a missing folder reads as a missing program.
            if !folder.is_dir() {
                let reason = format!("`{}`, the folder to run `{}` in, is not there", folder.display(), filled.program);
                return Err(ToolError::unavailable(reason).with_hint("do it another way, or tell the user"));
            }
            command.current_dir(folder);
        }
        let excess = if self.is_read { Excess::Stop } else { Excess::Drain };
        let limit = usize::try_from(self.output_kib * 1_024).unwrap_or(usize::MAX);
        let run = process::run(command, limit, excess);
        let finished = tokio::select! {
            finished = within(self.timeout, run) => finished,
            () = call.cancellation.cancelled() => {
                return Err(ToolError::failed(format!("`{}` was stopped: the call was cancelled", filled.program)));
            }
        };
        let Some(finished) = finished else {
            let seconds = self.timeout.unwrap_or_default().as_secs_f64();
            let reason = format!("`{}` did not end within {seconds} s and was stopped", filled.program);
            return Err(ToolError::new(ErrorKind::Timeout, reason));
        };
        let finished = finished.map_err(|unfinished| self.unfinished(unfinished, &filled))?;
        self.result(&finished, &filled.program)
    }

    /// The command that a call would run.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub(crate) fn preview(
        &self,
        parameters: &[Parameter],
        arguments: &[Option<Argument>],
    ) -> Result<Preview, ToolError> {
        let filled = self.command.fill(parameters, arguments)?;
        let words: Vec<String> = std::iter::once(filled.program).chain(filled.arguments).collect();
        let mut effect = serde_json::json!({"command": words});
        if let (Some(effect), false) = (effect.as_object_mut(), filled.variables.is_empty()) {
            effect.insert("variables".to_owned(), filled.variables.into_iter().collect());
        }
        Ok(Preview::of(effect))
    }

    fn result(&self, finished: &Finished, program: &str) -> Result<Value, ToolError> {
        if !finished.status.success() {
            let spoken = if finished.errors.trim_ascii().is_empty() { &finished.output } else { &finished.errors };
            let reason = match said(spoken) {
                said if said.is_empty() => format!("`{program}` {} and said nothing", ended(finished.status)),
                said => format!("`{program}` {}: {said}", ended(finished.status)),
            };
            return Err(ToolError::failed(reason));
        }
        if finished.written > finished.output.len() as u64 {
            let (written, kib) = (finished.written, self.output_kib);
            let reason =
                format!("`{program}` ran to its end but wrote {written} bytes, more than the {kib} KiB allowed");
            return Err(ToolError::failed(reason).with_hint("what it does is done; do not repeat it for its output"));
        }
        self.output.value(&finished.output).map_err(|problem| ToolError::failed(format!("`{program}` {problem}")))
    }

    fn unfinished(&self, unfinished: Unfinished, filled: &Filled) -> ToolError {
        let program = &filled.program;
        match unfinished {
            Unfinished::Excess => {
                let reason = format!("`{program}` wrote more than the {} KiB allowed and was stopped", self.output_kib);
                ToolError::failed(reason).with_hint("ask for less: a limit, a range or a filter")
            }
            Unfinished::NotStarted(error) if error.kind() == std::io::ErrorKind::ArgumentListTooLong => {
                ToolError::invalid_argument(format!("the arguments are longer than `{program}` can be started with"))
                    .with_hint("pass less, in several calls")
            }
            Unfinished::NotStarted(error) if error.kind() == std::io::ErrorKind::NotFound => {
                ToolError::unavailable(format!("the program `{program}` is not on this machine"))
                    .with_hint("do it another way, or tell the user")
            }
            Unfinished::NotStarted(error) => {
                ToolError::unavailable(format!("the program `{program}` cannot be started: {error}"))
                    .with_hint("do it another way, or tell the user")
            }
            Unfinished::Lost(error) => ToolError::failed(format!("`{program}` was lost sight of and stopped: {error}")),
        }
    }
}

/// `None` if the time was over first.
async fn within<T>(limit: Option<Duration>, work: impl Future<Output = T>) -> Option<T> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, work).await.ok(),
        None => Some(work.await),
    }
}

/// A name is looked for in `PATH`; a relative path starts at the manifest's folder, wherever the command runs.
fn program(name: &str, home: &Path) -> PathBuf {
    if name.contains('/') { home.join(name) } else { PathBuf::from(name) }
}

fn ended(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;

    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended in an unknown way".to_owned(),
    }
}

/// The end of a command's own words, without what would move a terminal's cursor.
pub(crate) fn said(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text: Vec<char> =
        text.trim().chars().filter(|character| !character.is_control() || matches!(character, '\n' | '\t')).collect();
    let cut = text.len().saturating_sub(SHOWN_CHARACTERS);
    let shown: String = text.into_iter().skip(cut).collect();
    if cut > 0 { format!("…{shown}") } else { shown }
}
