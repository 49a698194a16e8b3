//! MCP servers through the binary: logins, servers that come late, hang or ask.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Child;
use std::sync::{Arc, Mutex};

use super::*;

/// A Python that has the protocol's own library; it is installed if need be.
fn python() -> PathBuf {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/mcp-test-servers");
    let output = Command::new(script).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim()).join("bin/python")
}

/// One of the servers that the MCP crate is tested with.
fn fixture(name: &str) -> String {
    format!("{}/toolkits/mcp/tests/servers/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a server whose first line is its address.
fn served(name: &str) -> (Process, String) {
    let mut child = Command::new(python()).arg(fixture(name)).stdout(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
    (Process(child), address.trim().to_owned())
}

/// Types a command that was told, and goes where it sends the browser.
#[track_caller]
fn log_in(home: &Home, command: &str) -> String {
    let words: Vec<&str> = command.strip_prefix("fimble ").unwrap().split(' ').collect();
    let mut child = home.fimble(&words).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    assert!(line.starts_with("visit "), "{line}");
    let address = line.trim().trim_start_matches("visit ");
    let visit = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1]).read()";
    assert!(Command::new(python()).args(["-c", visit, address]).status().unwrap().success());
    let mut rest = String::new();
    told.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{rest}");
    rest
}

#[test]
fn a_server_of_a_file_tells_the_login_that_works_as_it_is_written() {
    let (_server, url) = served("oauth_server.py");
    let home = Home::new();
    assert_eq!(home.output(&["toolkits", "new", "guarded", "--mcp", &url], "").status.code(), Some(0));
    let checked = home.output(&["toolkits", "check", "guarded"], "");
    assert_eq!(checked.status.code(), Some(1), "{}", stderr(&checked));
    let said = format!("{}{}", stdout(&checked), stderr(&checked));
    assert!(said.contains("the MCP server `guarded` wants you to log in"), "{said}");
    let told = |said: &str| {
        let command = said.split('`').find(|part| part.starts_with("fimble toolkits login ")).map(str::to_owned);
        assert!(command.is_some(), "{said}");
        command.unwrap()
    };
    let command = told(&said);
    let doctor = |home: &Home| stdout(&home.output(&["doctor", "--toolkits", "guarded"], ""));
    let hops = doctor(&home);
    assert!(hops.contains("FAIL  mcp guarded version: the MCP server `guarded` wants you to log in"), "{hops}");
    assert_eq!(told(&hops), command);
    // A program that was written for it is told the same, and the others run.
    let run = home.output(&["--toolkits", "guarded", "run", "-"], "print(await guarded_toolkit.refreshed())\n");
    let refused = stderr(&run);
    let begin =
        "`guarded_toolkit` has no operations now: It cannot be used now: the MCP server `guarded` wants you to log in";
    assert!(run.status.code() == Some(1) && refused.contains(begin), "{refused}");
    assert_eq!(told(refused.split_once(begin).unwrap().1), command);
    let run = home.output(&["--toolkits", "guarded", "run", "-"], "print(1)\n");
    assert_eq!((run.status.code(), stdout(&run).as_str()), (Some(0), "1\n"));
    // A login changes nothing about where the command is typed.
    assert!(command.contains(home.path().join("guarded/guarded.toml").to_str().unwrap()), "{command}");

    assert!(log_in(&home, &command).contains("logged in to `guarded` of "));
    let called = home.output(&["toolkits", "call", "guarded", "refreshed", "--yes"], "");
    assert_eq!((called.status.code(), stdout(&called).as_str()), (Some(0), "0\n"), "{}", stderr(&called));
    let hops = doctor(&home);
    assert!(hops.contains("ok    mcp guarded name: guarded_toolkit with 3 operations"), "{hops}");

    // The tokens are gone on the other side: the program's error holds the same command.
    let program = "await guarded_toolkit.forget()\ntry:\n    await guarded_toolkit.refreshed()\n\
                   except ToolError as error:\n    print(error.hint)\n";
    let run = home.output(&["--toolkits", "guarded", "run", "-", "--yes"], program);
    assert_eq!(told(&format!("{}{}", stdout(&run), stderr(&run))), command);
    // The name is enough where the folder is named.
    let named = home.output(&["toolkits", "login", "guarded", "--forget", "--toolkits", "guarded"], "");
    assert_eq!((named.status.code(), stderr(&named).as_str()), (Some(0), "forgotten\n"));
}

#[test]
fn a_server_of_an_mcp_servers_file_tells_its_file_too() {
    let (_server, url) = served("oauth_server.py");
    let home = Home::new();
    let servers = |url: &str| format!(r#"{{"mcpServers": {{"guarded one": {{"url": "{url}"}}}}}}"#);
    std::fs::write(home.path().join("mcp.json"), servers(&url)).unwrap();
    let output = home.output(&["toolkits", "list", "--mcp", "mcp.json"], "");
    let place = home.path().join("mcp.json");
    let command = format!("fimble toolkits login 'guarded one' --mcp {}", place.display());
    assert!(stderr(&output).contains(&format!("run `{command}`")), "{}", stderr(&output));

    std::fs::write(home.path().join("other.json"), servers("http://127.0.0.1:1/mcp")).unwrap();
    let twice = ["toolkits", "login", "guarded one", "--mcp", "mcp.json", "--mcp", "other.json"];
    let output = home.output(&twice, "");
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("`guarded one` means 2 MCP servers") && said.contains(&command), "{said}");
    let output = home.output(&["toolkits", "login", "none", "--mcp", "mcp.json"], "");
    let expected = "error: there is no MCP server `none`\n\nhint: there are guarded one; or name its file\n";
    assert_eq!(described(&output), (Some(2), String::new(), expected.to_owned()));
}

/// Listens and never says a word. Its address, and the paths that were asked for until now.
fn silent() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut reader, asked) = (BufReader::new(stream.unwrap()), Arc::clone(&asked));
            std::thread::spawn(move || {
                let mut first = String::new();
                let _ = reader.read_line(&mut first);
                let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
                asked.lock().unwrap().push(path.clone());
                // Until the other side gives it up.
                let _ = reader.read_to_end(&mut Vec::new());
                asked.lock().unwrap().push(format!("{path} given up"));
            });
        }
    });
    (address, all)
}

const HEALTHY: &str = "name = \"healthy_toolkit\"\ndescription = \"Says it.\"\n[[operation]]\nname = \"word\"\n\
                       description = \"A word.\"\ncommand = [\"printf\", \"well\"]\nrisk = \"read\"\n";

#[test]
fn services_that_never_answer_are_waited_for_once_and_leave_the_others_alone() {
    let home = Home::new();
    let (address, asked) = silent();
    std::fs::create_dir(home.path().join("kits")).unwrap();
    std::fs::write(home.path().join("kits/healthy.toml"), HEALTHY).unwrap();
    std::fs::write(home.path().join("kits/late.toml"), format!("[a2a]\nurl = \"{address}/late\"\n")).unwrap();
    let servers = format!(r#"{{"mcpServers": {{"mute": {{"url": "{address}/mcp"}}}}}}"#);
    std::fs::write(home.path().join("mcp.json"), servers).unwrap();
    let document = format!("{address}/openapi.json");
    let services = ["--toolkits", "kits", "--mcp", "mcp.json", "--openapi", &document, "--a2a", &address];
    let settings = ["-c", "toolkits.patience_s=2", "run", "-"];
    let output =
        home.output(&[&services[..], &settings[..]].concat(), "print(await healthy_toolkit.word())\nprint(1)\n");
    let said = stderr(&output);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "well\n1\n"), "{said}");
    // Nobody's own, longer limit was waited for, and all four waited at the same time: none was given up before the last was asked.
    let late = ["the MCP server `mute`", &document, &format!("the agent at {address}"), "kits/late.toml"];
    for name in late {
        let expected = format!("warning: {name} did not answer within 2s; it is there when it has\n");
        assert!(said.contains(&expected), "{name}: {said}");
    }
    let asked = asked.lock().unwrap();
    let given_up = asked.iter().position(|path| path.ends_with(" given up")).unwrap_or(asked.len());
    let before: BTreeSet<&str> = asked[..given_up].iter().map(String::as_str).collect();
    let cards = ["/.well-known/agent-card.json", "/late/.well-known/agent-card.json"];
    assert_eq!(before, BTreeSet::from([cards[0], cards[1], "/mcp", "/openapi.json"]), "{asked:?}");
}

#[test]
fn a_name_that_is_taken_is_told_and_the_others_are_there() {
    let home = Home::new();
    let document = r#"{"openapi": "3.1.0", "info": {"title": "git"}, "servers": [{"url": "http://127.0.0.1:1"}],
                       "paths": {"/x": {"get": {"operationId": "x"}}}}"#;
    std::fs::write(home.path().join("git.json"), document).unwrap();
    std::fs::write(home.path().join("other.json"), document.replace("\"git\"", "\"other\"")).unwrap();
    let arguments = ["--openapi", "git.json", "--openapi", "other.json", "--openapi", "other.json"];
    let output = home.output(&[&arguments[..], &["run", "-"]].concat(), "print(1)\n");
    let said = stderr(&output);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "1\n"), "{said}");
    for (file, name) in [("git.json", "git"), ("other.json", "other")] {
        let expected = format!(
            "warning: {file}: there is already a toolkit `{name}_toolkit`\nhint: give one of them another name, or remove the \
             other first\n"
        );
        assert_eq!(said.matches(&expected).count(), 1, "{said}");
    }
    let list = stdout(&home.output(&[&arguments[..], &["toolkits", "list"]].concat(), ""));
    assert!(list.contains("other_toolkit") && list.matches("git_toolkit").count() == 1, "{list}");
}

/// A `kits/scripted.toml` with the server that does everything, in these modes; `more` are further lines.
fn with_scripted(home: &Home, modes: &[&str], more: &str) {
    let modes: String = modes.iter().map(|mode| format!(", \"{mode}\"")).collect();
    let text =
        format!("[mcp]\ncommand = \"/usr/bin/python3\"\nargs = [\"{}\"{modes}]\n{more}\n", fixture("scripted.py"));
    std::fs::create_dir_all(home.path().join("kits")).unwrap();
    std::fs::write(home.path().join("kits/scripted.toml"), text).unwrap();
}

#[test]
fn an_operation_of_sixty_parameters_named_like_keywords_is_shown_in_part_and_called_whole() {
    let home = Home::new();
    with_scripted(&home, &[], "");
    let stub = stdout(&home.output(&["toolkits", "stub", "kits"], ""));
    let line = stub.lines().find(|line| line.contains("async def lambda_(")).unwrap();
    assert!(line.contains("class_: str") && line.ends_with("describe(\"scripted_toolkit.lambda_\")"), "{line}");
    assert!(line.contains("# and 30 more parameters: ") && !line.contains("option_number_57"), "{line}");
    let program = "told = await system_toolkit.describe('scripted_toolkit.lambda_')\n\
                   print('option_number_57: str = None' in told, 'import_: int = None' in told)\n\
                   print(await scripted_toolkit.lambda_('it', import_=3, option_number_57='last'))\n";
    let output = home.output(&["--toolkits", "kits", "run", "-", "--yes"], program);
    let expected =
        "True True\n{'tool': 'lambda', 'arguments': {'class': 'it', 'option_number_57': 'last', 'import': 3}}\n";
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), expected), "{}", stderr(&output));
}

#[test]
fn what_variables_put_into_a_file_is_masked_wherever_it_stands() {
    let home = Home::new();
    let more = "env = { PLAIN = \"at ${FIRST_VALUE}\", OTHER = \"${HOME}/here\" }";
    with_scripted(&home, &["name=${SECOND_VALUE}"], more);
    let mut command = home.fimble(&["--toolkits", "kits", "run", "-", "--yes"]);
    command.env("FIRST_VALUE", "alpha-4711").env("SECOND_VALUE", "beta-0815").env("DOCUMENT_VALUE", "gamma-2342");
    command.env("AGENT_VALUE", "delta-1138");
    for (file, text) in [
        ("document.toml", "[openapi]\ndocument = 'none.json'\nheaders = { x-whatever = 'DOCUMENT_VALUE' }\n"),
        ("agent.toml", "[a2a]\nurl = 'http://127.0.0.1:1'\nheaders = { x-whatever = 'AGENT_VALUE' }\n"),
        (
            "remote.toml",
            "[mcp]\nurl = 'http://127.0.0.1:1/${FIRST_VALUE}'\nheaders = { x-whatever = '${REMOTE_VALUE}' }\n",
        ),
    ] {
        std::fs::write(home.path().join("kits").join(file), text).unwrap();
    }
    command.env("REMOTE_VALUE", "omega-9000");
    let program = "told = await scripted_toolkit.environment()\nprint(told['PLAIN'], told['OTHER'] == told['HOME'] + '/here')\n\
                   for head, tail in [('alpha-', '4711'), ('beta-', '0815'), ('gamma-', '2342'), ('delta-', '1138'), ('omega-', '9000')]:\n\
                   \x20   print(head + tail)\nprint(told['HOME'].rstrip('/'))\n";
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let hidden = "********\n".repeat(5);
    // Where the home is everybody knows.
    let expected = format!("at ******** True\n{hidden}{}\n", home.path().display());
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), expected), "{}", stderr(&output));
    let values = ["alpha-4711", "beta-0815", "gamma-2342", "delta-1138", "omega-9000"];
    assert!(values.iter().all(|value| !stderr(&output).contains(value)), "{}", stderr(&output));
}

#[test]
fn a_server_is_stopped_by_the_end_of_its_input() {
    let home = Home::new();
    let file = home.path().join("end");
    with_scripted(&home, &[&format!("ends={}", file.display())], "");
    let output = home.output(&["toolkits", "call", "kits", "json", "--yes"], "");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // It may take a moment longer than we do; what never happens fails the test after a minute.
    let has_ended = || std::fs::read_to_string(&file).is_ok_and(|text| text == "in order");
    for _ in 0..600 {
        if has_ended() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert!(has_ended());
}

#[test]
fn a_servers_question_is_declined_where_nobody_is() {
    let home = Home::new();
    with_scripted(&home, &[], "");
    let program = "try:\n    await scripted_toolkit.ask()\nexcept ToolError as error:\n    print(error)\n";
    let output = home.output(&["--toolkits", "kits", "run", "-", "--yes"], program);
    let said = stdout(&output);
    let expected =
        "scripted_toolkit.ask() asked and nobody was there to answer: The MCP server `scripted` asks: What now?";
    assert!(output.status.code() == Some(0) && said.contains(expected), "{said}{}", stderr(&output));
    let output = home.output(&["toolkits", "call", "kits", "ask", "--yes"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
}
