//! What reaches the terminal or a pipe: text is cleaned of what drives a terminal, and a reader that went away is no
//! failure of the command. It does not know what the text means.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::gate::Secrets;

/// What no output may show.
static HIDDEN: LazyLock<Secrets> = LazyLock::new(Secrets::default);

/// True once the user no longer wants to wait for a slow reader: what is written from then on is dropped.
static ABANDONED: AtomicBool = AtomicBool::new(false);

/// A line of cleaned text on standard output.
macro_rules! out {
    ($($part:tt)*) => {
        $crate::cli::output::write_out(&format!("{}\n", $crate::cli::output::clean(&format!($($part)*))))
    };
}

/// A line of cleaned text on standard error.
macro_rules! note {
    ($($part:tt)*) => {
        $crate::cli::output::write_note(&format!("{}\n", $crate::cli::output::clean(&format!($($part)*))))
    };
}

/// `text` without control characters, except line feeds and tabs, and without characters that turn the direction of
/// writing: what a model, a program or a tool wrote must not drive the terminal or hide its own end.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    if text.contains(drives_terminal) { Cow::Owned(text.replace(drives_terminal, "")) } else { Cow::Borrowed(text) }
}

/// `text` for standard output where it is the data: unchanged for a pipe or a file, cleaned for a terminal.
pub(super) fn data(text: &str) -> Cow<'_, str> {
    if std::io::stdout().is_terminal() { clean(text) } else { Cow::Borrowed(text) }
}

/// Writes `text`, which is the data, to standard output.
pub(super) fn write_data(text: &str) {
    write_out(&data(text));
}

/// The secrets of this process: what is added to them is written nowhere from then on.
pub(super) fn hidden() -> &'static Secrets {
    &HIDDEN
}

/// `text` without secrets.
fn masked(text: &str) -> Cow<'_, str> {
    if HIDDEN.finds(text) { Cow::Owned(HIDDEN.mask(text)) } else { Cow::Borrowed(text) }
}

/// Writes `text` to standard output, without secrets.
pub(super) fn write_out(text: &str) {
    let Err(error) = write(&mut std::io::stdout().lock(), &masked(text)) else { return };
    // A full disk is told, once: the reader of the data would miss it.
    static TOLD: AtomicBool = AtomicBool::new(false);
    if error.kind() != ErrorKind::BrokenPipe && !TOLD.swap(true, Ordering::Relaxed) {
        note!("error: cannot write standard output: {error}");
    }
}

/// Writes `text` to standard error, without secrets.
pub(super) fn write_note(text: &str) {
    // There is no other place to say that nobody reads this one.
    let _ = write(&mut std::io::stderr().lock(), &masked(text));
}

/// Drops all that is written from now on.
pub(super) fn abandon() {
    ABANDONED.store(true, Ordering::Relaxed);
}

/// Standard error for the log: it never fails, so that a closed pipe cannot fail what is logged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Notes;

impl Write for Notes {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        write_note(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn write(stream: &mut impl Write, text: &str) -> std::io::Result<()> {
    if ABANDONED.load(Ordering::Relaxed) {
        return Ok(());
    }
    stream.write_all(text.as_bytes())?;
    stream.flush()
}

fn drives_terminal(c: char) -> bool {
    // `is_control` covers U+0000–001F, U+007F and U+0080–009F; the ranges are the bidirectional overrides and isolates.
    (c.is_control() && !matches!(c, '\n' | '\t')) || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drives_a_terminal_is_removed_and_text_is_kept() {
        let hostile = "a\tb\n\u{1b}]0;t\u{7}\u{1b}[31mré\r\u{7f}\u{9b}2J\u{202e}x\u{2066}y\u{2069} 🦀\n";
        assert_eq!(clean(hostile), "a\tb\n]0;t[31mré2Jxy 🦀\n");
    }

    #[test]
    fn clean_text_is_not_copied() {
        assert!(matches!(clean("grüße\n\tשלום"), Cow::Borrowed(_)));
    }
}
