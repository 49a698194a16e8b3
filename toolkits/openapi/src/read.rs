//! From a document's JSON to its toolkit: finds the operations, names them, and reads those that are wanted.

use std::collections::HashMap;

use fimble_toolkit::{Declaration, python_name, python_names};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use url::Url;

use crate::document::{Document, items, sentence, text};
use crate::operation::{Found, Operations};
use crate::request::Sender;
use crate::schema::Schemas;
use crate::security::Schemes;
use crate::server::Servers;
use crate::toolkit::DocumentToolkit;
use crate::{Config, Error, Problem, Source, client, response, swagger};

/// The methods that a path can have, as the document writes them and as they are sent.
const METHODS: [(&str, &str); 7] = [
    ("get", "GET"),
    ("head", "HEAD"),
    ("options", "OPTIONS"),
    ("post", "POST"),
    ("put", "PUT"),
    ("patch", "PATCH"),
    ("delete", "DELETE"),
];

/// The toolkit of a document, and what of it could not be used.
pub(crate) fn toolkit(
    root: Value,
    origin: Option<&Url>,
    source: &Source,
    config: &Config,
) -> Result<(DocumentToolkit, Vec<Problem>), Error> {
    let limits = &config.limits;
    let named = |problem: String| Error::NotOpenApi { document: source.to_string(), problem };
    let Value::Object(fields) = root else { return Err(named("it is no object".to_owned())) };
    let fields = version(fields).map_err(named)?;
    let document = Document::new(fields, limits);
    let servers = Servers::new(config, origin)?;
    let main = servers.of(document.fields()).unwrap_or_else(|| servers.fallback());

    let mut problems = Vec::new();
    let schemes = Schemes::new(&document, config, &mut problems);
    let found = find(&document, &mut problems);
    let originals: Vec<String> = found.iter().map(|one| one.name(&config.names)).collect();
    let originals: Vec<&str> = originals.iter().map(String::as_str).collect();
    // Named before they are filtered: an operation keeps its name when others come or go by the filter.
    let names = python_names(&originals, "operation");
    let mut left_out = 0_usize;
    let mut operations = Operations { document: &document, schemas: Schemas::new(&document, limits), schemes, config };
    let mut declared = Vec::new();
    let mut plans = HashMap::new();
    for (one, name) in found.iter().zip(names) {
        let place = one.place();
        let tags: Vec<&str> = items(one.fields, "tags").iter().filter_map(Value::as_str).collect();
        let id = text(one.fields, "operationId").unwrap_or_default();
        if !config.filter.takes(&[&name, id, &place], &tags) {
            continue;
        }
        if declared.len() == limits.operations {
            left_out += 1;
            continue;
        }
        let own = servers.of(one.fields).or_else(|| servers.of(one.item));
        let server = own.unwrap_or_else(|| main.clone());
        let read = server.and_then(|server| {
            let foreign = !main.as_ref().is_ok_and(|main| client::same_origin(main, &server));
            operations.read(one, name, server, foreign)
        });
        match read {
            Ok((operation, plan)) => {
                plans.insert(operation.name.clone(), plan);
                declared.push(operation);
            }
            Err(reason) => problems.push(Problem::new(place, reason)),
        }
    }
    if declared.is_empty() {
        return Err(match main {
            Err(problem) if !found.is_empty() => Error::NoServer { document: source.to_string(), problem },
            _ => Error::Empty { document: source.to_string(), first: problems.into_iter().next() },
        });
    }
    if left_out > 0 {
        let reason = format!(
            "only the first {} of {} operations are there; choose by a filter, which comes before the limit",
            limits.operations,
            limits.operations + left_out
        );
        // It is the first, because only a few are told.
        problems.insert(0, Problem::new("the document", reason));
    }
    problems.truncate(limits.problems);
    let title = response::title(&document);
    let name = config.name.as_deref().or(title).unwrap_or("api");
    let description = title.map(|title| sentence(title, limits.description_characters));
    let declaration = Declaration {
        name: format!("{}_toolkit", python_name(&name.to_lowercase(), "api").trim_end_matches('_')),
        description: description.filter(|text| !text.is_empty()).unwrap_or_else(|| format!("The API of {source}.")),
        operations: declared,
    };
    let sender = Sender { client: client::build(limits, &config.tls)?, headers: headers(config)? };
    let credentials = config.credentials.values().chain(&config.credential).map(|credential| credential.secret());
    let mut secrets: Vec<String> =
        credentials.chain(config.headers.values()).map(|secret| secret.expose().to_owned()).collect();
    secrets.extend(operations.schemes.sent_secrets());
    // Where one is a part of another, the longer one is masked first.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    drop((operations, found));
    // Freeing a large document takes as long as reading it did.
    std::thread::spawn(move || drop(document));
    Ok((DocumentToolkit { declaration, plans, sender, secrets, limits: *limits }, problems))
}

/// The document in the form of version 3.
fn version(fields: Map<String, Value>) -> Result<Map<String, Value>, String> {
    let said = |key: &str| fields.get(key).map(crate::encode::scalar);
    match (said("openapi"), said("swagger")) {
        (Some(version), _) if version.starts_with("3.") => Ok(fields),
        (Some(version), _) => Err(format!("it is of version {:.20}, and 3.0 and 3.1 are read", version)),
        (None, Some(version)) if version == "2.0" || version == "2" => Ok(swagger::convert(fields)),
        (None, Some(version)) => Err(format!("it is of Swagger version {:.20}, and 2.0 is read", version)),
        (None, None) => Err("it has no field `openapi`".to_owned()),
    }
}

fn find<'a>(document: &'a Document, problems: &mut Vec<Problem>) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    for (path, item) in document.get("paths").and_then(Value::as_object).into_iter().flatten() {
        if path.starts_with("x-") {
            continue;
        }
        let item = match document.object(item) {
            Ok(item) => item,
            Err(problem) => {
                problems.push(Problem::new(path.as_str(), format!("the path cannot be read: {problem}")));
                continue;
            }
        };
        for (key, method) in METHODS {
            match item.get(key) {
                Some(Value::Object(fields)) => found.push(Found { method, path, item, fields }),
                Some(Value::Null) | None => {}
                Some(_) => problems.push(Problem::new(format!("{method} {path}"), "it is no object")),
            }
        }
    }
    found
}

/// The host's own headers.
///
/// # Errors
/// `Setting`: a header that cannot be sent.
pub(crate) fn headers(config: &Config) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    for (name, value) in &config.headers {
        let (Ok(header), Ok(mut value)) = (HeaderName::try_from(name.as_str()), HeaderValue::try_from(value.expose()))
        else {
            let setting = format!("the header `{name}`");
            return Err(Error::Setting { setting, problem: "it cannot be sent".to_owned() });
        };
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}
