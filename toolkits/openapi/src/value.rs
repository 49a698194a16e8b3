//! JSON as it is kept of a document: without examples, which are most of some documents and of no use here.

use std::cell::Cell;
use std::fmt;

use serde::de;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Reads a document's JSON of at most `most` values.
pub(crate) fn kept<'de, D: Deserializer<'de>>(deserializer: D, most: usize) -> Result<Value, D::Error> {
    Place { names: false, item: false, depth: 0, left: &Cell::new(most) }.deserialize(deserializer)
}

/// Levels of lists and objects: what the JSON parser takes too.
pub(crate) const MOST_LEVELS: usize = 127;

/// Fields that say nothing about calls.
const LEFT_OUT: [&str; 5] = ["example", "examples", "externalDocs", "x-code-samples", "x-codeSamples"];

/// Extensions that mean something here. Of the others some documents have more than of what says something.
const EXTENSIONS: [&str; 2] = ["x-fimble-risk", "x-nullable"];

/// Fields whose own fields are names that somebody chose, such as a property `example`.
const OF_NAMES: [&str; 14] = [
    "content",
    "properties",
    "schemas",
    "definitions",
    "$defs",
    "parameters",
    "responses",
    "requestBodies",
    "headers",
    "paths",
    "securitySchemes",
    "securityDefinitions",
    "variables",
    "encoding",
];

#[derive(Clone, Copy)]
struct Place<'l> {
    /// True if the fields of an object here are names.
    names: bool,
    /// True for an item of a list: what a call must prove is a list of objects whose fields are names of schemes.
    item: bool,
    depth: usize,
    /// Values that there is room for.
    left: &'l Cell<usize>,
}

impl Place<'_> {
    fn below<E: Error>(self, names: bool, item: bool) -> Result<Self, E> {
        if self.depth >= MOST_LEVELS {
            return Err(E::custom(format!("it has more than {MOST_LEVELS} levels")));
        }
        Ok(Self { names, item, depth: self.depth + 1, left: self.left })
    }

    fn leaves_out(self, name: &str) -> bool {
        LEFT_OUT.contains(&name) || (!self.item && name.starts_with("x-") && !EXTENSIONS.contains(&name))
    }
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let left = self.left.get().checked_sub(1);
        self.left.set(left.ok_or_else(|| D::Error::custom("it has too many values"))?);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let below = self.below(false, true)?;
        let mut kept = Vec::new();
        while let Some(item) = items.next_element_seed(below)? {
            kept.push(item);
        }
        Ok(Value::Array(kept))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut kept = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            if !self.names && self.leaves_out(&name) {
                fields.next_value::<IgnoredAny>()?;
                continue;
            }
            // A property called `properties` has no names below it, but a schema.
            let below = self.below(!self.names && OF_NAMES.contains(&name.as_str()), false)?;
            let value = fields.next_value_seed(below)?;
            kept.insert(name, value);
        }
        Ok(Value::Object(kept))
    }
}
