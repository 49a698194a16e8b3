//! What is known of a value: a JSON Schema, read as the type that Python sees. It does not know how the value came about.

use fimble_toolkit::annotation;
use serde_json::Value;

use crate::shape::LEARNT;

/// A schema within the one that its references are resolved in.
#[derive(Clone, Copy)]
pub(super) struct Type<'a> {
    root: &'a Value,
    schema: &'a Value,
}

impl<'a> Type<'a> {
    /// The type itself, without reference and without `None`.
    pub(super) fn new(root: &'a Value, mut schema: &'a Value) -> Option<Self> {
        for _ in 0..16 {
            if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
                schema = root.pointer(reference.strip_prefix('#')?)?;
            } else if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
                let mut choices = choices.iter().filter(|choice| choice.get("type") != Some(&Value::from("null")));
                schema = choices.next().filter(|_| choices.next().is_none())?;
            } else {
                return Some(Self { root, schema });
            }
        }
        None
    }

    /// The fields of an object that has no others.
    pub(super) fn fields(&self) -> Option<&'a serde_json::Map<String, Value>> {
        let is_open = self.schema.get("additionalProperties").is_some_and(|more| more != &Value::Bool(false))
            || self.schema.get("patternProperties").is_some();
        let fields = self.schema.get("properties").and_then(Value::as_object)?;
        (!is_open && !fields.is_empty()).then_some(fields)
    }

    /// True if it is what was seen so far, and nobody promised that it stays so.
    pub(super) fn is_learnt(&self) -> bool {
        self.root.get(LEARNT).is_some()
    }

    /// True for an attribute that the value has whatever its fields are.
    pub(super) fn has_method(&self, name: &str) -> bool {
        self.is_text() && has(TEXT_METHODS, name)
            || self.is_list() && has(LIST_METHODS, name)
            || self.fields().is_some() && has(DICT_METHODS, name)
    }

    /// The type of a field.
    pub(super) fn field(&self, name: &str) -> Option<Self> {
        Self::new(self.root, self.fields()?.get(name)?)
    }

    /// True for a `str`.
    pub(super) fn is_text(&self) -> bool {
        self.is("string")
    }

    /// True for a `list`.
    pub(super) fn is_list(&self) -> bool {
        self.is("array")
    }

    /// True for values of a kind, `None` apart.
    fn is(&self, kind: &str) -> bool {
        match self.schema.get("type") {
            Some(Value::String(only)) => only == kind,
            Some(Value::Array(kinds)) => {
                let mut kinds = kinds.iter().filter(|other| *other != "null");
                kinds.next().is_some_and(|only| only == kind) && kinds.next().is_none()
            }
            _ => false,
        }
    }

    /// The type of a list's elements.
    pub(super) fn item(&self) -> Option<Self> {
        Self::new(self.root, self.schema.get("items").filter(|_| self.is_list())?)
    }

    /// The name of the only field that is a list.
    pub(super) fn rows(&self) -> Option<&'a str> {
        let is_list = |schema: &&Value| Type::new(self.root, schema).is_some_and(|kind| kind.is_list());
        let mut lists = self.fields()?.iter().filter(|(_, schema)| is_list(schema));
        lists.next().filter(|_| lists.next().is_none()).map(|(name, _)| name.as_str())
    }

    /// The type as a reader sees it.
    pub(super) fn name(&self) -> String {
        annotation(self.schema)
    }
}

/// True if every value of the type has the attribute, whatever its fields.
fn has(methods: &str, name: &str) -> bool {
    methods.split_whitespace().any(|method| method == name)
}

/// What a dict has beside its fields, and, as the other two, `result` of a call that is waited for by hand.
const DICT_METHODS: &str = "
    get items keys values pop update copy setdefault clear popitem result fromkeys";

const TEXT_METHODS: &str = "
    capitalize casefold center count encode endswith expandtabs find format format_map index isalnum isalpha isascii
    isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper join ljust lower lstrip
    maketrans partition removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip split
    splitlines startswith strip swapcase title translate upper zfill result";

const LIST_METHODS: &str = "
    append clear copy count extend index insert pop remove reverse sort result";
