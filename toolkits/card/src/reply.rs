//! What a person did with a card, as the program gets it.

use serde_json::{Map, Value};

use crate::check::clean;
use crate::{Card, Field, FieldKind};

/// Characters of an answer that are read.
const LONGEST: usize = 10_000;

impl Card {
    /// What the program gets for an answer to the card on `surface`: what was typed, or a front end's event as JSON,
    /// `{"name": "submit", "surfaceId": "…", "context": {…}}`; without `surfaceId` it is meant for this card.
    ///
    /// # Errors
    /// The sentence that says how to answer, or that the event is another card's.
    pub fn reply(&self, surface: &str, said: &str) -> Result<Value, String> {
        let said = clean(said, LONGEST);
        let event = match event(&said) {
            Some(Event { surface: Some(other), .. }) if other != surface => {
                let other = clean(&other, 80);
                return Err(format!("it is of the card on `{other}`, and the one on `{surface}` waits"));
            }
            Some(Event { name, context, .. }) => Some((name, context)),
            None => None,
        };
        match self {
            Card::HandOver { .. } => {
                let note =
                    event.map_or(Value::from(said), |(_, context)| context.get("note").cloned().unwrap_or_default());
                let note = note.as_str().unwrap_or_default().trim().to_owned();
                if note.is_empty() {
                    Err("say what you did, or what is to be done".to_owned())
                } else {
                    Ok(note.into())
                }
            }
            Card::Operation { .. } => {
                let word = event.map_or(said, |(name, _)| name);
                yes(&word).map(Value::from).ok_or_else(|| "answer confirm or cancel".to_owned())
            }
            Card::Choice { options, many, .. } => {
                let chosen = match event {
                    Some((_, context)) => context.get("choice").cloned().unwrap_or_default(),
                    None => Value::from(said),
                };
                choice(&chosen, options, *many)
            }
            Card::Form { fields, .. } => {
                let given = match event {
                    Some((_, context)) => context,
                    None => typed(&said, fields)?,
                };
                form(given, fields)
            }
            Card::Table { .. } | Card::Chart { .. } | Card::Links { .. } | Card::Progress { .. } => {
                Err("it asks nothing".to_owned())
            }
        }
    }
}

/// What a front end says that a person did.
struct Event {
    name: String,
    /// The surface on which it was done, if it says so.
    surface: Option<String>,
    context: Map<String, Value>,
}

fn event(said: &str) -> Option<Event> {
    let Ok(Value::Object(mut fields)) = serde_json::from_str(said) else { return None };
    if let Some(Value::Object(inner)) = fields.remove("action") {
        fields = inner;
    }
    let name = fields.get("name")?.as_str()?.to_owned();
    let surface = fields.get("surfaceId").and_then(Value::as_str).map(str::to_owned);
    match fields.remove("context")? {
        Value::Object(context) => Some(Event { name, surface, context }),
        _ => None,
    }
}

fn yes(word: &str) -> Option<bool> {
    match word.trim().to_lowercase().as_str() {
        "confirm" | "yes" | "y" | "1" | "true" => Some(true),
        "cancel" | "no" | "n" | "2" | "false" => Some(false),
        _ => None,
    }
}

fn choice(chosen: &Value, options: &[String], many: bool) -> Result<Value, String> {
    let wanted: Vec<String> = match chosen {
        Value::Array(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Value::String(text) if many && one(text, options).is_none() => {
            let none = ["none", ""].contains(&text.trim().to_lowercase().as_str());
            if none { Vec::new() } else { text.split(',').map(str::to_owned).collect() }
        }
        Value::String(text) => vec![text.clone()],
        _ => Vec::new(),
    };
    let found: Option<Vec<String>> = wanted.iter().map(|text| one(text, options)).collect();
    match found {
        Some(mut found) if many => {
            let mut seen = Vec::new();
            found.retain(|option| {
                !seen.contains(option) && {
                    seen.push(option.clone());
                    true
                }
            });
            Ok(found.into())
        }
        Some(found) if found.len() == 1 => Ok(found[0].clone().into()),
        _ if many => Err(format!("answer with numbers from 1 to {}, or none", options.len())),
        _ => Err(format!("answer with a number from 1 to {}", options.len())),
    }
}

/// The option that a number or its own words mean.
fn one(text: &str, options: &[String]) -> Option<String> {
    let text = text.trim();
    let is_it = |option: &&String| option.to_lowercase() == text.to_lowercase();
    if let Some(option) = options.iter().find(|option| *option == text).or_else(|| options.iter().find(is_it)) {
        return Some(option.clone());
    }
    let number = text.trim_end_matches('.').parse::<usize>().ok()?.checked_sub(1)?;
    options.get(number).cloned()
}

/// `name=value; name=value`, a JSON object, or the value of the only field.
fn typed(said: &str, fields: &[Field]) -> Result<Map<String, Value>, String> {
    if let Ok(Value::Object(given)) = serde_json::from_str(said) {
        return Ok(given);
    }
    if let [only] = fields
        && !said.trim_start().starts_with(&format!("{}=", only.name))
    {
        return Ok(Map::from_iter([(only.name.clone(), Value::from(said))]));
    }
    let mut given = Map::new();
    for part in said.split([';', '\n']).map(str::trim).filter(|part| !part.is_empty()) {
        let (name, value) =
            part.split_once('=').ok_or_else(|| format!("`{part}` has no `=`; answer as name=value; name=value"))?;
        given.insert(name.trim().to_owned(), Value::from(value.trim()));
    }
    Ok(given)
}

fn form(mut given: Map<String, Value>, fields: &[Field]) -> Result<Value, String> {
    let mut filled = Map::new();
    for field in fields {
        let value = given.remove(&field.name).filter(|value| !value.is_null() && value.as_str() != Some(""));
        let value = match (value, &field.default) {
            (Some(value), _) => read(field, value)?,
            (None, Some(default)) => default.clone(),
            (None, None) => return Err(format!("`{}` must be filled in", field.name)),
        };
        filled.insert(field.name.clone(), value);
    }
    match given.keys().next() {
        Some(unknown) => Err(format!("there is no field `{}`", clean(unknown, 80))),
        None => Ok(filled.into()),
    }
}

fn read(field: &Field, value: Value) -> Result<Value, String> {
    let text = value.as_str().map(str::trim);
    let read = match (field.kind, text) {
        (FieldKind::Int, Some(text)) => text.parse::<i64>().ok().map(Value::from),
        (FieldKind::Float, Some(text)) => text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::from),
        (FieldKind::Bool, Some(text)) => yes(text).map(Value::from),
        (FieldKind::Choice, _) => {
            // A list of one is how a picker says it.
            let value = value.as_array().and_then(|items| items.first()).unwrap_or(&value);
            value.as_str().and_then(|text| one(text, &field.options)).map(Value::from)
        }
        _ => Some(value.clone()),
    };
    let what = match field.kind {
        FieldKind::Str => "a text",
        FieldKind::Int => "a whole number",
        FieldKind::Float => "a number",
        FieldKind::Bool => "yes or no",
        FieldKind::Choice => "one of its options",
    };
    read.filter(|value| fits(field, value)).ok_or_else(|| format!("`{}` must be {what}", field.name))
}

/// True if a value is of a field's type.
pub(crate) fn fits(field: &Field, value: &Value) -> bool {
    match field.kind {
        FieldKind::Str => value.is_string(),
        FieldKind::Int => value.is_i64() || value.is_u64(),
        FieldKind::Float => value.is_number(),
        FieldKind::Bool => value.is_boolean(),
        FieldKind::Choice => value.as_str().is_some_and(|text| field.options.iter().any(|option| option == text)),
    }
}
