//! A text with placeholders, and the parameters that they name. It does not know where the text belongs.

use std::ops::Range;

use fimble_toolkit::is_python_name;

use crate::parameter::Parameter;
use crate::problem::Mistake;

/// A part of a text.
#[derive(Debug)]
pub(crate) enum Piece {
    Text(String),
    /// The index of a parameter.
    Value(usize),
}

/// The parameters that pieces name.
pub(crate) fn values(pieces: &[Piece]) -> impl Iterator<Item = usize> {
    pieces.iter().filter_map(|piece| match piece {
        Piece::Value(index) => Some(*index),
        Piece::Text(_) => None,
    })
}

/// # Errors
/// A parameter without placeholder; `places` are those of the parameters.
pub(crate) fn all_used(
    used: &[usize],
    whose: &str,
    parameters: &[Parameter],
    places: &[Range<usize>],
) -> Result<(), Mistake> {
    match parameters.iter().zip(places).enumerate().find(|(index, _)| !used.contains(index)) {
        None => Ok(()),
        Some((_, (unused, place))) => {
            let name = &unused.declared.name;
            Err(Mistake::at(place.clone(), format!("{whose} does not use parameter `{name}`"))
                .with_hint(format!("write `{{{name}}}` where its value belongs")))
        }
    }
}

/// Splits at the placeholders. Braces around anything but a Python name are text, and so is `\{name}`, which stands
/// for `{name}`. With `dollar_is_text`, `${name}` is text: a shell's own, or a secret's name.
///
/// # Errors
/// A placeholder that is no parameter: the end of a sentence, and a hint.
pub(crate) fn pieces(
    text: &str,
    dollar_is_text: bool,
    parameters: &[Parameter],
) -> Result<Vec<Piece>, (String, &'static str)> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        let (before, after) = (&rest[..start], &rest[start + 1..]);
        let name = after.find('}').map(|end| &after[..end]).filter(|name| is_python_name(name));
        let name = name.filter(|_| !(dollar_is_text && before.ends_with('$')));
        let Some(name) = name else {
            plain.push_str(&rest[..=start]);
            rest = after;
            continue;
        };
        rest = &after[name.len() + 1..];
        if let Some(before) = before.strip_suffix('\\') {
            plain.push_str(&format!("{before}{{{name}}}"));
            continue;
        }
        let Some(index) = parameters.iter().position(|parameter| parameter.declared.name == name) else {
            let reason = format!("has `{{{name}}}`, which is no parameter");
            return Err((reason, "declare it under `[operation.params]`, or write a backslash before the brace"));
        };
        plain.push_str(before);
        if !plain.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
        }
        pieces.push(Piece::Value(index));
    }
    plain.push_str(rest);
    if !plain.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    Ok(pieces)
}
