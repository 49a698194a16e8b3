//! The toolkit against the machine that the test runs on.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::process::{Child, Command, Stdio};

use fimble_host::Host;
use fimble_toolkit::{Call, SessionContext, ToolError, Toolkit};
use serde_json::{Value, json};

async fn call(operation: &str, arguments: Value) -> Result<Value, ToolError> {
    Host::new()
        .call(Call {
            operation: operation.into(),
            arguments: arguments.as_object().cloned().unwrap(),
            key: String::new(),
            context: SessionContext::default(),
            cancellation: tokio_util::sync::CancellationToken::new(),
        })
        .await
}

fn kernel(file: &str) -> String {
    fs::read_to_string(format!("/proc/sys/kernel/{file}")).unwrap().trim().to_owned()
}

fn number(value: &Value, field: &str) -> f64 {
    value[field].as_f64().unwrap()
}

/// A child that ends with the test.
struct Sleeper(Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn cpu_counts_and_measures() {
    let cpu = call("cpu", json!({})).await.unwrap();
    let count =
        fs::read_to_string("/proc/cpuinfo").unwrap().lines().filter(|line| line.starts_with("processor")).count();
    assert_eq!(cpu["count"], json!(count));
    assert_eq!(cpu["per_cpu_percent"].as_array().unwrap().len(), count);
    assert!((0.0..=100.0).contains(&number(&cpu, "usage_percent")), "{cpu}");
    assert!(number(&cpu, "load_1m") >= 0.0 && number(&cpu, "load_15m") >= 0.0);
}

#[tokio::test]
async fn memory_adds_up() {
    let memory = call("memory", json!({})).await.unwrap();
    let text = fs::read_to_string("/proc/meminfo").unwrap();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap();
    let total: u64 = total.trim().trim_end_matches(" kB").parse().unwrap();
    assert_eq!(memory["total_bytes"], json!(total * 1024));
    assert!(number(&memory, "used_bytes") > 0.0 && number(&memory, "used_bytes") < number(&memory, "total_bytes"));
    let percent = number(&memory, "used_bytes") / number(&memory, "total_bytes") * 100.0;
    assert!((number(&memory, "used_percent") - percent).abs() < 0.06, "{memory}");
}

#[tokio::test]
async fn disks_are_as_full_as_df_says_and_told_once() {
    let disks = call("disks", json!({})).await.unwrap();
    let disks = disks.as_array().unwrap();
    for disk in disks {
        let mut df = Command::new("df");
        df.args(["--block-size=1", "--output=size,used,avail,pcent"]).arg(disk["mount"].as_str().unwrap());
        let told = String::from_utf8(df.output().unwrap().stdout).unwrap();
        let told: Vec<f64> = told
            .lines()
            .nth(1)
            .unwrap()
            .split_whitespace()
            .map(|word| word.trim_end_matches('%').parse().unwrap())
            .collect();
        // Others write meanwhile: a part in a hundred of the whole.
        let near = |name: &str, told: f64| (number(disk, name) - told).abs() <= number(disk, "total_bytes") / 100.0;
        assert!(
            near("total_bytes", told[0]) && near("used_bytes", told[1]) && near("free_bytes", told[2]),
            "{disk} {told:?}"
        );
        // It rounds up.
        assert!((number(disk, "used_percent") - told[3] + 0.5).abs() <= 1.5, "{disk} {told:?}");
        assert!(number(disk, "total_bytes") > 0.0 && disk["file_system"] != "proc" && disk["file_system"] != "tmpfs");
        let same = disks.iter().filter(|other| other["device"] == disk["device"] && other["device"] != "overlay");
        assert!(same.count() <= 1, "{disk}");
    }
}

#[tokio::test]
async fn processes_are_found_by_name() {
    let argument = format!("86400.{}", std::process::id());
    let sleeper = Sleeper(Command::new("sleep").arg(&argument).stdin(Stdio::null()).spawn().unwrap());
    let found = call("processes", json!({"name": argument, "sort_by": "memory"})).await.unwrap();
    assert_eq!((&found["total"], &found["truncated"]), (&json!(1), &json!(false)));
    let process = &found["processes"][0];
    assert_eq!(
        (&process["pid"], &process["command"], &process["parent_pid"], &process["state"]),
        (&json!(sleeper.0.id()), &json!(format!("sleep {argument}")), &json!(std::process::id()), &json!("sleeping"))
    );
    assert!(process["started"].as_str().unwrap().ends_with('Z') && process["user"] != "");
}

#[tokio::test]
async fn processes_come_in_order_and_number() {
    let found = call("processes", json!({"limit": 3, "sort_by": "memory"})).await.unwrap();
    let memory: Vec<u64> = found["processes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|process| process["memory_bytes"].as_u64().unwrap())
        .collect();
    assert!(memory.len() <= 3 && memory.is_sorted_by(|left, right| left >= right), "{memory:?}");
    let refused = call("processes", json!({"limit": 0})).await;
    assert_eq!(refused, Err(ToolError::invalid_argument("`limit` is from 1 to 1000, not 0")));
}

#[tokio::test]
async fn listening_ports_name_their_process() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    let udp = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    let name = fs::read_to_string("/proc/self/comm").unwrap();
    let entry = |protocol: &str| {
        json!({"port": port, "protocol": protocol, "address": "127.0.0.1", "pid": std::process::id(),
            "process": name.trim()})
    };
    let found = call("listening_ports", json!({"port": port})).await.unwrap();
    assert_eq!((&found["ports"], &found["truncated"]), (&json!([entry("tcp"), entry("udp")]), &json!(false)));
    drop((tcp, udp));
    let gone = call("listening_ports", json!({"port": port})).await.unwrap();
    assert_eq!(gone["ports"], json!([]));
}

#[tokio::test]
async fn system_and_uptime_agree_with_the_kernel() {
    let system = call("system", json!({})).await.unwrap();
    assert_eq!(
        (&system["hostname"], &system["kernel"], &system["architecture"]),
        (&json!(kernel("hostname")), &json!(kernel("osrelease")), &json!(std::env::consts::ARCH))
    );
    let uptime = call("uptime", json!({})).await.unwrap();
    assert_eq!(uptime["boot_time"], system["boot_time"]);
    assert!(number(&uptime, "uptime_seconds") >= number(&system, "uptime_seconds"));
}

#[tokio::test]
async fn services_are_told_where_systemd_runs() {
    let runs = std::path::Path::new("/run/systemd/system").is_dir();
    let services = call("services", json!({"state": "no such state"})).await;
    match services {
        Ok(services) => assert_eq!((services["services"].clone(), runs), (json!([]), true)),
        Err(error) => assert_eq!((error.kind, runs), (fimble_toolkit::ErrorKind::Unavailable, false)),
    }
}
