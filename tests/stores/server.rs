//! Redis servers that belong to a test: in a folder of their own, without a port, dead when the test is.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use ::redis::Client;
use fimble::store::redis::{Address, Redis, Settings};
use nix::sys::prctl;
use nix::sys::signal::Signal;

/// A `redis-server` that listens on a socket in a folder of its own.
pub struct Server {
    pub folder: tempfile::TempDir,
    process: Child,
    arguments: Vec<String>,
}

impl Server {
    /// One that keeps nothing on the disk.
    pub fn new() -> Self {
        Self::with(&["--appendonly", "no"])
    }

    /// One with more arguments.
    pub fn with(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let process = start(&folder, &arguments);
        Self { folder, process, arguments }
    }

    /// Ends it without a chance to save anything.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts it again in the same folder.
    pub fn restart(&mut self) {
        self.process = start(&self.folder, &self.arguments);
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

fn start(folder: &tempfile::TempDir, arguments: &[String]) -> Child {
    spawn(Command::new("redis-server").args(["--port", "0", "--unixsocket", "redis.sock"]).args(arguments), folder)
}

/// Starts a server in a folder and waits until it takes connections.
pub fn spawn(command: &mut Command, folder: &tempfile::TempDir) -> Child {
    command.args(["--save", "", "--dir", "."]).current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::piped());
    // SAFETY: `prctl` is a system call and allocates nothing.
    unsafe { command.pre_exec(|| prctl::set_pdeathsig(Signal::SIGKILL).map_err(Into::into)) };
    let mut process = command.spawn().expect("`redis-server` is installed by `scripts/setup tests`");
    let mut said = String::new();
    for line in BufReader::new(process.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if line.contains("eady to accept connections") || line.contains("The server is now ready") {
            return process;
        }
        said.push_str(&line);
        said.push('\n');
    }
    panic!("the server has ended: {:?}\n{said}", process.wait());
}
