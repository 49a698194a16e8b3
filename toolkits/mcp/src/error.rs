//! Why a list of servers cannot be read, or a server is no toolkit. It is read by the user.

use std::borrow::Cow;
use std::path::PathBuf;

use crate::{Endpoint, Server};

/// Why there is no toolkit. One sentence; [`hint`](Error::hint) says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file with the servers cannot be read.
    #[error("cannot read {}: {problem}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        problem: std::io::Error,
    },
    /// The file with the servers says something that cannot be meant.
    #[error("{}, line {line}: {problem}", path.display())]
    Configuration {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong there; names the key.
        problem: String,
    },
    /// The server is switched off in its file.
    #[error("the MCP server `{0}` is disabled")]
    Disabled(String),
    /// Its settings name a variable of the environment that is not there.
    #[error("the MCP server `{server}` needs the environment variable `{variable}`, which is not set")]
    Variable {
        /// The server.
        server: String,
        /// The variable.
        variable: String,
    },
    /// The server wants to know who the user is.
    #[error("the MCP server `{server}` wants you to log in")]
    Login {
        /// The server.
        server: String,
        /// The command by which the user logs in.
        command: String,
    },
    /// The login does not allow enough.
    #[error("the MCP server `{server}` wants a login that allows `{scope}`")]
    Scope {
        /// The server.
        server: String,
        /// What it wants to be allowed.
        scope: String,
        /// The command by which the user allows it.
        command: String,
    },
    /// The server's program could not be started.
    #[error("the MCP server `{server}` did not start: `{command}`: {problem}")]
    Start {
        /// The server.
        server: String,
        /// Its program.
        command: String,
        /// What the system said.
        problem: std::io::Error,
    },
    /// The server at an address cannot be reached, or does not speak the protocol, or not in time.
    #[error("the MCP server `{server}` {problem}")]
    Remote {
        /// The server.
        server: String,
        /// What happened, e.g. `did not answer within 30s`.
        problem: String,
    },
    /// The server runs, but does not speak the protocol, or not in time.
    #[error("the MCP server `{server}` {problem}{}", last_words(stderr))]
    Server {
        /// The server.
        server: String,
        /// What it did, e.g. `ended with exit status: 1 before it answered`.
        problem: String,
        /// The end of what it wrote to its standard error; empty if nothing.
        stderr: String,
    },
}

impl Error {
    /// What `server` did. `stderr` is the end of what it wrote there.
    pub(crate) fn of(server: &Server, problem: String, stderr: String) -> Self {
        let name = server.name.clone();
        match server.endpoint {
            Endpoint::Command { .. } => Self::Server { server: name, problem, stderr },
            Endpoint::Url { .. } => Self::Remote { server: name, problem },
        }
    }

    /// What the user can do.
    pub fn hint(&self) -> Cow<'static, str> {
        let hint = match self {
            Self::Read { .. } => "give the path of a JSON file with `mcpServers`",
            Self::Configuration { .. } => {
                "a server has `command`, `args`, `env` and `cwd`, or `url` and `headers`; and may have `disabled`"
            }
            Self::Disabled(_) => "remove its `\"disabled\": true`",
            Self::Variable { .. } => "set it, or write `${NAME:-default}`",
            Self::Login { command, .. } => return format!("run `{command}`, or give it a token in `headers`").into(),
            Self::Scope { command, .. } => return format!("run `{command}`").into(),
            Self::Start { .. } => "install the program, or write its whole path as `command`; `cwd` must be a folder",
            Self::Remote { .. } => {
                "look whether the server runs at that `url`, speaks Streamable HTTP there, and takes the `headers`"
            }
            Self::Server { .. } => {
                "run its command by hand to see what it says; it gets only its `env` and the usual variables, such as PATH and HOME"
            }
        };
        hint.into()
    }
}

/// The end of a server's standard error as the end of a sentence.
pub(crate) fn last_words(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!("; it last wrote: {stderr}") }
}
