//! The toolkit against a PostgreSQL of its own.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod server;

use std::time::{Duration, Instant};

use fimble_postgres::{Config, Postgres};
use fimble_toolkit::{Call, ErrorKind, SessionContext, ToolError, Toolkit};
use serde_json::{Value, json};

use server::Server;

async fn call(toolkit: &Postgres, operation: &str, arguments: Value) -> Result<Value, ToolError> {
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

async fn query(toolkit: &Postgres, sql: &str, params: Value) -> Result<Value, ToolError> {
    call(toolkit, "query", json!({"sql": sql, "params": params})).await
}

const SCHEMA: [&str; 6] = [
    "create table users (id serial primary key, name text not null, balance numeric(10,2) default 0, made timestamptz)",
    "create index users_name on users (name)",
    "create schema audit",
    "create table audit.log (at timestamptz, what jsonb, user_id int references users (id))",
    "create view rich as select * from users where balance > 100",
    "insert into users (name, balance, made) select 'user ' || n, n * 1.5, '2026-01-31 12:00:00+01' \
     from generate_series(1, 300) n",
];

async fn filled(server: &Server) -> Postgres {
    let toolkit = server.toolkit(Config { execute: true, ..Config::default() });
    for sql in SCHEMA {
        call(&toolkit, "execute", json!({"sql": sql})).await.unwrap();
    }
    toolkit
}

#[tokio::test]
async fn every_type_comes_back_as_what_it_is() {
    let server = Server::start();
    let toolkit = server.toolkit(Config::default());
    let sql = "select true as b, 7::smallint as s, 5000000000 as big, 0.5::real as f, 0.1::float8 as d, 'NaN'::float8 as nan, \
               12.50::numeric(6,2) as n, 12345678901234567890.5::numeric as long, 'x'::varchar as v, 'c'::char(3) as c, \
               '{\"a\": [1, null]}'::jsonb as j, '2026-01-31 12:00:00.25+02'::timestamptz as tz, \
               '2026-01-31 12:00'::timestamp as ts, '2026-01-31'::date as day, '12:30'::time as t, \
               '1 day 2 hours'::interval as i, '\\x00ff'::bytea as raw, \
               'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid as u, array[1,null,3] as a, \
               array[['a','b\"'],['c,','']] as aa, '10.0.0.0/8'::inet as net, int4range(1, 5) as r, row(1, 'x') as rec, \
               null::int as none, 'ä€' as text, 1 as dup, 2 as dup";
    let rows = query(&toolkit, sql, json!([])).await.unwrap();
    assert_eq!(
        rows,
        json!({"rows": [{
            "b": true, "s": 7, "big": 5_000_000_000_i64, "f": 0.5, "d": 0.1, "nan": "NaN", "n": 12.5,
            "long": "12345678901234567890.5", "v": "x", "c": "c  ", "j": {"a": [1, null]},
            "tz": "2026-01-31T10:00:00.25Z", "ts": "2026-01-31T12:00:00", "day": "2026-01-31", "t": "12:30:00",
            "i": "P1DT2H", "raw": "00ff", "u": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a": [1, null, 3],
            "aa": [["a", "b\""], ["c,", ""]], "net": "10.0.0.0/8", "r": "[1,5)", "rec": "(1,x)", "none": null,
            "text": "ä€", "dup": 1, "dup_2": 2
        }], "note": null})
    );
}

#[tokio::test]
async fn values_are_bound_and_never_read_as_sql() {
    let server = Server::start();
    let toolkit = filled(&server).await;
    let sql = "select $1::int + 1 as i, $2::text as t, $3::numeric as n, $4::jsonb as j, $5::boolean as b, $6::text as none, \
               $7::timestamptz as at";
    let evil = "'; drop table users; --";
    let params = json!([41, evil, 2.5, {"k": ["v"]}, true, null, "2026-01-31T12:00:00Z"]);
    assert_eq!(
        query(&toolkit, sql, params).await.unwrap()["rows"],
        json!([{"i": 42, "t": evil, "n": 2.5, "j": {"k": ["v"]}, "b": true, "none": null, "at": "2026-01-31T12:00:00Z"}])
    );
    let rows = query(&toolkit, "select name from users where id = any($1) order by id", json!([[3, 5]])).await.unwrap();
    assert_eq!(rows["rows"], json!([{"name": "user 3"}, {"name": "user 5"}]));
    let rows = query(&toolkit, "select $1::text[] as a", json!([["a,\"b\\", null, "{}"]])).await.unwrap();
    assert_eq!(rows["rows"], json!([{"a": ["a,\"b\\", null, "{}"]}]));
    let rows = query(&toolkit, "select id from users where name = $1;\n", json!(["user 7"])).await.unwrap();
    assert_eq!(rows["rows"], json!([{"id": 7}]));
    let error = query(&toolkit, "select $1", json!([])).await.unwrap_err();
    assert_eq!(error.message, "the statement has 1 parameters, but `params` has 0");
    let error = query(&toolkit, "select $1::int as i", json!(["many"])).await.unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::InvalidArgument, "invalid input syntax for type integer: \"many\"")
    );
}

#[tokio::test]
async fn a_read_cannot_write_however_it_tries() {
    let server = Server::start();
    let toolkit = filled(&server).await;
    call(&toolkit, "execute", json!({"sql": "create function sneak() returns int language plpgsql as $$ begin delete from users; return 1; end $$"}))
        .await
        .unwrap();
    let outside = server.folder.path().join("stolen");
    for sql in [
        "delete from users".to_owned(),
        "with gone as (delete from users returning *) select * from gone".to_owned(),
        "select sneak()".to_owned(),
        "select nextval('users_id_seq')".to_owned(),
        "select set_config('transaction_read_only', 'off', false), sneak()".to_owned(),
        "select set_config('default_transaction_read_only', 'off', false), sneak()".to_owned(),
        "select * from users for update".to_owned(),
        "select 1; delete from users".to_owned(),
        "select 1; commit; delete from users".to_owned(),
        "commit".to_owned(),
        "set transaction read write".to_owned(),
        "do $$ begin delete from users; end $$".to_owned(),
        "create table x (a int)".to_owned(),
        "select * into x from users".to_owned(),
        format!("copy users to '{}'", outside.display()),
        "copy users to program 'cat'".to_owned(),
        "truncate users".to_owned(),
        "call sneak()".to_owned(),
    ] {
        let error = query(&toolkit, &sql, json!([])).await.expect_err(&sql);
        assert!(
            matches!(error.kind, ErrorKind::Forbidden | ErrorKind::InvalidArgument | ErrorKind::Failed),
            "{sql}: {error:?}"
        );
    }
    for sql in ["delete from users", "insert into users (name) values ('x')", "(analyze) delete from users"] {
        let error = call(&toolkit, "explain", json!({"sql": sql, "analyze": true})).await.unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Forbidden | ErrorKind::InvalidArgument), "{sql}: {error:?}");
    }
    assert!(!outside.exists());
    let left =
        query(&toolkit, "select count(*) as n, (select last_value from users_id_seq) as last from users", json!([]))
            .await;
    assert_eq!(left.unwrap()["rows"], json!([{"n": 300, "last": 300}]));
    let error = query(&toolkit, "select sneak()", json!([])).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot execute DELETE in a read-only transaction (hint: this operation only reads)");
}

#[tokio::test]
async fn rows_bytes_and_time_are_bounded() {
    let server = Server::start();
    let toolkit = filled(&server).await;
    let some = call(&toolkit, "query", json!({"sql": "select id from users order by id", "limit": 250})).await.unwrap();
    assert_eq!((some["rows"].as_array().unwrap().len(), &some["rows"][249]), (250, &json!({"id": 250})));
    assert!(some["note"].as_str().unwrap().starts_with("only the first 250 rows, by `limit`; there are more"));
    let all = call(&toolkit, "query", json!({"sql": "select id from users", "limit": 300})).await.unwrap();
    assert_eq!((all["rows"].as_array().unwrap().len(), &all["note"]), (300, &Value::Null));
    let none = query(&toolkit, "select id, name from users where false", json!([])).await.unwrap();
    assert_eq!(none, json!({"rows": [], "note": "no rows; the columns are id, name"}));
    let error = call(&toolkit, "query", json!({"sql": "select 1", "limit": 5_001})).await.unwrap_err();
    assert_eq!(error.message, "`limit` is from 1 to 5000, not 5001");

    let hasty = server.toolkit(Config { statement_timeout_s: 0.3, ..Config::default() });
    let small = server.toolkit(Config { result_bytes: 1_000, ..Config::default() });
    let wide = query(&small, "select repeat('x', 300) as x from generate_series(1, 1000)", json!([])).await.unwrap();
    assert_eq!(wide["rows"].as_array().unwrap().len(), 3);
    assert!(wide["note"].as_str().unwrap().starts_with("only the first 3 rows, by the bytes of a result"));
    let error = query(&small, "select repeat('x', 3000) as x", json!([])).await.unwrap_err();
    assert_eq!(error.message, "the first row alone has more than 1000 bytes");
    let error = query(&hasty, "select pg_sleep(60)", json!([])).await.unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::Timeout, "canceling statement due to statement timeout")
    );
    let error = query(&toolkit, "select repeat('x', 100000000) as x", json!([])).await.unwrap_err();
    assert!(error.message == "PostgreSQL sent more than 64 MiB", "{error}");
}

#[tokio::test]
async fn tables_are_listed_and_described() {
    let server = Server::start();
    let toolkit = filled(&server).await;
    call(&toolkit, "execute", json!({"sql": "analyze"})).await.unwrap();
    let tables = call(&toolkit, "tables", json!({})).await.unwrap();
    let names: Vec<_> = tables["tables"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["name"].as_str().unwrap(), one["kind"].as_str().unwrap()))
        .collect();
    assert_eq!(names, [("users", "table"), ("log", "table"), ("rich", "view")]);
    assert_eq!(
        (&tables["tables"][0]["estimated_rows"], &tables["tables"][0]["schema"]),
        (&json!(300), &json!("public"))
    );
    assert!(tables["tables"][0]["size_bytes"].as_i64().unwrap() > 16_384);
    let audit = call(&toolkit, "tables", json!({"schema": "audit", "contains": "lo"})).await.unwrap();
    assert_eq!(audit["tables"][0]["name"], "log");
    let catalog =
        call(&toolkit, "tables", json!({"schema": "pg_catalog", "contains": "pg_stat_activity"})).await.unwrap();
    assert_eq!(catalog["tables"][0]["kind"], "view");

    let users = call(&toolkit, "describe", json!({"table": "users"})).await.unwrap();
    assert_eq!(
        users["columns"],
        json!([
            {"name": "id", "type": "integer", "nullable": false, "default": "nextval('users_id_seq'::regclass)"},
            {"name": "name", "type": "text", "nullable": false, "default": null},
            {"name": "balance", "type": "numeric(10,2)", "nullable": true, "default": "0"},
            {"name": "made", "type": "timestamp with time zone", "nullable": true, "default": null}
        ])
    );
    let definition = "CREATE INDEX users_name ON public.users USING btree (name)";
    assert_eq!(
        (&users["indexes"][0]["name"], &users["indexes"][1]["definition"]),
        (&json!("users_name"), &json!("CREATE UNIQUE INDEX users_pkey ON public.users USING btree (id)")).clone()
    );
    assert_eq!(users["indexes"][0]["definition"], definition);
    assert_eq!(users["constraints"], json!(["PRIMARY KEY (id)"]));
    let log = call(&toolkit, "describe", json!({"table": "audit.log"})).await.unwrap();
    assert_eq!(
        (&log["schema"], &log["constraints"]),
        (&json!("audit"), &json!(["FOREIGN KEY (user_id) REFERENCES users(id)"]))
    );
    for name in ["nothing", "no.such", "users_name"] {
        let error = call(&toolkit, "describe", json!({"table": name})).await.unwrap_err();
        assert_eq!((error.kind, error.message), (ErrorKind::NotFound, format!("there is no table `{name}`")));
    }
}

#[tokio::test]
async fn sessions_and_locks_are_seen_and_a_dropped_call_ends_at_the_server() {
    let server = Server::start();
    let toolkit = filled(&server).await;
    let sleeping = async |toolkit: &Postgres| {
        let active = call(toolkit, "activity", json!({"state": "active"})).await.unwrap();
        let sessions = active["sessions"].as_array().unwrap().clone();
        sessions.into_iter().find(|session| session["query"].as_str().unwrap().contains("fimble_rows"))
    };
    let begun = Instant::now();
    let session = {
        let slow = query(&toolkit, "select pg_sleep(25)", json!([]));
        tokio::pin!(slow);
        loop {
            tokio::select! {
                biased;
                result = &mut slow => panic!("it ended: {result:?}"),
                found = sleeping(&toolkit) => if let Some(found) = found { break found },
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "the statement is not seen");
        }
    };
    assert_eq!((&session["user"], &session["database"]), (&json!("owner"), &json!("postgres")));
    assert_eq!(
        (&session["application"], &session["state"], &session["blocked_by"]),
        (&json!("fimble"), &json!("active"), &json!([]))
    );
    assert!(session["query_s"].as_f64().is_some() && session["client"].is_null(), "{session}");
    while sleeping(&toolkit).await.is_some() {
        assert!(begun.elapsed() < Duration::from_secs(20), "the statement goes on though nobody waits for it");
    }

    // One waits for the lock of another.
    let other = server.toolkit(Config { execute: true, ..Config::default() });
    let holder = "do $$ begin lock table users in access exclusive mode; perform pg_sleep(25); end $$";
    let holding = call(&other, "execute", json!({"sql": holder}));
    let waiting = query(&toolkit, "select count(*) from users", json!([]));
    let begun = Instant::now();
    let seen = async {
        loop {
            let active = call(&toolkit, "activity", json!({})).await.unwrap();
            let sessions = active["sessions"].as_array().unwrap().clone();
            // Who blocks is asked a moment after what a session waits for: the two need not agree at once.
            let blocks = |session: &&Value| session["blocked_by"] != json!([]) && !session["wait"].is_null();
            if let Some(blocked) = sessions.iter().find(blocks).cloned()
                && let Some(by) = sessions.iter().find(|session| session["pid"] == blocked["blocked_by"][0])
            {
                assert!(by["query"].as_str().unwrap().starts_with("do $$"), "{by}");
                return blocked;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "nobody is blocked");
        }
    };
    // The holder has its lock before the other one asks.
    let locked = async {
        loop {
            let held = query(
                &toolkit,
                "select 1 from pg_locks where mode = 'AccessExclusiveLock' and relation = 'users'::regclass",
                json!([]),
            );
            if held.await.unwrap()["rows"] != json!([]) {
                return waiting.await;
            }
        }
    };
    let blocked = tokio::select! {
        result = holding => panic!("it ended: {result:?}"),
        result = locked => panic!("it ended: {result:?}"),
        blocked = seen => blocked,
    };
    assert_eq!(blocked["wait"], "Lock: relation");
}

#[tokio::test]
async fn plans_are_explained_and_statements_executed_only_if_configured() {
    let server = Server::start();
    let toolkit = filled(&server).await;
    call(&toolkit, "execute", json!({"sql": "analyze users"})).await.unwrap();
    let plan = json!({"sql": "select * from users where id = $1", "params": [7]});
    let plan = call(&toolkit, "explain", plan).await.unwrap();
    assert!(
        plan.as_str().unwrap().contains("on users  (cost=") && plan.as_str().unwrap().contains("(id = 7)"),
        "{plan}"
    );
    let plan = call(&toolkit, "explain", json!({"sql": "select count(*) from users", "analyze": true})).await.unwrap();
    assert!(
        plan.as_str().unwrap().contains("rows=300 loops=1") && plan.as_str().unwrap().contains("Buffers:"),
        "{plan}"
    );
    let plan = call(&toolkit, "explain", json!({"sql": "delete from users"})).await.unwrap();
    assert!(plan.as_str().unwrap().starts_with("Delete on users"), "{plan}");

    let update = json!({"sql": "update users set balance = $1 where id <= $2", "params": ["99.99", 3]});
    assert_eq!(call(&toolkit, "execute", update).await.unwrap(), json!({"rows_affected": 3}));
    let rows = query(&toolkit, "select distinct balance from users where id <= 3", json!([])).await.unwrap();
    assert_eq!(rows["rows"], json!([{"balance": 99.99}]));
    assert!(call(&toolkit, "execute", json!({"sql": "vacuum users"})).await.is_ok());
    let error = call(&toolkit, "execute", json!({"sql": "delete from users; drop table users"})).await.unwrap_err();
    assert_eq!(error.message, "cannot insert multiple commands into a prepared statement");

    let only_read = server.toolkit(Config::default());
    assert!(only_read.declaration().operation("execute").is_none());
    assert!(toolkit.declaration().operation("execute").is_some());
    let error = call(&only_read, "execute", json!({"sql": "delete from users"})).await.unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::Forbidden, "postgres_toolkit.execute is switched off: this database is only read")
    );
}

#[tokio::test]
async fn what_is_wrong_is_told_in_the_server_s_words_without_the_password() {
    let server = Server::start();
    let toolkit = filled(&server).await;
    for (sql, kind, message) in [
        ("select * from user_s", ErrorKind::NotFound, "relation \"user_s\" does not exist"),
        ("select nme from users", ErrorKind::NotFound, "column \"nme\" does not exist"),
        ("select 1 / 0", ErrorKind::InvalidArgument, "division by zero"),
        ("selekt 1", ErrorKind::InvalidArgument, "syntax error at or near \"selekt\""),
        ("", ErrorKind::InvalidArgument, "syntax error at end of input"),
    ] {
        let error = query(&toolkit, sql, json!([])).await.unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (kind, message), "{sql}");
    }
    let path = server.folder.path().display();
    for (url, start) in [
        (
            format!("host={path} user=nobody password=hunter2 dbname=postgres"),
            "refuses the connection: role \"nobody\" does not exist",
        ),
        (
            format!("host={path} user=owner password=hunter2 dbname=none"),
            "refuses the connection: database \"none\" does not exist",
        ),
        ("postgres://owner:hunter2@127.0.0.1:1/x".to_owned(), "PostgreSQL at 127.0.0.1:1 cannot be reached: "),
    ] {
        let config = Config { url, ..Config::default() };
        let toolkit = Postgres::new(config.clone()).unwrap();
        assert_eq!(config.secrets(), ["hunter2"]);
        assert!(!format!("{config:?} {toolkit:?}").contains("hunter2"));
        let error = query(&toolkit, "select 1", json!([])).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unavailable);
        assert!(error.message.contains(start) && !error.to_string().contains("hunter2"), "{error}");
    }
    for config in [
        Config { url: "mysql://hunter2".into(), ..Config::default() },
        Config { url: "user=hunter2".into(), ..Config::default() },
        Config { url: server.url(), statement_timeout_s: 0.0, ..Config::default() },
    ] {
        let error = Postgres::new(config).unwrap_err();
        assert!(error.hint.is_some() && !error.message.contains("hunter2"), "{error}");
    }
}

#[tokio::test]
async fn tls_is_spoken_and_a_certificate_that_nobody_vouches_for_is_refused() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let _server = Server::with(Some(port));
    let at = |mode: &str| {
        let url = format!("postgres://owner@localhost:{port}/postgres?sslmode={mode}");
        Postgres::new(Config { url, ..Config::default() }).unwrap()
    };
    let sql = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";
    for mode in ["disable", "prefer"] {
        assert_eq!(query(&at(mode), sql, json!([])).await.unwrap()["rows"], json!([{"ssl": false}]), "{mode}");
    }
    let error = query(&at("require"), sql, json!([])).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(error.message.contains("certificate"), "{error}");
}
