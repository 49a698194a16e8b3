//! A Redis Cluster of three primaries: the contract, with keys that lie on different nodes.

use std::net::TcpListener;
use std::process::{Child, Command, Output};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::redis::{Client, Value, cmd, from_redis_value};
use fimble::store::Store;
use fimble::store::redis::{Address, Redis, Settings};

use crate::contract::Place;
use crate::examples::session;
use crate::server::{open, spawn};

const NODES: usize = 3;

/// How long the nodes may take to find each other.
const PATIENCE: Duration = Duration::from_secs(30);

struct Cluster {
    nodes: Vec<Node>,
}

struct Node {
    _folder: tempfile::TempDir,
    process: Child,
    port: u16,
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A port that nobody listened on a moment ago.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Node {
    fn new() -> Self {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--cluster-port", &free_port().to_string()]);
        command.args(["--appendonly", "no", "--cluster-enabled", "yes", "--cluster-node-timeout", "2000"]);
        Self { process: spawn(&mut command, &folder), _folder: folder, port }
    }

    fn run(&self, words: &[&str]) -> Value {
        let mut connection = Client::open(("127.0.0.1", self.port)).unwrap().get_connection().unwrap();
        cmd(words[0]).arg(&words[1..]).query(&mut connection).unwrap()
    }

    fn is_ready(&self) -> bool {
        let info: String = from_redis_value(self.run(&["CLUSTER", "INFO"])).unwrap();
        info.contains("cluster_state:ok") && info.contains(&format!("cluster_known_nodes:{NODES}"))
    }
}

impl Cluster {
    fn new() -> Self {
        let cluster = Self { nodes: (0..NODES).map(|_| Node::new()).collect() };
        let hosts = cluster.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port));
        let mut create = Command::new("redis-cli");
        let Output { status, stdout, .. } =
            create.args(["--cluster", "create"]).args(hosts).arg("--cluster-yes").output().unwrap();
        assert!(status.success(), "{}", String::from_utf8_lossy(&stdout));
        let begun = Instant::now();
        while !cluster.nodes.iter().all(Node::is_ready) {
            assert!(begun.elapsed() < PATIENCE, "the nodes do not find each other");
            std::thread::sleep(Duration::from_millis(5));
        }
        cluster
    }

    /// Names two of the nodes; the third is found.
    fn url(&self) -> String {
        format!("redis+cluster://127.0.0.1:{},127.0.0.1:{}", self.nodes[0].port, self.nodes[1].port)
    }

    fn keys(&self, node: &Node, pattern: &str) -> Vec<String> {
        from_redis_value(node.run(&["KEYS", pattern])).unwrap()
    }

    fn empty(&self) {
        self.nodes.iter().for_each(|node| drop(node.run(&["FLUSHALL"])));
    }
}

impl Place for Cluster {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(open(&self.url()).await)
    }

    async fn contents_stored(&self) -> u64 {
        let counts = self.nodes.iter().flat_map(|node| {
            let keys = self.keys(node, "fimble:*:contents");
            keys.into_iter().map(|key| from_redis_value::<u64>(node.run(&["HLEN", &key])).unwrap())
        });
        counts.sum()
    }

    fn shares_contents(&self) -> bool {
        false
    }
}

macro_rules! check_each {
    ($cluster:expr; $($name:ident)*) => {
        $(eprintln!(stringify!($name));
        crate::contract::$name(&$cluster).await;
        $cluster.empty();)*
    };
}

/// One test for all, because making a cluster takes two seconds.
#[tokio::test]
async fn the_contract_holds_on_a_cluster() {
    let cluster = Cluster::new();
    crate::contract_names!(check_each!(cluster));

    let store = open(&cluster.url()).await;
    for number in 0..30 {
        store.create_session(&session(&format!("s{number}"))).await.unwrap();
    }
    let on: Vec<usize> = cluster.nodes.iter().map(|node| cluster.keys(node, "fimble:{s*}").len()).collect();
    assert!(on.iter().all(|count| *count > 0) && on.iter().sum::<usize>() == 30, "{on:?}");
    assert_eq!(store.sessions("local", "ada", 100).await.unwrap().len(), 30);
    assert!(store.health().await.unwrap().to_string().contains("answers in"));

    // A single node says what it is.
    let node = Address::parse(&format!("redis://127.0.0.1:{}", cluster.nodes[0].port)).unwrap();
    let other = Address::parse(&format!("redis://127.0.0.1:{}", cluster.nodes[1].port)).unwrap();
    let refused = [
        Redis::open(&node, Settings::default()).await.err().map(|error| error.hint().unwrap_or_default().to_owned()),
        Redis::open(&other, Settings::default()).await.err().map(|error| error.hint().unwrap_or_default().to_owned()),
    ];
    assert!(refused.iter().flatten().any(|hint| hint.contains("redis+cluster://")), "{refused:?}");
}
