//! `fimble doctor`: every hop to what others run or write.

use super::*;

/// One line a hop, without what differs from machine to machine, and each FAIL with its hint.
fn hops(home: &Home, arguments: &[&str]) -> (Option<i32>, Vec<String>) {
    let output = home.output(&[&["doctor"], arguments].concat(), "");
    let text = stdout(&output);
    let mut told: Vec<String> = Vec::new();
    for line in text.lines() {
        match (line.trim_start().strip_prefix("hint: "), told.last_mut()) {
            (Some(_), Some(last)) if last.starts_with("FAIL") => last.push_str(" (hint)"),
            _ => told.push(line.to_owned()),
        }
    }
    let is_hop = |line: &String| ["document ", "agent ", "manifest"].iter().any(|kind| line[6..].starts_with(kind));
    (output.status.code(), told.into_iter().filter(|line| line.len() > 6 && is_hop(line)).collect())
}

const MANIFEST: &str = "description = \"Says it.\"\n[[operation]]\nname = \"word\"\ndescription = \"A word.\"\n\
                        command = [\"printf\", \"well\"]\nrisk = \"read\"\n";

#[test]
fn every_hop_to_manifests_documents_and_agents_is_told() {
    let home = Home::new();
    let kits = home.path().join("kits");
    std::fs::create_dir(&kits).unwrap();
    let write = |file: &str, text: &str| std::fs::write(kits.join(file), text).unwrap();
    let document = r#"{"openapi": "3.1.0", "info": {"title": "Pets"}, "servers": [{"url": "http://127.0.0.1:1"}],
                       "paths": {"/x": {"get": {"operationId": "x"}}}}"#;
    write("pets.json", document);
    write("broken.json", "{\"openapi\": ");
    write("a_good.toml", &format!("name = \"good_toolkit\"\n{MANIFEST}"));
    write("a_typo.toml", &format!("name = \"typo_toolkit\"\nnmae = 1\n{MANIFEST}"));
    write("a_twice.toml", &format!("name = \"good_toolkit\"\n{MANIFEST}"));
    write("a_wrong.toml", "[openapi]\ndocment = \"x\"\n");
    write("d_good.toml", "[openapi]\ndocument = \"pets.json\"\n");
    write("d_gone.toml", "[openapi]\ndocument = \"gone.json\"\n");
    write("d_broken.toml", "[openapi]\ndocument = \"broken.json\"\n");
    write("d_empty.toml", "[openapi]\ndocument = \"pets.json\"\ninclude = [\"nothing*\"]\n");
    write("d_keyed.toml", "[openapi]\ndocument = \"pets.json\"\ntoken = \"NO_SUCH_KEY\"\n");
    write("d_git.toml", "[openapi]\ndocument = \"pets.json\"\nname = \"git\"\n");
    let (code, told) = hops(&home, &["--toolkits", "kits"]);
    assert_eq!(code, Some(5));
    let pets = "kits/pets.json";
    let good = |name: &str, found: &str| {
        ["fetch", "read", "filter", "name"].map(|hop| match hop {
            "fetch" => format!("ok    document {name} fetch: {pets}"),
            "read" => format!("ok    document {name} read: all of it"),
            "filter" => format!("ok    document {name} filter: 1 operations are used"),
            _ => format!("ok    document {name} name: {found}"),
        })
    };
    let none = |name: &str| format!("ok    document {name} credential: none is named");
    let begins: Vec<String> = [
        vec![
            "ok    manifest kits/a_good.toml file: ".to_owned(),
            "ok    manifest kits/a_good.toml read: 1 operations".to_owned(),
            "ok    manifest kits/a_good.toml name: good_toolkit".to_owned(),
            "ok    manifest kits/a_twice.toml file: ".to_owned(),
            "ok    manifest kits/a_twice.toml read: 1 operations".to_owned(),
            "FAIL  manifest kits/a_twice.toml name: there is already a toolkit `good_toolkit` (hint)".to_owned(),
            "ok    manifest kits/a_typo.toml file: ".to_owned(),
            "FAIL  manifest kits/a_typo.toml read: kits/a_typo.toml:2: ".to_owned(),
            "FAIL  manifest kits/a_wrong.toml read: kits/a_wrong.toml: unknown field `docment`".to_owned(),
            "ok    document d_broken fetch: kits/broken.json".to_owned(),
            "FAIL  document d_broken read: kits/broken.json is no OpenAPI document: ".to_owned(),
            none("d_broken"),
            format!("ok    document d_empty fetch: {pets}"),
            "ok    document d_empty read: it is an OpenAPI document".to_owned(),
            "FAIL  document d_empty filter: kits/pets.json has no operation that can be used (hint)".to_owned(),
            none("d_empty"),
        ],
        vec![
            format!("ok    document git fetch: {pets}"),
            "ok    document git read: all of it".to_owned(),
            "ok    document git filter: 1 operations are used".to_owned(),
            "FAIL  document git name: there is already a toolkit `git_toolkit` (hint)".to_owned(),
            none("git"),
            "FAIL  document d_gone fetch: cannot read kits/gone.json: ".to_owned(),
            none("d_gone"),
        ],
        good("d_good", "d_good_toolkit").to_vec(),
        vec![none("d_good")],
        good("d_keyed", "d_keyed_toolkit").to_vec(),
        vec![
            "FAIL  document d_keyed credential: there is no secret and no environment variable `NO_SUCH_KEY` (hint)"
                .to_owned(),
        ],
    ]
    .concat();
    assert_eq!(told.len(), begins.len(), "{told:#?}");
    for (line, begin) in told.iter().zip(&begins) {
        assert!(line.starts_with(begin.as_str()), "{line}\n{begin}\n{told:#?}");
        assert!(line.starts_with("ok") || line.ends_with(" (hint)"), "{line}");
    }
}

#[test]
fn every_hop_to_agents_is_told() {
    use wiremock::matchers::path;
    use wiremock::{Mock, MockServer, ResponseTemplate};

    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(MockServer::start());
    let url = server.uri();
    let interface = |version: &str| {
        serde_json::json!({"name": "Cook", "description": "It cooks.", "supportedInterfaces": [
            {"url": "/rpc", "protocolBinding": "JSONRPC", "protocolVersion": version}]})
    };
    runtime.block_on(async {
        for (place, card) in [("/good", interface("1.0")), ("/old", interface("0.3")), ("/odd", serde_json::json!({}))]
        {
            let answer = ResponseTemplate::new(200).set_body_json(card);
            Mock::given(path(format!("{place}/.well-known/agent-card.json"))).respond_with(answer).mount(&server).await;
        }
    });
    let home = Home::new();
    std::fs::create_dir(home.path().join("kits")).unwrap();
    for (name, at) in [("good", "/good"), ("none", "/none"), ("odd", "/odd"), ("old", "/old"), ("down", "")] {
        let at = if at.is_empty() { "http://127.0.0.1:1".to_owned() } else { format!("{url}{at}") };
        let token = if name == "good" { "token = \"NO_SUCH_KEY\"\n" } else { "" };
        std::fs::write(home.path().join(format!("kits/{name}.toml")), format!("[a2a]\nurl = \"{at}\"\n{token}"))
            .unwrap();
    }
    let (code, told) = hops(&home, &["--toolkits", "kits"]);
    assert_eq!(code, Some(5));
    let begins = [
        "FAIL  agent down reach: the A2A agent `down` cannot be reached: ",
        &format!("ok    agent good reach: {url}/good"),
        "ok    agent good card: It cooks.",
        "ok    agent good version: A2A 1.0 over JSON-RPC",
        "ok    agent good name: good_toolkit",
        "FAIL  agent good credential: there is no secret and no environment variable `NO_SUCH_KEY` (hint)",
        &format!("ok    agent none reach: {url}/none"),
        "FAIL  agent none card: the A2A agent `none` cannot be reached: it answered 404 Not Found",
        &format!("ok    agent odd reach: {url}/odd"),
        "FAIL  agent odd card: the A2A agent `odd` has a card that names no `supportedInterfaces`",
        &format!("ok    agent old reach: {url}/old"),
        "ok    agent old card: it has one",
        "FAIL  agent old version: the A2A agent `old` offers no A2A 1.0 over JSON-RPC, but JSONRPC 0.3",
    ];
    assert_eq!(told.len(), begins.len(), "{told:#?}");
    for (line, begin) in told.iter().zip(begins) {
        assert!(line.starts_with(begin), "{line}\n{begin}");
        assert!(line.starts_with("ok") || line.ends_with(" (hint)"), "{line}");
    }
}

#[test]
fn programs_that_nothing_confines_are_a_warning() {
    let home = Home::new();
    let arguments = ["doctor", "-c", "interpreter.isolation=none", "-c", "llm.model=none", "-c", "llm.fill=none"];
    let told = stdout(&home.output(&arguments, ""));
    let mut lines = told.lines();
    let first = lines.next().unwrap();
    assert!(first.starts_with("warn  interpreter: CPython ") && first.contains("isolation none ("), "{told}");
    let warning = "      warning: isolation is none: a program can read, change and send whatever you can";
    assert!(lines.next().unwrap().starts_with(warning), "{told}");
    // Whoever is confined has nothing to be warned of.
    let told = stdout(&home.output(&["doctor"], ""));
    assert!(!told.contains("warning: isolation"), "{told}");
}
