//! A server's tools as they are known now: what programs see of them, and the way back. They are replaced while calls go on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use fimble_toolkit::Declaration;
use serde_json::Value;

use crate::tool::{self, Tool};
use crate::{Limits, Server};

/// What is known now.
pub(crate) struct Tools {
    known: RwLock<Arc<Known>>,
    revision: AtomicU64,
    /// What was wrong with the last list, which says the same whenever the server is asked again.
    told: Mutex<Vec<String>>,
}

/// What was known at one time.
#[derive(PartialEq)]
pub(crate) struct Known {
    pub(crate) declaration: Declaration,
    pub(crate) tools: Vec<Tool>,
}

impl Tools {
    /// None yet.
    pub(crate) fn new(server: &Server) -> Self {
        let about = "It is being started; its operations are not known yet.".to_owned();
        let known = Known { declaration: declaration(server, about), tools: Vec::new() };
        Self { known: RwLock::new(Arc::new(known)), revision: AtomicU64::new(0), told: Mutex::default() }
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
        let listed = tool::operations(tools, server, limits);
        for problem in self.untold(listed.unusable) {
            tracing::warn!(server = server.name, problem, "a tool of an MCP server is left out");
        }
        let about = about.map_or_else(|| format!("Tools of the MCP server `{}`.", server.name), str::to_owned);
        let declaration = Declaration { operations: listed.operations, ..declaration(server, about) };
        self.replace(Known { declaration, tools: listed.tools });
    }

    /// Says why there are none.
    pub(crate) fn fail(&self, server: &Server, problem: &str) {
        let about = format!("It cannot be used now: {problem}.");
        self.replace(Known { declaration: declaration(server, about), tools: Vec::new() });
    }

    /// Those of the problems of a list that the last one did not have.
    fn untold(&self, problems: Vec<String>) -> Vec<String> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let new = problems.iter().filter(|problem| !told.contains(problem)).cloned().collect();
        *told = problems;
        new
    }

    fn replace(&self, new: Known) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if **known != new {
            *known = Arc::new(new);
            self.revision.fetch_add(1, Ordering::Release);
        }
    }
}

fn declaration(server: &Server, description: String) -> Declaration {
    Declaration { name: server.toolkit_name(), description, operations: Vec::new() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Endpoint;

    #[test]
    fn what_is_wrong_with_a_list_is_told_once() {
        let endpoint = Endpoint::Command {
            command: "true".to_owned(),
            args: Vec::new(),
            env: std::collections::BTreeMap::new(),
            cwd: None,
        };
        let (server, limits) = (Server::new("own", endpoint), Limits::default());
        let tools = Tools::new(&server);
        let unusable = |names: &[&str]| {
            let list: Vec<Value> = names.iter().map(|name| json!({ "name": name, "inputSchema": 5 })).collect();
            tool::operations(&list, &server, &limits).unusable
        };
        let (both, three) = (unusable(&["a", "b"]), unusable(&["a", "b", "c"]));
        assert_eq!((both.len(), three.len()), (2, 3));
        assert_eq!(tools.untold(both.clone()), both);
        assert_eq!(tools.untold(both.clone()), [""; 0], "the same list says nothing new");
        assert_eq!(tools.untold(three.clone()), three[2..]);
        assert_eq!(tools.untold(Vec::new()), [""; 0]);
        assert_eq!(tools.untold(both.clone()), both, "it was right in between");
    }
}
