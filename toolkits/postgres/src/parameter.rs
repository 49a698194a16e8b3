//! The values of `$1`, `$2`: passed as text beside the statement, which the server reads by the parameter's type.

use std::error::Error;

use fimble_toolkit::ToolError;
use serde_json::Value;
use tokio_postgres::Statement;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{Format, IsNull, Kind, ToSql, Type, to_sql_checked};

/// A value in PostgreSQL's own writing.
#[derive(Debug)]
pub(crate) struct Parameter(Option<String>);

impl ToSql for Parameter {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match &self.0 {
            None => Ok(IsNull::Yes),
            Some(text) => {
                out.extend_from_slice(text.as_bytes());
                Ok(IsNull::No)
            }
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

/// The values for a statement.
///
/// # Errors
/// More or fewer than it has parameters.
pub(crate) fn parameters(statement: &Statement, values: &[Value]) -> Result<Vec<Parameter>, ToolError> {
    let kinds = statement.params();
    if kinds.len() != values.len() {
        let message = format!("the statement has {} parameters, but `params` has {}", kinds.len(), values.len());
        return Err(ToolError::invalid_argument(message).with_hint("write $1, $2, … in the SQL and a value for each"));
    }
    Ok(kinds.iter().zip(values).map(|(kind, value)| Parameter(text(value, kind))).collect())
}

fn text(value: &Value, kind: &Type) -> Option<String> {
    if matches!(*kind, Type::JSON | Type::JSONB) {
        return Some(value.to_string()).filter(|_| !value.is_null());
    }
    match (value, kind.kind()) {
        (Value::Null, _) => None,
        (Value::String(text), _) => Some(text.clone()),
        (Value::Array(items), Kind::Array(inner)) => Some(array(items, inner)),
        // Anything else that is not a text reads the same as in JSON, or the server says that it does not fit.
        (value, _) => Some(value.to_string()),
    }
}

fn array(items: &[Value], inner: &Type) -> String {
    let items: Vec<String> = items
        .iter()
        .map(|item| match item {
            Value::Array(items) => array(items, inner),
            item => text(item, inner).map_or_else(|| "NULL".to_owned(), |text| quoted(&text)),
        })
        .collect();
    format!("{{{}}}", items.join(","))
}

/// An array's item in quotes.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
