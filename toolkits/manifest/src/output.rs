//! What a command wrote or a server answered, as the value that its manifest promised. Its bytes are nobody's promise: each is
//! looked at.

use regex::Regex;
use serde_json::{Map, Value, json};
use toml::Spanned;

use crate::problem::Mistake;
use crate::written::ResultKind;

/// How output is read.
#[derive(Debug)]
pub(crate) enum Output {
    Text,
    Lines,
    Json,
    Table,
    /// Each match is one entry.
    Matches(Regex),
}

impl Output {
    /// # Errors
    /// A kind without the pattern that it needs, a pattern without the kind, a pattern that is none.
    pub(crate) fn new(kind: ResultKind, pattern: Option<Spanned<String>>) -> Result<Self, Mistake> {
        let output = match (kind, pattern) {
            (ResultKind::Regex(place), None) => {
                return Err(Mistake::at(place, "a result by `regex` has no `pattern`")
                    .with_hint("write `pattern = '(?P<name>…)'`: each match becomes a dict"));
            }
            (ResultKind::Regex(_), Some(pattern)) => {
                let place = pattern.span();
                Self::Matches(Regex::new(pattern.get_ref()).map_err(|error| {
                    let text = error.to_string();
                    let reason = text.lines().next_back().unwrap_or_default().trim_start_matches("error: ");
                    Mistake::at(place, format!("`pattern` is no regular expression: {reason}"))
                })?)
            }
            (_, Some(pattern)) => {
                return Err(Mistake::at(pattern.span(), "`pattern` is of no use to this result")
                    .with_hint("add `result = \"regex\"`"));
            }
            (ResultKind::Text, None) => Self::Text,
            (ResultKind::Lines, None) => Self::Lines,
            (ResultKind::Json, None) => Self::Json,
            (ResultKind::Table, None) => Self::Table,
        };
        Ok(output)
    }

    /// The JSON Schema of the values.
    pub(crate) fn schema(&self) -> Value {
        let text = json!({"type": "string"});
        match self {
            Self::Text => text,
            Self::Lines => json!({"type": "array", "items": text}),
            Self::Json => json!(true),
            Self::Table => json!({"type": "array", "items": {"type": "object", "additionalProperties": text}}),
            Self::Matches(pattern) => {
                let names: Vec<&str> = pattern.capture_names().flatten().collect();
                let fields: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), text.clone())).collect();
                let item = match names.as_slice() {
                    [] => text,
                    names => json!({"type": "object", "properties": fields, "required": names}),
                };
                json!({"type": "array", "items": item})
            }
        }
    }

    /// The value. Bytes that are no UTF-8 read as `U+FFFD`; line ends at the end of a text are left out.
    ///
    /// # Errors
    /// What is wrong with the output, as the end of a sentence that begins with the command's name.
    pub(crate) fn value(&self, output: &[u8]) -> Result<Value, String> {
        let text = String::from_utf8_lossy(output);
        match self {
            Self::Json => serde_json::from_slice(output).map_err(|error| match output.trim_ascii() {
                [] => "wrote nothing where JSON was promised".to_owned(),
                _ => format!("did not write the JSON it promised: {error}"),
            }),
            Self::Lines => Ok(text.lines().map(Value::from).collect()),
            Self::Table => table(&text),
            Self::Text => Ok(Value::from(text.trim_end_matches(['\n', '\r']))),
            Self::Matches(pattern) => Ok(matches(pattern, &text)),
        }
    }
}

/// The named groups of each match, else its first group, else all of it. A group that took no part is an empty text.
fn matches(pattern: &Regex, text: &str) -> Value {
    let names: Vec<&str> = pattern.capture_names().flatten().collect();
    let entry = |found: regex::Captures<'_>| {
        let group = |group: Option<regex::Match<'_>>| Value::from(group.map_or("", |group| group.as_str()));
        if names.is_empty() {
            return group(found.get(1).or_else(|| found.get(0).filter(|_| found.len() == 1)));
        }
        names.iter().map(|name| ((*name).to_owned(), group(found.name(name)))).collect::<Map<_, _>>().into()
    };
    pattern.captures_iter(text).map(entry).collect()
}

/// A header line, then a row a line. Blank lines are passed over; a table without header is an empty one.
fn table(text: &str) -> Result<Value, String> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let Some(header) = lines.next() else { return Ok(json!([])) };
    let columns = cells(header);
    for (index, column) in columns.iter().enumerate() {
        if columns.iter().take(index).any(|earlier| earlier.text == column.text) {
            return Err(format!("wrote a table with two columns `{}`", column.text));
        }
    }
    lines.map(|line| row(&columns, line).map(Value::Object)).collect()
}

fn row(columns: &[Cell<'_>], line: &str) -> Result<Map<String, Value>, String> {
    let cells = cells(line);
    let mut row: Map<String, Value> = columns.iter().map(|column| (column.text.to_owned(), json!(""))).collect();
    let mut fill = |column: &Cell<'_>, text: &str| row.insert(column.text.to_owned(), Value::from(text));
    let last = columns.len().saturating_sub(1);
    if cells.len() >= columns.len() {
        for (index, (column, cell)) in columns.iter().zip(&cells).enumerate() {
            // A command line or a path in the last column may have gaps of its own.
            let text = if index == last { line.get(cell.start..).unwrap_or_default().trim_end() } else { cell.text };
            fill(column, text);
        }
        return Ok(row);
    }
    // An empty cell is a gap like any other, so with fewer cells only their places tell whose they are.
    let mut free = columns.iter();
    for cell in &cells {
        let Some(column) = free.find(|column| column.overlaps(cell)).filter(|_| !line.contains('\t')) else {
            let (have, want) = (cells.len(), columns.len());
            return Err(format!("wrote a table whose row `{}` has {have} of {want} columns", shortened(line)));
        };
        fill(column, cell.text);
    }
    Ok(row)
}

/// A piece of a line, and its place in characters.
struct Cell<'a> {
    text: &'a str,
    /// Byte offset in the line.
    start: usize,
    first: usize,
    behind: usize,
}

impl Cell<'_> {
    fn overlaps(&self, other: &Cell<'_>) -> bool {
        self.first < other.behind && other.first < self.behind
    }
}

/// The pieces between runs of tabs or of two or more spaces.
fn cells(line: &str) -> Vec<Cell<'_>> {
    let mut cells = Vec::new();
    let mut rest = line.trim_end();
    let mut start = 0;
    let mut first = 0;
    loop {
        let gap = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        (start, first, rest) = (start + gap, first + gap, &rest[gap..]);
        if rest.is_empty() {
            return cells;
        }
        let end = [rest.find("  "), rest.find('\t'), rest.find(" \t")].into_iter().flatten().min();
        let text = &rest[..end.unwrap_or(rest.len())];
        let behind = first + text.chars().count();
        cells.push(Cell { text, start, first, behind });
        (start, first, rest) = (start + text.len(), behind, &rest[text.len()..]);
    }
}

fn shortened(line: &str) -> String {
    let line = line.trim();
    if line.chars().count() <= 80 { line.to_owned() } else { line.chars().take(79).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: Output, output: &str) -> Result<Value, String> {
        kind.value(output.as_bytes())
    }

    #[test]
    fn each_match_is_an_entry() {
        let read = |pattern: &str, text: &str| read(Output::Matches(Regex::new(pattern).unwrap()), text).unwrap();
        let ports = r"(?m)^(?P<name>\w+) (?P<port>\d+)?(?:/(?:tcp|udp))?$";
        assert_eq!(
            read(ports, "ssh 22/tcp\n- \nnone \n"),
            json!([{"name": "ssh", "port": "22"}, {"name": "none", "port": ""}])
        );
        assert_eq!(read("[0-9]+", "a1b22"), json!(["1", "22"]));
        assert_eq!(read("([a-z])[0-9]|x", "a1xb2"), json!(["a", "", "b"]));
        assert_eq!(read("z", "a"), json!([]));
    }

    #[test]
    fn text_and_lines_lose_only_the_last_line_ends() {
        assert_eq!(read(Output::Text, " a\n\nb \n\n"), Ok(json!(" a\n\nb ")));
        assert_eq!(read(Output::Lines, " a\r\n\nb"), Ok(json!([" a", "", "b"])));
        assert_eq!(Output::Text.value(b"\xff\n"), Ok(json!("\u{fffd}")));
    }

    #[test]
    fn json_is_json_or_an_error() {
        assert_eq!(read(Output::Json, " {\"b\": [1], \"a\": null}\n"), Ok(json!({"b": [1], "a": null})));
        assert_eq!(read(Output::Json, " \n"), Err("wrote nothing where JSON was promised".to_owned()));
        assert_eq!(
            read(Output::Json, "{} {}"),
            Err("did not write the JSON it promised: trailing characters at line 1 column 4".to_owned())
        );
        let deep = "[".repeat(100_000);
        assert!(read(Output::Json, &deep).is_err_and(|error| error.contains("recursion limit")));
    }

    #[test]
    fn a_table_is_a_list_of_rows() {
        for (text, expected) in [
            ("", json!([])),
            ("NAME  STATE\n", json!([])),
            (
                "NAME  STATE\n\na b   up\nc     down  \n",
                json!([{"NAME": "a b", "STATE": "up"}, {"NAME": "c", "STATE": "down"}]),
            ),
            // Right-aligned, with leading spaces.
            ("  PID  NAME\n    1  init\n", json!([{"PID": "1", "NAME": "init"}])),
            ("a\tb c\t\td\n1\t2\t\t3\n", json!([{"a": "1", "b c": "2", "d": "3"}])),
            // The last column takes the rest.
            ("PID  COMMAND\n7    sh  -c  x\n", json!([{"PID": "7", "COMMAND": "sh  -c  x"}])),
            // An empty cell in the middle, and one at the end.
            (
                "NAME   PORTS   IMAGE\nübü            x:1\ny      80\n",
                json!([{"NAME": "übü", "PORTS": "", "IMAGE": "x:1"}, {"NAME": "y", "PORTS": "80", "IMAGE": ""}]),
            ),
        ] {
            assert_eq!(read(Output::Table, text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_table_that_cannot_be_read_for_certain_is_an_error() {
        for (text, expected) in [
            ("A  A\n1  2\n", "wrote a table with two columns `A`"),
            ("A\tB\n1\n\t2\t\n", "wrote a table whose row `2` has 1 of 2 columns"),
            ("A  B  C\n            1  2\n", "wrote a table whose row `1  2` has 2 of 3 columns"),
        ] {
            assert_eq!(read(Output::Table, text), Err(expected.to_owned()), "{text}");
        }
    }
}
