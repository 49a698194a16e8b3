//! The manifests that come with Fimble, with the programs that they are for.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fimble_manifest::Manifest;
use fimble_toolkit::{Call, Risk, SessionContext, ToolError, Toolkit};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn shipped(name: &str) -> Manifest {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)).unwrap();
    Manifest::of_text(name, &text).unwrap()
}

async fn call(toolkit: &Manifest, operation: &str, arguments: Value) -> Result<Value, ToolError> {
    toolkit
        .call(Call {
            operation: operation.to_owned(),
            arguments: arguments.as_object().cloned().unwrap(),
            key: String::new(),
            context: SessionContext::default(),
            cancellation: CancellationToken::new(),
        })
        .await
}

fn risks(toolkit: &Manifest) -> Vec<(String, Risk)> {
    toolkit.declaration().operations.into_iter().map(|operation| (operation.name, operation.risk)).collect()
}

/// An nginx in a folder of its own that says one word.
struct Nginx {
    process: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Nginx {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        fs::write(folder.path().join("error.log"), "").unwrap();
        let file = Self::write(folder.path(), port, "return 200 first;");
        let mut command = Command::new("/usr/sbin/nginx");
        command.arg("-c").arg(&file).args(["-g", "daemon off;"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // SIGTERM ends its workers too.
        let signal = Some(rustix::process::Signal::TERM);
        // SAFETY: the closure makes one system call and allocates nothing.
        unsafe {
            command.pre_exec(move || Ok(rustix::process::set_parent_process_death_signal(signal)?));
        }
        let process = command.spawn().expect("`scripts/setup tests` installs nginx");
        Self { process, port, folder }
    }

    fn write(folder: &Path, port: u16, what: &str) -> PathBuf {
        let (own, file) = (folder.display(), folder.join("nginx.conf"));
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {own}/{kind}; "))
            .concat();
        let settings = format!(
            "pid {own}/nginx.pid;\nerror_log {own}/error.log;\nworker_processes 1;\nevents {{}}\nhttp {{\n  access_log off; \
             {temporary}\n  server {{ listen 127.0.0.1:{port}; location / {{ {what} }} }}\n}}\n"
        );
        fs::write(&file, settings).unwrap();
        file
    }

    fn config(&self) -> String {
        self.folder.path().join("nginx.conf").display().to_string()
    }

    /// Asks until the answer is that word, for 30 s at most.
    async fn says(&mut self, word: &str) {
        let begun = Instant::now();
        loop {
            let mut answer = String::new();
            if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
                let asked = stream.write_all(b"GET / HTTP/1.0\r\n\r\n");
                let _ = asked.and_then(|()| stream.read_to_string(&mut answer));
            }
            if answer.ends_with(&format!("\r\n\r\n{word}")) {
                return;
            }
            assert!(self.process.try_wait().unwrap().is_none(), "nginx ended");
            assert!(begun.elapsed() < Duration::from_secs(30), "nginx does not say {word}: {answer}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = rustix::process::kill_process(
            rustix::process::Pid::from_child(&self.process),
            rustix::process::Signal::TERM,
        );
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn nginx_is_checked_shown_and_reloaded() {
    let toolkit = shipped("nginx.toml");
    assert!(risks(&toolkit).iter().all(|(name, risk)| (*risk == Risk::Write) == (name == "reload")));
    let mut nginx = Nginx::start();
    nginx.says("first").await;
    let config = nginx.config();
    let at = json!({"config": config});

    let tested = call(&toolkit, "test", at.clone()).await.unwrap();
    assert!(tested.as_str().unwrap().ends_with(&format!("configuration file {config} test is successful")), "{tested}");
    let shown = call(&toolkit, "config", at.clone()).await.unwrap();
    assert!(shown.as_str().unwrap().starts_with(&format!("# configuration file {config}:\npid ")), "{shown}");
    assert!(shown.as_str().unwrap().contains("return 200 first;"));
    let status = call(&toolkit, "status", json!({})).await.unwrap();
    let id = nginx.process.id().to_string();
    let is_own = |line: &Value| line.as_str().unwrap().split_whitespace().next() == Some(id.as_str());
    assert!(status.as_array().unwrap().iter().any(is_own), "{status}");
    let version = call(&toolkit, "version", json!({})).await.unwrap();
    assert!(version.as_str().unwrap().starts_with("nginx version: nginx/"), "{version}");

    Nginx::write(nginx.folder.path(), nginx.port, "return 200 second;");
    call(&toolkit, "reload", at.clone()).await.unwrap();
    nginx.says("second").await;

    // A wrong configuration is told with its line, and is not taken.
    Nginx::write(nginx.folder.path(), nginx.port, "retrun 200 third;");
    for operation in ["test", "reload", "config"] {
        let error = call(&toolkit, operation, at.clone()).await.unwrap_err();
        let expected = format!("unknown directive \"retrun\" in {config}:");
        assert!(error.message.contains(&expected), "{operation}: {error}");
    }
    nginx.says("second").await;
    let error = call(&toolkit, "test", json!({"config": "-g daemon off;"})).await.unwrap_err();
    assert!(error.message.contains("begin"), "{error}");
}

#[tokio::test]
async fn the_journal_is_read_by_unit_priority_and_time() {
    let toolkit = shipped("systemd.toml");
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Command::new("/lib/systemd/systemd-journal-remote")
        .arg(format!("--output={}", folder.path().join("system.journal").display()))
        .arg("-")
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("`scripts/setup tests` installs systemd-journal-remote");
    let boot = "0123456789abcdef0123456789abcdef";
    let entries = [("shop.service", 6, "started"), ("shop.service", 3, "no database"), ("mail.service", 6, "sent")];
    for (index, (unit, priority, text)) in entries.into_iter().enumerate() {
        let time = 1_769_860_800_000_000_u64 + index as u64 * 60_000_000;
        let entry = format!(
            "__REALTIME_TIMESTAMP={time}\n__MONOTONIC_TIMESTAMP={index}\n_BOOT_ID={boot}\n_MACHINE_ID={boot}\n_HOSTNAME=shop\n\
             _SYSTEMD_UNIT={unit}\nSYSLOG_IDENTIFIER=app\nPRIORITY={priority}\nMESSAGE={text}\n\n"
        );
        writer.stdin.as_mut().unwrap().write_all(entry.as_bytes()).unwrap();
    }
    drop(writer.stdin.take());
    assert!(writer.wait().unwrap().success());
    let journal = async |more: Value| {
        let mut arguments = json!({"directory": folder.path()});
        arguments.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        let lines = call(&toolkit, "journal", arguments).await.unwrap();
        let texts =
            lines.as_array().unwrap().iter().map(|line| line.as_str().unwrap().rsplit(": ").next().unwrap().to_owned());
        texts.collect::<Vec<_>>()
    };
    assert_eq!(journal(json!({})).await, ["started", "no database", "sent"]);
    assert_eq!(journal(json!({"unit": "shop.service"})).await, ["started", "no database"]);
    assert_eq!(journal(json!({"priority": "err"})).await, ["no database"]);
    assert_eq!(journal(json!({"lines": 1})).await, ["sent"]);
    assert_eq!(journal(json!({"since": "2026-01-31 12:01:30 UTC"})).await, ["sent"]);
    assert_eq!(journal(json!({"since": "-1s"})).await, Vec::<String>::new());
}

#[tokio::test]
async fn units_are_listed_where_systemd_runs_and_its_absence_is_told_in_its_words() {
    let toolkit = shipped("systemd.toml");
    for (name, risk) in risks(&toolkit) {
        let expected = match name.as_str() {
            "start" | "reload" => Risk::Write,
            "restart" | "stop" => Risk::Destructive,
            _ => Risk::Read,
        };
        assert_eq!(risk, expected, "{name}");
    }
    let files = call(&toolkit, "unit_files", json!({"type": "timer"})).await;
    let units = call(&toolkit, "units", json!({"type": "service"})).await;
    let missing = call(&toolkit, "restart", json!({"unit": "fimble-no-such.service"})).await.unwrap_err();
    assert!(missing.message.starts_with("`systemctl` ended with exit code "), "{missing}");
    if Path::new("/run/systemd/system").is_dir() {
        assert!(units.unwrap()[0]["unit"].as_str().unwrap().ends_with(".service"));
        assert!(files.unwrap()[0]["unit_file"].as_str().unwrap().ends_with(".timer"));
        assert!(missing.message.contains("fimble-no-such.service"), "{missing}");
    } else {
        let error = units.unwrap_err();
        assert!(error.message.contains("System has not been booted with systemd"), "{error}");
    }
}
