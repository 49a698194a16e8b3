//! An operation of a document, read as an operation of a toolkit and as the plan of its requests.

use std::collections::BTreeMap;

use fimble_toolkit::{Operation, Parameter, Risk, parameter_text, python_names, signature};
use reqwest::Method;
use serde_json::{Map, Value, json};
use url::Url;

use crate::body::{self, Media};
use crate::config::matches;
use crate::document::{Document, is_true, sentence, text};
use crate::parameter::{self, Location, Piece, Place};
use crate::response::{self, Paging};
use crate::schema::Schemas;
use crate::security::{Grants, Schemes};
use crate::view::{Direction, View};
use crate::{Config, Limits};

/// What a call of an operation needs to know.
pub(crate) struct Plan {
    /// The HTTP method.
    pub(crate) method: Method,
    /// The address that the path is added to.
    pub(crate) server: Url,
    /// The path.
    pub(crate) path: Vec<Piece>,
    /// What each parameter is, by its Python name.
    pub(crate) targets: Vec<(String, Target)>,
    /// The body.
    pub(crate) body: Option<Body>,
    /// True if the server is not the one that the host means: it gets nothing of the host's.
    pub(crate) foreign: bool,
    /// What is sent to prove who calls.
    pub(crate) grants: Grants,
    /// How the next page is found.
    pub(crate) paging: Paging,
    /// How a call goes on to it by itself.
    pub(crate) pages: Option<Pages>,
    /// The `Accept` header.
    pub(crate) accept: String,
    /// The header that takes the call's idempotency key.
    pub(crate) key_header: Option<String>,
}

/// The parameters that pages need, by their Python names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pages {
    /// How many pages are got as one.
    pub(crate) number: String,
    /// What takes the next page's address or mark.
    pub(crate) next: String,
}

/// What a parameter of an operation is in its request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Target {
    /// A parameter of the document.
    Place(Place),
    /// A field of the body.
    Field(String),
    /// The body.
    Body,
    /// The body's content type.
    ContentType,
    /// The `next` of the page before.
    Next,
    /// How many pages are got as one; no part of a request.
    Pages,
}

/// A body and how it is sent.
pub(crate) struct Body {
    /// The content types, the usual one first.
    pub(crate) media: Vec<Media>,
    /// True if it is sent even where nothing of it was given.
    pub(crate) required: bool,
}

/// An operation as it stands in the document.
pub(crate) struct Found<'a> {
    /// The method in capitals.
    pub(crate) method: &'static str,
    /// The path's template.
    pub(crate) path: &'a str,
    /// The path's own fields.
    pub(crate) item: &'a Map<String, Value>,
    /// The operation's fields.
    pub(crate) fields: &'a Map<String, Value>,
}

impl Found<'_> {
    /// `GET /pets/{id}`
    pub(crate) fn place(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// The name before it is a Python name: the host's for the `operationId`, the `operationId`, else one made of method and
    /// path.
    pub(crate) fn name(&self, chosen: &BTreeMap<String, String>) -> String {
        if let Some(id) = text(self.fields, "operationId") {
            return chosen.get(id).map_or(id, String::as_str).to_owned();
        }
        let mut name = self.method.to_ascii_lowercase();
        for segment in self.path.split('/').filter(|segment| !segment.is_empty()) {
            let segment = segment.replace('{', "by_").replace('}', "");
            name.push('_');
            name.push_str(&segment);
        }
        name
    }
}

/// A parameter before it has its name.
struct Slot {
    original: String,
    schema: Value,
    description: String,
    required: bool,
    default: Option<Value>,
    target: Target,
}

/// Reads operations of one document.
pub(crate) struct Operations<'a> {
    /// The document.
    pub(crate) document: &'a Document,
    /// Its schemas.
    pub(crate) schemas: Schemas<'a>,
    /// Its security schemes.
    pub(crate) schemes: Schemes<'a>,
    /// What the host wants.
    pub(crate) config: &'a Config,
}

impl<'a> Operations<'a> {
    /// The operation and its plan. `server` is where it is; one that is `foreign` gets no credential.
    ///
    /// # Errors
    /// One sentence: why it cannot be used.
    pub(crate) fn read(
        &mut self,
        found: &Found<'a>,
        name: String,
        server: Url,
        foreign: bool,
    ) -> Result<(Operation, Plan), String> {
        let limits = &self.config.limits;
        let path = parameter::pieces(found.path);
        let (mut slots, key_header) = self.parameters(found, &path)?;
        let own: Vec<&str> = slots.iter().map(|slot| slot.original.as_str()).collect();
        let response = response::declared(self.document, &mut self.schemas, found.method, found.fields, &own);
        // Some documents declare a body where HTTP gives it no meaning.
        let body =
            if matches!(found.method, "GET" | "HEAD") { None } else { body::declared(self.document, found.fields)? };
        let body = body.map(|body| self.body(body, &mut slots));
        if matches!(response.paging, Paging::Link | Paging::Field(_)) {
            slots.push(Slot::new("next", json!({"type": "string"}), "`next` of the page before.", Target::Next));
        }
        if response.paging != Paging::None {
            let schema = json!({"type": "integer", "minimum": 1, "maximum": limits.pages});
            let mut slot = Slot::new("pages", schema, "Pages that are got as one.", Target::Pages);
            slot.default = Some(Value::from(1));
            slots.push(slot);
        }
        if slots.len() > limits.parameters {
            return Err(format!("it has {} parameters, more than {}", slots.len(), limits.parameters));
        }
        slots.sort_by_key(|slot| !slot.required);
        let originals: Vec<&str> = slots.iter().map(|slot| slot.original.as_str()).collect();
        let names = python_names(&originals, "argument");
        let asks = |slot: &Slot| match response.paging {
            Paging::Mark(parameter, _) => slot.original == parameter,
            _ => slot.target == Target::Next,
        };
        let named = |is_it: &dyn Fn(&Slot) -> bool| {
            slots.iter().zip(&names).find(|(slot, _)| is_it(slot)).map(|(_, name)| name.clone())
        };
        let pages = named(&|slot| slot.target == Target::Pages).zip(named(&asks));
        let pages = pages.map(|(number, next)| Pages { number, next });
        let targets = names.iter().cloned().zip(slots.iter().map(|slot| slot.target.clone())).collect();
        let parameters = slots.into_iter().zip(names).map(|(slot, name)| Parameter {
            name,
            description: slot.description,
            schema: slot.schema,
            required: slot.required,
            default: slot.default,
        });
        let risk = risk(found, &name, self.config);
        let paging = pages.as_ref().zip(response.items).map(|(pages, items)| fimble_toolkit::Paging {
            argument: pages.next.clone(),
            token: response.paging.path().iter().map(|name| (*name).to_owned()).collect(),
            items: vec![items],
        });
        let hint = pages
            .as_ref()
            .map(|pages| response::hint(response.paging, &pages.next, &pages.number, paging.is_some()))
            .unwrap_or_default();
        let description = format!("{} {hint}", describe(found.fields, limits)).trim().to_owned();
        let mut operation = Operation {
            description,
            parameters: parameters.collect(),
            returns: response.schema,
            risk,
            idempotent: matches!(found.method, "GET" | "HEAD" | "OPTIONS" | "PUT" | "DELETE") || key_header.is_some(),
            // The call has its own limit; the gate's comes a moment later, because ours can say more.
            timeout: Some(limits.call + std::time::Duration::from_secs(1)),
            enabled: true,
            paging,
            name,
        };
        narrow(&mut operation, limits.signature_characters);
        let grants = if foreign { Grants::default() } else { self.schemes.of(found.fields) };
        let method = Method::from_bytes(found.method.as_bytes()).map_err(|_| "its method cannot be sent".to_owned())?;
        let plan = Plan {
            method,
            server,
            path,
            targets,
            body,
            foreign,
            grants,
            paging: response.paging,
            pages,
            accept: response.accept,
            key_header,
        };
        Ok((operation, plan))
    }

    /// The parameters outside of the body, and the header for the idempotency key if there is one.
    fn parameters(&mut self, found: &Found<'a>, path: &[Piece]) -> Result<(Vec<Slot>, Option<String>), String> {
        let limits = &self.config.limits;
        let mut declared = parameter::declared(self.document, found.item, found.fields)?;
        let in_path = |name: &str| path.iter().any(|piece| matches!(piece, Piece::Name(own) if own == name));
        declared.retain(|one| one.place.location != Location::Path || in_path(&one.place.name));
        for piece in path {
            let Piece::Name(name) = piece else { continue };
            if !declared.iter().any(|one| one.place.location == Location::Path && one.place.name == *name) {
                declared.push(parameter::undeclared(name));
            }
        }
        declared.sort_by_key(|one| one.place.location != Location::Path);
        let mut key_header = None;
        let mut slots = Vec::new();
        for one in declared {
            let name = &one.place.name;
            if one.place.location == Location::Header {
                if HOSTS_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own))
                    || self.config.headers.keys().any(|own| name.eq_ignore_ascii_case(own))
                {
                    continue;
                }
                if name.eq_ignore_ascii_case("idempotency-key") {
                    key_header = Some(name.clone());
                    continue;
                }
            }
            let is_hidden = !one.required && self.config.hidden.contains(name);
            if is_hidden || self.schemes.holds(one.place.location, name) {
                continue;
            }
            let read = one.schema.map(|schema| self.schemas.read(schema, Direction::Request));
            let default = if one.required { None } else { self.default(one.schema) };
            slots.push(Slot {
                original: name.clone(),
                schema: read.unwrap_or_else(|| json!({"type": "string"})),
                description: sentence(one.description, limits.description_characters),
                required: one.required,
                default,
                target: Target::Place(one.place),
            });
        }
        Ok((slots, key_header))
    }

    /// Adds the parameters that the body is made of.
    fn body(&mut self, body: body::Declared<'a>, slots: &mut Vec<Slot>) -> Body {
        let limits = &self.config.limits;
        if let Some((view, fields)) = body::fields(self.document, &body)
            // The name of a field must not also be a parameter's: it would be a guess which of the two is meant.
            && !fields.iter().any(|(name, _)| slots.iter().any(|slot| slot.original == *name))
        {
            let required = view.required();
            for (name, schema) in fields {
                let required = body.required && required.contains(name);
                let description = View::new(self.document, schema).text("description").unwrap_or_default();
                let default = if required { None } else { self.default(Some(schema)) };
                slots.push(Slot {
                    original: name.to_owned(),
                    schema: self.value(schema, &body),
                    description: sentence(description, limits.description_characters),
                    required,
                    default,
                    target: Target::Field(name.to_owned()),
                });
            }
        } else {
            let schema = match body.schema {
                Some(schema) if !body.chosen => self.value(schema, &body),
                _ => Value::Bool(true),
            };
            slots.push(Slot {
                original: "body".to_owned(),
                schema,
                description: sentence(body.description, limits.description_characters),
                required: body.required,
                default: None,
                target: Target::Body,
            });
            if body.chosen {
                let kinds: Vec<&str> = body.media.iter().map(|media| media.content_type.as_str()).collect();
                let mut slot =
                    Slot::new("content_type", json!({"enum": kinds}), "What `body` is.", Target::ContentType);
                slot.default = kinds.first().map(|kind| Value::from(*kind));
                slots.push(slot);
            }
        }
        Body { media: body.media, required: body.required }
    }

    /// The schema of a value in a body. A file is its text, or its bytes as base64.
    fn value(&mut self, schema: &'a Value, body: &body::Declared<'a>) -> Value {
        let raw = body.media.first().is_some_and(|media| media.kind == body::Kind::Bytes);
        let file = json!({"anyOf": [{"type": "string"}, {"type": "object", "title": "File", "properties": {
            "base64": {"type": "string"}, "filename": {"type": "string"}}}]});
        let in_form = body.media.first().is_some_and(|media| media.kind == body::Kind::Multipart);
        if raw || (in_form && body::is_binary(self.document, schema)) {
            return file;
        }
        let view = View::new(self.document, schema);
        if view.get("items").is_some_and(|items| in_form && body::is_binary(self.document, items)) {
            return json!({"type": "array", "items": file});
        }
        self.schemas.read(schema, Direction::Request)
    }

    fn default(&self, schema: Option<&'a Value>) -> Option<Value> {
        let default = View::new(self.document, schema?).get("default")?;
        let is_short = match default {
            Value::Bool(_) | Value::Number(_) => true,
            Value::String(text) => text.len() <= MOST_DEFAULT_BYTES,
            _ => false,
        };
        is_short.then(|| default.clone())
    }
}

impl Slot {
    fn new(original: &str, schema: Value, description: &str, target: Target) -> Self {
        let (original, description) = (original.to_owned(), description.to_owned());
        Self { original, schema, description, required: false, default: None, target }
    }
}

/// Headers that are not the caller's.
const HOSTS_HEADERS: [&str; 6] = ["accept", "content-type", "authorization", "host", "content-length", "user-agent"];

/// Bytes of a default that a stub shows.
const MOST_DEFAULT_BYTES: usize = 60;

/// Lets optional parameters say less, the last ones first, until the signature has at most that many characters.
fn narrow(operation: &mut Operation, most: usize) {
    // Nearly all are far from it, which is seen without writing them.
    if operation
        .parameters
        .iter()
        .map(|parameter| 2 * parameter.name.len() + MOST_DEFAULT_BYTES + wide(&parameter.schema))
        .sum::<usize>()
        <= most
    {
        return;
    }
    let length = |parameter: &Parameter| parameter_text(parameter).len() + 2;
    let mut total = signature(operation).len();
    let optional = operation.parameters.iter_mut().rev().filter(|parameter| !parameter.required);
    for parameter in optional {
        if total <= most {
            return;
        }
        let before = length(parameter);
        let kind = parameter.schema.get("type").filter(|kind| kind.is_string() && *kind != "object").cloned();
        // An enumeration of texts is a text.
        let texts = |values: &Vec<Value>| values.iter().all(Value::is_string);
        let is_text = parameter.schema.get("enum").and_then(Value::as_array).is_some_and(texts);
        parameter.schema = match kind.or_else(|| is_text.then(|| Value::from("string"))) {
            Some(kind) => json!({"type": kind}),
            None => Value::Bool(true),
        };
        total = total.saturating_sub(before.saturating_sub(length(parameter)));
    }
}

/// Bytes that no plain annotation exceeds, with what stands around it.
const SHORT: usize = 24;

/// Bytes that an annotation has at most.
fn wide(schema: &Value) -> usize {
    let fields = match schema {
        Value::Object(fields) => fields,
        Value::String(text) => return SHORT + text.len(),
        _ => return SHORT,
    };
    let values = ["enum", "anyOf"].iter().filter_map(|key| fields.get(*key)?.as_array()).flatten();
    let below = values.chain(fields.get("items")).chain(fields.get("additionalProperties"));
    SHORT + fields.get("title").map_or(0, wide) + below.map(wide).sum::<usize>()
}

fn describe(fields: &Map<String, Value>, limits: &Limits) -> String {
    let described = text(fields, "summary").or_else(|| text(fields, "description")).unwrap_or_default();
    let mut described = sentence(described, limits.description_characters);
    if !described.is_empty() && !described.ends_with(['.', '!', '?', '…']) {
        described.push('.');
    }
    if is_true(fields, "deprecated") {
        described.push_str(if described.is_empty() { "Deprecated." } else { " Deprecated." });
    }
    described
}

/// What the host says, else the document, else what the method means.
fn risk(found: &Found<'_>, name: &str, config: &Config) -> Risk {
    let (id, place) = (text(found.fields, "operationId").unwrap_or_default(), found.place());
    let said = config.risks.iter().find(|(pattern, _)| [name, id, &place].iter().any(|text| matches(pattern, text)));
    if let Some((_, risk)) = said {
        return *risk;
    }
    let declared = found.fields.get("x-fimble-risk").or_else(|| found.item.get("x-fimble-risk"));
    match (declared.and_then(Value::as_str), found.method) {
        (Some("read"), _) => Risk::Read,
        (Some("write"), _) => Risk::Write,
        (Some("destructive"), _) | (_, "DELETE") => Risk::Destructive,
        (_, "GET" | "HEAD" | "OPTIONS") => Risk::Read,
        _ => Risk::Write,
    }
}
