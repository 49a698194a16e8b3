//! A server's tools as they are known now: what programs see of them, and the way back. They are replaced while calls go on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use fimble_toolkit::Declaration;
use serde_json::Value;

use crate::tool::{self, Tool};
use crate::{Limits, Server};

/// What is known now.
pub(crate) struct Tools {
    known: RwLock<Arc<Known>>,
    revision: AtomicU64,
}

/// What was known at one time.
#[derive(PartialEq)]
pub(crate) struct Known {
    pub(crate) declaration: Declaration,
    pub(crate) tools: Vec<Tool>,
}

impl Tools {
    /// None yet.
    pub(crate) fn new(server: &Server, limits: &Limits) -> Self {
        let known = known(server, limits, Some("It is being started; its operations are not known yet."), &[]);
        Self { known: RwLock::new(Arc::new(known)), revision: AtomicU64::new(0) }
    }

    pub(crate) fn now(&self) -> Arc<Known> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// A number that changes with the declaration.
    pub(crate) fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// Puts what the server says in place of what was known.
    pub(crate) fn set(&self, server: &Server, limits: &Limits, about: Option<&str>, tools: &[Value]) {
        self.replace(known(server, limits, about, tools));
    }

    /// Says why there are none.
    pub(crate) fn fail(&self, server: &Server, limits: &Limits, problem: &str) {
        self.replace(known(server, limits, Some(&format!("It cannot be used now: {problem}.")), &[]));
    }

    fn replace(&self, new: Known) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if **known != new {
            *known = Arc::new(new);
            self.revision.fetch_add(1, Ordering::Release);
        }
    }
}

fn known(server: &Server, limits: &Limits, about: Option<&str>, tools: &[Value]) -> Known {
    let listed = tool::operations(tools, server, limits);
    for problem in &listed.unusable {
        tracing::warn!(server = server.name, problem, "a tool of an MCP server is left out");
    }
    let about = about.map(str::to_owned);
    let declaration = Declaration {
        name: server.toolkit_name(),
        description: about.unwrap_or_else(|| format!("Tools of the MCP server `{}`.", server.name)),
        operations: listed.operations,
    };
    Known { declaration, tools: listed.tools }
}
