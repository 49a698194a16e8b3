//! What the server or the way to it says, as an error that the model reads.

use std::error::Error as _;

use fimble_toolkit::{ErrorKind, ToolError};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// Characters of the server's words that are shown.
const SHOWN_CHARACTERS: usize = 1_000;

/// The error of a statement: the server's own sentence where it is one.
pub(crate) fn of_statement(error: &Error) -> ToolError {
    let Some(refused) = error.as_db_error() else {
        return ToolError::unavailable(format!("the connection to PostgreSQL was lost: {}", innermost(error)));
    };
    let mut message = shown(refused.message());
    if let Some(detail) = refused.detail() {
        message = format!("{message}: {}", shown(detail));
    }
    let code = refused.code();
    let kind = match code.code() {
        "57014" => ErrorKind::Timeout,
        "25006" | "42501" => ErrorKind::Forbidden,
        "42P01" | "42703" | "42883" | "3F000" => ErrorKind::NotFound,
        code if code.starts_with("42") || code.starts_with("22") => ErrorKind::InvalidArgument,
        code if code.starts_with("53") || code.starts_with("57P") => ErrorKind::Unavailable,
        _ => ErrorKind::Failed,
    };
    let error = ToolError::new(kind, message);
    match refused.hint() {
        Some(hint) => error.with_hint(shown(hint)),
        None if *code == SqlState::QUERY_CANCELED => {
            error.with_hint("ask for less; explain() shows where the time goes")
        }
        None if *code == SqlState::READ_ONLY_SQL_TRANSACTION => error.with_hint("this operation only reads"),
        None if *code == SqlState::UNDEFINED_TABLE => error.with_hint("tables() lists the tables"),
        None => error,
    }
}

/// The error of a connection that could not be made.
pub(crate) fn of_connection(address: &str, error: &Error) -> ToolError {
    match error.as_db_error() {
        Some(refused) => {
            let message = format!("PostgreSQL at {address} refuses the connection: {}", shown(refused.message()));
            ToolError::unavailable(message).with_hint("tell the user: role, password or database may be wrong")
        }
        None => unreachable(address, &innermost(error)),
    }
}

pub(crate) fn unreachable(address: &str, why: &str) -> ToolError {
    ToolError::unavailable(format!("PostgreSQL at {address} cannot be reached: {why}"))
}

fn innermost(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        text = deeper.to_string();
        cause = deeper.source();
    }
    shown(&text)
}

fn shown(text: &str) -> String {
    let mut characters = text.trim().chars().map(|character| if character.is_control() { ' ' } else { character });
    let mut short: String = characters.by_ref().take(SHOWN_CHARACTERS).collect();
    if characters.next().is_some() {
        short.push('…');
    }
    short
}
