//! A conversation as one Python file: words and outputs are comments, earlier holes stand in programs of their own.

use super::chat::title;
use crate::segment::{Segment, SegmentKind};

/// What ends a hole when it is followed by a line at the left margin.
pub(super) const STOP: [&str; 4] = ["\nexcept Exception as error", "\n# User:", "<|file_sep|>", "<|endoftext|>"];

/// A segment as part of the file; `content` is what of it is shown, `suffix` the host's part after a hole.
pub(super) fn part(segment: &Segment, content: &str, suffix: &str) -> String {
    match segment.kind {
        SegmentKind::Code => program(content, suffix),
        kind => comment(title(kind), content),
    }
}

/// A hole in its `try`.
pub(super) fn program(hole: &str, suffix: &str) -> String {
    let lines = hole.trim_end().lines();
    let body: String =
        lines.map(|line| if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") }).collect();
    format!("try:\n{body}{}", suffix.trim_end())
}

/// A text as comment lines.
pub(super) fn comment(label: &str, text: &str) -> String {
    let text = format!("{label}: {}", text.trim());
    text.lines().map(|line| format!("# {line}").trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}
