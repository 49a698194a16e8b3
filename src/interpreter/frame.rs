//! What host and child say to each other. Types and numbers only, no I/O.
//!
//! A frame is a little-endian `u32` length of the body, one byte of kind, and the body: UTF-8 JSON. The host opens with
//! [`RUN`]; the child closes with [`DONE`]. Ids multiplex calls. `python/wire.py` has the other half.

/// The version of this protocol; a child refuses a [`RUN`] of another one.
pub const VERSION: u32 = 1;

/// Host to child: the program and what it starts with.
/// `{version, source, file_name, variables: [{name, kind, content}], proxies: [name],
/// paging: [{target, method, argument, position, token: [name], items: [name]}],
/// limits: {output_bytes, variable_bytes, variables_bytes, frame_bytes, calls, spin_us}}`.
pub const RUN: u8 = 1;
/// Host to child: `{id, result}`.
pub const RETURN: u8 = 2;
/// Host to child: `{id, kind, message, hint}`; raised in the program.
pub const ERROR: u8 = 3;

/// Child to host: it is locked in and waits for [`RUN`]. `{}`.
pub const READY: u8 = 16;
/// Child to host: `{text}`.
pub const PRINT: u8 = 17;
/// Child to host: `{number, of}`.
pub const STATEMENT: u8 = 18;
/// Child to host: `{id, target, method, positional, keyword, line, column, ordinal}`.
pub const CALL: u8 = 19;
/// Child to host: the program no longer waits for a call. `{id}`.
pub const CANCEL: u8 = 20;
/// Child to host: the end. `{ending, written, removed, not_carried, statements_done, statements}`.
pub const DONE: u8 = 21;
/// Child to host, in place of [`READY`]: the jail could not be closed. `{reason}`.
pub const UNJAILED: u8 = 22;
/// Child to host: a limit has ended the program, and the last words are being made. `{}`.
pub const STOPPING: u8 = 23;
