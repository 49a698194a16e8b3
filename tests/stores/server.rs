//! Redis servers that belong to a test: in a folder of their own, without a port unless others must find them, dead when the
//! test is.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use ::redis::Client;
use fimble::store::redis::{Address, Redis, Settings};
use nix::sys::prctl;
use nix::sys::signal::Signal;

/// A `redis-server` that listens on a socket in a folder of its own.
pub struct Server {
    pub folder: tempfile::TempDir,
    process: Child,
    program: PathBuf,
    arguments: Vec<String>,
}

impl Server {
    /// One that keeps nothing on the disk.
    pub fn new() -> Self {
        Self::with(&["--appendonly", "no"])
    }

    /// One with more arguments.
    pub fn with(arguments: &[&str]) -> Self {
        Self::of("redis-server".into(), arguments)
    }

    /// One of the oldest version that sessions can be kept in.
    pub fn oldest() -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/oldest-redis");
        let printed = Command::new(script).stderr(Stdio::inherit()).output().unwrap();
        let program = String::from_utf8(printed.stdout).unwrap();
        Self::of(program.trim().into(), &["--appendonly", "no"])
    }

    fn of(program: PathBuf, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let process = start(&program, &folder, &arguments);
        Self { folder, process, program, arguments }
    }

    /// Ends it without a chance to save anything.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts it again in the same folder.
    pub fn restart(&mut self) {
        self.process = start(&self.program, &self.folder, &self.arguments);
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("redis.sock")
    }

    pub fn url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    pub async fn store(&self) -> Redis {
        open(&self.url()).await
    }

    /// Runs one command, given as its words, and answers as if it were text.
    pub fn run(&self, words: &[&str]) -> Vec<String> {
        let mut connection = Client::open(self.url()).unwrap().get_connection().unwrap();
        let mut command = ::redis::cmd(words[0]);
        command.arg(&words[1..]);
        let answer: ::redis::Value = command.query(&mut connection).unwrap();
        ::redis::from_redis_value(answer.clone())
            .or_else(|_| ::redis::from_redis_value(answer).map(|one| vec![one]))
            .unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub async fn open(url: &str) -> Redis {
    Redis::open(&Address::parse(url).unwrap(), Settings::default()).await.unwrap()
}

fn start(program: &Path, folder: &tempfile::TempDir, arguments: &[String]) -> Child {
    spawn(Command::new(program).args(["--port", "0", "--unixsocket", "redis.sock"]).args(arguments), folder)
}

/// Starts a server in a folder and waits until it takes connections.
pub fn spawn(command: &mut Command, folder: &tempfile::TempDir) -> Child {
    spawn_until(command.args(["--save", "", "--dir", "."]), folder, "eady to accept connections")
}

/// Starts a process that dies with this one, and waits until it has said something.
pub fn spawn_until(command: &mut Command, folder: &tempfile::TempDir, saying: &str) -> Child {
    command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::piped());
    // SAFETY: `prctl` is a system call and allocates nothing.
    unsafe { command.pre_exec(|| prctl::set_pdeathsig(Signal::SIGKILL).map_err(Into::into)) };
    let mut process = command.spawn().expect("`redis-server` is installed by `scripts/setup tests`");
    let mut said = String::new();
    for line in BufReader::new(process.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if line.contains(saying) {
            return process;
        }
        said.push_str(&line);
        said.push('\n');
    }
    panic!("the server has ended: {:?}\n{said}", process.wait());
}

/// A server behind a port of this machine.
pub struct Node {
    pub process: Child,
    pub port: u16,
    _folder: tempfile::TempDir,
}

impl Node {
    /// One with more arguments.
    pub fn with(arguments: &[&str]) -> Self {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--appendonly", "no", "--port", &port.to_string()]).args(arguments);
        Self { process: spawn(&mut command, &folder), port, _folder: folder }
    }

    /// A sentinel of one primary, named `main`, which has a new one as soon as it was silent for 300 ms.
    pub fn sentinel_of(primary: &Self) -> Self {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let settings = format!(
            "bind 127.0.0.1\nport {port}\nsentinel monitor main 127.0.0.1 {} 1\nsentinel down-after-milliseconds main 300\n\
             sentinel failover-timeout main 5000\n",
            primary.port
        );
        std::fs::write(folder.path().join("sentinel.conf"), settings).unwrap();
        let mut command = Command::new("redis-server");
        command.args(["sentinel.conf", "--sentinel"]);
        Self { process: spawn_until(&mut command, &folder, "+monitor master"), port, _folder: folder }
    }

    /// A Redis Cluster of three primaries.
    pub fn cluster() -> Vec<Self> {
        const NODES: usize = 3;
        let node = || {
            let port = free_port().to_string();
            Self::with(&["--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-port", &port])
        };
        let nodes: Vec<Self> = (0..NODES).map(|_| node()).collect();
        let hosts = nodes.iter().map(|node| format!("127.0.0.1:{}", node.port));
        let mut create = Command::new("redis-cli");
        let created = create.args(["--cluster", "create"]).args(hosts).arg("--cluster-yes").output().unwrap();
        assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stdout));
        let is_ready = |node: &Self| {
            let info = node.text(&["CLUSTER", "INFO"]);
            info.contains("cluster_state:ok") && info.contains(&format!("cluster_known_nodes:{NODES}"))
        };
        wait_until("the nodes know each other", || nodes.iter().all(is_ready));
        nodes
    }

    pub fn run(&self, words: &[&str]) -> ::redis::Value {
        let mut connection = Client::open(("127.0.0.1", self.port)).unwrap().get_connection().unwrap();
        ::redis::cmd(words[0]).arg(&words[1..]).query(&mut connection).unwrap()
    }

    pub fn text(&self, words: &[&str]) -> String {
        ::redis::from_redis_value(self.run(words)).unwrap()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A port that nobody listened on a moment ago.
pub fn free_port() -> u16 {
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

/// Asks until the answer is yes, for 30 s at most.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "not yet so: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
