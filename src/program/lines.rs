//! Tells the lines of Python text apart without parsing it, so that text that does not parse yet can be repaired.
//!
//! It knows strings, brackets and comments, and nothing of the grammar.

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    /// Nothing but white space.
    Blank,
    /// A comment of its own.
    Comment,
    /// Begins a statement.
    Code,
    /// Goes on inside brackets or after a backslash.
    Continued,
    /// Begins inside a string; its white space is content.
    InString,
}

/// One line, without its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// Where it begins in the text, in bytes.
    pub(super) start: usize,
    /// Its text.
    pub(super) text: &'a str,
    /// What it is.
    pub(super) kind: LineKind,
}

impl Line<'_> {
    /// Spaces before the first other character.
    pub(super) fn indent(&self) -> usize {
        self.text.len() - self.text.trim_start_matches(' ').len()
    }

    /// True for a statement that begins with one of these words.
    pub(super) fn begins_with(&self, words: &[&str]) -> bool {
        let text = self.text.trim_start();
        self.kind == LineKind::Code
            && words.iter().any(|word| {
                text.strip_prefix(word)
                    .is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
            })
    }
}

/// The lines of `text`, in which `\n` ends a line.
pub(super) fn lines(text: &str) -> Vec<Line<'_>> {
    let mut scanner = Scanner::default();
    let mut start = 0;
    let mut lines = Vec::new();
    for line in text.split('\n') {
        lines.push(Line { start, text: line, kind: scanner.line(line) });
        start += line.len() + 1;
    }
    // A text that ends with a line end has no further line.
    if text.ends_with('\n') || text.is_empty() {
        lines.pop();
    }
    lines
}

/// The lines of the simple statement that has `line`, which counts from 1, and the comments right above it; none if there is
/// no such line.
pub fn lines_about(text: &str, line: u32) -> Vec<&str> {
    let lines = lines(text);
    let Some(own) = usize::try_from(line).ok().and_then(|line| line.checked_sub(1)).filter(|own| *own < lines.len())
    else {
        return Vec::new();
    };
    let begins = |line: &Line<'_>| line.kind == LineKind::Code;
    let goes_on = |line: &Line<'_>| matches!(line.kind, LineKind::Continued | LineKind::InString);
    let first = lines[..=own].iter().rposition(begins).unwrap_or(own);
    let next = lines[own + 1..].iter().position(begins).map_or(lines.len(), |after| own + 1 + after);
    let last = lines[own..next].iter().rposition(goes_on).map_or(own, |after| own + after);
    let above = lines[..first].iter().rev().take_while(|line| line.kind == LineKind::Comment).count();
    lines[first - above..=last].iter().map(|line| line.text).collect()
}

/// The text with every statement's line moved right by `width`; lines that begin inside a string stay.
pub(super) fn indent(text: &str, width: usize) -> String {
    let margin = " ".repeat(width);
    map_lines(text, |line| match line.kind {
        LineKind::Blank | LineKind::InString => line.text.to_owned(),
        _ => format!("{margin}{}", line.text),
    })
}

/// The text with up to `width` spaces taken from the front of every line that does not begin inside a string.
pub(super) fn dedent(text: &str, width: usize) -> String {
    map_lines(text, |line| match line.kind {
        LineKind::InString => line.text.to_owned(),
        _ => line.text.get(width.min(line.indent())..).unwrap_or_default().to_owned(),
    })
}

/// The text with every line changed by `change`.
pub(super) fn map_lines(text: &str, mut change: impl FnMut(&Line<'_>) -> String) -> String {
    let mut changed: String = lines(text).iter().map(|line| change(line) + "\n").collect();
    if !text.ends_with('\n') {
        changed.pop();
    }
    changed
}

/// Where in the text a scan stands.
#[derive(Default)]
struct Scanner {
    depth: usize,
    /// The closing quotes of an open triple-quoted string.
    quotes: Option<&'static str>,
    backslash: bool,
}

impl Scanner {
    fn line(&mut self, line: &str) -> LineKind {
        let kind = if self.quotes.is_some() {
            LineKind::InString
        } else if self.depth > 0 || self.backslash {
            LineKind::Continued
        } else if line.trim().is_empty() {
            LineKind::Blank
        } else if line.trim_start().starts_with('#') {
            LineKind::Comment
        } else {
            LineKind::Code
        };
        self.backslash = false;
        self.scan(line);
        kind
    }

    fn scan(&mut self, mut rest: &str) {
        while let Some(first) = rest.chars().next() {
            if let Some(quotes) = self.quotes {
                rest = match closing(rest, quotes) {
                    Some(after) => {
                        self.quotes = None;
                        after
                    }
                    None => return,
                };
                continue;
            }
            match first {
                '#' => return,
                '\'' | '"' => {
                    let triple = if first == '"' { "\"\"\"" } else { "'''" };
                    if let Some(after) = rest.strip_prefix(triple) {
                        self.quotes = Some(triple);
                        rest = after;
                    } else {
                        let single = if first == '"' { "\"" } else { "'" };
                        // A string that its line does not close ends with the line.
                        let Some(after) = closing(&rest[1..], single) else { return };
                        rest = after;
                    }
                    continue;
                }
                '(' | '[' | '{' => self.depth += 1,
                ')' | ']' | '}' => self.depth = self.depth.saturating_sub(1),
                '\\' if rest.len() == 1 => self.backslash = true,
                _ => {}
            }
            rest = &rest[first.len_utf8()..];
        }
    }
}

/// What follows the closing quotes, if they are there.
fn closing<'a>(text: &'a str, quotes: &str) -> Option<&'a str> {
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix(quotes) {
            return Some(after);
        }
        rest = &rest[first.len_utf8()..];
        if first == '\\' {
            rest = &rest[rest.chars().next().map_or(0, char::len_utf8)..];
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_brackets_and_comments_are_told_apart() {
        let text =
            "x = '''a\n  b # no\n''' # yes (\n# only\n\ny = [\n  'it\\'s',\n]\nz = 1 + \\\n  2\nw = \"(\"\nend = 1";
        let kinds: Vec<LineKind> = lines(text).iter().map(|line| line.kind).collect();
        use LineKind::{Blank, Code, Comment, Continued, InString};
        let expected =
            [Code, InString, InString, Comment, Blank, Code, Continued, Continued, Code, Continued, Code, Code];
        assert_eq!(kinds, expected);
    }

    #[test]
    fn a_string_keeps_its_white_space_when_the_code_moves() {
        let text = "    x = '''\n    a\n  b'''\n    y = 1\n";
        assert_eq!(dedent(text, 4), "x = '''\n    a\n  b'''\ny = 1\n");
        assert_eq!(indent(&dedent(text, 4), 4), text);
    }
}
