//! A server's question to the person, a form of a few fields, put field by field. It does not know who is asked, nor how
//! the answer travels.

use serde_json::{Map, Value, json};

use crate::Limits;
use crate::calls::Waiting;

/// Puts the parameters of an `elicitation/create` to the person of a call; its result.
pub(crate) async fn put(server: &str, parameters: &Value, waiting: &Waiting, limits: &Limits) -> Value {
    let message = parameters.get("message").and_then(Value::as_str).map(|text| limits.text(text)).unwrap_or_default();
    let message = format!("The MCP server `{server}` asks: {message}");
    if parameters.get("mode").and_then(Value::as_str) == Some("url") {
        // The person would have to trust an address that a server chose.
        waiting.leave(message);
        return json!({"action": "decline"});
    }
    let schema = parameters.get("requestedSchema").unwrap_or(&Value::Null);
    let required: Vec<&str> = match schema.get("required") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let mut content = Map::new();
    let fields = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    if fields.is_empty() {
        return match waiting.ask(&message, &["accept".to_owned(), DECLINE.to_owned()]).await {
            Some(answer) if answer.trim() == "accept" => json!({"action": "accept", "content": {}}),
            _ => json!({"action": "decline"}),
        };
    }
    for (name, field) in &fields {
        let question = format!("{message}\n{}", label(name, field, required.contains(&name.as_str()), limits));
        let choices = choices(field);
        let mut again = String::new();
        let value = loop {
            let Some(answer) = waiting.ask(&format!("{question}{again}"), &choices).await else {
                return json!({"action": "decline"});
            };
            match read(answer.trim(), field, &choices) {
                _ if answer.trim() == DECLINE => return json!({"action": "decline"}),
                Ok(None) if required.contains(&name.as_str()) => again = "\nIt must be given.".to_owned(),
                Ok(value) => break value,
                Err(problem) => again = format!("\n{problem}"),
            }
        };
        if let Some(value) = value {
            content.insert(name.clone(), value);
        }
    }
    json!({"action": "accept", "content": content})
}

/// What the person says to give nothing.
const DECLINE: &str = "decline";

/// Characters of a field's name or description.
const LABEL_CHARACTERS: usize = 300;

/// Most answers that a field offers.
const CHOICES: usize = 50;

fn label(name: &str, field: &Value, required: bool, limits: &Limits) -> String {
    let limits = Limits { text_characters: LABEL_CHARACTERS, ..*limits };
    let text = |key: &str| field.get(key).and_then(Value::as_str).map(|text| limits.text(text));
    let mut label = text("title").unwrap_or_else(|| limits.text(name));
    if let Some(description) = text("description") {
        label = format!("{label} ({description})");
    }
    let kind = field.get("type").and_then(Value::as_str).unwrap_or("string");
    if kind != "string" {
        label = format!("{label}, {kind}");
    }
    let empty = if required { "" } else { "nothing to leave it out, " };
    format!("{label} [{empty}`{DECLINE}` to refuse]")
}

/// The answers that a field allows, if they are few.
fn choices(field: &Value) -> Vec<String> {
    if field.get("type").and_then(Value::as_str) == Some("boolean") {
        return vec!["true".to_owned(), "false".to_owned()];
    }
    let texts = |value: &Value| -> Vec<String> {
        let texts = value.as_array().into_iter().flatten().take(CHOICES);
        // `{"const": "a", "title": "A"}` is another way to write one.
        texts.filter_map(|one| one.as_str().or_else(|| one.get("const")?.as_str())).map(str::to_owned).collect()
    };
    ["enum", "oneOf", "anyOf"].iter().filter_map(|key| field.get(key)).map(texts).next().unwrap_or_default()
}

/// The answer as a value of the field's type; `None` if it is left out.
fn read(answer: &str, field: &Value, choices: &[String]) -> Result<Option<Value>, String> {
    if answer.is_empty() {
        return Ok(field.get("default").cloned());
    }
    let kind = field.get("type").and_then(Value::as_str).unwrap_or("string");
    match kind {
        "boolean" => match answer.to_lowercase().as_str() {
            "true" | "yes" | "y" => Ok(Some(Value::Bool(true))),
            "false" | "no" | "n" => Ok(Some(Value::Bool(false))),
            _ => Err("Answer true or false.".to_owned()),
        },
        "integer" => {
            answer.parse::<i64>().map(|number| Some(json!(number))).map_err(|_| "It must be a whole number.".into())
        }
        "number" => match answer.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Some(json!(number))),
            _ => Err("It must be a number.".to_owned()),
        },
        "array" => Ok(Some(answer.split(',').map(str::trim).filter(|part| !part.is_empty()).collect())),
        _ if choices.is_empty() || choices.iter().any(|choice| choice == answer) => Ok(Some(json!(answer))),
        _ => Err(format!("It must be one of {}.", choices.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_by_the_fields_type() {
        let word = json!({"type": "string", "enum": ["a", "b"]});
        for (answer, field, expected) in [
            ("text", json!({"type": "string"}), Ok(Some(json!("text")))),
            ("", json!({"type": "string"}), Ok(None)),
            ("", json!({"type": "integer", "default": 3}), Ok(Some(json!(3)))),
            ("7", json!({"type": "integer"}), Ok(Some(json!(7)))),
            ("seven", json!({"type": "integer"}), Err("It must be a whole number.")),
            ("1.5", json!({"type": "number"}), Ok(Some(json!(1.5)))),
            ("inf", json!({"type": "number"}), Err("It must be a number.")),
            ("yes", json!({"type": "boolean"}), Ok(Some(json!(true)))),
            ("perhaps", json!({"type": "boolean"}), Err("Answer true or false.")),
            ("a", word.clone(), Ok(Some(json!("a")))),
            ("c", word, Err("It must be one of a, b.")),
            ("a, b", json!({"type": "array"}), Ok(Some(json!(["a", "b"])))),
        ] {
            assert_eq!(read(answer, &field, &choices(&field)), expected.map_err(str::to_owned), "{answer} {field}");
        }
    }
}
