//! The toolkit against a Redis of its own.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use fimble_redis::{Config, Redis};
use fimble_toolkit::{Call, ErrorKind, Risk, SessionContext, ToolError, Toolkit};
use serde_json::{Value, json};

/// A `redis-server` that listens on a socket in a folder of its own, and dies with its owner.
struct Server {
    process: Child,
    folder: tempfile::TempDir,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--unixsocket", "redis.sock", "--save", "", "--appendonly", "no"]).args(arguments);
        command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::piped());
        let signal = Some(rustix::process::Signal::KILL);
        // SAFETY: the closure makes one system call and allocates nothing.
        unsafe {
            command.pre_exec(move || Ok(rustix::process::set_parent_process_death_signal(signal)?));
        }
        let process = command.spawn().expect("`scripts/setup tests` installs redis-server");
        let mut server = Self { process, folder };
        let mut lines = BufReader::new(server.process.stdout.take().unwrap());
        let mut said = String::new();
        while lines.read_line(&mut said).unwrap() > 0 {
            if said.contains("eady to accept connections") {
                // Read on, or it would stop at a full pipe.
                std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
                return server;
            }
        }
        panic!("redis-server ended: {said}");
    }

    fn url(&self, query: &str) -> String {
        format!("redis+unix://{}/redis.sock{query}", self.folder.path().display())
    }

    fn toolkit(&self, config: Config) -> Redis {
        Redis::new(Config { url: self.url(""), ..config }).unwrap()
    }

    /// Runs one command, given as its words.
    fn run(&self, words: &[&str]) {
        let mut connection = redis::Client::open(self.url("")).unwrap().get_connection().unwrap();
        redis::cmd(words[0]).arg(&words[1..]).exec(&mut connection).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn call(toolkit: &Redis, operation: &str, arguments: Value) -> Result<Value, ToolError> {
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

#[tokio::test]
async fn a_value_of_any_type_is_read() {
    let server = Server::start(&[]);
    let toolkit = server.toolkit(Config::default());
    for words in [
        &["SET", "text", "größe"][..],
        &["RPUSH", "list", "a", "b", "c"],
        &["HSET", "hash", "name", "Ada", "age", "36"],
        &["SADD", "set", "one"],
        &["ZADD", "zset", "1.5", "low", "+inf", "high"],
        &["XADD", "stream", "1-1", "k", "v"],
        &["XADD", "stream", "2-1", "k", "w"],
        &["EXPIRE", "hash", "1000"],
    ] {
        server.run(words);
    }
    for (key, value, kind, length) in [
        ("text", json!("größe"), "string", 7),
        ("list", json!(["a", "b", "c"]), "list", 3),
        ("hash", json!({"name": "Ada", "age": "36"}), "hash", 2),
        ("set", json!(["one"]), "set", 1),
        ("zset", json!({"low": 1.5, "high": "inf"}), "zset", 2),
        ("stream", json!([{"id": "2-1", "fields": {"k": "w"}}, {"id": "1-1", "fields": {"k": "v"}}]), "stream", 2),
        ("nothing", Value::Null, "none", 0),
    ] {
        let entry = call(&toolkit, "get", json!({"key": key})).await.unwrap();
        assert_eq!(
            (&entry["value"], &entry["type"], &entry["length"]),
            (&value, &json!(kind), &json!(length)),
            "{key}"
        );
        assert_eq!((entry["ttl_s"].is_null(), &entry["note"]), (key != "hash", &Value::Null), "{key}");
    }
    let hash = call(&toolkit, "describe", json!({"key": "hash"})).await.unwrap();
    assert!((0.0..=1000.0).contains(&hash["ttl_s"].as_f64().unwrap()) && hash["memory_bytes"].as_u64().unwrap() > 20);
    assert_eq!((&hash["type"], &hash["length"], &hash["encoding"]), (&json!("hash"), &json!(2), &json!("listpack")));
    let nothing = call(&toolkit, "describe", json!({"key": "nothing"})).await.unwrap();
    assert_eq!(nothing, json!({"type": "none", "ttl_s": null, "length": 0, "encoding": null, "memory_bytes": null}));
}

#[tokio::test]
async fn what_is_large_is_cut_or_refused_and_said() {
    let server = Server::start(&[]);
    let toolkit = server.toolkit(Config { value_bytes: 1_000, ..Config::default() });
    server.run(&["SET", "long", &"x".repeat(5_000)]);
    let long = call(&toolkit, "get", json!({"key": "long"})).await.unwrap();
    assert_eq!(
        (&long["value"], &long["note"]),
        (&json!("x".repeat(1_000)), &json!("only the first 1000 of 5000 bytes"))
    );
    server.run(&["EVAL", "for i = 1, 3000 do redis.call('SADD', 'set', i) redis.call('HSET', 'hash', i, i) redis.call('RPUSH', 'list', i) redis.call('ZADD', 'zset', i, i) redis.call('XADD', 'stream', '*', 'i', i) end", "0"]);
    for (key, note) in [
        ("set", "only 300 of 3000 elements; raise `limit`"),
        ("hash", "only 300 of 3000 elements; raise `limit`"),
        ("list", "only 300 of 3000 elements; raise `limit`"),
        ("zset", "only 300 of 3000 elements; raise `limit`"),
        ("stream", "only the newest 300 of 3000 entries, the newest first"),
    ] {
        let entry = call(&toolkit, "get", json!({"key": key, "limit": 300})).await.unwrap();
        let count = entry["value"].as_array().map(Vec::len).or(entry["value"].as_object().map(serde_json::Map::len));
        assert_eq!((count, &entry["note"]), (Some(300), &json!(note)), "{key}");
    }
    server.run(&["RPUSH", "wide", &"x".repeat(100_000), &"x".repeat(100_000)]);
    let error = call(&toolkit, "get", json!({"key": "wide"})).await.unwrap_err();
    assert!(error.message.starts_with("the elements of `wide` take about 1"), "{error}");
    let error = call(&toolkit, "get", json!({"key": "wide", "limit": 0})).await.unwrap_err();
    assert_eq!(error.message, "`limit` is from 1 to 5000, not 0");
}

#[tokio::test]
async fn keys_are_found_by_pattern_and_type_up_to_a_limit() {
    let server = Server::start(&[]);
    let toolkit = server.toolkit(Config::default());
    server.run(&[
        "EVAL",
        "for i = 1, 5000 do redis.call('SET', 'user:' .. i, i) end redis.call('RPUSH', 'queue', 1)",
        "0",
    ]);
    let keys = call(&toolkit, "keys", json!({"pattern": "user:12?"})).await.unwrap();
    let expected: Vec<String> = (120..130).map(|number| format!("user:{number}")).collect();
    assert_eq!(keys, json!({"keys": expected, "note": null}));
    let keys = call(&toolkit, "keys", json!({"type": "list"})).await.unwrap();
    assert_eq!(keys["keys"], json!(["queue"]));
    let keys = call(&toolkit, "keys", json!({"limit": 7})).await.unwrap();
    assert_eq!(keys["keys"].as_array().unwrap().len(), 7);
    assert_eq!(keys["note"], "only 7 keys; there are more: use a narrower pattern");
    let all = call(&toolkit, "keys", json!({"limit": 5000, "pattern": "user:*"})).await.unwrap();
    assert_eq!((all["keys"].as_array().unwrap().len(), &all["note"]), (5000, &Value::Null));
    let few = server.toolkit(Config { scanned_keys: 2_000, ..Config::default() });
    let keys = call(&few, "keys", json!({"pattern": "nobody"})).await.unwrap();
    assert_eq!(
        keys,
        json!({"keys": [], "note": "stopped after about 2000 keys of the server were looked at; there may be more"})
    );
}

#[tokio::test]
async fn the_server_says_how_it_is() {
    let server =
        Server::start(&["--slowlog-log-slower-than", "0", "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]);
    let toolkit = server.toolkit(Config::default());
    server.run(&["SET", "some key", "value"]);
    let info = call(&toolkit, "info", json!({})).await.unwrap();
    assert!(info["sections"]["server"]["redis_version"].as_str().unwrap().contains('.'), "{info}");
    assert_eq!(info["sections"]["keyspace"]["db0"]["keys"], 1);
    let part = call(&toolkit, "info", json!({"section": "replication"})).await.unwrap();
    assert_eq!(
        (&part["sections"]["replication"]["role"], part["sections"].as_object().unwrap().len()),
        (&json!("master"), 1)
    );
    let error = call(&toolkit, "info", json!({"section": "weather"})).await.unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::NotFound, "Redis has no section `weather`"));

    let memory = call(&toolkit, "memory", json!({})).await.unwrap();
    assert_eq!((&memory["limit_bytes"], &memory["policy"]), (&json!(100 * 1024 * 1024), &json!("allkeys-lru")));
    let number = |name: &str| memory[name].as_u64().unwrap();
    assert!(
        number("used_bytes") > 100_000 && number("peak_bytes") >= number("used_bytes") / 2 && number("rss_bytes") > 0
    );
    assert!(memory["fragmentation_ratio"].as_f64().is_some(), "{memory}");

    let slow = call(&toolkit, "slowlog", json!({"limit": 100})).await.unwrap();
    let set = slow["commands"].as_array().unwrap().iter().find(|one| one["command"] == "SET some key value").unwrap();
    assert!(
        set["duration_ms"].as_f64().unwrap() >= 0.0 && set["time"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok()
    );
    let few = call(&toolkit, "slowlog", json!({"limit": 1})).await.unwrap();
    assert_eq!(few["commands"].as_array().unwrap().len(), 1);
    assert!(few["note"].as_str().unwrap().starts_with("only the newest 1 of "), "{few}");

    let mut other = redis::Client::open(server.url("?db=3")).unwrap().get_connection().unwrap();
    redis::cmd("CLIENT").arg("SETNAME").arg("worker").exec(&mut other).unwrap();
    let clients = call(&toolkit, "clients", json!({})).await.unwrap();
    let worker = clients["clients"].as_array().unwrap().iter().find(|client| client["name"] == "worker").unwrap();
    assert_eq!(
        (&worker["db"], &worker["command"], &worker["user"]),
        (&json!(3), &json!("client|setname"), &json!("default"))
    );
    assert!(
        worker["address"].as_str().unwrap().ends_with("redis.sock:0") && worker["memory_bytes"].as_u64().unwrap() > 0
    );
    let few = call(&toolkit, "clients", json!({"limit": 1})).await.unwrap();
    assert_eq!(few["note"], "only 1 of 2 clients; raise `limit`");
}

#[tokio::test]
async fn keys_are_set_expired_and_deleted() {
    let server = Server::start(&[]);
    let toolkit = server.toolkit(Config::default());
    let risks: Vec<_> =
        toolkit.declaration().operations.iter().map(|one| (one.name.clone(), one.risk, one.idempotent)).collect();
    for expected in [
        ("get", Risk::Read, true),
        ("set", Risk::Write, true),
        ("expire", Risk::Write, false),
        ("delete", Risk::Destructive, true),
    ] {
        assert!(risks.contains(&(expected.0.to_owned(), expected.1, expected.2)), "{expected:?}");
    }
    let changed = |count: u64| json!({"changed": count});
    let ttl = async || call(&toolkit, "get", json!({"key": "a"})).await.unwrap()["ttl_s"].as_f64();
    assert_eq!(call(&toolkit, "set", json!({"key": "a", "value": "1\n2 3"})).await.unwrap(), changed(1));
    let entry = call(&toolkit, "get", json!({"key": "a"})).await.unwrap();
    assert_eq!((&entry["value"], &entry["ttl_s"]), (&json!("1\n2 3"), &Value::Null));
    call(&toolkit, "set", json!({"key": "a", "value": "2", "ttl_s": 500})).await.unwrap();
    assert!(ttl().await.is_some_and(|seconds| seconds <= 500.0));
    assert_eq!(call(&toolkit, "expire", json!({"key": "a"})).await.unwrap(), changed(1));
    assert_eq!(ttl().await, None);
    assert_eq!(call(&toolkit, "expire", json!({"key": "a", "ttl_s": 900})).await.unwrap(), changed(1));
    assert!(ttl().await.is_some_and(|seconds| seconds > 500.0));
    assert_eq!(call(&toolkit, "expire", json!({"key": "none", "ttl_s": 9})).await.unwrap(), changed(0));
    assert_eq!(call(&toolkit, "delete", json!({"keys": ["a", "none"]})).await.unwrap(), changed(1));
    assert_eq!(call(&toolkit, "get", json!({"key": "a"})).await.unwrap()["type"], "none");
    for (operation, arguments, message) in [
        ("expire", json!({"key": "a", "ttl_s": 0}), "`ttl_s` is at least 1"),
        ("delete", json!({"keys": []}), "`keys` has 1 to 1000 keys, not 0"),
    ] {
        assert_eq!(call(&toolkit, operation, arguments).await.unwrap_err().message, message);
    }
}

#[tokio::test]
async fn what_is_wrong_is_told_in_the_server_s_words_without_the_password() {
    let server = Server::start(&["--requirepass", "hunter2"]);
    let error = call(&server.toolkit(Config::default()), "info", json!({})).await.unwrap_err();
    assert!(error.message.contains("NOAUTH Authentication required."), "{error}");
    let config = Config { url: server.url("?pass=hunter3"), ..Config::default() };
    let toolkit = Redis::new(config.clone()).unwrap();
    assert_eq!(config.secrets(), ["hunter3"]);
    assert!(!format!("{config:?} {toolkit:?}").contains("hunter3"));
    let error = call(&toolkit, "info", json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(error.message.contains("refuses the connection") && !error.to_string().contains("hunter3"), "{error}");
    let toolkit = Redis::new(Config { url: server.url("?pass=hunter2"), ..Config::default() }).unwrap();
    assert!(call(&toolkit, "info", json!({})).await.is_ok());

    let toolkit = Redis::new(Config { url: "redis://:hunter4@127.0.0.1:1/".into(), ..Config::default() }).unwrap();
    let error = call(&toolkit, "info", json!({})).await.unwrap_err();
    assert!(error.message.starts_with("Redis at 127.0.0.1:1 cannot be reached: "), "{error}");
    assert!(!format!("{error} {toolkit:?}").contains("hunter4"), "{error}");

    // A server that takes the connection and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}/", silent.local_addr().unwrap());
    let toolkit = Redis::new(Config { url, timeout_s: 0.3, ..Config::default() }).unwrap();
    let error = call(&toolkit, "info", json!({})).await.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Unavailable | ErrorKind::Timeout), "{error:?}");

    for config in [
        Config { url: "hunter5@host".into(), ..Config::default() },
        Config { url: "redis://a".into(), timeout_s: 0.0, ..Config::default() },
    ] {
        let error = Redis::new(config).unwrap_err();
        assert!(error.hint.is_some() && !error.message.contains("hunter5"), "{error}");
    }
}

#[tokio::test]
async fn a_change_can_be_looked_at_before_it_is_made_and_does_what_was_said() {
    let server = Server::start(&[]);
    let toolkit = server.toolkit(Config::default());
    server.run(&["SET", "old", "one"]);
    server.run(&["SET", "brief", "x", "EX", "1000"]);
    for (operation, arguments, effect) in [
        ("set", json!({"key": "old", "value": "two"}), json!({"before": "one", "after": "two", "ttl_s": null})),
        ("set", json!({"key": "new", "value": "v", "ttl_s": 9}), json!({"before": null, "after": "v", "ttl_s": 9})),
        ("expire", json!({"key": "none"}), json!({"is_there": false, "ttl_s": {"before": null, "after": null}})),
        ("expire", json!({"key": "old", "ttl_s": 5}), json!({"is_there": true, "ttl_s": {"before": null, "after": 5}})),
        ("delete", json!({"keys": ["old", "old", "brief", "none"]}), json!({"deletes": 2})),
        ("delete", json!({"keys": ["none"]}), json!({"deletes": 0})),
    ] {
        let asked = Call {
            operation: operation.into(),
            arguments: arguments.as_object().cloned().unwrap(),
            key: String::new(),
            context: SessionContext::default(),
            cancellation: tokio_util::sync::CancellationToken::new(),
        };
        let told = toolkit.preview(&asked).await.unwrap().unwrap();
        assert_eq!(told.effect, effect, "{operation}");
        // Only now it is made.
        assert_eq!(call(&toolkit, operation, arguments).await.ok(), told.result, "{operation}");
    }
    let wrong = Call {
        operation: "set".into(),
        arguments: json!({"key": "k", "value": "v", "ttl_s": 0}).as_object().cloned().unwrap(),
        key: String::new(),
        context: SessionContext::default(),
        cancellation: tokio_util::sync::CancellationToken::new(),
    };
    assert_eq!(toolkit.preview(&wrong).await.unwrap_err().kind, ErrorKind::InvalidArgument);
    assert_eq!(toolkit.preview(&Call { operation: "get".into(), ..wrong }).await, Ok(None));
}
