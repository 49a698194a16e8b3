//! Documents that are broken, or made to do harm.

use std::collections::HashSet;

use fimble_openapi::{Config, Limits, Loaded, Source, load};
use fimble_toolkit::{Declaration, classes, is_python_name, signature};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::{call_of, document, loaded};

fn anywhere() -> Config {
    Config { base_url: Some("http://127.0.0.1:1".to_owned()), ..Config::default() }
}

#[tokio::test]
async fn a_broken_part_loses_itself_only() {
    let body = |content: Value| json!({"requestBody": {"content": {"application/json": content}}});
    let paths = json!({
        "/good": {"get": {"operationId": "good"}},
        "/dangling": {"get": {"parameters": [{"$ref": "#/components/parameters/none"}]}},
        "/cycle": {"$ref": "#/paths/~1cycle"},
        "/elsewhere": {"get": {"parameters": [{"$ref": "other.yaml#/x"}]}},
        "/place": {"get": {"parameters": [{"name": "x", "in": "space"}]}},
        "/nameless": {"get": {"parameters": [{"in": "query"}]}},
        "/text": {"get": "text", "post": {"requestBody": {"$ref": "#/none"}}},
        "/list": [],
        "/schema": {"post": body(json!({"schema": {"$ref": "#/components/schemas/none"}}))},
        "/self": {"post": body(json!({"schema": {"$ref": "#/components/schemas/Loop"}}))},
        "/relative": {"get": {"servers": [{"url": "ftp://x"}]}},
        "x-more": {},
    });
    let schemas = json!({"Loop": {"allOf": [{"$ref": "#/components/schemas/Loop"}]}});
    let config = Config { base_url: None, ..Config::default() };
    let more = json!({"components": {"schemas": schemas}, "servers": [{"url": "http://127.0.0.1:1"}]});
    let Loaded { toolkit, problems } = loaded(&document(paths, more), config).await;
    let stubs: Vec<String> = toolkit.declaration().operations.iter().map(signature).collect();
    assert_eq!(stubs, ["good()", "post_schema(body: Any = None)", "post_self(body: Any = None)"]);
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let expected = [
        "/cycle: the path cannot be read: a reference leads to another one more than 32 times",
        "GET /text: it is no object",
        "/list: the path cannot be read: there is no object where one must be",
        "GET /dangling: a parameter cannot be read: `#/components/parameters/none` is not in the document",
        "GET /elsewhere: a parameter cannot be read: `other.yaml#/x` is in another file, which is not read",
        "GET /place: the parameter `x` is in `space`",
        "GET /nameless: a parameter has no name",
        "POST /text: its body cannot be read: `#/none` is not in the document",
        "GET /relative: `ftp://x/` is neither http:// nor https://",
    ];
    assert_eq!(problems, expected);
}

#[tokio::test]
async fn limits_name_themselves() {
    let limits = Limits { operations: 2, parameters: 3, description_characters: 10, ..Limits::default() };
    let parameters: Vec<Value> = (0..4).map(|index| json!({"name": format!("p{index}"), "in": "query"})).collect();
    let paths = json!({
        "/a": {"get": {"parameters": parameters, "summary": "x"}},
        "/b": {"get": {"summary": "0123456789 and more"}},
        "/c": {"get": {}},
        "/d": {"get": {}},
    });
    let Loaded { toolkit, problems } = loaded(&document(paths, json!({})), Config { limits, ..anywhere() }).await;
    let declaration = toolkit.declaration();
    let told: Vec<(&str, &str)> =
        declaration.operations.iter().map(|one| (one.name.as_str(), one.description.as_str())).collect();
    assert_eq!(told, [("get_b", "012345678…"), ("get_c", "")]);
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let expected = [
        "the document: only the first 2 of 3 operations are there; choose by a filter, which comes before the limit",
        "GET /a: it has 4 parameters, more than 3",
    ];
    assert_eq!(problems, expected);
}

/// Each of many schemas refers twice to the next: read in full they would be 2^40.
#[tokio::test]
async fn a_document_that_grows_when_it_is_read_stays_small() {
    let mut schemas = Map::new();
    for index in 0..40 {
        let next = json!({"$ref": format!("#/components/schemas/S{}", index + 1)});
        schemas.insert(
            format!("S{index}"),
            json!({"type": "object", "properties": {"a": next, "b": next},
            "allOf": [next, next], "anyOf": [next, next]}),
        );
    }
    let of = |name: &str| json!({"get": {"parameters": [{"name": "x", "in": "query", "schema": {"$ref": name}}]}});
    let paths = json!({"/x": of("#/components/schemas/S0"), "/y": of("#/components/schemas/S1")});
    let loaded = loaded(&document(paths, json!({"components": {"schemas": schemas}})), anywhere()).await;
    let declaration = loaded.toolkit.declaration();
    let bytes = serde_json::to_string(&declaration).unwrap().len();
    assert!(bytes < 20_000, "{bytes}");
}

/// Whether a schema has a reference. Fields and values may be called `$ref`: those are none.
fn refers(schema: &Value) -> bool {
    let parts = ["items", "additionalProperties"].into_iter().filter_map(|name| schema.get(name));
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::values);
    let choices = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    schema.get("$ref").is_some() || parts.chain(fields).chain(choices).any(refers)
}

#[tokio::test]
async fn a_field_or_a_value_may_be_called_like_a_reference() {
    let schema = json!({"type": "object", "properties": {"$ref": {"const": "$ref"}, "x": {"enum": ["$ref"]}}});
    let paths = json!({"/a": {"get": {"operationId": "a", "responses": {"200": {"content": {"application/json": {"schema": schema}}}}}}});
    let Loaded { toolkit, problems } = loaded(&document(paths, json!({})), anywhere()).await;
    assert!(problems.is_empty());
    let returns = &toolkit.declaration().operations[0].returns;
    assert_eq!(returns["properties"], json!({"$ref": {"const": "$ref"}, "x": {"enum": ["$ref"]}}));
    assert!(!refers(returns));
}

/// What the registry and the stubs ask of every toolkit.
fn check(declaration: &Declaration, limits: &Limits) {
    assert!(is_python_name(&declaration.name), "{}", declaration.name);
    assert!(declaration.operations.len() <= limits.operations);
    let mut names = HashSet::new();
    for operation in &declaration.operations {
        assert!(is_python_name(&operation.name) && names.insert(&operation.name), "{}", operation.name);
        assert!(operation.parameters.len() <= limits.parameters);
        assert!(
            operation.description.chars().count() <= limits.description_characters + 120,
            "{}",
            operation.description
        );
        let mut names = HashSet::new();
        let mut optional = false;
        for parameter in &operation.parameters {
            assert!(is_python_name(&parameter.name) && names.insert(&parameter.name), "{}", parameter.name);
            assert!(!(optional && parameter.required), "{}", parameter.name);
            optional |= !parameter.required;
        }
        signature(operation);
        classes(operation);
        let schemas = operation.parameters.iter().map(|parameter| &parameter.schema).chain([&operation.returns]);
        for schema in schemas {
            assert!(!refers(schema), "{schema}");
        }
    }
}

/// Loads a document, and calls what it declares with what the arguments may be. Nobody listens at its server.
fn survives(text: String) {
    let limits = Limits { operations: 5, parameters: 8, ..Limits::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let Ok(loaded) = load(Source::Text(text), Config { limits, ..anywhere() }).await else { return };
        let declaration = loaded.toolkit.declaration();
        check(&declaration, &limits);
        for operation in declaration.operations {
            let values = [json!("a/../b\n"), json!([1, {"k": null}]), json!({"base64": "%", "k": {"l": [[]]}})];
            let names = operation.parameters.iter().map(|parameter| parameter.name.clone());
            let arguments: Map<String, Value> = names.zip(values.into_iter().cycle()).collect();
            assert!(loaded.toolkit.call(call_of(&operation.name, Value::Object(arguments))).await.is_err());
        }
    });
}

fn word() -> impl Strategy<Value = String> {
    let words = [
        "$ref",
        "#/components/schemas/A",
        "#/components/parameters/A",
        "#/paths/~1a",
        "name",
        "in",
        "path",
        "query",
        "header",
        "cookie",
        "schema",
        "type",
        "object",
        "array",
        "string",
        "properties",
        "items",
        "allOf",
        "anyOf",
        "oneOf",
        "nullable",
        "required",
        "content",
        "application/json",
        "multipart/form-data",
        "text/plain",
        "*/*",
        "requestBody",
        "responses",
        "200",
        "2XX",
        "parameters",
        "style",
        "deepObject",
        "explode",
        "enum",
        "default",
        "operationId",
        "import",
        "self",
        "/a",
        "/{id}",
        "get",
        "post",
        "security",
        "servers",
        "url",
        "https://{x}",
        "variables",
        "description",
        "é\u{0}'\"",
    ];
    prop_oneof![8 => prop::sample::select(words.to_vec()).prop_map(str::to_owned), 1 => ".{0,12}"]
}

fn arbitrary() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((word(), inner), 0..6).prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

/// The value with one of its parts replaced; `place` chooses which.
fn replaced(value: &mut Value, place: &mut usize, new: &Value) {
    if *place == 0 {
        *value = new.clone();
    }
    *place = place.wrapping_sub(1);
    match value {
        Value::Object(fields) => fields.values_mut().for_each(|value| replaced(value, place, new)),
        Value::Array(items) => items.iter_mut().for_each(|value| replaced(value, place, new)),
        _ => {}
    }
}

fn small() -> Value {
    document(
        json!({"/a/{id}": {"post": {
            "operationId": "add", "tags": ["t"],
            "parameters": [{"name": "id", "in": "path", "schema": {"type": "integer"}}, {"$ref": "#/components/parameters/A"}],
            "requestBody": {"required": true, "content": {"multipart/form-data": {"schema": {"$ref": "#/components/schemas/A"}}}},
            "responses": {"200": {"content": {"application/json": {"schema": {"type": "array", "items": {"$ref": "#/components/schemas/A"}}}}}},
        }}}),
        json!({"components": {
            "parameters": {"A": {"name": "filter", "in": "query", "style": "deepObject", "schema": {"type": "object"}}},
            "schemas": {"A": {"allOf": [{"type": "object", "properties": {
                "x": {"oneOf": [{"type": "string", "format": "binary"}, {"type": "null"}]}, "me": {"$ref": "#/components/schemas/A"}}}]}},
            "securitySchemes": {"k": {"type": "apiKey", "in": "query", "name": "k"}}}}),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_json_is_survived(paths in arbitrary(), schemas in arbitrary(), parameters in arbitrary()) {
        survives(document(paths, json!({"components": {"schemas": schemas, "parameters": {"A": parameters}}})).to_string());
    }

    #[test]
    fn a_damaged_document_is_survived(place in 0_usize..120, new in arbitrary(), swagger in any::<bool>()) {
        let mut source = small();
        replaced(&mut source, &mut { place }, &new);
        if swagger && let Some(fields) = source.as_object_mut() {
            fields.remove("openapi");
            fields.insert("swagger".to_owned(), json!("2.0"));
        }
        survives(source.to_string());
    }

    #[test]
    fn any_text_is_survived(text in "\\PC{0,200}") {
        survives(text.clone());
        survives(format!("openapi: 3.1.0\npaths:\n  /a:\n    get:\n      {text}"));
    }
}
