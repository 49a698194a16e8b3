//! Answers that are no success: the server's own sentence, and what to do.

use fimble_openapi::Config;
use fimble_toolkit::ErrorKind::{Denied, Failed, InvalidArgument, NotFound, Timeout, Unavailable};
use fimble_toolkit::ToolError;
use serde_json::json;
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::{at, call, document, loaded};

async fn failure(template: ResponseTemplate, method: &str) -> ToolError {
    let server = MockServer::start().await;
    Mock::given(any()).respond_with(template).mount(&server).await;
    let toolkit = at(&server.uri(), json!({"/x": {method: {"operationId": "do"}}})).await;
    call(&*toolkit, "do", json!({})).await.unwrap_err()
}

#[tokio::test]
async fn a_servers_own_sentence_is_told() {
    let json_of = |status: u16, body: serde_json::Value| ResponseTemplate::new(status).set_body_json(body);
    let text = |status: u16, body: &str, kind: &str| ResponseTemplate::new(status).set_body_raw(body, kind);
    let table = [
        // problem+json
        (
            json_of(403, json!({"type": "about:blank", "title": "Forbidden", "detail": "You have no credit."})),
            Denied,
            "403 Forbidden: You have no credit",
        ),
        // FastAPI
        (
            json_of(
                422,
                json!({"detail": [{"loc": ["query", "limit"], "msg": "Input should be a valid integer", "type": "int"}]}),
            ),
            InvalidArgument,
            "422 Unprocessable Entity: query.limit: Input should be a valid integer",
        ),
        // GitHub
        (
            json_of(
                422,
                json!({"message": "Validation Failed", "errors": [{"resource": "Issue", "field": "title", "code": "missing_field"}]}),
            ),
            InvalidArgument,
            r#"422 Unprocessable Entity: Validation Failed ({"resource":"Issue","field":"title","code":"missing_field"})"#,
        ),
        // Prometheus
        (
            json_of(400, json!({"status": "error", "errorType": "bad_data", "error": "invalid parameter \"query\""})),
            InvalidArgument,
            "400 Bad Request: invalid parameter \"query\"",
        ),
        // Kubernetes
        (
            json_of(
                404,
                json!({"kind": "Status", "status": "Failure", "message": "pods \"x\" not found", "reason": "NotFound"}),
            ),
            NotFound,
            "404 Not Found: pods \"x\" not found",
        ),
        // Stripe, Google
        (
            json_of(402, json!({"error": {"message": "Your card was declined.", "type": "card_error"}})),
            Failed,
            "402 Payment Required: Your card was declined",
        ),
        // OAuth 2
        (
            json_of(401, json!({"error": "invalid_token", "error_description": "The token expired"})),
            Denied,
            "401 Unauthorized: The token expired",
        ),
        // JSON:API
        (
            json_of(409, json!({"errors": [{"title": "Conflict", "detail": "Name is taken"}, {"detail": "And more"}]})),
            Failed,
            "409 Conflict: Name is taken; And more",
        ),
        (
            text(500, "<html><head><title>502 Proxy</title></head></html>", "text/html"),
            Failed,
            "500 Internal Server Error: 502 Proxy",
        ),
        (text(410, "  gone\nfor\u{7}good.  ", "text/plain"), NotFound, "410 Gone: gone for good"),
        (ResponseTemplate::new(504), Timeout, "504 Gateway Timeout"),
        (json_of(418, json!({"odd": [1, 2]})), Failed, "418 I'm a teapot"),
        (json_of(400, json!([])), InvalidArgument, "400 Bad Request"),
    ];
    for (template, kind, said) in table {
        let error = failure(template, "get").await;
        let expected = format!("test_toolkit.do(): the server answered {said}");
        assert_eq!((error.kind, error.message), (kind, expected));
    }
}

#[tokio::test]
async fn what_to_do_is_told() {
    let table = [
        (ResponseTemplate::new(429).insert_header("retry-after", "12"), "get", Some("wait 12 s, then call again")),
        (ResponseTemplate::new(503), "get", Some("wait a while, then call again")),
        (
            ResponseTemplate::new(503).insert_header("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"),
            "get",
            Some("wait a while, then call again"),
        ),
        (
            ResponseTemplate::new(403).insert_header("x-ratelimit-remaining", "0"),
            "get",
            Some("the server's limit on calls is used up; wait a while, or make fewer calls"),
        ),
        (ResponseTemplate::new(502), "post", Some("look whether it took effect before you call again")),
        (ResponseTemplate::new(404), "get", None),
    ];
    for (template, method, hint) in table {
        assert_eq!(failure(template, method).await.hint.as_deref(), hint);
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    // Nothing listens there: the port was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let toolkit = at(&format!("http://127.0.0.1:{port}"), json!({"/x": {"get": {"operationId": "do"}}})).await;
    let error = call(&*toolkit, "do", json!({})).await.unwrap_err();
    assert_eq!(error.kind, Unavailable);
    assert!(error.message.starts_with("test_toolkit.do(): 127.0.0.1 did not answer: "), "{error}");
}

#[tokio::test]
async fn redirects_stay_with_the_server() {
    let (server, other) = (MockServer::start().await, MockServer::start().await);
    Mock::given(any()).respond_with(ResponseTemplate::new(200).set_body_json("stolen")).mount(&other).await;
    let to = |target: String| ResponseTemplate::new(302).insert_header("location", target);
    let at_path = |path: &str| Mock::given(wiremock::matchers::path(path));
    at_path("/near").respond_with(to("/there".to_owned())).mount(&server).await;
    at_path("/there").respond_with(ResponseTemplate::new(200).set_body_json("there")).mount(&server).await;
    at_path("/away").respond_with(to(format!("{}/steal?x=1", other.uri()))).mount(&server).await;
    at_path("/loop").respond_with(to("/loop".to_owned())).mount(&server).await;
    let get = |id: &str| json!({"get": {"operationId": id}});
    let source = document(json!({"/near": get("near"), "/away": get("away"), "/loop": get("loop")}), json!({}));
    let toolkit = loaded(&source, Config { base_url: Some(server.uri()), ..Config::default() }).await.toolkit;
    assert_eq!(call(&*toolkit, "near", json!({})).await, Ok(json!("there")));
    let error = call(&*toolkit, "away", json!({})).await.unwrap_err();
    let expected = format!(
        "test_toolkit.away(): the server answered 302 Found: it redirects to {}/steal, which is not followed",
        other.uri()
    );
    assert_eq!(error.message, expected);
    assert_eq!(other.received_requests().await.unwrap().len(), 0);
    let error = call(&*toolkit, "loop", json!({})).await.unwrap_err();
    assert!(error.message.ends_with("302 Found: it redirects to /loop, which is not followed"), "{error}");
}
