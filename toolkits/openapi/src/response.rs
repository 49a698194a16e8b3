//! What an operation answers, as its document has it: the schema of its result, and how its pages follow one another.

use serde_json::{Map, Value, json};

use crate::document::{Document, text};
use crate::schema::Schemas;
use crate::view::{Direction, View};

/// An operation's result.
pub(crate) struct Declared {
    /// Its schema; `true` where nothing is known.
    pub(crate) schema: Value,
    /// What the request says that it takes.
    pub(crate) accept: String,
    /// How the page after this one is found.
    pub(crate) paging: Paging,
    /// The field that is the list of a page's items, if it is known.
    pub(crate) items: Option<String>,
}

/// How the page after a page is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paging {
    /// There is no other page, or the program finds it by the operation's own parameters.
    None,
    /// A list, and a header that links to the next page: the result is `{entries, next}`.
    Link,
    /// The address of the next page is a field of the result.
    Field(Next),
    /// A parameter of the operation, by its own name, takes a mark that is a field of the result.
    Mark(&'static str, Next),
}

impl Paging {
    /// The names that lead from a result to what asks for the next page.
    pub(crate) fn path(self) -> &'static [&'static str] {
        match self {
            Self::None => &[],
            Self::Link => &["next"],
            Self::Field(next) | Self::Mark(_, next) => next.path,
        }
    }
}

/// The field of a result that leads to the next page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Next {
    /// The names that lead to it from the result.
    pub(crate) path: &'static [&'static str],
    /// How a program writes it.
    pub(crate) written: &'static str,
}

/// Parameters that take the mark of the next page, where the mark is, and how a program writes that.
const MARKS: [(&str, &[&str], &str); 12] = [
    ("continue", &["metadata", "continue"], "page.metadata[\"continue\"]"),
    ("cursor", &["response_metadata", "next_cursor"], "page.response_metadata.next_cursor"),
    ("cursor", &["next_cursor"], "page.next_cursor"),
    ("cursor", &["nextCursor"], "page.nextCursor"),
    ("page_token", &["next_page_token"], "page.next_page_token"),
    ("pageToken", &["nextPageToken"], "page.nextPageToken"),
    ("next_token", &["next_token"], "page.next_token"),
    ("nextToken", &["nextToken"], "page.nextToken"),
    ("NextToken", &["NextToken"], "page.NextToken"),
    ("continuationToken", &["continuationToken"], "page.continuationToken"),
    ("Marker", &["NextMarker"], "page.NextMarker"),
    ("marker", &["next_marker"], "page.next_marker"),
];

/// Where the address of the next page is found in results, and how a program writes that.
const NEXT_FIELDS: [(&[&str], &str); 7] = [
    (&["links", "pages", "next"], "page.links.pages.next"),
    (&["links", "next"], "page.links.next"),
    (&["_links", "next"], "page[\"_links\"].next"),
    (&["@odata.nextLink"], "page[\"@odata.nextLink\"]"),
    (&["next_page_uri"], "page.next_page_uri"),
    (&["next_page_url"], "page.next_page_url"),
    (&["next"], "page.next"),
];

/// Reads the answers that mean success. What cannot be read says nothing.
pub(crate) fn declared<'a>(
    document: &'a Document,
    schemas: &mut Schemas<'a>,
    method: &str,
    operation: &'a Map<String, Value>,
    parameters: &[&str],
) -> Declared {
    let responses = operation.get("responses").and_then(Value::as_object);
    let mut successes: Vec<(&str, &'a Map<String, Value>)> = responses
        .into_iter()
        .flatten()
        .filter(|(code, _)| code.starts_with('2'))
        .filter_map(|(code, response)| Some((code.as_str(), document.object(response).ok()?)))
        .collect();
    successes.sort_by_key(|(code, _)| *code);
    let mut found: Vec<&'a Value> = Vec::new();
    let mut read: Vec<Value> = Vec::new();
    let mut accept = None;
    let mut known = !successes.is_empty();
    let mut link = false;
    for (_, response) in &successes {
        let Some(content) = response.get("content").and_then(Value::as_object).filter(|content| !content.is_empty())
        else {
            continue;
        };
        let Some((name, media)) = content.iter().min_by_key(|(name, _)| rank(name)) else { continue };
        accept.get_or_insert_with(|| name.split(';').next().unwrap_or_default().trim().to_owned());
        link |= has_link(document, response);
        let schema = match media.get("schema") {
            Some(schema) if rank(name) <= LAST_JSON => {
                found.push(schema);
                schemas.read(schema, Direction::Response)
            }
            None if rank(name) <= LAST_JSON => Value::Bool(true),
            _ if name.starts_with("text/") => json!({"type": "string"}),
            _ => Value::Bool(true),
        };
        known &= schema != Value::Bool(true);
        if !read.contains(&schema) {
            read.push(schema);
        }
    }
    let schema = match (known, read.len()) {
        (false, _) => Value::Bool(true),
        (true, 0) => json!({"type": "null"}),
        (true, 1) => read.swap_remove(0),
        (true, _) => json!({"anyOf": read}),
    };
    let is_get = method == "GET";
    let paging = match found.as_slice() {
        [only] if is_get && link && View::new(document, only).kinds() == ["array"] => Paging::Link,
        [only] if is_get => next_field(document, only, parameters),
        _ => Paging::None,
    };
    let items = match paging {
        Paging::None => None,
        Paging::Link => Some("entries".to_owned()),
        Paging::Field(_) | Paging::Mark(..) => found.first().and_then(|schema| list(document, schema)),
    };
    let schema = match paging {
        Paging::Link => json!({
            "type": "object",
            "title": "Page",
            "properties": {"entries": schema, "next": {"type": ["string", "null"]}},
        }),
        _ => schema,
    };
    let accept = match accept.as_deref() {
        None | Some("*/*" | "application/*") => "application/json, */*;q=0.5".to_owned(),
        Some(first) => format!("{first}, */*;q=0.5"),
    };
    Declared { schema, accept, paging, items }
}

const LAST_JSON: u8 = 2;

/// How much it is wanted, the least number most.
pub(crate) fn rank(content_type: &str) -> u8 {
    let name = content_type.split(';').next().unwrap_or_default().trim();
    match name {
        "application/json" => 0,
        // A stream of events is JSON of another shape.
        _ if name.contains("stream") => 5,
        _ if name.ends_with("+json") || name.ends_with("/json") => 1,
        "*/*" | "application/*" => LAST_JSON,
        _ if name.starts_with("text/") => 3,
        _ => 4,
    }
}

fn has_link(document: &Document, response: &Map<String, Value>) -> bool {
    let headers = response.get("headers").and_then(Value::as_object);
    headers.into_iter().flatten().any(|(name, header)| {
        // Some documents mention the header with other meanings.
        name.eq_ignore_ascii_case("link") && document.object(header).is_ok()
    })
}

fn next_field(document: &Document, schema: &Value, parameters: &[&str]) -> Paging {
    let is_text = |schema: &&Value| View::new(document, schema).kinds() == ["string"];
    let mark = MARKS.iter().find(|(parameter, path, _)| {
        parameters.contains(parameter) && field(document, schema, path).as_ref().is_some_and(is_text)
    });
    if let Some((parameter, path, written)) = mark {
        return Paging::Mark(parameter, Next { path, written });
    }
    let address = NEXT_FIELDS.iter().find(|(path, _)| {
        let Some(found) = field(document, schema, path).filter(is_text) else { return false };
        // A bare `next` may be anything; an address says so.
        *path != ["next"] || is_uri(&View::new(document, found))
    });
    address.map_or(Paging::None, |(path, written)| Paging::Field(Next { path, written }))
}

/// What lists of items are called where a page has other lists, too.
const LISTS: [&str; 6] = ["items", "data", "results", "entries", "values", "records"];

/// The field that is the list of a page's items: the only list, else the one with a usual name.
fn list(document: &Document, page: &Value) -> Option<String> {
    let fields = View::new(document, page).properties(document, Direction::Response);
    let is_list = |schema: &Value| View::new(document, schema).kinds() == ["array"];
    let lists: Vec<&str> = fields.into_iter().filter(|(_, schema)| is_list(schema)).map(|(name, _)| name).collect();
    let found = match lists.as_slice() {
        [only] => Some(*only),
        _ => LISTS.into_iter().find(|usual| lists.contains(usual)),
    };
    found.map(str::to_owned)
}

/// The schema of a field within an object.
fn field<'a>(document: &'a Document, mut schema: &'a Value, path: &[&str]) -> Option<&'a Value> {
    for name in path {
        let view = View::new(document, schema);
        // A choice of objects is looked through: DigitalOcean's links have three forms.
        let direct = view.properties(document, Direction::Response);
        let choices = view
            .choices()
            .iter()
            .flat_map(|choice| View::new(document, choice).properties(document, Direction::Response));
        schema = direct.into_iter().chain(choices).find(|(field, _)| field == name).map(|(_, field)| field)?;
    }
    Some(schema)
}

fn is_uri(view: &View<'_>) -> bool {
    matches!(view.text("format"), Some("uri" | "url" | "uri-reference"))
}

/// A sentence about the next page for the operation's description; empty if there is none. `parameter` and `number` are the
/// Python names of the parameters that ask for it, and for several as one; `is_walked` says that the items of a page are known.
pub(crate) fn hint(paging: Paging, parameter: &str, number: &str, is_walked: bool) -> String {
    let (until, written) = match paging {
        Paging::None => return String::new(),
        Paging::Link => ("page.next is None", "page.next"),
        Paging::Field(next) | Paging::Mark(_, next) => ("it is empty", next.written),
    };
    if is_walked {
        // Stubs say of every operation with pages that `async for` goes through them.
        format!("{number}=20 gets up to 20 pages as one, {parameter}={written} the next one.")
    } else {
        format!("Until {until}, {parameter}={written} gets the next page; {number}=20 gets up to 20 as one.")
    }
}

/// The title of the API, or its host.
pub(crate) fn title(document: &Document) -> Option<&str> {
    document.get("info").and_then(Value::as_object).and_then(|info| text(info, "title"))
}
