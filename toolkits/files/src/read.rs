//! The text of a file: some of its lines, or the last ones.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use fimble_toolkit::ToolError;
use schemars::JsonSchema;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::Limits;
use crate::roots::Roots;

/// Bytes at the beginning of a file that are looked at to tell text from the rest.
const SNIFFED_BYTES: usize = 8 * 1024;

/// Text of a file.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FileText {
    /// The path, with links followed.
    pub path: String,
    /// The lines, as they are in the file. Bytes that are no UTF-8 read as `�`.
    pub text: String,
    /// The number of the first line in `text`.
    pub start_line: u64,
    /// The number of the last line in `text`; one less than `start_line` if there is none.
    pub end_line: u64,
    /// How many lines the file has; `None` if it is too large to count them.
    pub total_lines: Option<u64>,
    /// Bytes of the whole file.
    pub size: u64,
    /// True if `text` holds less than was asked for.
    pub truncated: bool,
}

/// Lines `start` to `end`, both included.
pub(crate) fn read(
    roots: &Roots,
    path: &str,
    start: u64,
    end: Option<u64>,
    limits: &Limits,
    cancelled: &CancellationToken,
) -> Result<FileText, ToolError> {
    if start == 0 || end.is_some_and(|end| end < start) {
        let asked = end.map_or_else(|| start.to_string(), |end| format!("{start} to {end}"));
        return Err(ToolError::invalid_argument(format!(
            "lines are counted from 1, the first before the last: {asked}"
        )));
    }
    let (shown, file, size) = open_text(roots, path)?;
    let failed = |error| roots.failed(path, &error);
    let mut reader = BufReader::with_capacity(64 * 1024, file.take(limits.scan_bytes));
    let mut kept = Vec::new();
    // Whole lines end in `lines`; `open` says whether bytes of a further one were seen.
    let (mut lines, mut open, mut truncated, mut scanned) = (0_u64, false, false, 0_u64);
    loop {
        let chunk = reader.fill_buf().map_err(failed)?;
        if chunk.is_empty() || cancelled.is_cancelled() {
            break;
        }
        let piece = chunk.iter().position(|byte| *byte == b'\n').map_or(chunk, |at| &chunk[..=at]);
        let number = lines + 1;
        if number >= start && end.is_none_or(|end| number <= end) && !truncated {
            let room = limits.text_bytes - kept.len();
            truncated = piece.len() > room;
            kept.extend_from_slice(&piece[..piece.len().min(room)]);
        }
        open = !piece.ends_with(b"\n");
        lines += u64::from(!open);
        scanned += piece.len() as u64;
        let length = piece.len();
        reader.consume(length);
    }
    let total = lines + u64::from(open);
    let counted = scanned >= size;
    if kept.is_empty() && counted && start > total.max(1) {
        return Err(ToolError::invalid_argument(format!("`{path}` has {total} lines; there is no line {start}")));
    }
    // Past the scanned part, what was asked for may go on.
    truncated |= !counted && end.is_none_or(|end| end > lines);
    let text = String::from_utf8_lossy(&kept).into_owned();
    let end_line = start + text.lines().count() as u64 - 1;
    Ok(FileText {
        path: shown,
        text,
        start_line: start,
        end_line,
        total_lines: counted.then_some(total),
        size,
        truncated,
    })
}

/// The last `count` lines.
pub(crate) fn tail(
    roots: &Roots,
    path: &str,
    count: u32,
    limits: &Limits,
    cancelled: &CancellationToken,
) -> Result<FileText, ToolError> {
    let (shown, mut file, size) = open_text(roots, path)?;
    let failed = |error| roots.failed(path, &error);
    let begin = size.saturating_sub(limits.text_bytes as u64);
    file.seek(SeekFrom::Start(begin)).map_err(failed)?;
    let mut bytes = Vec::new();
    // A log may grow meanwhile; what is newer than its size is left for the next call.
    (&file).take(size - begin).read_to_end(&mut bytes).map_err(failed)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    // The first may be the end of a longer line.
    if begin > 0 && lines.len() > 1 {
        lines.remove(0);
    }
    let complete = begin == 0 || lines.len() >= count as usize;
    let kept = &lines[lines.len().saturating_sub(count as usize)..];
    let total = if size <= limits.scan_bytes { Some(count_lines(file, cancelled).map_err(failed)?) } else { None };
    let start = total.map_or(1, |total| (total + 1).saturating_sub(kept.len() as u64));
    Ok(FileText {
        path: shown,
        text: kept.concat(),
        start_line: start,
        end_line: (start + kept.len() as u64).saturating_sub(1),
        total_lines: total,
        size,
        truncated: !complete,
    })
}

/// The file, from its beginning, if it is text.
fn open_text(roots: &Roots, path: &str) -> Result<(String, File, u64), ToolError> {
    let failed = |error| roots.failed(path, &error);
    let allowed = roots.resolve(path)?;
    let mut file = allowed.open().map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(
            ToolError::invalid_argument(format!("`{path}` is a folder")).with_hint("list() gives what is in it")
        );
    }
    if !metadata.is_file() {
        return Err(ToolError::invalid_argument(format!("`{path}` is a device, a pipe or a socket, not a file")));
    }
    let mut beginning = Vec::new();
    (&file).take(SNIFFED_BYTES as u64).read_to_end(&mut beginning).map_err(failed)?;
    if beginning.contains(&0) {
        let message = format!("`{path}` is a binary file of {} bytes, not text", metadata.len());
        return Err(ToolError::invalid_argument(message).with_hint("stat() tells its size and times"));
    }
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    Ok((roots.shown(&allowed.path), file, metadata.len()))
}

fn count_lines(mut file: File, cancelled: &CancellationToken) -> std::io::Result<u64> {
    file.seek(SeekFrom::Start(0))?;
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let (mut lines, mut last) = (0, b'\n');
    loop {
        let chunk = reader.fill_buf()?;
        let (Some(end), false) = (chunk.last(), cancelled.is_cancelled()) else { break };
        last = *end;
        lines += chunk.iter().filter(|byte| **byte == b'\n').count() as u64;
        let length = chunk.len();
        reader.consume(length);
    }
    Ok(lines + u64::from(last != b'\n'))
}
