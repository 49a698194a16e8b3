//! What a call sends, and what comes back.

use std::time::Duration;

use fimble_openapi::{Config, Limits};
use fimble_toolkit::ErrorKind;
use serde_json::{Value, json};
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use crate::{at, call, call_of, document, loaded};

/// A server that answers everything with what it was asked.
async fn mirror() -> MockServer {
    let server = MockServer::start().await;
    let reflect = |request: &Request| {
        let header = |name: &str| request.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        ResponseTemplate::new(200).set_body_json(json!({
            "method": request.method.to_string(),
            "path": request.url.path(),
            "query": request.url.query(),
            "body": String::from_utf8_lossy(&request.body),
            "content_type": header("content-type"),
            "accept": header("accept"),
            "trace": header("x-trace"),
            "key": header("idempotency-key"),
            "cookie": header("cookie"),
        }))
    };
    Mock::given(any()).respond_with(reflect).mount(&server).await;
    server
}

#[tokio::test]
async fn parameters_stand_where_the_document_says() {
    let server = mirror().await;
    let query = |name: &str, more: Value| {
        let mut parameter = json!({"name": name, "in": "query"});
        parameter.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        parameter
    };
    let paths = json!({"/a/{id}/{list}?fixed=1": {"get": {"operationId": "get", "parameters": [
        {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}},
        {"name": "list", "in": "path", "required": true, "style": "matrix", "explode": true},
        query("tag", json!({})),
        query("ids", json!({"explode": false})),
        query("pipes", json!({"explode": false, "style": "pipeDelimited"})),
        query("filter", json!({"style": "deepObject"})),
        query("json", json!({"content": {"application/json": {"schema": {}}}})),
        query("raw", json!({"allowReserved": true})),
        {"name": "X-Trace", "in": "header"},
        {"name": "theme", "in": "cookie"},
    ]}}});
    let toolkit = at(&format!("{}/v1/", server.uri()), paths).await;
    let arguments = json!({
        "id": "a/../b c", "list": [1, 2], "tag": ["x", "y&z"], "ids": [1, 2, 3], "pipes": ["a", "b"],
        "filter": {"a": {"b": true}}, "json": {"k": [1]}, "raw": "a/b?c", "X_Trace": "t-1", "theme": "dark",
    });
    let sent = call(&*toolkit, "get", arguments).await.unwrap();
    assert_eq!(sent["path"], "/v1/a/a%2F..%2Fb%20c/;list=1;list=2");
    assert_eq!(
        sent["query"],
        "fixed=1&tag=x&tag=y%26z&ids=1,2,3&pipes=a%7Cb&filter%5Ba%5D%5Bb%5D=true&json=%7B%22k%22%3A%5B1%5D%7D&raw=a/b?c"
    );
    assert_eq!((&sent["trace"], &sent["cookie"]), (&json!("t-1"), &json!("theme=dark")));
    assert_eq!(sent["accept"], "application/json, */*;q=0.5");

    let few = call(&*toolkit, "get", json!({"id": 7, "list": "x"})).await.unwrap();
    assert_eq!((&few["path"], &few["query"]), (&json!("/v1/a/7/;list=x"), &json!("fixed=1")));
    for (id, expected) in
        [("..", "a part of the path is `.` or `..`"), ("", "`id` is a part of the path and must not be empty")]
    {
        let error = call(&*toolkit, "get", json!({"id": id, "list": "x"})).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidArgument);
        assert!(error.message.contains(expected), "{error}");
    }
    let error = call(&*toolkit, "get", json!({"id": "a", "list": "x", "X_Trace": "a\r\nB: c"})).await.unwrap_err();
    assert!(error.message.contains("`X-Trace` is sent as a header"), "{error}");
}

#[tokio::test]
async fn bodies_are_written_in_their_content_type() {
    let server = mirror().await;
    let post = |id: &str, content: Value| json!({"post": {"operationId": id, "requestBody": {"content": content}}});
    let object = json!({"type": "object", "properties": {"a": {}, "b c": {}, "list": {}, "deep": {}}});
    let paths = json!({
        "/json": post("json", json!({"application/vnd.api+json": {"schema": object}})),
        "/form": post("form", json!({"application/x-www-form-urlencoded": {"schema": object,
            "encoding": {"deep": {"style": "deepObject"}}}})),
        "/text": post("text", json!({"text/markdown": {"schema": {"type": "string"}}})),
        "/bytes": post("bytes", json!({"application/octet-stream": {}})),
        "/patch": post("patch", json!({"application/merge-patch+json": {}, "application/json-patch+json": {}})),
        "/key": {"post": {"operationId": "key", "parameters": [{"name": "Idempotency-Key", "in": "header", "required": true}],
            "requestBody": {"required": true, "content": {"application/json": {"schema": object}}}}},
    });
    let toolkit = at(&server.uri(), paths).await;
    let values = || json!({"a": "x y", "b_c": 1, "list": [1, 2], "deep": {"k": {"l": null, "m": "é"}}});
    let table = [
        (
            "json",
            values(),
            "application/vnd.api+json",
            r#"{"a":"x y","b c":1,"list":[1,2],"deep":{"k":{"l":null,"m":"é"}}}"#,
        ),
        ("form", values(), "application/x-www-form-urlencoded", "a=x+y&b+c=1&list=1&list=2&deep%5Bk%5D%5Bm%5D=%C3%A9"),
        ("text", json!({"body": "# Title"}), "text/markdown", "# Title"),
        ("bytes", json!({"body": {"base64": "aGk="}}), "application/octet-stream", "hi"),
        ("patch", json!({"body": {"a": null}}), "application/merge-patch+json", r#"{"a":null}"#),
        (
            "patch",
            json!({"body": [], "content_type": "application/json-patch+json"}),
            "application/json-patch+json",
            "[]",
        ),
        ("key", json!({}), "application/json", "{}"),
    ];
    for (operation, arguments, kind, body) in table {
        let sent = call(&*toolkit, operation, arguments).await.unwrap();
        assert_eq!((&sent["content_type"], &sent["body"]), (&json!(kind), &json!(body)), "{operation}");
    }
    let sent = call(&*toolkit, "key", json!({})).await.unwrap();
    assert_eq!(sent["key"], "key-1");
    assert!(toolkit.declaration().operation("key").unwrap().idempotent);
    let nothing = call(&*toolkit, "json", json!({})).await.unwrap();
    assert_eq!((&nothing["content_type"], &nothing["body"]), (&json!(null), &json!("")));
    let error = call(&*toolkit, "bytes", json!({"body": {"base64": "%"}})).await.unwrap_err();
    assert!(error.message.starts_with("test_toolkit.bytes(): `base64` is no base64"), "{error}");
}

#[tokio::test]
async fn results_are_read_by_their_content_type() {
    let table = [
        (ResponseTemplate::new(200).set_body_raw("{\"a\": 1}", "application/problem+json"), json!({"a": 1})),
        (ResponseTemplate::new(200).set_body_raw("7", "text/plain; charset=utf-8"), json!("7")),
        (ResponseTemplate::new(204), json!(null)),
        (
            ResponseTemplate::new(200).set_body_raw("{\"a\":1}\n{\"a\":2}\n", "application/json"),
            json!([{"a": 1}, {"a": 2}]),
        ),
        (
            ResponseTemplate::new(200).set_body_raw(vec![0xff, 0xfe], "image/png"),
            json!({"content_type": "image/png", "base64": "//4="}),
        ),
    ];
    for (template, expected) in table {
        let server = MockServer::start().await;
        Mock::given(any()).respond_with(template).mount(&server).await;
        let toolkit = at(&server.uri(), json!({"/x": {"get": {"operationId": "get"}}})).await;
        assert_eq!(call(&*toolkit, "get", json!({})).await, Ok(expected));
    }
    let server = MockServer::start().await;
    let template = ResponseTemplate::new(200).insert_header("etag", "\"1\"").insert_header("set-cookie", "s=1");
    Mock::given(any()).respond_with(template).mount(&server).await;
    let toolkit = at(&server.uri(), json!({"/x": {"head": {"operationId": "look"}}})).await;
    let result = call(&*toolkit, "look", json!({})).await.unwrap();
    assert_eq!((&result["status"], &result["headers"]["etag"]), (&json!(200), &json!("\"1\"")));
    assert_eq!(result["headers"].get("set-cookie"), None);
}

#[tokio::test]
async fn limits_hold() {
    let server = MockServer::start().await;
    let large = ResponseTemplate::new(200).set_body_raw(format!("\"{}\"", "x".repeat(2_000)), "application/json");
    Mock::given(wiremock::matchers::path("/large")).respond_with(large).mount(&server).await;
    let never = ResponseTemplate::new(200).set_delay(Duration::from_secs(600));
    Mock::given(wiremock::matchers::path("/never")).respond_with(never).mount(&server).await;
    let limits =
        Limits { response_bytes: 1_000, request_bytes: 10, call: Duration::from_millis(300), ..Limits::default() };
    let source = document(
        json!({
            "/large": {"get": {"operationId": "large"}},
            "/never": {"get": {"operationId": "never"}},
            "/post": {"post": {"operationId": "post", "requestBody": {"content": {"text/plain": {}}}}},
        }),
        json!({}),
    );
    let toolkit = loaded(&source, Config { base_url: Some(server.uri()), limits, ..Config::default() }).await.toolkit;
    let error = call(&*toolkit, "large", json!({})).await.unwrap_err();
    assert_eq!(error.message, "the result of test_toolkit.large() has more than 1000 bytes");
    let error = call(&*toolkit, "never", json!({})).await.unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::Timeout, "test_toolkit.never() did not end within 300ms")
    );
    let error = call(&*toolkit, "post", json!({"body": "12345678901"})).await.unwrap_err();
    assert_eq!(error.message, "test_toolkit.post(): the body has 11 bytes, more than 10");
    let error = toolkit.call(call_of("none", json!({}))).await.unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::UnknownOperation, "test_toolkit has no operation `none`")
    );
}
