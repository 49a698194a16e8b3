//! The toolkit against a small API server over HTTPS with the whole document of Kubernetes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use fimble_kubernetes::{Config, load};
use fimble_openapi::Loaded;
use fimble_toolkit::{Call, Declaration, ErrorKind, Risk, SessionContext, ToolError, classes, signature};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// A server's process with the folder of its keys, ended with the test.
struct Cluster {
    process: Child,
    address: String,
    folder: tempfile::TempDir,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Cluster {
    fn start() -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/openapi-test-documents");
        let documents = Command::new(script).stderr(Stdio::inherit()).output().unwrap();
        assert!(documents.status.success(), "{script} did not succeed");
        let document = PathBuf::from(String::from_utf8(documents.stdout).unwrap().trim()).join("kubernetes.json");
        let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/api_server.py");
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("/usr/bin/python3");
        command.arg(server).arg(folder.path()).arg(document).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut address = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { process, address: address.trim().to_owned(), folder }
    }

    /// The settings of a user who has that context of the kubeconfig.
    fn context(&self, name: &str) -> Config {
        Config {
            kubeconfig: Some(self.folder.path().join("kubeconfig")),
            context: Some(name.to_owned()),
            ..Config::default()
        }
    }
}

async fn call(loaded: &Loaded, operation: &str, arguments: Value) -> Result<Value, ToolError> {
    let call = Call {
        operation: operation.to_owned(),
        arguments: arguments.as_object().cloned().unwrap(),
        key: String::new(),
        context: SessionContext::default(),
        cancellation: CancellationToken::new(),
    };
    loaded.toolkit.call(call).await
}

fn names(items: &Value) -> Vec<&str> {
    items.as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

/// Tokens of what a prompt shows of some operations: four bytes are one.
fn tokens(declaration: &Declaration, names: &[&str]) -> usize {
    let operations: Vec<_> = names.iter().map(|name| declaration.operation(name).unwrap()).collect();
    let stubs = operations.iter().map(|operation| format!("{}: {}\n", signature(operation), operation.description));
    let mut classes: Vec<String> = operations.iter().flat_map(|operation| classes(operation).into_values()).collect();
    classes.sort();
    classes.dedup();
    stubs.chain(classes).map(|text| text.len()).sum::<usize>() / 4
}

#[tokio::test]
async fn a_kubeconfig_is_all_that_is_needed() {
    let cluster = Cluster::start();
    let loaded = load(&cluster.context("ada")).await.unwrap();
    assert_eq!(loaded.problems, []);
    let declaration = loaded.toolkit.declaration();
    assert_eq!((declaration.name.as_str(), declaration.operations.len()), ("kubernetes_toolkit", 26));
    let stub = |name: &str| signature(declaration.operation(name).unwrap());
    assert_eq!(
        stub("list_namespaced_pod"),
        "list_namespaced_pod(namespace: str, continue_: str = None, fieldSelector: str = None, labelSelector: str = None, \
         limit: int = None, timeoutSeconds: int = None, watch: bool = None, pages: int = 1) -> PodList"
    );
    assert_eq!(
        stub("read_namespaced_pod_log"),
        "read_namespaced_pod_log(name: str, namespace: str, container: str = None, limitBytes: int = None, previous: bool = None, \
         sinceSeconds: int = None, tailLines: int = None, timestamps: bool = None) -> str"
    );
    let risk = |name: &str| declaration.operation(name).unwrap().risk;
    assert_eq!(
        ["list_node", "patch_namespaced_deployment_scale", "delete_namespaced_pod"].map(risk),
        [Risk::Read, Risk::Write, Risk::Destructive]
    );
    let three = ["list_namespaced_pod", "read_namespaced_pod_log", "patch_namespaced_deployment_scale"];
    let spent = tokens(&declaration, &three);
    assert!(spent < 2_500, "{spent}");
    let pod = &classes(declaration.operation("read_namespaced_pod").unwrap())["PodStatus"];
    assert!(pod.contains("; phase: str; "), "{pod}");

    // What a program does to get all pages: as the description says.
    assert!(
        declaration
            .operation("list_namespaced_pod")
            .unwrap()
            .description
            .ends_with("pages=20 gets up to 20 pages as one, continue_=page.metadata[\"continue\"] the next one.")
    );
    let mut found = Vec::new();
    let mut arguments = json!({"namespace": "shop", "limit": 3});
    loop {
        let page = call(&loaded, "list_namespaced_pod", arguments.clone()).await.unwrap();
        found.extend(names(&page["items"]).into_iter().map(str::to_owned));
        let next = page["metadata"].as_object().unwrap().get("continue").unwrap();
        if next.is_null() {
            break;
        }
        arguments["continue_"] = next.clone();
    }
    assert_eq!(found, ["web-0", "web-1", "web-2", "web-3", "web-4", "web-5", "web-6"]);
    let all = json!({"namespace": "shop", "limit": 3, "pages": 20});
    let all = call(&loaded, "list_namespaced_pod", all).await.unwrap();
    assert_eq!(names(&all["items"]), found);
    assert_eq!(all["metadata"], json!({"resourceVersion": "7", "continue": null}));
    let some = json!({"namespace": "shop", "labelSelector": "app=web"});
    let page = call(&loaded, "list_namespaced_pod", some).await.unwrap();
    assert_eq!(names(&page["items"]), ["web-0", "web-2", "web-4", "web-6"]);

    let watch = json!({"namespace": "shop", "watch": true, "timeoutSeconds": 1});
    let events = call(&loaded, "list_namespaced_pod", watch).await.unwrap();
    let told: Vec<(&Value, &Value)> =
        events.as_array().unwrap().iter().map(|event| (&event["type"], &event["object"]["metadata"]["name"])).collect();
    assert_eq!(told, [(&json!("ADDED"), &json!("web-0")), (&json!("DELETED"), &json!("web-1"))]);

    let log = json!({"namespace": "shop", "name": "web-1", "tailLines": 2});
    assert_eq!(call(&loaded, "read_namespaced_pod_log", log).await, Ok(json!("web-1 says 8\nweb-1 says 9\n")));
    let scale = |more: Value| {
        let mut arguments = json!({"namespace": "shop", "name": "web"});
        arguments.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        arguments
    };
    let read = call(&loaded, "read_namespaced_deployment_scale", scale(json!({}))).await.unwrap();
    assert_eq!(read["spec"], json!({"replicas": 2}));
    let patch = scale(json!({"body": {"spec": {"replicas": 5}}}));
    let patched = call(&loaded, "patch_namespaced_deployment_scale", patch).await.unwrap();
    assert_eq!(patched["spec"], json!({"replicas": 5}));
}

#[tokio::test]
async fn what_the_cluster_refuses_is_told_in_its_own_words() {
    let cluster = Cluster::start();
    let loaded = load(&cluster.context("ada")).await.unwrap();
    let error = call(&loaded, "list_node", json!({})).await.unwrap_err();
    let expected = "kubernetes_toolkit.list_node(): the server answered 403 Forbidden: nodes is forbidden: User \"ada\" cannot list \
                    resource \"nodes\" in API group \"\" at the cluster scope";
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Denied, expected));
    let error = call(&loaded, "read_namespaced_pod", json!({"namespace": "shop", "name": "x"})).await.unwrap_err();
    let expected = "kubernetes_toolkit.read_namespaced_pod(): the server answered 404 Not Found: pods \"x\" not found";
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::NotFound, expected));
    let patch = json!({"namespace": "shop", "name": "web", "body": [], "content_type": "application/json-patch+json"});
    let error = call(&loaded, "patch_namespaced_deployment_scale", patch).await.unwrap_err();
    assert!(error.message.ends_with("415 Unsupported Media Type: the body is of no known type"), "{error}");
}

#[tokio::test]
async fn a_client_certificate_proves_who_asks() {
    let cluster = Cluster::start();
    let loaded = load(&cluster.context("grace")).await.unwrap();
    let error = call(&loaded, "list_node", json!({})).await.unwrap_err();
    assert!(error.message.contains("User \"grace\" cannot list"), "{error}");
    let file = |name: &str| Some(cluster.folder.path().join(name));
    let settings = Config {
        server: Some(cluster.address.clone()),
        ca: file("ca.crt"),
        client_certificate: file("client.crt"),
        client_key: file("client.key"),
        more: vec!["listBatchV1beta1NamespacedCronJob".to_owned(), "GET /version/".to_owned()],
        ..Config::default()
    };
    let loaded = load(&settings).await.unwrap();
    let declaration = loaded.toolkit.declaration();
    assert_eq!(declaration.operations.len(), 28);
    assert!(declaration.operation("listBatchV1beta1NamespacedCronJob").is_some());
    let page = call(&loaded, "list_namespaced_pod", json!({"namespace": "shop", "limit": 1})).await.unwrap();
    assert_eq!(names(&page["items"]), ["web-0"]);
}

#[tokio::test]
async fn what_cannot_be_used_is_told() {
    let cluster = Cluster::start();
    let told = async |config: Config| load(&config).await.err().unwrap().to_string();
    let document = format!("{}/openapi/v2", cluster.address);
    let unauthorized = format!("cannot read {document}: the server answered 401 Unauthorized");
    assert_eq!(told(cluster.context("nobody")).await, unauthorized);
    // A server that nobody vouches for, and one that others vouch for.
    let server = Some(cluster.address.clone());
    let unknown = told(Config { server: server.clone(), ..Config::default() }).await;
    assert!(unknown.starts_with(&format!("cannot read {document}: ")) && unknown.contains("certificate"), "{unknown}");
    let ca = cluster.folder.path().join("server.key");
    let wrong = told(Config { server, ca: Some(ca), ..Config::default() }).await;
    assert_eq!(wrong, "the server's certificate authority cannot be used: it has no certificate in PEM form");
    let plain = Config { server: Some("http://127.0.0.1:1".to_owned()), ..cluster.context("ada") };
    let expected = "`server` cannot be used: a credential is sent over https:// only, not to `http://127.0.0.1:1`";
    assert_eq!(told(plain).await, expected);
    let missing = Config { token: Some("NO_SUCH_TOKEN".to_owned()), ..cluster.context("ada") };
    let expected = "`token` cannot be used: there is no secret and no environment variable `NO_SUCH_TOKEN`";
    assert_eq!(told(missing).await, expected);
}
