//! A document's schemas as small JSON Schemas that stand alone: what the stubs show and the arguments are checked against.
//! They say less than the document where it says too much, never more.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::Limits;
use crate::document::Document;
use crate::view::{Direction, View};

/// Reads the schemas of one document.
pub(crate) struct Schemas<'a> {
    document: &'a Document,
    limits: &'a Limits,
    /// Whole schemas and how many are in them, by their place in the document.
    known: HashMap<(*const Value, Direction), (Value, usize)>,
    /// Schemas that there is room for in all results together.
    left: usize,
    parts: Parts,
}

/// Components that were read, by their place in the document and the levels that were kept.
type Parts = HashMap<(*const Value, Direction, usize), Part>;

enum Part {
    /// It has that many schemas.
    Fits(Value, usize),
    /// It has more than that many.
    TooLarge(usize),
}

impl<'a> Schemas<'a> {
    /// A reader of that document's schemas.
    pub(crate) fn new(document: &'a Document, limits: &'a Limits) -> Self {
        Self { document, limits, known: HashMap::new(), left: limits.schemas, parts: HashMap::new() }
    }

    /// The schema without references, as deep as the limits let it be.
    pub(crate) fn read(&mut self, schema: &'a Value, direction: Direction) -> Value {
        let key = (std::ptr::from_ref(component(self.document, schema).unwrap_or(schema)), direction);
        if let Some((known, size)) = self.known.get(&key) {
            let Some(left) = self.left.checked_sub(*size) else { return Value::Bool(true) };
            self.left = left;
            return known.clone();
        }
        if self.left == 0 {
            return Value::Bool(true);
        }
        let (document, parts) = (self.document, &mut self.parts);
        let mut reader = Reader { document, direction, left: 0, open: Vec::new(), parts };
        let read = (1..=self.limits.schema_depth).rev().find_map(|depth| {
            reader.left = self.limits.schema_nodes;
            reader.open.clear();
            reader.read(schema, depth)
        });
        let size = self.limits.schema_nodes.saturating_sub(reader.left);
        let read = read.unwrap_or(Value::Bool(true));
        self.left = self.left.saturating_sub(size);
        self.known.insert(key, (read.clone(), size));
        read
    }
}

/// What a schema refers to, if it does. Those that refer to one component are one.
fn component<'a>(document: &'a Document, schema: &'a Value) -> Option<&'a Value> {
    document.target(schema.get("$ref")?.as_str()?).ok()
}

/// Values that an enumeration can have; of a longer one only the type is kept.
const MOST_CHOICES: usize = 40;

struct Reader<'a, 'p> {
    document: &'a Document,
    direction: Direction,
    /// Schemas that there is room for.
    left: usize,
    /// The schemas that are being read.
    open: Vec<*const Value>,
    parts: &'p mut Parts,
}

impl<'a> Reader<'a, '_> {
    /// `None` if there is no room for all of it.
    fn read(&mut self, schema: &'a Value, depth: usize) -> Option<Value> {
        let component = component(self.document, schema);
        let place = std::ptr::from_ref(component.unwrap_or(schema));
        if self.open.contains(&place) {
            self.left = self.left.checked_sub(1)?;
            return Some(json!({"type": "object"}));
        }
        let key = (place, self.direction, depth);
        match self.parts.get(&key).filter(|_| component.is_some()) {
            Some(Part::Fits(known, size)) => {
                self.left = self.left.checked_sub(*size)?;
                return Some(known.clone());
            }
            Some(Part::TooLarge(size)) if *size >= self.left => return None,
            _ => {}
        }
        let before = self.left;
        self.open.push(place);
        let one = self.left.checked_sub(1);
        let read = one.and_then(|left| {
            self.left = left;
            self.read_view(&View::new(self.document, schema), depth)
        });
        self.open.pop();
        if component.is_some() {
            let part = match &read {
                Some(read) => Part::Fits(read.clone(), before - self.left),
                None => Part::TooLarge(before),
            };
            self.parts.insert(key, part);
        }
        read
    }

    fn read_view(&mut self, view: &View<'a>, depth: usize) -> Option<Value> {
        let mut read = Map::new();
        let properties = view.properties(self.document, self.direction);
        let choices = if properties.is_empty() { view.choices() } else { &[] };
        if let Some(Value::Array(values)) = view.get("enum") {
            let usable =
                values.len() <= MOST_CHOICES && values.iter().all(|value| !value.is_array() && !value.is_object());
            if usable && !values.is_empty() {
                let mut values = values.clone();
                if view.nullable() && !values.contains(&Value::Null) {
                    values.push(Value::Null);
                }
                read.insert("enum".into(), Value::Array(values));
                return Some(Value::Object(read));
            }
        }
        if let Some(value) = view.get("const").filter(|value| !value.is_array() && !value.is_object()) {
            read.insert("const".into(), value.clone());
            return Some(Value::Object(read));
        }
        if !choices.is_empty() {
            return self.read_choices(choices, view, depth);
        }
        let mut kinds: Vec<&str> = view.kinds().into_iter().filter(|kind| KINDS.contains(kind)).collect();
        if kinds.is_empty() && !properties.is_empty() {
            kinds.push("object");
        }
        if kinds.is_empty() && view.get("items").is_some() {
            kinds.push("array");
        }
        if let ["integer" | "number"] = kinds.as_slice() {
            for bound in ["minimum", "maximum"] {
                // 3.0 says by a second key that the bound itself is out.
                let exclusive = if bound == "minimum" { "exclusiveMinimum" } else { "exclusiveMaximum" };
                if let Some(number @ Value::Number(_)) = view.get(bound)
                    && view.get(exclusive).is_none()
                {
                    read.insert(bound.into(), number.clone());
                }
            }
        }
        if kinds.contains(&"object") {
            self.read_fields(view, &properties, depth, &mut read)?;
        }
        if kinds.contains(&"array")
            && depth > 1
            && let Some(items) = view.get("items")
        {
            // A list is no level of its own: what matters is how deep the objects are.
            let items = self.read(items, depth)?;
            read.insert("items".into(), items);
        }
        if kinds.is_empty() {
            return Some(Value::Object(Map::new()));
        }
        let mut kinds: Vec<Value> = kinds.into_iter().map(Value::from).collect();
        if view.nullable() {
            kinds.push(Value::from("null"));
        }
        let kind = if kinds.len() == 1 { kinds.swap_remove(0) } else { Value::Array(kinds) };
        read.insert("type".into(), kind);
        Some(Value::Object(read))
    }

    fn read_fields(
        &mut self,
        view: &View<'a>,
        properties: &[(&'a str, &'a Value)],
        depth: usize,
        read: &mut Map<String, Value>,
    ) -> Option<()> {
        if depth <= 1 {
            return Some(());
        }
        if !properties.is_empty() {
            let title = view.name.or_else(|| view.text("title")).map(title).filter(|title| !title.is_empty());
            if let Some(title) = title {
                read.insert("title".into(), Value::String(title));
            }
            let mut fields = Map::new();
            for (name, schema) in properties {
                fields.insert((*name).to_owned(), self.read(schema, depth - 1)?);
            }
            let required = view.required();
            let required: Vec<Value> = properties
                .iter()
                .map(|(name, _)| *name)
                .filter(|name| required.contains(name))
                .map(Value::from)
                .collect();
            read.insert("properties".into(), Value::Object(fields));
            if !required.is_empty() && self.direction == Direction::Request {
                read.insert("required".into(), Value::Array(required));
            }
        }
        if let Some(schema @ Value::Object(fields)) = view.get("additionalProperties")
            && !fields.is_empty()
        {
            let values = self.read(schema, depth - 1)?;
            read.insert("additionalProperties".into(), values);
        }
        Some(())
    }

    fn read_choices(&mut self, choices: &'a [Value], view: &View<'a>, depth: usize) -> Option<Value> {
        if choices.len() > MOST_CHOICES {
            return Some(Value::Object(Map::new()));
        }
        let mut read: Vec<Value> = Vec::new();
        for choice in choices {
            let schema = self.read(choice, depth)?;
            // One of them can be anything, and so can the value.
            if schema.as_object().is_none_or(Map::is_empty) && !is_null(choice) {
                return Some(Value::Object(Map::new()));
            }
            let schema = if is_null(choice) { json!({"type": "null"}) } else { schema };
            if !read.contains(&schema) {
                read.push(schema);
            }
        }
        if view.nullable() && !read.iter().any(is_null) {
            read.push(json!({"type": "null"}));
        }
        Some(if read.len() == 1 { read.swap_remove(0) } else { json!({"anyOf": read}) })
    }
}

/// The types that JSON Schema has; `null` is told apart.
const KINDS: [&str; 6] = ["string", "integer", "number", "boolean", "array", "object"];

fn is_null(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "null")
}

/// A component's name as the name of a class: `io.k8s.api.core.v1.Pod` as `Pod`, `full-repository` as `FullRepository`.
fn title(name: &str) -> String {
    let last = name.rsplit('.').next().unwrap_or(name);
    let words = last.split(|character: char| !character.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let capital = |word: &str| {
        let mut characters = word.chars();
        characters
            .next()
            .map(|first| format!("{}{}", first.to_ascii_uppercase(), characters.as_str()))
            .unwrap_or_default()
    };
    words.map(capital).collect::<String>().chars().take(MOST_TITLE).collect()
}

/// Characters of a class's name.
const MOST_TITLE: usize = 60;

#[cfg(test)]
mod tests {
    use fimble_toolkit::annotation;

    use super::*;

    fn read(schema: &Value, direction: Direction) -> Value {
        let root = json!({"components": {"schemas": {
            "full-repository": {"type": "object", "properties": {
                "id": {"type": "integer"}, "owner": {"$ref": "#/components/schemas/io.k8s.v1.Owner"}}},
            "io.k8s.v1.Owner": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string", "nullable": true}, "boss": {"$ref": "#/components/schemas/io.k8s.v1.Owner"}}},
            "both": {"allOf": [
                {"$ref": "#/components/schemas/io.k8s.v1.Owner"},
                {"type": "object", "required": ["secret"], "properties": {
                    "secret": {"type": "string", "writeOnly": true}, "at": {"type": "string", "readOnly": true}}}]},
        }}});
        let (root, limits) = (root.as_object().cloned().unwrap(), Limits::default());
        let document = Document::new(root, &limits);
        Schemas::new(&document, &limits).read(schema, direction)
    }

    #[test]
    fn schemas_of_both_versions_read_as_python() {
        let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
        let table = [
            (json!({"type": "string", "nullable": true}), "str | None"),
            (json!({"type": ["string", "null"]}), "str | None"),
            (json!({"type": "string", "enum": ["a", "b"], "nullable": true}), r#"Literal["a", "b"] | None"#),
            (json!({"oneOf": [{"type": "integer"}, {"type": "string"}]}), "int | str"),
            (json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}), "int | None"),
            (json!({"oneOf": [{"type": "integer"}], "nullable": true}), "int | None"),
            (json!({"anyOf": [{"type": "integer"}, {}]}), "Any"),
            (json!({"allOf": [reference("full-repository")], "nullable": true}), "FullRepository | None"),
            (json!({"type": "array", "items": reference("io.k8s.v1.Owner")}), "list[Owner]"),
            (json!({"type": "object", "additionalProperties": {"type": "integer"}}), "dict[str, int]"),
            (json!({"additionalProperties": true, "type": "object"}), "dict"),
            (reference("none"), "Any"),
            (json!({"type": "file"}), "Any"),
            (json!(true), "Any"),
            (json!(7), "Any"),
        ];
        for (schema, expected) in table {
            assert_eq!(annotation(&read(&schema, Direction::Response)), expected, "{schema}");
        }
    }

    #[test]
    fn parts_are_one_object_and_fields_go_their_way_only() {
        let schema = json!({"$ref": "#/components/schemas/both"});
        let name = json!({"type": ["string", "null"]});
        let request = json!({
            "title": "Both",
            "properties": {"name": name, "boss": {
                "title": "Owner", "properties": {"name": name, "boss": {"type": "object"}}, "required": ["name"],
                "type": "object"}, "secret": {"type": "string"}},
            "required": ["name", "secret"],
            "type": "object",
        });
        assert_eq!(read(&schema, Direction::Request), request);
        let response = read(&schema, Direction::Response);
        let fields: Vec<&String> = response["properties"].as_object().unwrap().keys().collect();
        assert_eq!(fields, ["name", "boss", "at"]);
    }

    #[test]
    fn a_schema_that_is_too_large_loses_its_depths_only() {
        let wide = |inner: Value| {
            let fields: Map<String, Value> = (0..20).map(|index| (format!("f{index}"), inner.clone())).collect();
            json!({"type": "object", "properties": fields})
        };
        let schema = wide(wide(wide(json!({"type": "string"}))));
        let read = read(&schema, Direction::Response);
        assert_eq!(read["properties"]["f7"], json!({"type": "object"}));
        assert_eq!(read["properties"].as_object().unwrap().len(), 20);
    }
}
