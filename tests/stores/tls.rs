//! Servers that ask for a password and speak TLS, by the binary: what it trusts is set by its environment.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::server::{Node, free_port, wait_until};

const PASSWORD: &str = "correct horse";

/// An authority that nobody knows, and a certificate of it for this machine.
struct Certificates {
    folder: TempDir,
}

impl Certificates {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let make = |arguments: &[&str]| {
            let mut openssl = Command::new("openssl");
            openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
            let made = openssl.args(["-days", "2"]).args(arguments).current_dir(folder.path()).output().unwrap();
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        };
        make(&["-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem"]);
        let names = "subjectAltName=IP:127.0.0.1,DNS:localhost";
        let of_server = ["-CA", "ca.pem", "-CAkey", "ca.key", "-subj", "/CN=server", "-addext", names];
        make(
            &[&of_server[..], &["-addext", "basicConstraints=CA:FALSE", "-keyout", "key.pem", "-out", "cert.pem"]]
                .concat(),
        );
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What a server is started with, and what `redis-cli` needs to speak to it.
    fn settings(&self) -> (Vec<String>, Vec<String>) {
        let path = |name: &str| self.path(name).display().to_string();
        let server = [
            "--tls-cert-file",
            &path("cert.pem"),
            "--tls-key-file",
            &path("key.pem"),
            "--tls-ca-cert-file",
            &path("ca.pem"),
            "--tls-auth-clients",
            "no",
        ];
        (server.map(str::to_owned).to_vec(), ["--tls", "--cacert", &path("ca.pem")].map(str::to_owned).to_vec())
    }
}

fn fimble(folder: &Path, store: &str, authority: Option<&Path>, arguments: &[&str]) -> Output {
    std::fs::write(folder.join("program.py"), "kept = [1, 2]\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fimble"));
    command.current_dir(folder).env("XDG_DATA_HOME", folder).env("XDG_CONFIG_HOME", folder).env("USER", "tester");
    command.env_remove("SSL_CERT_DIR").env_remove("SSL_CERT_FILE");
    command.envs(authority.map(|file| ("SSL_CERT_FILE", file)));
    command.args(["-c", &format!("store={store}")]).args(arguments).output().unwrap()
}

/// A program runs, and another process finds what it kept; the password is never shown.
fn keeps_a_session(store: &str, authority: Option<&Path>) {
    let folder = TempDir::new().unwrap();
    let ran = fimble(folder.path(), store, authority, &["run", "program.py"]);
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    let list = fimble(folder.path(), store, authority, &["sessions", "list"]);
    let list = String::from_utf8(list.stdout).unwrap();
    let id = list.split_whitespace().next().unwrap();
    let variables =
        String::from_utf8(fimble(folder.path(), store, authority, &["sessions", "vars", id]).stdout).unwrap();
    assert!(variables.starts_with("kept: list[int] = [1, 2]"), "{variables}");
    let doctor = fimble(folder.path(), store, authority, &["doctor"]);
    let told = [doctor.stdout, doctor.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    assert!(told.contains("Redis 7") && !told.contains(PASSWORD) && !told.contains("correct%20horse"), "{told}");
}

/// The server refuses, and the sentence says what to do; the password is never shown.
fn is_refused(store: &str, authority: Option<&Path>, sentence: &str) {
    let folder = TempDir::new().unwrap();
    let refused = fimble(folder.path(), store, authority, &["sessions", "list"]);
    let told = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(5), "{told}");
    assert!(told.contains(sentence) && !told.contains("horse"), "{told}");
}

#[test]
fn a_server_with_tls_and_a_password_keeps_a_session() {
    let certificates = Certificates::new();
    let tls = free_port().to_string();
    let (mut settings, _) = certificates.settings();
    settings.extend(["--tls-port", &tls, "--requirepass", PASSWORD].map(str::to_owned));
    let _node = Node::with(&settings.iter().map(String::as_str).collect::<Vec<_>>());
    let authority = certificates.path("ca.pem");
    keeps_a_session(&format!("rediss://:correct%20horse@127.0.0.1:{tls}"), Some(&authority));
    keeps_a_session(&format!("rediss://:correct%20horse@localhost:{tls}"), Some(&authority));
    let url = format!("rediss://:correct%20horse@127.0.0.1:{tls}");
    is_refused(&url, None, "check the server's certificate and its name");
    is_refused(&format!("rediss://:wrong%20horse@127.0.0.1:{tls}"), Some(&authority), "password");
    is_refused(&format!("rediss://127.0.0.1:{tls}"), Some(&authority), "password");
}

#[test]
fn a_cluster_with_tls_and_a_password_keeps_a_session() {
    let certificates = Certificates::new();
    for has_tls in [false, true] {
        let ports: Vec<String> = (0..3).map(|_| free_port().to_string()).collect();
        let (tls, client) = certificates.settings();
        let start = |port: &String| {
            // With TLS the nodes find each other's bus only there.
            let bus = (port.parse::<u16>().unwrap() + 10_000).to_string();
            let mut settings = vec!["--cluster-enabled", "yes", "--cluster-port", &bus, "--requirepass", PASSWORD];
            settings.extend(["--masterauth", PASSWORD, "--cluster-node-timeout", "2000"]);
            if has_tls {
                settings.extend([
                    "--tls-cluster",
                    "yes",
                    "--tls-replication",
                    "yes",
                    "--port",
                    "0",
                    "--tls-port",
                    port,
                ]);
                settings.extend(tls.iter().map(String::as_str));
            } else {
                settings.extend(["--port", port]);
            }
            Node::with(&settings)
        };
        let _nodes: Vec<Node> = ports.iter().map(start).collect();
        let redis_cli = |arguments: &[&str]| {
            let mut command = Command::new("redis-cli");
            command.args(["-a", PASSWORD, "--no-auth-warning"]).args(if has_tls { client.as_slice() } else { &[] });
            let said = command.args(arguments).output().unwrap();
            String::from_utf8(said.stdout).unwrap()
        };
        let hosts: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let mut create = vec!["--cluster", "create"];
        create.extend(hosts.iter().map(String::as_str));
        create.push("--cluster-yes");
        let made = redis_cli(&create);
        assert!(made.contains("[OK] All 16384 slots covered"), "{made}");
        wait_until("the nodes know each other", || {
            ports.iter().all(|port| redis_cli(&["-p", port, "CLUSTER", "INFO"]).contains("cluster_state:ok"))
        });
        let (scheme, authority) = if has_tls { ("rediss", Some(certificates.path("ca.pem"))) } else { ("redis", None) };
        let url = |password: &str| format!("{scheme}+cluster://:{password}@{},{}", hosts[0], hosts[2]);
        keeps_a_session(&url("correct%20horse"), authority.as_deref());
        is_refused(&url("wrong%20horse"), authority.as_deref(), "password");
        if has_tls {
            is_refused(&url("correct%20horse"), None, "certificate");
        }
    }
}
