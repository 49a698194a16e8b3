//! A PostgreSQL that belongs to a test: in a folder of its own, dead when the test is.
#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use fimble_postgres::{Config, Postgres};

/// The newest PostgreSQL that Debian's packages put on this machine.
fn program(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").expect("`scripts/setup tests` installs PostgreSQL");
    let newest = versions.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok()).max().unwrap();
    Path::new("/usr/lib/postgresql").join(newest.to_string()).join("bin").join(name)
}

/// A server that listens on a socket in a folder of its own, and dies with its owner.
pub(crate) struct Server {
    process: Child,
    pub(crate) folder: tempfile::TempDir,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::with(None)
    }

    /// One that also listens on a port of this machine, with TLS and a certificate of its own making.
    pub(crate) fn with(port: Option<u16>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // PostgreSQL refuses to run as root.
        let user = rustix::process::geteuid().is_root().then(postgres_user);
        if let Some((user, group)) = user {
            std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
            chown(folder.path(), Some(user), Some(group)).unwrap();
        }
        let data = folder.path().join("data");
        let as_user = |program: PathBuf| {
            let mut command = Command::new(program);
            command.current_dir(folder.path()).env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
            if let Some((user, group)) = user {
                command.uid(user).gid(group);
            }
            command
        };
        let mut made = as_user(program("initdb"));
        made.arg("-D").arg(&data).args(["-U", "owner", "-A", "trust", "-E", "UTF8", "--no-sync"]);
        let made = made.output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut command = as_user(program("postgres"));
        if let Some(port) = port {
            let (key, certificate) = (data.join("server.key"), data.join("server.crt"));
            let mut made = as_user("openssl".into());
            made.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]);
            let made = made.arg("-keyout").arg(key).arg("-out").arg(certificate).output().unwrap();
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
            command.args(["-c", "ssl=on", "-p", &port.to_string(), "-h", "127.0.0.1"]);
        } else {
            command.args(["-c", "listen_addresses="]);
        }
        command.arg("-D").arg(&data).arg("-k").arg(folder.path());
        command.args(["-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "jit=off"]);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let signal = Some(rustix::process::Signal::QUIT);
        // SAFETY: the closure makes one system call and allocates nothing.
        unsafe {
            command.pre_exec(move || Ok(rustix::process::set_parent_process_death_signal(signal)?));
        }
        let process = command.spawn().unwrap();
        let mut server = Self { process, folder };
        let mut lines = BufReader::new(server.process.stderr.take().unwrap());
        let mut said = String::new();
        while lines.read_line(&mut said).unwrap() > 0 {
            if said.contains("ready to accept connections") {
                // Read on, or it would stop at a full pipe.
                std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
                return server;
            }
        }
        panic!("PostgreSQL ended: {said}");
    }

    pub(crate) fn url(&self) -> String {
        format!("host={} user=owner dbname=postgres", self.folder.path().display())
    }

    pub(crate) fn toolkit(&self, config: Config) -> Postgres {
        Postgres::new(Config { url: self.url(), ..config }).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGQUIT ends its children too, where SIGKILL would leave them.
        let id = rustix::process::Pid::from_child(&self.process);
        let _ = rustix::process::kill_process(id, rustix::process::Signal::QUIT);
        let _ = self.process.wait();
    }
}

/// User and group that the Debian package made.
fn postgres_user() -> (u32, u32) {
    static USER: OnceLock<(u32, u32)> = OnceLock::new();
    *USER.get_or_init(|| {
        let passwd = std::fs::read_to_string("/etc/passwd").unwrap();
        let line = passwd.lines().find(|line| line.starts_with("postgres:")).unwrap();
        let fields: Vec<&str> = line.split(':').collect();
        (fields[2].parse().unwrap(), fields[3].parse().unwrap())
    })
}
