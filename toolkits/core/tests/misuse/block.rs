use fimble_toolkit::{ToolError, toolkit};

struct Empty;
/// A toolkit.
#[toolkit(name = "empty")]
impl Empty {
    async fn read(&self) -> Result<u32, ToolError> {
        Ok(1)
    }
}

struct Silent;
#[toolkit(name = "silent")]
impl Silent {
    #[operation(risk = "read")]
    async fn read(&self) -> Result<u32, ToolError> {
        Ok(1)
    }
}

struct Generic<T>(T);
/// A toolkit.
#[toolkit(name = "generic")]
impl<T> Generic<T> {
    /// Reads.
    #[operation(risk = "read")]
    async fn read(&self) -> Result<u32, ToolError> {
        Ok(1)
    }
}

trait Reader {
    async fn read(&self) -> Result<u32, ToolError>;
}
struct OfTrait;
/// A toolkit.
#[toolkit(name = "of_trait")]
impl Reader for OfTrait {
    /// Reads.
    #[operation(risk = "read")]
    async fn read(&self) -> Result<u32, ToolError> {
        Ok(1)
    }
}

fn main() {
    // The block stays, so its use is no further mistake.
    let _ = Empty.read();
    let _ = Silent.read();
}
