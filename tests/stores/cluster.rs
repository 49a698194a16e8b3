//! A Redis Cluster of three primaries: the contract, with keys that lie on different nodes.

use std::sync::Arc;

use ::redis::from_redis_value;
use fimble::store::Store;
use fimble::store::redis::{Address, Redis, Settings};
use fimble::store::upkeep::Upkeep;

use crate::contract::Place;
use crate::examples::session;
use crate::server::{Node, open};

struct Cluster {
    nodes: Vec<Node>,
}

impl Cluster {
    fn new() -> Self {
        Self { nodes: Node::cluster() }
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
    async fn open(&self) -> Arc<dyn Upkeep> {
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
