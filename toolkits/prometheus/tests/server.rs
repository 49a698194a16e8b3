//! The toolkit against a Prometheus that scrapes itself and a node exporter.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use fimble_prometheus::{Config, Prometheus};
use fimble_toolkit::{Call, ErrorKind, SessionContext, ToolError, Toolkit};
use serde_json::{Value, json};

/// A process that dies with its owner.
struct Running(Child);

impl Running {
    fn start(program: &str, arguments: &[String], folder: &std::path::Path, saying: &str) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let signal = Some(rustix::process::Signal::KILL);
        // SAFETY: the closure makes one system call and allocates nothing.
        unsafe {
            command.pre_exec(move || Ok(rustix::process::set_parent_process_death_signal(signal)?));
        }
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

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
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

const RULES: &str = r#"
groups:
  - name: tests
    interval: 1s
    rules:
      - record: job:up:count
        expr: count by (job) (up)
      - alert: TargetDown
        expr: up == 0
        labels: {severity: page}
        annotations: {summary: "{{ $labels.instance }} is down"}
      - alert: WaitsLong
        expr: vector(1)
        for: 1h
"#;

/// A Prometheus with a node exporter, and a target that nobody answers for.
struct Servers {
    port: u16,
    exporter: u16,
    _folder: tempfile::TempDir,
    _processes: [Running; 2],
}

impl Servers {
    fn start() -> Self {
        let (folder, port, exporter, nobody) = (tempfile::tempdir().unwrap(), free_port(), free_port(), free_port());
        let settings = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [rules.yml]\nscrape_configs:\n\
             - {{job_name: prometheus, static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}\n\
             - {{job_name: node, static_configs: [{{targets: ['127.0.0.1:{exporter}'], labels: {{rack: a}}}}]}}\n\
             - {{job_name: gone, static_configs: [{{targets: ['127.0.0.1:{nobody}']}}]}}\n"
        );
        std::fs::write(folder.path().join("prometheus.yml"), settings).unwrap();
        std::fs::write(folder.path().join("rules.yml"), RULES).unwrap();
        let node = [
            format!("--web.listen-address=127.0.0.1:{exporter}"),
            "--collector.disable-defaults".to_owned(),
            "--collector.loadavg".to_owned(),
            "--collector.meminfo".to_owned(),
        ];
        let node = Running::start("prometheus-node-exporter", &node, folder.path(), "msg=\"Listening on\"");
        let server = [
            "--config.file=prometheus.yml".to_owned(),
            "--storage.tsdb.path=data".to_owned(),
            format!("--web.listen-address=127.0.0.1:{port}"),
        ];
        let server =
            Running::start("prometheus", &server, folder.path(), "msg=\"Server is ready to receive web requests.\"");
        Self { port, exporter, _folder: folder, _processes: [node, server] }
    }

    fn toolkit(&self, config: Config) -> Prometheus {
        Prometheus::new(Config { url: format!("http://127.0.0.1:{}", self.port), ..config }).unwrap()
    }
}

async fn call(toolkit: &Prometheus, operation: &str, arguments: Value) -> Result<Value, ToolError> {
    toolkit
        .call(Call {
            operation: operation.into(),
            arguments: arguments.as_object().cloned().unwrap(),
            key: String::new(),
            context: SessionContext::default(),
            cancellation: tokio_util::sync::CancellationToken::new(),
        })
        .await
}

/// Asks again until the answer is as wanted, for 60 s at most.
async fn until(toolkit: &Prometheus, operation: &str, arguments: Value, is_so: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let answer = call(toolkit, operation, arguments.clone()).await.unwrap();
        if is_so(&answer) {
            return answer;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "not yet as wanted: {operation} {answer}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn count(value: &Value, field: &str) -> usize {
    value[field].as_array().unwrap().len()
}

#[tokio::test]
async fn a_real_server_is_asked_everything() {
    let servers = Servers::start();
    let toolkit = servers.toolkit(Config::default());
    let node = format!("127.0.0.1:{}", servers.exporter);

    // Instant queries: labels, a float, a time.
    let up = until(&toolkit, "query", json!({"query": "up"}), |up| count(up, "samples") == 3).await;
    let sample = up["samples"].as_array().unwrap().iter().find(|one| one["metric"]["job"] == "node").unwrap();
    assert_eq!(
        sample["metric"],
        json!({"__name__": "up", "instance": node, "job": "node", "rack": "a"}),
        "a label of the configuration is there too"
    );
    assert_eq!((&sample["value"], &up["note"]), (&json!(1.0), &Value::Null));
    assert!(sample["time"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{sample}");
    let scalar = call(&toolkit, "query", json!({"query": "scalar(vector(0.5))"})).await.unwrap();
    assert_eq!((&scalar["samples"][0]["metric"], &scalar["samples"][0]["value"]), (&json!({}), &json!(0.5)));
    let at = call(&toolkit, "query", json!({"query": "time()", "time": "2026-01-31T12:00:00.5Z"})).await.unwrap();
    assert_eq!(at["samples"][0], json!({"metric": {}, "value": 1_769_860_800.5, "time": "2026-01-31T12:00:00.5Z"}));
    let nan = call(&toolkit, "query", json!({"query": "vector(0) / 0"})).await.unwrap();
    assert_eq!(nan["samples"][0]["value"], Value::Null);

    // What is cut is said.
    let cut = call(&toolkit, "query", json!({"query": "up", "limit": 2})).await.unwrap();
    assert_eq!(count(&cut, "samples"), 2);
    assert!(cut["note"].as_str().unwrap().starts_with("only the first 2 of 3 samples; add labels"), "{cut}");

    // Ranges.
    let range = json!({"query": "up{job=\"node\"}", "start": "10m", "step": "1s"});
    let series = until(&toolkit, "query_range", range, |found| {
        found["series"][0]["values"].as_array().is_some_and(|values| values.len() >= 2)
    })
    .await;
    assert_eq!(series["series"][0]["values"][0]["value"], json!(1.0));
    let times =
        call(&toolkit, "query_range", json!({"query": "time()", "start": "0", "end": "120", "step": "1m"})).await;
    let points = json!([{"time": "1970-01-01T00:00:00Z", "value": 0.0}, {"time": "1970-01-01T00:01:00Z", "value": 60.0},
                        {"time": "1970-01-01T00:02:00Z", "value": 120.0}]);
    assert_eq!(times.unwrap()["series"], json!([{"metric": {}, "values": points}]));

    // Names and series.
    let jobs = call(&toolkit, "label_values", json!({"label": "job"})).await.unwrap();
    assert_eq!(jobs["names"], json!(["gone", "node", "prometheus"]));
    let memory = json!({"contains": "memory_MemTotal", "selector": "{job=\"node\"}"});
    let memory = until(&toolkit, "label_values", memory, |found| count(found, "names") == 1).await;
    assert_eq!(memory["names"], json!(["node_memory_MemTotal_bytes"]));
    let labels = call(&toolkit, "labels", json!({"selector": "up{job=\"node\"}"})).await.unwrap();
    assert_eq!(labels["names"], json!(["__name__", "instance", "job", "rack"]));
    let series = call(&toolkit, "series", json!({"selector": "node_load1"})).await.unwrap();
    assert_eq!(series["series"], json!([{"__name__": "node_load1", "instance": node, "job": "node", "rack": "a"}]));

    // Targets: the one that is down comes first and says why.
    let targets = until(&toolkit, "targets", json!({}), |found| {
        found["targets"].as_array().unwrap().iter().all(|target| target["health"] != "unknown")
    })
    .await;
    assert_eq!((&targets["targets"][0]["job"], &targets["targets"][0]["health"]), (&json!("gone"), &json!("down")));
    assert!(targets["targets"][0]["last_error"].as_str().unwrap().contains("connection refused"), "{targets}");
    let up = call(&toolkit, "targets", json!({"health": "up", "job": "node"})).await.unwrap();
    assert_eq!((count(&up, "targets"), &up["targets"][0]["labels"]), (1, &json!({"rack": "a"})));
    assert!(up["targets"][0]["url"].as_str().unwrap().ends_with("/metrics"));

    // Rules and alerts.
    let firing = until(&toolkit, "alerts", json!({"state": "firing"}), |found| count(found, "alerts") == 1).await;
    let alert = &firing["alerts"][0];
    assert_eq!((&alert["name"], &alert["labels"]["severity"]), (&json!("TargetDown"), &json!("page")));
    assert_eq!((&alert["labels"]["job"], &alert["value"]), (&json!("gone"), &json!(0.0)));
    assert!(alert["annotations"]["summary"].as_str().unwrap().ends_with(" is down"));
    let all = until(&toolkit, "alerts", json!({}), |found| count(found, "alerts") == 2).await;
    assert_eq!(all["alerts"][1]["name"], "WaitsLong");
    let rules = call(&toolkit, "rules", json!({"kind": "recording"})).await.unwrap();
    assert_eq!(
        rules["rules"],
        json!([{"group": "tests", "name": "job:up:count", "kind": "recording", "query": "count by (job) (up)",
                "state": null, "health": "ok", "last_error": null}])
    );
    let rules = call(&toolkit, "rules", json!({"contains": "Down"})).await.unwrap();
    assert_eq!((count(&rules, "rules"), &rules["rules"][0]["state"]), (1, &json!("firing")));
}

#[tokio::test]
async fn what_the_server_refuses_is_its_own_sentence() {
    let servers = Servers::start();
    let toolkit = servers.toolkit(Config::default());
    for (operation, arguments, message) in [
        ("query", json!({"query": "sum by"}), "invalid parameter \"query\": 1:7: parse error: unexpected end of input"),
        ("query", json!({"query": "up[5m]"}), "the query is a range of values, not one value a series"),
        ("query", json!({"query": "\"text\""}), "the query is a string, not a number"),
        ("query", json!({"query": "up", "time": "soon"}), "`time` is no time: `soon`; write RFC 3339"),
        ("query", json!({"query": "up", "limit": 0}), "`limit` is from 1 to 5000, not 0"),
        ("query_range", json!({"query": "up", "start": "now", "end": "1h"}), "`start` is after `end`"),
        (
            "series",
            json!({"selector": "{}"}),
            "invalid parameter \"match[]\": match[] must contain at least one non-empty matcher",
        ),
        ("label_values", json!({"label": "no label"}), "invalid label name: \"no label\""),
        ("label_values", json!({"label": ".."}), "an empty name, `.` and `..` are no labels"),
        ("alerts", json!({"state": "resolved"}), "`state` is one of firing, pending, not `resolved`"),
    ] {
        let error = call(&toolkit, operation, arguments).await.unwrap_err();
        assert!(error.message.starts_with(message), "{operation}: {error}");
        assert_eq!(error.kind, ErrorKind::InvalidArgument, "{error}");
    }
    let many = json!({"query": "vector(1) / on() vector(1) * on() group_left() (vector(1) or label_replace(vector(1), \"a\", \"b\", \"\", \"\"))"});
    let error = call(&toolkit, "query", many).await.unwrap_err();
    assert!(error.message.contains("many"), "{error}");

    let small = servers.toolkit(Config { answer_bytes: 20, ..Config::default() });
    let error = call(&small, "label_values", json!({})).await.unwrap_err();
    assert!(error.message.starts_with("the answer has more than 20 bytes"), "{error}");
    let behind = Config { url: format!("http://127.0.0.1:{}/behind/", servers.port), ..Config::default() };
    let error = call(&Prometheus::new(behind).unwrap(), "alerts", json!({})).await.unwrap_err();
    assert!(error.message.contains("answered 404 Not Found, which Prometheus does not"), "{error}");
}

#[tokio::test]
async fn a_server_that_is_away_or_silent_is_an_error_without_its_password() {
    let config = Config { url: format!("http://me:hunter2@127.0.0.1:{}", free_port()), ..Config::default() };
    assert_eq!(config.secrets(), ["hunter2"]);
    let toolkit = Prometheus::new(config.clone()).unwrap();
    assert!(!format!("{config:?} {toolkit:?}").contains("hunter2"));
    let error = call(&toolkit, "alerts", json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(error.message.contains("cannot be reached") && !error.to_string().contains("hunter2"), "{error}");

    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let config = Config { url, timeout_s: 0.2, ..Config::default() };
    let error = call(&Prometheus::new(config).unwrap(), "alerts", json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
    assert!(error.message.ends_with("did not answer within 0.2 s"), "{error}");
}

#[tokio::test]
async fn user_and_password_are_sent_and_a_login_page_is_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://me:hunter2@{}", listener.local_addr().unwrap());
    let peer = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = Vec::new();
        let mut byte = [0];
        while !asked.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            asked.push(byte[0]);
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>").unwrap();
        String::from_utf8(asked).unwrap()
    });
    let toolkit = Prometheus::new(Config { url, ..Config::default() }).unwrap();
    let error = call(&toolkit, "alerts", json!({})).await.unwrap_err();
    let asked = peer.join().unwrap();
    assert!(asked.to_lowercase().contains("authorization: basic bwu6ahvudgvymg=="), "{asked}");
    assert!(asked.starts_with("GET /api/v1/alerts HTTP/1.1\r\n"), "{asked}");
    assert!(error.message.contains("did not answer as Prometheus does"), "{error}");
}

#[test]
fn wrong_settings_are_refused_with_a_hint() {
    for (config, message) in [
        (Config::default(), "the `url` of the Prometheus server is no address"),
        (
            Config { url: "localhost:9090".into(), ..Config::default() },
            "the `url` of the Prometheus server is no address",
        ),
        (
            Config { url: "http://a".into(), timeout_s: 0.0, ..Config::default() },
            "`toolkits.prometheus.timeout_s`: 0 is out of range",
        ),
        (
            Config { url: "http://a".into(), token_env: Some("FIMBLE_NO_SUCH".into()), ..Config::default() },
            "the environment variable `FIMBLE_NO_SUCH` holds no token for the Prometheus server",
        ),
    ] {
        let error = Prometheus::new(config).unwrap_err();
        assert_eq!(error.message, message);
        assert!(error.hint.is_some());
    }
}
