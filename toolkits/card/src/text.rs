//! A card as text, for terminals, and as what the model reads of the conversation.

use std::fmt::Write as _;

use crate::{Card, Field, FieldKind};

/// Rows of a table and values of a chart that the text shows.
const SHOWN_ROWS: usize = 40;

/// Characters of a cell that the text shows.
const SHOWN_CELL: usize = 40;

/// Characters of the longest bar.
const BAR: usize = 30;

impl Card {
    /// The card as lines of text, without a line feed at the end. What asks says how to answer.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text.trim_end().to_owned()
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        match self {
            Card::HandOver { reason, summary } => {
                writeln!(text, "A person must take over: {reason}")?;
                if !summary.is_empty() {
                    writeln!(text, "{summary}")?;
                }
                write!(text, "Answer with what you did, or what is to be done")
            }
            Card::Operation { title, details, risk } => {
                writeln!(text, "{title} ({risk})")?;
                let width = details.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
                for (name, value) in details {
                    writeln!(text, "  {name:width$}  {value}")?;
                }
                write!(text, "Answer confirm or cancel")
            }
            Card::Choice { title, options, many } => {
                writeln!(text, "{title}")?;
                for (number, option) in options.iter().enumerate() {
                    writeln!(text, "  {}. {option}", number + 1)?;
                }
                write!(
                    text,
                    "{}",
                    if *many { "Answer with numbers, e.g. 1, 2, or none" } else { "Answer with a number" }
                )
            }
            Card::Form { title, fields } => {
                writeln!(text, "{title}")?;
                for field in fields {
                    writeln!(text, "  {}", described(field))?;
                }
                match &fields[..] {
                    [_] => write!(text, "Answer with the value"),
                    _ => {
                        let names: Vec<_> = fields.iter().take(3).map(|field| format!("{}=…", field.name)).collect();
                        write!(text, "Answer as {}", names.join("; "))
                    }
                }
            }
            Card::Table { title, columns, rows } => table(text, title, columns, rows),
            Card::Chart { title, points, .. } => chart(text, title, points),
            Card::Links { title, links } => {
                writeln!(text, "{title}")?;
                for (label, address) in links {
                    // The address is always shown: a label can say anything.
                    writeln!(text, "  {label}: {address}")?;
                }
                Ok(())
            }
            Card::Progress { title, done, total, note } => {
                let part = done / total;
                let filled = (part * BAR as f64).round() as usize;
                write!(text, "{title} [{}{}] {:.0} %", "#".repeat(filled), "-".repeat(BAR - filled), part * 100.0)?;
                if note.is_empty() { Ok(()) } else { write!(text, " {note}") }
            }
        }
    }
}

fn described(field: &Field) -> String {
    let kind = match field.kind {
        FieldKind::Str => "text".to_owned(),
        FieldKind::Int => "whole number".to_owned(),
        FieldKind::Float => "number".to_owned(),
        FieldKind::Bool => "yes or no".to_owned(),
        FieldKind::Choice => field.options.join(" / "),
    };
    let default = field.default.as_ref().map(|default| format!("; else {default}")).unwrap_or_default();
    let name = if field.label == field.name { String::new() } else { format!(" ({})", field.label) };
    format!("{}{name}: {kind}{default}", field.name)
}

fn table(text: &mut String, title: &str, columns: &[String], rows: &[Vec<String>]) -> std::fmt::Result {
    writeln!(text, "{title}")?;
    let shown = || rows.iter().take(SHOWN_ROWS);
    let widths: Vec<usize> = (0..columns.len())
        .map(|at| {
            shown().map(|row| &row[at]).chain([&columns[at]]).map(|cell| cell.chars().count().min(SHOWN_CELL)).max()
        })
        .map(Option::unwrap_or_default)
        .collect();
    let mut line = |cells: &[String]| {
        let cells: Vec<String> =
            cells.iter().zip(&widths).map(|(cell, width)| format!("{:width$}", cut(cell, SHOWN_CELL))).collect();
        writeln!(text, "  {}", cells.join("  ").trim_end())
    };
    line(columns)?;
    for row in shown() {
        line(row)?;
    }
    more(text, rows.len(), "rows")
}

fn chart(text: &mut String, title: &str, points: &[(String, f64)]) -> std::fmt::Result {
    writeln!(text, "{title}")?;
    let shown = || points.iter().take(SHOWN_ROWS);
    let width = shown().map(|(label, _)| label.chars().count().min(SHOWN_CELL)).max().unwrap_or_default();
    let longest = shown().map(|(_, value)| value.abs()).fold(0.0, f64::max);
    for (label, value) in shown() {
        let length = if longest > 0.0 { (value.abs() / longest * BAR as f64).round() as usize } else { 0 };
        let mark = if *value < 0.0 { "-" } else { "#" };
        writeln!(text, "  {:width$}  {} {value}", cut(label, SHOWN_CELL), mark.repeat(length.min(BAR)))?;
    }
    more(text, points.len(), "values")
}

fn more(text: &mut String, count: usize, what: &str) -> std::fmt::Result {
    match count.checked_sub(SHOWN_ROWS) {
        Some(more) if more > 0 => write!(text, "  … {more} more {what}"),
        _ => Ok(()),
    }
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most.saturating_sub(1)) {
        Some((end, _)) if text[end..].chars().count() > 1 => format!("{}…", &text[..end]),
        _ => text.to_owned(),
    }
}
