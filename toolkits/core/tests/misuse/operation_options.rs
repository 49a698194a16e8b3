use fimble_toolkit::{ToolError, toolkit};

struct Options;
/// A toolkit.
#[toolkit(name = "options")]
impl Options {
    /// No risk.
    #[operation]
    async fn no_risk(&self) -> Result<u32, ToolError> {
        Ok(1)
    }

    /// No risk either.
    #[operation(idempotent)]
    async fn no_risk_either(&self) -> Result<u32, ToolError> {
        Ok(1)
    }

    /// An unknown risk.
    #[operation(risk = "harmless")]
    async fn unknown_risk(&self) -> Result<u32, ToolError> {
        Ok(1)
    }

    /// An unknown key, and values of the wrong type.
    #[operation(risk = "read", retries = 3, idempotent = "yes", timeout_s = 0, enabled = 1, name = 7)]
    async fn unknown_key(&self) -> Result<u32, ToolError> {
        Ok(1)
    }

    /// No word for pages, and wrong ones.
    #[operation(risk = "read", paging = "cursor")]
    async fn no_paging(&self) -> Result<u32, ToolError> {
        Ok(1)
    }

    /// Half of it.
    #[operation(risk = "read", paging(argument = "cursor", token = 3, list = "rows"))]
    async fn half_paging(&self) -> Result<u32, ToolError> {
        Ok(1)
    }

    /// Given twice.
    #[operation(risk = "read", risk = "write")]
    #[operation(risk = "read")]
    async fn twice(&self) -> Result<u32, ToolError> {
        Ok(1)
    }

    /// A keyword.
    #[operation(risk = "read")]
    async fn r#import(&self) -> Result<u32, ToolError> {
        Ok(1)
    }

    /// No name.
    #[operation(risk = "read", name = "two words")]
    async fn no_name(&self) -> Result<u32, ToolError> {
        Ok(1)
    }

    /// Taken.
    #[operation(risk = "read", name = "import_")]
    async fn one(&self) -> Result<u32, ToolError> {
        Ok(1)
    }

    /// Taken.
    #[operation(risk = "read")]
    async fn import_(&self) -> Result<u32, ToolError> {
        Ok(1)
    }
}

fn main() {}
