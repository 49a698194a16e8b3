use fimble_toolkit::{ToolError, toolkit};

struct Types;
/// A toolkit.
#[toolkit(name = "types")]
impl Types {
    /// A default of another type.
    #[operation(risk = "read")]
    async fn wrong_default(&self, #[default("many")] limit: u32) -> Result<u32, ToolError> {
        Ok(limit)
    }
}

fn main() {}
