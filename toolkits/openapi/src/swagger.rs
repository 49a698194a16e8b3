//! A document of Swagger 2.0 in the form of OpenAPI 3.0. What it cannot say there is left out.

use serde_json::{Map, Value, json};

use crate::response;

/// The document in the form of version 3.
pub(crate) fn convert(mut root: Map<String, Value>) -> Map<String, Value> {
    let servers = servers(&root);
    let consumes = texts(root.get("consumes"), "application/json");
    let produces = texts(root.get("produces"), "application/json");
    let produces = best(produces);
    let shared = root.remove("parameters").unwrap_or_default();
    let mut parameters = shared.clone();
    each(&mut parameters, |parameter| *parameter = parameter_of(parameter.take()));
    let mut responses = root.remove("responses").unwrap_or_default();
    each(&mut responses, |response| convert_response(response, produces.clone()));
    let mut schemes = root.remove("securityDefinitions").unwrap_or_default();
    each(&mut schemes, |scheme| {
        if scheme.get("type").is_some_and(|kind| kind == "basic") {
            *scheme = json!({"type": "http", "scheme": "basic"});
        }
    });
    if let Some(Value::Object(paths)) = root.get_mut("paths") {
        for item in paths.values_mut().filter_map(Value::as_object_mut) {
            convert_item(item, &shared, &consumes, &produces);
        }
    }
    let schemas = root.remove("definitions").unwrap_or_else(|| json!({}));
    root.insert("openapi".into(), "3.0.3".into());
    root.insert("servers".into(), servers);
    let components = json!({
        "schemas": schemas, "parameters": parameters, "responses": responses,
        "securitySchemes": schemes,
    });
    root.insert("components".into(), components);
    root.values_mut().for_each(rename);
    root
}

fn servers(root: &Map<String, Value>) -> Value {
    let path = root.get("basePath").and_then(Value::as_str).unwrap_or("/");
    let schemes = texts(root.get("schemes"), "");
    let scheme = ["https", "http"].into_iter().find(|scheme| schemes.iter().any(|one| one == scheme));
    match (root.get("host").and_then(Value::as_str), scheme) {
        (Some(host), Some(scheme)) => json!([{"url": format!("{scheme}://{host}{path}")}]),
        // Without a scheme it is that of the document's own address.
        (Some(host), None) => json!([{"url": format!("//{host}{path}")}]),
        (None, _) => json!([{"url": path}]),
    }
}

fn convert_item(item: &mut Map<String, Value>, shared: &Value, consumes: &[String], produces: &str) {
    let common = match item.remove("parameters") {
        Some(Value::Array(parameters)) => parameters,
        _ => Vec::new(),
    };
    let (plain, of_body): (Vec<Value>, Vec<Value>) =
        common.into_iter().partition(|parameter| !matches!(place(target(parameter, shared)), "body" | "formData"));
    for operation in item.values_mut().filter_map(Value::as_object_mut) {
        let consumes =
            operation.remove("consumes").map_or_else(|| consumes.to_vec(), |own| texts(Some(&own), "application/json"));
        let produces = operation
            .remove("produces")
            .map_or_else(|| produces.to_owned(), |own| best(texts(Some(&own), "application/json")));
        let mut own = match operation.remove("parameters") {
            Some(Value::Array(parameters)) => parameters,
            _ => Vec::new(),
        };
        own.extend(of_body.iter().cloned());
        let (form, rest): (Vec<Value>, Vec<Value>) =
            own.into_iter().partition(|parameter| place(target(parameter, shared)) == "formData");
        let (bodies, rest): (Vec<Value>, Vec<Value>) =
            rest.into_iter().partition(|parameter| place(target(parameter, shared)) == "body");
        if let Some(parameter) = bodies.first() {
            operation.insert("requestBody".into(), body(target(parameter, shared), &consumes));
        } else if !form.is_empty() {
            let fields: Vec<&Value> = form.iter().map(|parameter| target(parameter, shared)).collect();
            operation.insert("requestBody".into(), form_body(&fields, &consumes));
        }
        operation.insert("parameters".into(), rest.into_iter().map(parameter_of).collect());
        if let Some(responses) = operation.get_mut("responses") {
            each(responses, |response| convert_response(response, produces.clone()));
        }
    }
    item.insert("parameters".into(), plain.into_iter().map(parameter_of).collect());
}

/// What a parameter says, or the shared one that it refers to.
fn target<'a>(parameter: &'a Value, shared: &'a Value) -> &'a Value {
    let reference = parameter.get("$ref").and_then(Value::as_str);
    let name = reference.and_then(|reference| reference.strip_prefix("#/parameters/"));
    name.and_then(|name| shared.get(name)).unwrap_or(parameter)
}

fn place(parameter: &Value) -> &str {
    parameter.get("in").and_then(Value::as_str).unwrap_or_default()
}

/// A parameter with its type in a schema of its own.
fn parameter_of(parameter: Value) -> Value {
    let is_query = place(&parameter) == "query";
    let fields = match parameter {
        Value::Object(fields) if !fields.contains_key("$ref") => fields,
        other => return other,
    };
    let outside = ["name", "in", "description", "required", "allowEmptyValue", "collectionFormat"];
    let (mut converted, schema): (Map<String, Value>, Map<String, Value>) =
        fields.into_iter().partition(|(key, _)| outside.contains(&key.as_str()) || key.starts_with("x-"));
    let style = match converted.remove("collectionFormat").as_ref().and_then(Value::as_str) {
        _ if !is_query => None,
        Some("multi") => Some(("form", true)),
        Some("ssv") => Some(("spaceDelimited", false)),
        Some("pipes") => Some(("pipeDelimited", false)),
        _ => Some(("form", false)),
    };
    if let Some((style, explode)) = style {
        converted.insert("style".into(), style.into());
        converted.insert("explode".into(), explode.into());
    }
    converted.insert("schema".into(), Value::Object(schema));
    Value::Object(converted)
}

fn body(parameter: &Value, consumes: &[String]) -> Value {
    let schema = parameter.get("schema").cloned().unwrap_or_else(|| json!({}));
    let content: Map<String, Value> = consumes.iter().map(|kind| (kind.clone(), json!({"schema": schema}))).collect();
    json!({
        "description": parameter.get("description").cloned().unwrap_or_default(),
        "required": parameter.get("required").cloned().unwrap_or(Value::Bool(false)),
        "content": content,
    })
}

fn form_body(fields: &[&Value], consumes: &[String]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    let mut has_file = false;
    for field in fields {
        let Some(name) = field.get("name").and_then(Value::as_str) else { continue };
        let mut schema = parameter_of((*field).clone()).get_mut("schema").map(Value::take).unwrap_or_default();
        if schema.get("type").is_some_and(|kind| kind == "file") {
            has_file = true;
            schema = json!({"type": "string", "format": "binary"});
        }
        if let (Value::Object(schema), Some(description)) = (&mut schema, field.get("description")) {
            schema.insert("description".into(), description.clone());
        }
        if field.get("required") == Some(&Value::Bool(true)) {
            required.push(name);
        }
        properties.insert(name.to_owned(), schema);
    }
    let multipart = has_file || consumes.iter().any(|kind| kind == "multipart/form-data");
    let kind = if multipart { "multipart/form-data" } else { "application/x-www-form-urlencoded" };
    let schema = json!({"type": "object", "properties": properties, "required": required});
    json!({"required": !required.is_empty(), "content": {kind: {"schema": schema}}})
}

fn convert_response(response: &mut Value, produces: String) {
    let Value::Object(fields) = response else { return };
    if let Some(schema) = fields.remove("schema") {
        let mut media = Map::new();
        media.insert("schema".to_owned(), schema);
        fields.insert("content".into(), json!({produces: media}));
    }
}

/// The content type that an answer is asked for: the others need not be known.
fn best(produces: Vec<String>) -> String {
    produces.into_iter().min_by_key(|kind| response::rank(kind)).unwrap_or_default()
}

fn each(value: &mut Value, change: impl FnMut(&mut Value)) {
    if let Value::Object(fields) = value {
        fields.values_mut().for_each(change);
    }
}

/// The texts of a list; `usual` alone where there are none.
fn texts(value: Option<&Value>, usual: &str) -> Vec<String> {
    let texts: Vec<String> =
        value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    if texts.is_empty() { vec![usual.to_owned()] } else { texts }
}

/// Points the references to where version 3 keeps things.
fn rename(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get_mut("$ref") {
                for (old, new) in PLACES {
                    if let Some(name) = reference.strip_prefix(old) {
                        *reference = format!("{new}{name}");
                        break;
                    }
                }
            }
            fields.values_mut().for_each(rename);
        }
        Value::Array(items) => items.iter_mut().for_each(rename),
        _ => {}
    }
}

const PLACES: [(&str, &str); 3] = [
    ("#/definitions/", "#/components/schemas/"),
    ("#/parameters/", "#/components/parameters/"),
    ("#/responses/", "#/components/responses/"),
];
