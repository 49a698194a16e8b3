//! The bodies of frames, as types. The shape of what the child says is checked here; its last word is in
//! `done`.

use std::time::Duration;

use fimble_toolkit::{ErrorKind, ToolError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Carried, HostCall, Limits, Paging, Run, frame};
use crate::record::{Readings, Site};

/// The body of [`frame::RUN`].
#[derive(Serialize)]
pub(super) struct Opening<'a> {
    version: u32,
    source: &'a str,
    file_name: &'a str,
    variables: &'a [Carried],
    proxies: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    paging: &'a [Paging],
    limits: OpeningLimits,
    seed: Option<&'a str>,
    readings: Option<&'a Readings>,
}

#[derive(Serialize)]
struct OpeningLimits {
    output_bytes: u64,
    variable_bytes: u64,
    variables_bytes: u64,
    frame_bytes: u64,
    calls: u32,
    spin_us: u64,
}

impl<'a> Opening<'a> {
    pub fn of(run: &'a Run, spin: Duration) -> Self {
        let Limits { output_kib, variable_kib, variables_kib, frame_kib, calls, .. } = run.limits;
        let bytes = |kib: u64| kib.saturating_mul(1024);
        Self {
            version: frame::VERSION,
            source: &run.source,
            file_name: &run.file_name,
            variables: &run.variables,
            proxies: &run.proxies,
            paging: &run.paging,
            limits: OpeningLimits {
                output_bytes: bytes(output_kib),
                variable_bytes: bytes(variable_kib),
                variables_bytes: bytes(variables_kib),
                frame_bytes: bytes(frame_kib).min(u64::from(u32::MAX)),
                calls,
                spin_us: u64::try_from(spin.as_micros()).unwrap_or_default(),
            },
            seed: run.repeat.as_ref().map(|repeat| repeat.seed.as_str()),
            readings: run.repeat.as_ref().map(|repeat| &repeat.readings),
        }
    }
}

/// The body of [`frame::PRINT`].
#[derive(Deserialize)]
pub(super) struct Printed {
    pub text: String,
}

/// The body of [`frame::STATEMENT`].
#[derive(Deserialize)]
pub(super) struct StatementDone {
    pub number: u32,
    pub of: u32,
}

/// The body of [`frame::CANCEL`].
#[derive(Deserialize)]
pub(super) struct Cancelled {
    pub id: u64,
}

#[derive(Deserialize)]
struct Call {
    id: u64,
    target: String,
    method: String,
    positional: Vec<Value>,
    keyword: Map<String, Value>,
    line: u32,
    column: u32,
    ordinal: u32,
    #[serde(default)]
    readings: Readings,
}

/// The most values in one frame, names of fields included. One takes up to a hundred times the memory of its text, and
/// the child keeps to this by itself.
const VALUES: usize = 1_000_000;

/// Reads a body; the error says what was wrong with it. Its depth is limited by `serde_json`.
pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    // Two values take three bytes at least.
    if body.len() > VALUES && count_values(body) > VALUES {
        return Err(format!("a message of more than {VALUES} values"));
    }
    serde_json::from_slice(body).map_err(|error| format!("a malformed message: {error}"))
}

/// How many values a JSON text has, names of fields included and empty lists and objects counted twice, without reading
/// them.
pub(super) fn count_values(body: &[u8]) -> usize {
    let mut count = 1;
    let mut rest = body;
    while let Some(index) = rest.iter().position(|byte| matches!(byte, b'"' | b',' | b':' | b'[' | b'{')) {
        let quoted = rest.get(index) == Some(&b'"');
        rest = rest.get(index + 1..).unwrap_or_default();
        if !quoted {
            count += 1;
            continue;
        }
        // To the end of the string; a backslash takes the next byte with it.
        while let Some(index) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')) {
            let ends = rest.get(index) == Some(&b'"');
            rest = rest.get(index + if ends { 1 } else { 2 }..).unwrap_or_default();
            if ends {
                break;
            }
        }
    }
    count
}

/// Reads the body of [`frame::CALL`].
pub(super) fn read_call(body: &[u8]) -> Result<HostCall, String> {
    let Call { id, target, method, positional, keyword, line, column, ordinal, readings } = read(body)?;
    Ok(HostCall { id, target, method, positional, keyword, site: Site { line, column }, ordinal, readings })
}

/// The frame that answers a call.
pub(super) fn write_answer(id: u64, result: &Result<Value, ToolError>, frame_bytes: usize) -> (u8, Vec<u8>) {
    #[derive(Serialize)]
    struct Return<'a> {
        id: u64,
        result: &'a Value,
    }
    #[derive(Serialize)]
    struct Failure<'a> {
        id: u64,
        kind: ErrorKind,
        message: &'a str,
        hint: Option<&'a str>,
    }
    let unsent;
    let error = match result {
        Ok(result) => {
            unsent = match serde_json::to_vec(&Return { id, result }) {
                Ok(body) if body.len() <= frame_bytes => return (frame::RETURN, body),
                Ok(body) => too_large(body.len(), frame_bytes),
                Err(error) => ToolError::failed(format!("the result could not be written: {error}")),
            };
            &unsent
        }
        Err(error) => error,
    };
    let failure = |message, hint| {
        let failure = Failure { id, kind: error.kind, message, hint };
        serde_json::to_vec(&failure).unwrap_or_default()
    };
    let whole = failure(&error.message, error.hint.as_deref());
    if whole.len() <= frame_bytes {
        return (frame::ERROR, whole);
    }
    // A byte takes six at most.
    let cut = |text: &'_ str| text.get(..text.floor_char_boundary(frame_bytes / 16)).unwrap_or_default().to_owned();
    (frame::ERROR, failure(&cut(&error.message), error.hint.as_deref().map(cut).as_deref()))
}

/// The error of an answer that is too large for a frame.
fn too_large(bytes: usize, limit: usize) -> ToolError {
    ToolError::new(
        ErrorKind::Failed,
        format!("the result is too large: {} KiB, at most {} KiB can be returned", bytes / 1024, limit / 1024),
    )
    .with_hint("ask for less at a time, e.g. with a limit or a filter")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_value_and_a_list_has_many() {
        assert_eq!(count_values(br#"{"a, [": [1, "\",{\"", []]}"#), 7);
        let text = serde_json::to_vec(&serde_json::json!({ "text": ",".repeat(2 * VALUES + 2) })).unwrap();
        assert_eq!(read::<Printed>(&text).map(|printed| printed.text.len()), Ok(2 * VALUES + 2));
        let list = format!("[{}0]", "0,".repeat(VALUES));
        let told = read::<Vec<u8>>(list.as_bytes()).unwrap_err();
        assert_eq!(told, "a message of more than 1000000 values");
    }
}
