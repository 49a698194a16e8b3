//! What an author should look at in a declaration before a model does: names, docs, types, risk, idempotency, timeouts,
//! length. It calls nothing, and does not know where the declaration came from.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::{Declaration, Operation, Parameter, Risk, is_python_name, signature};

/// Characters of a docstring that a stub shows.
pub const SHOWN_DOCSTRING: usize = 160;

/// Parameters of one operation that a model still keeps apart.
const MANY_PARAMETERS: usize = 12;

/// Characters of one signature; about four are a token.
const LONG_SIGNATURE: usize = 600;

/// A call that takes longer should be begun by one operation and looked at by another.
const LONG_TIMEOUT: Duration = Duration::from_secs(3_600);

/// First words of operations that change something.
const CHANGING: [&str; 25] = [
    "add", "append", "apply", "assign", "commit", "create", "edit", "enable", "disable", "insert", "install", "merge",
    "move", "post", "publish", "push", "put", "rename", "save", "send", "set", "start", "update", "upload", "write",
];

/// First words of operations that lose or interrupt something.
const LOSING: [&str; 16] = [
    "cancel", "clear", "delete", "destroy", "drop", "erase", "flush", "kill", "purge", "reboot", "remove", "reset",
    "restart", "shutdown", "stop", "truncate",
];

/// First words of operations that only look.
const LOOKING: [&str; 10] = ["count", "describe", "fetch", "find", "get", "list", "read", "search", "show", "status"];

/// First words of operations of which a second call does a second thing.
const ADDING: [&str; 7] = ["add", "append", "create", "insert", "post", "publish", "send"];

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Models use it badly, or people are asked too often or too rarely.
    Warning,
    /// It cannot be used as it is.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if *self == Severity::Error { "error" } else { "warning" })
    }
}

/// Something to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// What it is about: `weather_toolkit`, `weather_toolkit.today` or `weather_toolkit.today(city)`.
    pub place: String,
    /// One sentence without a full stop.
    pub message: String,
    /// What to do about it.
    pub hint: &'static str,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}: {} (hint: {})", self.severity, self.place, self.message, self.hint)
    }
}

/// What an author should look at in `declaration`, in its order. Empty if nothing.
///
/// ```
/// # use fimble_toolkit::{Declaration, check};
/// let nothing = Declaration { name: "x".to_owned(), description: String::new(), operations: Vec::new() };
/// assert_eq!(check(&nothing).len(), 3);
/// ```
pub fn check(declaration: &Declaration) -> Vec<Finding> {
    let name = &declaration.name;
    let mut findings = Findings::default();
    findings.name(name, name);
    if is_python_name(name) && !name.ends_with("_toolkit") {
        findings.warn(
            name,
            "its name does not end with `_toolkit`",
            "models are told that toolkits are named so; rename it",
        );
    }
    findings.docs(name, &declaration.description, "say in one sentence what it is for; the model chooses by it");
    if declaration.operations.is_empty() {
        findings.error(name, "it has no operation", "give it at least one");
    }
    for (index, operation) in declaration.operations.iter().enumerate() {
        let place = format!("{name}.{}", operation.name);
        if declaration.operations.iter().take(index).any(|earlier| earlier.name == operation.name) {
            findings.error(&place, "there is another operation of that name", "rename one of them");
        }
        findings.operation(&place, operation);
    }
    findings.0
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn error(&mut self, place: &str, message: impl Into<String>, hint: &'static str) {
        self.0.push(Finding { severity: Severity::Error, place: place.to_owned(), message: message.into(), hint });
    }

    fn warn(&mut self, place: &str, message: impl Into<String>, hint: &'static str) {
        self.0.push(Finding { severity: Severity::Warning, place: place.to_owned(), message: message.into(), hint });
    }

    fn name(&mut self, place: &str, name: &str) {
        if !is_python_name(name) {
            let message = format!("`{name}` is no Python name");
            self.error(place, message, "use ASCII letters, digits and `_`, no digit first, and no Python keyword");
        } else if name.starts_with('_') || name == "self" {
            let message = format!("the name `{name}` is kept for the class itself");
            self.error(place, message, "begin it with a letter, and do not call it `self`");
        } else if name.contains(|character: char| character.is_ascii_uppercase()) {
            let message = format!("`{name}` is not written as Python names are");
            self.warn(place, message, "models guess `lower_case_names`; rename it");
        }
    }

    fn docs(&mut self, place: &str, description: &str, hint: &'static str) {
        let paragraph = description.trim().lines().take_while(|line| !line.trim().is_empty());
        let characters = paragraph.map(|line| line.trim().chars().count() + 1).sum::<usize>().saturating_sub(1);
        if characters == 0 {
            self.error(place, "it has no description", hint);
        } else if characters > SHOWN_DOCSTRING {
            let message = format!(
                "the first paragraph of its description has {characters} characters, and the model is shown {SHOWN_DOCSTRING}"
            );
            self.warn(place, message, "say the main thing first, and the rest after an empty line");
        }
    }

    fn operation(&mut self, place: &str, operation: &Operation) {
        self.name(place, &operation.name);
        self.docs(place, &operation.description, "say in one sentence what it does and what comes back");
        for (index, parameter) in operation.parameters.iter().enumerate() {
            let place = format!("{place}({})", parameter.name);
            if operation.parameters.iter().take(index).any(|earlier| earlier.name == parameter.name) {
                self.error(&place, "there is another parameter of that name", "rename one of them");
            }
            self.parameter(&place, parameter);
        }
        if operation.parameters.len() > MANY_PARAMETERS {
            let message = format!("it has {} parameters", operation.parameters.len());
            self.warn(place, message, "leave out what a model never needs, or make two operations of it");
        }
        if !says_type(&operation.returns) {
            let hint =
                "declare what comes back, or name its fields in the description: nothing can tell a wrong one else";
            self.warn(place, "its result has no type", hint);
        }
        let characters = signature(operation).chars().count();
        if characters > LONG_SIGNATURE {
            let message = format!("its signature has {characters} characters, about {} tokens", characters / 4);
            self.warn(place, message, "every prompt pays for it; shorten names, choices and result types");
        }
        self.risk(place, operation);
        self.repetition(place, operation);
        self.timeout(place, operation);
        self.paging(place, operation);
    }

    fn parameter(&mut self, place: &str, parameter: &Parameter) {
        self.name(place, &parameter.name);
        if !says_type(&parameter.schema) {
            self.warn(place, "it has no type", "declare one: a wrong argument is then refused before the call");
        }
        let Some(default) = &parameter.default else { return };
        if parameter.required {
            self.error(place, "it is required and has a default", "leave one of the two out");
        }
        if !default.is_null() && !fits(default, &parameter.schema) {
            self.error(place, format!("its default {default} is not of its type"), "change the default or the type");
        }
    }

    fn risk(&mut self, place: &str, operation: &Operation) {
        let word = first_word(&operation.name);
        let name = &operation.name;
        match operation.risk {
            Risk::Read if LOSING.contains(&word) => {
                let message = format!("`{name}` sounds as if it loses something, and its risk is `read`");
                self.warn(place, message, "reads run without asking; say `destructive`, or rename it");
            }
            Risk::Read if CHANGING.contains(&word) => {
                let message = format!("`{name}` sounds as if it changes something, and its risk is `read`");
                self.warn(place, message, "reads run without asking; say `write`, or rename it");
            }
            Risk::Write if LOSING.contains(&word) => {
                let message = format!("`{name}` sounds as if it loses something, and its risk is `write`");
                self.warn(place, message, "say `destructive` if it cannot be taken back");
            }
            Risk::Write | Risk::Destructive if LOOKING.contains(&word) => {
                let message = format!("`{name}` sounds as if it only looks, and its risk is `{}`", operation.risk);
                self.warn(place, message, "people are asked at each call; say `read` if it changes nothing");
            }
            _ => {}
        }
    }

    fn repetition(&mut self, place: &str, operation: &Operation) {
        if operation.risk == Risk::Read && !operation.idempotent {
            let hint = "a call that a crash cut off is then left to a person; a read can be repeated";
            self.warn(place, "it reads and is not idempotent", hint);
        }
        if operation.risk != Risk::Read && operation.idempotent && ADDING.contains(&first_word(&operation.name)) {
            let message =
                format!("`{}` says it is idempotent, and sounds as if it adds something each time", operation.name);
            self.warn(
                place,
                message,
                "it is repeated after a crash: be sure that the call's key makes the second one no effect",
            );
        }
    }

    fn timeout(&mut self, place: &str, operation: &Operation) {
        match operation.timeout {
            Some(timeout) if timeout.is_zero() => {
                self.error(place, "its timeout is 0, so each call ends at once", "give seconds, or leave it out");
            }
            Some(timeout) if timeout > LONG_TIMEOUT => {
                let message = format!("it may take {} s", timeout.as_secs());
                self.warn(place, message, "a program waits for it: let one operation begin it and another one look");
            }
            _ => {}
        }
    }

    fn paging(&mut self, place: &str, operation: &Operation) {
        let Some(paging) = &operation.paging else { return };
        let argument = &paging.argument;
        match operation.parameters.iter().find(|parameter| parameter.name == *argument) {
            None => {
                let message = format!("its pages are asked for by `{argument}`, which is no parameter of it");
                self.error(place, message, "name the parameter that takes the token of a page");
            }
            Some(parameter) if parameter.required => {
                let message = format!("its pages are asked for by `{argument}`, which must be given");
                self.error(place, message, "let it be left out: a call without it gets the first page");
            }
            Some(_) => {}
        }
        if paging.token.is_empty() {
            let hint = "name the field of a result that has it; where there is none, leave `paging` out";
            self.error(place, "nothing says where a result has the token of the next page", hint);
        }
        for (path, what) in [(&paging.token, "token of the next page"), (&paging.items, "list of items")] {
            if let Some(name) = missing_field(&operation.returns, path) {
                let message = format!("its result has no field `{name}`, where the {what} is to be found");
                self.error(place, message, "name fields that the result's type has");
            }
        }
    }
}

/// The first name of a path that a schema's fields do not have. Where the schema names no fields, or refers to others, it is not
/// looked for.
fn missing_field<'a>(mut schema: &Value, path: &'a [String]) -> Option<&'a str> {
    for name in path {
        let fields = schema.get("properties")?.as_object()?;
        match fields.get(name) {
            Some(field) => schema = field,
            None => return Some(name),
        }
    }
    None
}

/// True if a schema says what a value is.
fn says_type(schema: &Value) -> bool {
    schema.as_object().is_some_and(|fields| {
        ["type", "$ref", "enum", "const", "anyOf", "oneOf", "allOf", "properties"]
            .iter()
            .any(|key| fields.contains_key(*key))
    })
}

/// True unless a schema's plain `type` or `enum` excludes the value.
fn fits(value: &Value, schema: &Value) -> bool {
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        return choices.contains(value);
    }
    let is = |name: &str| match name {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    };
    match schema.get("type") {
        Some(Value::String(name)) => is(name),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).any(is),
        _ => true,
    }
}

fn first_word(name: &str) -> &str {
    name.split('_').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Paging;

    fn operation(name: &str, risk: Risk) -> Operation {
        Operation {
            name: name.to_owned(),
            description: "Does it.".to_owned(),
            parameters: Vec::new(),
            returns: json!({"type": "string"}),
            risk,
            idempotent: risk == Risk::Read,
            timeout: None,
            enabled: true,
            paging: None,
        }
    }

    fn parameter(name: &str, schema: Value) -> Parameter {
        Parameter { name: name.to_owned(), description: String::new(), schema, required: true, default: None }
    }

    fn messages(operations: Vec<Operation>) -> Vec<(Severity, String, String)> {
        let (name, description) = ("x_toolkit".to_owned(), "Things.".to_owned());
        let findings = check(&Declaration { name, description, operations });
        findings.into_iter().map(|finding| (finding.severity, finding.place, finding.message)).collect()
    }

    #[track_caller]
    fn check_one(operation: Operation, severity: Severity, place: &str, part: &str) {
        let found = messages(vec![operation]);
        let [(told, at, message)] = &found[..] else { panic!("{found:?}") };
        assert!((*told, at.as_str()) == (severity, place) && message.contains(part), "{found:?}");
    }

    #[test]
    fn what_is_in_order_is_not_mentioned() {
        let looks = Operation {
            parameters: vec![parameter("path", json!({"type": "string"}))],
            ..operation("get", Risk::Read)
        };
        assert_eq!(messages(vec![looks, operation("delete", Risk::Destructive), operation("save", Risk::Write)]), []);
    }

    #[test]
    fn each_kind_of_mistake_is_told_once_and_at_its_place() {
        use Severity::{Error, Warning};
        let read = |name: &str| operation(name, Risk::Read);
        let with = |parameter: Parameter| Operation { parameters: vec![parameter], ..operation("get", Risk::Read) };
        let text = || json!({"type": "string"});
        let at = "x_toolkit.get";
        check_one(read("2nd"), Error, "x_toolkit.2nd", "no Python name");
        check_one(read("_hidden"), Error, "x_toolkit._hidden", "kept for the class itself");
        check_one(read("getAll"), Warning, "x_toolkit.getAll", "not written as Python names");
        check_one(Operation { description: " \n".to_owned(), ..read("get") }, Error, at, "no description");
        check_one(Operation { description: "long ".repeat(40), ..read("get") }, Warning, at, "199 characters");
        check_one(Operation { returns: json!(true), ..read("get") }, Warning, at, "result has no type");
        check_one(Operation { idempotent: false, ..read("get") }, Warning, at, "not idempotent");
        check_one(Operation { timeout: Some(Duration::ZERO), ..read("get") }, Error, at, "timeout is 0");
        check_one(Operation { timeout: Some(Duration::from_secs(7_200)), ..read("get") }, Warning, at, "7200 s");
        check_one(read("delete_all"), Warning, "x_toolkit.delete_all", "loses something, and its risk is `read`");
        check_one(read("send"), Warning, "x_toolkit.send", "changes something, and its risk is `read`");
        check_one(
            operation("kill", Risk::Write),
            Warning,
            "x_toolkit.kill",
            "loses something, and its risk is `write`",
        );
        check_one(operation("get", Risk::Destructive), Warning, at, "only looks, and its risk is `destructive`");
        check_one(
            Operation { idempotent: true, ..operation("send", Risk::Write) },
            Warning,
            "x_toolkit.send",
            "each time",
        );
        check_one(with(parameter("from", text())), Error, "x_toolkit.get(from)", "no Python name");
        check_one(with(parameter("any", json!({}))), Warning, "x_toolkit.get(any)", "no type");
        let wrong = Parameter { required: false, default: Some(json!(3)), ..parameter("a", text()) };
        check_one(with(wrong), Error, "x_toolkit.get(a)", "its default 3 is not of its type");
        let both = Parameter { default: Some(json!("3")), ..parameter("a", text()) };
        check_one(with(both), Error, "x_toolkit.get(a)", "required and has a default");
        let many = (0..13).map(|number| parameter(&format!("p{number}"), text())).collect();
        check_one(Operation { parameters: many, ..read("get") }, Warning, at, "13 parameters");
        let long = json!({"enum": (0..200).map(|number| format!("choice {number}")).collect::<Vec<_>>()});
        check_one(with(parameter("a", long)), Warning, at, "tokens");
        let paged = |argument: &str, token: &str| {
            let cursor = Parameter { required: false, ..parameter("cursor", text()) };
            let fields = json!({"type": "object", "properties": {"next": text(), "rows": {"type": "array"}}});
            let paging = Some(Paging::new(argument, token, "rows"));
            let parameters = vec![parameter("path", text()), cursor];
            Operation { parameters, returns: fields, paging, ..read("get") }
        };
        assert_eq!(messages(vec![paged("cursor", "next")]), []);
        check_one(paged("page", "next"), Error, at, "`page`, which is no parameter");
        check_one(paged("path", "next"), Error, at, "`path`, which must be given");
        check_one(paged("cursor", ""), Error, at, "nothing says where");
        check_one(paged("cursor", "meta.next"), Error, at, "no field `meta`, where the token of the next page");
        let twice = messages(vec![read("get"), read("get")]);
        assert_eq!(twice, [(Error, at.to_owned(), "there is another operation of that name".to_owned())]);
    }
}
