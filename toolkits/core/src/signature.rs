//! How an operation reads as Python: JSON Schema to annotations, an operation to one line, a result's object to a class.
//!
//! The model's stubs and the checker's messages both come from here, so that both say the same. It does not know where
//! the text is shown.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{Operation, Parameter};

/// The Python annotation of a JSON Schema: `list[Commit]`, `str | None`, `Literal["a", "b"]`.
///
/// Objects with named fields read as the name of their class, see [`classes`]; `Any` where nothing is known.
pub fn annotation(schema: &Value) -> String {
    Reader::new(schema).annotation(schema, "dict")
}

/// One operation as it is called: `log(limit: int = 20, path: str = None) -> list[Commit]`.
///
/// Parameters after the first required one that follows an optional one are keyword-only in the text, because Python
/// has no other way to write them; the gate binds them by position all the same.
pub fn signature(operation: &Operation) -> String {
    let mut seen_optional = false;
    let mut seen_star = false;
    let mut parameters = Vec::new();
    for parameter in &operation.parameters {
        if parameter.required && seen_optional && !seen_star {
            parameters.push("*".to_owned());
            seen_star = true;
        }
        seen_optional |= !parameter.required;
        parameters.push(parameter_text(parameter));
    }
    let result = match returns(operation).as_str() {
        "Any" => String::new(),
        text => format!(" -> {text}"),
    };
    format!("{}({}){result}", operation.name, parameters.join(", "))
}

/// One parameter as a signature has it: `limit: int = 20`.
pub fn parameter_text(parameter: &Parameter) -> String {
    let mut text = Reader::new(&parameter.schema).annotation(&parameter.schema, &class_name(&parameter.name));
    if !parameter.required {
        let default = parameter.default.as_ref().unwrap_or(&Value::Null);
        // `= None` says it; in a stub of many parameters the tokens count.
        if let Some(short) = text.strip_suffix(" | None").filter(|_| default.is_null()) {
            text = short.to_owned();
        }
        text.push_str(" = ");
        text.push_str(&literal(default));
    }
    format!("{}: {text}", parameter.name)
}

/// The objects with named fields that an operation takes or returns, each as one line of Python by its name:
/// `class Commit: sha: str; author: str`.
pub fn classes(operation: &Operation) -> BTreeMap<String, String> {
    let mut classes = BTreeMap::new();
    let mut read = |schema: &Value, hint: &str| {
        let mut reader = Reader::new(schema);
        reader.annotation(schema, hint);
        classes.extend(reader.classes);
    };
    for parameter in &operation.parameters {
        read(&parameter.schema, &class_name(&parameter.name));
    }
    read(&operation.returns, &class_name(&operation.name));
    classes
}

/// A JSON value as a Python literal.
pub fn literal(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => Value::from(text.as_str()).to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| format!("{}: {}", Value::from(key.as_str()), literal(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
    }
}

fn returns(operation: &Operation) -> String {
    Reader::new(&operation.returns).annotation(&operation.returns, &class_name(&operation.name))
}

/// Reads one schema; `$ref` is resolved within it.
struct Reader<'a> {
    root: &'a Value,
    classes: BTreeMap<String, String>,
    /// How deep it is; a schema may refer to itself through anything but a class.
    depth: u32,
}

/// Deeper than any schema that a person wrote.
const MAX_DEPTH: u32 = 32;

impl<'a> Reader<'a> {
    fn new(root: &'a Value) -> Self {
        Self { root, classes: BTreeMap::new(), depth: 0 }
    }

    /// `hint` names an object that has no name of its own.
    fn annotation(&mut self, schema: &'a Value, hint: &str) -> String {
        if self.depth >= MAX_DEPTH {
            return "Any".to_owned();
        }
        self.depth += 1;
        let text = self.annotation_of(schema, hint);
        self.depth -= 1;
        text
    }

    fn annotation_of(&mut self, schema: &'a Value, hint: &str) -> String {
        let Value::Object(fields) = schema else { return "Any".to_owned() };
        if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
            let name = class_name(reference.rsplit('/').next().unwrap_or(hint));
            let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            return match target {
                Some(target) => self.annotation(target, &name),
                None => "Any".to_owned(),
            };
        }
        if let Some(value) = fields.get("const") {
            return format!("Literal[{}]", literal(value));
        }
        if let Some(values) = fields.get("enum").and_then(Value::as_array) {
            return literals(values);
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(choices) = fields.get(key).and_then(Value::as_array) {
                return self.union(choices, hint);
            }
        }
        if let Some([only]) = fields.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
            return self.annotation(only, hint);
        }
        match fields.get("type") {
            Some(Value::String(kind)) => self.of_type(kind, schema, hint),
            Some(Value::Array(kinds)) => {
                let parts = kinds.iter().filter_map(Value::as_str).map(|kind| self.of_type(kind, schema, hint));
                join(parts.collect())
            }
            _ if fields.contains_key("properties") => self.of_type("object", schema, hint),
            _ => "Any".to_owned(),
        }
    }

    fn union(&mut self, choices: &'a [Value], hint: &str) -> String {
        let constants: Vec<Value> = choices.iter().filter_map(|choice| choice.get("const").cloned()).collect();
        if !constants.is_empty() && constants.len() == choices.len() {
            return literals(&constants);
        }
        join(choices.iter().map(|choice| self.annotation(choice, hint)).collect())
    }

    fn of_type(&mut self, kind: &str, schema: &'a Value, hint: &str) -> String {
        match kind {
            "string" => "str".to_owned(),
            "integer" => "int".to_owned(),
            "number" => "float".to_owned(),
            "boolean" => "bool".to_owned(),
            "null" => "None".to_owned(),
            "array" => self.array(schema, hint),
            "object" => self.object(schema, hint),
            _ => "Any".to_owned(),
        }
    }

    fn array(&mut self, schema: &'a Value, hint: &str) -> String {
        if let Some(items) = schema.get("prefixItems").and_then(Value::as_array) {
            let items: Vec<String> = items.iter().map(|item| self.annotation(item, hint)).collect();
            return format!("tuple[{}]", items.join(", "));
        }
        match schema.get("items").map(|items| self.annotation(items, hint)) {
            Some(item) if item != "Any" => format!("list[{item}]"),
            _ => "list".to_owned(),
        }
    }

    fn object(&mut self, schema: &'a Value, hint: &str) -> String {
        let properties = schema.get("properties").and_then(Value::as_object).filter(|fields| !fields.is_empty());
        let Some(properties) = properties else {
            return match schema.get("additionalProperties").map(|value| self.annotation(value, hint)) {
                Some(value) if value != "Any" => format!("dict[str, {value}]"),
                _ => "dict".to_owned(),
            };
        };
        // A name such as `Array_of_Commit` or `Nullable_Commit` says nothing of the object, so only plain titles count.
        let title = schema.get("title").and_then(Value::as_str).filter(|title| !title.contains('_'));
        let name = title.map_or_else(|| hint.to_owned(), class_name);
        if !self.classes.contains_key(&name) {
            // Registered before its fields are read: a class may contain itself.
            self.classes.insert(name.clone(), String::new());
            let fields = properties
                .iter()
                .map(|(field, schema)| format!("{field}: {}", self.annotation(schema, &class_name(field))));
            let fields = fields.collect::<Vec<_>>().join("; ");
            self.classes.insert(name.clone(), format!("class {name}: {fields}"));
        }
        name
    }
}

fn literals(values: &[Value]) -> String {
    let (nulls, values): (Vec<&Value>, Vec<&Value>) = values.iter().partition(|value| value.is_null());
    let text = values.iter().map(|value| literal(value)).collect::<Vec<_>>().join(", ");
    if nulls.is_empty() { format!("Literal[{text}]") } else { format!("Literal[{text}] | None") }
}

fn join(parts: Vec<String>) -> String {
    let mut unique: Vec<String> = Vec::new();
    for part in parts {
        if !unique.contains(&part) {
            unique.push(part);
        }
    }
    if unique.iter().any(|part| part == "Any") || unique.is_empty() {
        return "Any".to_owned();
    }
    // `None` is read last.
    unique.sort_by_key(|part| part == "None");
    unique.join(" | ")
}

/// `changed_files` as `ChangedFiles`; `Dict` if nothing of it can be part of a name.
fn class_name(text: &str) -> String {
    let words = text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty());
    let name: String = words
        .map(|word| {
            let mut characters = word.chars();
            characters
                .next()
                .map(|first| first.to_uppercase().chain(characters).collect::<String>())
                .unwrap_or_default()
        })
        .collect();
    if name.starts_with(|first: char| first.is_alphabetic()) { name } else { "Dict".to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Risk;

    fn operation(parameters: Vec<Parameter>, returns: Value) -> Operation {
        Operation {
            name: "changed_files".to_owned(),
            description: String::new(),
            parameters,
            returns,
            risk: Risk::Read,
            idempotent: true,
            timeout: None,
            enabled: true,
            paging: None,
        }
    }

    fn parameter(name: &str, schema: Value, default: Option<Option<Value>>) -> Parameter {
        Parameter {
            name: name.to_owned(),
            description: String::new(),
            schema,
            required: default.is_none(),
            default: default.flatten(),
        }
    }

    #[test]
    fn every_kind_of_schema_reads_as_python() {
        let table = [
            (json!(true), "Any"),
            (json!({}), "Any"),
            (json!({"type": "string", "format": "date-time"}), "str"),
            (json!({"type": ["integer", "null"]}), "int | None"),
            (json!({"type": ["null", "number"]}), "float | None"),
            (json!({"type": "array"}), "list"),
            (json!({"type": "array", "items": {"type": "boolean"}}), "list[bool]"),
            (json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]}), "tuple[str, int]"),
            (json!({"type": "object"}), "dict"),
            (json!({"type": "object", "additionalProperties": {"type": "integer"}}), "dict[str, int]"),
            (json!({"type": "object", "title": "Commit", "properties": {"sha": {"type": "string"}}}), "Commit"),
            (json!({"enum": ["a", "b"]}), r#"Literal["a", "b"]"#),
            (json!({"oneOf": [{"const": "a", "description": "x"}, {"const": "b"}]}), r#"Literal["a", "b"]"#),
            (
                json!({"anyOf": [{"$ref": "#/$defs/Commit"}, {"type": "null"}],
                    "$defs": {"Commit": {"type": "object", "properties": {"sha": {"type": "string"}}}}}),
                "Commit | None",
            ),
            (json!({"$ref": "#/$defs/Missing"}), "Any"),
            (json!({"$ref": "#"}), "Any"),
            (
                json!({"title": "Array_of_Commit", "type": "array", "items": {"$ref": "#/$defs/Commit"},
                    "$defs": {"Commit": {"type": "object", "properties": {"sha": {"type": "string"}}}}}),
                "list[Commit]",
            ),
        ];
        for (schema, expected) in table {
            assert_eq!(annotation(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn a_required_parameter_after_an_optional_one_is_keyword_only() {
        let parameters = vec![
            parameter("path", json!({"type": "string"}), None),
            parameter("limit", json!({"type": "integer"}), Some(Some(json!(20)))),
            parameter("author", json!({"type": "string"}), Some(None)),
            parameter("since", json!({"type": "string"}), None),
        ];
        assert_eq!(
            signature(&operation(parameters, json!(true))),
            "changed_files(path: str, limit: int = 20, author: str = None, *, since: str)",
        );
    }

    #[test]
    fn objects_become_classes_by_name_and_by_their_place() {
        let returns = json!({
            "type": "array",
            "items": {"type": "object", "properties": {
                "path": {"type": "string"},
                "parent": {"$ref": "#/$defs/Folder"},
            }},
            "$defs": {"Folder": {"type": "object", "properties": {
                "name": {"type": "string"},
                "parent": {"anyOf": [{"$ref": "#/$defs/Folder"}, {"type": "null"}]},
            }}},
        });
        let operation = operation(Vec::new(), returns);
        assert_eq!(signature(&operation), "changed_files() -> list[ChangedFiles]");
        let expected = [
            ("ChangedFiles", "class ChangedFiles: path: str; parent: Folder"),
            ("Folder", "class Folder: name: str; parent: Folder | None"),
        ];
        let expected = expected.map(|(name, line)| (name.to_owned(), line.to_owned()));
        assert_eq!(classes(&operation), BTreeMap::from(expected));
    }
}
