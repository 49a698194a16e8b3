//! Where toolkits come from that are learnt at run time, and how one is read: behind the turns, with a wait that ends.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fimble_toolkit::Toolkit;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// Where a toolkit is written down.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A file of a folder.
    File(PathBuf),
    /// What the settings name.
    Setting {
        /// Its place among them; no two have the same.
        number: usize,
        /// What it is called in messages.
        name: String,
    },
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(formatter),
            Self::Setting { name, .. } => name.fmt(formatter),
        }
    }
}

/// Makes toolkits of what sources say.
#[async_trait]
pub trait ReadToolkit: Send + Sync {
    /// The toolkit of `source`. Dropping the future gives it up.
    ///
    /// # Errors
    /// Why there is none.
    async fn read(&self, source: &Source) -> Result<Read, Unread>;

    /// What programs will call the toolkit by, if that is known before it is read. Default unknown.
    fn expected(&self, _source: &Source) -> Option<String> {
        None
    }
}

/// What a source came to.
pub struct Read {
    /// Its toolkit.
    pub toolkit: Arc<dyn Toolkit>,
    /// What is to be told of it.
    pub warnings: Vec<String>,
    /// Other files that it was made from; when one of them changes, it is read again.
    pub also: Vec<PathBuf>,
}

/// Why a source has no toolkit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// What is wrong, for a person: a sentence that names the source, with its hint in a line of its own.
    pub problem: String,
    /// True if it may go by without a change of the source: a server that is down, a login that nobody has made.
    pub passes: bool,
}

/// One attempt to read a source. Dropping it gives the attempt up.
pub(super) struct Reading {
    task: JoinHandle<Result<Read, Unread>>,
    begun: Instant,
}

impl Reading {
    pub(super) fn begin(reader: &Arc<dyn ReadToolkit>, source: &Source) -> Self {
        let (reader, source) = (Arc::clone(reader), source.clone());
        Self { task: tokio::spawn(async move { reader.read(&source).await }), begun: Instant::now() }
    }

    /// What it came to, if it ends before `deadline`; what has ended is seen after it too.
    pub(super) async fn end(&mut self, deadline: Instant) -> Option<Result<Read, Unread>> {
        match timeout_at(deadline, &mut self.task).await.ok()? {
            Ok(read) => Some(read),
            // What a source says is from outside: whoever stumbles over it fails alone.
            Err(error) => Some(Err(Unread { problem: format!("a toolkit cannot be read: {error}"), passes: false })),
        }
    }

    /// For how long it has been going on.
    pub(super) fn age(&self) -> Duration {
        self.begun.elapsed()
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.task.abort();
    }
}
