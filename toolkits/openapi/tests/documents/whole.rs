//! Whole documents of real services, as they are published: Kubernetes, GitHub, and the Alertmanager's.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use fimble_openapi::{Config, Filter, Limits, Loaded, Source, load};
use fimble_toolkit::{Declaration, check, classes, is_python_name, signature};
use serde_json::{Value, json};

/// The document of that name; it is installed if need be.
pub(crate) fn published(name: &str) -> Source {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/openapi-test-documents");
    let output = Command::new(script).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "{script} did not succeed");
    Source::File(PathBuf::from(String::from_utf8(output.stdout).unwrap().trim()).join(name))
}

/// The document that the installed Alertmanager was made from: it is a text in the program.
pub(crate) fn alertmanager() -> Value {
    let program = std::fs::read("/usr/bin/prometheus-alertmanager").expect("`scripts/setup tests` installs it");
    let start = b"{\n  \"consumes\": [";
    let begins = program.windows(start.len()).position(|window| window == start).unwrap();
    let mut values = serde_json::Deserializer::from_slice(&program[begins..]).into_iter();
    values.next().unwrap().unwrap()
}

fn anywhere(filter: Filter) -> Config {
    Config { base_url: Some("http://127.0.0.1:1".to_owned()), filter, ..Config::default() }
}

fn only(patterns: &[&str]) -> Filter {
    Filter { include: patterns.iter().map(|&pattern| pattern.to_owned()).collect(), ..Filter::default() }
}

/// Loads all of it, and checks what holds for every operation of every document.
async fn whole(source: Source) -> Declaration {
    let Loaded { toolkit, problems } = load(source, anywhere(Filter::default())).await.unwrap();
    assert_eq!(problems, []);
    let declaration = toolkit.declaration();
    let mut names = HashSet::new();
    for operation in &declaration.operations {
        assert!(is_python_name(&operation.name) && names.insert(operation.name.as_str()), "{}", operation.name);
        let mut names = HashSet::new();
        for parameter in &operation.parameters {
            assert!(is_python_name(&parameter.name) && names.insert(&parameter.name), "{}", parameter.name);
        }
        let characters = signature(operation).chars().count();
        assert!(characters <= Limits::default().signature_characters, "{characters}: {}", operation.name);
        // What `pages=20` is for can be gone through, too.
        let is_paged =
            operation.parameters.iter().any(|parameter| parameter.description == "Pages that are got as one.");
        assert_eq!(operation.paging.is_some(), is_paged, "{}", operation.name);
    }
    let findings: Vec<_> = check(&declaration).into_iter().filter(|one| one.message.contains("page")).collect();
    assert_eq!(findings, []);
    declaration
}

/// Tokens of the operations as a prompt has them, with the classes of what they take and give: four bytes are one.
fn tokens(declaration: &Declaration, names: &[&str]) -> usize {
    let operations: Vec<_> = names.iter().map(|name| declaration.operation(name).unwrap()).collect();
    let stubs = operations.iter().map(|operation| format!("{}: {}\n", signature(operation), operation.description));
    let classes: HashSet<String> = operations.iter().flat_map(|operation| classes(operation).into_values()).collect();
    stubs.chain(classes).map(|text| text.len()).sum::<usize>() / 4
}

#[tokio::test]
async fn kubernetes_is_read_whole() {
    let declaration = whole(published("kubernetes.json")).await;
    assert_eq!((declaration.name.as_str(), declaration.operations.len()), ("kubernetes_toolkit", 1_014));
    let list = declaration.operation("listCoreV1NamespacedPod").unwrap();
    assert!(
        signature(list).starts_with("listCoreV1NamespacedPod(namespace: str, ")
            && signature(list).ends_with(" -> PodList")
    );
    assert_eq!(
        list.description,
        "list or watch objects of kind Pod. pages=20 gets up to 20 pages as one, continue_=page.metadata[\"continue\"] the next one."
    );
    let three = ["listCoreV1NamespacedPod", "readCoreV1NamespacedPodLog", "patchAppsV1NamespacedDeploymentScale"];
    let tokens = tokens(&declaration, &three);
    assert!(tokens < 2_500, "{tokens}");
}

#[tokio::test]
async fn github_is_read_whole() {
    let declaration = whole(published("github.json")).await;
    assert_eq!(declaration.operations.len(), 1_223);
    let paged = declaration.operations.iter().filter(|operation| operation.paging.is_some()).count();
    assert!(paged > 100, "{paged}");
    let three = ["issues_create", "issues_list_for_repo", "repos_get_latest_release"];
    let tokens = tokens(&declaration, &three);
    assert!(tokens < 2_500, "{tokens}");
}

#[tokio::test]
async fn the_alertmanager_is_read_whole() {
    let declaration = whole(Source::Text(alertmanager().to_string())).await;
    let stubs: Vec<String> = declaration.operations.iter().map(signature).collect();
    let expected = [
        "getStatus() -> AlertmanagerStatus",
        "getReceivers() -> list[Receiver]",
        "getSilences(filter: list[str] = None) -> list[GettableSilence]",
        "postSilences(comment: str, createdBy: str, endsAt: str, matchers: list[Matcher], startsAt: str, id: str = None) -> PostSilences",
    ];
    for stub in expected {
        assert!(stubs.iter().any(|own| own == stub), "{stub}: {stubs:#?}");
    }
    assert_eq!(stubs.len(), 9);
    assert!(tokens(&declaration, &["getAlerts", "getSilences", "postSilences"]) < 2_500);
}

/// More operations than the limit: what is left out is the first thing that is told, and a filter comes before it.
#[tokio::test]
async fn a_limit_on_operations_is_told_and_a_filter_comes_first() {
    let limits = Limits { operations: 100, ..Limits::default() };
    let all = Config { limits, ..anywhere(Filter::default()) };
    let Loaded { toolkit, problems } = load(published("github.json"), all).await.unwrap();
    assert_eq!(toolkit.declaration().operations.len(), 100);
    let expected = "the document: only the first 100 of 1223 operations are there; choose by a filter, which comes before the limit";
    assert_eq!(problems[0].to_string(), expected);

    let some = Config { limits, ..anywhere(only(&["* /user/starred*"])) };
    let Loaded { toolkit, problems } = load(published("github.json"), some).await.unwrap();
    assert_eq!(problems, []);
    let names: Vec<String> = toolkit.declaration().operations.into_iter().map(|one| one.name).collect();
    let expected = [
        "activity_list_repos_starred_by_authenticated_user",
        "activity_check_repo_is_starred_by_authenticated_user",
        "activity_star_repo_for_authenticated_user",
        "activity_unstar_repo_for_authenticated_user",
    ];
    assert_eq!(names, expected);
}

/// The whole of GitHub's description against a server that answers what GitHub does.
#[tokio::test]
async fn operations_of_a_whole_document_are_called() {
    use wiremock::matchers::{body_json, method, path, query_param};
    use wiremock::{Mock, MockServer, ResponseTemplate};

    let server = MockServer::start().await;
    let issue = json!({"number": 7, "title": "It fails", "state": "open"});
    let wanted = json!({"title": "It fails", "labels": ["bug"]});
    let created = Mock::given(method("POST")).and(path("/repos/a/b/issues")).and(body_json(wanted));
    created.respond_with(ResponseTemplate::new(201).set_body_json(&issue)).expect(1).mount(&server).await;
    let next = format!("<{}/repositories/1/issues?state=open&page=2>; rel=\"next\"", server.uri());
    let first = ResponseTemplate::new(200).insert_header("link", next.as_str()).set_body_json([&issue]);
    let listed = Mock::given(path("/repos/a/b/issues")).and(query_param("state", "open"));
    listed.respond_with(first).up_to_n_times(1).mount(&server).await;
    let second = Mock::given(path("/repos/a/b/issues")).and(query_param("page", "2"));
    second.respond_with(ResponseTemplate::new(200).set_body_json(json!([]))).expect(1).mount(&server).await;

    let config = Config { base_url: Some(server.uri()), ..Config::default() };
    let toolkit = load(published("github.json"), config).await.unwrap().toolkit;
    let arguments = json!({"owner": "a", "repo": "b", "title": "It fails", "labels": ["bug"]});
    assert_eq!(crate::call(&*toolkit, "issues_create", arguments).await, Ok(issue.clone()));
    let list = |more: Value| {
        let mut arguments = json!({"owner": "a", "repo": "b", "state": "open"});
        arguments.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        crate::call(&*toolkit, "issues_list_for_repo", arguments)
    };
    let page = list(json!({})).await.unwrap();
    assert_eq!(page, json!({"entries": [issue], "next": "state=open&page=2"}));
    assert_eq!(list(json!({"next": page["next"]})).await, Ok(json!({"entries": [], "next": null})));
}
