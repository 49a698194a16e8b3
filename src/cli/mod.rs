//! The terminal: what was typed, what it means, one file a command. Data goes to standard output, everything else to
//! standard error.

#[macro_use]
mod output;

mod chat;
mod check_toolkit;
mod completion;
mod doctor;
mod edit;
mod eval;
mod hold;
mod hops;
mod kill;
mod model;
mod more_toolkits;
mod new_toolkit;
mod open;
mod packages;
mod person;
mod policy;
mod prompt;
mod ps;
mod resume;
mod run;
mod secrets;
mod service_toolkits;
mod sessions;
mod shipped_toolkits;
mod show;
mod store;
mod thinking;
mod toolkit_files;
mod toolkits;
mod worker;
mod writer;

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clap::{Parser, Subcommand};
use fimble_toolkit::Toolkit;

use crate::config::{Config, ConfigError, Sources};
use crate::interpreter;

/// How long the end of this process may wait for what its zygotes leave behind: their memory is freed first, which may be much.
const LEAVING: Duration = Duration::from_secs(2);

/// Exit codes, as `fimble --help` documents them.
const EXIT_CODES: &str = "\
Exit codes:
  0    the round ran clean, or the turn replied
  1    the program raised, or the turn gave up
  2    wrong usage or configuration
  3    a limit or a crash ended the program
  4    a call was denied, or something waits for an answer
  5    the model, the store or the interpreter could not be reached
  130  stopped by Ctrl-C

Settings: flags > environment (FIMBLE_LLM__MODEL=…, OPENAI_API_KEY, OPENAI_BASE_URL, NO_COLOR, RUST_LOG)
  > .fimble/config.toml > $XDG_CONFIG_HOME/fimble/config.toml > REDIS_URL > defaults

Sessions: -c store=FILE, or redis://[user:password@]host[:port][/db], rediss://… (TLS), redis+unix:///path,
  redis+cluster://host:port,host:port, redis+sentinel://host:port,host:port/master[/db]";

/// A code-driven agent runtime: the model completes a Python program, a kernel-jailed CPython runs it.
#[derive(Debug, Parser)]
#[command(name = "fimble", version, after_help = EXIT_CODES, disable_help_subcommand = true)]
struct Arguments {
    /// Set one setting, e.g. `-c agent.max_rounds=3`.
    #[arg(short = 'c', long = "config", value_name = "KEY=VALUE", global = true)]
    settings: Vec<String>,
    /// Work in this folder.
    #[arg(short = 'C', long = "directory", value_name = "DIR", global = true)]
    directory: Option<std::path::PathBuf>,
    #[command(flatten)]
    more: more_toolkits::MoreToolkits,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Talk to the assistant.
    Chat(chat::Chat),
    /// Run a Python file with the toolkits, without a model.
    Run(run::Run),
    /// Show and remove stored sessions.
    #[command(subcommand)]
    Sessions(sessions::Sessions),
    /// Count, clear and carry what is stored.
    #[command(subcommand)]
    Store(store::Upkeeping),
    /// Show, call, write and check toolkits.
    #[command(subcommand, visible_alias = "toolkit")]
    Toolkits(toolkits::Toolkits),
    /// Keep tokens and passwords that settings name.
    #[command(subcommand)]
    Secrets(secrets::SecretCommand),
    /// Fetch and look after the local model.
    #[command(subcommand)]
    Model(model::Model),
    /// Make ready and show the packages that programs may import.
    #[command(subcommand)]
    Packages(packages::Packages),
    /// Show what the model would read.
    #[command(subcommand)]
    Prompt(prompt::Prompt),
    /// Run evaluation tasks with a real model.
    Eval(eval::Eval),
    /// Show the programs that run now, of all your fimble processes on this machine.
    Ps(ps::Ps),
    /// End one running program; its session goes on.
    Kill(kill::Kill),
    /// Show what may happen unasked, and take back what was allowed for always.
    Policy(policy::PolicyCommand),
    /// Make turns for all that share a Redis.
    Worker(worker::WorkerCommand),
    /// Check this machine: jail layers, model, store, toolkits.
    Doctor,
    /// Print a completion script for a shell.
    Completion(completion::Completion),
}

/// Why a command failed, with the exit code that says so.
#[derive(Debug, Clone)]
struct Failure {
    code: u8,
    message: String,
    hint: Option<String>,
}

impl Failure {
    fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    fn usage(message: impl Into<String>) -> Self {
        Self::new(2, message)
    }

    fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<crate::store::StoreError> for Failure {
    fn from(error: crate::store::StoreError) -> Self {
        let code = if matches!(error, crate::store::StoreError::UnknownSession(_)) { 2 } else { 5 };
        Self { code, hint: error.hint().map(str::to_owned), message: error.to_string() }
    }
}

impl From<crate::agent::AgentError> for Failure {
    fn from(error: crate::agent::AgentError) -> Self {
        let code = if matches!(error, crate::agent::AgentError::Refused(_)) { 4 } else { 5 };
        Self { code, hint: error.hint(), message: error.to_string() }
    }
}

impl From<crate::interpreter::Error> for Failure {
    fn from(error: crate::interpreter::Error) -> Self {
        let code = if matches!(error, crate::interpreter::Error::Requirement { .. }) { 2 } else { 5 };
        Self::new(code, error.to_string())
    }
}

impl From<crate::llm::LlmError> for Failure {
    fn from(error: crate::llm::LlmError) -> Self {
        crate::agent::AgentError::from(error).into()
    }
}

impl From<crate::gate::ExecuteError> for Failure {
    fn from(error: crate::gate::ExecuteError) -> Self {
        crate::agent::AgentError::from(error).into()
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(5, error.to_string())
    }
}

/// Toolkits that the binary itself adds to the shipped ones.
static OWN_TOOLKITS: OnceLock<Vec<Arc<dyn Toolkit>>> = OnceLock::new();

/// Fimble's command line with toolkits of your own among the shipped ones: the whole `main` of a program that begins with
/// `fimble::interpreter::init()`.
pub fn main_with(toolkits: Vec<Arc<dyn Toolkit>>) -> ExitCode {
    // Set once: a process has one command line.
    let _ = OWN_TOOLKITS.set(toolkits);
    main()
}

/// Reads the arguments, runs the command and says how it went.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match start(arguments) {
        Ok(code) => code,
        Err(failure) => {
            note!("error: {}", failure.message);
            if let Some(hint) = &failure.hint {
                note!("\nhint: {hint}");
            }
            ExitCode::from(failure.code)
        }
    }
}

fn start(arguments: Arguments) -> Result<ExitCode, Failure> {
    if let Some(directory) = &arguments.directory {
        std::env::set_current_dir(directory)
            .map_err(|error| Failure::usage(format!("cannot work in `{}`: {error}", directory.display())))?;
    }
    log_to_stderr();
    let folder = std::env::current_dir()?;
    let more = arguments.more;
    let read = |flags: Vec<String>| {
        let mut config = Config::read(&Sources::of_process(&folder, flags))?;
        more.add_to(&mut config);
        secrets::known(&config)?;
        Ok::<Config, Failure>(config)
    };
    let settings = arguments.settings;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let code = runtime.block_on(async {
        match arguments.command {
            Command::Chat(command) => {
                let config = read(command.settings(settings))?;
                command.execute(config).await
            }
            Command::Run(command) => {
                let config = read(command.settings(settings))?;
                command.execute(config).await
            }
            Command::Sessions(command) => command.execute(read(settings)?).await,
            Command::Store(command) => command.execute(read(settings)?).await,
            Command::Toolkits(command) => command.execute(read(settings)?, &more).await,
            Command::Secrets(command) => command.execute(&read(settings)?),
            Command::Model(command) => command.execute(read(settings)?).await,
            Command::Packages(command) => command.execute(read(settings)?).await,
            Command::Prompt(command) => command.execute(read(settings)?).await,
            Command::Eval(command) => command.execute(read(settings)?).await,
            Command::Policy(command) => command.execute(read(settings)?).await,
            Command::Ps(command) => command.execute(read(settings)?).await,
            Command::Kill(command) => command.execute().await,
            Command::Worker(command) => {
                let config = read(command.settings(settings))?;
                command.execute(config).await
            }
            Command::Doctor => doctor::execute(read(settings)?).await,
            Command::Completion(command) => Ok(command.execute()),
        }
    });
    // A read of standard input that nobody waits for any more must not keep the process.
    runtime.shutdown_background();
    // Not for ever: the next process removes what is left.
    interpreter::leave(LEAVING);
    code
}

/// Logs go to standard error, warnings and worse unless `RUST_LOG` says otherwise.
fn log_to_stderr() {
    use tracing_subscriber::EnvFilter;
    // What the client of Redis meets on its way is told once, by the error at the end of it.
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn,redis=error"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| output::Notes).init();
}
