//! A real service of FastAPI: its own document, fetched from it, and real calls.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use fimble_openapi::{Config, Credential, Filter, Secret, Source, load};
use fimble_toolkit::{ErrorKind, Risk, signature};
use serde_json::json;

use crate::servers::Running;
use crate::{call, call_of};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/documents/fixtures/app.py");

const PACKAGES: [&str; 3] = ["fastapi==0.165.0", "uvicorn==0.54.0", "python-multipart==0.0.34"];

/// The `bin` of a virtual environment with [`PACKAGES`], in a folder of the user's cache that later runs find again.
fn environment() -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap();
    let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(|| home.join(".cache"), PathBuf::from);
    let tests = cache.join("fimble/tests");
    fs::create_dir_all(&tests).unwrap();
    // Tests of one run are processes of their own.
    let lock = File::create(tests.join("openapi.lock")).unwrap();
    lock.lock().unwrap();
    let (folder, installed) = (tests.join("openapi"), tests.join("openapi/installed"));
    let wanted = PACKAGES.join("\n");
    if fs::read_to_string(&installed).ok().as_deref() != Some(&wanted) {
        let run = |command: &mut Command| assert!(command.status().unwrap().success(), "{command:?}");
        run(Command::new("/usr/bin/python3").args(["-m", "venv"]).arg(&folder));
        run(Command::new(folder.join("bin/pip")).args(["install", "--quiet"]).args(PACKAGES));
        fs::write(&installed, wanted).unwrap();
    }
    folder.join("bin")
}

fn start() -> (Running, Source) {
    let mut child = Command::new(environment().join("python")).arg(SCRIPT).stdout(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
    (Running(child), Source::Url(format!("{}/openapi.json", address.trim())))
}

#[tokio::test]
async fn a_service_is_used() {
    let (_running, source) = start();
    let filter = Filter { tags: vec!["pets".to_owned()], ..Filter::default() };
    let loaded = load(source, Config { filter, ..Config::default() }).await.unwrap();
    assert_eq!(loaded.problems, []);
    let toolkit = loaded.toolkit;
    let declaration = toolkit.declaration();
    let stubs: Vec<String> = declaration.operations.iter().map(signature).collect();
    let expected = [
        "list_pets_pets_get(kind: Literal[\"cat\", \"dog\"] = None, tag: list[str] = None, limit: int = 10) -> list[Stored]",
        "create_pet_pets_post(name: str, kind: Literal[\"cat\", \"dog\"], class_: str = None, owner: Owner = None, tags: list[str] = None) -> Stored",
        "get_pet_pets__pet_id__get(pet_id: int) -> Stored",
        "delete_pet_pets__pet_id__delete(pet_id: int) -> None",
    ];
    assert_eq!(stubs, expected);
    let risks: Vec<Risk> = declaration.operations.iter().map(|one| one.risk).collect();
    assert_eq!(
        (declaration.name.as_str(), risks),
        ("pet_shop_toolkit", vec![Risk::Read, Risk::Write, Risk::Read, Risk::Destructive])
    );

    let tom = json!({"name": "Tom", "kind": "cat", "class_": "A", "owner": {"name": "Ada"}, "tags": ["a", "b"]});
    let stored =
        json!({"name": "Tom", "kind": "cat", "owner": {"name": "Ada", "phone": null}, "tags": ["a", "b"], "id": 1});
    assert_eq!(call(&*toolkit, "create_pet_pets_post", tom).await, Ok(stored.clone()));
    let list = |arguments| call(&*toolkit, "list_pets_pets_get", arguments);
    assert_eq!(list(json!({"kind": "cat", "tag": ["a", "b"], "limit": 5})).await, Ok(json!([stored])));
    assert_eq!(list(json!({"tag": ["c"]})).await, Ok(json!([])));
    assert_eq!(call(&*toolkit, "get_pet_pets__pet_id__get", json!({"pet_id": 1})).await, Ok(stored));
    assert_eq!(call(&*toolkit, "delete_pet_pets__pet_id__delete", json!({"pet_id": 1})).await, Ok(json!(null)));

    let error = call(&*toolkit, "get_pet_pets__pet_id__get", json!({"pet_id": 1})).await.unwrap_err();
    let expected = "pet_shop_toolkit.get_pet_pets__pet_id__get(): the server answered 404 Not Found: There is no pet 1";
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::NotFound, expected));
    let error = list(json!({"limit": "many"})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidArgument);
    assert!(error.message.contains("query.limit: Input should be a valid integer"), "{error}");
}

#[tokio::test]
async fn forms_files_and_texts_arrive() {
    let (_running, source) = start();
    let toolkit = load(source, Config { name: Some("pets".to_owned()), ..Config::default() }).await.unwrap().toolkit;
    let declaration = toolkit.declaration();
    let photo = declaration.operation("set_photo_pets__pet_id__photo_put").unwrap();
    let expected = "set_photo_pets__pet_id__photo_put(pet_id: int, photo: str | File, caption: str = \"\") -> dict";
    assert_eq!(signature(photo), expected);
    let arguments = json!({"pet_id": 3, "photo": {"base64": "AAEC/w==", "filename": "a b.png"}, "caption": "naïve"});
    let answer = call(&*toolkit, &photo.name, arguments).await;
    assert_eq!(answer, Ok(json!({"pet": 3, "bytes": 4, "name": "a b.png", "caption": "naïve"})));
    let answer = call(&*toolkit, "login_login_post", json!({"username": "a&b", "password": "p q+r"})).await;
    assert_eq!(answer, Ok(json!({"user": "a&b", "length": 5})));
    let answer = call(&*toolkit, "echo_echo__text__get", json!({"text": "ä b?c", "x_request_id": "7"})).await;
    assert_eq!(answer, Ok(json!("ä b?c 7")));
}

#[tokio::test]
async fn every_way_to_prove_who_calls_is_taken() {
    let (_running, source) = start();
    let token = || Credential::Token(Secret::new("abcdef"));
    let basic = Credential::Basic { user: "ada".to_owned(), password: Secret::new("abcdef") };
    let credentials = BTreeMap::from([("HTTPBasic".to_owned(), basic)]);
    let config = Config { credentials, credential: Some(token()), ..Config::default() };
    let toolkit = load(source.clone(), config).await.unwrap().toolkit;
    for (scheme, expected) in [
        ("bearer", "fedcba"),
        ("oauth", "fedcba"),
        ("basic", "ada fedcba"),
        ("header", "fedcba"),
        ("query", "fedcba"),
        ("cookie", "fedcba"),
    ] {
        let operation = format!("who_{scheme}_who_{scheme}_get");
        assert_eq!(call(&*toolkit, &operation, json!({})).await, Ok(json!(expected)), "{scheme}");
    }
    let echoed = call(&*toolkit, "who_cookie_who_cookie_get", json!({"plain": true})).await;
    assert_eq!(echoed, Ok(json!("********")));
    let anonymous = load(source, Config::default()).await.unwrap().toolkit;
    let error = call(&*anonymous, "who_bearer_who_bearer_get", json!({})).await.unwrap_err();
    assert_eq!((error.kind, error.hint.is_some_and(|hint| hint.contains("`HTTPBearer`"))), (ErrorKind::Denied, true));
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_ends_at_the_server() {
    let (_running, source) = start();
    let toolkit = load(source, Config::default()).await.unwrap().toolkit;
    let waiting = || async { call(&*toolkit, "get_waiting_waiting_get", json!({})).await.unwrap() };
    let slow = {
        let toolkit = toolkit.clone();
        tokio::spawn(async move { toolkit.call(call_of("slow_slow_get", json!({}))).await })
    };
    while waiting().await["now"] != 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    slow.abort();
    assert!(slow.await.is_err_and(|error| error.is_cancelled()));
    while waiting().await["cancelled"] != 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
