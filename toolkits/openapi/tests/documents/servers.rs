//! Real servers of Prometheus and its Alertmanager, by their documents.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use fimble_openapi::{Config, Filter, Source, load};
use fimble_toolkit::{ErrorKind, Risk, Toolkit, signature};
use serde_json::{Value, json};

use crate::call;
use crate::whole::alertmanager;

/// A server's process, ended with the test.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts a server and waits until its log says so.
    fn start(program: &str, arguments: &[&str], folder: &Path, saying: &str) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut running = Self(command.spawn().expect("`scripts/setup tests` installs it"));
        let mut lines = BufReader::new(running.0.stderr.take().unwrap());
        let mut said = String::new();
        while lines.read_line(&mut said).unwrap() > 0 {
            if said.lines().last().is_some_and(|line| line.contains(saying)) {
                // Read on, or it would stop at a full pipe.
                std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
                return running;
            }
        }
        panic!("{program} ended: {said}");
    }
}

fn free_port() -> u16 {
    // Not one of those that the kernel lends to whoever connects, and none that a test beside this one tries.
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + (std::process::id() % 1_000) as u16 * 12;
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed) % 200;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Asks again until the answer is as wanted.
async fn until(toolkit: &dyn Toolkit, operation: &str, arguments: Value, is_so: impl Fn(&Value) -> bool) -> Value {
    loop {
        let answer = call(toolkit, operation, arguments.clone()).await.unwrap();
        if is_so(&answer) {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn prometheus_is_asked_by_its_document() {
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let settings = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n\
         - {{job_name: self, static_configs: [{{targets: ['127.0.0.1:{port}'], labels: {{rack: a}}}}]}}\n"
    );
    std::fs::write(folder.path().join("prometheus.yml"), settings).unwrap();
    let address = format!("--web.listen-address=127.0.0.1:{port}");
    let arguments = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", &address];
    let _server =
        Running::start("prometheus", &arguments, folder.path(), "msg=\"Server is ready to receive web requests.\"");

    let source = Source::File(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/documents/fixtures/prometheus.yaml").into());
    let server_variables = [("server".to_owned(), format!("http://127.0.0.1:{port}"))].into();
    let loaded = load(source, Config { server_variables, ..Config::default() }).await.unwrap();
    assert_eq!(loaded.problems, []);
    let toolkit = &*loaded.toolkit;
    let declaration = toolkit.declaration();
    let stubs: Vec<String> = declaration.operations.iter().map(signature).collect();
    let expected = [
        "query(query: str, timeout: str = None, time: float | str = None) -> Query",
        "query_by_form(query: str, timeout: str = None, time: float | str = None) -> QueryByForm",
        "query_range(query: str, start: float | str, end: float | str, step: float | str) -> QueryRange",
        "series(match: list[str] = None) -> Series",
        "label_values(label: str, match: list[str] = None) -> LabelValues",
        "targets(state: Literal[\"active\", \"dropped\", \"any\"] = None) -> Targets",
        "build_info() -> BuildInfo",
    ];
    assert_eq!(stubs, expected);
    assert!(declaration.operations.iter().all(|operation| operation.risk == Risk::Read));

    let up = json!({"query": "up{rack=\"a\"}"});
    let answer = until(toolkit, "query", up.clone(), |answer| answer["data"]["result"] != json!([])).await;
    let metric = json!({"__name__": "up", "instance": format!("127.0.0.1:{port}"), "job": "self", "rack": "a"});
    let series = &answer["data"]["result"][0];
    assert_eq!(
        (&answer["data"]["resultType"], &series["metric"], &series["value"][1]),
        (&json!("vector"), &metric, &json!("1"))
    );
    let at = series["value"][0].as_f64().unwrap();
    let by_form = call(toolkit, "query_by_form", json!({"query": "up{rack=\"a\"}", "time": at})).await.unwrap();
    assert_eq!(by_form, answer);
    let range = json!({"query": "vector(1)", "start": at - 10.0, "end": at, "step": "5s"});
    let range = call(toolkit, "query_range", range).await.unwrap();
    assert_eq!(range["data"]["result"][0]["values"].as_array().map(Vec::len), Some(3), "{range}");
    let series = call(toolkit, "series", json!({"match": ["up", "none"]})).await.unwrap();
    assert_eq!(series["data"], json!([metric]));
    let values = call(toolkit, "label_values", json!({"label": "rack"})).await.unwrap();
    assert_eq!(values, json!({"status": "success", "data": ["a"]}));
    let targets = call(toolkit, "targets", json!({"state": "active"})).await.unwrap();
    assert_eq!(targets["data"]["activeTargets"][0]["scrapePool"], "self");
    let version = call(toolkit, "build_info", json!({})).await.unwrap();
    assert!(version["data"]["version"].is_string(), "{version}");

    let error = call(toolkit, "query", json!({"query": "up{"})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidArgument);
    let start = "prometheus_toolkit.query(): the server answered 400 Bad Request: ";
    assert!(error.message.starts_with(start) && error.message.contains("unexpected end of input"), "{error}");
}

#[tokio::test]
async fn the_alertmanager_is_used_by_its_own_document() {
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    std::fs::write(folder.path().join("am.yml"), "route:\n  receiver: nobody\nreceivers:\n- name: nobody\n").unwrap();
    let address = format!("--web.listen-address=127.0.0.1:{port}");
    let arguments = ["--config.file=am.yml", "--storage.path=data", &address, "--cluster.listen-address="];
    let _server = Running::start("prometheus-alertmanager", &arguments, folder.path(), "Listening on");

    let source = Source::Text(alertmanager().to_string());
    let config = Config {
        name: Some("alerts".to_owned()),
        base_url: Some(format!("http://127.0.0.1:{port}/api/v2")),
        filter: Filter { exclude: vec!["*AlertGroups".to_owned()], ..Filter::default() },
        ..Config::default()
    };
    let loaded = load(source, config).await.unwrap();
    assert_eq!(loaded.problems, []);
    let toolkit = &*loaded.toolkit;
    let risks: Vec<(String, Risk)> =
        toolkit.declaration().operations.into_iter().map(|operation| (operation.name, operation.risk)).collect();
    assert!(risks.contains(&("postSilences".to_owned(), Risk::Write)), "{risks:?}");
    assert!(risks.contains(&("deleteSilence".to_owned(), Risk::Destructive)), "{risks:?}");

    assert_eq!(call(toolkit, "getReceivers", json!({})).await, Ok(json!([{"name": "nobody"}])));
    let alert = json!([{"labels": {"alertname": "DiskFull", "host": "a"}, "annotations": {"summary": "94 %"}}]);
    assert_eq!(call(toolkit, "postAlerts", json!({"body": alert})).await, Ok(json!(null)));
    let filter = json!({"filter": ["alertname=\"DiskFull\"", "host=~\"a|b\""], "silenced": true});
    let alerts = until(toolkit, "getAlerts", filter.clone(), |alerts| alerts != &json!([])).await;
    assert_eq!((&alerts[0]["labels"]["host"], &alerts[0]["status"]["state"]), (&json!("a"), &json!("active")));
    let none = call(toolkit, "getAlerts", json!({"filter": ["alertname=\"Other\""]})).await;
    assert_eq!(none, Ok(json!([])));

    let silence = json!({
        "matchers": [{"name": "host", "value": "a", "isRegex": false}], "comment": "It is being cleaned", "createdBy": "ada",
        "startsAt": "2020-01-01T00:00:00Z", "endsAt": "2100-01-01T00:00:00Z"});
    let id = call(toolkit, "postSilences", silence).await.unwrap()["silenceID"].clone();
    let silence = call(toolkit, "getSilence", json!({"silenceID": id})).await.unwrap();
    assert_eq!((&silence["comment"], &silence["status"]["state"]), (&json!("It is being cleaned"), &json!("active")));
    until(toolkit, "getAlerts", filter, |alerts| alerts[0]["status"]["silencedBy"] == json!([id])).await;
    assert_eq!(call(toolkit, "deleteSilence", json!({"silenceID": id})).await, Ok(json!(null)));

    let wrong = json!({"filter": ["=="]});
    let error = call(toolkit, "getAlerts", wrong).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidArgument, "{error}");
    let error = call(toolkit, "getSilence", json!({"silenceID": "no-uuid"})).await.unwrap_err();
    assert!(error.message.contains("silenceID"), "{error}");
}
