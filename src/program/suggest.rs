//! A wrong call as it was meant, where its own arguments say so: names that are near, the only name that is left, a
//! literal that lacks or has quotes. It is told to the model and never run as it is: what it means is the model's to say.

use fimble_toolkit::{Declaration, Operation, Parameter, literal};
use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;
use serde_json::Value;

use super::edit::slice;
use super::literal_type::{known_literal, mismatch, takes};
use super::toolkit_call::nearest;

/// The longest call in characters that is suggested.
const LONGEST: usize = 240;

/// The call with all its arguments where they belong; `None` if that is not sure.
pub(super) fn corrected(source: &str, toolkit: &Declaration, operation: &Operation, call: &ExprCall) -> Option<String> {
    let arguments = &call.arguments;
    if arguments.args.iter().any(Expr::is_starred_expr) || arguments.args.len() > operation.parameters.len() {
        return None;
    }
    let mut given: Vec<(&Parameter, &Expr)> = operation.parameters.iter().zip(&arguments.args).collect();
    let mut strangers: Vec<(&str, &Expr)> = Vec::new();
    for keyword in &arguments.keywords {
        let name = keyword.arg.as_ref()?.as_str();
        match operation.parameters.iter().find(|parameter| parameter.name == name) {
            Some(parameter) if given.iter().any(|(known, _)| known.name == parameter.name) => return None,
            Some(parameter) => given.push((parameter, &keyword.value)),
            None => strangers.push((name, &keyword.value)),
        }
    }
    let mut free: Vec<&Parameter> = operation.parameters.iter().collect();
    free.retain(|parameter| !given.iter().any(|(known, _)| known.name == parameter.name));
    let mut left = Vec::new();
    for (name, value) in strangers {
        let near = nearest(name, free.iter().map(|parameter| parameter.name.as_str())).first().copied();
        match free.iter().position(|parameter| near == Some(parameter.name.as_str())) {
            Some(index) => given.push((free.remove(index), value)),
            None => left.push(value),
        }
    }
    // What has no name like it is what is missing, if that is one.
    let missing: Vec<&Parameter> = free.into_iter().filter(|parameter| parameter.required).collect();
    match (left.as_slice(), missing.as_slice()) {
        ([], []) => {}
        ([value], [parameter]) => given.push((parameter, value)),
        _ => return None,
    }
    let text = |(parameter, value): &(&Parameter, &Expr)| {
        let value = match mismatch(&parameter.schema, value) {
            Some(_) if value.is_none_literal_expr() && !parameter.required => "None".to_owned(),
            Some(_) => requoted(parameter, value)?,
            None => slice(source, value.range()).to_owned(),
        };
        Some(format!("{}={value}", parameter.name))
    };
    let arguments: Option<Vec<String>> = given.iter().map(text).collect();
    let text = format!("await {}.{}({})", toolkit.name, operation.name, arguments?.join(", "));
    (text.chars().count() <= LONGEST && !text.contains('\n') && !text.contains('`')).then_some(text)
}

/// `"123"` for `123`, or `123` for `"123"`, where the schema takes that.
fn requoted(parameter: &Parameter, value: &Expr) -> Option<String> {
    let other = match known_literal(value)? {
        Value::String(text) => serde_json::from_str::<Value>(&text).ok().filter(|inner| !inner.is_null())?,
        Value::Number(number) => Value::String(number.to_string()),
        _ => return None,
    };
    takes(&parameter.schema, &other).then(|| literal(&other))
}
