//! A card that may be shown: bounded, and without what drives a terminal.

use fimble_toolkit::{ToolError, is_python_name};
use serde_json::Value;

use crate::{Card, Field, FieldKind, reply};

/// How much a card may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Characters of a title, a label, an option or a cell; what is longer is cut. Default 200.
    pub line: usize,
    /// Characters of a reason, a summary or a note; what is longer is cut. Default 4,000.
    pub text: usize,
    /// Rows of a table. Default 500.
    pub rows: usize,
    /// Columns of a table. Default 20.
    pub columns: usize,
    /// Options, fields, details or links. Default 50.
    pub items: usize,
    /// Values of a chart. Default 200.
    pub points: usize,
    /// Characters of an address; a longer one is refused. Default 2,000.
    pub address: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { line: 200, text: 4_000, rows: 500, columns: 20, items: 50, points: 200, address: 2_000 }
    }
}

impl Card {
    /// The same card, cleaned and cut to `limits`.
    ///
    /// # Errors
    /// `InvalidArgument`: an empty title, too many items, or what makes no sense.
    pub fn checked(self, limits: &Limits) -> Result<Self, ToolError> {
        let line = |text: String| one_line(&text, limits.line);
        let text = |text: String| clean(&text, limits.text);
        let title = |title: String| match one_line(&title, limits.line) {
            empty if empty.is_empty() => Err(wrong("the card has no title", "say what it is about")),
            title => Ok(title),
        };
        let pairs =
            |pairs: Vec<(String, String)>| pairs.into_iter().map(|(name, value)| (line(name), line(value))).collect();
        Ok(match self {
            Card::HandOver { reason, summary } => match text(reason) {
                empty if empty.is_empty() => {
                    return Err(wrong("the reason is empty", "say why a person must take over"));
                }
                reason => Card::HandOver { reason, summary: text(summary) },
            },
            Card::Operation { title: about, details, risk } => {
                count("details", details.len(), 0, limits.items)?;
                Card::Operation { title: title(about)?, details: pairs(details), risk }
            }
            Card::Choice { title: about, options, many } => {
                Card::Choice { title: title(about)?, options: self::options(options, limits)?, many }
            }
            Card::Form { title: about, fields } => {
                count("fields", fields.len(), 1, limits.items)?;
                let fields =
                    fields.into_iter().map(|field| self::field(field, limits)).collect::<Result<Vec<_>, _>>()?;
                let is_twice =
                    |(at, field): (usize, &Field)| fields.iter().take(at).any(|earlier| earlier.name == field.name);
                if fields.iter().enumerate().any(is_twice) {
                    return Err(wrong("two fields have one name", "give each its own"));
                }
                Card::Form { title: title(about)?, fields }
            }
            Card::Table { title: about, columns, rows } => {
                count("columns", columns.len(), 1, limits.columns)?;
                count("rows", rows.len(), 0, limits.rows)?;
                if let Some(row) = rows.iter().find(|row| row.len() != columns.len()) {
                    let message = format!("a row has {} cells, and there are {} columns", row.len(), columns.len());
                    return Err(wrong(message, "give each row a cell for each column"));
                }
                let lines = |texts: Vec<String>| texts.into_iter().map(line).collect::<Vec<_>>();
                Card::Table {
                    title: title(about)?,
                    columns: lines(columns),
                    rows: rows.into_iter().map(lines).collect(),
                }
            }
            Card::Chart { title: about, style, points } => {
                count("values", points.len(), 1, limits.points)?;
                if points.iter().any(|(_, value)| !value.is_finite()) {
                    return Err(wrong("a value is no finite number", "leave out what is unknown"));
                }
                let points = points.into_iter().map(|(label, value)| (line(label), value)).collect();
                Card::Chart { title: title(about)?, style, points }
            }
            Card::Links { title: about, links } => {
                count("links", links.len(), 1, limits.items)?;
                let links =
                    links.into_iter().map(|(label, address)| Ok((line(label), self::address(address, limits)?)));
                Card::Links { title: title(about)?, links: links.collect::<Result<_, ToolError>>()? }
            }
            Card::Progress { title: about, done, total, note } => {
                if !(total > 0.0 && total.is_finite() && (0.0..=total).contains(&done)) {
                    return Err(wrong(format!("{done} of {total} is no progress"), "`done` is from 0 to `total`"));
                }
                Card::Progress { title: title(about)?, done, total, note: line(note) }
            }
        })
    }
}

fn options(options: Vec<String>, limits: &Limits) -> Result<Vec<String>, ToolError> {
    count("options", options.len(), 1, limits.items)?;
    let options: Vec<String> = options.iter().map(|option| one_line(option, limits.line)).collect();
    if options.iter().any(String::is_empty) {
        return Err(wrong("an option is empty", "say what it means"));
    }
    if options.iter().enumerate().any(|(at, option)| options[..at].contains(option)) {
        return Err(wrong("an option is there twice", "make them differ"));
    }
    Ok(options)
}

fn field(field: Field, limits: &Limits) -> Result<Field, ToolError> {
    let Field { name, label, kind, options, default } = field;
    if !is_python_name(&name) {
        let name = one_line(&name, limits.line);
        return Err(wrong(format!("`{name}`, the name of a field, is no Python name"), "use letters, digits and `_`"));
    }
    let label = if label.trim().is_empty() { name.clone() } else { one_line(&label, limits.line) };
    let options = if kind == FieldKind::Choice { self::options(options, limits)? } else { Vec::new() };
    let default = match default.filter(|default| !default.is_null()) {
        Some(Value::String(text)) => Some(Value::from(clean(&text, limits.text))),
        default => default,
    };
    let field = Field { name, label, kind, options, default };
    if let Some(default) = &field.default
        && !reply::fits(&field, default)
    {
        return Err(wrong(format!("the default of `{}` is not of its type", field.name), "change one of the two"));
    }
    Ok(field)
}

/// Only what a browser opens without running anything of the page it came from.
fn address(address: String, limits: &Limits) -> Result<String, ToolError> {
    let begins = ["https://", "http://", "mailto:"].iter().any(|begin| address.to_ascii_lowercase().starts_with(begin));
    let is_plain = address.chars().all(|character| !character.is_whitespace() && !is_hidden(character));
    if begins && is_plain && address.chars().count() <= limits.address {
        return Ok(address);
    }
    let shown = one_line(&address, 80);
    Err(wrong(format!("`{shown}` is no address that can be shown"), "give an https://, http:// or mailto: address"))
}

fn count(what: &str, count: usize, least: usize, most: usize) -> Result<(), ToolError> {
    if count < least {
        return Err(wrong(format!("the card has no {what}"), "give at least one, or say it as a message"));
    }
    if count > most {
        return Err(wrong(
            format!("the card has {count} {what}, more than the {most} allowed"),
            "show fewer, the most telling first",
        ));
    }
    Ok(())
}

fn wrong(message: impl Into<String>, hint: &str) -> ToolError {
    ToolError::invalid_argument(message).with_hint(hint)
}

/// `text` without what drives a terminal or hides its own end, cut to `most` characters.
pub(crate) fn clean(text: &str, most: usize) -> String {
    let kept: String = text.trim().chars().filter(|character| *character == '\n' || !is_hidden(*character)).collect();
    match kept.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &kept[..end]),
        None => kept,
    }
}

/// The same on one line.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    clean(&text.split_whitespace().collect::<Vec<_>>().join(" "), most)
}

/// Control characters, and those that turn the direction of writing or have no width.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}')
}
