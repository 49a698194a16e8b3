//! The toolkit against servers of this machine: one that keeps what it was asked, and nginx.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fimble_http::{Config, Http, SecretUse};
use fimble_toolkit::{Call, ErrorKind, Risk, SessionContext, ToolError, Toolkit};
use serde_json::{Value, json};
use wiremock::matchers::{any, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

fn http(config: Config) -> Http {
    Http::new(config, BTreeMap::new()).unwrap()
}

async fn call(http: &Http, operation: &str, arguments: Value) -> Result<Value, ToolError> {
    http.call(Call {
        operation: operation.into(),
        arguments: arguments.as_object().cloned().unwrap(),
        key: "key-of-the-call".into(),
        context: SessionContext::default(),
        cancellation: tokio_util::sync::CancellationToken::new(),
    })
    .await
}

/// A server that answers everything with 200 and JSON.
async fn server() -> MockServer {
    let server = MockServer::start().await;
    Mock::given(any())
        .respond_with(ResponseTemplate::new(200).set_body_json(json!({"fine": true})))
        .mount(&server)
        .await;
    server
}

/// What the server was asked last, as method, path with query, headers and body.
async fn asked(server: &MockServer) -> (String, String, BTreeMap<String, String>, String) {
    let requests = server.received_requests().await.unwrap();
    let last = requests.last().unwrap();
    let headers = last.headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    let url = last.url.query().map_or(last.url.path().to_owned(), |query| format!("{}?{query}", last.url.path()));
    (last.method.to_string(), url, headers.collect(), String::from_utf8(last.body.clone()).unwrap())
}

#[test]
fn the_declaration_says_what_can_happen() {
    let declaration = http(Config::default()).declaration();
    let risks: Vec<_> =
        declaration.operations.iter().map(|one| (one.name.as_str(), one.risk, one.idempotent)).collect();
    assert_eq!(
        risks,
        [
            ("get", Risk::Read, true),
            ("head", Risk::Read, true),
            ("post", Risk::Write, false),
            ("put", Risk::Write, true),
            ("patch", Risk::Write, false),
            ("delete", Risk::Destructive, true)
        ]
    );
}

#[tokio::test]
async fn requests_say_what_they_were_told_to() {
    let (http, server) = (http(Config::default()), server().await);
    let url = |path: &str| format!("{}{path}", server.uri());
    let params = json!({"q": "a b&c", "n": 3, "all": true, "tag": ["x", "y"], "none": null});
    let arguments = json!({"url": url("/find?first=1"), "params": params, "headers": {"X-Trace": "t"}});
    let response = call(&http, "get", arguments).await.unwrap();
    assert_eq!(
        response,
        json!({"url": url("/find?first=1&all=true&n=3&q=a+b%26c&tag=x&tag=y"), "status_code": 200, "ok": true,
               "headers": response["headers"], "body": {"fine": true}, "size_bytes": 13, "cut": false})
    );
    assert_eq!(response["headers"]["content-type"], "application/json");
    let (verb, path, headers, _) = asked(&server).await;
    assert_eq!((verb.as_str(), path.as_str()), ("GET", "/find?first=1&all=true&n=3&q=a+b%26c&tag=x&tag=y"));
    assert_eq!(headers["x-trace"], "t");
    assert!(headers["user-agent"].starts_with("fimble/") && !headers.contains_key("idempotency-key"), "{headers:?}");

    let key = Some("key-of-the-call");
    for (operation, arguments, kind, body, idempotency) in [
        ("post", json!({"json": {"a": [1, null]}}), "application/json", r#"{"a":[1,null]}"#, key),
        ("post", json!({"data": "größe"}), "text/plain; charset=utf-8", "größe", key),
        ("put", json!({"data": "<a/>", "headers": {"Content-Type": "text/xml"}}), "text/xml", "<a/>", None),
        ("patch", json!({"json": 1}), "application/json", "1", key),
        ("delete", json!({}), "", "", None),
    ] {
        let mut arguments = arguments;
        arguments["url"] = json!(url("/thing"));
        assert_eq!(call(&http, operation, arguments).await.unwrap()["ok"], true);
        let (verb, _, headers, sent) = asked(&server).await;
        assert_eq!((verb.to_lowercase().as_str(), sent.as_str()), (operation, body));
        assert_eq!(headers.get("content-type").map_or("", String::as_str), kind);
        assert_eq!(headers.get("idempotency-key").map(String::as_str), idempotency);
    }
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_before_it_is_sent() {
    let (http, server) = (http(Config { request_bytes: 10, ..Config::default() }), server().await);
    let url = server.uri();
    for (operation, arguments, message) in [
        ("get", json!({"url": "example.com"}), "`url` is no URL: relative URL without a base"),
        ("get", json!({"url": "ftp://a/"}), "`ftp` is no scheme of HTTP"),
        ("get", json!({"url": "http://me:secret@a/"}), "a URL cannot have a user and a password in it"),
        ("get", json!({"url": url, "params": {"a": {"b": 1}}}), "`params` has a value that no query can have, at `a`"),
        (
            "get",
            json!({"url": url, "params": {"a": "x".repeat(17_000)}}),
            "the URL with its query is longer than 16384",
        ),
        ("get", json!({"url": url, "headers": {"Host": "a"}}), "the header `host` cannot be set"),
        ("get", json!({"url": url, "headers": {"a b": "c"}}), "`a b` is no name of a header"),
        ("get", json!({"url": url, "headers": {"A": "b\r\nEvil: c"}}), "the header `a` has a line end"),
        ("get", json!({"url": url, "headers": {"A": "${TOKEN}"}}), "there is no secret `TOKEN`"),
        ("get", json!({"url": url, "timeout_s": 0}), "`timeout_s` is above 0 and at most 300, not 0"),
        ("post", json!({"url": url, "json": 1, "data": "a"}), "a request carries `json` or `data`, not both"),
        ("post", json!({"url": url, "data": "12345678901"}), "the body has 11 bytes, more than the 10 allowed"),
        (
            "get",
            json!({"url": "http://169.254.169.254/latest/"}),
            "`169.254.169.254` is a link-local or metadata address",
        ),
    ] {
        let error = call(&http, operation, arguments).await.unwrap_err();
        assert!(error.message.starts_with(message), "{error}");
        assert!(!error.to_string().contains("secret@"), "{error}");
    }
    assert!(server.received_requests().await.unwrap().is_empty());
}

#[tokio::test]
async fn redirects_are_followed_a_few_times_and_each_is_looked_at() {
    let server = MockServer::start().await;
    let to = |code: u16, place: &str| ResponseTemplate::new(code).insert_header("location", place);
    for (from, answer) in [
        ("/start", to(302, "/middle?x=1")),
        ("/middle", to(308, "end")),
        ("/end", ResponseTemplate::new(200).set_body_string("here")),
        ("/loop", to(301, "/loop")),
        ("/metadata", to(302, "http://169.254.169.254/latest/meta-data/")),
        ("/mapped", to(307, "http://[::ffff:a9fe:a9fe]/")),
        ("/file", to(302, "file:///etc/passwd")),
        ("/user", to(302, "http://a:b@127.0.0.1/")),
        ("/nowhere", ResponseTemplate::new(302)),
    ] {
        Mock::given(path(from)).respond_with(answer).mount(&server).await;
    }
    let http = http(Config { redirects: 3, ..Config::default() });
    let get = async |path: &str| call(&http, "get", json!({"url": format!("{}{path}", server.uri())})).await;
    let response = get("/start").await.unwrap();
    assert_eq!((&response["body"], &response["url"]), (&json!("here"), &json!(format!("{}/end", server.uri()))));
    let before = server.received_requests().await.unwrap().len();
    let error = get("/loop").await.unwrap_err();
    assert!(error.message.starts_with("there are more than 3 redirects, the last to `http://127.0.0.1:"), "{error}");
    assert_eq!(server.received_requests().await.unwrap().len() - before, 4);
    for path in ["/metadata", "/mapped"] {
        assert_eq!(get(path).await.unwrap_err().kind, ErrorKind::Denied, "{path}");
    }
    assert_eq!(get("/file").await.unwrap_err().message, "`file` is no scheme of HTTP");
    assert_eq!(get("/user").await.unwrap_err().message, "a URL cannot have a user and a password in it");
    assert_eq!(get("/nowhere").await.unwrap()["status_code"], 302);

    let post = call(&http, "post", json!({"url": format!("{}/start", server.uri()), "data": "x"})).await.unwrap();
    assert_eq!((&post["status_code"], &post["headers"]["location"]), (&json!(302), &json!("/middle?x=1")));

    // A list of hosts holds for redirects too.
    let only = format!("127.0.0.1:{}", server.address().port());
    let listed = self::http(Config { hosts: vec![only], ..Config::default() });
    Mock::given(path("/away")).respond_with(to(302, "http://localhost:1/")).mount(&server).await;
    let error = call(&listed, "get", json!({"url": format!("{}/away", server.uri())})).await.unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Denied, "requests to `localhost` are not allowed"));
}

#[tokio::test]
async fn a_secret_reaches_its_own_host_only_and_is_masked_in_the_answer() {
    let (own, other) = (MockServer::start().await, server().await);
    let echo = |request: &wiremock::Request| {
        let said = request.headers.get("authorization").map_or("", |value| value.to_str().unwrap()).to_owned();
        ResponseTemplate::new(200).set_body_json(json!({"you said": said})).insert_header("x-echo", said)
    };
    Mock::given(path("/echo")).respond_with(echo).mount(&own).await;
    let away = ResponseTemplate::new(302).insert_header("location", other.uri());
    Mock::given(path("/away")).respond_with(away).mount(&own).await;
    let hosts = vec![format!("127.0.0.1:{}", own.address().port())];
    let secrets = [("API".to_owned(), SecretUse { env: None, hosts })].into();
    let http =
        Http::new(Config { secrets, ..Config::default() }, [("API".to_owned(), "s3cret".to_owned())].into()).unwrap();
    assert!(!format!("{http:?}").contains("s3cret"));
    let headers = json!({"Authorization": "Bearer ${API}", "X-Key": "${API}", "X-Plain": "plain"});
    let get = async |url: String| call(&http, "get", json!({"url": url, "headers": headers})).await;

    let response = get(format!("{}/echo", own.uri())).await.unwrap();
    let (_, _, sent, _) = asked(&own).await;
    assert_eq!((sent["authorization"].as_str(), sent["x-key"].as_str()), ("Bearer s3cret", "s3cret"));
    assert_eq!(response["body"], json!({"you said": "Bearer ***"}));
    assert_eq!(response["headers"]["x-echo"], "Bearer ***");

    assert_eq!(get(other.uri()).await.unwrap_err().message, "the secret `API` is not for `127.0.0.1`");
    assert!(other.received_requests().await.unwrap().is_empty());

    // The redirect leads elsewhere: the request goes there, without what was secret.
    assert_eq!(get(format!("{}/away", own.uri())).await.unwrap()["ok"], true);
    let (_, _, sent, _) = asked(&other).await;
    assert!(!sent.contains_key("authorization") && !sent.contains_key("x-key"), "{sent:?}");
    assert_eq!(sent["x-plain"], "plain");
    let typed =
        json!({"url": format!("{}/away", own.uri()), "headers": {"Authorization": "Basic eDp5", "Cookie": "a=b"}});
    call(&http, "get", typed).await.unwrap();
    let (_, _, sent, _) = asked(&other).await;
    assert!(!sent.contains_key("authorization") && !sent.contains_key("cookie"), "{sent:?}");
}

#[tokio::test]
async fn a_silent_a_missing_and_an_odd_server_are_errors() {
    let http = http(Config::default());
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let error = call(&http, "get", json!({"url": url, "timeout_s": 0.2})).await.unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Timeout, "the request did not end within 0.2 s"));

    let gone = { TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap() };
    let error = call(&http, "get", json!({"url": format!("http://{gone}/a?token=x")})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(error.message.starts_with(&format!("`http://{gone}/a` cannot be reached: ")), "{error}");

    let odd = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", odd.local_addr().unwrap());
    let peer = std::thread::spawn(move || {
        let (mut stream, _) = odd.accept().unwrap();
        stream.write_all(b"SSH-2.0-OpenSSH\r\n\r\n").unwrap();
        let _ = stream.read(&mut [0; 1024]);
    });
    let error = call(&http, "get", json!({"url": url})).await.unwrap_err();
    assert!(error.message.contains("did not answer as HTTP servers do"), "{error}");
    peer.join().unwrap();
}

/// An nginx in a folder of its own.
struct Nginx {
    process: Child,
    port: u16,
    /// With TLS and a certificate of its own making.
    tls_port: u16,
    folder: tempfile::TempDir,
}

impl Nginx {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ports = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [port, tls_port] = ports.map(|listener| listener.local_addr().unwrap().port());
        let mut made = Command::new("openssl");
        made.args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-keyout",
            "key",
        ]);
        let made = made.args(["-out", "certificate"]).current_dir(folder.path()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let own = folder.path().display();
        let settings = format!(
            "daemon off; master_process off; pid {own}/pid; error_log stderr;\nevents {{}}\nhttp {{\n\
             access_log off; client_body_temp_path {own}/a; proxy_temp_path {own}/b; fastcgi_temp_path {own}/c;\n\
             uwsgi_temp_path {own}/d; scgi_temp_path {own}/e; default_type text/plain;\n\
             types {{ application/json json; image/png png; }}\n\
             server {{ listen 127.0.0.1:{tls_port} ssl; ssl_certificate {own}/certificate; ssl_certificate_key {own}/key; }}\n\
             server {{ listen 127.0.0.1:{port}; root {own}/www; location /teapot {{ return 418 'short and stout'; }} }} }}\n"
        );
        std::fs::create_dir_all(folder.path().join("www/folder")).unwrap();
        std::fs::write(folder.path().join("nginx.conf"), settings).unwrap();
        let mut command = Command::new("/usr/sbin/nginx");
        command.arg("-p").arg(folder.path()).arg("-c").arg(folder.path().join("nginx.conf")).args(["-e", "stderr"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
        let signal = Some(rustix::process::Signal::KILL);
        // SAFETY: the closure makes one system call and allocates nothing.
        unsafe {
            command.pre_exec(move || Ok(rustix::process::set_parent_process_death_signal(signal)?));
        }
        let process = command.spawn().expect("`scripts/setup tests` installs nginx");
        let mut nginx = Self { process, port, tls_port, folder };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(nginx.process.try_wait().unwrap().is_none(), "nginx ended");
            assert!(begun.elapsed() < Duration::from_secs(30), "nginx does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        nginx
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.folder.path().join("www").join(name), bytes).unwrap();
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn a_web_server_s_files_come_back_bounded() {
    let nginx = Nginx::start();
    nginx.write("a.json", b"{\"b\": [1, 2.5, null]}");
    nginx.write("long.txt", "ä".repeat(2_000_000).as_bytes());
    nginx.write("long.json", &[b"[", "1,".repeat(1_000_000).as_bytes(), b"1]"].concat());
    nginx.write("dot.png", b"\x89PNG\r\n\x1a\n\0\0");
    nginx.write("folder/index.html", b"index");
    let http = http(Config { body_bytes: 1_001, ..Config::default() });
    let ask = async |operation: &str, path: &str| {
        call(&http, operation, json!({"url": format!("http://localhost:{}{path}", nginx.port)})).await.unwrap()
    };
    assert_eq!(ask("get", "/a.json").await["body"], json!({"b": [1, 2.5, null]}));
    let long = ask("get", "/long.txt").await;
    assert_eq!((&long["body"], &long["cut"]), (&json!("ä".repeat(500)), &json!(true)));
    assert_eq!(long["size_bytes"], 1_001);
    let long = ask("get", "/long.json").await;
    assert!(long["cut"] == true && long["body"].as_str().unwrap().starts_with("[1,1,"), "{long}");
    let image = ask("get", "/dot.png").await;
    assert_eq!((&image["body"], &image["size_bytes"], &image["cut"]), (&Value::Null, &json!(10), &json!(false)));
    let head = ask("head", "/long.txt").await;
    assert_eq!((&head["body"], &head["headers"]["content-length"]), (&Value::Null, &json!("4000000")));
    let missing = ask("get", "/none").await;
    assert_eq!((&missing["ok"], &missing["status_code"]), (&json!(false), &json!(404)));
    assert!(missing["body"].as_str().unwrap().contains("404 Not Found"));
    assert_eq!(ask("get", "/teapot").await["body"], "short and stout");
    let url = format!("https://localhost:{}/", nginx.tls_port);
    let error = call(&http, "get", json!({"url": url})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(error.message.contains("certificate"), "{error}");
    let folder = ask("get", "/folder").await;
    assert_eq!((&folder["body"], folder["url"].as_str().unwrap().ends_with("/folder/")), (&json!("index"), true));
}

#[tokio::test]
async fn a_method_is_what_its_name_says() {
    let server = MockServer::start().await;
    Mock::given(method("DELETE")).respond_with(ResponseTemplate::new(204)).mount(&server).await;
    let http = http(Config::default());
    let response = call(&http, "delete", json!({"url": server.uri()})).await.unwrap();
    assert_eq!((&response["status_code"], &response["body"]), (&json!(204), &Value::Null));
    assert_eq!(call(&http, "get", json!({"url": server.uri()})).await.unwrap()["status_code"], 404);
}
