//! A call's arguments as a request. It sends nothing.

use fimble_toolkit::ToolError;
use reqwest::header::{ACCEPT, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder};
use serde_json::{Map, Value};
use url::Url;

use crate::encode::{self, Pair, Style, pairs, piece, reserved, scalar, strict};
use crate::operation::{Plan, Target};
use crate::parameter::{Location, Piece, Place};
use crate::security::Grant;
use crate::{Limits, payload};

/// What is the same in all requests of a toolkit.
pub(crate) struct Sender {
    /// The client.
    pub(crate) client: Client,
    /// The host's own headers.
    pub(crate) headers: HeaderMap,
}

/// The arguments, sorted by where they go.
#[derive(Default)]
struct Sorted<'a> {
    places: Vec<(&'a Place, &'a Value)>,
    fields: Map<String, Value>,
    body: Option<&'a Value>,
    content_type: Option<&'a str>,
    next: Option<&'a str>,
}

/// The request of a call. `key` is the call's idempotency key.
///
/// # Errors
/// `InvalidArgument`: an argument that cannot be written at its place.
pub(crate) fn build(
    sender: &Sender,
    plan: &Plan,
    arguments: &Map<String, Value>,
    key: &str,
    limits: &Limits,
) -> Result<RequestBuilder, ToolError> {
    let mut sorted = Sorted::default();
    for (name, target) in &plan.targets {
        let Some(value) = arguments.get(name) else { continue };
        match target {
            Target::Place(place) => sorted.places.push((place, value)),
            Target::Field(field) => drop(sorted.fields.insert(field.clone(), value.clone())),
            Target::Body => sorted.body = Some(value),
            Target::ContentType => sorted.content_type = value.as_str(),
            Target::Next => sorted.next = value.as_str(),
            Target::Pages => {}
        }
    }
    let url = address(plan, &sorted)?;
    let mut headers = HeaderMap::new();
    let accept = HeaderValue::try_from(&plan.accept).unwrap_or_else(|_| HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, accept);
    let mut cookies: Vec<String> = Vec::new();
    for (place, value) in &sorted.places {
        match place.location {
            Location::Header if !value.is_null() => {
                let text = if place.json {
                    value.to_string()
                } else {
                    piece("", value, place.style, place.explode, &str::to_owned)
                };
                insert(&mut headers, &place.name, &text)?;
            }
            Location::Cookie => cookies.extend(written(place, value).into_iter().map(joined)),
            _ => {}
        }
    }
    if let Some(header) = plan.key_header.as_deref().filter(|_| !key.is_empty()) {
        insert(&mut headers, header, key)?;
    }
    for grant in &plan.grants.sent {
        match grant {
            Grant::Header(name, value) => drop(headers.insert(name, value.clone())),
            Grant::Cookie(name, value) => cookies.push(joined((strict(name), strict(value.expose())))),
            Grant::Query(..) => {}
        }
    }
    if !cookies.is_empty() {
        let mut value = HeaderValue::try_from(cookies.join("; "))
            .map_err(|_| ToolError::invalid_argument("a cookie cannot be sent in a header"))?;
        value.set_sensitive(true);
        headers.insert(COOKIE, value);
    }
    if !plan.foreign {
        headers.extend(sender.headers.clone());
    }
    let mut request = sender.client.request(plan.method.clone(), url);
    if let Some(body) = &plan.body {
        let media = match sorted.content_type {
            Some(wanted) => body.media.iter().find(|media| media.content_type == wanted),
            None => body.media.first(),
        };
        let media = media.ok_or_else(|| {
            let kinds: Vec<&str> = body.media.iter().map(|media| media.content_type.as_str()).collect();
            ToolError::invalid_argument(format!("`content_type` must be one of {}", kinds.join(", ")))
        })?;
        let has_fields = plan.targets.iter().any(|(_, target)| matches!(target, Target::Field(_)));
        let fields = Value::Object(sorted.fields);
        let value = match sorted.body {
            Some(value) => Some(value),
            None if has_fields && (body.required || fields.as_object().is_some_and(|fields| !fields.is_empty())) => {
                Some(&fields)
            }
            None => None,
        };
        if let Some(value) = value {
            // The host's own header may name the content type of a gateway.
            headers.remove(CONTENT_TYPE);
            request = payload::add(request, media, value, limits)?;
        }
    }
    Ok(request.headers(headers))
}

fn insert(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), ToolError> {
    let header = HeaderName::try_from(name);
    let value = HeaderValue::try_from(value);
    match (header, value) {
        (Ok(header), Ok(value)) => drop(headers.insert(header, value)),
        _ => {
            let message = format!("`{name}` is sent as a header, which takes no line breaks and control characters");
            return Err(ToolError::invalid_argument(message));
        }
    }
    Ok(())
}

fn joined((name, value): Pair) -> String {
    format!("{name}={value}")
}

fn written(place: &Place, value: &Value) -> Vec<Pair> {
    let escape: &dyn Fn(&str) -> String = if place.allow_reserved { &reserved } else { &strict };
    if place.json && !value.is_null() {
        return vec![(strict(&place.name), escape(&value.to_string()))];
    }
    pairs(&place.name, value, place.style, place.explode, escape)
}

fn address(plan: &Plan, sorted: &Sorted<'_>) -> Result<Url, ToolError> {
    let mut path = String::new();
    for part in &plan.path {
        match part {
            Piece::Text(text) => path.push_str(text),
            Piece::Name(name) => path.push_str(&segment(name, sorted)?),
        }
    }
    // Some documents have a part of the query in their paths.
    let path = path.split('#').next().unwrap_or_default();
    let (path, fixed) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query.to_owned())));
    if path.split('/').any(|segment| matches!(segment, "." | "..")) {
        return Err(ToolError::invalid_argument("a part of the path is `.` or `..`, which would be another operation"));
    }
    let mut query: Vec<String> = fixed.into_iter().collect();
    match sorted.next {
        Some(next) => query = next_query(next, plan)?,
        None => {
            let places = sorted.places.iter().filter(|(place, _)| place.location == Location::Query);
            query.extend(places.flat_map(|(place, value)| written(place, value)).map(joined));
        }
    }
    for grant in &plan.grants.sent {
        if let Grant::Query(name, value) = grant {
            query.push(joined((strict(name), strict(value.expose()))));
        }
    }
    let mut url = plan.server.clone();
    let whole = format!("{}/{}", plan.server.path().trim_end_matches('/'), path.trim_start_matches('/'));
    url.set_path(&whole);
    url.set_query(Some(query.join("&")).as_deref().filter(|query| !query.is_empty()));
    Ok(url)
}

fn segment(name: &str, sorted: &Sorted<'_>) -> Result<String, ToolError> {
    let found = sorted.places.iter().find(|(place, _)| place.location == Location::Path && place.name == name);
    let Some((place, value)) = found else {
        return Err(ToolError::invalid_argument(format!("`{name}` is a part of the path and must be given")));
    };
    let text =
        if place.json { strict(&value.to_string()) } else { piece(name, value, place.style, place.explode, &strict) };
    if text.is_empty() || (scalar(value).is_empty() && place.style == Style::Simple) {
        return Err(ToolError::invalid_argument(format!("`{name}` is a part of the path and must not be empty")));
    }
    Ok(text)
}

/// The query of the next page. Only that is taken of an address: path, host and credential stay the operation's own.
fn next_query(next: &str, plan: &Plan) -> Result<Vec<String>, ToolError> {
    let query = next.split('#').next().unwrap_or_default();
    let query = query.split_once('?').map_or(query, |(_, query)| query);
    if !query.contains('=') {
        let message = "`next` is no page of this operation";
        return Err(ToolError::invalid_argument(message).with_hint("give the `next` of a page as it came, or nothing"));
    }
    let is_ours = |pair: &&str| {
        let name = pair.split('=').next().unwrap_or_default();
        plan.grants.sent.iter().any(|grant| matches!(grant, Grant::Query(own, _) if strict(own) == name || own == name))
    };
    Ok(query.split('&').filter(|pair| !is_ours(pair) && !pair.is_empty()).map(str::to_owned).collect())
}

/// The query of an address that a server names as its next page, as programs pass it back: without our credentials.
pub(crate) fn next_of(address: &str, plan: &Plan) -> Option<String> {
    next_query(address, plan).ok().map(|pairs| pairs.join("&")).filter(|query| !query.is_empty())
}

/// The pairs of a form.
pub(crate) fn form_pairs(name: &str, value: &Value, style: Style, explode: bool) -> Vec<Pair> {
    // An object in a form is JSON, if the document does not say how else it is written.
    if value.is_object() && style == Style::Form {
        return vec![(encode::form(name), encode::form(&value.to_string()))];
    }
    pairs(name, value, style, explode, &encode::form)
}
