use fimble_toolkit::{ToolError, toolkit};

struct NoName;
/// A toolkit.
#[toolkit()]
impl NoName {
    /// Reads.
    #[operation(risk = "read")]
    async fn read(&self) -> Result<u32, ToolError> {
        Ok(1)
    }
}

struct BadKeys;
/// A toolkit.
#[toolkit(nam = "x", name = "not a name", name = "again")]
impl BadKeys {
    /// Reads.
    #[operation(risk = "read")]
    async fn read(&self) -> Result<u32, ToolError> {
        Ok(1)
    }
}

struct Keyword;
/// A toolkit.
#[toolkit(name = "class")]
impl Keyword {
    /// Reads.
    #[operation(risk = "read")]
    async fn read(&self) -> Result<u32, ToolError> {
        Ok(1)
    }
}

fn main() {}
