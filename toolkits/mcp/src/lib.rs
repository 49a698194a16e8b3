//! MCP servers as toolkits: each server is one toolkit, each of its tools one operation.
//!
//! Servers are programs of this machine, spoken to over their pipes, or addresses, spoken to by Streamable HTTP. A
//! server that is a program runs as the user, outside of any jail, in a process group of its own that is killed when its
//! toolkit is dropped. What it says is from outside: names are made into Python names, texts and results are bounded,
//! and a tool that cannot be used does not lose the others. What is not protected: a tool's risk is what the server says
//! of it, and descriptions reach the model as the server wrote them.
//!
//! It does not know the registry, the gate or the programs that call.

mod config;
mod connection;
mod error;
mod limits;
mod outcome;
mod process;
mod tool;
mod toolkit;
mod wire;

use std::sync::Arc;

use fimble_toolkit::Toolkit;

pub use config::{Endpoint, Server, read};
pub use error::Error;
pub use limits::Limits;

/// Starts or reaches the server and lists its tools. Needs a tokio runtime; dropping the future gives the start up.
///
/// The toolkit's name is the server's, as a Python name, and `_toolkit`. Dropping the toolkit kills the server's
/// process and all of its group.
///
/// # Errors
/// The server is disabled, does not start, does not speak the protocol, or takes longer than `limits` let it.
pub async fn connect(server: Server, limits: Limits) -> Result<Arc<dyn Toolkit>, Error> {
    Ok(Arc::new(toolkit::ServerToolkit::connect(server, limits).await?))
}
