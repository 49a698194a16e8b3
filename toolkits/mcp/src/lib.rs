//! MCP servers as toolkits: each server is one toolkit, each of its tools one operation.
//!
//! Servers are programs of this machine, spoken to over their pipes, or addresses, spoken to by HTTP. A server that is a
//! program runs as the user, outside of any jail, in a process group of its own that is ended when its toolkit is dropped or
//! this program dies: its input is closed, and what does not end by itself within [`Limits::stop`] is killed. It is started at the first call: what it can do is remembered. What it says is from
//! outside: names are made into Python names, texts and results are bounded, and a tool that cannot be used does not lose
//! the others. What is not protected: a tool's risk is what the server says of it, and descriptions reach the model as
//! the server wrote them.
//!
//! It does not know the registry, the gate or the programs that call.

mod authorized;
mod cache;
mod calls;
mod changes;
mod client;
mod config;
mod connection;
mod content;
mod diagnosis;
mod error;
mod file;
mod http;
mod limits;
mod login;
mod opening;
mod outcome;
mod parameter;
mod pipes;
mod process;
mod question;
mod running;
mod size;
mod sse;
mod tool;
mod toolkit;
mod tools;
mod variables;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;

use fimble_toolkit::Toolkit;

pub use config::{Client, Endpoint, Server, Transport};
pub use diagnosis::{Hop, diagnose};
pub use error::Error;
pub use file::{Servers, read, server_of};
pub use limits::Limits;
pub use login::{login, logout};

/// What all servers share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// What one server may take.
    pub limits: Limits,
    /// The folder where lists of tools are remembered. Without one each server is started to be asked.
    pub cache: Option<PathBuf>,
    /// The folder where logins are kept. Without one nobody can log in.
    pub tokens: Option<PathBuf>,
}

impl From<Limits> for Settings {
    fn from(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }
}

/// The server as a toolkit. What is remembered of it is taken as it is, and the server is started at the first call;
/// otherwise it is started now and asked for its tools. Needs a tokio runtime; dropping the future gives the start up.
///
/// The toolkit's name is the server's, as a Python name, and `_toolkit`. A server that takes longer than
/// [`Limits::patience`] has no operations until it has started; they appear then, as they do whenever the server's list
/// changes ([`Toolkit::revision`]). Dropping the toolkit ends the server's process and all of its group.
///
/// # Errors
/// The server is disabled, names a variable that is not set, does not start, does not speak the protocol, or wants a
/// login.
pub async fn connect(server: Server, settings: impl Into<Settings>) -> Result<Arc<dyn Toolkit>, Error> {
    Ok(Arc::new(toolkit::ServerToolkit::connect(server, settings.into()).await?))
}
