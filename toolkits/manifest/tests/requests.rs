//! Operations of manifests that send HTTP requests, to a real server of this machine: where values go and where they cannot.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::time::Duration;

use fimble_manifest::Manifest;
use fimble_toolkit::{Call, ErrorKind, Preview, SessionContext, ToolError, Toolkit, offer_values};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

/// A manifest with one operation `run` of these lines, a write unless they say otherwise.
fn manifest(lines: &str) -> Result<Manifest, String> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("test.toml");
    let risk = if lines.contains("risk =") { "" } else { "risk = 'write'\n" };
    let environment = if lines.contains("API_TOKEN") { "environment = ['API_TOKEN']\n" } else { "" };
    let head = "name = 'test_toolkit'\ndescription = 'A test.'\n";
    let operation = "[[operation]]\nname = 'run'\ndescription = 'Runs.'\n";
    fs::write(&path, format!("{head}{environment}{operation}{risk}{lines}")).unwrap();
    Manifest::read(&path).map_err(|problem| match problem.hint {
        Some(hint) => format!("{} ({hint})", problem.reason),
        None => problem.reason,
    })
}

fn call_of(arguments: Value) -> Call {
    Call {
        operation: "run".to_owned(),
        arguments: arguments.as_object().cloned().unwrap(),
        key: "key-1".to_owned(),
        context: SessionContext::default(),
        cancellation: CancellationToken::new(),
    }
}

/// A server that answers everything so.
async fn answering(answer: ResponseTemplate) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(any()).respond_with(answer).mount(&server).await;
    server
}

async fn run(server: &MockServer, lines: &str, arguments: Value) -> Result<Value, ToolError> {
    manifest(&lines.replace("SERVER", &server.uri())).unwrap().call(call_of(arguments)).await
}

async fn only_request(server: &MockServer) -> Request {
    let mut requests = server.received_requests().await.unwrap();
    assert_eq!(requests.len(), 1);
    requests.remove(0)
}

const ISSUE: &str = "result = 'json'\n[operation.request]\nmethod = 'POST'\nurl = 'SERVER/repos/{repo}/issues?draft=no'\n\
    query = { label = '{labels}', state = '{state}' }\nheaders = { Authorization = 'Bearer ${API_TOKEN}', 'X-Note' = 'by {state}' }\n\
    json = { title = '{title}', priority = '{priority}', text = 'from {repo}', nested = [{ labels = '{labels}' }], fixed = [1, true] }\n\
    [operation.params]\nrepo = 'str'\ntitle = 'str'\npriority = 'int'\nlabels = 'list'\nstate = { type = 'str', required = false }\n";

#[tokio::test]
async fn each_value_goes_to_its_own_place_and_a_secret_into_its_header() {
    offer_values([("API_TOKEN".to_owned(), "s3cret-token".to_owned())].into());
    let server =
        answering(ResponseTemplate::new(201).set_body_json(json!({"number": 7, "echo": "s3cret-token"}))).await;
    let arguments = json!({"repo": "a/b ?#%", "title": "It \"broke\"", "priority": 2, "labels": ["x", "y&z"]});
    let answered = run(&server, ISSUE, arguments).await.unwrap();
    assert_eq!(answered, json!({"number": 7, "echo": "***"}));

    let request = only_request(&server).await;
    assert_eq!(request.method.as_str(), "POST");
    assert_eq!(request.url.path(), "/repos/a%2Fb%20%3F%23%25/issues");
    assert_eq!(request.url.query(), Some("draft=no&label=x&label=y%26z"));
    let header = |name: &str| request.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(header("authorization").as_deref(), Some("Bearer s3cret-token"));
    assert_eq!((header("x-note"), header("idempotency-key")), (None, Some("key-1".to_owned())));
    let sent: Value = serde_json::from_slice(&request.body).unwrap();
    let expected = json!({
        "title": "It \"broke\"", "priority": 2, "text": "from a/b ?#%",
        "nested": [{"labels": ["x", "y&z"]}], "fixed": [1, true],
    });
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn a_preview_names_secrets_and_sends_nothing() {
    let server = answering(ResponseTemplate::new(200)).await;
    let manifest = manifest(&ISSUE.replace("SERVER", &server.uri())).unwrap();
    let arguments = json!({"repo": "r", "title": "t", "priority": 1, "labels": [], "state": "open"});
    let preview = manifest.preview(&call_of(arguments)).await.unwrap();
    let expected = Preview::of(json!({
        "request": format!("`POST {}/repos/r/issues`", server.uri()),
        "query": {"label": [], "state": "open"},
        "headers": {"Authorization": "Bearer ${API_TOKEN}", "X-Note": "by open"},
        "body": {"title": "t", "priority": 1, "text": "from r", "nested": [{"labels": []}], "fixed": [1, true]},
    }));
    assert_eq!(preview, Some(expected));
    assert_eq!(server.received_requests().await.unwrap().len(), 0);
}

#[tokio::test]
async fn answers_are_read_as_the_manifest_says() {
    let get = |result: &str| format!("risk = 'read'\n{result}\n[operation.request]\nurl = 'SERVER/x'\n");
    let text = "NAME  STATE\na  up\nb  down\n";
    for (result, body, expected) in [
        ("result = 'text'", text, json!(text.trim_end())),
        ("result = 'lines'", "a\nb\n", json!(["a", "b"])),
        ("result = 'table'", text, json!([{"NAME": "a", "STATE": "up"}, {"NAME": "b", "STATE": "down"}])),
        ("result = 'json'", " [1.50]", json!([1.5])),
        ("result = 'json'", "", Value::Null),
        ("result = 'regex'\npattern = '(?P<name>\\w) +up'", text, json!([{"name": "a"}])),
    ] {
        let server = answering(ResponseTemplate::new(200).set_body_string(body)).await;
        assert_eq!(run(&server, &get(result), json!({})).await, Ok(expected), "{result} {body}");
        assert_eq!(only_request(&server).await.method.as_str(), "GET");
    }
}

#[tokio::test]
async fn what_is_wrong_with_an_answer_is_said() {
    let get = "risk = 'read'\nresult = 'json'\noutput_kib = 1\ntimeout_s = 0.5\n[operation.request]\nurl = 'SERVER/x?k={k}'\nparams.k = 'str'";
    let get = get.replace("params.k = 'str'", "[operation.params]\nk = 'str'");
    for (answer, kind, expected) in [
        (
            ResponseTemplate::new(404).set_body_string("no such thing"),
            ErrorKind::NotFound,
            "the server answered 404: no such thing",
        ),
        (ResponseTemplate::new(403), ErrorKind::Denied, "the server answered 403"),
        (ResponseTemplate::new(503), ErrorKind::Unavailable, "the server answered 503"),
        (
            ResponseTemplate::new(200).set_body_string("x".repeat(1_025)),
            ErrorKind::Failed,
            "the answer is longer than the 1 KiB allowed",
        ),
        (
            ResponseTemplate::new(200).set_body_raw(b"\xff\0".to_vec(), "image/png"),
            ErrorKind::Failed,
            "the server answered bytes that are no text",
        ),
    ] {
        let server = answering(answer).await;
        let error = run(&server, &get, json!({"k": "private"})).await.unwrap_err();
        assert_eq!((error.kind, error.message), (kind, format!("`GET {}/x`: {expected}", server.uri())));
    }
    let server = answering(ResponseTemplate::new(200).set_body_string("{")).await;
    let error = run(&server, &get, json!({"k": "v"})).await.unwrap_err();
    assert!(
        error.message.ends_with("did not write the JSON it promised: EOF while parsing an object at line 1 column 1")
    );
    let server = answering(ResponseTemplate::new(200).set_delay(Duration::from_secs(30))).await;
    let error = run(&server, &get, json!({"k": "v"})).await.unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Timeout, "the request did not end within 0.5 s"));
}

#[tokio::test]
async fn a_value_cannot_lead_elsewhere() {
    offer_values([("API_TOKEN".to_owned(), "s3cret-token".to_owned())].into());
    let server = answering(ResponseTemplate::new(200)).await;
    let lines = "[operation.request]\nurl = 'SERVER/items/{id}/parts'\nheaders = { A = '{note}', B = '${API_TOKEN}' }\n\
        [operation.params]\nid = 'str'\nnote = { type = 'str', default = 'n' }\n";
    for (arguments, expected) in [
        (json!({"id": ".."}), "a value makes `.` or `..` a segment of the path"),
        (json!({"id": "."}), "a value makes `.` or `..` a segment of the path"),
        (json!({"id": ""}), "argument `id` is empty, and it is a part of a path"),
        (json!({"id": "1", "note": "${API_TOKEN}"}), "argument `note` has `${` in it"),
        (json!({"id": "1", "note": "a\r\nX: y"}), "the header `a` has a line end or another control character in it"),
    ] {
        let error = run(&server, lines, arguments).await.unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::InvalidArgument, expected));
    }
    for id in ["../../admin", "%2e%2e", "..%2f", "a\\..\\b", "@evil.test", "?x=1#y"] {
        run(&server, lines, json!({"id": id})).await.unwrap();
    }
    for request in server.received_requests().await.unwrap() {
        let segments: Vec<_> = request.url.path_segments().unwrap().collect();
        assert_eq!((segments.len(), segments[0], segments[2]), (3, "items", "parts"), "{}", request.url);
        assert_eq!(request.url.query(), None);
    }
}

#[tokio::test]
async fn a_secret_stays_with_the_host_of_its_request() {
    offer_values([("API_TOKEN".to_owned(), "s3cret-token".to_owned())].into());
    let other = answering(ResponseTemplate::new(200).set_body_string("there")).await;
    let server = answering(ResponseTemplate::new(302).insert_header("location", other.uri().as_str())).await;
    let lines = "risk = 'read'\n[operation.request]\nurl = 'SERVER/x'\nheaders = { Authorization = '${API_TOKEN}', X-Key = '${API_TOKEN}' }";
    assert_eq!(run(&server, lines, json!({})).await, Ok(json!("there")));
    let request = only_request(&other).await;
    assert_eq!((request.headers.get("authorization"), request.headers.get("x-key")), (None, None));
    let missing = "risk = 'read'\n[operation.request]\nurl = 'SERVER/x'\nheaders = { X-Key = '${API_TOKEN}' }";
    offer_values([].into());
    let error = run(&server, missing, json!({})).await.unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Unavailable, "the secret `API_TOKEN` has no value"));
}

#[test]
fn a_request_that_makes_no_sense_is_named() {
    let request = |lines: &str| format!("[operation.request]\n{lines}");
    for (lines, expected) in [
        (
            "cwd = '/'\n[operation.request]\nurl = 'http://a/'".to_owned(),
            "`run` is a request and has a `cwd` (leave it out: only a command runs in a folder)",
        ),
        (String::new(), "`run` does nothing (give it a `command`, or a `[operation.request]` with a `url`)"),
        (
            "command = ['ls']\n[operation.request]\nurl = 'http://a/'".to_owned(),
            "`run` has a command and a request (make two operations of them)",
        ),
        (
            request("url = 'a/b'"),
            "the request of `run` has a `url` that does not begin with https:// or http:// (write all of it, such as https://example.org/items/{id})",
        ),
        (
            request("url = 'https://{h}/'\n[operation.params]\nh = 'str'"),
            "the request of `run` has a `url` without a plain host (write all of it, such as https://example.org/items/{id})",
        ),
        (
            request("url = 'https://a{h}/'\n[operation.params]\nh = 'str'"),
            "the request of `run` takes the host of its `url` from a parameter (name the host itself)",
        ),
        (
            request("url = 'https://u:p@a/'"),
            "the request of `run` has a `url` without a plain host (write all of it, such as https://example.org/items/{id})",
        ),
        (
            request("url = 'https://a/?k=${K}'"),
            "the request of `run` names a secret in its `url` (put it into a header, as in `Authorization = 'Bearer ${NAME}'`)",
        ),
        (
            request("url = 'https://a/'\nheaders = { A = '${K}' }"),
            "the request of `run` names `K`, which `environment` does not list (list it there)",
        ),
        (
            request("url = 'https://a/{p}'\n[operation.params]\np = { type = 'str', required = false }"),
            "the request of `run` has a value in its `url` that may be absent (give it a default, or move it to `query`)",
        ),
        (
            request("url = 'https://a/{p}'\n[operation.params]\np = 'list'"),
            "the request of `run` has a list in its `url` (give it an entry of `query` alone)",
        ),
        (
            request("url = 'https://a/'\nquery = { q = 'x{p}' }\n[operation.params]\np = 'list'"),
            "the request of `run` has a list within a text (give a list an entry of `query` or `json` alone)",
        ),
        (
            request("url = 'https://a/'\n[operation.params]\np = 'str'"),
            "the request of `run` does not use parameter `p` (write `{p}` where its value belongs)",
        ),
        (
            request("url = 'https://a/'\njson = 1\nbody = 'x'"),
            "the request of `run` has `json` and `body` (leave one of them out)",
        ),
        (
            request("url = 'https://a/'\nmethod = 'get'"),
            "unknown variant `get`, expected one of `GET`, `POST`, `PUT`, `PATCH`, `DELETE`",
        ),
        (
            "result = 'regex'\ncommand = ['ls']".to_owned(),
            "a result by `regex` has no `pattern` (write `pattern = '(?P<name>…)'`: each match becomes a dict)",
        ),
        (
            "pattern = 'x'\ncommand = ['ls']".to_owned(),
            "`pattern` is of no use to this result (add `result = \"regex\"`)",
        ),
        (
            "result = 'regex'\npattern = '('\ncommand = ['ls']".to_owned(),
            "`pattern` is no regular expression: unclosed group",
        ),
    ] {
        assert_eq!(manifest(&lines).err().as_deref(), Some(expected), "{lines}");
    }
}
