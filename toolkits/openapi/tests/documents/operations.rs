//! What documents become: names, parameters, bodies, results, risks.

use fimble_openapi::{Config, Error, Filter, Limits, Source, load};
use fimble_toolkit::{Risk, classes, signature};
use serde_json::{Value, json};

use crate::{document, loaded};

fn anywhere() -> Config {
    Config { base_url: Some("http://127.0.0.1:1".to_owned()), ..Config::default() }
}

async fn stubs(document: &Value) -> Vec<String> {
    let loaded = loaded(document, anywhere()).await;
    assert_eq!(loaded.problems, []);
    loaded.toolkit.declaration().operations.iter().map(signature).collect()
}

async fn stub(operation: Value) -> String {
    stubs(&document(json!({"/x": {"post": operation}}), json!({}))).await.remove(0)
}

#[tokio::test]
async fn githubs_own_description_reads_as_python() {
    let source = Source::File(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/documents/fixtures/github.json").into());
    let loaded = load(source, Config { name: Some("github".to_owned()), ..Config::default() }).await.unwrap();
    assert_eq!(loaded.problems, []);
    let declaration = loaded.toolkit.declaration();
    assert_eq!(
        (declaration.name.as_str(), declaration.description.as_str()),
        ("github_toolkit", "GitHub's official OpenAPI spec + Octokit extension")
    );
    let told: Vec<(&str, Risk, bool)> =
        declaration.operations.iter().map(|one| (one.name.as_str(), one.risk, one.idempotent)).collect();
    let expected = [
        ("issues_list_for_repo", Risk::Read, true),
        ("issues_create", Risk::Write, false),
        ("issues_update", Risk::Write, false),
        ("activity_check_repo_is_starred_by_authenticated_user", Risk::Read, true),
        ("activity_star_repo_for_authenticated_user", Risk::Write, true),
        ("activity_unstar_repo_for_authenticated_user", Risk::Destructive, true),
        ("markdown_render_raw", Risk::Write, false),
        ("gists_get", Risk::Read, true),
    ];
    assert_eq!(told, expected);
    let list = declaration.operation("issues_list_for_repo").unwrap();
    let text = signature(list);
    let start = r#"issues_list_for_repo(owner: str, repo: str, milestone: str = None, state: Literal["open", "closed", "all"] = "open", "#;
    assert!(
        text.starts_with(start)
            && text.ends_with("per_page: int = 30, page: int = 1, next: str = None, pages: int = 1) -> Page"),
        "{text}"
    );
    assert_eq!(
        list.description,
        "List repository issues. pages=20 gets up to 20 pages as one, next=page.next the next one."
    );
    let classes = classes(list);
    assert_eq!(classes["Page"], "class Page: entries: list[Issue]; next: str | None");
    assert!(
        classes["Issue"].contains("; number: int; ") && classes["Issue"].contains("title: str; "),
        "{}",
        classes["Issue"]
    );
    let create = signature(declaration.operation("issues_create").unwrap());
    assert!(
        create.starts_with("issues_create(owner: str, repo: str, title: str | int, body: str = None, "),
        "{create}"
    );
    assert!(create.ends_with(" -> Issue"), "{create}");
    let checked = signature(declaration.operation("activity_check_repo_is_starred_by_authenticated_user").unwrap());
    assert_eq!(checked, "activity_check_repo_is_starred_by_authenticated_user(owner: str, repo: str) -> None");
}

#[tokio::test]
async fn names_are_python_names_of_their_own() {
    let get = |id: &str| {
        json!({"operationId": id, "parameters": [
            {"name": "filter[x]", "in": "query", "schema": {"type": "string"}},
            {"name": "from", "in": "query", "schema": {"type": "integer"}},
            {"name": "X-Trace-Id", "in": "header"},
            {"name": "id", "in": "query", "schema": {"type": "boolean"}},
            {"name": "Accept", "in": "header"},
        ]})
    };
    let paths = json!({
        "/a/{id}": {"get": get("pets/list-all")},
        "/b/{id}": {"get": get("pets.list.all"), "parameters": [{"name": "id", "in": "path", "schema": {"type": "integer"}}]},
        "/c/{pet-id}/toys": {"delete": {}, "get": {}},
        "/": {"get": {"operationId": "import"}},
    });
    let expected = [
        "pets_list_all(id: str, filter_x: str = None, from_: int = None, X_Trace_Id: str = None, id_2: bool = None)",
        "pets_list_all_2(id: int, filter_x: str = None, from_: int = None, X_Trace_Id: str = None, id_2: bool = None)",
        "get_c_by_pet_id_toys(pet_id: str)",
        "delete_c_by_pet_id_toys(pet_id: str)",
        "import_()",
    ];
    assert_eq!(stubs(&document(paths, json!({}))).await, expected);
}

#[tokio::test]
async fn bodies_are_parameters_where_that_is_clear() {
    let body = |content: Value| json!({"operationId": "x", "requestBody": {"required": true, "content": content}});
    let object = json!({"type": "object", "required": ["b"], "properties": {
        "a": {"type": "integer", "default": 3}, "b": {"type": "string"}, "id": {"type": "string", "readOnly": true}}});
    let of = |kind: &str, schema: &Value| body(json!({kind: {"schema": schema}}));
    let table = [
        (of("application/json", &object), "x(b: str, a: int = 3)"),
        (of("application/json; charset=utf-8", &object), "x(b: str, a: int = 3)"),
        (of("application/x-www-form-urlencoded", &object), "x(b: str, a: int = 3)"),
        (of("application/json", &json!({"type": "array", "items": {"type": "string"}})), "x(body: list[str])"),
        (of("application/json", &json!({"oneOf": [{"type": "string"}, {"type": "integer"}]})), "x(body: str | int)"),
        (
            of("application/json", &json!({"type": "object", "additionalProperties": {"type": "string"}})),
            "x(body: dict[str, str])",
        ),
        (of("application/json", &json!({})), "x(body: Any)"),
        (of("text/plain", &json!({"type": "string"})), "x(body: str | File)"),
        (of("application/octet-stream", &json!({"type": "string", "format": "binary"})), "x(body: str | File)"),
        (
            of(
                "multipart/form-data",
                &json!({"type": "object", "properties": {
                "file": {"type": "string", "format": "binary"}, "n": {"type": "integer"}}}),
            ),
            "x(file: str | File = None, n: int = None)",
        ),
        (
            body(json!({"application/json-patch+json": {}, "application/merge-patch+json": {"schema": object}})),
            "x(body: Any, content_type: Literal[\"application/merge-patch+json\", \"application/json-patch+json\"] = \"application/merge-patch+json\")",
        ),
        (
            json!({"operationId": "x", "parameters": [{"name": "a", "in": "query"}],
                "requestBody": {"content": {"application/json": {"schema": object}}}}),
            "x(a: str = None, body: Body = None)",
        ),
        (
            body(
                json!({"application/json": {"schema": {"allOf": [object, {"properties": {"c": {"type": ["null", "number"]}}}]}}}),
            ),
            "x(b: str, a: int = 3, c: float = None)",
        ),
        (json!({"operationId": "x", "requestBody": {"content": {}}}), "x()"),
    ];
    for (operation, expected) in table {
        assert_eq!(stub(operation.clone()).await, expected, "{operation}");
    }
}

#[tokio::test]
async fn results_are_those_of_success() {
    let answers = |responses: Value| json!({"operationId": "x", "responses": responses});
    let json_of = |schema: Value| json!({"description": "", "content": {"application/json": {"schema": schema}}});
    let table = [
        (
            answers(json!({"200": json_of(json!({"type": "integer"})), "404": json_of(json!({"type": "string"}))})),
            "x() -> int",
        ),
        (
            answers(json!({"201": json_of(json!({"type": "integer"})), "200": json_of(json!({"type": "string"}))})),
            "x() -> str | int",
        ),
        (answers(json!({"204": {"description": ""}})), "x() -> None"),
        (answers(json!({"200": json_of(json!({"type": "string"})), "202": {"description": ""}})), "x() -> str"),
        (answers(json!({"default": json_of(json!({"type": "string"}))})), "x()"),
        (answers(json!({"200": {"content": {"text/html": {}}}})), "x() -> str"),
        (answers(json!({"2XX": json_of(json!({"type": "boolean"}))})), "x() -> bool"),
        (answers(json!({"200": {"$ref": "#/components/responses/none"}})), "x()"),
    ];
    for (operation, expected) in table {
        assert_eq!(stub(operation.clone()).await, expected, "{operation}");
    }
}

#[tokio::test]
async fn risks_and_operations_are_chosen() {
    let paths = json!({
        "/search": {"post": {"operationId": "search", "tags": ["find"], "x-fimble-risk": "read"}},
        "/pets": {"get": {"operationId": "list", "tags": ["find"]}, "post": {"operationId": "add", "deprecated": true}},
        "/pets/{id}": {"delete": {"operationId": "remove", "summary": "Removes"}, "head": {"operationId": "exists"}},
    });
    let source = document(paths, json!({}));
    let names = |filter: Filter| {
        let source = source.clone();
        async move {
            let loaded = loaded(&source, Config { filter, ..anywhere() }).await;
            loaded.toolkit.declaration().operations.into_iter().map(|one| one.name).collect::<Vec<_>>()
        }
    };
    let patterns = |patterns: &[&str]| patterns.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
    assert_eq!(names(Filter { tags: patterns(&["find"]), ..Filter::default() }).await, ["search", "list"]);
    assert_eq!(
        names(Filter { include: patterns(&["* /pets*"]), exclude: patterns(&["DELETE *"]), ..Filter::default() }).await,
        ["list", "add", "exists"]
    );
    let risks = vec![("add".to_owned(), Risk::Destructive), ("* /pets*".to_owned(), Risk::Read)];
    let loaded = loaded(&source, Config { risks, ..anywhere() }).await;
    let told: Vec<(String, Risk, String)> =
        loaded.toolkit.declaration().operations.into_iter().map(|one| (one.name, one.risk, one.description)).collect();
    let expected = [
        ("search", Risk::Read, ""),
        ("list", Risk::Read, ""),
        ("add", Risk::Destructive, "Deprecated."),
        ("exists", Risk::Read, ""),
        ("remove", Risk::Read, "Removes."),
    ];
    assert_eq!(told, expected.map(|(name, risk, text)| (name.to_owned(), risk, text.to_owned())));
}

#[tokio::test]
async fn swagger_2_reads_like_the_same_in_3() {
    let source = json!({
        "swagger": "2.0", "info": {"title": "Docker"}, "basePath": "/v1", "schemes": ["http"], "host": "127.0.0.1:1",
        "consumes": ["application/json"],
        "securityDefinitions": {"Key": {"type": "apiKey", "in": "query", "name": "key"}},
        "parameters": {"limit": {"name": "limit", "in": "query", "type": "integer"}},
        "responses": {"Pet": {"description": "", "schema": {"$ref": "#/definitions/Pet"}}},
        "definitions": {"Pet": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
        "paths": {
            "/pets": {
                "get": {"operationId": "list", "parameters": [{"$ref": "#/parameters/limit"},
                    {"name": "tags", "in": "query", "type": "array", "items": {"type": "string"}, "collectionFormat": "multi"}],
                    "responses": {"200": {"schema": {"type": "array", "items": {"$ref": "#/definitions/Pet"}}}}},
                "post": {"operationId": "add", "parameters": [{"name": "pet", "in": "body", "required": true,
                    "schema": {"$ref": "#/definitions/Pet"}}], "responses": {"201": {"$ref": "#/responses/Pet"}}},
            },
            "/pets/{id}/photo": {
                "parameters": [{"name": "id", "in": "path", "type": "integer", "required": true}],
                "put": {"operationId": "photo", "parameters": [
                    {"name": "file", "in": "formData", "type": "file", "required": true},
                    {"name": "note", "in": "formData", "type": "string"}], "responses": {"204": {"description": ""}}},
            },
        },
    });
    let loaded = loaded(&source, Config::default()).await;
    assert_eq!(loaded.problems, []);
    let stubs: Vec<String> = loaded.toolkit.declaration().operations.iter().map(signature).collect();
    let expected = [
        "list(limit: int = None, tags: list[str] = None) -> list[Pet]",
        "add(name: str) -> Pet",
        "photo(id: int, file: str | File, note: str = None) -> None",
    ];
    assert_eq!(stubs, expected);
}

#[tokio::test]
async fn a_document_that_cannot_be_used_says_why() {
    let small = Limits { document_bytes: 20, ..Limits::default() };
    let path = || json!({"/x": {"get": {}}});
    let nowhere = |more: Value| document(path(), more).to_string();
    let table = [
        ("[]".to_owned(), Config::default(), "the document is no OpenAPI document: it is no object"),
        ("{}".to_owned(), Config::default(), "the document is no OpenAPI document: it has no field `openapi`"),
        (
            r#"{"swagger": "1.2"}"#.to_owned(),
            Config::default(),
            "the document is no OpenAPI document: it is of Swagger version 1.2, and 2.0 is read",
        ),
        (nowhere(json!({})), Config::default(), "the document does not say where its server is: it names none"),
        (
            nowhere(json!({"servers": [{"url": "/v1"}]})),
            Config::default(),
            "the document does not say where its server is: `/v1` is relative to an address that is not known",
        ),
        (nowhere(json!({})), Config { limits: small, ..anywhere() }, "the document has more than 20 bytes"),
        (
            nowhere(json!({})),
            Config { filter: Filter { tags: vec!["none".to_owned()], ..Filter::default() }, ..anywhere() },
            "the document has no operation that can be used",
        ),
        (
            nowhere(json!({})),
            Config { base_url: Some("ftp://x".to_owned()), ..Config::default() },
            "base_url cannot be used: `ftp://x/` is neither http:// nor https://",
        ),
    ];
    for (text, config, expected) in table {
        let error = load(Source::Text(text), config).await.err().unwrap();
        assert_eq!(error.to_string(), expected);
        assert!(!error.hint().is_empty());
    }
    let missing = load(Source::of("/nowhere/openapi.json"), Config::default()).await.err().unwrap();
    assert!(matches!(missing, Error::Read { .. }), "{missing}");
}

/// What one operation of sixty parameters, some of which are called like keywords, is for a program and for the server.
#[tokio::test]
async fn sixty_parameters_and_keywords_are_bound_and_sent() {
    use wiremock::matchers::{method, path};
    use wiremock::{Mock, MockServer, ResponseTemplate};

    let server = MockServer::start().await;
    let answers = Mock::given(method("POST")).and(path("/import"));
    answers.respond_with(ResponseTemplate::new(200).set_body_json(json!({"class": 1}))).mount(&server).await;
    let keywords = ["class", "from", "import", "lambda", "None", "async", "self", "match"];
    let choices: Vec<String> = (0..40).map(|number| format!("a choice with many words, number {number}")).collect();
    let many = (0..52).map(|number| {
        json!({"name": format!("parameter-{number:02}"), "in": "query", "schema": {"type": "string", "enum": choices}})
    });
    let parameters: Vec<Value> = keywords
        .map(|name| json!({"name": name, "in": "query", "schema": {"type": "integer"}}))
        .into_iter()
        .chain(many)
        .collect();
    let paths = json!({"/import": {"post": {"operationId": "import", "parameters": parameters}, "get": {"operationId": "class"}}});
    let source = document(paths, json!({}));
    let loaded = loaded(&source, Config { base_url: Some(server.uri()), ..Config::default() }).await;
    assert_eq!(loaded.problems, []);
    let declaration = loaded.toolkit.declaration();
    let names: Vec<&str> = declaration.operations.iter().map(|operation| operation.name.as_str()).collect();
    assert_eq!(names, ["class_", "import_"]);
    let operation = declaration.operation("import_").unwrap();
    assert_eq!(operation.parameters.len(), 60);
    let text = signature(operation);
    let start = "import_(class_: int = None, from_: int = None, import_: int = None, lambda_: int = None, None_: int = None, \
                 async_: int = None, self_: int = None, match: int = None, parameter_00: Literal[";
    assert!(text.starts_with(start), "{text}");
    assert!(text.ends_with("parameter_50: str = None, parameter_51: str = None)"), "{text}");
    assert!(text.len() <= Limits::default().signature_characters, "{}", text.len());

    let arguments: serde_json::Map<String, Value> = operation
        .parameters
        .iter()
        .enumerate()
        .map(|(place, one)| (one.name.clone(), if place < 8 { json!(place) } else { json!(format!("value {place}")) }))
        .collect();
    let answer = crate::call(&*loaded.toolkit, "import_", Value::Object(arguments)).await;
    assert_eq!(answer, Ok(json!({"class": 1})));
    let request = server.received_requests().await.unwrap().remove(0);
    let sent: Vec<(String, String)> = request.url.query_pairs().into_owned().collect();
    let originals =
        keywords.map(str::to_owned).into_iter().chain((0..52).map(|number| format!("parameter-{number:02}")));
    let expected: Vec<(String, String)> = originals
        .enumerate()
        .map(|(place, name)| (name, if place < 8 { place.to_string() } else { format!("value {place}") }))
        .collect();
    assert_eq!(sent, expected);
}
