//! One schema of a document, seen through its references and through `allOf`. It does not know Python or requests.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::document::{Document, items, text};

/// Which way a value goes: fields that only the other way has are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Direction {
    /// To the server.
    Request,
    /// From the server.
    Response,
}

/// All that holds for a value of a schema.
pub(crate) struct View<'a> {
    /// The component's own name, if the schema refers to one.
    pub(crate) name: Option<&'a str>,
    /// The objects that all apply: the schema itself, then what it combines by `allOf`.
    parts: Vec<&'a Map<String, Value>>,
}

/// Schemas that one value can be combined from.
const MOST_PARTS: usize = 32;

impl<'a> View<'a> {
    /// What `schema` says. A reference that leads nowhere says nothing.
    pub(crate) fn new(document: &'a Document, schema: &'a Value) -> Self {
        let mut view = Self { name: reference_name(schema), parts: Vec::new() };
        view.gather(document, schema, 0);
        view
    }

    fn gather(&mut self, document: &'a Document, schema: &'a Value, depth: usize) {
        if depth >= MOST_PARTS || self.parts.len() >= MOST_PARTS {
            return;
        }
        let Ok(fields) = document.object(schema) else { return };
        // A schema that combines itself adds nothing the second time.
        if self.parts.iter().any(|part| std::ptr::eq(*part, fields)) {
            return;
        }
        self.parts.push(fields);
        let combined = items(fields, "allOf");
        if let [only] = combined
            && self.name.is_none()
            && !fields.contains_key("properties")
        {
            self.name = reference_name(only);
        }
        for part in combined {
            self.gather(document, part, depth + 1);
        }
    }

    /// The first value of that key.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        self.parts.iter().find_map(|part| part.get(key))
    }

    /// The text of that key.
    pub(crate) fn text(&self, key: &str) -> Option<&'a str> {
        self.parts.iter().find_map(|part| text(part, key))
    }

    /// The types it names, without `null`.
    pub(crate) fn kinds(&self) -> Vec<&'a str> {
        match self.get("type") {
            Some(Value::String(kind)) if kind != "null" => vec![kind],
            Some(Value::Array(kinds)) => {
                kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null").collect()
            }
            _ => Vec::new(),
        }
    }

    /// True if `null` is a value of it, in the words of 3.0 or of 3.1.
    pub(crate) fn nullable(&self) -> bool {
        let named = match self.get("type") {
            Some(Value::String(kind)) => kind == "null",
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "null"),
            _ => false,
        };
        named || self.get("nullable") == Some(&Value::Bool(true)) || self.get("x-nullable") == Some(&Value::Bool(true))
    }

    /// True if it is an object: by its type, or by having fields.
    pub(crate) fn is_object(&self) -> bool {
        match self.kinds().as_slice() {
            [] => self.parts.iter().any(|part| part.contains_key("properties")),
            [kind] => *kind == "object",
            _ => false,
        }
    }

    /// The named fields of an object in the order of the document, without those that only go the other way.
    pub(crate) fn properties(&self, document: &'a Document, direction: Direction) -> Vec<(&'a str, &'a Value)> {
        let mut seen = HashSet::new();
        let all = self.parts.iter().filter_map(|part| part.get("properties").and_then(Value::as_object)).flatten();
        let other_way = match direction {
            Direction::Request => "readOnly",
            Direction::Response => "writeOnly",
        };
        all.filter(|(_, schema)| {
            let fields = document.object(schema);
            let hidden = |fields: &Map<String, Value>| fields.get(other_way) == Some(&Value::Bool(true));
            !fields.is_ok_and(hidden) && !schema.as_object().is_some_and(hidden)
        })
        .filter(|(name, _)| seen.insert(name.as_str()))
        .map(|(name, schema)| (name.as_str(), schema))
        .collect()
    }

    /// The names of the fields that must be there.
    pub(crate) fn required(&self) -> HashSet<&'a str> {
        self.parts.iter().flat_map(|part| items(part, "required")).filter_map(Value::as_str).collect()
    }

    /// The schemas of which one holds; none if it is an object with fields of its own.
    pub(crate) fn choices(&self) -> &'a [Value] {
        let lists = self.parts.iter().flat_map(|part| [items(part, "oneOf"), items(part, "anyOf")]);
        lists.into_iter().find(|choices| !choices.is_empty()).unwrap_or_default()
    }
}

/// The last part of a reference's path.
fn reference_name(schema: &Value) -> Option<&str> {
    let reference = schema.get("$ref").and_then(Value::as_str)?;
    reference.rsplit('/').next().filter(|name| !name.is_empty())
}
