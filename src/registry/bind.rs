//! Arguments as a program wrote them, bound to parameter names and checked against the parameters' schemas.
//!
//! It checks what a signature can say: names, presence, simple types, fixed choices and bounds. What only the toolkit
//! can know it leaves to the toolkit. Every message carries what a model needs to write the call right.

use fimble_toolkit::{Operation, Parameter, ToolError};
use serde_json::{Map, Number, Value};

use super::nearest::nearest;
use super::python_type::{literal, quoted, schema_type, value_type};

/// [`bind_call`], with the operation's bare name in the messages.
///
/// # Errors
/// As [`bind_call`].
pub fn bind(
    operation: &Operation,
    positional: Vec<Value>,
    keyword: Map<String, Value>,
) -> Result<Map<String, Value>, ToolError> {
    bind_call(&operation.name, operation, positional, keyword)
}

/// The arguments by parameter name, in the order of the parameters. `called` is how the messages name the operation,
/// e.g. `git_toolkit.log`.
///
/// Optional arguments that were not given stay absent, and so does a `None` for an optional parameter that takes no
/// `None`. An `int` where a `float` is wanted becomes one, and a `float` without a fraction an `int`; nothing else is
/// converted.
///
/// # Errors
/// `InvalidArgument`: too many positional arguments, an unknown name, one given twice, a required one missing, or a
/// value of the wrong type. The message holds all parameters with their types and defaults.
pub fn bind_call(
    called: &str,
    operation: &Operation,
    positional: Vec<Value>,
    mut keyword: Map<String, Value>,
) -> Result<Map<String, Value>, ToolError> {
    let refuse = |problem: String, hint: Option<String>| {
        let error = ToolError::invalid_argument(format!("{called}() {problem}; {}", signature(operation)));
        match hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    };
    let parameters = &operation.parameters;
    if positional.len() > parameters.len() {
        let problem = format!("takes at most {}, got {}", count(parameters.len()), positional.len());
        return Err(refuse(problem, None));
    }
    for name in keyword.keys() {
        match parameters.iter().position(|parameter| parameter.name == *name) {
            None => {
                return Err(refuse(format!("got an unexpected argument {}", quoted(name)), meant(name, parameters)));
            }
            Some(index) if index < positional.len() => {
                let problem = format!("got \"{name}\" twice, as argument {} and by name", index + 1);
                return Err(refuse(problem, None));
            }
            Some(_) => {}
        }
    }
    let mut positional = positional.into_iter();
    let mut bound = Map::new();
    let mut missing = Vec::new();
    for parameter in parameters {
        let Some(value) = positional.next().or_else(|| keyword.shift_remove(&parameter.name)) else {
            if parameter.required {
                missing.push(format!("\"{}\"", parameter.name));
            }
            continue;
        };
        if value.is_null() && !parameter.required && !takes_null(&parameter.schema) {
            continue;
        }
        let value = fit(value, &parameter.schema).map_err(|misfit| {
            refuse(format!("argument \"{}\"{} {}", parameter.name, misfit.place, misfit.problem), misfit.hint)
        })?;
        bound.insert(parameter.name.clone(), value);
    }
    if !missing.is_empty() {
        let noun = if missing.len() == 1 { "argument" } else { "arguments" };
        return Err(refuse(format!("is missing the {noun} {}", missing.join(" and ")), None));
    }
    Ok(bound)
}

/// The types that JSON Schema knows. A schema that names another says nothing that can be checked.
const SIMPLE_TYPES: [&str; 7] = ["string", "integer", "number", "boolean", "null", "array", "object"];

/// Why a value does not fit.
#[derive(Debug)]
struct Misfit {
    /// Where within the argument, e.g. `[2]`.
    place: String,
    problem: String,
    hint: Option<String>,
}

impl Misfit {
    fn new(problem: String, hint: Option<String>) -> Self {
        Self { place: String::new(), problem, hint }
    }

    fn within(mut self, place: &str) -> Self {
        self.place.insert_str(0, place);
        self
    }
}

/// The value, converted where a Python programmer would not see a difference.
fn fit(value: Value, schema: &Value) -> Result<Value, Misfit> {
    let Value::Object(object) = schema else { return Ok(value) };
    if let Some(Value::Array(allowed)) = object.get("enum") {
        return one_of(value, allowed);
    }
    if let Some(only) = object.get("const") {
        return one_of(value, std::slice::from_ref(only));
    }
    if let Some(Value::Array(choices)) = object.get("anyOf").or_else(|| object.get("oneOf")) {
        return fit_any(value, schema, choices);
    }
    let words = type_words(schema);
    if !words.iter().all(|word| SIMPLE_TYPES.contains(word)) {
        return Ok(value);
    }
    if words.is_empty() {
        return Ok(value);
    }
    if let Some(base64) = base64_of(&value)
        && words.contains(&"string")
    {
        return if is_base64(object) { Ok(Value::String(base64.to_owned())) } else { Err(bytes_for_text(schema)) };
    }
    let Some(value) = words.iter().find_map(|word| as_type(&value, word)) else {
        return Err(wrong_type(&value, schema));
    };
    match value {
        Value::Number(number) => in_bounds(&number, object).map(|()| Value::Number(number)),
        Value::Array(items) => match object.get("items") {
            Some(schema) => items
                .into_iter()
                .enumerate()
                .map(|(index, item)| fit(item, schema).map_err(|misfit| misfit.within(&format!("[{index}]"))))
                .collect(),
            None => Ok(Value::Array(items)),
        },
        Value::Object(fields) => fit_fields(fields, object),
        other => Ok(other),
    }
}

/// What programs pass for bytes, in Base64: `python/arguments.py` writes it, and results that are bytes look the same.
fn base64_of(value: &Value) -> Option<&str> {
    let fields = value.as_object().filter(|fields| fields.len() == 2)?;
    fields.get("v").filter(|_| fields.get("$").is_some_and(|tag| tag == "bytes"))?.as_str()
}

/// Whether a text is declared as bytes in Base64, in the way of JSON Schema or of OpenAPI.
fn is_base64(schema: &Map<String, Value>) -> bool {
    let is = |key: &str, word: &str| schema.get(key).is_some_and(|value| value == word);
    is("contentEncoding", "base64") || is("format", "byte")
}

fn bytes_for_text(schema: &Value) -> Misfit {
    let hint = "write value.decode() for text, or base64.b64encode(value).decode()";
    Misfit::new(format!("must be {}, not bytes", schema_type(schema)), Some(hint.to_owned()))
}

fn fit_fields(fields: Map<String, Value>, schema: &Map<String, Value>) -> Result<Value, Misfit> {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    for name in required {
        if !fields.contains_key(name) {
            return Err(Misfit::new(format!("has no key \"{name}\""), None));
        }
    }
    let Some(Value::Object(properties)) = schema.get("properties") else { return Ok(Value::Object(fields)) };
    fields
        .into_iter()
        .map(|(name, value)| match properties.get(&name) {
            Some(schema) => {
                let fitted = fit(value, schema).map_err(|misfit| misfit.within(&format!("[\"{name}\"]")))?;
                Ok((name, fitted))
            }
            None => Ok((name, value)),
        })
        .collect()
}

fn fit_any(value: Value, schema: &Value, choices: &[Value]) -> Result<Value, Misfit> {
    if let Some(fitted) = choices.iter().find_map(|choice| fit(value.clone(), choice).ok()) {
        return Ok(fitted);
    }
    // Fixed choices that are documented one by one: say all of them.
    let fixed: Vec<Value> = choices.iter().filter_map(|choice| choice.get("const")).cloned().collect();
    if fixed.len() == choices.len() {
        return one_of(value, &fixed);
    }
    // With one choice beside `None`, that choice's own message says more.
    match choices.iter().filter(|choice| !takes_null(choice)).collect::<Vec<_>>().as_slice() {
        [only] => fit(value, only),
        _ => Err(wrong_type(&value, schema)),
    }
}

fn type_words(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(word)) => vec![word],
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The value as the JSON Schema type `word`, if it is one.
fn as_type(value: &Value, word: &str) -> Option<Value> {
    match (word, value) {
        ("integer", Value::Number(number)) => whole(number).map(Value::Number),
        ("number", Value::Number(number)) => Some(Value::Number(float(number))),
        ("string", Value::String(_))
        | ("boolean", Value::Bool(_))
        | ("null", Value::Null)
        | ("array", Value::Array(_))
        | ("object", Value::Object(_)) => Some(value.clone()),
        _ => None,
    }
}

fn whole(number: &Number) -> Option<Number> {
    if !number.is_f64() {
        return Some(number.clone());
    }
    // Above 2^53 a float may stand for a neighbour of what was meant.
    let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0)?;
    #[expect(clippy::cast_possible_truncation, reason = "a whole number within 2^53 is an i64")]
    Some(Number::from(float as i64))
}

/// An integer that a float cannot hold exactly stays as it is: JSON's number is both.
fn float(number: &Number) -> Number {
    let exact = number.as_f64().filter(|float| float.abs() <= 9_007_199_254_740_992.0);
    exact.and_then(Number::from_f64).unwrap_or_else(|| number.clone())
}

fn in_bounds(number: &Number, schema: &Map<String, Value>) -> Result<(), Misfit> {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let value = number.as_f64().unwrap_or(f64::NAN);
    for (key, outside, words) in [
        ("minimum", bound("minimum").is_some_and(|least| value < least), "at least"),
        ("maximum", bound("maximum").is_some_and(|most| value > most), "at most"),
        ("exclusiveMinimum", bound("exclusiveMinimum").is_some_and(|least| value <= least), "more than"),
        ("exclusiveMaximum", bound("exclusiveMaximum").is_some_and(|most| value >= most), "less than"),
    ] {
        if outside {
            let limit = schema.get(key).map(literal).unwrap_or_default();
            return Err(Misfit::new(format!("must be {words} {limit}, not {number}"), None));
        }
    }
    Ok(())
}

fn one_of(value: Value, allowed: &[Value]) -> Result<Value, Misfit> {
    if allowed.contains(&value) {
        return Ok(value);
    }
    let names: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
    let near = value.as_str().and_then(|text| nearest(text, &names));
    let hint = near.map(|name| format!("did you mean \"{name}\"?"));
    let listed = allowed.iter().map(literal).collect::<Vec<_>>().join(", ");
    let words = if allowed.len() == 1 { "" } else { "one of " };
    Err(Misfit::new(format!("must be {words}{listed}, not {}", literal(&value)), hint))
}

fn wrong_type(value: &Value, schema: &Value) -> Misfit {
    let wanted = schema_type(schema);
    let problem = format!("must be {wanted}, not {} {}", value_type(value), literal(value));
    let problem = if value.is_null() { format!("must be {wanted}, not None") } else { problem };
    // Only the type is asked, not `fit`: it would come back here for a hint of its own.
    let has_type = |value: &Value| type_words(schema).iter().any(|word| as_type(value, word).is_some());
    let unquoted = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let hint = match (value, unquoted) {
        (Value::String(_), Some(inner)) if !inner.is_null() && has_type(&inner) => {
            Some(format!("write {} without quotes", literal(&inner)))
        }
        (Value::String(_), _) if wanted.starts_with("list[str]") => Some(format!("write [{}]", literal(value))),
        (Value::Number(_), _) if has_type(&Value::String(String::new())) => Some(format!("write \"{value}\"")),
        _ => None,
    };
    Misfit::new(problem, hint)
}

fn takes_null(schema: &Value) -> bool {
    match schema {
        Value::Object(object) => {
            let choices = object.get("anyOf").or_else(|| object.get("oneOf")).and_then(Value::as_array);
            if let Some(choices) = choices {
                return choices.iter().any(takes_null);
            }
            if let Some(Value::Array(allowed)) = object.get("enum") {
                return allowed.contains(&Value::Null);
            }
            match object.get("type") {
                Some(Value::String(word)) => word == "null",
                Some(Value::Array(words)) => words.iter().any(|word| word == "null"),
                _ => !object.contains_key("const") || object.get("const") == Some(&Value::Null),
            }
        }
        _ => true,
    }
}

fn meant(name: &str, parameters: &[Parameter]) -> Option<String> {
    let names: Vec<&str> = parameters.iter().map(|parameter| parameter.name.as_str()).collect();
    nearest(name, &names).map(|name| format!("did you mean \"{name}\"?"))
}

fn signature(operation: &Operation) -> String {
    if operation.parameters.is_empty() {
        return "it takes no arguments".into();
    }
    let parameters = operation.parameters.iter().map(|parameter| {
        let mut text = format!("{}: {}", parameter.name, schema_type(&parameter.schema));
        if !parameter.required {
            let default = parameter.default.as_ref().map_or_else(|| "…".into(), literal);
            text.push_str(&format!(" = {default}"));
        }
        text
    });
    format!("parameters: {}", parameters.collect::<Vec<_>>().join(", "))
}

fn count(arguments: usize) -> String {
    if arguments == 1 { "1 argument".into() } else { format!("{arguments} arguments") }
}

#[cfg(test)]
#[path = "bind_tests.rs"]
mod tests;
