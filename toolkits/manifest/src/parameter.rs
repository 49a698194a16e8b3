//! A parameter: what it declares, and an argument of it as a command or a request gets it.

use fimble_toolkit::{Call, Parameter as Declared, ToolError, is_python_name};
use serde_json::{Value, json};
use toml::Spanned;

use crate::problem::Mistake;
use crate::written::{self, Kind};

/// A parameter that makes sense.
#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) declared: Declared,
    pub(crate) kind: Kind,
    choices: Vec<Value>,
    allow_dash: bool,
}

/// One argument, as the command gets it.
#[derive(Debug)]
pub(crate) struct Argument {
    pub(crate) value: Value,
    pub(crate) text: Text,
    /// May it begin with `-`? Otherwise a program could read it as an option.
    pub(crate) may_be_option: bool,
}

#[derive(Debug)]
pub(crate) enum Text {
    One(String),
    Many(Vec<String>),
}

impl Parameter {
    /// # Errors
    /// A name that Python does not take, or a default or choices that contradict the rest.
    pub(crate) fn new(name: &Spanned<String>, written: written::Parameter) -> Result<Self, Mistake> {
        let (place, name) = (name.span(), name.get_ref());
        if !is_python_name(name) {
            return Err(Mistake::at(place, format!("`{name}`, the name of a parameter, is no Python name")));
        }
        let kind = written.kind;
        let choices = match written.choices {
            None => Vec::new(),
            Some(choices) => {
                let place = choices.span();
                let choices = choices.into_inner();
                if choices.is_empty() {
                    return Err(Mistake::at(place, format!("parameter `{name}` has no choices"))
                        .with_hint("leave `choices` out, or list at least one value"));
                }
                // The choices of a list are those of its items.
                let each = if kind == Kind::List { Kind::Str } else { kind };
                if let Some(wrong) = choices.iter().find(|choice| !fits(each, choice)) {
                    return Err(Mistake::at(place, format!("the choice {wrong} of parameter `{name}` is no {each}")));
                }
                choices
            }
        };
        let required = written.required.unwrap_or(written.default.is_none());
        if let Some(default) = &written.default {
            let (place, default) = (default.span(), default.get_ref());
            if !fits(kind, default) {
                return Err(Mistake::at(place, format!("the default of parameter `{name}` is no {kind}")));
            }
            if !chosen(&choices, default) {
                return Err(Mistake::at(place, format!("the default of parameter `{name}` is none of its choices")));
            }
            if required {
                return Err(Mistake::at(place, format!("parameter `{name}` is required and has a default"))
                    .with_hint("leave one of the two out"));
            }
        }
        let declared = Declared {
            name: name.clone(),
            description: written.description,
            schema: schema(kind, &choices),
            required,
            default: written.default.map(Spanned::into_inner),
        };
        Ok(Self { declared, kind, choices, allow_dash: written.allow_dash })
    }

    /// The call's argument, or the default. `None` if there is neither.
    ///
    /// # Errors
    /// `InvalidArgument`: it is missing, of another type, none of the choices, or has a NUL in it.
    pub(crate) fn argument(&self, call: &Call) -> Result<Option<Argument>, ToolError> {
        let name = &self.declared.name;
        let refuse = |problem: String| ToolError::invalid_argument(format!("argument `{name}` {problem}"));
        let given = call.arguments.get(name).filter(|value| !value.is_null());
        let Some(value) = given.or(self.declared.default.as_ref()) else {
            return if self.declared.required { Err(refuse("is missing".to_owned())) } else { Ok(None) };
        };
        if !fits(self.kind, value) {
            return Err(refuse(format!("must be {}, not {value}", python_type(self.kind))));
        }
        if !chosen(&self.choices, value) {
            let choices = self.choices.iter().map(Value::to_string).collect::<Vec<_>>().join(", ");
            return Err(refuse(format!("must be one of {choices}, not {value}")));
        }
        let text = text(value);
        let parts = match &text {
            Text::One(one) => std::slice::from_ref(one),
            Text::Many(many) => many.as_slice(),
        };
        if parts.iter().any(|part| part.contains('\0')) {
            return Err(refuse("has a NUL character in it, which nothing can take".to_owned()));
        }
        // Choices and defaults are the author's own words.
        let may_be_option = self.allow_dash || given.is_none() || !self.choices.is_empty();
        Ok(Some(Argument { value: value.clone(), text, may_be_option }))
    }
}

fn fits(kind: Kind, value: &Value) -> bool {
    match kind {
        Kind::Str => value.is_string(),
        Kind::Int => value.is_i64() || value.is_u64(),
        Kind::Float => value.is_number(),
        Kind::Bool => value.is_boolean(),
        Kind::List => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
    }
}

fn chosen(choices: &[Value], value: &Value) -> bool {
    match value {
        _ if choices.is_empty() => true,
        Value::Array(items) => items.iter().all(|item| choices.contains(item)),
        value => choices.iter().any(|choice| choice == value || (value.is_number() && same_number(choice, value))),
    }
}

/// `1` and `1.0` are one choice.
fn same_number(one: &Value, other: &Value) -> bool {
    one.as_f64().is_some_and(|number| Some(number) == other.as_f64())
}

fn schema(kind: Kind, choices: &[Value]) -> Value {
    let mut schema = match kind {
        Kind::Str | Kind::List => json!({"type": "string"}),
        Kind::Int => json!({"type": "integer"}),
        Kind::Float => json!({"type": "number"}),
        Kind::Bool => json!({"type": "boolean"}),
    };
    if !choices.is_empty() {
        schema["enum"] = Value::from(choices);
    }
    if kind == Kind::List { json!({"type": "array", "items": schema}) } else { schema }
}

fn python_type(kind: Kind) -> String {
    if kind == Kind::List { "list[str]".to_owned() } else { kind.to_string() }
}

fn text(value: &Value) -> Text {
    match value {
        Value::Array(items) => Text::Many(items.iter().map(plain).collect()),
        other => Text::One(plain(other)),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // Without an exponent and without `.0`: few programs take `1e20` or `5.0`.
        Value::Number(number) if number.is_f64() => number.as_f64().unwrap_or_default().to_string(),
        other => other.to_string(),
    }
}
