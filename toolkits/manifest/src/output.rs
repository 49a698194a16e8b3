//! What a command wrote, as the value that its manifest promised. Its bytes are nobody's promise: each is looked at.

use serde_json::{Map, Value, json};

use crate::written::ResultKind;

/// The JSON Schema of the values of that kind.
pub(crate) fn schema(kind: ResultKind) -> Value {
    match kind {
        ResultKind::Text => json!({"type": "string"}),
        ResultKind::Lines => json!({"type": "array", "items": {"type": "string"}}),
        ResultKind::Json => json!(true),
        ResultKind::Table => {
            json!({"type": "array", "items": {"type": "object", "additionalProperties": {"type": "string"}}})
        }
    }
}

/// The value. Bytes that are no UTF-8 read as `U+FFFD`; line ends at the end of a text are left out.
///
/// # Errors
/// What is wrong with the output, as the end of a sentence that begins with the command's name.
pub(crate) fn value(kind: ResultKind, output: &[u8]) -> Result<Value, String> {
    if kind == ResultKind::Json {
        return serde_json::from_slice(output).map_err(|error| match output.trim_ascii() {
            [] => "wrote nothing where JSON was promised".to_owned(),
            _ => format!("did not write the JSON it promised: {error}"),
        });
    }
    let text = String::from_utf8_lossy(output);
    match kind {
        ResultKind::Lines => Ok(text.lines().map(Value::from).collect()),
        ResultKind::Table => table(&text),
        ResultKind::Text | ResultKind::Json => Ok(Value::from(text.trim_end_matches(['\n', '\r']))),
    }
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

    fn read(kind: ResultKind, output: &str) -> Result<Value, String> {
        value(kind, output.as_bytes())
    }

    #[test]
    fn text_and_lines_lose_only_the_last_line_ends() {
        assert_eq!(read(ResultKind::Text, " a\n\nb \n\n"), Ok(json!(" a\n\nb ")));
        assert_eq!(read(ResultKind::Lines, " a\r\n\nb"), Ok(json!([" a", "", "b"])));
        assert_eq!(value(ResultKind::Text, b"\xff\n"), Ok(json!("\u{fffd}")));
    }

    #[test]
    fn json_is_json_or_an_error() {
        assert_eq!(read(ResultKind::Json, " {\"b\": [1], \"a\": null}\n"), Ok(json!({"b": [1], "a": null})));
        assert_eq!(read(ResultKind::Json, " \n"), Err("wrote nothing where JSON was promised".to_owned()));
        assert_eq!(
            read(ResultKind::Json, "{} {}"),
            Err("did not write the JSON it promised: trailing characters at line 1 column 4".to_owned())
        );
        let deep = "[".repeat(100_000);
        assert!(read(ResultKind::Json, &deep).is_err_and(|error| error.contains("recursion limit")));
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
            assert_eq!(read(ResultKind::Table, text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_table_that_cannot_be_read_for_certain_is_an_error() {
        for (text, expected) in [
            ("A  A\n1  2\n", "wrote a table with two columns `A`"),
            ("A\tB\n1\n\t2\t\n", "wrote a table whose row `2` has 1 of 2 columns"),
            ("A  B  C\n            1  2\n", "wrote a table whose row `1  2` has 2 of 3 columns"),
        ] {
            assert_eq!(read(ResultKind::Table, text), Err(expected.to_owned()), "{text}");
        }
    }
}
