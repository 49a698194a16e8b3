//! `async for` over the pages of a service, by a program as a person writes it.

use serde_json::{Value, json};
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use super::*;

/// Issues in pages of two: three pages of the `open` ones; the second page of the `broken` ones fails, that of the `circling` ones
/// leads to itself, and the `endless` ones have no last page.
async fn tracker() -> MockServer {
    let server = MockServer::start().await;
    let page = |request: &Request| {
        let asked =
            |name: &str| request.url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
        let (state, number) = (asked("state").unwrap(), asked("cursor").map_or(1, |cursor| cursor.parse().unwrap()));
        let next = match (state.as_str(), number) {
            ("broken", 2) => {
                return ResponseTemplate::new(503).set_body_json(json!({"message": "the index is being built"}));
            }
            ("circling", 2) => json!("2"),
            ("endless", _) | (_, ..3) => json!(format!("{}", number + 1)),
            _ => json!(""),
        };
        let issue = |of: u32| json!({"number": 2 * number + of, "title": format!("{state} {}", 2 * number + of)});
        let meta = json!({"next_cursor": next});
        ResponseTemplate::new(200).set_body_json(json!({"issues": [issue(0), issue(1)], "response_metadata": meta}))
    };
    Mock::given(any()).respond_with(page).mount(&server).await;
    server
}

/// A home whose settings have the tracker.
fn with_tracker(server: &MockServer) -> Home {
    let home = Home::new();
    let text = json!({"type": "string"});
    let object = |title: &str, fields: Value| json!({"type": "object", "title": title, "properties": fields});
    let issue = object("Issue", json!({"number": {"type": "integer"}, "title": text}));
    let fields = json!({
        "issues": {"type": "array", "items": issue},
        "response_metadata": object("Meta", json!({"next_cursor": text})),
    });
    let query = |name: &str| json!({"name": name, "in": "query", "schema": text});
    let document = json!({
        "openapi": "3.1.0",
        "info": {"title": "Tracker", "version": "1"},
        "servers": [{"url": server.uri()}],
        "paths": {"/issues": {"get": {
            "operationId": "list_issues",
            "summary": "Issues",
            "parameters": [query("state"), query("cursor")],
            "responses": {"200": {"description": "", "content": {"application/json": {"schema": object("Issues", fields)}}}},
        }}},
    });
    std::fs::write(home.path().join("tracker.json"), document.to_string()).unwrap();
    std::fs::create_dir_all(home.path().join("config/fimble")).unwrap();
    let settings = "[[toolkits.openapi]]\nname = 'tracker'\ndocument = 'tracker.json'\n";
    std::fs::write(home.path().join("config/fimble/config.toml"), settings).unwrap();
    home
}

fn printed(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), stdout(output))
}

/// The queries about issues in that state.
async fn asked(server: &MockServer, state: &str) -> Vec<String> {
    let requests = server.received_requests().await.unwrap();
    let queries = requests.iter().map(|request| request.url.query().unwrap_or_default().to_owned());
    queries.filter(|query| query.starts_with(&format!("state={state}"))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_goes_through_all_pages_and_stops_where_it_likes() {
    let server = tracker().await;
    let home = with_tracker(&server);
    let run = |program: &str| home.output(&["run", "-"], program);

    let output = run("async for issue in tracker_toolkit.list_issues('open'):\n    print(issue.title)\n");
    let titles: String = (2..8).map(|number| format!("open {number}\n")).collect();
    assert_eq!(printed(&output), (Some(0), titles), "{}", stderr(&output));
    assert_eq!(stderr(&output).matches("→ tracker_toolkit.list_issues(").count(), 3);
    assert_eq!(asked(&server, "open").await, ["state=open", "state=open&cursor=2", "state=open&cursor=3"]);

    let output = run("print(len([issue async for issue in await tracker_toolkit.list_issues('closed', pages=2)]))\n");
    assert_eq!(printed(&output), (Some(0), "6\n".to_owned()), "{}", stderr(&output));
    assert_eq!(asked(&server, "closed").await.len(), 3);

    let output = run("async for issue in tracker_toolkit.list_issues('stale'):\n    break\nprint(issue.number)\n");
    assert_eq!(printed(&output), (Some(0), "2\n".to_owned()), "{}", stderr(&output));
    assert_eq!(asked(&server, "stale").await, ["state=stale"]);

    let output = run("print([issue.number async for issue in tracker_toolkit.list_issues('circling')])\n");
    assert_eq!(printed(&output), (Some(0), "[2, 3, 4, 5]\n".to_owned()), "{}", stderr(&output));
    assert_eq!(asked(&server, "circling").await, ["state=circling", "state=circling&cursor=2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_fails_is_an_error_of_its_call() {
    let server = tracker().await;
    let home = with_tracker(&server);
    let program = "\
found = []
try:
    async for issue in tracker_toolkit.list_issues('broken'):
        found.append(issue.number)
except Unavailable as error:
    print(found, error.operation)
async for issue in tracker_toolkit.list_issues('broken'):
    print(issue.number)
";
    let output = home.output(&["run", "-"], program);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), "[2, 3] list_issues\n2\n3\n"));
    let told = stderr(&output);
    assert!(told.contains("line 7") && told.contains("503 Service Unavailable: the index is being built"), "{told}");
    assert_eq!(asked(&server, "broken").await.len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_page_counts_and_is_judged_as_a_call() {
    let server = tracker().await;
    let home = with_tracker(&server);
    let program = "async for issue in tracker_toolkit.list_issues('endless'):\n    pass\n";
    let output = home.output(&["-c", "interpreter.limits.calls=4", "run", "-"], program);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("calls"), "{}", stderr(&output));
    assert_eq!(asked(&server, "endless").await.len(), 4);

    // A rule that is about one page is asked about that page.
    let rules = "gate.policy.rules=[{operation=\"tracker_toolkit\", decision=\"deny\", arguments={cursor=\"3\"}}]";
    let output = home.output(&["-c", rules, "run", "-"], &program.replace("endless", "open"));
    assert_eq!(output.status.code(), Some(4), "{}{}", stdout(&output), stderr(&output));
    assert_eq!(asked(&server, "open").await, ["state=open", "state=open&cursor=2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_checker_knows_the_items_and_the_stub_tells_the_loop() {
    let server = tracker().await;
    let home = with_tracker(&server);
    let output = home.output(&["toolkits", "stub", "tracker_toolkit"], "");
    let stub = "async def list_issues(state: str = None, cursor: str = None, pages: int = 1) -> Issues: \"Issues. pages=20 gets up \
                to 20 pages as one, cursor=page.response_metadata.next_cursor the next one.\"  # async for gets the items of all \
                pages\n";
    assert!(stdout(&output).contains(stub), "{}", stdout(&output));
    let program = "async for issue in tracker_toolkit.list_issues('open'):\n    print(issue.titel)\n";
    let output = home.output(&["run", "-"], program);
    let told = stderr(&output);
    assert!(output.status.code() == Some(1) && told.contains("Issue has no field `titel`"), "{told}");
}
