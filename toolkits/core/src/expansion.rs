//! What the `#[toolkit]` macro's expansion names. Not for use by hand, and free to change with the macro.

pub use async_trait::async_trait;
pub use schemars;
pub use serde;
pub use serde_json;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Call, ErrorKind, ToolError, Toolkit, schema};

/// The schema of a value that a program passes.
pub fn argument_schema<T: JsonSchema>() -> Value {
    schema::inline(SchemaSettings::draft2020_12().for_deserialize().into_generator().into_root_schema_for::<T>())
}

/// The schema of a value that a program gets.
pub fn result_schema<T: JsonSchema>() -> Value {
    schema::inline(SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>())
}

/// The JSON of a default. A default that cannot be written as JSON is shown as `None`.
pub fn default_value<T: Serialize>(value: T) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

/// The argument of that name, or the default if it was not given.
///
/// # Errors
/// `InvalidArgument` that names the parameter.
pub fn argument_or<T: DeserializeOwned>(call: &Call, name: &str, default: impl FnOnce() -> T) -> Result<T, ToolError> {
    if call.arguments.contains_key(name) { call.argument(name) } else { Ok(default()) }
}

/// The JSON of a result.
///
/// # Errors
/// `Failed` if it cannot be written as JSON, e.g. a map whose keys are no strings.
pub fn result<T: Serialize>(operation: &str, value: T) -> Result<Value, ToolError> {
    serde_json::to_value(value)
        .map_err(|error| ToolError::failed(format!("the result of {operation} cannot be written as JSON: {error}")))
}

/// The error of a call to an operation that is not there.
pub fn unknown_operation<T: Toolkit>(toolkit: &T, call: &Call) -> ToolError {
    let declaration = toolkit.declaration();
    let names: Vec<&str> = declaration.operations.iter().map(|operation| operation.name.as_str()).collect();
    let message = format!("{} has no operation `{}`", declaration.name, call.operation);
    ToolError::new(ErrorKind::UnknownOperation, message).with_hint(format!("it has {}", names.join(", ")))
}
