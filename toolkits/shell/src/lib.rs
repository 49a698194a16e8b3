//! Commands on this machine: argument vectors that no shell reads.
//!
//! A command starts in one of the configured folders, with a small environment, in a process group of its own. When it
//! ends, when its time is over, or when nobody waits for it any more, it is killed with all that it started: its group,
//! its descendants, and whoever carries the mark that its environment got. Its output is bounded: head and tail are kept.
//!
//! What it does not protect: the command runs with the host's own rights, outside of any jail, and can reach whatever
//! the user can; the folders decide only where it starts. A process escapes being killed if it left the group, lost its
//! parent and cleared its environment, or if it became another user.

mod family;
mod folder;
mod kept;
mod process;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fimble_toolkit::{Call, ErrorKind, Number, ToolError, toolkit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use process::{Finished, Order};

/// The environment variables that every command gets, if the host has them.
pub const ENVIRONMENT: [&str; 3] = ["PATH", "HOME", "LANG"];

/// The most seconds that a command may be given: an hour.
pub const MOST_TIMEOUT_S: f64 = 3_600.0;

/// Bytes of one argument that an error shows.
const SHOWN_CHARACTERS: usize = 1_000;

/// The toolkit `shell_toolkit`.
#[derive(Debug, Clone)]
pub struct Shell {
    config: Config,
}

/// Where commands run and how much of them is kept, `[toolkits.shell]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Folders in which, and below which, commands start; relative folders are meant from the first. Empty (the default):
    /// the host's current folder.
    pub roots: Vec<PathBuf>,
    /// Names of environment variables, or of the host's secrets, that commands get beside [`ENVIRONMENT`]. Default none.
    pub environment: Vec<String>,
    /// Seconds that a command gets if the call says none, above 0 and at most [`MOST_TIMEOUT_S`]. Default 60.
    pub timeout_s: f64,
    /// Bytes that are kept of standard output, and of standard error, 1 to 1,073,741,824: half at its head, half at its tail.
    /// Default 65,536.
    pub output_bytes: usize,
    /// Bytes that a call may pass as standard input, at most 1,073,741,824. Default 1,048,576.
    pub stdin_bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            roots: Vec::new(),
            environment: Vec::new(),
            timeout_s: 60.0,
            output_bytes: 64 * 1024,
            stdin_bytes: 1024 * 1024,
        }
    }
}

impl Config {
    /// The numbers in the settings, and what they may be.
    pub fn numbers(&self) -> Vec<Number> {
        let most = 1 << 30;
        vec![
            Number::above_zero("toolkits.shell.timeout_s", self.timeout_s, MOST_TIMEOUT_S, "seconds"),
            Number::whole("toolkits.shell.output_bytes", self.output_bytes as u64, 1..=most, "bytes"),
            Number::whole("toolkits.shell.stdin_bytes", self.stdin_bytes as u64, 0..=most, "bytes"),
        ]
    }
}

/// A command that ended.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Completed {
    /// 0 is success; minus the signal's number if a signal ended it.
    pub exit_code: i32,
    /// Bytes that are no UTF-8 read as U+FFFD.
    pub stdout: String,
    /// Likewise.
    pub stderr: String,
    /// Seconds.
    pub duration_s: f64,
    /// True if the middle of `stdout` or `stderr` was left out.
    pub cut: bool,
}

impl Shell {
    /// Commands below the configured folders.
    ///
    /// # Errors
    /// What is wrong with the settings, with a hint.
    pub fn new(mut config: Config) -> Result<Self, ToolError> {
        let wrong = |message: String, hint: &str| Err(ToolError::invalid_argument(message).with_hint(hint));
        config.numbers().iter().try_for_each(Number::check)?;
        if let Some(name) = config.environment.iter().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
            let message = format!("`{name}` in `environment` of the shell is no name of a variable");
            return wrong(message, "name the variable only; its value comes from the host's environment");
        }
        if config.roots.is_empty() {
            config.roots.push(PathBuf::from("."));
        }
        for root in &mut config.roots {
            match root.canonicalize() {
                Ok(found) if found.is_dir() => *root = found,
                Ok(_) => {
                    return wrong(
                        format!("`{}` in `roots` of the shell is no folder", root.display()),
                        "name a folder",
                    );
                }
                Err(error) => {
                    let message =
                        format!("the folder `{}` in `roots` of the shell is not there: {error}", root.display());
                    return wrong(message, "make it, or remove it from `roots`");
                }
            }
        }
        Ok(Self { config })
    }

    fn variables(&self) -> Vec<(OsString, OsString)> {
        let names = ENVIRONMENT.into_iter().chain(self.config.environment.iter().map(String::as_str));
        let value = |name: &str| std::env::var_os(name).or_else(|| Some(fimble_toolkit::named_value(name)?.into()));
        names.filter_map(|name| Some((name.into(), value(name)?))).collect()
    }
}

/// Runs commands on this machine. No shell reads them: pipes, `*`, `$` and `>` mean nothing.
#[toolkit(name = "shell_toolkit")]
impl Shell {
    /// Runs a command to its end, e.g. `["df", "-h"]`. Check `exit_code`: a failed command raises nothing.
    ///
    /// What it leaves running in the background is killed when it ends.
    #[operation(risk = "destructive", timeout_s = 3660)]
    async fn run(
        &self,
        /// The program and its arguments, each an item of its own.
        command: Vec<String>,
        /// The folder to run in.
        #[default(".".to_owned())]
        cwd: String,
        /// Seconds after which it is killed. Default: the host's setting, as a rule 60.
        timeout_s: Option<f64>,
        /// What it reads from standard input.
        stdin: Option<String>,
        call: &Call,
    ) -> Result<Completed, ToolError> {
        let (program, arguments) =
            command.split_first().filter(|(program, _)| !program.is_empty()).ok_or_else(|| {
                ToolError::invalid_argument("`command` names no program").with_hint("write command=[\"ls\", \"-l\"]")
            })?;
        if command.iter().any(|argument| argument.contains('\0')) {
            return Err(ToolError::invalid_argument("an argument of a command cannot have a NUL character in it"));
        }
        let timeout_s = timeout_s.unwrap_or(self.config.timeout_s);
        if !(timeout_s > 0.0 && timeout_s <= MOST_TIMEOUT_S) {
            let message = format!("`timeout_s` is above 0 and at most {MOST_TIMEOUT_S}, not {timeout_s}");
            return Err(ToolError::invalid_argument(message));
        }
        if stdin.as_ref().is_some_and(|text| text.len() > self.config.stdin_bytes) {
            let message = format!("`stdin` has more than {} bytes", self.config.stdin_bytes);
            return Err(ToolError::invalid_argument(message).with_hint("pass less, in several calls"));
        }
        let order = Order {
            program: program.clone(),
            arguments: arguments.to_vec(),
            folder: folder::resolve(&self.config.roots, &cwd)?,
            variables: self.variables(),
            stdin: stdin.map(String::into_bytes),
            output_bytes: self.config.output_bytes,
        };
        let begun = Instant::now();
        let running = order.run(Duration::from_secs_f64(timeout_s));
        let finished = tokio::select! {
            finished = running => finished,
            () = call.cancellation.cancelled() => {
                return Err(ToolError::failed(format!("`{program}` was stopped: the call was cancelled")));
            }
        };
        let finished = finished.map_err(|error| not_started(program, &error))?;
        completed(program, finished, timeout_s, begun.elapsed())
    }
}

fn completed(program: &str, finished: Finished, timeout_s: f64, lasted: Duration) -> Result<Completed, ToolError> {
    use std::os::unix::process::ExitStatusExt;

    let (stdout, stderr) = (finished.stdout.text(), finished.stderr.text());
    let Some(status) = finished.status else {
        let last: String = match (stderr.trim(), stdout.trim()) {
            ("", "") => "it said nothing".to_owned(),
            ("", said) | (said, _) => format!("its last words: {}", end_of(said)),
        };
        let message = format!("`{program}` did not end within {timeout_s} s and was killed; {last}");
        return Err(
            ToolError::new(ErrorKind::Timeout, message).with_hint("give a longer `timeout_s`, or let it do less")
        );
    };
    Ok(Completed {
        exit_code: status.code().or(status.signal().map(|signal| -signal)).unwrap_or(-1),
        cut: finished.stdout.is_cut() || finished.stderr.is_cut(),
        stdout,
        stderr,
        duration_s: (lasted.as_secs_f64() * 1000.0).round() / 1000.0,
    })
}

fn not_started(program: &str, error: &std::io::Error) -> ToolError {
    let shown = end_of(program);
    match error.kind() {
        std::io::ErrorKind::NotFound if program.contains(' ') => {
            ToolError::not_found(format!("there is no program `{shown}`"))
                .with_hint("no shell splits it: write each argument as an item of its own, such as [\"ls\", \"-l\"]")
        }
        std::io::ErrorKind::NotFound => ToolError::not_found(format!("the program `{shown}` is not on this machine"))
            .with_hint("shell words such as `cd` are no programs; use `cwd` for the folder"),
        std::io::ErrorKind::ArgumentListTooLong => {
            ToolError::invalid_argument(format!("the arguments are longer than `{shown}` can be started with"))
                .with_hint("pass them as `stdin`, or in several calls")
        }
        std::io::ErrorKind::PermissionDenied => {
            ToolError::new(ErrorKind::Forbidden, format!("the user may not run `{shown}`, or it is no program"))
        }
        _ => ToolError::failed(format!("`{shown}` cannot be run: {error}")),
    }
}

fn end_of(text: &str) -> String {
    let surplus = text.chars().count().saturating_sub(SHOWN_CHARACTERS);
    let kept = text
        .chars()
        .skip(surplus)
        .map(|character| if character == '\n' || !character.is_control() { character } else { ' ' });
    if surplus > 0 { std::iter::once('…').chain(kept).collect() } else { kept.collect() }
}
