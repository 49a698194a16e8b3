//! MCP servers through the binary: logins, servers that come late, hang or ask.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::Child;

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
    let address = line.trim().strip_prefix("visit ").unwrap_or_else(|| panic!("{line}"));
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
        command.unwrap_or_else(|| panic!("{said}"))
    };
    let command = told(&said);
    let doctor = |home: &Home| stdout(&home.output(&["doctor", "--toolkits", "guarded"], ""));
    let hops = doctor(&home);
    assert!(hops.contains("FAIL  mcp guarded version: the MCP server `guarded` wants you to log in"), "{hops}");
    assert_eq!(told(&hops), command);
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
