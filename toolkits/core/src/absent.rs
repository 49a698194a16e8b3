//! What stands in the place of a toolkit that cannot be used now. It does not know why that is so.

use async_trait::async_trait;
use serde_json::Value;

use crate::{Call, Declaration, ToolError, Toolkit};

/// A toolkit without operations, whose description says why it has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absent {
    /// The name of the toolkit that is missed.
    pub name: String,
    /// One sentence, and what the user can do as a paragraph of its own.
    pub reason: String,
}

#[async_trait]
impl Toolkit for Absent {
    fn declaration(&self) -> Declaration {
        Declaration { name: self.name.clone(), description: self.reason.clone(), operations: Vec::new() }
    }

    async fn call(&self, _call: Call) -> Result<Value, ToolError> {
        Err(ToolError::unavailable(self.reason.clone()))
    }
}
