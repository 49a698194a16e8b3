//! Results that come page by page.

use fimble_openapi::{Config, Credential, Limits, Secret};
use fimble_toolkit::{Paging, signature};
use serde_json::{Value, json};
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use crate::{at, call, document, loaded};

fn json_of(schema: Value) -> Value {
    json!({"200": {"content": {"application/json": {"schema": schema}}}})
}

/// Three pages of two numbers, linked by headers as GitHub does, with an address that is not the operation's own.
async fn linked() -> MockServer {
    let server = MockServer::start().await;
    let base = server.uri();
    let page = move |request: &Request| {
        let number =
            |name: &str| request.url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
        let page: u32 = number("page").map_or(1, |text| text.parse().unwrap());
        let answer = ResponseTemplate::new(200).set_body_json([page * 2 - 1, page * 2]);
        let key = number("key").unwrap_or_default();
        let link =
            |page: u32, rel: &str| format!("<{base}/elsewhere/77?key={key}&state=all&page={page}>; rel=\"{rel}\"");
        match page {
            3 => answer.insert_header("link", link(2, "prev").as_str()),
            _ => answer.insert_header("link", format!("{}, {}", link(1, "first"), link(page + 1, "next")).as_str()),
        }
    };
    Mock::given(any()).respond_with(page).mount(&server).await;
    server
}

#[tokio::test]
async fn a_link_header_becomes_a_page() {
    let server = linked().await;
    let mut responses = json_of(json!({"type": "array", "items": {"type": "integer"}}));
    responses["200"]["headers"] = json!({"Link": {"schema": {"type": "string"}}});
    let source = document(
        json!({"/numbers/{id}": {"get": {"operationId": "numbers", "responses": responses, "parameters": [
            {"name": "state", "in": "query"}]}}}),
        json!({"components": {"securitySchemes": {"key": {"type": "apiKey", "in": "query", "name": "key"}}},
            "security": [{"key": []}]}),
    );
    let credential = Some(Credential::Token(Secret::new("tops3cret")));
    let toolkit =
        loaded(&source, Config { base_url: Some(server.uri()), credential, ..Config::default() }).await.toolkit;
    let declaration = toolkit.declaration();
    assert_eq!(
        signature(&declaration.operations[0]),
        "numbers(id: str, state: str = None, next: str = None, pages: int = 1) -> Page"
    );

    let mut entries = Vec::new();
    let mut next = json!(null);
    for _ in 0..3 {
        let mut arguments = json!({"id": "a", "state": "all"});
        if next != json!(null) {
            arguments["next"] = next.clone();
        }
        let page = call(&*toolkit, "numbers", arguments).await.unwrap();
        entries.extend(page["entries"].as_array().unwrap().clone());
        next = page["next"].clone();
        assert!(!next.to_string().contains("tops3cret") && !next.to_string().contains("key="), "{next}");
    }
    assert_eq!((Value::from(entries), next), (json!([1, 2, 3, 4, 5, 6]), json!(null)));
    let arguments = json!({"id": "a", "state": "all", "pages": 20});
    let all = call(&*toolkit, "numbers", arguments).await;
    assert_eq!(all, Ok(json!({"entries": [1, 2, 3, 4, 5, 6], "next": null})));
    let two = call(&*toolkit, "numbers", json!({"id": "a", "state": "all", "pages": 2})).await.unwrap();
    assert_eq!(two, json!({"entries": [1, 2, 3, 4], "next": "state=all&page=3"}));
    // Only the query of the next address was taken, and the credential was the host's again.
    let requests = server.received_requests().await.unwrap();
    let asked: Vec<String> =
        requests.iter().map(|request| format!("{}?{}", request.url.path(), request.url.query().unwrap())).collect();
    let expected = [
        "/numbers/a?state=all&key=tops3cret",
        "/numbers/a?state=all&page=2&key=tops3cret",
        "/numbers/a?state=all&page=3&key=tops3cret",
    ];
    assert_eq!(asked, [&expected[..], &expected[..], &expected[..2]].concat());
}

#[tokio::test]
async fn an_address_in_the_result_can_be_passed_back() {
    let server = MockServer::start().await;
    let page = |request: &Request| {
        let next = if request.url.query() == Some("cursor=2") {
            json!(null)
        } else {
            json!("https://elsewhere.example/steal?cursor=2")
        };
        ResponseTemplate::new(200).set_body_json(json!({"results": [], "next": next}))
    };
    Mock::given(any()).respond_with(page).mount(&server).await;
    let schema = json!({"type": "object", "properties": {
        "results": {"type": "array"}, "next": {"type": "string", "format": "uri", "nullable": true}}});
    let toolkit =
        at(&server.uri(), json!({"/x": {"get": {"operationId": "list", "responses": json_of(schema)}}})).await;
    let operation = toolkit.declaration().operations.remove(0);
    assert_eq!(signature(&operation), "list(next: str = None, pages: int = 1) -> List");
    assert_eq!(operation.description, "pages=20 gets up to 20 pages as one, next=page.next the next one.");
    let first = call(&*toolkit, "list", json!({})).await.unwrap();
    let second = call(&*toolkit, "list", json!({"next": first["next"]})).await.unwrap();
    assert_eq!(second["next"], json!(null));
    let error = call(&*toolkit, "list", json!({"next": "https://elsewhere.example/steal"})).await.unwrap_err();
    assert_eq!(error.message, "test_toolkit.list(): `next` is no page of this operation");
}

#[tokio::test]
async fn a_mark_in_the_result_is_told() {
    let text = || json!({"type": "string"});
    let object = |fields: Value| json!({"type": "object", "properties": fields});
    let query = |name: &str| json!([{"name": name, "in": "query", "schema": {"type": "string"}}]);
    let table = [
        (
            query("continue"),
            object(json!({"metadata": object(json!({"continue": text()}))})),
            "Until it is empty, continue_=page.metadata[\"continue\"] gets the next page; pages=20 gets up to 20 as one.",
        ),
        (
            query("cursor"),
            object(json!({"next_cursor": text()})),
            "Until it is empty, cursor=page.next_cursor gets the next page; pages=20 gets up to 20 as one.",
        ),
        (
            query("pageToken"),
            object(json!({"nextPageToken": text()})),
            "Until it is empty, pageToken=page.nextPageToken gets the next page; pages=20 gets up to 20 as one.",
        ),
        (
            query("page"),
            object(
                json!({"links": object(json!({"pages": {"anyOf": [object(json!({"next": text()})), object(json!({"prev": text()}))]}}))}),
            ),
            "Until it is empty, next=page.links.pages.next gets the next page; pages=20 gets up to 20 as one.",
        ),
        (query("page"), object(json!({"next": {"type": "integer"}})), ""),
        (query("cursor"), object(json!({"other": text()})), ""),
    ];
    for (parameters, schema, expected) in table {
        let paths = json!({"/x": {"get": {"parameters": parameters, "responses": json_of(schema)}}});
        let toolkit = at("http://127.0.0.1:1", paths).await;
        assert_eq!(toolkit.declaration().operations[0].description, expected);
    }
}

#[tokio::test]
async fn pages_end_where_the_limits_do() {
    let server = MockServer::start().await;
    // Each page leads to another one.
    let page = |request: &Request| {
        let number: u32 =
            request.url.query_pairs().find(|(key, _)| key == "cursor").map_or(0, |(_, text)| text.parse().unwrap());
        ResponseTemplate::new(200).set_body_json(json!({"rows": [number], "next_cursor": format!("{}", number + 1)}))
    };
    Mock::given(any()).respond_with(page).mount(&server).await;
    let schema =
        json!({"type": "object", "properties": {"rows": {"type": "array"}, "next_cursor": {"type": "string"}}});
    let paths = json!({"/x": {"get": {"operationId": "list", "responses": json_of(schema),
        "parameters": [{"name": "cursor", "in": "query", "schema": {"type": "string"}}]}}});
    let source = document(paths, json!({}));
    let with = async |limits: Limits| {
        let config = Config { base_url: Some(server.uri()), limits, ..Config::default() };
        let toolkit = loaded(&source, config).await.toolkit;
        call(&*toolkit, "list", json!({"pages": 50})).await
    };
    let few = with(Limits { pages: 3, ..Limits::default() }).await;
    assert_eq!(few, Ok(json!({"rows": [0, 1, 2], "next_cursor": "3"})));
    // 31 bytes a page: the third one is too many, and the result leads to it.
    let short = with(Limits { response_bytes: 70, ..Limits::default() }).await;
    assert_eq!(short, Ok(json!({"rows": [0, 1], "next_cursor": "2"})));
}

#[tokio::test]
async fn a_page_that_leads_to_itself_is_an_error() {
    let server = MockServer::start().await;
    let page = ResponseTemplate::new(200).set_body_json(json!({"rows": [1], "next_cursor": "a"}));
    Mock::given(any()).respond_with(page).expect(2).mount(&server).await;
    let schema =
        json!({"type": "object", "properties": {"rows": {"type": "array"}, "next_cursor": {"type": "string"}}});
    let paths = json!({"/x": {"get": {"operationId": "list", "responses": json_of(schema),
        "parameters": [{"name": "cursor", "in": "query", "schema": {"type": "string"}}]}}});
    let toolkit = at(&server.uri(), paths).await;
    let error = call(&*toolkit, "list", json!({"pages": 5})).await.unwrap_err();
    assert_eq!(error.message, "test_toolkit.list(): a page leads to itself");
}

#[tokio::test]
async fn an_operation_says_how_its_pages_follow_one_another() {
    let list = || json!({"type": "array", "items": {"type": "object"}});
    let with = |fields: Value| {
        let mut properties = json!({"next_cursor": {"type": "string"}});
        properties.as_object_mut().unwrap().extend(fields.as_object().cloned().unwrap());
        json_of(json!({"type": "object", "properties": properties}))
    };
    let mut linked = json_of(list());
    linked["200"]["headers"] = json!({"Link": {"schema": {"type": "string"}}});
    let uri = json!({"type": "string", "format": "uri"});
    let address = json_of(json!({"type": "object", "properties": {
        "droplets": list(), "links": {"type": "object", "properties": {"next": uri}}}}));
    let table = [
        (linked, Some(Paging::new("next", "next", "entries"))),
        (address, Some(Paging::new("next", "links.next", "droplets"))),
        (with(json!({"members": list()})), Some(Paging::new("cursor", "next_cursor", "members"))),
        // Of several lists the one with a usual name is meant.
        (with(json!({"included": list(), "data": list()})), Some(Paging::new("cursor", "next_cursor", "data"))),
        (with(json!({"pods": list(), "nodes": list()})), None),
        (with(json!({"all": {"type": "object"}})), None),
        (json_of(json!({"type": "object", "properties": {"items": list()}})), None),
    ];
    for (responses, expected) in table {
        let parameters = json!([{"name": "cursor", "in": "query", "schema": {"type": "string"}}]);
        let toolkit =
            at("http://127.0.0.1:1", json!({"/x": {"get": {"parameters": parameters, "responses": responses}}})).await;
        let operation = toolkit.declaration().operations.remove(0);
        assert_eq!(operation.paging, expected, "{responses}");
        let is_told = operation.description.starts_with("pages=20 gets");
        assert_eq!(is_told, expected.is_some(), "{}", operation.description);
    }
}

/// What `async for` does with an operation's paging: page after page by calls of their own, each with what the one before told.
#[tokio::test]
async fn each_page_leads_to_the_next_by_what_is_declared() {
    let server = linked().await;
    let mut responses = json_of(json!({"type": "array", "items": {"type": "integer"}}));
    responses["200"]["headers"] = json!({"Link": {"schema": {"type": "string"}}});
    let toolkit =
        at(&server.uri(), json!({"/numbers": {"get": {"operationId": "numbers", "responses": responses}}})).await;
    let paging = toolkit.declaration().operations.remove(0).paging.unwrap();
    let (token, items) = (format!("/{}", paging.token.join("/")), format!("/{}", paging.items.join("/")));
    let (mut arguments, mut all) = (json!({}), Vec::new());
    loop {
        let page = call(&*toolkit, "numbers", arguments.clone()).await.unwrap();
        all.extend(page.pointer(&items).and_then(Value::as_array).unwrap().clone());
        match page.pointer(&token).unwrap() {
            Value::Null => break,
            next => arguments[&paging.argument] = next.clone(),
        }
    }
    assert_eq!((Value::from(all), server.received_requests().await.unwrap().len()), (json!([1, 2, 3, 4, 5, 6]), 3));
}
