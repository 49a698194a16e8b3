use fimble_toolkit::{Call, ToolError, toolkit};

struct Signatures;
/// A toolkit.
#[toolkit(name = "signatures")]
impl Signatures {
    #[operation(risk = "read")]
    async fn undocumented(&self) -> Result<u32, ToolError> {
        Ok(1)
    }

    /// Not async.
    #[operation(risk = "read")]
    fn blocking(&self) -> Result<u32, ToolError> {
        Ok(1)
    }

    /// No receiver.
    #[operation(risk = "read")]
    async fn no_self() -> Result<u32, ToolError> {
        Ok(1)
    }

    /// A receiver that cannot be shared.
    #[operation(risk = "read")]
    async fn exclusive(&mut self) -> Result<u32, ToolError> {
        Ok(1)
    }

    /// No result.
    #[operation(risk = "read")]
    async fn no_result(&self) -> u32 {
        1
    }

    /// Nothing at all.
    #[operation(risk = "read")]
    async fn nothing(&self) {}

    /// Generic.
    #[operation(risk = "read")]
    async fn generic<T: Send>(&self, value: T) -> Result<u32, ToolError> {
        drop(value);
        Ok(1)
    }

    /// Parameters of the wrong kind.
    #[operation(risk = "read")]
    async fn parameters(
        &self,
        _text: &str,
        (left, _): (u32, u32),
        _some: impl Send,
        r#in: u32,
        #[default()] _empty: u32,
        #[default(1)] _call: &Call,
        _late: u32,
    ) -> Result<u32, ToolError> {
        Ok(left + r#in)
    }

    /// Defaults.
    #[operation(risk = "read")]
    async fn defaults(
        &self,
        #[default(1)] limit: u32,
        late: u32,
        #[default(2)] optional: Option<u32>,
    ) -> Result<u32, ToolError> {
        Ok(limit + late + optional.unwrap_or(0))
    }
}

fn main() {}
