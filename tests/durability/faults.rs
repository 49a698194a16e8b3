//! What else may happen to a turn than the end of its process: clocks, servers, connections, damaged rows.

use std::path::PathBuf;
use std::process::Stdio;

use fimble::crash::VARIABLE;

use super::proxy::Proxy;
use super::server::{self, Node, Server};
use super::{World, ended, in_time};

/// The library that gives a process another clock.
fn other_clock() -> PathBuf {
    let library = std::fs::read_dir("/usr/lib").unwrap().filter_map(|folder| {
        Some(folder.ok()?.path().join("faketime/libfaketimeMT.so.1")).filter(|library| library.exists())
    });
    library.into_iter().next().expect("libfaketime is installed: make setup")
}

/// The clock of the host is set back by a day while a program runs, the host dies, and goes on two days later, or two days
/// before.
async fn survives_other_clocks(redis: impl Fn() -> Option<Server>) {
    for later in ["+2d", "-2d"] {
        tokio::task::yield_now().await;
        let world = World::new(redis()).await;
        let clock = world.path("clock");
        let run = |arguments: &[&str], point: Option<&str>| {
            let mut command = world.fimble(arguments);
            command.env("LD_PRELOAD", other_clock()).env("FAKETIME_TIMESTAMP_FILE", &clock);
            command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
            in_time(command.envs(point.map(|point| (VARIABLE, point))))
        };
        std::fs::write(&clock, "+0").unwrap();
        std::fs::write(world.path("toolkits/clock.toml"), CLOCK.replace("CLOCK", clock.to_str().unwrap())).unwrap();
        let program = "
first = await clock_toolkit.turn_back()
for number in [1, 2]:
    await count_toolkit.add(file='FOLDER/acts', text=str(number))
await system_toolkit.sleep(0.5)
colour = await system_toolkit.ask_user('Which colour?')
await count_toolkit.add(file='FOLDER/acts', text=colour)
";
        std::fs::write(world.path("program.py"), program.replace("FOLDER", world.folder.path().to_str().unwrap()))
            .unwrap();
        let killed = run(&["run", "program.py"], Some("call done#3"));
        assert_eq!(killed.status.code(), None, "{killed:?}");
        assert_eq!(std::fs::read_to_string(&clock).unwrap().trim(), "-1d");
        let (id, before) = (world.session().unwrap().0, world.acts());
        std::fs::write(&clock, later).unwrap();
        world.forget_lease();
        let waits = run(&["sessions", "resume", &id], None);
        assert_eq!(waits.status.code(), Some(4), "{waits:?}");
        std::fs::write(&clock, "-5d").unwrap();
        let answered = run(&["sessions", "answer", &id, "red"], None);
        assert_eq!(answered.status.code(), Some(0), "{answered:?}");
        assert_eq!((before.len(), world.acts()), (2, ["1", "2", "red"].map(str::to_owned).to_vec()), "{later}");
        let events = world.events(&id);
        let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "{later}");
        std::fs::write(world.path("program.py"), "print(colour)\n").unwrap();
        let latest = run(&["run", "program.py", "--session", &id], None);
        assert_eq!(latest.status.code(), Some(0), "the session goes on: {latest:?}");
    }
}

const CLOCK: &str = r#"
name = "clock_toolkit"
description = "Sets the clock of its host."

[[operation]]
name = "turn_back"
description = "By a day."
command = ["sh", "-c", "printf %s -1d > CLOCK"]
risk = "write"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_round_survives_a_clock_that_is_set_with_a_file() {
    survives_other_clocks(|| None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_round_survives_a_clock_that_is_set_with_redis() {
    survives_other_clocks(|| Some(Server::new())).await;
}

const WAIT: &str = r#"
name = "wait_toolkit"
description = "Waits."

[[operation]]
name = "for_file"
description = "Waits for a file."
command = ["sh", "-c", "touch FOLDER/begun; while [ ! -e FOLDER/gate ]; do sleep 0.02; done"]
risk = "write"
idempotent = false
timeout_s = 60
"#;

/// The server is killed while a toolkit acts. Whether it is back before patience ends or after, nothing is done twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_round_survives_a_server_that_is_killed_while_a_toolkit_acts() {
    for comes_back_in_time in [true, false] {
        tokio::task::yield_now().await;
        let redis = Server::with(&["--appendonly", "yes", "--appendfsync", "always"]);
        let mut world = World::new(Some(redis)).await;
        let folder = world.folder.path().to_str().unwrap().to_owned();
        let program = "
await count_toolkit.add(file='FOLDER/acts', text='1')
await wait_toolkit.for_file()
await count_toolkit.add(file='FOLDER/acts', text='2')
print('end')
";
        std::fs::write(world.path("toolkits/wait.toml"), WAIT.replace("FOLDER", &folder)).unwrap();
        std::fs::write(world.path("program.py"), program.replace("FOLDER", &folder)).unwrap();
        let mut command = world.fimble(&["run", "program.py"]);
        let run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        server::wait_until("the toolkit acts", || world.path("begun").exists());
        world.redis.as_mut().unwrap().kill();
        std::fs::write(world.path("gate"), "").unwrap();
        if comes_back_in_time {
            world.redis.as_mut().unwrap().restart();
            let ran = ended(run);
            assert_eq!((ran.status.code(), ran.stdout.as_slice()), (Some(0), &b"end\n"[..]), "{ran:?}");
        } else {
            assert_eq!(ended(run).status.code(), Some(5), "the store is not reached");
            world.redis.as_mut().unwrap().restart();
            world.forget_lease();
            let (id, line) = world.session().unwrap();
            assert!(line.contains("(at work, or cut off)"), "{line}");
            let asks = world.run(&["sessions", "resume", &id]);
            assert_eq!(asks.status.code(), Some(4), "nobody knows whether the call acted: {asks:?}");
            let ended = world.run(&["sessions", "answer", &id, "again"]);
            assert!(ended.stdout.ends_with(b"end\n"), "{ended:?}");
        }
        assert_eq!(world.acts(), ["1", "2"], "in time: {comes_back_in_time}");
    }
}

/// The whole turn with a proxy between the host and its server that cuts the connection within a request, again and again.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_survives_connections_that_are_cut_within_requests() {
    for bytes in [1, 700, 1_500, 3_000, 6_000, 12_000] {
        let mut world = World::new(Some(Server::new())).await;
        let redis = world.redis.as_ref().unwrap();
        let proxy = Proxy::start(redis.folder.path().join("proxy.sock"), redis.socket());
        world.store = proxy.url();
        let cut = std::sync::Arc::clone(&proxy.cut);
        let cutting = tokio::spawn(async move {
            loop {
                cut.after(bytes);
                tokio::time::sleep(std::time::Duration::from_millis(150)).await;
            }
        });
        let asked = tokio::task::block_in_place(|| world.run(&["chat", "--ask", "Paint"]));
        assert_eq!(asked.status.code(), Some(4), "{asked:?}");
        let (id, _) = tokio::task::block_in_place(|| world.session()).unwrap();
        let answered = tokio::task::block_in_place(|| world.run(&["sessions", "answer", &id, "red"]));
        assert_eq!(answered.status.code(), Some(0), "{answered:?}");
        cutting.abort();
        assert!(proxy.cut.happened());
        world.store = world.redis.as_ref().unwrap().url();
        tokio::task::block_in_place(|| world.check(&id, &format!("cut after {bytes} bytes")));
    }
}

/// The primary dies while a toolkit acts, and a sentinel promotes its replica, which had every acknowledged write.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_survives_the_promotion_of_a_replica() {
    let mut primary = Node::with(&["--repl-diskless-sync-delay", "0"]);
    let replica = Node::with(&["--replicaof", "127.0.0.1", &primary.port.to_string()]);
    let follows = || replica.text(&["INFO", "replication"]).contains("master_link_status:up");
    server::wait_until("the replica follows", follows);
    let sentinel = Node::sentinel_of(&primary);
    server::wait_until("the sentinel knows the replica", || {
        let info = sentinel.text(&["INFO", "sentinel"]);
        info.contains("status=ok") && info.contains("slaves=1")
    });
    let mut world = World::new(None).await;
    world.store = format!("redis+sentinel://127.0.0.1:{}/main", sentinel.port);
    let folder = world.folder.path().to_str().unwrap().to_owned();
    let asked = in_time(&mut world.fimble(&["-c", "store_replicas=1", "chat", "--ask", "Paint"]));
    assert_eq!(asked.status.code(), Some(4), "{asked:?}");
    let (id, _) = world.session().unwrap();
    // The next call waits for a gate; the server dies meanwhile.
    std::fs::write(
        world.path("toolkits/count.toml"),
        super::MANIFEST.replace("echo ", &WAITS.replace("FOLDER", &folder)),
    )
    .unwrap();
    let mut answer = world.fimble(&["sessions", "answer", &id, "red"]);
    let answering = answer.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    server::wait_until("the toolkit acts", || world.path("begun").exists());
    primary.process.kill().unwrap();
    std::fs::write(world.path("gate"), "").unwrap();
    let answered = ended(answering);
    assert_eq!(answered.status.code(), Some(0), "{answered:?}");
    assert!(replica.text(&["INFO", "replication"]).contains("role:master"));
    world.check(&id, "promoted");
}

const WAITS: &str = "touch FOLDER/begun; while [ ! -e FOLDER/gate ]; do sleep 0.02; done; echo ";

/// A row of the journal that cannot be read is said, and nothing is done on a guess.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_call_is_said_and_nothing_acts() {
    for redis in [None, Some(Server::new())] {
        let world = World::new(redis).await;
        let killed = in_time(world.fimble(&["chat", "--ask", "Paint"]).env(VARIABLE, "call done#1"));
        assert_eq!(killed.status.code(), None, "{killed:?}");
        let (id, _) = world.session().unwrap();
        world.forget_lease();
        let before = world.acts();
        assert_eq!(before.len(), 1);
        match &world.redis {
            None => {
                let raw = rusqlite::Connection::open(world.path("store.db")).unwrap();
                assert_eq!(raw.execute("UPDATE calls SET record = x'00ff00ff'", ()).unwrap(), 1);
            }
            Some(server) => {
                server.run(&["HSET", &format!("fimble:{{{id}}}:calls"), "r:2/1", "no call"]);
            }
        }
        for command in [&["sessions", "resume", &id][..], &["chat", "--resume", &id, "--ask", "Paint"]] {
            let refused = world.run(command);
            let told = String::from_utf8(refused.stderr).unwrap();
            assert_eq!(refused.status.code(), Some(5), "{told}");
            assert!(told.contains("a stored call cannot be read") && told.contains("hint: "), "{told}");
            assert_eq!(world.acts(), before);
        }
    }
}
