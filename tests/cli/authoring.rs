//! What `docs/toolkits.md` says, as a new author would do it.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::thread::JoinHandle;

use super::*;

/// Runs a command of the guide, which must succeed, and returns what it printed.
#[track_caller]
fn done(home: &Home, arguments: &[&str]) -> String {
    let output = home.output(arguments, "");
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}{}", stdout(&output), stderr(&output));
    stdout(&output)
}

/// A server on a free port that answers one request with `body`, and then says what its first line was.
fn answering(body: &'static str) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        while !lines.next().unwrap().unwrap().is_empty() {}
        let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length:";
        write!(stream, "{head} {}\r\n\r\n{body}", body.len()).unwrap();
        first
    });
    (address, asked)
}

#[test]
fn from_nothing_to_an_own_operation() {
    let home = Home::new();
    let told = done(&home, &["toolkit", "new", "disk"]);
    assert!(told.starts_with("wrote disk/"), "{told}");
    // Each command that it tells to try works as it stands there.
    let mut commands = 0;
    for line in told.lines().filter_map(|line| line.trim().strip_prefix("fimble ")) {
        done(&home, &line.split_whitespace().collect::<Vec<_>>());
        commands += 1;
    }
    assert_eq!(commands, 4, "{told}");
    assert_eq!(done(&home, &["--toolkits", "disk", "run", "disk/test.py"]), "disk_toolkit works\n");
    assert_eq!(done(&home, &["toolkits", "call", "disk", "weekday", "date=2026-05-03"]), "\"7\"\n");

    // The guide's own operation.
    let file = home.path().join("disk/disk.toml");
    let guide = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/toolkits.md")).unwrap();
    let (_, own) = guide.split_once("```toml\n").unwrap();
    let own = own.split_once("```").unwrap().0;
    let written = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{written}\n{own}")).unwrap();
    assert!(done(&home, &["toolkits", "check", "disk"]).contains("3 operations"));
    let program = "lines = await disk_toolkit.free('/')\nprint(lines[0].strip(), int(lines[1]) > 0)\n";
    let output = home.output(&["--toolkits", "disk", "run", "-"], program);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "Avail True\n"), "{}", stderr(&output));
}

#[test]
fn the_http_example_asks_with_the_argument_as_one_value() {
    let home = Home::new();
    done(&home, &["toolkits", "new", "web", "--manifest"]);
    let (address, asked) = answering(r#"{"total_count": 1, "items": [{"full_name": "a/b", "description": null}]}"#);
    let file = home.path().join("web/web.toml");
    let written = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, written.replace("https://api.github.com", &address)).unwrap();
    let found = done(&home, &["toolkits", "call", "web/web.toml", "search", "query=a&sort=x"]);
    assert!(found.contains("\"full_name\": \"a/b\""), "{found}");
    let expected = "GET /search/repositories?per_page=5&q=a%26sort%3Dx HTTP/1.1";
    // The digits of an escape are written in either case.
    assert_eq!(asked.join().unwrap().to_lowercase(), expected.to_lowercase());
}

#[test]
fn nothing_is_written_over_and_no_bad_name_is_taken() {
    let home = Home::new();
    done(&home, &["toolkits", "new", "twice"]);
    let before = std::fs::read_to_string(home.path().join("twice/twice.toml")).unwrap();
    for (arguments, message) in [
        (&["toolkits", "new", "twice"][..], "there is already a `twice`"),
        (&["toolkits", "new", "two-words"], "`two-words` cannot be a toolkit's name"),
        (&["toolkits", "new", "../out"], "`../out` cannot be a toolkit's name"),
        (&["toolkits", "new", "class"], "`class` cannot be a toolkit's name"),
        (&["toolkits", "new", "system_toolkit"], "the name `system` is kept for something else"),
        (&["toolkits", "new", "x", "--rust", "--mcp", "http://127.0.0.1:1"], "a toolkit is of one kind"),
        (&["toolkits", "new", "x", "--mcp", "uvx"], "`uvx` is no http:// or https:// address"),
        (&["toolkits", "new", "x", "--openapi", "none.json"], "cannot read `none.json`"),
        (&["toolkits", "new", "x", "--rust", "--sources", "twice"], "does not hold Fimble's sources"),
        (&["toolkits", "check", "none/at/all"], "there is no `none/at/all`"),
        (&["toolkits", "check", "none_toolkit"], "there is no toolkit `none_toolkit`"),
    ] {
        let output = home.output(arguments, "");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stdout(&output));
        assert!(stderr(&output).contains(message) && stderr(&output).contains("hint: "), "{}", stderr(&output));
        assert!(!home.path().join("x").exists());
    }
    assert_eq!(std::fs::read_to_string(home.path().join("twice/twice.toml")).unwrap(), before);
}

#[test]
fn check_tells_errors_and_warnings_each_with_its_place() {
    let home = Home::new();
    let write = |text: &str| std::fs::write(home.path().join("bad.toml"), text).unwrap();
    write(
        "name = \"bad\"\ndescription = \"\"\n[[operation]]\nname = \"delete\"\ndescription = \"Removes it.\"\n\
         command = [\"rm\", \"{path}\"]\nrisk = \"read\"\n[operation.params]\npath = \"str\"\n",
    );
    let output = home.output(&["toolkits", "check", "bad.toml"], "");
    let expected = "\
warning: bad: its name does not end with `_toolkit`
         hint: models are told that toolkits are named so; rename it
error: bad: it has no description
         hint: say in one sentence what it is for; the model chooses by it
warning: bad.delete: `delete` sounds as if it loses something, and its risk is `read`
         hint: reads run without asking; say `destructive`, or rename it
bad: 1 operation, about 17 tokens of each prompt; 1 error, 2 warnings
";
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), expected), "{}", stderr(&output));
    write("name = \"bad_toolkit\"\ndescription = \"Bad.\"\n[[operation]]\nname = \"x\"\ncomand = []\n");
    let output = home.output(&["toolkits", "check", "bad.toml"], "");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("error: bad.toml:5: unknown field `comand`"), "{}", stdout(&output));
    // Those that are shipped are in order.
    let shipped = done(&home, &["toolkits", "check"]);
    assert_eq!(shipped.matches("0 errors, 0 warnings").count(), shipped.lines().count(), "{shipped}");
}

#[test]
fn an_api_becomes_a_folder_of_its_own() {
    let home = Home::new();
    let document = r#"{"openapi": "3.1.0", "info": {"title": "Anything", "version": "1"}, "servers": [{"url": "http://127.0.0.1:1"}],
        "paths": {"/pets/{id}": {"get": {"operationId": "get_pet", "summary": "One pet.", "parameters": [
            {"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}],
            "responses": {"200": {"description": "It.", "content": {"application/json": {"schema": {"type": "object",
                "properties": {"name": {"type": "string"}}}}}}}}}}}"#;
    std::fs::write(home.path().join("document.json"), document).unwrap();
    done(&home, &["toolkits", "new", "pets", "--openapi", "document.json"]);
    std::fs::remove_file(home.path().join("document.json")).unwrap();
    let told = done(&home, &["--toolkits", "pets", "run", "pets/test.py"]);
    assert!(told.contains("class pets_toolkit") && told.contains("async def get_pet(id: int)"), "{told}");
    assert!(done(&home, &["toolkits", "check", "pets"]).contains("pets_toolkit: 1 operation, about"));
}

#[test]
fn an_mcp_server_becomes_a_folder_of_its_own() {
    let home = Home::new();
    done(&home, &["toolkits", "new", "echo", "--mcp", "http://127.0.0.1:1/mcp"]);
    let output = home.output(&["toolkits", "check", "echo"], "");
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(stdout(&output).starts_with("error: the MCP server `echo` "), "{}", stdout(&output));
    // What the file says of programs of this machine.
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/toolkits/mcp/tests/servers/fixtures/scripted.py");
    let file = home.path().join("echo/echo.toml");
    let written = std::fs::read_to_string(&file).unwrap();
    let command = format!("command = \"/usr/bin/python3\"\nargs = [\"{script}\"]\nincludeTools = [\"echo\"]");
    std::fs::write(&file, written.replace("url = \"http://127.0.0.1:1/mcp\"", &command)).unwrap();
    let told = done(&home, &["--toolkits", "echo", "run", "echo/test.py"]);
    assert!(told.contains("class echo_toolkit") && told.contains("async def echo("), "{told}");
}

#[test]
fn a_new_crate_is_built_and_its_tests_pass() {
    let home = Home::new();
    let sources = env!("CARGO_MANIFEST_DIR");
    done(&home, &["toolkits", "new", "word_count", "--rust", "--sources", sources]);
    let folder = home.path().join("word_count");
    let output = home.output(&["toolkits", "check", "word_count"], "");
    assert!(stdout(&output).contains("cd word_count && cargo test"), "{}", stdout(&output));
    // With the versions that this build has, no registry is asked.
    std::fs::copy(Path::new(sources).join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("new-toolkit");
    let mut cargo = Command::new(env!("CARGO"));
    let output =
        cargo.args(["test", "--offline"]).env("CARGO_TARGET_DIR", target).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("test result: ok. 2 passed"), "{}", stdout(&output));
}
