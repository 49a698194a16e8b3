//! Credentials: where they stand, which one is sent, and that nobody sees them.

use std::collections::BTreeMap;

use fimble_openapi::{Config, Credential, Secret, Source, load};
use fimble_toolkit::{ErrorKind, signature};
use serde_json::{Value, json};
use wiremock::matchers::{any, path};
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use crate::{call, document, loaded};

const SECRET: &str = "s3cr3t-value";

fn token() -> Credential {
    Credential::Token(Secret::new(format!("{SECRET}\n")))
}

fn schemes() -> Value {
    json!({"components": {"securitySchemes": {
        "bearer": {"type": "http", "scheme": "Bearer"},
        "basic": {"type": "http", "scheme": "basic"},
        "oauth": {"type": "oauth2", "flows": {}},
        "header": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "query": {"type": "apiKey", "in": "query", "name": "api key"},
        "cookie": {"type": "apiKey", "in": "cookie", "name": "session"},
        "BearerToken": {"type": "apiKey", "in": "header", "name": "authorization"},
        "digest": {"type": "http", "scheme": "digest"},
    }}})
}

/// What the server saw of a call: the headers that may hold a credential, and the query.
async fn seen(server: &MockServer) -> String {
    let requests: Vec<Request> = server.received_requests().await.unwrap();
    let last = requests.last().unwrap();
    let header = |name: &str| last.headers.get(name).map(|value| format!("{name}: {}", value.to_str().unwrap()));
    let headers = ["authorization", "x-key", "cookie", "x-gateway"].into_iter().filter_map(header);
    headers.chain(last.url.query().map(str::to_owned)).collect::<Vec<_>>().join("; ")
}

async fn server() -> MockServer {
    let server = MockServer::start().await;
    Mock::given(any()).respond_with(ResponseTemplate::new(200)).mount(&server).await;
    server
}

#[tokio::test]
async fn credentials_stand_where_their_schemes_say() {
    let server = server().await;
    let basic = || Credential::Basic { user: "ada".to_owned(), password: Secret::new(SECRET) };
    let table = [
        ("bearer", token(), "authorization: Bearer s3cr3t-value"),
        ("oauth", token(), "authorization: Bearer s3cr3t-value"),
        ("basic", basic(), "authorization: Basic YWRhOnMzY3IzdC12YWx1ZQ=="),
        ("basic", token(), "authorization: Basic czNjcjN0LXZhbHVlOg=="),
        ("header", token(), "x-key: s3cr3t-value"),
        ("query", token(), "a=1&api%20key=s3cr3t-value"),
        ("cookie", token(), "cookie: session=s3cr3t-value"),
        ("BearerToken", token(), "authorization: Bearer s3cr3t-value"),
    ];
    for (scheme, credential, expected) in table {
        let paths = json!({"/x?a=1": {"get": {"operationId": "get", "security": [{scheme: []}], "parameters": [
            {"name": "api key", "in": "query"}, {"name": "X-KEY", "in": "header"}, {"name": "session", "in": "cookie"}]}}});
        let config = Config {
            base_url: Some(server.uri()),
            credentials: BTreeMap::from([(scheme.to_owned(), credential)]),
            ..Config::default()
        };
        assert!(!format!("{config:?}").contains(SECRET));
        let loaded = loaded(&document(paths, schemes()), config).await;
        assert_eq!(loaded.problems, [], "{scheme}");
        let declaration = loaded.toolkit.declaration();
        assert_eq!(signature(&declaration.operations[0]), "get()");
        call(&*loaded.toolkit, "get", json!({})).await.unwrap();
        let expected = if scheme == "query" { expected.to_owned() } else { format!("{expected}; a=1") };
        assert_eq!(seen(&server).await, expected, "{scheme}");
    }
}

#[tokio::test]
async fn the_first_alternative_with_all_credentials_is_sent() {
    let server = server().await;
    let get = |security: Value| json!({"get": {"security": security}});
    let source = document(
        json!({
            "/a": get(json!([{"bearer": []}, {"header": [], "query": []}])),
            "/b": get(json!([{}, {"header": []}])),
            "/c": get(json!([])),
            "/d": {"get": {}},
            "/e": get(json!([{"bearer": []}])),
        }),
        json!({"security": [{"cookie": []}], "components": schemes()["components"]}),
    );
    let names = ["header", "query", "cookie", "digest", "other"];
    let config = Config {
        base_url: Some(server.uri()),
        credentials: names.into_iter().map(|name| (name.to_owned(), token())).collect(),
        headers: BTreeMap::from([("X-Gateway".to_owned(), Secret::new("g"))]),
        ..Config::default()
    };
    let loaded = loaded(&source, config).await;
    let problems: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
    let expected = [
        "the security scheme `digest`: the HTTP scheme `digest` is not spoken, only basic and bearer",
        "the security scheme `other`: there is a credential for it, but the document has only BearerToken, basic, bearer, cookie, digest, header, oauth, query",
    ];
    assert_eq!(problems, expected);
    let table = [
        ("get_a", "x-key: s3cr3t-value; x-gateway: g; api%20key=s3cr3t-value"),
        ("get_b", "x-key: s3cr3t-value; x-gateway: g"),
        ("get_c", "x-gateway: g"),
        ("get_d", "cookie: session=s3cr3t-value; x-gateway: g"),
        ("get_e", "x-gateway: g"),
    ];
    for (operation, expected) in table {
        call(&*loaded.toolkit, operation, json!({})).await.unwrap();
        assert_eq!(seen(&server).await, expected, "{operation}");
    }
}

#[tokio::test]
async fn a_document_without_schemes_gets_a_bearer_token() {
    let server = server().await;
    let source = document(json!({"/x": {"get": {"operationId": "get"}}}), json!({}));
    let config = Config { base_url: Some(server.uri()), credential: Some(token()), ..Config::default() };
    let toolkit = loaded(&source, config).await.toolkit;
    call(&*toolkit, "get", json!({})).await.unwrap();
    assert_eq!(seen(&server).await, "authorization: Bearer s3cr3t-value");
}

#[tokio::test]
async fn another_server_of_the_document_gets_no_credential() {
    let (main, other) = (server().await, server().await);
    let get = |id: &str, url: &str| json!({"get": {"operationId": id, "servers": [{"url": url}]}});
    let source = document(
        json!({"/x": get("other", &other.uri()), "/y": get("same", &format!("{}/v2", main.uri()))}),
        json!({"servers": [{"url": main.uri()}], "security": [{"bearer": []}], "components": schemes()["components"]}),
    );
    let headers = BTreeMap::from([("X-Gateway".to_owned(), Secret::new("g"))]);
    let toolkit = loaded(&source, Config { credential: Some(token()), headers, ..Config::default() }).await.toolkit;
    call(&*toolkit, "other", json!({})).await.unwrap();
    call(&*toolkit, "same", json!({})).await.unwrap();
    assert_eq!(seen(&other).await, "");
    assert_eq!(seen(&main).await, "authorization: Bearer s3cr3t-value; x-gateway: g");
}

#[tokio::test]
async fn what_a_server_sends_back_is_masked() {
    let server = MockServer::start().await;
    let body = json!({"message": format!("the key {SECRET} has expired")});
    Mock::given(wiremock::matchers::path("/bad"))
        .respond_with(ResponseTemplate::new(401).set_body_json(&body))
        .mount(&server)
        .await;
    Mock::given(any()).respond_with(ResponseTemplate::new(200).set_body_json(&body)).mount(&server).await;
    let source = document(
        json!({"/bad": {"get": {"operationId": "bad"}}, "/good": {"get": {"operationId": "good"}}}),
        json!({"security": [{"header": []}], "components": schemes()["components"]}),
    );
    let config = Config { base_url: Some(server.uri()), credential: Some(token()), ..Config::default() };
    let toolkit = loaded(&source, config).await.toolkit;
    let error = call(&*toolkit, "bad", json!({})).await.unwrap_err();
    assert_eq!(error.message, "test_toolkit.bad(): the server answered 401 Unauthorized: the key ******** has expired");
    assert_eq!(error.hint.as_deref(), Some("the server does not take the host's credential; tell the user"));
    assert_eq!(call(&*toolkit, "good", json!({})).await.unwrap()["message"], "the key ******** has expired");

    let anonymous = loaded(&source, Config { base_url: Some(server.uri()), ..Config::default() }).await.toolkit;
    let error = call(&*anonymous, "bad", json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Denied);
    let hint = "the host has no credential for `header`; tell the user that one must be configured";
    assert_eq!(error.hint.as_deref(), Some(hint));
}

#[tokio::test]
async fn a_password_is_masked_in_its_encoded_form_too() {
    let server = MockServer::start().await;
    let echo = |request: &Request| {
        let header = request.headers["authorization"].to_str().unwrap().to_owned();
        ResponseTemplate::new(200).set_body_json(header)
    };
    Mock::given(any()).respond_with(echo).mount(&server).await;
    let more = json!({"security": [{"basic": []}], "components": schemes()["components"]});
    let source = document(json!({"/x": {"get": {"operationId": "get"}}}), more);
    let basic = Credential::Basic { user: "ada".to_owned(), password: Secret::new(SECRET) };
    let config = Config {
        base_url: Some(server.uri()),
        credentials: BTreeMap::from([("basic".to_owned(), basic)]),
        ..Config::default()
    };
    let toolkit = loaded(&source, config).await.toolkit;
    assert_eq!(call(&*toolkit, "get", json!({})).await, Ok(json!("Basic ********")));
}

#[tokio::test]
async fn a_document_is_fetched_with_the_credential_from_the_server_of_base_url_alone() {
    let (own, other) = (MockServer::start().await, MockServer::start().await);
    let text = document(json!({"/x": {"get": {"operationId": "x"}}}), json!({}));
    for server in [&own, &other] {
        Mock::given(path("/document"))
            .respond_with(ResponseTemplate::new(200).set_body_json(&text))
            .mount(server)
            .await;
    }
    let sent = async |document: &MockServer| {
        let config = Config {
            base_url: Some(format!("{}/api", own.uri())),
            credential: Some(Credential::Token(Secret::new("tops3cret"))),
            headers: [("X-Gateway".to_owned(), Secret::new("g4teway"))].into(),
            ..Config::default()
        };
        load(Source::Url(format!("{}/document", document.uri())), config).await.unwrap();
        let request = document.received_requests().await.unwrap().pop().unwrap();
        ["authorization", "x-gateway"]
            .map(|name| request.headers.get(name).map(|value| value.to_str().unwrap().to_owned()))
    };
    assert_eq!(sent(&own).await, [Some("Bearer tops3cret".to_owned()), Some("g4teway".to_owned())]);
    assert_eq!(sent(&other).await, [None, None]);
}
